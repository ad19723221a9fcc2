//! `proem gateway`: passes the calls of agents on, and finds out why they missed the cache.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use proem::conversation::{KeepExcerpts, Recorder};
use proem::models::Models;
use proem::traffic::{Call, CallVerdict};
use proem::{Caller, Request};
use proem_core::limit::TOKEN_FILE_BYTES_MAX;
use proem_gateway::{
    Analysis, CallJudge, CallReceiver, Gateway, GatewayListeners, GatewayOptions, GatewayToken, Routes,
    Upstream, raise_descriptor_limit, serve,
};
use proem_server::{LogLevel, log_line};
use proem_store::{Store, StoreError};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::bodies::Bodies;
use crate::arguments::StoreFlags;
use crate::arguments::store::place;
use crate::call_line::call_line;
use crate::failure::Failure;
use crate::input;
use crate::terminal::print;

/// The default port.
const PORT: u16 = 7718;

/// Pass the calls of agents on to their providers, and find out why they missed the cache
///
/// A reverse proxy: `/anthropic/…`, `/openai/…`, `/gemini/…`, `/deepseek/…`, `/openrouter/…` and `/custom/NAME/…` go to that
/// provider, byte for byte. One line is printed for each call. `proem run AGENT` starts one for a single run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GatewayArguments {
    /// Address to listen on (repeatable) [default: 127.0.0.1:7718]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<String>,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    flags: GatewayFlags,
    /// File with the token that requests must send, as `x-proem-token` or first segment of the path [default:
    /// `PROEM_TOKEN`]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// Host name that clients may use for the gateway, besides addresses (repeatable)
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Print no line for each call
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  proem gateway                                       Listen on 127.0.0.1:7718
  ANTHROPIC_BASE_URL=http://127.0.0.1:7718/anthropic claude
                                                      Send an agent through it
  proem gateway --upstream mine=https://llm.example.com/v1
                                                      Serve /custom/mine/, too";

/// Flags of a gateway that several commands share.
#[derive(Debug, Args)]
pub(crate) struct GatewayFlags {
    /// Serve `/custom/NAME/…` from this URL; the name of a provider replaces its URL (repeatable)
    #[arg(long, value_name = "NAME=URL", value_parser = upstream)]
    pub(crate) upstream: Vec<(String, String)>,
    /// Speak HTTP/2 with providers that offer it [default: HTTP/1.1]
    #[arg(long)]
    pub(crate) http2: bool,
    /// Part of the requests to keep
    #[arg(long, value_name = "PART", default_value = "excerpts")]
    pub(crate) keep: Keep,
}

/// The part of a request that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    /// Digests and numbers
    Digests,
    /// Masked excerpts of a change, too
    Excerpts,
    /// Masked requests, too
    Bodies,
}

/// Parses `NAME=URL`.
fn upstream(text: &str) -> Result<(String, String), String> {
    let (name, url) = text.split_once('=').ok_or("write it like `mine=https://llm.example.com`")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err("a name has letters, digits, `-`, `_` and `.`".to_owned());
    }
    Upstream::parse(url).map_err(|why| why.to_string())?;
    Ok((name.to_owned(), url.to_owned()))
}

impl GatewayFlags {
    /// Returns the routes: the built-in ones, and those of the flags.
    pub(crate) fn routes(&self) -> Routes {
        let mut routes = Routes::built_in();
        for (name, url) in &self.upstream {
            // Flags were checked when they were parsed.
            if let Ok(upstream) = Upstream::parse(url) {
                routes.set(name, upstream);
            }
        }
        routes
    }
}

/// Flags of a gateway beside a server.
#[derive(Debug, Args)]
pub(crate) struct ServedGatewayFlags {
    /// Serve a gateway for agents, too, which needs the same token
    #[arg(long)]
    gateway: bool,
    /// Address of the gateway (repeatable) [default: 127.0.0.1:7718]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "gateway")]
    gateway_listen: Vec<String>,
    #[command(flatten)]
    flags: GatewayFlags,
}

/// A gateway beside a server, which does not accept connections yet.
pub(crate) struct ServedGateway {
    listeners: GatewayListeners,
    options: GatewayOptions,
    keep: Keep,
}

/// A gateway beside a server.
pub(crate) struct RunningGateway {
    listeners: GatewayListeners,
    gateway: Arc<Gateway>,
    analysis: Analysis,
    book: CallBook,
}

impl ServedGatewayFlags {
    /// Reads the token, if there is a gateway.
    pub(crate) fn token(&self, file: Option<&PathBuf>) -> Result<Option<GatewayToken>, Failure> {
        if self.gateway { token(file) } else { Ok(None) }
    }

    /// Binds the addresses, if there is a gateway.
    pub(crate) fn bind(
        &self,
        runtime: &Runtime,
        token: Option<GatewayToken>,
        hosts: &[String],
    ) -> Result<Option<ServedGateway>, Failure> {
        if !self.gateway {
            return Ok(None);
        }
        let addresses = checked(addresses(&self.gateway_listen)?, token.as_ref())?;
        raise_descriptor_limit();
        let listeners = bind(runtime, &addresses)?;
        let (routes, hosts) = (self.flags.routes(), hosts.to_vec());
        let uses_http2 = self.flags.http2;
        let options = GatewayOptions { routes, token, hosts, uses_http2, ..GatewayOptions::default() };
        Ok(Some(ServedGateway { listeners, options, keep: self.flags.keep }))
    }
}

impl ServedGateway {
    /// Starts the analysis, and logs the addresses.
    pub(crate) fn start(
        self,
        store: &Arc<dyn Store>,
        path: Option<&Path>,
    ) -> Result<RunningGateway, Failure> {
        let book = CallBook::new(Some(Arc::clone(store)), path, self.keep);
        let analysis = analysis(&book, printer(true))?;
        let gateway = Gateway::new(self.options, Some(&analysis), book.account_key());
        announce(&self.listeners)?;
        Ok(RunningGateway { listeners: self.listeners, gateway, analysis, book })
    }
}

impl RunningGateway {
    /// Serves until the sender is dropped.
    pub(crate) async fn serve(self, ended: oneshot::Receiver<()>) {
        let end = async {
            // The end is also the end of the sender.
            let _ = ended.await;
        };
        serve(self.listeners, Arc::clone(&self.gateway), end).await;
        self.analysis.flush();
        report_unread(&self.gateway, &self.book);
    }
}

/// Returns addresses that may be listened on: beyond this machine only with a token.
fn checked(addresses: Vec<SocketAddr>, token: Option<&GatewayToken>) -> Result<Vec<SocketAddr>, Failure> {
    if token.is_none() && addresses.iter().any(|address| !address.ip().is_loopback()) {
        return Err(Failure::Server {
            message: "cannot listen beyond this machine without a token".into(),
            hint: "give one with `--token-file FILE` or `PROEM_TOKEN`, or listen on 127.0.0.1".into(),
        });
    }
    Ok(addresses)
}

pub(crate) fn run(arguments: &GatewayArguments) -> Result<(), Failure> {
    let token = token(arguments.token_file.as_ref())?;
    let addresses = checked(addresses(&arguments.listen)?, token.as_ref())?;
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed("cannot start", &error))?;
    let listeners = bind(&runtime, &addresses)?;
    let location = place(arguments.store.store.as_deref())?;
    let store: Arc<dyn Store> = Arc::from(location.open()?);
    // Dropped last: a connection to a database cannot be closed inside the runtime.
    let held = Arc::clone(&store);
    let book = CallBook::new(Some(store), location.path(), arguments.flags.keep);
    let analysis = analysis(&book, printer(arguments.quiet))?;
    let options = GatewayOptions {
        routes: arguments.flags.routes(),
        token,
        hosts: arguments.host.clone(),
        uses_http2: arguments.flags.http2,
        ..GatewayOptions::default()
    };
    let gateway = Gateway::new(options, Some(&analysis), book.account_key());
    announce(&listeners)?;
    let ended: Result<(), Failure> = runtime.block_on(async {
        let terminated = signal(SignalKind::terminate());
        let mut terminated = terminated.map_err(|error| failed("cannot wait for signals", &error))?;
        let end = async {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
        };
        serve(listeners, Arc::clone(&gateway), end).await;
        Ok(())
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    analysis.flush();
    report_unread(&gateway, &book);
    drop((gateway, analysis, book, held));
    ended
}

/// Ids of calls that are remembered, to tell a repeated one.
const IDS_MAX: usize = 100_000;

/// The place in which calls are kept, and how much of them.
pub(crate) struct CallBook {
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) keep: Keep,
    /// The working directory of calls that name none.
    pub(crate) cwd: Option<String>,
    /// The folder for requests.
    pub(crate) bodies: Option<PathBuf>,
    /// The first reason why a call could not be stored.
    pub(crate) failure: Arc<OnceLock<String>>,
}

impl CallBook {
    /// Creates a book for an open store; requests are kept beside its file.
    pub(crate) fn new(store: Option<Arc<dyn Store>>, path: Option<&Path>, keep: Keep) -> Self {
        let beside = path.and_then(|path| Some(path.parent()?.join("bodies")));
        let bodies = beside.filter(|_| keep == Keep::Bodies);
        let book = Self { store, keep, cwd: None, bodies, failure: Arc::default() };
        if keep == Keep::Bodies && book.bodies.is_none() {
            // Nothing was told before.
            let _ = book
                .failure
                .set("requests are kept beside the file of a store, and this store has none".to_owned());
        }
        book
    }

    /// Returns the key with which accounts are hashed: that of the store.
    pub(crate) fn account_key(&self) -> [u8; 32] {
        let stored = self.store.as_ref().and_then(|store| store.account_key().ok());
        stored.and_then(|key| key.try_into().ok()).unwrap_or_else(Gateway::random_key)
    }

    /// Returns the judge of calls. When the store fails, calls are judged by what memory holds.
    fn judge(&self, models: &Models) -> CallJudge {
        let keep = if self.keep == Keep::Digests { KeepExcerpts::No } else { KeepExcerpts::Yes };
        let store = self.store.clone();
        let recorder = store.map(|store| Recorder::new(store, models.clone()).keeping(keep));
        let mut in_memory = Analysis::in_memory(models.clone());
        let (cwd, failure) = (self.cwd.clone(), Arc::clone(&self.failure));
        let mut seen = BTreeSet::new();
        let bodies = self.bodies.clone().map(Bodies::new);
        Box::new(move |mut call: Call| {
            call.cwd = call.cwd.take().or_else(|| cwd.clone());
            if let Some(Err(error)) = bodies.as_ref().map(|bodies| bodies.add(&call)) {
                // The first reason is enough.
                let _ = failure.set(format!("a request could not be written: {error}"));
            }
            let Some(recorder) = &recorder else { return in_memory(call) };
            let is_repeated = !seen.insert(call.id.clone());
            if seen.len() > IDS_MAX {
                seen.clear();
            }
            match recorded(recorder, &call, is_repeated) {
                Ok(verdict) => verdict,
                Err(error) => {
                    // The first reason is enough.
                    let _ = failure.set(error.to_string());
                    in_memory(call)
                }
            }
        })
    }
}

/// Judges and stores a call. A server for tests may give the same id to several calls: a later one gets another.
fn recorded(recorder: &Recorder, call: &Call, is_repeated: bool) -> Result<CallVerdict, StoreError> {
    const SAME_CALL_MILLIS: i64 = 5_000;
    let found = recorder.record(call.clone())?;
    let stored = found.call.call.at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
    let age = stored.zip(call.at).map_or(0, |(stored, at)| (at - stored.as_millisecond()).abs());
    if found.is_new || age < SAME_CALL_MILLIS && !is_repeated {
        return Ok(found.call.call);
    }
    let id = format!("{}~{:x}", call.id, call.at.unwrap_or_default());
    Ok(recorder.record(Call { id, ..call.clone() })?.call.call)
}

/// Starts the analysis.
pub(crate) fn analysis(book: &CallBook, receiver: CallReceiver) -> Result<Analysis, Failure> {
    let models = Models::load(&Request::default(), Caller::User)?;
    let judge = book.judge(&models);
    Analysis::start(judge, receiver).map_err(|error| failed("cannot start the analysis", &error))
}

/// Returns a receiver that prints a line for each call.
fn printer(quiet: bool) -> CallReceiver {
    let zone = TimeZone::system();
    Box::new(move |observed| {
        if !quiet {
            // A closed output does not stop the traffic.
            let _ = print(&(call_line(&observed.verdict, &zone) + "\n"));
        }
    })
}

/// Binds the addresses.
pub(crate) fn bind(runtime: &Runtime, addresses: &[SocketAddr]) -> Result<GatewayListeners, Failure> {
    let named: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let bound = runtime.block_on(async { GatewayListeners::bind(addresses) });
    bound.map_err(|error| failed(&format!("cannot listen on {}", named.join(" and ")), &error))
}

/// Logs the addresses.
pub(crate) fn announce(listeners: &GatewayListeners) -> Result<(), Failure> {
    for address in listeners.addresses().map_err(|error| failed("cannot listen", &error))? {
        let (url, message) = (format!("http://{address}"), format!("gateway on http://{address}"));
        log_line(LogLevel::Info, &[("event", "gateway"), ("message", &message), ("url", &url)]);
    }
    Ok(())
}

/// Logs the calls that the analysis could not read.
pub(crate) fn report_unread(gateway: &Gateway, book: &CallBook) {
    if let Some(why) = book.failure.get() {
        let message = format!("calls are not stored: {why}");
        log_line(LogLevel::Warning, &[("event", "store"), ("message", &message)]);
    }
    let unread = gateway.counters().unread.load(std::sync::atomic::Ordering::Relaxed);
    if unread > 0 {
        let message = format!("{unread} calls passed without being analysed");
        log_line(LogLevel::Warning, &[("event", "unread"), ("message", &message)]);
    }
}

/// Returns the addresses to listen on: loopback by default.
pub(crate) fn addresses(listen: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    if listen.is_empty() {
        return Ok(vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT)]);
    }
    let parse = |text: &String| {
        let text = text.replace("localhost", "127.0.0.1");
        let address = text.parse().or_else(|_| text.parse().map(|ip| SocketAddr::new(ip, PORT)));
        address.map_err(|_: std::net::AddrParseError| Failure::Usage {
            message: format!("invalid listen address `{text}`"),
            hint: "write it like `127.0.0.1:7718` or `[::1]:7718`".into(),
        })
    };
    listen.iter().map(parse).collect()
}

/// Reads the token from a file or the environment; never from the command line, which other users can see.
fn token(file: Option<&PathBuf>) -> Result<Option<GatewayToken>, Failure> {
    let text = match file {
        Some(path) => Some(input::read(path, "token", TOKEN_FILE_BYTES_MAX)?),
        None => std::env::var("PROEM_TOKEN").ok().filter(|text| !text.trim().is_empty()),
    };
    let Some(text) = text else { return Ok(None) };
    let token = GatewayToken::new(&text).ok_or_else(|| Failure::Usage {
        message: format!(
            "cannot use the token: it needs at least {} letters, digits, `-`, `_`, `.` or `~`",
            GatewayToken::BYTES_MIN
        ),
        hint: "make one with `openssl rand -hex 32`".into(),
    })?;
    Ok(Some(token))
}

pub(crate) fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::Server {
        message: format!("{what}: {}", input::reason(error)),
        hint: "choose another address with `--listen ADDRESS:PORT`".into(),
    }
}
