//! `proem serve`: serves prompts over HTTP.

use std::cell::Cell;
use std::env;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use proem::config::Config;
use proem::{Engine, Host, HostPins};
use proem_core::limit::TOKEN_FILE_BYTES_MAX;
use proem_server::{
    App, ConnectionLimits, Listeners, LogLevel, Options, PublicUrl, Telemetry, Token, log_line, serve,
};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::gateway::{RunningGateway, ServedGatewayFlags};
use crate::arguments::store::place;
use crate::failure::Failure;
use crate::input;
use crate::terminal::visible_line;

/// The default port.
const PORT: u16 = 7717;

/// Maximum time to wait for unfinished work at the end.
const END_TIME_MAX: Duration = Duration::from_secs(1);

/// Serve prompts over HTTP, and store them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArguments {
    /// Address to listen on (repeatable) [default: `127.0.0.1:7717` and `[::1]:7717`]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<String>,
    /// Store of the prompts: a file, `sqlite:FILE`, `memory:`, or `postgres://USER@HOST/DATABASE` [default: `PROEM_STORE`,
    /// else a file in the user's data directory]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Directory that requests may work in, besides the current one (repeatable)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Vec<PathBuf>,
    /// Also read files of your home and configuration that become text of prompts, such as `~/AGENTS.md` and your skills
    /// [default: `user_files` of `[serve]` in your proem.toml]
    #[arg(long)]
    user_files: bool,
    /// File with the token that requests must send [default: `PROEM_TOKEN`]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// Host name that clients may use for the server, besides addresses (repeatable)
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Maximum number of connections
    #[arg(long, value_name = "N", default_value = "4096", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Maximum number of connections per address without a valid token, 0 for no limit; loopback and trusted proxies are
    /// exempt
    #[arg(long, value_name = "N", default_value = "1024")]
    connections_per_address: u32,
    /// Address of a trusted proxy, whose `X-Forwarded-Host` and `X-Forwarded-Proto` are used (repeatable)
    #[arg(long, visible_alias = "trusted-proxy", value_name = "ADDRESS")]
    proxy: Vec<IpAddr>,
    /// URL at which a proxy serves the editor, for example `https://prompts.example.com:8443`
    #[arg(long, value_name = "URL", value_parser = PublicUrl::parse)]
    public_url: Option<PublicUrl>,
    #[command(flatten)]
    gateway: ServedGatewayFlags,
    /// Directory with the built editor, for its development [default: the one in the binary]
    #[arg(long, value_name = "DIR", hide = true)]
    web: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  proem serve                     Serve this directory on port 7717
  proem serve --store memory:     Keep nothing after the end
  proem serve --gateway           Serve a gateway for agents, too
  proem serve --listen 0.0.0.0:7717 --token-file token.txt
                                  Serve other machines, with a token";

pub(crate) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let addresses = addresses(arguments)?;
    let token = token(arguments)?;
    if token.is_none() && addresses.iter().any(|address| !address.ip().is_loopback()) {
        return Err(Failure::Server {
            message: "cannot listen beyond this machine without a token".into(),
            hint: "give one with `--token-file FILE` or `PROEM_TOKEN`, or listen on 127.0.0.1".into(),
        });
    }
    let options = Options {
        workspaces: workspaces(arguments)?,
        has_user_files: arguments.user_files || has_user_files(),
        token,
        hosts: arguments.host.clone(),
        public_url: arguments.public_url.clone(),
        web: arguments.web.clone(),
        telemetry: telemetry()?,
        connections: connections(arguments),
        ..Options::default()
    };
    let place = place(arguments.store.as_deref())?;
    let gateway_token = arguments.gateway.token(arguments.token_file.as_ref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed("cannot start", &error))?;
    // Before the store is opened, so that a server that cannot listen creates no file.
    let listeners = runtime.block_on(async { Listeners::bind(&addresses) });
    let named: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let cannot = format!("cannot listen on {}", named.join(" and "));
    let listeners = listeners.map_err(|error| failed(&cannot, &error))?;
    let bound = listeners.addresses().map_err(|error| failed(&cannot, &error))?;
    let gateway = arguments.gateway.bind(&runtime, gateway_token, &arguments.host)?;
    let is_new = place.is_new();
    let store: Arc<dyn proem_store::Store> = Arc::from(place.open()?);
    let described = store.describe();
    if is_new {
        let message = format!("made a new store {described}");
        log_line(LogLevel::Info, &[("event", "store"), ("message", &message), ("store", &described)]);
    }
    for address in bound {
        let (url, message) =
            (format!("http://{address}"), format!("listening on http://{address}, store {described}"));
        log_line(
            LogLevel::Info,
            &[("event", "listening"), ("message", &message), ("url", &url), ("store", &described)],
        );
    }
    let gateway = gateway.map(|gateway| gateway.start(&store, place.path())).transpose()?;
    // Dropped last: a connection to a database cannot be closed inside the runtime.
    let held = Arc::clone(&store);
    let app = App::new(store, Engine::new(), options);
    let done = serve_all(&runtime, listeners, app, gateway);
    // No client waits for the work that is left.
    runtime.shutdown_timeout(END_TIME_MAX);
    drop(held);
    let reason = done?;
    let message = format!("stopped by {reason}");
    log_line(LogLevel::Info, &[("event", "end"), ("message", &message), ("reason", reason)]);
    Ok(())
}

/// Serves until a signal comes, and returns its name.
fn serve_all(
    runtime: &Runtime,
    listeners: Listeners,
    app: Arc<App>,
    gateway: Option<RunningGateway>,
) -> Result<&'static str, Failure> {
    runtime.block_on(async {
        let mut terminate =
            signal(SignalKind::terminate()).map_err(|error| failed("cannot wait for signals", &error))?;
        let reason = Cell::new("");
        let (ending, ended) = oneshot::channel::<()>();
        let end = async {
            reason.set(tokio::select! {
                _ = tokio::signal::ctrl_c() => "SIGINT",
                _ = terminate.recv() => "SIGTERM",
            });
            drop(ending);
        };
        let beside = async {
            if let Some(gateway) = gateway {
                gateway.serve(ended).await;
            }
        };
        tokio::join!(serve(listeners, app, end), beside);
        Ok(reason.get())
    })
}

/// Returns the limits on connections.
fn connections(arguments: &ServeArguments) -> ConnectionLimits {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let per_address = count(arguments.connections_per_address);
    ConnectionLimits {
        most: count(arguments.connections),
        per_address_max: (per_address > 0).then_some(per_address),
        proxies: arguments.proxy.clone(),
        makes_room: true,
    }
}

/// Returns the destination of spans, from OpenTelemetry's variables.
fn telemetry() -> Result<Option<Telemetry>, Failure> {
    Telemetry::from_environment().map_err(|error| Failure::Server {
        message: format!("cannot send spans: {error}"),
        hint: "correct or unset the variable; an endpoint looks like `http://127.0.0.1:4318`".into(),
    })
}

fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::Server {
        message: format!("{what}: {}", input::reason(error)),
        hint: "choose another address with `--listen ADDRESS:PORT`".into(),
    }
}

/// Returns the addresses to listen on: loopback by default.
fn addresses(arguments: &ServeArguments) -> Result<Vec<SocketAddr>, Failure> {
    if arguments.listen.is_empty() {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        // A machine without IPv6 has only one of them.
        let own = loopback.into_iter().map(|address| SocketAddr::new(address, PORT));
        return Ok(own.filter(|address| std::net::TcpListener::bind((address.ip(), 0)).is_ok()).collect());
    }
    let parse = |text: &String| {
        let text = text.replace("localhost", "127.0.0.1");
        let address = text.parse().or_else(|_| text.parse().map(|ip| SocketAddr::new(ip, PORT)));
        address.map_err(|_: std::net::AddrParseError| Failure::Server {
            message: format!("invalid listen address `{text}`"),
            hint: "write it like `127.0.0.1:7717` or `[::1]:7717`".into(),
        })
    };
    arguments.listen.iter().map(parse).collect()
}

/// Reads the token from a file or the environment; never from the command line, which other users can see.
fn token(arguments: &ServeArguments) -> Result<Option<Token>, Failure> {
    let (text, place) = if let Some(path) = &arguments.token_file {
        let place = visible_line(&path.display().to_string());
        (Some(input::read(path, "token", TOKEN_FILE_BYTES_MAX)?), place)
    } else {
        let text = env::var("PROEM_TOKEN").ok().filter(|text| !text.trim().is_empty());
        (text, "PROEM_TOKEN".to_owned())
    };
    let Some(text) = text else { return Ok(None) };
    let token = Token::new(&text).ok_or_else(|| {
        let (bytes, least) = (text.trim().len(), Token::BYTES_MIN);
        let why = if bytes < least {
            format!("it has {bytes} bytes, and fewer than {least} can be guessed")
        } else {
            "it must be one word of ASCII characters".to_owned()
        };
        Failure::Usage {
            message: format!("cannot use the token of {place}: {why}"),
            hint: "make one with `openssl rand -hex 32`".into(),
        }
    })?;
    Ok(Some(token))
}

/// Returns the directories that requests may work in: the current one, and those of the flags.
fn workspaces(arguments: &ServeArguments) -> Result<Vec<PathBuf>, Failure> {
    let own = env::current_dir().map_err(|error| Failure::Server {
        message: format!("cannot use the working directory: {}", input::reason(&error)),
        hint: "start the server in a directory that exists".into(),
    })?;
    let mut workspaces = vec![own];
    for path in &arguments.workspace {
        let real = path.canonicalize().map_err(|error| Failure::Server {
            message: format!("cannot use the workspace {}: {}", path.display(), input::reason(&error)),
            hint: "name a directory that exists".into(),
        })?;
        workspaces.push(real);
    }
    Ok(workspaces)
}

/// Tells whether the configuration of the user lets a server read the user's files.
fn has_user_files() -> bool {
    let read = || Ok(Config::load_user(&Host::new(&HostPins::default())?)?.serve_user_files.value);
    read().unwrap_or_else(|error: proem::Error| {
        // Every build reports it, too, until the file is mended.
        let message = format!("files of the user are not read: {error}");
        log_line(LogLevel::Warning, &[("event", "configuration"), ("message", &message)]);
        false
    })
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    fn parse(words: &[&str]) -> ServeArguments {
        let command = ServeArguments::augment_args(clap::Command::new("serve"));
        let matches = command.get_matches_from([&["serve"], words].concat());
        ServeArguments::from_arg_matches(&matches).expect("these are arguments")
    }

    /// H1: by default, only this machine can connect.
    #[test]
    fn without_an_address_only_loopback_is_listened_on() {
        let own = addresses(&parse(&[])).expect("there is one");
        assert!(!own.is_empty() && own.iter().all(|address| address.ip().is_loopback()), "{own:?}");
        let all = addresses(&parse(&["--listen", "0.0.0.0:1"])).expect("it is an address");
        assert!(!all[0].ip().is_loopback(), "control: it must be asked for");
    }
}
