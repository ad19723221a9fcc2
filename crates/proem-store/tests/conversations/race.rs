//! Concurrent threads and processes: they open one epoch, and all get its bytes.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use proem::hooks::{HookError, ResourcePaths, ResourcesDiscover};
use proem::{Caller, Engine, Hook, Request};
use proem_store::MaintainStore as _;
use proem_store::{Conversations, MemoryStore, PostgresStore, Rebuilt, Store};
use proem_testkit::PostgresServer;
use serde_json::{Value, json};

use crate::child;
use crate::site::{
    PATIENT, Site, conversations, epochs, history, interrupted, on_each_store, summary, system, tool, turn,
};

const RACERS: usize = 8;

/// A hook in which all builds wait for each other: all have looked before any stores an epoch.
struct Gate(Arc<Barrier>);

impl Hook for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn time_max(&self) -> Duration {
        PATIENT
    }

    fn resources_discover(&self, _: &ResourcesDiscover) -> Result<Option<ResourcePaths>, HookError> {
        self.0.wait();
        Ok(None)
    }
}

/// Opens the same store each time it is called.
type Opener<'o> = &'o dyn Fn() -> Arc<dyn Store>;

/// Runs the same work in many threads, each with its own or a shared `Conversations`.
fn race<T: Send + 'static>(
    own: Vec<Arc<Conversations>>,
    work: impl Fn(&Conversations, usize) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let work = Arc::new(work);
    let threads: Vec<_> = own
        .into_iter()
        .enumerate()
        .map(|(index, own)| {
            let work = Arc::clone(&work);
            thread::spawn(move || work(&own, index))
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn gated(open: Opener<'_>) -> Vec<Arc<Conversations>> {
    let barrier = Arc::new(Barrier::new(RACERS));
    let own = |_| {
        let engine = Engine::new().with_hook(Gate(Arc::clone(&barrier)));
        Arc::new(Conversations::new(open(), engine))
    };
    (0..RACERS).map(own).collect()
}

fn gated_together(open: Opener<'_>) -> Vec<Arc<Conversations>> {
    vec![Arc::clone(&gated(open)[0]); RACERS]
}

/// Returns a request whose template names the racer.
fn of_racer(site: &Site, index: usize) -> Request {
    site.request(json!({"profile": "loose", "template": format!("template of {index}")}))
}

fn first_turns(site: &Site, open: Opener<'_>, own: Vec<Arc<Conversations>>) {
    site.profile("loose", "template", "[\"reload\", \"compaction\"]");
    open().remove("c").unwrap();
    let requests: Vec<Request> = (0..RACERS).map(|index| of_racer(site, index)).collect();
    let answers = race(own, move |own, index| {
        let answer = own.turn("c", &requests[index], Caller::User).unwrap();
        (system(&answer.kept).to_owned(), answer.is_reused)
    });
    let different: BTreeSet<&str> = answers.iter().map(|(system, _)| system.as_str()).collect();
    assert_eq!(different.len(), 1, "all callers get the same bytes: {different:?}");
    assert_eq!(answers.iter().filter(|(_, is_reused)| !is_reused).count(), 1, "one has built it");
    assert_eq!(history(&open()), epochs(&["startup"]));
    let later = turn(&conversations(&open()), &of_racer(site, RACERS));
    assert_eq!((system(&later.kept), later.is_reused), (answers[0].0.as_str(), true));
}

/// Runs reloads that all start from the current epoch. After the first one the others have nothing to do.
fn reloads(site: &Site, open: Opener<'_>, own: Vec<Arc<Conversations>>) {
    let before = open().epochs("c").unwrap().len();
    // None of them asks for the current prompt.
    let requests: Vec<Request> = (0..RACERS).map(|index| of_racer(site, 100 * before + index)).collect();
    let answers = race(own, move |own, index| {
        system(own.reload("c", Some(&(&requests[index]).into()), Caller::User).unwrap().kept()).to_owned()
    });
    let different: BTreeSet<&String> = answers.iter().collect();
    assert_eq!(different.len(), 1, "all callers get the same bytes: {different:?}");
    assert_eq!(open().epochs("c").unwrap().len(), before + 1);
    assert_eq!(system(&conversations(&open()).current("c").unwrap().unwrap()), answers[0]);
}

/// Commits one compaction several times: each commit gets the epoch, or comes too late.
fn commits(open: Opener<'_>) {
    let before = open().epochs("c").unwrap().len();
    let begun = conversations(&open()).begin_compaction("c", None, Caller::User).unwrap();
    let own = (0..RACERS).map(|_| Arc::new(conversations(&open()))).collect();
    let answers = race(own, move |own, _| {
        own.commit_compaction("c", &begun.token, Caller::User).map(|kept| kept.head.number).ok()
    });
    let different: BTreeSet<u64> = answers.into_iter().flatten().collect();
    assert_eq!(different.into_iter().collect::<Vec<_>>(), [before as u64 + 1]);
    assert_eq!(open().epochs("c").unwrap().len(), before + 1);
}

fn all_races(open: Opener<'_>) {
    let site = Site::new();
    first_turns(&site, open, gated_together(open));
    first_turns(&site, open, gated(open));
    reloads(&site, open, gated_together(open));
    reloads(&site, open, gated(open));
    commits(open);
}

/// Row S1.
#[test]
fn of_many_at_once_one_wins_in_memory() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    all_races(&|| Arc::clone(&store));
}

/// Row S1.
#[test]
fn of_many_at_once_one_wins_in_sqlite() {
    let site = Site::new();
    all_races(&|| site.sqlite());
    let store = site.sqlite();
    all_races(&|| Arc::clone(&store));
}

/// Starts processes that begin the same conversation, each with a template of its own.
fn processes(site: &Site, place: &str, open: Opener<'_>) {
    let path = |index: usize| site.path(format!("answer-{index}.json"));
    let commands = (0..RACERS).map(|index| {
        let template = format!("template of {index}");
        let request = site.request(json!({"profile": "template", "template": template})).to_json().unwrap();
        let request: Value = serde_json::from_str(&request).unwrap();
        let task = json!({"task": "turn", "store": place, "request": request, "answer": path(index)});
        child::command(&[], &task)
    });
    child::run_together(commands.collect());
    let store = open();
    let current = conversations(&store).current("c").unwrap().unwrap();
    for index in 0..RACERS {
        assert_eq!(child::answer(&path(index)), json!({"system": system(&current), "epoch": 1}));
    }
    assert!(system(&current).starts_with("template of "), "{}", system(&current));
    assert_eq!(history(&store), epochs(&["startup"]));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Row S1: they also create the file and its tables.
#[test]
fn of_many_processes_one_wins_in_sqlite() {
    let site = Site::new();
    processes(&site, site.database().to_str().unwrap(), &|| site.sqlite());
}

/// Row S3: a restored backup has no log. SQLite lets one process switch its mode, and refuses others without waiting.
#[test]
fn of_many_processes_that_start_on_a_backup_none_is_refused() {
    const ROUNDS: usize = 8;
    for _ in 0..ROUNDS {
        let site = Site::new();
        drop(site.sqlite());
        let plain = rusqlite::Connection::open(site.database()).unwrap();
        let switched = plain.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0));
        assert_eq!(switched.unwrap(), "delete", "control: there is something to switch");
        drop(plain);
        processes(&site, site.database().to_str().unwrap(), &|| site.sqlite());
    }
}

/// Row S1.
#[test]
fn of_many_at_once_one_wins_in_postgresql() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("threads");
    all_races(&|| Arc::new(PostgresStore::connect(&url).unwrap()));
    let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&url).unwrap());
    all_races(&|| Arc::clone(&store));
    let url = server.database("processes");
    processes(&Site::new(), &url, &|| Arc::new(PostgresStore::connect(&url).unwrap()));
}

/// The second writer has lost, and must not get the answer that the epoch of the first has its tools.
#[test]
fn tools_that_a_reload_overtook_are_not_said_to_be_set() {
    on_each_store(|site, store| {
        site.write("work/AGENTS.md", "old\n");
        turn(&conversations(store), &site.request(json!({})));
        site.write("work/AGENTS.md", "new\n");
        let other = conversations(store);
        let own = interrupted(store, move || drop(other.reload("c", None, Caller::User).unwrap()));
        let answer = own.set_tools("c", &[tool("grep")], Caller::User);
        if let Ok(Rebuilt::Opened(kept) | Rebuilt::Unchanged(kept)) = &answer {
            assert_eq!(kept.request.tools, Some(vec![tool("grep")]), "epoch {}", kept.head.number);
        }
    });
}

#[test]
fn a_turn_whose_change_another_epoch_overtook_has_that_one() {
    on_each_store(|site, store| {
        site.write("work/AGENTS.md", "old\n");
        turn(&conversations(store), &site.request(json!({})));
        site.write("work/AGENTS.md", "new\n");
        let other = conversations(store);
        let own = interrupted(store, move || drop(other.reload("c", None, Caller::User).unwrap()));
        let changed = site.request(json!({"tools": [{"name": "grep"}]}));
        let answer = turn(&own, &changed);
        let current = conversations(store).current("c").unwrap().unwrap();
        assert_eq!(summary(&answer.kept), summary(&current), "the current epoch is delivered");
        assert_eq!(turn(&own, &changed).kept.request.tools, changed.tools, "the next turn makes the change");
        assert_eq!(history(store), epochs(&["startup", "reload", "tools"]));
    });
}

/// Row S1: another client takes the first turn between the read and the write.
#[test]
fn a_first_turn_that_another_overtook_has_the_bytes_of_that_one() {
    on_each_store(|site, store| {
        let (theirs, ours) = ("theirs", "ours");
        let request = |text: &str| site.request(json!({"profile": "template", "template": text}));
        let (other, first) = (conversations(store), request(theirs));
        let own = interrupted(store, move || drop(turn(&other, &first)));
        let answer = turn(&own, &request(ours));
        assert_eq!((summary(&answer.kept), answer.is_reused), ((1, "startup", theirs), true));
        assert_eq!(history(store), epochs(&["startup"]));
    });
}
