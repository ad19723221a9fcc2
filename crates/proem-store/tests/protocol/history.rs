//! Recorded operations of concurrent clients on the real stores, which must be linearizable.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use proem::stored_prompt::StoredPrompt;
use proem::{Caller, Request};
use proem_core::carrier::Carrier;
use proem_store::{Commit, Epoch, EpochHead, MemoryStore, PostgresStore, SqliteStore, StateRecord, Store};
use proem_testkit::PostgresServer;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

const CLIENTS: u64 = 4;
const OPERATIONS: u64 = 3;

/// One conversation: its epochs, by the prompts in them, and the version of its state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Conversation {
    epochs: Vec<u64>,
    version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Operation {
    /// Reads the current epoch, and the version of the state.
    Current,
    /// Stores a prompt under a number.
    Open { number: usize, prompt: u64 },
    /// Stores the state after a version, and a prompt under a number if one is given.
    Commit { based_on: u64, number: Option<usize>, prompt: u64 },
}

/// A number and the prompt under it; `None` when there is no such epoch.
type Numbered = Option<(usize, u64)>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Answer {
    Current(Numbered, u64),
    Open(Numbered),
    Commit(bool),
}

impl SequentialSpec for Conversation {
    type Op = Operation;
    type Ret = Answer;

    fn invoke(&mut self, operation: &Operation) -> Answer {
        let Self { epochs, version } = self;
        match *operation {
            Operation::Current => {
                Answer::Current(epochs.last().map(|prompt| (epochs.len(), *prompt)), *version)
            }
            Operation::Open { number, prompt } => {
                if number == epochs.len() + 1 {
                    epochs.push(prompt);
                }
                Answer::Open(number.checked_sub(1).and_then(|index| Some((number, *epochs.get(index)?))))
            }
            Operation::Commit { based_on, number, prompt } => {
                let is_next = number.map_or(!epochs.is_empty(), |number| number == epochs.len() + 1);
                if based_on != *version || !is_next {
                    return Answer::Commit(false);
                }
                *version += 1;
                epochs.extend(number.map(|_| prompt));
                Answer::Commit(true)
            }
        }
    }
}

/// One conversation, in a store or in a faulty implementation.
trait ConversationLog: Send + Sync {
    fn current(&self) -> (Numbered, u64);
    fn open(&self, number: usize, prompt: u64) -> Numbered;
    fn commit(&self, based_on: u64, number: Option<usize>, prompt: u64) -> bool;
}

/// One conversation of a store.
struct StoredConversation {
    store: Arc<dyn Store>,
    conversation: String,
}

impl ConversationLog for StoredConversation {
    fn current(&self) -> (Numbered, u64) {
        let Some(current) = self.store.current(&self.conversation).unwrap() else { return (None, 0) };
        (Some(numbered(&current.epoch)), current.state.map_or(0, |state| state.version))
    }

    fn open(&self, number: usize, prompt: u64) -> Numbered {
        self.store.open(&epoch(&self.conversation, number as u64, prompt)).ok().as_ref().map(numbered)
    }

    fn commit(&self, based_on: u64, number: Option<usize>, prompt: u64) -> bool {
        let Self { store, conversation } = self;
        let state = StateRecord { version: based_on + 1, text: prompt.to_string() };
        let next = number.map(|number| epoch(conversation, number as u64, prompt));
        store.commit(&Commit { conversation, based_on, state: &state, epoch: next.as_ref() }).unwrap()
    }
}

fn numbered(epoch: &Epoch) -> (usize, u64) {
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
            template_version: None,
        },
        prompt: StoredPrompt::from_frozen(build.frozen()).unwrap(),
        request,
        sources: None,
    }
}

type History = LinearizabilityTester<u64, Conversation>;

/// Runs clients that read and store concurrently, and records their operations. Each record is made under a lock before
/// and after the call, so its order is one that the clients could observe.
fn record(log: &Arc<dyn ConversationLog>) -> History {
    let history = Arc::new(Mutex::new(History::new(Conversation::default())));
    let gate = Arc::new(Barrier::new(usize::try_from(CLIENTS).unwrap()));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (log, history, gate) = (Arc::clone(log), Arc::clone(&history), Arc::clone(&gate));
            thread::spawn(move || {
                gate.wait();
                let (mut current, mut version) = (0, 0);
                for count in 0..OPERATIONS {
                    let prompt = 1 + client * OPERATIONS + count;
                    let operation = match (count % 2 == client % 2, client) {
                        (false, _) => Operation::Current,
                        (true, 0 | 1) => Operation::Open { number: current + 1, prompt },
                        (true, _) => {
                            // The last change of a client has no epoch.
                            let number = (count + 1 < OPERATIONS).then_some(current + 1);
                            Operation::Commit { based_on: version, number, prompt }
                        }
                    };
                    history.lock().unwrap().on_invoke(client, operation.clone()).unwrap();
                    let answer = run(&*log, &operation);
                    history.lock().unwrap().on_return(client, answer.clone()).unwrap();
                    if let Answer::Current(found, _) | Answer::Open(found) = answer {
                        current = found.map_or(0, |(number, _)| number);
                    }
                    if let Answer::Current(_, found) = answer {
                        version = found;
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    Arc::into_inner(history).unwrap().into_inner().unwrap()
}

fn run(log: &dyn ConversationLog, operation: &Operation) -> Answer {
    match *operation {
        Operation::Current => {
            let (current, version) = log.current();
            Answer::Current(current, version)
        }
        Operation::Open { number, prompt } => Answer::Open(log.open(number, prompt)),
        Operation::Commit { based_on, number, prompt } => {
            Answer::Commit(log.commit(based_on, number, prompt))
        }
    }
}

fn check(name: &str, open: &dyn Fn() -> Arc<dyn Store>, conversations: usize) {
    let store = open();
    for number in 0..conversations {
        let log: Arc<dyn ConversationLog> =
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

impl ConversationLog for CheckThenWrite {
    fn current(&self) -> (Numbered, u64) {
        let epochs = self.epochs.lock().unwrap();
        (epochs.last().map(|prompt| (epochs.len(), *prompt)), 0)
    }

    fn commit(&self, _: u64, number: Option<usize>, prompt: u64) -> bool {
        number.is_none_or(|number| self.open(number, prompt) == Some((number, prompt)))
    }

    fn open(&self, number: usize, prompt: u64) -> Numbered {
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
    let log: Arc<dyn ConversationLog> = Arc::new(CheckThenWrite { epochs, entered, gate });
    let history = record(&log);
    assert!(!history.is_consistent(), "{history:?}");
}
