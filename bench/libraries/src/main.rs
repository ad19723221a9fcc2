//! Calls every library that proem has, once.

mod prompt;

use std::convert::Infallible;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use axum::body::Body;
use axum::extract::Query;
use axum::routing::{get, post};
use axum::{Json, Router};
use clap::{CommandFactory, Parser};
use granit_parser::Parser as YamlParser;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use ignore::gitignore::GitignoreBuilder;
use landlock::{ABI, Access, AccessFs, Ruleset, RulesetAttr};
use rusqlite::Connection;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use similar::TextDiff;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio_io_timeout::TimeoutStream;
use tokio_postgres_rustls::MakeRustlsConnect;
use tower::ServiceExt;

type Outcome = Result<(), Box<dyn Error>>;

#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// A file; with `--prompt`, a working directory
    file: String,
    /// Print a prompt, and do nothing else
    #[arg(long)]
    prompt: bool,
    /// A database
    #[arg(long, env = "LIBRARIES_DATABASE")]
    database: Option<String>,
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Document {
    name: Arc<str>,
    #[serde(default)]
    lines: Vec<String>,
}

fn main() -> Outcome {
    let arguments = Arguments::parse();
    if arguments.prompt {
        return prompt::print(Path::new(&arguments.file));
    }
    describe()?;
    let text = fs::read_to_string(&arguments.file)?;
    texts(&text)?;
    files(Path::new(&arguments.file))?;
    tokio::runtime::Runtime::new()?.block_on(serve(arguments, text))
}

/// What a command says about itself.
fn describe() -> Outcome {
    let mut command = Arguments::command();
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Fish, clap_complete::Shell::Zsh] {
        clap_complete::generate(shell, &mut command, "libraries", &mut io::stdout());
    }
    clap_mangen::Man::new(command).render(&mut io::stdout())?;
    let bold = anstyle::Style::new().bold();
    anstream::println!("{bold}{}{bold:#}", serde_json::to_string_pretty(&schema_for!(Document))?);
    Ok(())
}

/// What is done with texts.
fn texts(text: &str) -> Outcome {
    for line in text.lines() {
        let of_toml = toml::from_str::<Document>(line).map(|read| toml::to_string(&read));
        let of_json = serde_json::from_str::<Document>(line).and_then(|read| serde_json::to_string(&read));
        println!("{of_toml:?} {of_json:?} {}", YamlParser::new_from_str(line).count());
    }
    for name in ["o200k_base", "cl100k_base", "llama3", "qwen2", "deepseek_v3", "mistral_v3"] {
        println!("{:?}", tiktoken::get_encoding(name).map(|words| words.encode(text).len()));
    }
    let pattern = regex::Regex::new(text)?;
    println!("{:?} {:?}", pattern.find(text), memchr::memmem::find(text.as_bytes(), b"{{"));
    println!("{}", TextDiff::from_lines(text, "").unified_diff());
    let mut environment = minijinja::Environment::new();
    environment.set_fuel(Some(1000));
    println!("{}", environment.render_str(text, minijinja::Value::from_iter([("name", "you")]))?);
    let zoned = jiff::Zoned::now().in_tz("Europe/Berlin")?;
    println!("{zoned} {}", zoned.strftime("%A"));
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    let mut seal = Hmac::<Sha256>::new_from_slice(&key)?;
    seal.update(&Sha256::digest(text));
    println!("{}", bool::from(seal.finalize().into_bytes().ct_eq(&key)));
    Ok(())
}

/// What is done with files.
fn files(path: &Path) -> Outcome {
    let mut ignored = GitignoreBuilder::new(path);
    ignored.add_line(None, "*.log")?;
    println!("{}", ignored.build()?.matched(path, false).is_ignore());
    let folder = tempfile::tempdir()?;
    let open = rustix::fs::open(folder.path(), rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())?;
    println!("{:?}", rustix::fs::fstat(&open)?.st_ino);
    Ruleset::default().handle_access(AccessFs::from_all(ABI::V1))?.create()?.restrict_self()?;
    let database = Connection::open_in_memory()?;
    database.execute_batch("CREATE TABLE prompt (text TEXT)")?;
    println!("{}", database.query_row("SELECT count(*) FROM prompt", [], |row| row.get::<_, u64>(0))?);
    Ok(())
}

async fn serve(arguments: Arguments, text: String) -> Outcome {
    if let Some(address) = arguments.database {
        let (tls, _) = MakeRustlsConnect::with_native_certs().map_err(|_| "no certificates")?;
        let (client, connection) = tokio_postgres::connect(&address, tls).await?;
        tokio::spawn(connection);
        println!("{}", client.query_one("SELECT $1::TEXT", &[&text]).await?.get::<_, String>(0));
    }
    let app = Router::new()
        .route(
            "/",
            get(move |Query(query): Query<Vec<(String, String)>>| async move { Json((text.clone(), query)) }),
        )
        .route("/", post(|Json(document): Json<Document>| async move { Json(document) }));
    let (listener, graceful) = (TcpListener::bind(arguments.listen).await?, GracefulShutdown::new());
    println!("listening on http://{}", listener.local_addr()?);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(5));
    loop {
        let accepts = futures_util::future::select_all([Box::pin(listener.accept())]);
        let accepted = tokio::select! { one = accepts => one.0, _ = tokio::signal::ctrl_c() => break };
        let app = app.clone();
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let app = app.clone();
            async move { Ok::<_, Infallible>(app.oneshot(request.map(whole)).await.unwrap_or_default()) }
        });
        let mut stream = Box::pin(TimeoutStream::new(accepted?.0));
        stream.as_mut().set_write_timeout_pinned(Some(Duration::from_secs(5)));
        tokio::spawn(graceful.watch(builder.serve_connection(TokioIo::new(stream), service)));
    }
    graceful.shutdown().await;
    Ok(())
}

fn whole(body: hyper::body::Incoming) -> Body {
    Body::new(body.map_err(io::Error::other))
}
