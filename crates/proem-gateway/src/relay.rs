//! One exchange: the request goes to the provider while its response comes back, byte for byte.
//!
//! Nothing is repeated, stored or waited for. What the provider does to its connection (a reset, an early end) is done to
//! the client's, and the other way round.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::connect::Link;
use crate::framing::Framing;
use crate::head::{BadHead, RequestHead, ResponseHead};
use crate::tap::{Direction, Tap};

/// Sizes of reads: small for streams that wait, large for bodies.
const READ_BYTES_MIN: usize = 4 << 10;
const READ_BYTES_MAX: usize = 64 << 10;

/// Bytes of the next request that are read while a response is running.
const AHEAD_BYTES_MAX: usize = 64 << 10;

/// Longest time for the rest of a request whose response is complete.
const REST_TIME_MAX: Duration = Duration::from_secs(30);

/// The connection of a client.
pub(crate) struct Client {
    pub(crate) reader: OwnedReadHalf,
    pub(crate) writer: OwnedWriteHalf,
    /// Bytes that were read and not used yet.
    pub(crate) buffer: BytesMut,
    /// True if the client sends nothing more.
    pub(crate) is_half_closed: bool,
}

/// The state of the connections after an exchange.
pub(crate) enum Outcome {
    /// The next request can follow; the connection to the provider is free, if it is given.
    Next(Option<Box<Link>>),
    /// Both connections end.
    Close,
    /// The provider reset its connection, and so the client's is reset.
    Reset,
    /// The request is not HTTP; nothing was answered yet.
    Refuse(&'static str),
}

/// The end of a response.
enum Answered {
    /// It is complete. True if the provider's connection can be used again, and if the client's can.
    Complete {
        is_free: bool,
        keeps_alive: bool,
    },
    /// Both sides speak another protocol from here on.
    Upgraded,
    /// The provider ended it early.
    Closed,
    Reset,
    /// The client is gone.
    Gone,
}

/// The end of a request.
enum Sent {
    Done,
    /// The client reset its connection.
    Gone,
    /// The client sent something that is not a body.
    Bad,
}

/// Facts that both halves of an exchange share.
#[derive(Default)]
struct Shared {
    is_sent: AtomicBool,
    is_answered: AtomicBool,
    is_half_closed: AtomicBool,
    has_written: AtomicBool,
    /// Bytes of another request have come.
    ahead: Notify,
}

/// Runs one exchange. `bytes` is the head for the provider.
pub(crate) async fn exchange(
    client: &mut Client,
    mut link: Box<Link>,
    request: &RequestHead,
    bytes: Vec<u8>,
    tap: &mut Option<Tap>,
) -> Outcome {
    let shared = Shared::default();
    let Client { reader, writer, buffer, is_half_closed } = client;
    let Link { reader: source, writer: sink, buffer: held, .. } = &mut *link;
    let (mut tap_up, mut tap_down) = (tap.as_ref().map(Tap::request), tap.as_mut());
    let mut from_client = Incoming { reader, buffer, size: READ_BYTES_MIN };
    let (answered, sent) = {
        let up = upload(&mut from_client, sink, (bytes, request.framing.clone()), &mut tap_up, &shared);
        let down = download(
            Incoming { reader: source, buffer: held, size: READ_BYTES_MIN },
            writer,
            request,
            &mut tap_down,
            &shared,
        );
        tokio::pin!(up, down);
        let mut sent = None;
        let answered = loop {
            tokio::select! {
                biased;
                answered = &mut down => break answered,
                end = &mut up, if sent.is_none() => match end {
                    Sent::Done => sent = Some(Sent::Done),
                    Sent::Gone => break Answered::Gone,
                    Sent::Bad => { sent = Some(Sent::Bad); break Answered::Closed }
                },
            }
        };
        let is_complete = matches!(answered, Answered::Complete { keeps_alive: true, .. });
        if is_complete && !shared.is_sent.load(Ordering::Relaxed) && sent.is_none() {
            // A provider may answer before it has read the request.
            shared.is_answered.store(true, Ordering::Relaxed);
            let _ = timeout(REST_TIME_MAX, &mut up).await;
        }
        (answered, sent)
    };
    *is_half_closed |= shared.is_half_closed.load(Ordering::Relaxed);
    if matches!(sent, Some(Sent::Bad)) && !shared.has_written.load(Ordering::Relaxed) {
        return Outcome::Refuse("the body is not chunked as the head says");
    }
    match answered {
        Answered::Complete { is_free, keeps_alive }
            if shared.is_sent.load(Ordering::Relaxed) && keeps_alive =>
        {
            Outcome::Next((is_free && !*is_half_closed).then_some(link))
        }
        Answered::Upgraded => tunnel(client, link, tap).await,
        Answered::Reset => Outcome::Reset,
        Answered::Complete { .. } | Answered::Closed | Answered::Gone => Outcome::Close,
    }
}

/// A reading side with its buffer.
struct Incoming<'b, R> {
    reader: &'b mut R,
    buffer: &'b mut BytesMut,
    size: usize,
}

impl<R: AsyncRead + Unpin> Incoming<'_, R> {
    /// Reads more; 0 at the end. Can be cancelled.
    async fn more(&mut self) -> io::Result<usize> {
        self.buffer.reserve(self.size);
        let read = self.reader.read_buf(self.buffer).await?;
        // The next read is larger while the buffer fills up.
        self.size = if read >= self.size { (self.size * 2).min(READ_BYTES_MAX) } else { self.size };
        Ok(read)
    }
}

/// Sends the request, then waits for the end of the client's connection and passes it on.
async fn upload<R: AsyncRead + Unpin>(
    from: &mut Incoming<'_, R>,
    to: &mut (impl AsyncWrite + Unpin),
    (mut out, mut framing): (Vec<u8>, Framing),
    tap: &mut Option<crate::tap::RequestTap>,
    shared: &Shared,
) -> Sent {
    let mut is_broken;
    loop {
        let body = framing.advance(from.buffer, &mut |content| {
            if let Some(tap) = tap {
                tap.push(content);
            }
        });
        let Ok(taken) = body else { return Sent::Bad };
        out.extend_from_slice(from.buffer.get(..taken).unwrap_or_default());
        from.buffer.advance(taken);
        // TLS holds bytes back until they are flushed.
        is_broken = to.write_all(&out).await.is_err() || to.flush().await.is_err();
        out.clear();
        if framing.is_done() || is_broken {
            break;
        }
        match from.more().await {
            Ok(0) => {
                shared.is_half_closed.store(true, Ordering::Relaxed);
                let _ = to.shutdown().await;
                return std::future::pending().await;
            }
            Ok(_) => {}
            Err(_) => return Sent::Gone,
        }
    }
    drop(out);
    if is_broken {
        // The provider has closed, perhaps after a response that is still to be read.
        return std::future::pending().await;
    }
    if let Some(tap) = tap {
        tap.end();
    }
    shared.is_sent.store(true, Ordering::Relaxed);
    if shared.is_answered.load(Ordering::Relaxed) {
        return Sent::Done;
    }
    while from.buffer.len() < AHEAD_BYTES_MAX {
        match from.more().await {
            Ok(0) => {
                // The provider learns it as without the gateway, and decides.
                shared.is_half_closed.store(true, Ordering::Relaxed);
                let _ = to.shutdown().await;
                break;
            }
            Ok(_) => shared.ahead.notify_one(),
            Err(_) => return Sent::Gone,
        }
    }
    std::future::pending().await
}

/// Passes the response on.
async fn download<R: AsyncRead + Unpin>(
    mut from: Incoming<'_, R>,
    to: &mut (impl AsyncWrite + Unpin),
    request: &RequestHead,
    tap: &mut Option<&mut Tap>,
    shared: &Shared,
) -> Answered {
    let head = loop {
        match ResponseHead::take(from.buffer) {
            Ok(Some(head)) if head.is_interim() => {
                shared.has_written.store(true, Ordering::Relaxed);
                if to.write_all(&head.forwarded(false, false)).await.is_err() {
                    return Answered::Gone;
                }
            }
            Ok(Some(head)) => break head,
            Ok(None) => match from.more().await {
                Ok(0) => return unread(from, to).await,
                Ok(_) => {}
                Err(error) => return broken(&error),
            },
            Err(BadHead::Malformed(_) | BadHead::TooLarge) => return as_it_is(from, to, shared).await,
        }
    };
    shared.has_written.store(true, Ordering::Relaxed);
    let is_upgrade = head.status == 101 && request.upgrades;
    let (mut framing, is_reusable) = head.framing(&request.method);
    // A provider that ends its connection does not read the rest of the request.
    let reads_on = head.keeps_alive || shared.is_sent.load(Ordering::Relaxed);
    let keeps_alive = request.keeps_alive && is_reusable && reads_on;
    if let Some(tap) = tap {
        tap.head(&head);
    }
    let mut out = head.forwarded(is_upgrade, !keeps_alive);
    if is_upgrade {
        return if to.write_all(&out).await.is_ok() { Answered::Upgraded } else { Answered::Gone };
    }
    loop {
        let body = framing.advance(from.buffer, &mut |content| {
            if let Some(tap) = tap {
                tap.push(Direction::FromProvider, content);
            }
        });
        let taken = body.unwrap_or(from.buffer.len());
        out.extend_from_slice(from.buffer.get(..taken).unwrap_or_default());
        from.buffer.advance(taken);
        if to.write_all(&out).await.is_err() {
            return Answered::Gone;
        }
        out.clear();
        if body.is_err() {
            return as_it_is(from, to, shared).await;
        }
        if framing.is_done() {
            break;
        }
        match from.more().await {
            Ok(0) if framing == Framing::UntilClose => break,
            Ok(0) => return Answered::Closed,
            Ok(_) => {}
            Err(error) => return broken(&error),
        }
    }
    if let Some(tap) = tap {
        tap.complete();
    }
    let is_free = is_reusable && head.keeps_alive && from.buffer.is_empty();
    Answered::Complete { is_free, keeps_alive }
}

/// Passes on the beginning of a response that ended in its head.
async fn unread<R>(from: Incoming<'_, R>, to: &mut (impl AsyncWrite + Unpin)) -> Answered {
    // A client that is gone learns nothing more.
    let _ = to.write_all(from.buffer).await;
    Answered::Closed
}

/// Passes on bytes that are not HTTP, until the provider closes.
async fn as_it_is<R: AsyncRead + Unpin>(
    mut from: Incoming<'_, R>,
    to: &mut (impl AsyncWrite + Unpin),
    shared: &Shared,
) -> Answered {
    loop {
        shared.has_written.store(true, Ordering::Relaxed);
        if to.write_all(from.buffer).await.is_err() {
            return Answered::Gone;
        }
        from.buffer.clear();
        let read = tokio::select! {
            read = from.more() => read,
            // The client has seen an end of the response.
            () = shared.ahead.notified() => return Answered::Closed,
        };
        match read {
            Ok(0) => return Answered::Closed,
            Ok(_) => {}
            Err(error) => return broken(&error),
        }
    }
}

fn broken(error: &io::Error) -> Answered {
    // A provider that forgets to end TLS has closed.
    if error.kind() == io::ErrorKind::UnexpectedEof { Answered::Closed } else { Answered::Reset }
}

/// Copies bytes both ways until both sides have ended.
async fn tunnel(client: &mut Client, mut link: Box<Link>, tap: &mut Option<Tap>) -> Outcome {
    let (mut up, mut down) = match tap {
        Some(tap) => {
            let (up, down) = tap.upgraded();
            (Some(up), Some(down))
        }
        None => (None, None),
    };
    let Link { reader: source, writer: sink, buffer: held, .. } = &mut *link;
    let from_client =
        Incoming { reader: &mut client.reader, buffer: &mut client.buffer, size: READ_BYTES_MIN };
    let from_provider = Incoming { reader: source, buffer: held, size: READ_BYTES_MIN };
    let up = copy(from_client, sink, |bytes| {
        if let Some(tap) = &mut up {
            tap.push(Direction::FromClient, bytes);
        }
    });
    let down = copy(from_provider, &mut client.writer, |bytes| {
        if let Some(tap) = &mut down {
            tap.push(Direction::FromProvider, bytes);
        }
    });
    match tokio::try_join!(up, down) {
        Ok(_) => Outcome::Close,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Outcome::Close,
        Err(_) => Outcome::Reset,
    }
}

async fn copy<R: AsyncRead + Unpin>(
    mut from: Incoming<'_, R>,
    to: &mut (impl AsyncWrite + Unpin),
    mut seen: impl FnMut(&[u8]),
) -> io::Result<()> {
    loop {
        seen(from.buffer);
        to.write_all(from.buffer).await?;
        to.flush().await?;
        from.buffer.clear();
        if from.more().await? == 0 {
            return to.shutdown().await;
        }
    }
}
