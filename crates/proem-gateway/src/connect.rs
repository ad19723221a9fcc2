//! Connections to providers: TCP or TLS, with the certificates that the system trusts.
//!
//! A client's connection keeps its own connection to the provider, so that a lost one is noticed as without the gateway.
//! A connection that a client leaves behind serves other clients for a few seconds.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use proem_core::limit::GATEWAY_CONNECT_TIME_MAX;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::http2::{Multiplexed, Sender};
use crate::routes::Upstream;

/// Longest time for which a connection without a client is kept. Servers close idle connections after five seconds or more.
const IDLE_TIME_MAX: Duration = Duration::from_secs(3);

/// Connections without a client that are kept for each provider.
const IDLE_MAX: usize = 32;

/// Free connections with the time since when they are.
type IdleLinks = HashMap<Arc<Upstream>, Vec<(Link, Instant)>>;

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection to a provider.
pub(crate) struct Link {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    /// Bytes that were read and not used yet.
    pub(crate) buffer: BytesMut,
}

impl Link {
    /// Tells if the provider has neither closed the connection nor sent anything.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut byte = [0; 1];
        let mut context = Context::from_waker(std::task::Waker::noop());
        let polled = Pin::new(&mut self.reader).poll_read(&mut context, &mut ReadBuf::new(&mut byte));
        matches!(polled, Poll::Pending) && self.buffer.is_empty()
    }
}

/// A way to a provider.
pub(crate) enum Reached {
    /// A connection of HTTP/1.1 for one request at a time.
    Own(Box<Link>),
    /// A connection of HTTP/2 that all clients share.
    Shared(Sender),
}

/// Opens connections, and keeps those that are free.
#[derive(Default)]
pub(crate) struct Connector {
    uses_http2: bool,
    multiplexed: Multiplexed,
    tls: OnceLock<Result<TlsConnector, String>>,
    idle: Mutex<IdleLinks>,
}

/// A provider that cannot be reached: the reason, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreachable(pub(crate) String);

impl Connector {
    pub(crate) fn new(uses_http2: bool) -> Self {
        Self { uses_http2, ..Self::default() }
    }

    /// Returns a free or a new connection. An upgrade needs HTTP/1.1.
    pub(crate) async fn reach(
        &self,
        upstream: &Arc<Upstream>,
        upgrades: bool,
    ) -> Result<Reached, Unreachable> {
        let offers_http2 = self.uses_http2 && upstream.is_tls && !upgrades;
        if let Some(sender) = offers_http2.then(|| self.multiplexed.get(upstream)).flatten() {
            return Ok(Reached::Shared(sender));
        }
        while let Some(mut link) = self.free(upstream) {
            if link.is_quiet() {
                return Ok(Reached::Own(Box::new(link)));
            }
        }
        let opened = timeout(GATEWAY_CONNECT_TIME_MAX, self.open(upstream, offers_http2)).await;
        opened.unwrap_or_else(|_| Err(Unreachable("the connection took too long".to_owned())))
    }

    /// Keeps a connection for the next client.
    pub(crate) fn keep(&self, link: Link) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        idle.retain(|_, links| {
            links.retain(|(_, since)| now.duration_since(*since) < IDLE_TIME_MAX);
            !links.is_empty()
        });
        let links = idle.entry(Arc::clone(&link.upstream)).or_default();
        if links.len() < IDLE_MAX {
            links.push((link, now));
        }
    }

    fn free(&self, upstream: &Arc<Upstream>) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let (link, since) = idle.get_mut(upstream)?.pop()?;
        (since.elapsed() < IDLE_TIME_MAX).then_some(link)
    }

    async fn open(&self, upstream: &Arc<Upstream>, offers_http2: bool) -> Result<Reached, Unreachable> {
        let failed = |error: io::Error| Unreachable(error.to_string());
        let stream = TcpStream::connect((upstream.name.as_str(), upstream.port)).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let (reader, writer): (Reader, Writer) = if upstream.is_tls {
            let tls = self.tls.get_or_init(tls).as_ref().map_err(|why| Unreachable(why.clone()))?;
            let name = ServerName::try_from(upstream.name.clone());
            let name = name.map_err(|_| Unreachable("its name cannot be in a certificate".to_owned()))?;
            let stream = if offers_http2 {
                let both = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
                tls.with_alpn(both).connect(name, stream).await.map_err(failed)?
            } else {
                tls.connect(name, stream).await.map_err(failed)?
            };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                return self.multiplexed.add(upstream, stream).await.map(Reached::Shared);
            }
            let (reader, writer) = tokio::io::split(stream);
            (Box::new(reader), Box::new(writer))
        } else {
            let (reader, writer) = stream.into_split();
            (Box::new(reader), Box::new(writer))
        };
        let link = Link { upstream: Arc::clone(upstream), reader, writer, buffer: BytesMut::new() };
        Ok(Reached::Own(Box::new(link)))
    }
}

/// Reads the certificates that the system trusts.
fn tls() -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for certificate in found.certs {
        // The system may hold certificates that are too old to be read; the others count.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err("no certificates of this system can be read; set SSL_CERT_FILE".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config =
        config.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
