//! Concurrent threads and processes: they open one epoch, and all get its bytes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use proem::hooks::{HookError, ResourcePaths, ResourcesDiscover};
use proem::request::RequestUpdate;
use proem::{Caller, Engine, Hook, Request};
use proem_store::MaintainStore as _;
use proem_store::{Conversations, MemoryStore, PostgresStore, Store};
use proem_testkit::PostgresServer;
use serde_json::{Value, json};

use crate::child;
use crate::site::{
    Counter, PATIENT, Site, conversations, epochs, history, interrupted, on_each_store, summary, system,
    tool, turn, turn_summary, waiting,
};

const RACERS: usize = 8;

/// A hook in which the first builds of all racers wait for each other: all have looked before any stores an epoch.
struct Gate {
    barrier: Arc<Barrier>,
    is_passed: AtomicBool,
}

impl Hook for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn time_max(&self) -> Duration {
        PATIENT
    }

    fn resources_discover(&self, _: &ResourcesDiscover) -> Result<Option<ResourcePaths>, HookError> {
        // Racers that lost build again, and do not wait.
        if !self.is_passed.swap(true, Ordering::SeqCst) {
            self.barrier.wait();
        }
        Ok(None)
    }
}

/// Opens the same store each time it is called.
type Opener<'o> = &'o dyn Fn() -> Arc<dyn Store>;

/// Runs the same work in many threads at once, each with its own or a shared `Conversations`.
fn race<T: Send + 'static>(
    own: Vec<Arc<Conversations>>,
    work: impl Fn(&Conversations, usize) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let (work, start) = (Arc::new(work), Arc::new(Barrier::new(own.len())));
    let threads: Vec<_> = own
        .into_iter()
        .enumerate()
        .map(|(index, own)| {
            let (work, start) = (Arc::clone(&work), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                work(&own, index)
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Creates racers as separate processes have them: all build at once.
fn gated(open: Opener<'_>) -> Vec<Arc<Conversations>> {
    let barrier = Arc::new(Barrier::new(RACERS));
    let own = |_| {
        let gate = Gate { barrier: Arc::clone(&barrier), is_passed: AtomicBool::new(false) };
        Arc::new(Conversations::new(open(), Engine::new().with_hook(gate)))
    };
    (0..RACERS).map(own).collect()
}

/// Creates racers as the threads of one process have them, and a counter of their builds.
fn together(open: Opener<'_>) -> (Vec<Arc<Conversations>>, Counter) {
    let counter = Counter::default();
    let shared = Arc::new(Conversations::new(open(), Engine::new().with_hook(counter.clone())));
    ((0..RACERS).map(|_| Arc::clone(&shared)).collect(), counter)
}

/// Returns a request whose template names the racer.
fn of_racer(site: &Site, index: usize) -> Request {
    site.request(json!({"profile": "loose", "template": format!("template of {index} [file:AGENTS.md]")}))
}

fn first_turns(site: &Site, open: Opener<'_>, own: Vec<Arc<Conversations>>) {
    site.profile("loose", "template", "[\"reload\", \"compaction\"]");
    site.write("work/AGENTS.md", "first");
    open().remove("c").unwrap();
    let requests: Vec<Request> = (0..RACERS).map(|index| of_racer(site, index)).collect();
    let answers = race(own, move |own, index| {
        let answer = own.turn("c", &requests[index], Caller::User).unwrap();
        (system(&answer.frozen).to_owned(), answer.is_reused)
    });
    let different: BTreeSet<&str> = answers.iter().map(|(system, _)| system.as_str()).collect();
    assert_eq!(different.len(), 1, "all callers get the same bytes: {different:?}");
    assert_eq!(answers.iter().filter(|(_, is_reused)| !is_reused).count(), 1, "one has built it");
    assert_eq!(history(&open()), epochs(&["startup"]));
    let later = turn(&conversations(&open()), &of_racer(site, RACERS));
    assert_eq!((system(&later.frozen), later.is_reused), (answers[0].0.as_str(), true));
}

/// Runs reloads that all start from the current epoch. After the first one the others have nothing to do.
fn reloads(site: &Site, open: Opener<'_>, own: Vec<Arc<Conversations>>) {
    let before = open().epochs("c").unwrap().len();
    site.write("work/AGENTS.md", &format!("file {before}"));
    let answers = race(own, move |own, _| {
        let changed = own.reload("c", RequestUpdate::default(), Caller::User).unwrap();
        (system(&changed.epoch.frozen).to_owned(), changed.is_opened)
    });
    let different: BTreeSet<&str> = answers.iter().map(|(system, _)| system.as_str()).collect();
    let expected = format!("template of {RACERS} file {before}");
    assert_eq!(different.into_iter().collect::<Vec<_>>(), [expected.as_str()], "all get the same bytes");
    assert_eq!(answers.iter().filter(|(_, is_opened)| *is_opened).count(), 1, "one has opened the epoch");
    assert_eq!(open().epochs("c").unwrap().len(), before + 1);
    assert_eq!(system(&conversations(&open()).current("c").unwrap().unwrap().frozen), expected);
}

/// Runs reloads that each bring a template: each opens an epoch with its own, one after the other.
fn changes(site: &Site, open: Opener<'_>, own: Vec<Arc<Conversations>>) {
    let before = open().epochs("c").unwrap().len();
    let templates: Vec<String> = (0..RACERS).map(|index| format!("change {index} of {before}")).collect();
    let request = |template: &String| site.request(json!({"profile": "loose", "template": template}));
    let requests: Vec<Request> = templates.iter().map(request).collect();
    let mut answers = race(own, move |own, index| {
        let changed = own.reload("c", &requests[index], Caller::User).unwrap();
        assert!(changed.is_opened);
        (changed.epoch.head.number, system(&changed.epoch.frozen).to_owned(), index)
    });
    answers.sort_unstable();
    for (number, (opened, system, index)) in (before as u64 + 1..).zip(&answers) {
        assert_eq!((*opened, system), (number, &templates[*index]));
    }
    assert_eq!(open().epochs("c").unwrap().len(), before + RACERS);
    let current = conversations(&open()).current("c").unwrap().unwrap();
    assert_eq!(answers.last().map(|(_, last, _)| last.as_str()), Some(system(&current.frozen)));
    // The template that the other races expect.
    conversations(&open()).reload("c", of_racer(site, RACERS), Caller::User).unwrap();
}

/// Runs turns that each give another field: the conversation remembers all of them.
fn fields(open: Opener<'_>) {
    let given: [Value; RACERS] = [
        json!({"append": "a"}),
        json!({"language": "Latin"}),
        json!({"model": "m"}),
        json!({"workspace_id": "w"}),
        json!({"backend": "b"}),
        json!({"mcp_servers": ["s"]}),
        json!({"variables": {"git:branch": "v"}}),
        json!({"project": false}),
    ];
    let all: serde_json::Map<String, Value> =
        given.iter().flat_map(|fields| fields.as_object().unwrap().clone()).collect();
    let updates = given.map(|fields| RequestUpdate::from_json(&fields.to_string()).unwrap());
    let own = (0..RACERS).map(|_| Arc::new(conversations(&open()))).collect();
    race(own, move |own, index| drop(own.turn("c", &updates[index], Caller::User).unwrap()));
    let changed = conversations(&open()).reload("c", RequestUpdate::default(), Caller::User).unwrap();
    let known: Value = serde_json::from_str(&changed.epoch.request.to_json().unwrap()).unwrap();
    for (field, value) in all {
        assert_eq!(known[&field], value, "{field}");
    }
}

/// Commits one compaction several times: each commit gets the epoch, or comes too late.
fn commits(open: Opener<'_>) {
    let before = open().epochs("c").unwrap().len();
    let begun = conversations(&open()).begin_compaction("c", RequestUpdate::default(), Caller::User).unwrap();
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
    let (own, builds) = together(open);
    first_turns(&site, open, own);
    assert_eq!(builds.count(), 1, "the threads of one process build once");
    first_turns(&site, open, gated(open));
    reloads(&site, open, together(open).0);
    reloads(&site, open, gated(open));
    changes(&site, open, together(open).0);
    changes(&site, open, gated(open));
    commits(open);
    fields(open);
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
        assert_eq!(child::answer(&path(index)), json!({"system": system(&current.frozen), "epoch": 1}));
    }
    assert!(system(&current.frozen).starts_with("template of "), "{}", system(&current.frozen));
    assert_eq!(history(&store), epochs(&["startup"]));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Row S1: they also create the file and its tables.
#[test]
fn of_many_processes_one_wins_in_sqlite() {
    let site = Site::new();
    processes(&site, site.database().to_str().unwrap(), &|| site.sqlite());
}

/// Starts processes that count in one state: each version has one winner, and no change is lost.
fn counters(site: &Site, place: &str, open: Opener<'_>) {
    let path = |index: usize| site.path(format!("answer-{index}.json"));
    let request = site.request(json!({"profile": "template", "template": "text"})).to_json().unwrap();
    let request: Value = serde_json::from_str(&request).unwrap();
    let commands = (0..RACERS).map(|index| {
        let task = json!({"task": "count", "store": place, "request": request, "answer": path(index)});
        child::command(&[], &task)
    });
    child::run_together(commands.collect());
    let versions = |index| child::answer(&path(index))["won"].as_array().unwrap().clone();
    let mut won: Vec<u64> = (0..RACERS).flat_map(versions).map(|version| version.as_u64().unwrap()).collect();
    won.sort_unstable();
    let all = RACERS as u64 * child::COUNTED;
    assert_eq!(won, (1..=all).collect::<Vec<_>>(), "each version has one winner");
    let store = open();
    let state = store.current("c").unwrap().unwrap().state.unwrap();
    assert_eq!((state.version, state.text), (all, all.to_string()), "no change is lost");
    let numbers: Vec<u64> = store.epochs("c").unwrap().iter().map(|head| head.number).collect();
    assert_eq!(numbers, (1..=1 + all / 3).collect::<Vec<_>>(), "the first, and one for every third change");
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn of_many_processes_that_change_a_state_in_sqlite_none_loses() {
    let site = Site::new();
    counters(&site, site.database().to_str().unwrap(), &|| site.sqlite());
}

#[test]
fn of_many_processes_that_change_a_state_in_postgresql_none_loses() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("counters");
    counters(&Site::new(), &url, &|| Arc::new(PostgresStore::connect(&url).unwrap()));
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

/// Begins `c` with another directory that waits, so that the next epoch reads files, which runs hooks. Returns
/// conversations in which a reload by another client comes between the read and the write of that epoch.
fn overtaken(site: &Site, store: &Arc<dyn Store>) -> Conversations {
    site.profile("loose", "default", "[\"tools\", \"reload\"]");
    turn(&conversations(store), &site.request(json!({"profile": "loose"})));
    let moved =
        turn(&conversations(store), &site.request(json!({"profile": "loose", "cwd": site.path("other")})));
    assert_eq!(waiting(&moved.pending), ["cwd"]);
    let other = conversations(store);
    interrupted(store, move || {
        let changed = other.reload("c", RequestUpdate::default(), Caller::User).unwrap();
        assert!(changed.is_opened);
    })
}

/// The second writer has lost, and makes its change after the first.
#[test]
fn tools_that_a_reload_overtook_are_set_after_it() {
    on_each_store(|site, store| {
        let own = overtaken(site, store);
        let changed = own.set_tool_registry("c", &[tool("grep")], Caller::User).unwrap();
        assert!(changed.is_opened);
        assert_eq!(changed.epoch.request.tools, Some(vec![tool("grep")]));
        assert!(system(&changed.epoch.frozen).contains("/other\n"), "{}", system(&changed.epoch.frozen));
        assert_eq!(history(store), epochs(&["startup", "reload", "tools"]));
    });
}

#[test]
fn a_turn_whose_change_another_epoch_overtook_makes_it_after_that_one() {
    on_each_store(|site, store| {
        let own = overtaken(site, store);
        let changed = site.request(json!({"profile": null, "cwd": null, "tools": [{"name": "grep"}]}));
        let answer = turn(&own, &changed);
        let current = conversations(store).current("c").unwrap().unwrap();
        assert_eq!(turn_summary(&answer), summary(&current), "the current epoch is delivered");
        assert_eq!((answer.is_reused, answer.expected_miss.as_deref()), (false, Some("tools")));
        assert_eq!(current.request.tools, changed.tools);
        assert_eq!(history(store), epochs(&["startup", "reload", "tools"]));
        assert!(turn(&own, &changed).is_reused);
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
        assert_eq!((turn_summary(&answer), answer.is_reused), ((1, "startup", theirs), true));
        assert_eq!(waiting(&answer.pending), ["template"], "its own waits");
        assert_eq!(history(store), epochs(&["startup"]));
    });
}
