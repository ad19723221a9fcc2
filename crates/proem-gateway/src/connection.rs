//! The connection of one client: request after request, each to the provider that its path names.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use proem_core::limit::HEADER_TIME_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::answer::OwnAnswer;
use crate::connect::{Link, Reached};
use crate::gateway::Gateway;
use crate::guard;
use crate::head::{BadHead, RequestHead};
use crate::http2;
use crate::observe;
use crate::relay::{Client, Outcome, exchange};
use crate::routes::Destination;
use crate::tap::Tap;

/// Longest time between two requests of a connection.
const IDLE_TIME_MAX: Duration = Duration::from_mins(10);

/// Time and bytes for which the rest of a request is read after the last response, so that it arrives before the end.
const LINGER_TIME_MAX: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 4 << 20;

/// Serves a connection until it ends.
pub(crate) async fn serve(stream: TcpStream, gateway: Arc<Gateway>, mut ending: watch::Receiver<bool>) {
    let (reader, writer) = stream.into_split();
    let mut client = Client { reader, writer, buffer: BytesMut::new(), is_half_closed: false };
    let mut free: Option<Box<Link>> = None;
    loop {
        let head = tokio::select! {
            head = next_head(&mut client) => head,
            _ = ending.wait_for(|is_ending| *is_ending) => break,
        };
        let head = match head {
            Ok(Some(head)) => head,
            Ok(None) => break,
            Err(answer) => return end(client, answer.bytes(false)).await,
        };
        let is_head = head.method == "HEAD";
        let destination = match route(&gateway, &head) {
            Ok(destination) => destination,
            Err(answer) => return end(client, answer.bytes(is_head)).await,
        };
        gateway.counters.requests.fetch_add(1, Ordering::Relaxed);
        let reached = match take(&gateway, free.take(), &destination, head.upgrades).await {
            Ok(reached) => reached,
            Err(answer) => return end(client, answer.bytes(is_head)).await,
        };
        let mut tap = tap(&gateway, &head, &destination);
        let outcome = match reached {
            Reached::Own(link) => {
                let bytes = head.forwarded(&destination.target, &destination.upstream.host);
                exchange(&mut client, link, &head, bytes, &mut tap).await
            }
            Reached::Shared(sender) => {
                http2::exchange(&mut client, sender, &head, &destination, &mut tap).await
            }
        };
        // The analysis need not wait for the end of the connection.
        drop(tap);
        match outcome {
            Outcome::Next(link) => free = link,
            Outcome::Close => return linger(client).await,
            Outcome::Reset => {
                // The client sees what the provider did.
                let _ = client.writer.as_ref().set_zero_linger();
                // An orderly end would come first otherwise.
                client.writer.forget();
                return;
            }
            Outcome::Refuse(why) => return end(client, malformed(why).bytes(is_head)).await,
        }
    }
    if let Some(link) = free {
        gateway.connector.keep(*link);
    }
}

/// Reads the next head; `None` at the end of the connection.
async fn next_head(client: &mut Client) -> Result<Option<RequestHead>, OwnAnswer> {
    let too_slow =
        || OwnAnswer::new("408 Request Timeout", "too_slow", "the head of the request took too long");
    if client.buffer.is_empty() && !client.is_half_closed {
        client.buffer.reserve(4 << 10);
        match timeout(IDLE_TIME_MAX, client.reader.read_buf(&mut client.buffer)).await {
            Ok(Ok(read)) if read > 0 => {}
            _ => return Ok(None),
        }
    }
    let rest = async {
        loop {
            match RequestHead::take(&mut client.buffer) {
                Ok(Some(head)) => return Ok(Some(head)),
                Ok(None) => {}
                Err(BadHead::Malformed(why)) => return Err(malformed(why)),
                Err(BadHead::TooLarge) => {
                    let message = "the head of the request is too large";
                    return Err(OwnAnswer::new("431 Request Header Fields Too Large", "too_large", message));
                }
            }
            client.buffer.reserve(4 << 10);
            let is_over = client.is_half_closed;
            match if is_over { Ok(0) } else { client.reader.read_buf(&mut client.buffer).await } {
                Ok(read) if read > 0 => {}
                _ => return Ok(None),
            }
        }
    };
    timeout(HEADER_TIME_MAX, rest).await.unwrap_or_else(|_| Err(too_slow()))
}

fn malformed(why: &str) -> OwnAnswer {
    OwnAnswer::new("400 Bad Request", "malformed", format!("the request is ambiguous or not HTTP/1.1: {why}"))
}

/// Checks a request and finds the place to which it goes.
fn route(gateway: &Gateway, head: &RequestHead) -> Result<Destination, OwnAnswer> {
    if !guard::is_own_host(head, &gateway.options.hosts) {
        let message = "the `Host` is not a name of this gateway";
        let answer = OwnAnswer::new("421 Misdirected Request", "wrong_host", message);
        return Err(answer.with_hint("use its address, or start it with `--host NAME`"));
    }
    let path = guard::absolute(&head.target).map_or(head.target.as_str(), |(_, path)| path);
    let Some(path) = guard::without_token(gateway.options.token.as_ref(), head, path) else {
        let answer =
            OwnAnswer::new("401 Unauthorized", "no_token", "the token of the gateway is missing or wrong");
        return Err(answer.with_hint("send `x-proem-token: TOKEN`, or begin the path with `/TOKEN/`"));
    };
    gateway.options.routes.find(path, &head.head).ok_or_else(|| {
        let names = gateway.options.routes.names().join("/, /");
        let message = format!("no route begins so; expected one of: /{names}/, /custom/NAME/");
        OwnAnswer::new("404 Not Found", "unknown_route", message)
            .with_hint("add one with `--upstream NAME=URL`")
    })
}

/// Returns the connection of the last request if it still fits, or another one.
async fn take(
    gateway: &Gateway,
    free: Option<Box<Link>>,
    destination: &Destination,
    upgrades: bool,
) -> Result<Reached, OwnAnswer> {
    if let Some(mut link) = free {
        if link.upstream == destination.upstream && link.is_quiet() {
            return Ok(Reached::Own(link));
        } else if link.upstream != destination.upstream {
            gateway.connector.keep(*link);
        }
    }
    gateway.connector.reach(&destination.upstream, upgrades).await.map_err(|unreachable| {
        gateway.counters.unreachable.fetch_add(1, Ordering::Relaxed);
        let message = format!("cannot reach {}: {}", destination.upstream.url(), unreachable.0);
        OwnAnswer::new("502 Bad Gateway", "unreachable", message)
            .with_hint("check the network, or name another address with `--upstream NAME=URL`")
    })
}

/// Begins the copy of a request that is a call to a model.
fn tap(gateway: &Gateway, head: &RequestHead, destination: &Destination) -> Option<Tap> {
    let observer = gateway.observer.as_ref()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let at = i64::try_from(now.as_millis()).ok()?;
    let begin = observe::begin(head, destination, at, &gateway.account_key)?;
    observer.begin(begin)
}

/// Sends a last response.
async fn end(mut client: Client, answer: Vec<u8>) {
    // A client that is gone needs none.
    let _ = client.writer.write_all(&answer).await;
    linger(client).await;
}

/// Ends the connection. Unread bytes of the client would make the system take back the response, and so they are read.
async fn linger(mut client: Client) {
    let _ = client.writer.shutdown().await;
    let mut left = LINGER_BYTES_MAX;
    let rest = async {
        loop {
            client.buffer.clear();
            client.buffer.reserve(16 << 10);
            match client.reader.read_buf(&mut client.buffer).await {
                Ok(read) if read > 0 && read <= left => left -= read,
                _ => return,
            }
        }
    };
    let _ = timeout(LINGER_TIME_MAX, rest).await;
}
