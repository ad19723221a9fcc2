//! Stores that the first release filled: a newer proem migrates them, and refuses the writes of an older one.

use std::fs;
use std::sync::Arc;

use proem::Caller;
use proem::request::RequestUpdate;
use proem_core::carrier::Carrier;
use proem_store::MaintainStore as _;
use proem_store::{Commit, Current, Epoch, EpochHead, MemoryStore, PostgresStore, StateRecord, Store};
use proem_store::{export, import};
use proem_testkit::PostgresServer;
use rusqlite::Connection;
use serde_json::json;
use tokio::runtime::Builder;
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use crate::child;
use crate::site::{Site, conversations, system, turn};

/// Two conversations: `c` has two epochs and a call, `d` has one and a compaction in progress.
const SQLITE: &str = include_str!("../first_release/sqlite.sql");
const POSTGRES: &str = include_str!("../first_release/postgresql.sql");

/// The processes that migrate at once.
const RACERS: usize = 4;

/// Creates the file of the first release.
fn laid() -> Site {
    let site = Site::new();
    fs::create_dir(site.path("data")).unwrap();
    Connection::open(site.database()).unwrap().execute_batch(SQLITE).unwrap();
    site
}

/// Creates a database of the first release; returns its URL.
fn filled(server: &PostgresServer, name: &str) -> String {
    let url = server.database(name);
    server.execute(name, POSTGRES);
    url
}

/// Returns the token of the compaction of `d` in a dump.
fn token(dump: &str) -> &str {
    let row = dump.lines().find(|line| line.contains("compaction VALUES") && line.contains("'d'")).unwrap();
    row.split('\'').nth(1).unwrap()
}

fn text(epoch: &Epoch) -> &str {
    &epoch.prompt.texts[&Carrier::System]
}

/// Checks that nothing is lost, and that the conversations go on.
fn goes_on(site: &Site, store: &Arc<dyn Store>, token: &str) {
    assert_eq!(store.check().unwrap(), Vec::<String>::new(), "its seals are still valid");
    let Current { epoch, state } = store.current("c").unwrap().unwrap();
    assert_eq!((epoch.head.number, text(&epoch), &epoch.sources), (2, "You answer at length.", &None));
    assert_eq!((state, store.current_head("c").unwrap().unwrap().state_version), (None, 0));
    assert_eq!(text(&store.epoch("c", 1).unwrap().unwrap()), "You answer briefly.");
    assert_eq!((store.calls("c").unwrap().len(), store.template().unwrap().unwrap().version), (1, 2));
    let begun = store.compaction(token).unwrap().unwrap();
    assert_eq!((begun.conversation.as_str(), begun.from), ("d", 1));
    assert_eq!(text(&begun.rebuilt.unwrap()), "You answer in verse.");
    let answer = conversations(store).turn("c", RequestUpdate::default(), Caller::User).unwrap();
    assert_eq!((answer.is_reused, system(&answer.frozen)), (true, "You answer at length."));

    let before = exported(store);
    assert!(!before.contains("\"kind\":\"state\""), "{before}");
    let (one, two) =
        (StateRecord { version: 1, text: "{}".into() }, StateRecord { version: 2, text: "2".into() });
    let change =
        |based_on, state, epoch| store.commit(&Commit { conversation: "c", based_on, state, epoch }).unwrap();
    assert!(change(0, &one, None), "it gets a state");
    let head = EpochHead { number: 3, ..epoch.head.clone() };
    let next = Epoch { head, sources: sources(site), ..epoch };
    assert!(change(1, &two, Some(&next)), "and an epoch with sources");
    let expected = Some(Current { epoch: next, state: Some(two) });
    assert_eq!(store.current("c").unwrap(), expected);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let copy: Arc<dyn Store> = Arc::new(MemoryStore::new());
    for text in [before, exported(store)] {
        import(&*copy, &mut text.as_bytes()).unwrap();
    }
    assert_eq!(copy.current("c").unwrap(), expected, "exports of both moments can be imported");

    // A turn that gives something makes a state of the stored request.
    let own = conversations(store);
    let first = own.turn("d", RequestUpdate::default(), Caller::User).unwrap();
    assert_eq!(store.current_head("d").unwrap().unwrap().state_version, 0, "nothing changed");
    let given = site.request(json!({"profile": null, "cwd": null, "append": "More."}));
    let later = own.turn("d", &given, Caller::User).unwrap();
    assert_eq!((later.is_reused, later.expected_miss.as_deref()), (true, None));
    assert_eq!(later.frozen, first.frozen);
    assert!(store.current_head("d").unwrap().unwrap().state_version > 0);
    let pending = conversations(store).pending("d").unwrap();
    assert!(pending.iter().any(|pending| pending.field == "append"), "{pending:?}");
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Returns the sources of some epoch.
fn sources(site: &Site) -> Option<String> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    turn(&conversations(&store), &site.request(json!({"profile": "template"})));
    store.current("c").unwrap().and_then(|current| current.epoch.sources)
}

fn exported(store: &Arc<dyn Store>) -> String {
    let mut out = Vec::new();
    export(&**store, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_file_of_the_first_release_goes_on() {
    let site = laid();
    goes_on(&site, &site.sqlite(), token(SQLITE));
    let plain = Connection::open(site.database()).unwrap();
    let version = plain.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    assert_eq!(version, Ok(8));
}

#[test]
fn a_database_of_the_first_release_goes_on() {
    let Some(server) = PostgresServer::start() else { return };
    let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&filled(&server, "first")).unwrap());
    goes_on(&Site::new(), &store, token(POSTGRES));
}

/// Starts processes that open the same old store, and take a turn.
fn migrate_together(site: &Site, place: &str) {
    let path = |index: usize| site.path(format!("answer-{index}.json"));
    let commands = (0..RACERS).map(|index| {
        let task = json!({"task": "turn", "store": place, "request": {}, "answer": path(index)});
        child::command(&[], &task)
    });
    child::run_together(commands.collect());
    for index in 0..RACERS {
        assert_eq!(child::answer(&path(index)), json!({"system": "You answer at length.", "epoch": 2}));
    }
}

#[test]
fn of_many_processes_that_migrate_a_file_none_is_refused() {
    for _ in 0..4 {
        let site = laid();
        migrate_together(&site, site.database().to_str().unwrap());
        goes_on(&site, &site.sqlite(), token(SQLITE));
    }
}

#[test]
fn of_many_processes_that_migrate_a_database_none_is_refused() {
    let Some(server) = PostgresServer::start() else { return };
    for index in 0..4 {
        let (site, url) = (Site::new(), filled(&server, &format!("together{index}")));
        migrate_together(&site, &url);
        goes_on(&site, &(Arc::new(PostgresStore::connect(&url).unwrap()) as Arc<dyn Store>), token(POSTGRES));
    }
}

/// The columns that the first release writes.
const COLUMNS: &str = "conversation, number, reason, digest, fingerprint, profile, engine, cwd, model, has_turn, \
    opened_at, texts, description, request, seal";

/// A server of the first release that is still running would change a conversation without its state.
#[test]
fn an_older_writer_is_refused_by_a_migrated_database() {
    let Some(server) = PostgresServer::start() else { return };
    let url = filled(&server, "older");
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (client, connection) = runtime.block_on(tokio_postgres::connect(&url, NoTls)).unwrap();
    runtime.spawn(connection);
    let insert = |conversation: &str, number: u64| {
        let values = COLUMNS.replacen("conversation", &format!("'{conversation}'"), 1).replacen(
            "number",
            &number.to_string(),
            1,
        );
        let sql = format!(
            "INSERT INTO proem_epoch ({COLUMNS}) SELECT {values} FROM proem_epoch \
             WHERE conversation = 'd' ON CONFLICT DO NOTHING"
        );
        runtime.block_on(client.execute(&sql, &[]))
    };
    assert_eq!(insert("d", 2).unwrap(), 1, "control: the tables of the first release take it");
    runtime
        .block_on(client.execute("DELETE FROM proem_epoch WHERE number = 2 AND conversation = 'd'", &[]))
        .unwrap();
    let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&url).unwrap());
    // The next epoch, the first one of another conversation, and one that exists.
    for (conversation, number) in [("d", 2), ("e", 1), ("d", 1)] {
        let error = insert(conversation, number).unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::CHECK_VIOLATION));
        let said = error.as_db_error().unwrap().message();
        let expected =
            "its tables have version 8, and this proem supports versions up to 4: use a newer proem";
        assert_eq!(said, expected);
    }
    assert_eq!((store.epochs("d").unwrap().len(), store.current("e").unwrap()), (1, None));
    // It may remove a conversation, and what it does not know goes, too.
    let state = StateRecord { version: 1, text: "{}".into() };
    let change = Commit { conversation: "d", based_on: 0, state: &state, epoch: None };
    assert!(store.commit(&change).unwrap());
    for sql in
        ["DELETE FROM proem_conversation WHERE id = 'd'", "DELETE FROM proem_epoch WHERE conversation = 'd'"]
    {
        runtime.block_on(client.execute(sql, &[])).unwrap();
    }
    let left = runtime.block_on(client.query("SELECT 1 FROM proem_state", &[])).unwrap();
    assert_eq!(left.len(), 0);
}
