//! HTTP/2 to a provider, on request: one connection for all clients.
//!
//! The client speaks HTTP/1.1 all the same. Content passes as it came and at once; chunks and the spelling of header names
//! do not exist in HTTP/2.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::connect::Unreachable;
use crate::head::{HOP_BY_HOP, RequestHead, ResponseHead};
use crate::relay::{Client, Outcome};
use crate::routes::{Destination, Upstream};
use crate::tap::{Direction, Tap};

/// A body that is read from the client while it is sent.
pub(crate) type Pieces =
    StreamBody<futures_util::stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// The sending side of a connection.
pub(crate) type Sender = SendRequest<Pieces>;

/// The open connections.
#[derive(Default)]
pub(crate) struct Multiplexed(Mutex<HashMap<Arc<Upstream>, Sender>>);

impl Multiplexed {
    /// Returns the connection to a provider, if it is open.
    pub(crate) fn get(&self, upstream: &Arc<Upstream>) -> Option<Sender> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, sender| !sender.is_closed());
        open.get(upstream).cloned()
    }

    /// Speaks HTTP/2 on a connection, and keeps it for others.
    pub(crate) async fn add(
        &self,
        upstream: &Arc<Upstream>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Sender, Unreachable> {
        let opened = handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = opened.map_err(|error| Unreachable(error.to_string()))?;
        // Its end is noticed by its requests.
        tokio::spawn(connection);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(Arc::clone(upstream), sender.clone());
        Ok(sender)
    }
}

/// Runs one exchange.
pub(crate) async fn exchange(
    client: &mut Client,
    mut sender: Sender,
    head: &RequestHead,
    destination: &Destination,
    tap: &mut Option<Tap>,
) -> Outcome {
    let (pieces, received) = mpsc::channel::<Bytes>(1);
    let body = futures_util::stream::unfold(received, |mut received: mpsc::Receiver<Bytes>| async move {
        let piece = received.recv().await?;
        Some((Ok(Frame::data(piece)), received))
    });
    let Some(request) = request(head, destination, StreamBody::new(Box::pin(body))) else {
        return Outcome::Refuse("a header cannot be sent over HTTP/2");
    };
    let Client { reader, writer, buffer, is_half_closed } = client;
    let mut tap_up = tap.as_ref().map(Tap::request);
    let mut framing = head.framing.clone();
    let is_sent = AtomicBool::new(false);
    let upload = async {
        loop {
            let mut content = Vec::new();
            let taken = framing.advance(buffer, &mut |bytes| content.extend_from_slice(bytes)).ok()?;
            buffer.advance(taken);
            if let Some(tap) = &mut tap_up {
                tap.push(&content);
            }
            if !content.is_empty() && pieces.send(Bytes::from(content)).await.is_err() {
                // The provider reads no more; its response is still to come.
                return std::future::pending().await;
            }
            if framing.is_done() {
                break;
            }
            buffer.reserve(16 << 10);
            if reader.read_buf(buffer).await.ok()? == 0 {
                return None;
            }
        }
        drop(pieces);
        is_sent.store(true, Ordering::Relaxed);
        if let Some(tap) = &mut tap_up {
            tap.end();
        }
        // A client that is gone ends the exchange.
        while buffer.len() < 64 << 10 {
            buffer.reserve(4 << 10);
            if reader.read_buf(buffer).await.ok()? == 0 {
                return None;
            }
        }
        std::future::pending::<Option<()>>().await
    };
    let download = async {
        let Ok(response) = sender.send_request(request).await else { return None };
        pass(response, writer, head, tap).await
    };
    tokio::select! {
        biased;
        done = download => match done {
            // The rest of a request must not be taken for another one.
            Some(true) if !*is_half_closed && is_sent.load(Ordering::Relaxed) => Outcome::Next(None),
            Some(_) => Outcome::Close,
            None => Outcome::Reset,
        },
        _ = upload => Outcome::Close,
    }
}

/// Builds the request; `None` if it has a header that HTTP/2 cannot hold.
fn request(head: &RequestHead, destination: &Destination, body: Pieces) -> Option<Request<Pieces>> {
    let uri = format!("https://{}{}", destination.upstream.host, destination.target);
    let mut request = Request::new(body);
    *request.method_mut() = Method::from_bytes(head.method.as_bytes()).ok()?;
    *request.uri_mut() = uri.parse().ok()?;
    *request.version_mut() = Version::HTTP_2;
    let mut headers = HeaderMap::new();
    for (name, value) in head.head.fields() {
        let is_own = HOP_BY_HOP.iter().any(|hop| name.eq_ignore_ascii_case(hop))
            || ["host", "transfer-encoding", "te", "expect", crate::guard::TOKEN_HEADER]
                .iter()
                .any(|other| name.eq_ignore_ascii_case(other))
            || head.head.has_word("connection", name);
        if !is_own {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            headers.append(name, HeaderValue::from_bytes(value).ok()?);
        }
    }
    *request.headers_mut() = headers;
    Some(request)
}

/// Passes the response on; true if the client's connection can be used again, `None` if the provider ended it early.
async fn pass(
    response: Response<Incoming>,
    to: &mut (impl AsyncWrite + Unpin),
    head: &RequestHead,
    tap: &mut Option<Tap>,
) -> Option<bool> {
    let (parts, mut body) = response.into_parts();
    let has_body = head.method != "HEAD" && !matches!(parts.status.as_u16(), 204 | 304);
    let is_chunked = has_body && !parts.headers.contains_key(hyper::header::CONTENT_LENGTH);
    let mut out = format!(
        "HTTP/1.1 {} {}\r\n",
        parts.status.as_u16(),
        parts.status.canonical_reason().unwrap_or_default()
    );
    if is_chunked {
        out.push_str("transfer-encoding: chunked\r\n");
    }
    if !head.keeps_alive {
        out.push_str("connection: close\r\n");
    }
    let mut out = out.into_bytes();
    write_headers(&mut out, &parts.headers);
    out.extend_from_slice(b"\r\n");
    // The head does not wait for the content.
    if to.write_all(&out).await.is_err() {
        return Some(false);
    }
    if let (Some(tap), Ok(Some(seen))) = (&mut *tap, ResponseHead::take(&mut out.as_slice().into())) {
        tap.head(&seen);
    }
    out.clear();
    while let Some(frame) = body.frame().await {
        let frame = frame.ok()?;
        match frame.into_data() {
            Ok(data) if !data.is_empty() => {
                if let Some(tap) = tap {
                    tap.push(Direction::FromProvider, &data);
                }
                if is_chunked {
                    out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
                }
                out.extend_from_slice(&data);
                if is_chunked {
                    out.extend_from_slice(b"\r\n");
                }
                if to.write_all(&out).await.is_err() {
                    return Some(false);
                }
                out.clear();
            }
            Ok(_) => {}
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                if is_chunked {
                    out.extend_from_slice(b"0\r\n");
                    write_headers(&mut out, &trailers);
                    out.extend_from_slice(b"\r\n");
                    let is_written = to.write_all(&out).await.is_ok();
                    complete(tap);
                    return Some(is_written && head.keeps_alive);
                }
            }
        }
    }
    if is_chunked {
        out.extend_from_slice(b"0\r\n\r\n");
    }
    let is_written = to.write_all(&out).await.is_ok();
    complete(tap);
    Some(is_written && head.keeps_alive)
}

fn complete(tap: &mut Option<Tap>) {
    if let Some(tap) = tap {
        tap.complete();
    }
}

fn write_headers(out: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}
