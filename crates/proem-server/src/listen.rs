//! The accept loop, with a time limit for headers and a graceful shutdown.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use proem_core::limit::{CONNECTIONS_WAITING_MAX, HEADER_TIME_MAX, STALL_TIME_MAX};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

use crate::app::App;
use crate::connections::{ConnectionSlot, ConnectionSlots};
use crate::front::Front;
use crate::log::{self, Level};

/// File descriptors that are reserved for the store, files and subprocesses.
const DESCRIPTORS_RESERVED: u64 = 256;

/// Maximum time that accepted requests may take after the shutdown began.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// Sockets that are bound to their addresses and do not accept connections yet.
#[derive(Debug)]
pub struct Listeners {
    listeners: Vec<TcpListener>,
}

impl Listeners {
    /// Binds the addresses.
    pub fn bind(addresses: &[SocketAddr]) -> std::io::Result<Self> {
        let listeners = addresses.iter().map(|address| listen(*address)).collect::<Result<_, _>>()?;
        Ok(Self { listeners })
    }

    /// Returns the addresses, with the ports that the system chose.
    pub fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }
}

/// Binds one address.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restarted server need not wait until old connections time out.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(CONNECTIONS_WAITING_MAX)
}

/// Returns the maximum number of connections: `most`, or fewer if the system allows fewer descriptors. The usual soft
/// limit is about 1,000; idle connections could use all of these, and then no file could be opened. The soft limit is
/// therefore raised, up to the hard limit.
fn connections_max(most: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(DESCRIPTORS_RESERVED);
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    let current = limit.current.unwrap_or(u64::MAX);
    if current < raised {
        let wanted = Rlimit { current: Some(raised), maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, wanted) {
            // The server then accepts fewer connections.
            log::line(Level::Warning, &[("event", "descriptors"), ("why", &error.to_string())]);
        }
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let room = current.saturating_sub(DESCRIPTORS_RESERVED).max(current / 2);
    usize::try_from(room).unwrap_or(usize::MAX).min(most).max(1)
}

/// Serves until `end` completes, then stops accepting connections and answers the accepted requests.
pub async fn serve(listeners: Listeners, app: Arc<App>, end: impl Future<Output = ()>) {
    let front = Arc::new(Front::new(&app));
    let ending = app.ending.clone();
    let graceful = GracefulShutdown::new();
    let mut acceptor = Acceptor::new(&app);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME_MAX).max_buf_size(64 << 10);
    tokio::pin!(end);
    loop {
        // The server must be able to stop while all slots are taken.
        let accepted = tokio::select! {
            accepted = acceptor.next(&listeners.listeners) => accepted,
            () = &mut end => break,
        };
        let Some((stream, slot, permit)) = accepted else {
            // Most likely there are no free descriptors; wait until other connections end.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (front, slot) = (Arc::clone(&front), Arc::new(slot));
        let own_slot = Arc::clone(&slot);
        let service = service_fn(move |request| {
            let (front, slot) = (Arc::clone(&front), Arc::clone(&slot));
            async move { Ok::<_, Infallible>(front.answer(request, &slot).await) }
        });
        let mut stream = Box::pin(TimeoutStream::new(stream));
        stream.as_mut().set_write_timeout_pinned(Some(STALL_TIME_MAX));
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            tokio::select! {
                // Disconnects and time-outs of clients are not errors of the server.
                ended = connection => drop(ended),
                () = own_slot.needed() => {}
            }
            drop((own_slot, permit));
        });
    }
    drop(listeners);
    // A stream of events would otherwise last until its client goes.
    ending.send_replace(true);
    if timeout(DRAIN_TIME_MAX, graceful.shutdown()).await.is_err() {
        log::line(Level::Warning, &[("event", "shutdown"), ("why", "some requests took too long")]);
    }
    log::flush();
}

/// Accepts connections, up to the maximum number.
struct Acceptor {
    most: usize,
    room: Arc<Semaphore>,
    slots: Arc<ConnectionSlots>,
    /// An accepted connection that waits for a permit.
    waiting: Option<(TcpStream, ConnectionSlot)>,
}

impl Acceptor {
    fn new(app: &App) -> Self {
        let limits = &app.options.connections;
        let most = connections_max(limits.most);
        let (room, slots) = (Arc::new(Semaphore::new(most)), ConnectionSlots::new(limits, most));
        Self { most, room, slots, waiting: None }
    }

    /// Returns the next connection with its slot, or `None` if it could not be accepted. A connection is accepted first
    /// and then waits until a connection that makes room for it has closed, so at most one exceeds the maximum.
    async fn next(
        &mut self,
        listeners: &[TcpListener],
    ) -> Option<(TcpStream, ConnectionSlot, OwnedSemaphorePermit)> {
        if self.waiting.is_none() {
            let (stream, address) = accept(listeners).await?;
            let taken = self.most - self.room.available_permits();
            self.waiting = Some((stream, self.slots.enter(address, taken)));
        }
        let permit = Arc::clone(&self.room).acquire_owned().await.ok()?;
        let (stream, slot) = self.waiting.take()?;
        Some((stream, slot, permit))
    }
}

/// Returns the next connection on any of the listeners, with the address of the client; `None` if accepting failed.
async fn accept(listeners: &[TcpListener]) -> Option<(TcpStream, IpAddr)> {
    let accepts = listeners.iter().map(|listener| Box::pin(listener.accept()));
    let (accepted, _, _) = futures_util::future::select_all(accepts).await;
    let (stream, address) = accepted.ok()?;
    stream.set_nodelay(true).ok()?;
    Some((stream, address.ip()))
}
