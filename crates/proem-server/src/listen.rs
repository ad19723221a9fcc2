//! The accept loop: with time limits for headers, and an end that answers what was accepted.

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
use crate::front::Front;
use crate::log;
use crate::places::{Place, Places};

/// Descriptors that connections leave to the store, to files and to programs.
const DESCRIPTORS_KEPT: u64 = 256;

/// How long accepted requests may still take when the server ends.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// A server that has its addresses, and accepts once it is told to.
#[derive(Debug)]
pub struct Listening {
    listeners: Vec<TcpListener>,
}

impl Listening {
    /// Takes the addresses.
    pub fn bind(addresses: &[SocketAddr]) -> std::io::Result<Self> {
        let listeners = addresses.iter().map(|address| listen(*address)).collect::<Result<_, _>>()?;
        Ok(Self { listeners })
    }

    /// The addresses, with the ports that the system chose.
    pub fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }
}

/// Takes one address.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A server that is started again need not wait for connections of the one before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(CONNECTIONS_WAITING_MAX)
}

/// How many connections there may be: as many as are wanted, if the system gives so many descriptors. The usual limit is a
/// thousand, which silent connections alone could take, so that no file can be opened; it may be raised to another one.
fn connections_max(most: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(DESCRIPTORS_KEPT);
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    let current = limit.current.unwrap_or(u64::MAX);
    if current < raised {
        let wanted = Rlimit { current: Some(raised), maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, wanted) {
            // There are fewer connections then.
            log::line("warning", &[("event", "descriptors"), ("why", &error.to_string())]);
        }
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let room = current.saturating_sub(DESCRIPTORS_KEPT).max(current / 2);
    usize::try_from(room).unwrap_or(usize::MAX).min(most).max(1)
}

/// Serves until `end` comes: then nothing is accepted any more, and what was accepted is answered.
pub async fn serve(listening: Listening, app: Arc<App>, end: impl Future<Output = ()>) {
    let front = Arc::new(Front::new(&app));
    let graceful = GracefulShutdown::new();
    let mut door = Door::new(&app);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME_MAX).max_buf_size(64 << 10);
    tokio::pin!(end);
    loop {
        // A full house must not keep the server from ending.
        let entered = tokio::select! {
            entered = door.next(&listening.listeners) => entered,
            () = &mut end => break,
        };
        let Some((stream, place, permit)) = entered else {
            // Out of descriptors, most likely: others are about to end.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (front, place) = (Arc::clone(&front), Arc::new(place));
        let held = Arc::clone(&place);
        let service = service_fn(move |request| {
            let (front, place) = (Arc::clone(&front), Arc::clone(&place));
            async move { Ok::<_, Infallible>(front.answer(request, &place).await) }
        });
        let mut stream = Box::pin(TimeoutStream::new(stream));
        stream.as_mut().set_write_timeout_pinned(Some(STALL_TIME_MAX));
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            tokio::select! {
                // A client that goes away, or is too slow, is its own business.
                ended = connection => drop(ended),
                () = held.needed() => {}
            }
            drop((held, permit));
        });
    }
    drop(listening);
    if timeout(DRAIN_TIME_MAX, graceful.shutdown()).await.is_err() {
        log::line("warning", &[("event", "shutdown"), ("why", "some requests took too long")]);
    }
    log::flush();
}

/// Lets connections in, as many as there are places for.
struct Door {
    most: usize,
    room: Arc<Semaphore>,
    places: Arc<Places>,
    /// A connection that was accepted and waits for its place.
    waiting: Option<(TcpStream, Place)>,
}

impl Door {
    fn new(app: &App) -> Self {
        let limits = &app.options.connections;
        let most = connections_max(limits.most);
        let (room, places) = (Arc::new(Semaphore::new(most)), Places::new(limits, most));
        Self { most, room, places, waiting: None }
    }

    /// The next connection, with its place; `None` when it could not be accepted. It is accepted first and then waits, so
    /// that a connection that is closed for it has gone before: there is never more than one too many.
    async fn next(&mut self, listeners: &[TcpListener]) -> Option<(TcpStream, Place, OwnedSemaphorePermit)> {
        if self.waiting.is_none() {
            let (stream, address) = accept(listeners).await?;
            let taken = self.most - self.room.available_permits();
            self.waiting = Some((stream, self.places.enter(address, taken)));
        }
        let permit = Arc::clone(&self.room).acquire_owned().await.ok()?;
        let (stream, place) = self.waiting.take()?;
        Some((stream, place, permit))
    }
}

/// The next connection on any of the addresses, and its other end; `None` when it could not be taken.
async fn accept(listeners: &[TcpListener]) -> Option<(TcpStream, IpAddr)> {
    let accepts = listeners.iter().map(|listener| Box::pin(listener.accept()));
    let (accepted, _, _) = futures_util::future::select_all(accepts).await;
    let (stream, address) = accepted.ok()?;
    stream.set_nodelay(true).ok()?;
    Some((stream, address.ip()))
}
