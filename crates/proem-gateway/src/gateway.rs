//! The gateway: its options, its listeners, and its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proem_core::limit::{CONNECTIONS_WAITING_MAX, GATEWAY_CONNECTIONS_MAX};
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepidle};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::analysis::Analysis;
use crate::connect::Connector;
use crate::connection;
use crate::guard::GatewayToken;
use crate::routes::Routes;
use crate::tap::{Counters, Observer};

/// Descriptors that are reserved for everything but connections.
const DESCRIPTORS_RESERVED: u64 = 256;

/// Time after which the system asks a silent client if it is still there.
const KEEPALIVE_TIME: Duration = Duration::from_secs(30);

/// The settings of a gateway.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// The routes to providers.
    pub routes: Routes,
    /// The token that requests must send, if any.
    pub token: Option<GatewayToken>,
    /// Host names that clients may use, besides addresses.
    pub hosts: Vec<String>,
    /// True to speak HTTP/2 with providers that offer it.
    pub uses_http2: bool,
    /// Longest time that running exchanges have after the end began.
    pub drain_time_max: Duration,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        let drain_time_max = Duration::from_secs(10);
        Self { routes: Routes::built_in(), token: None, hosts: Vec::new(), uses_http2: false, drain_time_max }
    }
}

/// A gateway.
pub struct Gateway {
    pub(crate) options: GatewayOptions,
    pub(crate) connector: Connector,
    pub(crate) observer: Option<Observer>,
    pub(crate) counters: Arc<Counters>,
    /// The key with which accounts are hashed.
    pub(crate) account_key: [u8; 32],
}

impl Gateway {
    /// Creates a gateway; without an analysis it only passes bytes on.
    #[must_use]
    pub fn new(options: GatewayOptions, analysis: Option<&Analysis>, account_key: [u8; 32]) -> Arc<Self> {
        let counters = analysis.map_or_else(Arc::default, Analysis::counters);
        let observer = analysis.map(Analysis::observer);
        let connector = Connector::new(options.uses_http2);
        Arc::new(Self { options, connector, observer, counters, account_key })
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns a random key for accounts, for gateways without a store.
    #[must_use]
    pub fn random_key() -> [u8; 32] {
        let mut key = [0; 32];
        // Without randomness accounts cannot be told apart, and nothing else changes.
        let _ = getrandom::fill(&mut key);
        key
    }
}

/// Sockets that are bound and do not accept connections yet.
#[derive(Debug)]
pub struct GatewayListeners(Vec<TcpListener>);

impl GatewayListeners {
    /// Binds the addresses.
    pub fn bind(addresses: &[SocketAddr]) -> std::io::Result<Self> {
        let listen = |address: &SocketAddr| {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            socket.bind(*address)?;
            socket.listen(CONNECTIONS_WAITING_MAX)
        };
        addresses.iter().map(listen).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the addresses, with the ports that the system chose.
    pub fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        self.0.iter().map(TcpListener::local_addr).collect()
    }
}

/// Serves until `end` completes, then lets running exchanges finish.
pub async fn serve(listeners: GatewayListeners, gateway: Arc<Gateway>, end: impl Future<Output = ()>) {
    let room = Arc::new(Semaphore::new(connections_max()));
    let (ending, ended) = watch::channel(false);
    let mut running = JoinSet::new();
    tokio::pin!(end);
    loop {
        let accepted = tokio::select! {
            permit = Arc::clone(&room).acquire_owned() => {
                let Ok(permit) = permit else { break };
                tokio::select! {
                    stream = accept(&listeners.0) => (stream, permit),
                    () = &mut end => break,
                }
            }
            () = &mut end => break,
        };
        while running.try_join_next().is_some() {}
        let (Some(stream), permit) = accepted else {
            // Most likely there are no free descriptors; wait until other connections end.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (gateway, ended) = (Arc::clone(&gateway), ended.clone());
        running.spawn(async move {
            connection::serve(stream, gateway, ended).await;
            drop(permit);
        });
    }
    drop(listeners);
    let _ = ending.send(true);
    let all = async { while running.join_next().await.is_some() {} };
    let _ = timeout(gateway.options.drain_time_max, all).await;
}

async fn accept(listeners: &[TcpListener]) -> Option<tokio::net::TcpStream> {
    let accepts = listeners.iter().map(|listener| Box::pin(listener.accept()));
    let (accepted, _, _) = futures_util::future::select_all(accepts).await;
    let (stream, _) = accepted.ok()?;
    stream.set_nodelay(true).ok()?;
    // A client that is gone and one that only sends nothing more look the same, until the system asks.
    let _ = set_socket_keepalive(&stream, true).and_then(|()| set_tcp_keepidle(&stream, KEEPALIVE_TIME));
    Some(stream)
}

/// Raises the soft limit of descriptors as far as the system allows. A process that starts others must not do so: they
/// inherit it.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = (GATEWAY_CONNECTIONS_MAX as u64) * 2 + DESCRIPTORS_RESERVED;
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if limit.current.is_some_and(|current| current < raised) {
        // Without more descriptors fewer connections are accepted.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
    }
}

/// Returns the number of connections that the system allows: each needs two descriptors.
fn connections_max() -> usize {
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let room = current.saturating_sub(DESCRIPTORS_RESERVED).max(current / 2) / 2;
    usize::try_from(room).unwrap_or(usize::MAX).clamp(1, GATEWAY_CONNECTIONS_MAX)
}
