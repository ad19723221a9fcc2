//! The file of a store: its permissions, and its removal, replacement and damage.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use proem::Caller;
use proem_store::MaintainStore as _;
use proem_store::{ConversationError, Current, SqliteStore, Store, StoreError};
use rusqlite::Connection;
use serde_json::json;

use crate::site::{Site, conversations, epochs, history, shown, summary, system, turn};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Creates a site whose store has the conversation `c`.
fn laid() -> (Site, Arc<dyn Store>) {
    let site = Site::new();
    let store = site.sqlite();
    turn(&conversations(&store), &site.request(json!({"profile": "template", "template": "kept"})));
    (site, store)
}

/// Formats an error of a store as people see it.
fn said(site: &Site, error: StoreError) -> String {
    shown(site, &ConversationError::Store(error))
}

/// Returns the error of opening the store of a site.
fn refusal(site: &Site) -> String {
    said(site, SqliteStore::open(&site.database()).unwrap_err())
}

/// Row H20.
#[test]
fn only_the_user_may_read_what_is_kept() {
    let site = Site::new();
    let place = site.path("new/folder/proem.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&place).unwrap());
    turn(&conversations(&store), &site.request(json!({})));
    let names = fs::read_dir(place.parent().unwrap()).unwrap();
    let mut files: Vec<(String, u32)> = names
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), mode(&entry.path())))
        .collect();
    files.sort();
    let expected = ["proem.db", "proem.db-shm", "proem.db-wal"].map(|name| (name.to_owned(), 0o600));
    assert_eq!(files, expected);
    assert_eq!((mode(&site.path("new")), mode(&site.path("new/folder"))), (0o700, 0o700));
    site.write("new/plain", "");
    assert_ne!(
        mode(&site.path("new/plain")),
        0o600,
        "control: others may read a file that is created in the usual way"
    );
}

#[test]
fn what_is_kept_is_there_when_it_is_opened_again() {
    let (site, store) = laid();
    let before = store.current("c").unwrap();
    drop(store);
    assert_eq!(site.sqlite().current("c").unwrap(), before);
}

const GONE: &str = "cannot use the store {root}/data/proem.db: its file was removed or replaced\n\
                    hint: stop every proem that uses it, restore the file or a backup, and start again";

/// Takes a turn of a known conversation and of a new one.
fn asked(site: &Site, store: &Arc<dyn Store>) -> [String; 2] {
    let request = site.request(json!({"profile": "template", "template": "new"}));
    ["c", "new"].map(|id| match conversations(store).turn(id, &request, Caller::User) {
        Ok(answer) => format!("answered: {}", system(&answer.frozen)),
        Err(error) => shown(site, &error),
    })
}

/// Row S9.
#[test]
fn a_file_that_was_taken_away_is_an_error_and_nothing_is_lost() {
    let (site, store) = laid();
    let before = store.current("c").unwrap().unwrap();
    fs::rename(site.database(), site.path("away.db")).unwrap();
    assert_eq!(asked(&site, &store)[1], GONE);
    assert!(!site.database().exists(), "no empty file took its place");
    fs::rename(site.path("away.db"), site.database()).unwrap();
    assert_eq!(asked(&site, &store), ["answered: kept", "answered: new"]);
    assert_eq!(store.current("c").unwrap().unwrap().epoch, before.epoch);
}

/// A reader of a removed file would miss the writes of others.
#[test]
fn a_file_that_was_taken_away_is_not_read() {
    let (site, store) = laid();
    fs::rename(site.database(), site.path("away.db")).unwrap();
    assert_eq!(asked(&site, &store), [GONE, GONE]);
}

/// Puts another store in the same place, in which `c` has other bytes.
fn replace(site: &Site) {
    let other = site.path("other.db");
    {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&other).unwrap());
        turn(&conversations(&store), &site.request(json!({"profile": "template", "template": "of another"})));
    }
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(site.path(format!("data/proem.db{end}")));
    }
    fs::rename(other, site.database()).unwrap();
}

#[test]
fn a_file_that_was_replaced_is_not_written_to() {
    let (site, store) = laid();
    replace(&site);
    assert_eq!(asked(&site, &store)[1], GONE);
}

/// Row S9: every thread has a connection of its own, and all must see the same file.
#[test]
fn a_file_that_was_replaced_is_not_read_by_any_thread() {
    let (site, store) = laid();
    replace(&site);
    let same = asked(&site, &store);
    let (site, other) = thread::spawn(move || {
        let other = asked(&site, &store);
        (site, other)
    })
    .join()
    .unwrap();
    drop(site);
    assert_eq!([same, other], [[GONE, GONE], [GONE, GONE]]);
}

/// Row S4: the database of another program stays unchanged, byte for byte.
#[test]
fn a_database_of_something_else_is_refused_and_left_alone() {
    let foreign = "cannot use the store {root}/data/proem.db: it is a database of another program\nhint: choose another file";
    let not_ours =
        "cannot use the store {root}/data/proem.db: it is not a proem store\nhint: choose another file";
    let cases = [
        ("CREATE TABLE note (text TEXT);", foreign),
        ("CREATE TABLE note (text TEXT); PRAGMA user_version = 1;", not_ours),
        ("CREATE TABLE note (text TEXT); PRAGMA application_id = 7;", not_ours),
        ("CREATE TABLE note (text TEXT); PRAGMA application_id = 7; PRAGMA user_version = 1;", not_ours),
    ];
    let mut touched = Vec::new();
    for (sql, expected) in cases {
        let site = Site::new();
        fs::create_dir(site.path("data")).unwrap();
        Connection::open(site.database()).unwrap().execute_batch(sql).unwrap();
        let before = fs::read(site.database()).unwrap();
        assert_eq!(refusal(&site), expected, "{sql}");
        if fs::read(site.database()).unwrap() != before {
            touched.push(sql);
        }
    }
    assert_eq!(touched, Vec::<&str>::new());
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let site = Site::new();
    let text = "# Notes\n\nMilk, eggs.\n".repeat(100);
    site.write("data/proem.db", &text);
    let error = SqliteStore::open(&site.database()).unwrap_err();
    assert!(error.to_string().contains(site.database().to_str().unwrap()), "{error}");
    assert_eq!(fs::read_to_string(site.database()).unwrap(), text);
}

/// Row S4.
#[test]
fn tables_of_a_later_proem_are_refused_and_left_alone() {
    let (site, store) = laid();
    let before = store.current("c").unwrap();
    drop(store);
    let version = |version: u32| {
        let connection = Connection::open(site.database()).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
    };
    version(99);
    let expected = "cannot use the store {root}/data/proem.db: its tables have version 99, and this proem \
                    supports versions up to 8\nhint: use a newer proem, or restore a backup";
    assert_eq!(refusal(&site), expected);
    version(8);
    assert_eq!(site.sqlite().current("c").unwrap(), before, "nothing is lost");
}

#[test]
fn tables_of_an_earlier_proem_are_brought_up_to_date() {
    let (site, store) = laid();
    // An earlier proem stored no states.
    let before = store.current("c").unwrap().map(|current| Current { state: None, ..current });
    drop(store);
    let connection = Connection::open(site.database()).unwrap();
    connection
        .execute_batch(
            "ALTER TABLE compaction DROP COLUMN opened; ALTER TABLE epoch DROP COLUMN seal; \
         ALTER TABLE template DROP COLUMN seal; DROP TABLE call; DROP TABLE doomed; DROP TABLE prune; DROP TABLE state; \
         DROP TABLE workspace_use; DROP TABLE workspace; \
         DROP INDEX epoch_by_template; ALTER TABLE epoch DROP COLUMN template_version; \
         ALTER TABLE template DROP COLUMN message; ALTER TABLE template DROP COLUMN is_draft; \
         DROP TABLE traffic_call; DROP TABLE traffic_usage; DROP TABLE traffic_conversation; \
         DROP TABLE traffic_chain; DROP TABLE store_key; \
         PRAGMA user_version = 1",
        )
        .unwrap();
    drop(connection);
    let paths = [site.database(), site.database()];
    let opened: Vec<_> = paths.map(|path| thread::spawn(move || SqliteStore::open(&path))).into();
    for store in opened {
        assert_eq!(store.join().unwrap().unwrap().current("c").unwrap(), before, "nothing is lost");
    }
    let connection = Connection::open(site.database()).unwrap();
    connection.prepare("SELECT opened FROM compaction").unwrap();
}

#[test]
fn a_store_that_a_later_proem_takes_over_is_not_written_to() {
    let (site, store) = laid();
    let connection = Connection::open(site.database()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    let error = store.put_template("mine", None, None).unwrap_err();
    assert!(error.to_string().contains("its tables have version 99, and this proem supports"), "{error}");
    connection.pragma_update(None, "user_version", 8).unwrap();
    assert_eq!(store.template().unwrap(), None);
}

#[test]
fn a_file_that_was_cut_off_is_an_error() {
    for part in [1, 2, 3] {
        let (site, store) = laid();
        drop(store);
        let file = OpenOptions::new().write(true).open(site.database()).unwrap();
        file.set_len(file.metadata().unwrap().len() * part / 4).unwrap();
        let opened = SqliteStore::open(&site.database());
        let answer = opened.map_err(ConversationError::from).and_then(|store| {
            let request = site.request(json!({"profile": "template"}));
            conversations(&(Arc::new(store) as Arc<dyn Store>)).turn("c", &request, Caller::User)
        });
        let error = answer.unwrap_err();
        assert!(matches!(error, ConversationError::Store(StoreError::Damaged { .. })), "{error}");
        let said = shown(&site, &error);
        assert!(said.starts_with("the store {root}/data/proem.db is damaged: "), "{said}");
        assert!(said.ends_with("\nhint: run `proem store check`, and restore a backup"), "{said}");
    }
}

/// Row S9: an open store is not taken for a new one when its file becomes empty.
#[test]
fn a_file_that_was_emptied_is_an_error() {
    let (site, store) = laid();
    for end in ["", "-wal"] {
        OpenOptions::new()
            .write(true)
            .open(site.path(format!("data/proem.db{end}")))
            .unwrap()
            .set_len(0)
            .unwrap();
    }
    let [known, new] = asked(&site, &store);
    // The epoch in memory is right, and may be returned.
    assert_ne!(known, "answered: new", "the conversation does not begin again");
    assert!(new.contains("{root}/data/proem.db") && new.contains("\nhint: "), "{new}");
}

#[test]
fn a_place_where_no_file_can_be_is_an_error() {
    let site = Site::new();
    site.write("data", "a file");
    let expected = "cannot use the store {root}/data/proem.db: not a directory\nhint: choose a location that you can write to";
    assert_eq!(refusal(&site), expected);
    let error = SqliteStore::open(&site.path("work")).unwrap_err();
    let expected = "cannot use the store {root}/work: unable to open database file";
    let said = said(&site, error);
    assert!(said.starts_with(expected), "{said}");
    assert!(said.ends_with("\nhint: check that the file and its folder exist and are writable"), "{said}");
}

#[test]
fn epochs_of_a_conversation_survive_everything_else() {
    let (site, store) = laid();
    let own = conversations(&store);
    own.turn("other", site.request(json!({})), Caller::User).unwrap();
    store.remove("other").unwrap();
    store.prune().unwrap();
    assert_eq!(history(&store), epochs(&["startup"]));
    let fresh = conversations(&site.sqlite()).current("c").unwrap().unwrap();
    assert_eq!(summary(&fresh), (1, "startup", "kept"));
}
