//! The floor of P15: an axum handler that does nothing else.
//!
//! `proem-bench bare-axum FILE` prints its address and answers every request with the file.

use std::{fs, io};

use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::routing::any;

#[tokio::main]
pub(crate) async fn run() -> io::Result<()> {
    let path = std::env::args().nth(2).expect("name a file with the answer");
    let answer = Bytes::from(fs::read(path)?);
    let router = Router::new().fallback(any(move |_: Bytes| {
        let answer = answer.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], answer) }
    }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router).await
}
