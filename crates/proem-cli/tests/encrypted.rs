//! PostgreSQL over TLS by the modes of libpq, with an authority that `openssl` made.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::path::Path;
use std::process::{Command, Output};

use proem_testkit::{Authority, PostgresServer};

fn check(url: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proem"));
    command
        .args(["store", "check", "--store", url])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap());
    command.envs(variables.iter().copied()).output().unwrap()
}

#[track_caller]
fn works(url: &str, variables: &[(&str, &str)]) {
    let done = check(url, variables);
    assert_eq!(done.status.code(), Some(0), "{url}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Asserts on the message without the store, and on the hint.
#[track_caller]
fn refused(url: &str, variables: &[(&str, &str)], why: &str, hint: &str) {
    let done = check(url, variables);
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(3), "{url}: {said}");
    let (message, shown) = said.split_once("\nhint: ").unwrap();
    assert!(message.contains(why), "{url}: {said}");
    assert_eq!(shown, format!("{hint}\n"), "{url}: {said}");
}

const UNKNOWN: &str =
    "name the certificate of its authority with `sslrootcert=FILE` in the URL, or by PGSSLROOTCERT";
const OTHER_NAME: &str =
    "use the host name that the certificate is for, or `sslmode=verify-ca` to accept any name";

#[test]
fn certificates_are_checked_as_the_mode_says() {
    let Some(server) = PostgresServer::start() else { return };
    let plain_url = server.database("encrypted");
    let url = plain_url.replace("127.0.0.1", "localhost");
    works(&format!("{url}?sslmode=prefer"), &[]);
    works(&format!("{url}?sslmode=allow"), &[]);
    refused(
        &format!("{url}?sslmode=require"),
        &[],
        "the server does not offer TLS",
        "turn `ssl` on in the server's settings, or use `sslmode=prefer` or `sslmode=disable`",
    );

    let authority = server.use_tls();
    let root = format!("sslrootcert={}", authority.display());
    let stranger = Authority::new(authority.parent().unwrap(), "stranger").certificate;
    let stranger = format!("sslrootcert={}", stranger.display());
    // The server takes nothing in the clear: these all speak TLS.
    for url in [
        url.clone(),
        format!("{url}?sslmode=allow"),
        format!("{url}?sslmode=prefer"),
        format!("{url}?sslmode=prefer&{stranger}"),
        format!("{url}?sslmode=require"),
        format!("{url}?sslmode=require&{root}"),
        format!("{url}?sslmode=verify-ca&{root}"),
        format!("{plain_url}?sslmode=verify-ca&{root}"),
        format!("{url}?sslmode=verify-full&{root}"),
    ] {
        works(&url, &[]);
    }
    refused(
        &format!("{url}?sslmode=disable"),
        &[],
        "no pg_hba.conf entry",
        "check the user name and `sslmode`, and the server's `pg_hba.conf`",
    );
    for mode in ["require", "verify-ca", "verify-full"] {
        refused(&format!("{url}?sslmode={mode}&{stranger}"), &[], "UnknownIssuer", UNKNOWN);
    }
    refused(
        &format!("{plain_url}?sslmode=verify-full&{root}"),
        &[],
        "certificate not valid for name",
        OTHER_NAME,
    );
    of_the_system(&url, &authority);
    signed_by_itself(&server, &url, &plain_url);
}

/// The certificate that a server presents may be trusted itself.
fn signed_by_itself(server: &PostgresServer, url: &str, plain_url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = Authority::self_signed(folder.path(), "own", "DNS:localhost");
    server.present(&certificate, &key);
    let root = format!("sslrootcert={}", certificate.display());
    works(&format!("{url}?sslmode=verify-full&{root}"), &[]);
    works(&format!("{plain_url}?sslmode=verify-ca&{root}"), &[]);
    works(&format!("{url}?sslmode=verify-full"), &[("SSL_CERT_FILE", certificate.to_str().unwrap())]);
    let full = format!("{plain_url}?sslmode=verify-full&{root}");
    refused(&full, &[], "certificate not valid for name", OTHER_NAME);
    let (other, _) = Authority::self_signed(folder.path(), "other", "DNS:localhost");
    let root = format!("sslrootcert={}", other.display());
    for mode in ["verify-ca", "verify-full"] {
        refused(&format!("{url}?sslmode={mode}&{root}"), &[], "UnknownIssuer", UNKNOWN);
    }
}

/// The certificates of the system, and the variables.
fn of_the_system(url: &str, authority: &Path) {
    let path = authority.to_str().unwrap();
    works(&format!("{url}?sslrootcert=system"), &[("SSL_CERT_FILE", path)]);
    works(&format!("{url}?sslmode=verify-full"), &[("SSL_CERT_FILE", path)]);
    works(url, &[("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", path)]);
    refused(&format!("{url}?sslmode=verify-full"), &[], "UnknownIssuer", UNKNOWN);
    let missing = check(&format!("{url}?sslmode=verify-full&sslrootcert=/none.pem"), &[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&missing.stderr)
            .contains(": `sslrootcert` /none.pem cannot be used: No such file"),
        "{missing:?}"
    );
}
