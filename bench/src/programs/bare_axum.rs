//! The floors of P15: axum handlers that do nothing else.
//!
//! `proem-bench bare-axum FILE` prints its address and answers every request with the file.
//! `proem-bench bare-axum FILE dressed` does so with the headers that every answer must have, and looks at the file before,
//! as one must who may not give what another process has changed.
//! `proem-bench bare-axum FILE ROWS` answers with the text of a row of SQLite, one of so many: it is read, hashed, as
//! whoever trusts no disk must, and written as JSON. Each text is as long as the file.

use std::cell::RefCell;
use std::hint::black_box;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::routing::any;
use proem_bench::fixture::stores::id;
use proem_core::digest::Digest;
use rusqlite::Connection;
use serde_json::json;

#[tokio::main]
pub(crate) async fn run() -> io::Result<()> {
    let mut arguments = std::env::args().skip(2);
    let path = PathBuf::from(arguments.next().expect("name a file with the answer"));
    let answer = Bytes::from(fs::read(&path)?);
    let folder = tempfile::tempdir()?;
    let router = match arguments.next().as_deref() {
        None => Router::new().fallback(any(move |_: Bytes| {
            let answer = answer.clone();
            async move { ([(header::CONTENT_TYPE, "application/json")], answer) }
        })),
        Some("dressed") => {
            let file = Arc::new(fs::File::open(&path)?);
            let tag = format!("\"{}\"", Digest::new(&answer));
            let tag = HeaderValue::from_str(&tag).expect("digits are fine");
            Router::new().fallback(any(move |_: Bytes| {
                look(&path, &file);
                let (answer, tag) = (answer.clone(), tag.clone());
                async move { (dress(tag), answer) }
            }))
        }
        Some(rows) => {
            let store = folder.path().join("rows.db");
            fill(&store, rows.parse().expect("a number of rows"), answer.len()).expect("there is room");
            Router::new().fallback(any(move |uri: Uri, _: Bytes| {
                let answer = row(&store, uri.path()).expect("it can be read");
                async move { ([(header::CONTENT_TYPE, "application/json")], answer) }
            }))
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router).await
}

/// What tells whether another process has written: what a file looks like, and its first bytes.
fn look(path: &Path, file: &fs::File) {
    let mut head = [0; 96];
    black_box(file.read_at(&mut head, 0).expect("it can be read"));
    black_box(fs::metadata(path).expect("it is there").ino());
}

/// The headers of an answer of proem.
fn dress(tag: HeaderValue) -> [(HeaderName, HeaderValue); 8] {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::ETAG, tag),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
        ),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
        (
            HeaderName::from_static("x-request-id"),
            HeaderValue::from_str(&format!("{number:016x}")).expect("digits are fine"),
        ),
    ]
}

fn fill(store: &Path, rows: usize, bytes: usize) -> rusqlite::Result<()> {
    let connection = Connection::open(store)?;
    connection
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE prompt (id TEXT UNIQUE, text TEXT); BEGIN")?;
    let line = "Prefer small, reviewable changes; say what you did and why.\n";
    for number in 0..rows {
        let text = format!("Prompt {number}.\n{}", line.repeat(bytes / line.len()));
        connection.execute("INSERT INTO prompt VALUES (?, ?)", (id(number), text))?;
    }
    connection.execute_batch("COMMIT")
}

thread_local! {
    static CONNECTION: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

/// The answer for `/conversations/ID/turn`.
fn row(store: &PathBuf, path: &str) -> rusqlite::Result<String> {
    let id = path.split('/').nth(2).unwrap_or_default();
    CONNECTION.with_borrow_mut(|connection| {
        if connection.is_none() {
            *connection = Some(Connection::open(store)?);
        }
        let connection = connection.as_ref().expect("it was opened");
        let mut select = connection.prepare_cached("SELECT text FROM prompt WHERE id = ?")?;
        let text: String = select.query_row([id], |row| row.get(0))?;
        let digest = Digest::new(text.as_bytes());
        Ok(json!({ "digest": digest.to_string(), "carriers": { "system": text } }).to_string())
    })
}
