//! The floors of P15: axum handlers that do nothing else.
//!
//! `proem-bench bare-axum FILE` prints its address and answers every request with the file.
//! `proem-bench bare-axum FILE ROWS` answers with the text of a row of SQLite, one of so many: it is read, hashed, as
//! whoever trusts no disk must, and written as JSON. Each text is as long as the file.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::Bytes;
use axum::http::{Uri, header};
use axum::routing::any;
use proem_bench::fixture::stores::id;
use proem_core::digest::Digest;
use rusqlite::Connection;
use serde_json::json;

#[tokio::main]
pub(crate) async fn run() -> io::Result<()> {
    let mut arguments = std::env::args().skip(2);
    let path = arguments.next().expect("name a file with the answer");
    let answer = Bytes::from(fs::read(path)?);
    let folder = tempfile::tempdir()?;
    let rows = arguments.next().map(|rows| rows.parse().expect("a number of rows"));
    let router = match rows {
        None => Router::new().fallback(any(move |_: Bytes| {
            let answer = answer.clone();
            async move { ([(header::CONTENT_TYPE, "application/json")], answer) }
        })),
        Some(rows) => {
            let store = folder.path().join("rows.db");
            fill(&store, rows, answer.len()).expect("there is room");
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
        let digest = Digest::of(text.as_bytes());
        Ok(json!({ "digest": digest.to_string(), "carriers": { "system": text } }).to_string())
    })
}
