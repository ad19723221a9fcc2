//! Checks and prunes while others write: no text that an epoch uses is removed, and an interrupted run continues.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use proem::stored_prompt::StoredPrompt;
use proem::{Caller, Request};
use proem_core::digest::Digest;
use proem_store::MaintainStore as _;
use proem_store::{
    Commit, Current, Cursor, Epoch, EpochHead, PostgresStore, PruneReport, SqliteStore, StateRecord, Store,
    StoreError, check, export, prune,
};
use proem_testkit::PostgresServer;
use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

fn epoch(conversation: &str, text: &str) -> Epoch {
    let request = serde_json::json!({ "profile": "template", "system": text, "cwd": "/" }).to_string();
    let build = proem::build(&Request::from_json(&request).unwrap(), Caller::User).unwrap();
    Epoch {
        head: EpochHead {
            conversation: conversation.to_owned(),
            number: 1,
            reason: "startup".into(),
            digest: build.frozen().digest().hex(),
            fingerprint: build.fingerprint().whole.hex(),
            profile: "template".into(),
            engine: "0.1.0".into(),
            cwd: "/".into(),
            model: None,
            has_turn: false,
            opened_at: 1_000,
            template_version: None,
        },
        prompt: StoredPrompt::from_frozen(build.frozen()).unwrap(),
        request,
        sources: Some(serde_json::json!({ "files": [text] }).to_string()),
    }
}

/// Reads the current epoch.
fn current(store: &Arc<dyn Store>, conversation: &str) -> Option<Epoch> {
    store.current(conversation).unwrap().map(|current| current.epoch)
}

fn named(epoch: &Epoch, conversation: &str) -> Epoch {
    let mut own = epoch.clone();
    conversation.clone_into(&mut own.head.conversation);
    own
}

/// A store that can be opened several times.
struct SharedStore {
    open: Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>,
    /// Runs SQL without the store; `{blob}` and `{epoch}` stand for the names of the tables.
    tamper: Box<dyn Fn(&str)>,
}

fn sqlite() -> SharedStore {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let path = folder.path().join("proem.db");
    drop(SqliteStore::open(&path).unwrap());
    let other = path.clone();
    SharedStore {
        open: Box::new(move || {
            let _held = &folder;
            Arc::new(SqliteStore::open(&path).unwrap())
        }),
        tamper: Box::new(move |sql| {
            let sql = sql.replace(['{', '}'], "");
            rusqlite::Connection::open(&other).unwrap().execute_batch(&sql).unwrap();
        }),
    }
}

fn postgres(server: &Arc<PostgresServer>, name: &'static str) -> SharedStore {
    let (url, server) = (server.database(name), Arc::clone(server));
    drop(PostgresStore::connect(&url).unwrap());
    SharedStore {
        open: Box::new(move || Arc::new(PostgresStore::connect(&url).unwrap())),
        tamper: Box::new(move |sql| {
            let sql = sql.replace('{', "proem_").replace('}', "").replace("CAST('x' AS BLOB)", "'x'");
            server.execute(name, &sql);
        }),
    }
}

/// Runs `work` on each kind of store that can be damaged.
fn on_each(name: &'static str, work: impl Fn(&SharedStore)) {
    work(&sqlite());
    if let Some(server) = PostgresServer::start() {
        work(&postgres(&Arc::new(server), name));
    }
}

const RACES_MAX: usize = 20;
const WRITERS: usize = 4;
const OPENED: usize = 120;
const TEXTS: usize = 60;

/// Runs writers that open conversations with a few texts and remove most of them again, and prunes meanwhile. Returns the
/// number of texts that were removed.
fn race(place: &SharedStore) -> u64 {
    let texts: Vec<Epoch> = (0..TEXTS).map(|index| epoch("c", &format!("text {index}"))).collect();
    let texts = Arc::new(texts);
    let ended = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, texts, ended) = ((place.open)(), Arc::clone(&texts), Arc::clone(&ended));
            thread::spawn(move || {
                for index in 0..OPENED {
                    let own = named(&texts[(index + writer) % TEXTS], &format!("w{writer}-{index}"));
                    assert_eq!(store.open(&own).unwrap(), own);
                    assert_eq!(current(&store, &own.head.conversation), Some(own.clone()));
                    // The last ones stay, so that there is something to lose.
                    if index + 5 < OPENED {
                        store.remove(&own.head.conversation).unwrap();
                    }
                }
                ended.fetch_add(1, Ordering::SeqCst);
            })
        })
        .collect();
    let (store, mut removed) = ((place.open)(), 0);
    while ended.load(Ordering::SeqCst) < WRITERS && !writers.iter().all(thread::JoinHandle::is_finished) {
        removed += prune(&*store, &mut |_| ControlFlow::Continue(())).unwrap().texts;
    }
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new(), "no text is missing");
    removed
}

#[test]
fn a_prune_beside_writers_removes_nothing_that_an_epoch_has() {
    on_each("race", |place| {
        // On a busy machine the writers may end before a prune finds anything: then they race again.
        let removed = (0..RACES_MAX).map(|_| race(place)).find(|removed| *removed > 0).unwrap_or(0);
        eprintln!("{removed} texts were removed while others wrote");
        assert!(removed > 0, "control: some texts were removed");
    });
}

/// A prune without a list, which chooses texts and removes them a moment later.
#[test]
fn texts_that_are_chosen_first_and_removed_later_are_lost() {
    on_each("naive", |place| {
        let (store, own) = ((place.open)(), epoch("c", "text"));
        store.open(&own).unwrap();
        store.remove("c").unwrap();
        (place.tamper)(
            "CREATE TABLE chosen AS SELECT digest FROM {blob} WHERE digest NOT IN (SELECT digest FROM {epoch})",
        );
        store.open(&own).unwrap();
        (place.tamper)("DELETE FROM {blob} WHERE digest IN (SELECT digest FROM chosen)");
        assert!(!store.check().unwrap().is_empty(), "control: a lost text is found");
    });
}

/// A plain session of PostgreSQL, as a writer of any version has it.
struct Session {
    runtime: Runtime,
    client: Client,
}

impl Session {
    fn new(url: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls)).unwrap();
        runtime.spawn(connection);
        Self { runtime, client }
    }

    fn run(&self, sql: &str) -> Result<(), SqlState> {
        let done = self.runtime.block_on(self.client.batch_execute(sql));
        done.map_err(|error| error.code().unwrap().clone())
    }
}

/// Creates a database with the texts of a removed epoch, and with copies of its rows.
fn left_over(server: &PostgresServer, name: &str) -> (Arc<dyn Store>, Epoch, Session) {
    let url = server.database(name);
    let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&url).unwrap());
    let own = epoch("c", "text");
    store.open(&own).unwrap();
    let session = Session::new(&url);
    session
        .run(
            "CREATE TABLE old_epoch AS SELECT * FROM proem_epoch; CREATE TABLE old_blob AS SELECT * FROM proem_blob; \
             CREATE TABLE old_conversation AS SELECT * FROM proem_conversation",
        )
        .unwrap();
    store.remove("c").unwrap();
    (store, own, session)
}

const STORE_TEXTS: &str =
    "BEGIN; INSERT INTO proem_blob SELECT * FROM old_blob ORDER BY digest ON CONFLICT DO NOTHING";
const STORE_EPOCH: &str = "INSERT INTO proem_epoch SELECT * FROM old_epoch; \
    INSERT INTO proem_conversation SELECT * FROM old_conversation";

/// A writer finds its texts, and stores its epoch after they were removed.
#[test]
fn an_older_writer_whose_texts_were_pruned_is_refused_as_a_whole() {
    let Some(server) = PostgresServer::start() else { return };
    let (store, own, session) = left_over(&server, "refused");
    session.run(STORE_TEXTS).unwrap();
    assert!(store.prune().unwrap() > 0);
    assert_eq!(session.run(STORE_EPOCH), Err(SqlState::T_R_SERIALIZATION_FAILURE));
    session.run("ROLLBACK").unwrap();
    assert_eq!((store.check().unwrap(), current(&store, "c")), (Vec::new(), None));
    session.run(&format!("{STORE_TEXTS}; {STORE_EPOCH}; COMMIT")).unwrap();
    assert_eq!(current(&store, "c"), Some(own), "the next attempt stores them");

    let (store, _, session) = left_over(&server, "unguarded");
    session.run("ALTER TABLE proem_epoch DISABLE TRIGGER proem_epoch_uses").unwrap();
    session.run(STORE_TEXTS).unwrap();
    assert!(store.prune().unwrap() > 0);
    session.run(&format!("{STORE_EPOCH}; COMMIT")).unwrap();
    assert!(!store.check().unwrap().is_empty(), "control: without the trigger the texts are lost");
}

/// A writer stores its epoch before the list of the prune is complete, and commits later.
#[test]
fn a_prune_waits_for_writers_that_could_not_see_its_list() {
    let Some(server) = PostgresServer::start() else { return };
    let (store, own, session) = left_over(&server, "waits");
    session.run(&format!("{STORE_TEXTS}; {STORE_EPOCH}")).unwrap();
    let (parts, received) = mpsc::channel();
    let pruning = {
        let store = Arc::clone(&store);
        thread::spawn(move || {
            let done = prune(&*store, &mut |progress| {
                parts.send(progress.part).unwrap();
                ControlFlow::Continue(())
            });
            done.unwrap()
        })
    };
    // Its texts are on the list now, because its epoch is not visible yet.
    assert_eq!(received.recv().unwrap(), "doom");
    session.run("COMMIT").unwrap();
    assert_eq!(pruning.join().unwrap(), PruneReport::default(), "nothing is removed");
    assert_eq!((store.check().unwrap(), current(&store, "c")), (Vec::new(), Some(own)));
}

/// Fills a store with conversations, and with the texts of removed ones.
fn filled(store: &Arc<dyn Store>) {
    for index in 0..12 {
        store.open(&epoch(&format!("c{index}"), &format!("text {index}"))).unwrap();
        if index % 3 == 0 {
            store.remove(&format!("c{index}")).unwrap();
        }
    }
}

#[test]
fn a_prune_that_is_stopped_after_every_batch_comes_to_its_end() {
    on_each("stopped", |place| {
        let store = (place.open)();
        filled(&store);
        let mut parts = Vec::new();
        let done = loop {
            // Each run opens the store again, as a new process would.
            let done = prune(&*(place.open)(), &mut |progress| {
                parts.push(progress.part);
                ControlFlow::Break(())
            });
            match done.unwrap() {
                PruneReport { is_stopped: true, .. } => {}
                done => break done,
            }
        };
        assert_eq!(parts, ["mark", "doom", "spare", "remove"], "no part is done twice");
        // The prompt, the request and the sources of four conversations; others have the same description.
        assert_eq!(done.texts, 12);
        assert!(done.bytes > 0);
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        assert_eq!(store.prune().unwrap(), 0, "nothing is left");
        filled(&store);
        assert_eq!(store.check().unwrap(), Vec::<String>::new(), "removed texts can be stored again");
    });
}

/// A prune that was stopped before its list was complete must not be continued twice: the first run would remove texts that
/// the second has yet to spare.
#[test]
fn an_interrupted_prune_is_continued_by_one_only() {
    on_each("claimed", |place| {
        let store = (place.open)();
        filled(&store);
        for expected in ["mark", "doom"] {
            let mut parts = Vec::new();
            let stopped = prune(&*store, &mut |progress| {
                parts.push(progress.part);
                ControlFlow::Break(())
            });
            assert_eq!((stopped.unwrap().is_stopped, parts), (true, vec![expected]));
        }
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let done = prune(&*store, &mut |progress| {
            if first.is_empty() {
                let other = (place.open)();
                let done = prune(&*other, &mut |progress| {
                    second.push(progress.part);
                    ControlFlow::Continue(())
                });
                assert!(!done.unwrap().is_stopped);
            }
            first.push(progress.part);
            ControlFlow::Continue(())
        });
        assert!(!done.unwrap().is_stopped);
        assert_eq!((first[0], second[0]), ("spare", "spare"), "a complete list may be shared");
        assert_eq!(store.check().unwrap(), Vec::<String>::new());

        store.open(&epoch("d", "another text")).unwrap();
        store.remove("d").unwrap();
        prune(&*store, &mut |_| ControlFlow::Break(())).unwrap();
        (first, second) = (Vec::new(), Vec::new());
        prune(&*store, &mut |progress| {
            if first.is_empty() {
                let other = (place.open)();
                let done = prune(&*other, &mut |progress| {
                    second.push(progress.part);
                    ControlFlow::Continue(())
                });
                assert!(!done.unwrap().is_stopped);
            }
            first.push(progress.part);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!((first[0], second[0]), ("doom", "mark"), "one continues, the other begins");
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    });
}

const DAMAGES: [&str; 9] = [
    "UPDATE {blob} SET bytes = CAST('x' AS BLOB) WHERE digest = (SELECT request FROM {epoch} WHERE conversation = 'c1')",
    "DELETE FROM {blob} WHERE digest = (SELECT digest FROM {epoch} WHERE conversation = 'c2')",
    "UPDATE {epoch} SET digest = fingerprint WHERE conversation = 'c4'",
    "UPDATE {epoch} SET texts = '{}' WHERE conversation = 'c5'",
    "UPDATE {epoch} SET texts = '[' WHERE conversation = 'c7'",
    "DELETE FROM {epoch} WHERE conversation = 'c8'",
    "DELETE FROM {conversation} WHERE id = 'c10'",
    "DELETE FROM {blob} WHERE \
     (SELECT texts FROM {epoch} WHERE conversation = 'c11') LIKE '%\"sources\":\"' || digest || '\"%'",
    "UPDATE {state} SET text = '{}' WHERE conversation = 'stated'",
];

/// Begins a conversation with a state.
fn begin_stated(store: &Arc<dyn Store>) -> Current {
    let (own, state) = (epoch("stated", "text"), StateRecord { version: 7, text: "{\"a\":1}".into() });
    let change = Commit { conversation: "stated", based_on: 0, state: &state, epoch: Some(&own) };
    assert!(store.commit(&change).unwrap());
    Current { epoch: own, state: Some(state) }
}

#[test]
fn a_check_that_is_stopped_after_every_batch_finds_every_damage() {
    on_each("damaged", |place| {
        let store = (place.open)();
        filled(&store);
        begin_stated(&store);
        assert_eq!(store.check().unwrap(), Vec::<String>::new(), "control");
        for damage in DAMAGES {
            (place.tamper)(damage);
        }
        let whole = (place.open)().check().unwrap();
        for name in ["c1", "c2", "c4", "c5", "c7", "c8", "c10", "c11", "stated"] {
            let found = whole.iter().filter(|line| line.contains(&format!("`{name}`"))).count();
            assert_eq!(found, 1, "{name}: {whole:#?}");
        }
        let (mut found, mut cursor, mut stops) = (Vec::new(), None::<String>, 0);
        loop {
            let after = cursor.as_deref().map(|text| Cursor::parse(text).unwrap());
            let stopped = check(&*(place.open)(), after.as_ref(), &mut |progress| {
                found.extend_from_slice(progress.found);
                ControlFlow::Break(())
            });
            let Some(next) = stopped.unwrap() else { break };
            cursor = Some(next.to_string());
            stops += 1;
        }
        assert!(stops >= 5, "{stops}");
        assert_eq!(found, whole);
        let different: BTreeSet<&String> = found.iter().collect();
        assert_eq!(different.len(), found.len(), "nothing is reported twice");
    });
}

/// A damaged state is an error wherever it would be read, and nothing replaces it.
#[test]
fn a_state_that_is_not_what_was_written_is_found_and_left_alone() {
    let damages = ["version = 8", "text = '{}'", "seal = '00'", "version = -1"];
    on_each("states", |place| {
        for damage in damages {
            let store = (place.open)();
            let before = begin_stated(&store);
            store.open(&epoch("other", "text")).unwrap();
            assert_eq!(store.current("stated").unwrap(), Some(before.clone()), "control");
            (place.tamper)(&format!("UPDATE {{state}} SET {damage}"));
            let error = store.current("stated").unwrap_err();
            let expected = "the state of `stated` is damaged: its row does not match its seal";
            assert_eq!(error.to_string(), expected, "{damage}");
            assert!(matches!(error, StoreError::Damaged { .. }));
            let next = StateRecord { version: 100, text: "{}".into() };
            for based_on in [0, 7, 8] {
                let change = Commit { conversation: "stated", based_on, state: &next, epoch: None };
                assert_eq!(store.commit(&change), Err(error.clone()), "{damage}");
            }
            assert_eq!((place.open)().check().unwrap(), [expected], "{damage}");
            assert!(export(&*store, &mut Vec::new()).is_err(), "{damage}: an export would lose it");
            assert_eq!(current(&store, "other"), Some(epoch("other", "text")), "other conversations work");
            assert_eq!(store.epoch("stated", 1).unwrap(), Some(before.epoch), "its epochs can be read");
            assert!(store.remove("stated").unwrap(), "it can be removed");
            assert_eq!(store.check().unwrap(), Vec::<String>::new());
        }
    });
}

/// Texts are cached when they are read often; sources are long, and seldom needed.
#[test]
fn sources_are_not_cached() {
    let Some(server) = PostgresServer::start() else { return };
    let place = postgres(&Arc::new(server), "sources");
    let (store, own) = ((place.open)(), epoch("c", "text"));
    store.open(&own).unwrap();
    for _ in 0..3 {
        assert_eq!(current(&store, "c"), Some(own.clone()));
    }
    let lose = |text: &str| {
        let digest = Digest::new(text.as_bytes()).hex();
        (place.tamper)(&format!("UPDATE {{blob}} SET bytes = CAST('x' AS BLOB) WHERE digest = '{digest}'"));
        format!("the text {digest} is damaged: its bytes do not match its digest")
    };
    lose("text");
    assert_eq!(current(&store, "c"), Some(own.clone()), "control: the prompt is cached");
    let expected = lose(own.sources.as_deref().unwrap());
    assert_eq!(store.current("c").unwrap_err().to_string(), expected);
}

#[test]
fn only_places_of_a_check_are_taken_for_one() {
    let digest = "0".repeat(64);
    for good in [
        "file/",
        "texts/",
        &format!("texts/{digest}"),
        "epochs/c.1:x/2",
        "conversations/c",
        "states/c",
        "templates/3",
    ] {
        assert_eq!(Cursor::parse(good).unwrap().to_string(), good);
    }
    for bad in [
        "",
        "prune",
        "text/",
        "texts/x",
        "epochs/c",
        "epochs/c/x",
        "conversations/a b",
        "states/a b",
        "templates/x",
    ] {
        assert_eq!(Cursor::parse(bad), None, "{bad}");
    }
}
