//! TLS in front of a server: a proxy that ends it, and a client that checks certificates.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// Passes each connection on to `backend`, and returns the port. The thread lives as long as the test.
pub(crate) fn terminate(certificate: &Path, key: &Path, backend: &str) -> u16 {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let chain = CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect();
    let config =
        Arc::new(builder.with_single_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, backend) = (listener.local_addr().unwrap().port(), backend.to_owned());
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            // A client that refuses the certificate ends the connection.
            drop(pass(near, &config, &backend));
        }
    });
    port
}

/// Passes one request and its answer.
fn pass(near: TcpStream, config: &Arc<ServerConfig>, backend: &str) -> std::io::Result<()> {
    let connection = ServerConnection::new(Arc::clone(config)).unwrap();
    let mut near = StreamOwned::new(connection, near);
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        near.read_exact(&mut byte)?;
        request.extend(byte);
    }
    let head = String::from_utf8_lossy(&request).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    near.read_exact(&mut body)?;
    request.truncate(request.len() - 2);
    request.extend(b"connection: close\r\n\r\n");
    request.extend(body);
    let mut far = TcpStream::connect(backend)?;
    far.write_all(&request)?;
    let mut answer = Vec::new();
    far.read_to_end(&mut answer)?;
    near.write_all(&answer)?;
    near.conn.send_close_notify();
    near.flush()
}

/// Sends a request to `localhost` and returns the answer, if the certificate is one of `authority`.
pub(crate) fn ask(port: u16, authority: &Path, request: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
    let connection = ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(("127.0.0.1", port)).unwrap());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A proxy may close without saying so within TLS.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}
