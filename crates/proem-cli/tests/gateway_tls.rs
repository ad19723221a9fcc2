//! A gateway before a provider with TLS: certificates of the system, and both versions of HTTP.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use proem_testkit::Authority;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::desk::Desk;

/// Starts a provider that offers HTTP/2, and says what arrived.
fn provider(certificate: &Path, key: &Path) -> SocketAddr {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let chain = CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect();
    let mut config = builder.with_single_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (bound, address) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            bound.send(listener.local_addr().unwrap()).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    // A client may end the connection.
                    let _ = builder.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
                });
            }
        });
    });
    address.recv().unwrap()
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let key = parts.headers.get("x-api-key").map_or("none", |value| value.to_str().unwrap());
    let host = parts.headers.contains_key("host") || parts.uri.authority().is_some();
    let text = format!(
        "{:?} {} {} key={key} host={host} {}",
        parts.version,
        parts.method,
        parts.uri.path(),
        body.len()
    );
    Ok(Response::builder().status(529).header("retry-after", "7").body(Full::from(text)).unwrap())
}

fn gateway(desk: &Desk, authority: &Path, flags: &[&str]) -> (Child, String) {
    let mut command = desk.command(&["gateway", "--listen", "127.0.0.1:0"]);
    command.args(flags).env("SSL_CERT_FILE", authority);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap().split(['"', ' ', '\n']).next().unwrap().to_owned();
    (child, address)
}

fn ask(address: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "POST /anthropic/v1/x HTTP/1.1\r\nHost: {address}\r\nx-api-key: k\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn providers_are_reached_by_tls_and_both_versions_of_http() {
    let desk = Desk::new();
    let authority = Authority::new(desk.root.path(), "authority");
    let (certificate, key) = authority.issue(desk.root.path(), "server", "DNS:localhost");
    let upstream = format!("anthropic=https://localhost:{}", provider(&certificate, &key).port());
    let other = Authority::new(desk.root.path(), "other");
    let body = "x".repeat(300_000);
    for (flags, trusted, status, expected) in [
        (&["--upstream", &upstream][..], &authority, "529", "HTTP/1.1 POST /v1/x key=k host=true 300000"),
        (
            &["--upstream", &upstream, "--http2"],
            &authority,
            "529",
            "HTTP/2.0 POST /v1/x key=k host=true 300000",
        ),
        (&["--upstream", &upstream], &other, "502", "\"code\":\"unreachable\""),
    ] {
        let (mut child, address) = gateway(&desk, &trusted.certificate, flags);
        // The second request uses the connection of the first.
        for _ in 0..2 {
            let answer = ask(&address, &body);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(expected),
                "{answer}"
            );
            assert!(status == "502" || answer.contains("retry-after: 7\r\n"), "{answer}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
