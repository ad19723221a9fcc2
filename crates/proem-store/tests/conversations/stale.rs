//! Epochs in memory while another process writes: a turn never returns outdated bytes.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proem::request::RequestUpdate;
use proem::{Caller, Request};
use proem_store::{Conversations, PostgresStore, SqliteStore, Store};
use proem_testkit::PostgresServer;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::child;
use crate::site::{Site, conversations, system, turn};

/// Creates a site with a conversation `c` whose prompt is the text of a file.
fn laid() -> Site {
    let site = Site::new();
    site.profile("loose", "template", "[\"reload\", \"compaction\"]");
    site.write("work/AGENTS.md", "first");
    site
}

fn request(site: &Site) -> Request {
    site.request(json!({"profile": "loose", "template": "<[file:AGENTS.md]>"}))
}

/// Runs a task in another process, which opens the store, writes, and closes it.
fn elsewhere(site: &Site, store: &str, task: &str) -> Value {
    let answer = site.path("answer.json");
    let request: Value = serde_json::from_str(&request(site).to_json().unwrap()).unwrap();
    let task = json!({"task": task, "store": store, "request": request, "answer": answer});
    child::run_together(vec![child::command(&[], &task)]);
    child::answer(&answer)
}

/// Returns the epoch of a turn, and compares it with the immediate answer, if there is one.
fn seen(own: &Conversations, site: &Site) -> (u64, String) {
    let at_once = own.turn_at_once("c", &request(site).into()).unwrap();
    let answer = turn(own, &request(site));
    let found = (answer.epoch, system(&answer.frozen).to_owned());
    if let Some(at_once) = at_once {
        assert_eq!((at_once.epoch, system(&at_once.frozen).to_owned()), found);
    }
    found
}

/// Checks that the next turn sees every change by another process.
fn follows_others(site: &Site, store: &Arc<dyn Store>, place: &str) {
    let own = conversations(store);
    assert_eq!(seen(&own, site), (1, "<first>".into()));
    assert_eq!(seen(&own, site), (1, "<first>".into()));
    site.write("work/AGENTS.md", "second");
    assert_eq!(seen(&own, site), (1, "<first>".into()), "a file changes nothing");
    assert_eq!(elsewhere(site, place, "reload"), json!({"epoch": 2}));
    assert_eq!(seen(&own, site), (2, "<second>".into()));
    assert_eq!(seen(&own, site), (2, "<second>".into()));
    assert_eq!(elsewhere(site, place, "template"), json!({}));
    assert_eq!(seen(&own, site), (2, "<second>".into()), "a template changes nothing");
    assert_eq!(elsewhere(site, place, "compact"), json!({"epoch": 3}));
    assert_eq!(seen(&own, site), (3, "<second>".into()));
    assert_eq!(elsewhere(site, place, "remove"), json!({}));
    assert!(
        own.current("c").unwrap().is_none()
            && own.turn_at_once("c", &request(site).into()).unwrap().is_none()
    );
    site.write("work/AGENTS.md", "third");
    // Another process begins the conversation again, with the numbers of the removed epochs.
    assert_eq!(elsewhere(site, place, "turn"), json!({"system": "<third>", "epoch": 1}));
    assert_eq!(seen(&own, site), (1, "<third>".into()));
}

#[test]
fn a_turn_sees_what_another_process_wrote_to_the_file() {
    let site = laid();
    let store = site.sqlite();
    assert!(store.generation().unwrap().is_some());
    follows_others(&site, &store, site.database().to_str().unwrap());
}

#[test]
fn a_turn_sees_what_another_process_wrote_to_the_database() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("stale");
    let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&url).unwrap());
    follows_others(&laid(), &store, &url);
}

/// The log's index is beside the file itself.
#[test]
fn a_store_that_is_reached_by_a_link_sees_it_too() {
    let site = laid();
    drop(site.sqlite());
    fs::create_dir(site.path("links")).unwrap();
    symlink(site.database(), site.path("links/proem.db")).unwrap();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&site.path("links/proem.db")).unwrap());
    follows_others(&site, &store, site.database().to_str().unwrap());
}

/// SQLite removes the log's index with the last connection. Here only the store's own is left: those of the other threads
/// ended with them.
#[test]
fn another_process_does_not_take_the_logs_index_away() {
    let site = laid();
    let place = site.database();
    let opened = thread::spawn(move || SqliteStore::open(&place).unwrap()).join().unwrap();
    let store: Arc<dyn Store> = Arc::new(opened);
    let own = Arc::new(conversations(&store));
    for round in 1..4 {
        site.write("work/AGENTS.md", &round.to_string());
        let task = if round == 1 { "turn" } else { "reload" };
        elsewhere(&site, site.database().to_str().unwrap(), task);
        let (own, expected) = (Arc::clone(&own), format!("<{round}>"));
        let asked = thread::spawn(move || system(&own.current("c").unwrap().unwrap().frozen).to_owned());
        assert_eq!(asked.join().unwrap(), expected);
    }
}

/// A log that was written into the file and started again is a different one.
#[test]
fn emptying_the_log_hides_nothing() {
    let site = laid();
    let store = site.sqlite();
    let own = conversations(&store);
    turn(&own, &request(&site));
    for round in 0..5 {
        assert_eq!(seen(&own, &site).0, 1);
        let other = Connection::open(site.database()).unwrap();
        let emptied = other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        assert_eq!(emptied, Ok(0));
        assert_eq!(seen(&own, &site).0, 1);
        let cwd = format!("/{round}");
        other.execute("UPDATE epoch SET cwd = ?1, seal = NULL", [&cwd]).unwrap();
        assert_eq!(own.current("c").unwrap().unwrap().head.cwd, cwd);
    }
}

/// Closing a file releases all locks of the process on it. Opening and closing stores must not: another process would
/// write into the middle of a transaction.
#[test]
fn a_store_that_is_closed_leaves_the_locks_of_others() {
    let site = laid();
    drop(site.sqlite());
    let place = site.database();
    let writer = Connection::open(&place).unwrap();
    // Opening writes, so it comes before the lock.
    let (first, second) = (site.sqlite(), site.sqlite());
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    for store in [first, second] {
        assert!(store.generation().unwrap().is_some());
        thread::spawn(move || drop(store)).join().unwrap();
        assert_eq!(elsewhere(&site, place.to_str().unwrap(), "lock"), json!({"is_locked": true}));
    }
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(elsewhere(&site, place.to_str().unwrap(), "lock"), json!({"is_locked": false}), "control");
}

/// Readers and a writer with separate stores: a read after an acknowledged write returns it.
#[test]
fn what_was_acknowledged_is_never_missed_under_load() {
    let site = laid();
    let store = site.sqlite();
    let own = conversations(&store);
    let writer = conversations(&site.sqlite());
    turn(&own, &request(&site));
    let is_over = AtomicBool::new(false);
    let (own, is_over) = (&own, &is_over);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(move || {
                let mut last = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let number = own.current("c").unwrap().unwrap().head.number;
                    assert!(number >= last, "epoch {number} was read after {last}");
                    last = number;
                }
            });
        }
        for round in 2..60 {
            site.write("work/AGENTS.md", &format!("round {round}"));
            let written = writer.reload("c", RequestUpdate::default(), Caller::User).unwrap();
            assert_eq!(written.epoch.head.number, round);
            let found = own.current("c").unwrap().unwrap();
            assert_eq!(
                (found.head.number, system(&found.frozen)),
                (round, format!("<round {round}>").as_str())
            );
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
