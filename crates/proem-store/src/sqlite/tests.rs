//! The settings of every connection, as SQLite reports them.

use std::error::Error;

use super::*;

/// Returns the settings on which durability and safety depend.
fn settings(connection: &Connection) -> [String; 4] {
    ["journal_mode", "synchronous", "trusted_schema", "foreign_keys"].map(|name| {
        let value = connection
            .query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, rusqlite::types::Value>(0));
        match value.expect("it is a setting") {
            rusqlite::types::Value::Text(word) => word,
            other => format!("{other:?}"),
        }
    })
}

const SAFE: [&str; 4] = ["wal", "Integer(2)", "Integer(0)", "Integer(1)"];

/// Row S3.
#[test]
fn every_connection_of_a_store_is_durable_and_trusts_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("proem.db");
    let store = SqliteStore::open(&path).expect("it can be created");
    assert_eq!(settings(&store.connection().expect("it is open")), SAFE);
    let of_thread = |store: &SqliteStore| settings(&store.connection().expect("it is open"));
    let other = thread::scope(|scope| scope.spawn(|| of_thread(&store)).join().expect("it ends"));
    assert_eq!(other, SAFE, "on another thread");
    let again = SqliteStore::open(&path).expect("it can be opened");
    assert_eq!(of_thread(&again), SAFE, "opened again");
    let plain = Connection::open(folder.path().join("plain.db")).expect("it can be created");
    let plain = settings(&plain);
    assert_eq!(
        (plain[0].as_str(), plain[2].as_str()),
        ("delete", "Integer(1)"),
        "control: the defaults of SQLite"
    );
}

/// Row S4.
#[test]
fn a_file_says_whose_it_is_and_of_which_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("proem.db");
    drop(SqliteStore::open(&path).expect("it can be created"));
    let marks = |path: &Path| {
        let connection = Connection::open(path).expect("it can be opened");
        ["application_id", "user_version"].map(|name| {
            connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0)).expect("a number")
        })
    };
    assert_eq!(marks(&path), [0x7072_6F6D, 8]);
    assert_eq!(marks(&folder.path().join("plain.db")), [0, 0], "control");
}

/// Row S4.
#[test]
fn the_log_of_this_sqlite_is_sound() {
    assert_eq!(SQLITE_VERSION_MIN, 3_051_003);
    assert!(rusqlite::version_number() >= SQLITE_VERSION_MIN, "{}", rusqlite::version());
}

#[test]
fn an_error_has_its_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("notes.txt");
    fs::write(&text, "Milk, eggs.\n".repeat(100)).expect("it can be written");
    let error = SqliteStore::open(&text).expect_err("it is refused");
    assert!(error.source().expect("it has a source").is::<rusqlite::Error>(), "{error:?}");
    let error = SqliteStore::open(&text.join("proem.db")).expect_err("it is refused");
    assert!(error.source().expect("it has a source").is::<std::io::Error>(), "{error:?}");
}
