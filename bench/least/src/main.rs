//! Renders one template from one row of a database, over HTTP.

use std::error::Error;

use axum::Router;
use axum::routing::get;
use clap::Parser;
use rusqlite::Connection;

#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// A file that nobody reads
    _file: String,
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    tokio::runtime::Runtime::new()?.block_on(serve(arguments))
}

async fn serve(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let database = Connection::open_in_memory()?;
    database.execute_batch("CREATE TABLE prompt (text TEXT); INSERT INTO prompt VALUES ('Hello, {{ name }}.')")?;
    let template: String = database.query_row("SELECT text FROM prompt", [], |row| row.get(0))?;
    let name = minijinja::Value::from_iter([("name", "you")]);
    let text = minijinja::Environment::new().render_str(&template, name)?;
    let listener = tokio::net::TcpListener::bind(arguments.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/", get(move || async move { text.clone() }))).await?;
    Ok(())
}
