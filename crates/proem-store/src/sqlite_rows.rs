//! Reads SQLite files of other programs, for the collectors of `proem`, which have no driver.

use std::path::Path;
use std::time::Duration;

use proem_core::limit::{COLLECT_LINE_BYTES_MAX, SQLITE_LOCK_TIME_MAX};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// Runs a query on a SQLite file of another program and visits its rows; a value that is not text, or is longer
/// than a line of a recording may be, is `None`.
///
/// The file is opened for reading only, and nothing that its schema defines is trusted. This is a reader for
/// [`proem::traffic::collect::ReadOptions`].
pub fn read_sqlite_rows(
    path: &Path,
    sql: &str,
    visit: &mut dyn FnMut(Vec<Option<String>>),
) -> Result<(), String> {
    rows(path, sql, visit).map_err(|error| error.to_string())
}

fn rows(path: &Path, sql: &str, visit: &mut dyn FnMut(Vec<Option<String>>)) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::min(SQLITE_LOCK_TIME_MAX, Duration::from_secs(5)))?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "query_only", true)?;
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let text = |column| match row.get_ref(column) {
            Ok(ValueRef::Text(bytes)) if bytes.len() <= COLLECT_LINE_BYTES_MAX => {
                std::str::from_utf8(bytes).ok().map(str::to_owned)
            }
            _ => None,
        };
        visit((0..columns).map(text).collect());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proem::traffic::collect::{ReadOptions, TrafficSource, read};

    use super::*;

    const REFERENCE: &str =
        r#"{"__claude_tap_blob_ref__":{"version":1,"kind":"json","hash":"sha256:1","bytes":9}}"#;

    fn record() -> String {
        format!(
            r#"{{"__claude_tap_compact_record__":{{"version":1}},"record":{{"timestamp":"2026-11-17T14:57:03Z",
            "request_id":"own","request":{{"method":"POST","path":"/v1/messages","headers":{{"x-api-key":"sk-ant-1"}},
            "body":{{"model":"m","messages":[{REFERENCE}]}}}},"response":{{"status":200,"headers":{{"request-id":"req_1"}},
            "body":{{"usage":{{"input_tokens":9}}}}}}}}}}"#
        )
    }

    #[test]
    fn stores_of_claude_tap_and_opencode_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let options = ReadOptions { sqlite: Some(read_sqlite_rows), ..ReadOptions::default() };
        let tap = folder.path().join("traces.sqlite3");
        let connection = Connection::open(&tap).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE records (session_id TEXT, record_index INTEGER, payload_json TEXT);
                 CREATE TABLE record_blobs (session_id TEXT, hash TEXT, payload_json TEXT);
                 INSERT INTO record_blobs VALUES ('s', 'sha256:1', '{\"role\":\"user\",\"content\":\"hi\"}');",
            )
            .unwrap();
        connection.execute("INSERT INTO records VALUES ('s', 0, ?1)", [record()]).unwrap();
        drop(connection);
        let mut calls = Vec::new();
        let summary = read(TrafficSource::ClaudeTap, &tap, &options, &mut |call| calls.push(call));
        assert_eq!(summary.notes, []);
        let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
        assert_eq!((calls[0].id.as_str(), calls[0].body.as_deref()), ("req_1", Some(body)));
        assert!(!format!("{calls:?}").contains("sk-ant"));

        let store = folder.path().join("opencode.db");
        let connection = Connection::open(&store).unwrap();
        connection
            .execute_batch(
                r#"CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, version TEXT);
                   CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
                   INSERT INTO session VALUES ('ses_1', NULL, '/home/me', '1.18');
                   INSERT INTO message VALUES ('msg_1', 'ses_1', 5, '{"role":"assistant","time":{"created":5,"completed":6},
                     "tokens":{"input":1,"output":2,"cache":{"read":3,"write":4}},"modelID":"m","providerID":"p"}');"#,
            )
            .unwrap();
        drop(connection);
        let mut calls = Vec::new();
        let summary = read(TrafficSource::Opencode, &store, &options, &mut |call| calls.push(call));
        assert_eq!(summary.notes, []);
        assert_eq!(
            (calls[0].id.as_str(), calls[0].usage.read, calls[0].cwd.as_deref()),
            ("msg_1", Some(3), Some("/home/me"))
        );
    }

    #[test]
    fn a_damaged_store_is_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("traces.sqlite3");
        std::fs::write(&path, [b"SQLite format 3\0".as_slice(), &[7; 4096]].concat()).unwrap();
        for source in [TrafficSource::ClaudeTap, TrafficSource::Opencode] {
            for sqlite in [None, Some(read_sqlite_rows as proem::traffic::collect::SqliteRows)] {
                let options = ReadOptions { sqlite, ..ReadOptions::default() };
                let summary = read(source, &path, &options, &mut |_| panic!("a call"));
                assert!(!summary.notes.is_empty());
            }
        }
    }
}
