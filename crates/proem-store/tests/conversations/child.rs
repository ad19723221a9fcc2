//! Another process: this program, started again to run only the test below.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use proem::request::RequestUpdate;
use proem::stored_prompt::StoredPrompt;
use proem::{Caller, Engine, Request};
use proem_store::{Commit, ConversationError, Conversations, Current, Epoch, EpochHead, StateRecord};
use serde_json::{Value, json};

use crate::site::system;

const TASK: &str = "PROEM_TEST_TASK";

/// The line of a child that waits for its parent.
const READY: &str = "ready to go";

/// Returns a command that runs a task in a child, optionally through another program.
pub(crate) fn command(starter: &[&str], task: &Value) -> Command {
    let own = std::env::current_exe().unwrap();
    let mut command = match starter {
        [] => Command::new(own),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(own);
            command
        }
    };
    command.args(["--exact", "child::a_child_does_its_task", "--nocapture"]).env(TASK, task.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Starts all children, releases them when all are ready, and waits for them.
pub(crate) fn run_together(commands: Vec<Command>) {
    let mut children: Vec<Child> = commands.into_iter().map(|mut command| command.spawn().unwrap()).collect();
    let mut outputs: Vec<_> =
        children.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap()).lines()).collect();
    for output in &mut outputs {
        assert!(output.any(|line| line.unwrap().ends_with(READY)), "a child ended early");
    }
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    // The output of a child must be read, or the child blocks.
    for output in outputs {
        output.for_each(drop);
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}

/// Reads the answer of a child.
pub(crate) fn answer(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_child_does_its_task() {
    let Ok(task) = std::env::var(TASK) else { return };
    let task: Value = serde_json::from_str(&task).unwrap();
    let text = |key: &str| task[key].as_str().unwrap();
    let request = Request::from_json(&task["request"].to_string()).unwrap();
    println!("\n{READY}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let answer = match text("task") {
        "turn" => take_turn(text("store"), &request),
        "turns" => take_turns(text("store"), task["count"].as_u64().unwrap(), &request),
        "fill" => fill(text("store"), &request),
        "lock" => try_lock(text("store")),
        "count" => count(text("store"), &request),
        other if ["reload", "compact", "template", "remove"].contains(&other) => {
            change(text("store"), other).unwrap_or_else(|error| failed(&error))
        }
        other => panic!("unknown task {other}"),
    };
    fs::write(text("answer"), answer.to_string()).unwrap();
}

fn take_turn(store: &str, request: &Request) -> Value {
    let turn = || -> Result<Value, ConversationError> {
        let own = Conversations::new(proem_store::open(store)?.into(), Engine::new());
        let answer = own.turn("c", request, Caller::User)?;
        Ok(json!({"system": system(&answer.frozen), "epoch": answer.epoch}))
    };
    turn().unwrap_or_else(|error| failed(&error))
}

/// Takes a turn in each of several conversations, and returns the notices of each.
fn take_turns(store: &str, count: u64, request: &Request) -> Value {
    let own = Conversations::new(proem_store::open(store).unwrap().into(), Engine::new());
    let take = |index| json!(own.turn(&format!("p{index}"), request, Caller::User).unwrap().notices);
    (0..count).map(take).collect()
}

/// The changes that each of several processes makes.
pub(crate) const COUNTED: u64 = 12;

/// Counts in the state of a conversation, and opens an epoch with every third number. Returns the versions that were
/// written.
fn count(store: &str, request: &Request) -> Value {
    let (store, base) = (proem_store::open(store).unwrap(), epoch(request));
    let mut won = Vec::new();
    while (won.len() as u64) < COUNTED {
        let (number, known) = match store.current("c").unwrap() {
            Some(Current { epoch, state }) => (epoch.head.number, state.unwrap()),
            None => (0, StateRecord { version: 0, text: "0".into() }),
        };
        let counted = known.text.parse::<u64>().unwrap() + 1;
        let head = EpochHead { number: number + 1, ..base.head.clone() };
        let next = (number == 0 || counted.is_multiple_of(3)).then(|| Epoch { head, ..base.clone() });
        // Competing processes choose the same version.
        let state = StateRecord { version: known.version + 1, text: counted.to_string() };
        let change =
            Commit { conversation: "c", based_on: known.version, state: &state, epoch: next.as_ref() };
        if store.commit(&change).unwrap() {
            won.push(state.version);
        }
    }
    json!({ "won": won })
}

/// Creates the first epoch of `c` with its sources.
fn epoch(request: &Request) -> Epoch {
    let build = proem::build(request, Caller::User).unwrap();
    Epoch {
        head: EpochHead {
            conversation: "c".into(),
            number: 1,
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
        request: request.to_json().unwrap(),
        sources: Some("[]".into()),
    }
}

/// Changes the store.
fn change(store: &str, task: &str) -> Result<Value, ConversationError> {
    let own = Conversations::new(proem_store::open(store)?.into(), Engine::new());
    match task {
        "reload" => {
            let rebuilt = own.reload("c", RequestUpdate::default(), Caller::User)?;
            Ok(json!({"epoch": rebuilt.epoch.head.number}))
        }
        "compact" => {
            let begun = own.begin_compaction("c", RequestUpdate::default(), Caller::User)?;
            let opened = own.commit_compaction("c", &begun.token, Caller::User)?;
            Ok(json!({"epoch": opened.head.number}))
        }
        "template" => Ok(own.store().put_template("another", None, None).map(|_| json!({}))?),
        _ => Ok(own.store().remove("c").map(|_| json!({}))?),
    }
}

/// Tells whether another connection holds the write lock.
fn try_lock(store: &str) -> Value {
    let connection = rusqlite::Connection::open(store).unwrap();
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    let begun = connection.execute_batch("BEGIN IMMEDIATE");
    let code = begun.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
    assert!(begun.is_ok() || code == Some(rusqlite::ErrorCode::DatabaseBusy), "{begun:?}");
    json!({"is_locked": begun.is_err()})
}

/// Begins conversations until the store is full.
fn fill(store: &str, request: &Request) -> Value {
    let own = Conversations::new(proem_store::open(store).unwrap().into(), Engine::new());
    let mut done: Vec<String> = Vec::new();
    for index in 0..10_000 {
        let request = Request { system: Some(format!("{index} ").repeat(2000)), ..request.clone() };
        let id = format!("c{index}");
        match own.turn(&id, &request, Caller::User) {
            Ok(_) => done.push(id),
            Err(error) => {
                let again =
                    own.turn("c0", &request, Caller::User).map(|answer| system(&answer.frozen).to_owned());
                return json!({"done": done, "failed": failed(&error), "again": again.ok()});
            }
        }
    }
    panic!("the store is never full");
}

fn failed(error: &ConversationError) -> Value {
    json!({"error": error.to_string(), "hint": error.hint()})
}
