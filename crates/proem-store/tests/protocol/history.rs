//! Recorded operations of concurrent clients on the real stores, which must be linearizable.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use proem::stored_prompt::StoredPrompt;
use proem::{Caller, Request};
use proem_core::carrier::Carrier;
use proem_store::{Epoch, EpochHead, MemoryStore, PostgresStore, SqliteStore, Store};
use proem_testkit::PostgresServer;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

const CLIENTS: u64 = 4;
const OPERATIONS: u64 = 3;

/// The epochs of one conversation, by the prompts in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Epochs(Vec<u64>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Operation {
    /// Reads the current epoch.
    Current,
    /// Stores a prompt under a number.
    Open { number: usize, prompt: u64 },
}

/// A number and the prompt under it; `None` when there is no such epoch.
type Answer = Option<(usize, u64)>;

impl SequentialSpec for Epochs {
    type Op = Operation;
    type Ret = Answer;

    fn invoke(&mut self, operation: &Operation) -> Answer {
        let Self(epochs) = self;
        let number = match *operation {
            Operation::Current => epochs.len(),
            Operation::Open { number, prompt } => {
                if number == epochs.len() + 1 {
                    epochs.push(prompt);
                }
                number
            }
        };
        Some((number, *epochs.get(number.checked_sub(1)?)?))
    }
}

/// The epochs of one conversation, in a store or in a faulty implementation.
trait EpochLog: Send + Sync {
    fn current(&self) -> Answer;
    fn open(&self, number: usize, prompt: u64) -> Answer;
}

/// One conversation of a store.
struct StoredConversation {
    store: Arc<dyn Store>,
    conversation: String,
}

impl EpochLog for StoredConversation {
    fn current(&self) -> Answer {
        self.store.current(&self.conversation).unwrap().as_ref().map(answer)
    }

    fn open(&self, number: usize, prompt: u64) -> Answer {
        self.store.open(&epoch(&self.conversation, number as u64, prompt)).ok().as_ref().map(answer)
    }
}

fn answer(epoch: &Epoch) -> (usize, u64) {
    let prompt = epoch.prompt.texts[&Carrier::System].parse().unwrap();
    (usize::try_from(epoch.head.number).unwrap(), prompt)
}

/// An epoch whose prompt is a number.
fn epoch(conversation: &str, number: u64, prompt: u64) -> Epoch {
    let request =
        serde_json::json!({ "profile": "template", "system": prompt.to_string(), "cwd": "/" }).to_string();
    let build = proem::build(&Request::from_json(&request).unwrap(), Caller::User).unwrap();
    Epoch {
        head: EpochHead {
            conversation: conversation.to_owned(),
            number,
            reason: "startup".into(),
            digest: build.frozen().digest().hex(),
            fingerprint: build.fingerprint().whole.hex(),
            profile: "template".into(),
            engine: "0.1.0".into(),
            cwd: "/".into(),
            model: None,
            has_turn: false,
            opened_at: 1,
        },
        prompt: StoredPrompt::from_frozen(build.frozen()).unwrap(),
        request,
    }
}

type History = LinearizabilityTester<u64, Epochs>;

/// Runs clients that read and store concurrently, and records their operations. Each record is made under a lock before
/// and after the call, so its order is one that the clients could observe.
fn record(log: &Arc<dyn EpochLog>) -> History {
    let history = Arc::new(Mutex::new(History::new(Epochs::default())));
    let gate = Arc::new(Barrier::new(usize::try_from(CLIENTS).unwrap()));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (log, history, gate) = (Arc::clone(log), Arc::clone(&history), Arc::clone(&gate));
            thread::spawn(move || {
                gate.wait();
                let mut current = 0;
                for count in 0..OPERATIONS {
                    let operation = if count % 2 == client % 2 {
                        Operation::Open { number: current + 1, prompt: 1 + client * OPERATIONS + count }
                    } else {
                        Operation::Current
                    };
                    history.lock().unwrap().on_invoke(client, operation.clone()).unwrap();
                    let answer = match operation {
                        Operation::Current => log.current(),
                        Operation::Open { number, prompt } => log.open(number, prompt),
                    };
                    history.lock().unwrap().on_return(client, answer).unwrap();
                    current = answer.map_or(0, |(number, _)| number);
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    Arc::into_inner(history).unwrap().into_inner().unwrap()
}

fn check(name: &str, open: &dyn Fn() -> Arc<dyn Store>, conversations: usize) {
    let store = open();
    for number in 0..conversations {
        let log: Arc<dyn EpochLog> =
            Arc::new(StoredConversation { store: Arc::clone(&store), conversation: format!("c-{number}") });
        let history = record(&log);
        assert!(history.is_consistent(), "{name}: {history:?}");
    }
}

/// Row S1.
#[test]
fn histories_of_the_stores_are_linearizable() {
    check("memory", &|| Arc::new(MemoryStore::new()), 200);
    let folder = tempfile::tempdir().unwrap();
    check("sqlite", &|| Arc::new(SqliteStore::open(&folder.path().join("proem.db")).unwrap()), 60);
    if let Some(server) = PostgresServer::start() {
        let url = server.database("history");
        check("postgres", &|| Arc::new(PostgresStore::connect(&url).unwrap()), 60);
    }
}

/// The usual fault, "if nothing is stored, build and write": the first two writers check at the same time.
struct CheckThenWrite {
    epochs: Mutex<Vec<u64>>,
    entered: AtomicUsize,
    gate: Barrier,
}

impl EpochLog for CheckThenWrite {
    fn current(&self) -> Answer {
        let epochs = self.epochs.lock().unwrap();
        Some((epochs.len(), *epochs.last()?))
    }

    fn open(&self, number: usize, prompt: u64) -> Answer {
        let is_free = self.epochs.lock().unwrap().len() < number;
        if number == 1 && self.entered.fetch_add(1, Ordering::Relaxed) < 2 {
            self.gate.wait();
        }
        let mut epochs = self.epochs.lock().unwrap();
        if is_free {
            epochs.truncate(number - 1);
            epochs.push(prompt);
        }
        Some((number, *epochs.get(number - 1)?))
    }
}

/// Row S1, the control.
#[test]
fn a_fault_that_is_put_in_is_found() {
    // Clients 0 and 2 store first, so that two meet at the gate.
    let (epochs, entered, gate) = (Mutex::default(), AtomicUsize::new(0), Barrier::new(2));
    let log: Arc<dyn EpochLog> = Arc::new(CheckThenWrite { epochs, entered, gate });
    let history = record(&log);
    assert!(!history.is_consistent(), "{history:?}");
}
