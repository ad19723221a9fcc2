//! A server behind TLS: the command by `--url https://…`, and the editor's login behind a real proxy.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use crate::desk::Desk;
use crate::hook_server::{self, Behaviour};
use crate::served::Server;
use proem_testkit::Authority;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Runs a command with the token and an authority to trust.
fn run(desk: &Desk, trusted: &Path, arguments: &[&str]) -> Output {
    let mut command = desk.command(arguments);
    command.env("PROEM_TOKEN", TOKEN).env("SSL_CERT_FILE", trusted).output().unwrap()
}

fn said(desk: &Desk, output: &Output) -> String {
    desk.said(&output.stderr)
}

#[test]
fn commands_talk_to_a_server_over_tls() {
    let desk = Desk::of("template");
    desk.write("token", TOKEN.as_bytes()).write("notes.md", b"one");
    let server = Server::start(&desk, "", &["--listen", "127.0.0.1:0", "--token-file", "token"]);
    let shown = format!("authorization: bearer {TOKEN}\r\n");
    let body = r#"{"template": "<[file:notes.md]>"}"#;
    assert_eq!(server.ask_as(&shown, "POST", "/conversations/c/turn", body).0, 200);
    let authority = Authority::new(desk.root.path(), "authority");
    let (certificate, key) = authority.issue(desk.root.path(), "server", "DNS:localhost");
    let port = crate::tls::terminate(&certificate, &key, &server.address);
    let url = format!("https://localhost:{port}");
    let trusted = &authority.certificate;

    let listed = run(&desk, trusted, &["conversation", "list", "--url", &url, "--format", "json"]);
    assert!(listed.status.success(), "{}", said(&desk, &listed));
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["conversations"][0]["conversation"], "c");
    let shown = run(&desk, trusted, &["conversation", "show", "c", "--url", &url]);
    assert_eq!(String::from_utf8(shown.stdout).unwrap(), "<one>");

    let same = run(&desk, trusted, &["drift", "c", "--url", &url]);
    assert_eq!(desk.said(&same.stdout), "c@1 and now are the same: 5 bytes that a cache can hold\n");
    assert_eq!(same.status.code(), Some(0));
    desk.write("notes.md", b"two");
    let drift = run(&desk, trusted, &["drift", "c", "--url", &url]);
    assert_eq!(drift.status.code(), Some(1), "{}", said(&desk, &drift));
    assert!(desk.said(&drift.stdout).contains("notes.md"), "{}", desk.said(&drift.stdout));
    let judged = run(&desk, trusted, &["evidence", "--conversation", "c", "--url", &url, "--format", "json"]);
    assert_eq!(judged.status.code(), Some(0), "{}", said(&desk, &judged));

    let stranger = Authority::new(desk.root.path(), "stranger");
    let refused = run(&desk, &stranger.certificate, &["conversation", "list", "--url", &url]);
    assert_eq!(refused.status.code(), Some(3));
    assert_eq!(
        said(&desk, &refused),
        format!(
            "error: no secure connection to {url}: invalid peer certificate: UnknownIssuer\n\
             hint: name a PEM file with the certificate of its authority by SSL_CERT_FILE\n"
        )
    );
    let other = run(&desk, trusted, &["conversation", "list", "--url", &format!("https://127.0.0.1:{port}")]);
    assert_eq!(other.status.code(), Some(3));
    assert!(
        said(&desk, &other).ends_with("hint: use the name that the certificate is for\n"),
        "{}",
        said(&desk, &other)
    );
}

#[test]
fn a_certificate_that_signed_itself_can_be_trusted() {
    let desk = Desk::of("template");
    desk.write("token", TOKEN.as_bytes());
    let server = Server::start(&desk, "", &["--listen", "127.0.0.1:0", "--token-file", "token"]);
    let (certificate, key) = Authority::self_signed(desk.root.path(), "own", "DNS:localhost");
    let port = crate::tls::terminate(&certificate, &key, &server.address);
    let list = |trusted: &Path, host: &str| {
        run(&desk, trusted, &["conversation", "list", "--url", &format!("https://{host}:{port}")])
    };
    let listed = list(&certificate, "localhost");
    assert!(listed.status.success(), "{}", said(&desk, &listed));
    let (other, _) = Authority::self_signed(desk.root.path(), "other", "DNS:localhost");
    for (trusted, host, hint) in [
        (&certificate, "127.0.0.1", "use the name that the certificate is for"),
        (&other, "localhost", "name a PEM file with the certificate of its authority by SSL_CERT_FILE"),
    ] {
        let refused = list(trusted, host);
        assert_eq!(refused.status.code(), Some(3));
        let said = said(&desk, &refused);
        assert!(said.ends_with(&format!("hint: {hint}\n")), "{said}");
    }
}

#[test]
fn a_hook_is_asked_over_tls() {
    let desk = Desk::of("template");
    let token = "t0ken";
    let behaviour =
        Behaviour { append: Some(" ONE".to_owned()), token: Some(token.to_owned()), ..Behaviour::default() };
    let plain = hook_server::start(BTreeMap::from([("/one".to_owned(), behaviour)]));
    let authority = Authority::new(desk.root.path(), "authority");
    let (certificate, key) = authority.issue(desk.root.path(), "server", "DNS:localhost");
    let port = crate::tls::terminate(&certificate, &key, plain.strip_prefix("http://").unwrap());
    let config = desk.root.path().join(".config/proem");
    fs::create_dir_all(&config).unwrap();
    let url = format!("https://localhost:{port}/one");
    let hook = format!(
        "[[hook]]\nname = \"far\"\nevent = \"before_agent_start\"\nurl = \"{url}\"\ntoken_file = \"token\"\n"
    );
    fs::write(config.join("proem.toml"), hook).unwrap();
    fs::write(config.join("token"), token).unwrap();

    let turn = ["turn", "--system", "Base.", "--prompt-text", "Hello"];
    let asked = run(&desk, &authority.certificate, &turn);
    let page = desk.said(&asked.stdout);
    assert!(page.starts_with("== System prompt (9 bytes)\nBase. ONE\n"), "{page}{}", said(&desk, &asked));
    let stranger = Authority::new(desk.root.path(), "stranger");
    let refused = run(&desk, &stranger.certificate, &turn);
    let (page, warning) = (desk.said(&refused.stdout), said(&desk, &refused));
    assert!(page.starts_with("== System prompt (5 bytes)\nBase.\n"), "{page}");
    assert!(warning.contains("the hook `far` is skipped at `before_agent_start`"), "{warning}");
    assert!(warning.contains("UnknownIssuer") && !warning.contains(token), "{warning}");
}

/// A redirect would hand the token to the server that it names.
#[test]
fn a_redirect_is_not_followed() {
    let desk = Desk::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).unwrap();
        let head =
            "HTTP/1.1 301 Moved\r\nlocation: https://u:hunter2@other.example/\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        listener
    });
    let refused = run(&desk, Path::new("/none"), &["conversation", "list", "--url", &url]);
    assert_eq!(
        said(&desk, &refused),
        format!(
            "error: {url} redirects to `https://…`; redirects are not followed, because they would get the token\n\
             hint: give `--url` the address at which the server itself answers\n"
        )
    );
    drop(answering.join().unwrap());
}

#[test]
fn an_address_with_credentials_is_not_printed() {
    let desk = Desk::new();
    for (url, why) in [
        ("https://u:hunter2@h", "it must not hold a user name or password; set PROEM_TOKEN"),
        ("ftp://u:hunter2@h", "it must begin with `http://` or `https://`"),
        ("https://h/path", "it must not have a path"),
    ] {
        let scheme = url.split_once(':').unwrap().0;
        desk.refuses(
            &["conversation", "list", "--url", url],
            2,
            &format!(
                "error: invalid server address `{scheme}://…`: {why}\n\
                 hint: write it like `http://127.0.0.1:7717` or `https://prompts.example.com`\n"
            ),
        );
    }
}

/// A real nginx on a loopback port, with TLS, that stops when it is dropped.
pub(crate) struct Nginx {
    folder: tempfile::TempDir,
    pub(crate) port: u16,
}

impl Nginx {
    /// Starts it; `None` when it is not installed.
    pub(crate) fn start(authority: &Authority, backend: &str) -> Option<Self> {
        if Command::new("nginx").arg("-v").output().is_err() {
            assert!(std::env::var_os("PROEM_REQUIRE_NGINX").is_none(), "nginx is not installed");
            eprintln!("skipped: nginx is not installed");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("proem-nginx-").tempdir_in("/tmp").unwrap();
        let (certificate, key) = authority.issue(folder.path(), "nginx", "DNS:localhost");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "pid nginx.pid; error_log error.log; events {{}}\n\
             http {{ access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f;\n\
             uwsgi_temp_path u; scgi_temp_path s;\n\
             server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {}; ssl_certificate_key {};\n\
             location / {{ proxy_pass http://{backend}; proxy_http_version 1.1; proxy_set_header Connection \"\";\n\
             proxy_set_header Host $host; proxy_set_header X-Forwarded-Host $http_host;\n\
             proxy_set_header X-Forwarded-Proto $scheme; }} }} }}\n",
            certificate.display(),
            key.display()
        );
        fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let nginx = Self { folder, port };
        // It returns once it listens.
        nginx.run(&[]);
        Some(nginx)
    }

    fn run(&self, arguments: &[&str]) {
        let mut command = Command::new("nginx");
        command.arg("-p").arg(self.folder.path()).arg("-c").arg(self.folder.path().join("nginx.conf"));
        let done = command.args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.run(&["-s", "stop"]);
    }
}

/// Logs in as the editor does, from a page of `origin`.
fn login(port: u16, authority: &Authority, host: &str, origin: &str) -> String {
    let request = format!(
        "POST /session HTTP/1.1\r\nhost: {host}\r\norigin: {origin}\r\nsec-fetch-site: same-origin\r\n\
         authorization: bearer {TOKEN}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    crate::tls::ask(port, &authority.certificate, &request)
}

#[test]
fn the_editor_logs_in_behind_a_proxy_on_any_port() {
    let desk = Desk::of("template");
    desk.write("token", TOKEN.as_bytes());
    let authority = Authority::new(desk.root.path(), "authority");
    let start = |more: &[&str]| {
        Server::start(&desk, "", &[&["--listen", "127.0.0.1:0", "--token-file", "token"], more].concat())
    };
    let trusting = start(&["--trusted-proxy", "127.0.0.1"]);
    let Some(nginx) = Nginx::start(&authority, &trusting.address) else { return };
    let port = nginx.port;
    let (host, page) = (format!("localhost:{port}"), format!("https://localhost:{port}"));
    let answer = login(port, &authority, &host, &page);
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert!(answer.contains("; HttpOnly; SameSite=Strict; Secure\r\n"), "{answer}");
    for (host, page) in [
        (host.as_str(), "https://evil.example"),
        (host.as_str(), "null"),
        (host.as_str(), &format!("http://localhost:{port}")),
    ] {
        let answer = login(port, &authority, host, page);
        assert!(answer.starts_with("HTTP/1.1 403"), "{page}: {answer}");
    }
    let answer = login(port, &authority, "evil.example", "https://evil.example");
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    drop(nginx);

    // Control: a server that does not trust the proxy takes the page for a foreign one.
    let untrusting = start(&[]);
    let nginx = Nginx::start(&authority, &untrusting.address).unwrap();
    let (host, page) = (format!("localhost:{}", nginx.port), format!("https://localhost:{}", nginx.port));
    let answer = login(nginx.port, &authority, &host, &page);
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

/// The server's hint speaks of a header, which no user of the command line writes.
#[test]
fn a_token_that_is_not_accepted_is_explained_by_its_variable() {
    let desk = Desk::new();
    for (token, said) in
        [(None, "wants a token"), (Some("wrong"), "does not accept the token in PROEM_TOKEN")]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut line, _) = listener.accept().unwrap();
            let _ = line.read(&mut [0; 4096]).unwrap();
            let body =
                r#"{"code":"no_token","message":"the token is missing or wrong","hint":"send a header"}"#;
            let head = format!(
                "HTTP/1.1 401 Unauthorized\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            line.write_all((head + body).as_bytes()).unwrap();
        });
        let mut command = desk.command(&["conversation", "list", "--url", &origin]);
        let output = command.envs(token.map(|token| ("PROEM_TOKEN", token))).output().unwrap();
        server.join().unwrap();
        let expected = format!(
            "error: {origin} {said}\nhint: set PROEM_TOKEN to the token of the server: its own PROEM_TOKEN, or the content of \
             its `--token-file`\n"
        );
        assert_eq!((desk.said(&output.stderr), output.status.code()), (expected, Some(3)));
    }
}
