//! A store on another machine is talked to over TLS, and only if its certificate is trusted.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::path::Path;
use std::process::{Command, Output};

use proem_testkit::PostgresServer;

fn check(url: &str, trusted: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proem"));
    command.args(["store", "check", "--store", url]).env("SSL_CERT_FILE", trusted).env_remove("SSL_CERT_DIR");
    command.output().unwrap()
}

#[test]
fn a_server_is_trusted_by_its_certificate() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("encrypted").replace("127.0.0.1", "localhost");
    let trusted = server.use_tls();

    let done = check(&format!("{url}?sslmode=require"), &trusted);
    assert!(done.status.success(), "{done:?}");

    let plain = check(&format!("{url}?sslmode=disable"), &trusted);
    assert_eq!(plain.status.code(), Some(3), "the server takes nothing in the clear: {plain:?}");

    let other = trusted.with_file_name("other.pem");
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-keyout",
            "/dev/null",
        ])
        .arg("-out")
        .arg(&other)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let stranger = check(&format!("{url}?sslmode=require"), &other);
    assert_eq!(stranger.status.code(), Some(3), "{stranger:?}");
    let said = String::from_utf8(stranger.stderr).unwrap();
    assert!(said.contains("certificate"), "{said}");

    let elsewhere = check(&format!("{}?sslmode=require", url.replace("localhost", "127.0.0.1")), &trusted);
    assert_eq!(elsewhere.status.code(), Some(3), "the certificate is for another name: {elsewhere:?}");
}
