//! A client for a proem server over HTTP or HTTPS.

use std::env;
use std::error::Error;
use std::io;
use std::sync::Arc;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, LOCATION};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use proem::ServerCertificates;
use proem_core::limit::{ANSWER_BYTES_MAX, ANSWER_TIME_MAX};
use proem_store::redacted;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::failure::Failure;
use crate::input::reason;
use crate::terminal::visible_line;

const HINT: &str = "write it like `http://127.0.0.1:7717` or `https://prompts.example.com`";

/// A server at an address.
pub(crate) struct Remote {
    is_https: bool,
    /// The name or address, without brackets.
    name: String,
    port: u16,
    /// The host as written in the URL, including a port.
    host: String,
    token: Option<HeaderValue>,
}

/// An exchange with a server that failed.
enum ConnectionError {
    System(io::Error),
    Tls(rustls::Error),
    Http(hyper::Error),
    TooLong,
    TooMuch(String),
    NoCertificates,
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(inner) => Self::Tls(inner.clone()),
            None => Self::System(error),
        }
    }
}

impl From<hyper::Error> for ConnectionError {
    fn from(error: hyper::Error) -> Self {
        Self::Http(error)
    }
}

impl Remote {
    /// Parses an address such as `https://prompts.example.com`, and reads the token from `PROEM_TOKEN`.
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::Usage {
            message: format!("invalid server address `{}`: {why}", visible_line(&redacted(url))),
            hint: HINT.into(),
        };
        let parsed: Uri = url.parse().map_err(|_| wrong("it is not a URL"))?;
        let is_https = match parsed.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it must begin with `http://` or `https://`")),
        };
        let authority = parsed.authority().ok_or_else(|| wrong("it has no host name"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it must not hold a user name or password; set PROEM_TOKEN"));
        }
        if !matches!(parsed.path(), "" | "/") || parsed.query().is_some() {
            return Err(wrong("it must not have a path"));
        }
        let port = match authority.port() {
            Some(port) => port.as_str().parse().map_err(|_| wrong("its port is invalid"))?,
            None if is_https => 443,
            None => 80,
        };
        let token = env::var("PROEM_TOKEN").ok().filter(|text| !text.trim().is_empty());
        let header = |token: String| {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|_| Failure::Usage {
                    message: "the token in PROEM_TOKEN has characters that no header can hold".into(),
                    hint: "set it to the token of the server".into(),
                })?;
            value.set_sensitive(true);
            Ok::<_, Failure>(value)
        };
        Ok(Self {
            is_https,
            name: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            host: authority.as_str().to_owned(),
            token: token.map(header).transpose()?,
        })
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, String::new())
    }

    pub(crate) fn post(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::POST, path, String::new())
    }

    /// Sends a JSON body.
    pub(crate) fn send_body(&self, method: Method, path: &str, body: String) -> Result<Value, Failure> {
        self.call(method, path, body)
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::DELETE, path, String::new())
    }

    /// Returns the address, for messages.
    fn origin(&self) -> String {
        format!("{}://{}", if self.is_https { "https" } else { "http" }, visible_line(&self.host))
    }

    fn call(&self, method: Method, path: &str, body: String) -> Result<Value, Failure> {
        let answer = self.answer(method, path, body)?;
        Ok(serde_json::from_str(&answer).unwrap_or(Value::Null))
    }

    /// Returns the body of a successful answer.
    pub(crate) fn answer(&self, method: Method, path: &str, body: String) -> Result<String, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| self.explain(&error.into()))?;
        let exchanged = runtime.block_on(async {
            let exchange = tokio::time::timeout(ANSWER_TIME_MAX, self.exchange(method, path, body));
            exchange.await.unwrap_or(Err(ConnectionError::TooLong))
        });
        // Does not wait for a pending DNS lookup.
        runtime.shutdown_background();
        let Answer { status, location, body } = exchanged.map_err(|error| self.explain(&error))?;
        if status.is_success() {
            return Ok(String::from_utf8_lossy(&body).into_owned());
        }
        let answer: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if status.is_redirection() {
            let to = location.map_or_else(String::new, |to| format!(" to `{}`", visible_line(&to)));
            return Err(Failure::Server {
                message: format!(
                    "{} redirects{to}; redirects are not followed, because they would get the token",
                    self.origin()
                ),
                hint: "give `--url` the address at which the server itself answers".into(),
            });
        }
        let field = |key: &str| answer[key].as_str().map(str::to_owned);
        let Some(message) = field("message") else {
            return Err(Failure::Server {
                message: format!("{} answers {status}", self.origin()),
                hint: "check that it is a proem server, and see the log of the server or its proxy".into(),
            });
        };
        if status == StatusCode::UNAUTHORIZED {
            let message = match &self.token {
                None => format!("{} wants a token", self.origin()),
                Some(_) => format!("{} does not accept the token in PROEM_TOKEN", self.origin()),
            };
            let hint = "set PROEM_TOKEN to the token of the server: its own PROEM_TOKEN, or the content of its \
                        `--token-file`";
            return Err(Failure::Server { message, hint: hint.into() });
        }
        let (code, hint) = (field("code").unwrap_or_default(), field("hint").unwrap_or_default());
        Err(Failure::Refused { code, message, hint })
    }

    async fn exchange(&self, method: Method, path: &str, body: String) -> Result<Answer, ConnectionError> {
        let stream = TcpStream::connect((self.name.as_str(), self.port)).await?;
        if !self.is_https {
            return self.send(stream, method, path, body).await;
        }
        let name = ServerName::try_from(self.name.clone()).map_err(|_| {
            ConnectionError::Tls(rustls::Error::InvalidCertificate(CertificateError::NotValidForName))
        })?;
        let stream = TlsConnector::from(Arc::new(tls_config()?)).connect(name, stream).await?;
        self.send(stream, method, path, body).await
    }

    async fn send<S>(
        &self,
        stream: S,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<Answer, ConnectionError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let has_body = !body.is_empty();
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap_or_default();
        let host = HeaderValue::from_str(&self.host).unwrap_or(HeaderValue::from_static(""));
        request.headers_mut().insert(HOST, host);
        if has_body {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        self.token.as_ref().map(|token| request.headers_mut().insert(AUTHORIZATION, token.clone()));
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        let location = head.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.map(|url| if url.contains('@') { redacted(url) } else { url.to_owned() });
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| ConnectionError::TooMuch(error.to_string()))?;
        Ok(Answer { status: head.status, location, body: body.to_bytes() })
    }

    fn explain(&self, error: &ConnectionError) -> Failure {
        let start = "start it with `proem serve`, or leave `--url` out";
        let (why, hint) = match error {
            ConnectionError::System(error) => (reason(error), start),
            ConnectionError::TooLong => {
                (format!("it took longer than {} seconds", ANSWER_TIME_MAX.as_secs()), start)
            }
            ConnectionError::Http(error) => {
                let inner = error.source().map(ToString::to_string).unwrap_or_default();
                let why = if inner.is_empty() { error.to_string() } else { format!("{error}: {inner}") };
                (why, "check that it is a proem server; for TLS, the address starts with `https://`")
            }
            ConnectionError::TooMuch(why) => (why.clone(), "see the server's log"),
            ConnectionError::NoCertificates => (
                "the system trusts no certificates".into(),
                "install the package `ca-certificates`, or name a PEM file by SSL_CERT_FILE",
            ),
            ConnectionError::Tls(error) => {
                return Failure::Server {
                    message: format!("no secure connection to {}: {error}", self.origin()),
                    hint: hint_for(error).into(),
                };
            }
        };
        Failure::Server { message: format!("no answer from {}: {why}", self.origin()), hint: hint.into() }
    }
}

/// Percent-encodes a text for a URL.
pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect::<Vec<_>>().concat()
}

/// A response.
struct Answer {
    status: StatusCode,
    location: Option<String>,
    body: Bytes,
}

/// Configures TLS with the certificates of the system, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
fn tls_config() -> Result<ClientConfig, ConnectionError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trusted = rustls_native_certs::load_native_certs().certs;
    let verifier = ServerCertificates::new(trusted, Arc::clone(&provider))
        .map_err(|_| ConnectionError::NoCertificates)?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(ConnectionError::Tls)?.dangerous();
    Ok(builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

fn hint_for(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "name a PEM file with the certificate of its authority by SSL_CERT_FILE"
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "use the name that the certificate is for",
        rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => "renew the certificate, and compare the clocks of both machines",
        _ => "check that the server speaks TLS on this port",
    }
}
