//! The floor of the benchmark: an axum handler that answers every request with the same text, and does nothing else.
//!
//! `cargo run --release -p proem-server --example bare_axum -- FILE` prints its address and serves the file's bytes.

use std::error::Error;
use std::io::Write;

use axum::Router;
use axum::http::header;
use axum::routing::any;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a file with the answer")?;
    let answer = axum::body::Bytes::from(std::fs::read(path)?);
    let handler = move |_: axum::body::Bytes| {
        let answer = answer.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], answer) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "listening on http://{}", listener.local_addr()?)?;
    axum::serve(listener, Router::new().fallback(any(handler))).await?;
    Ok(())
}
