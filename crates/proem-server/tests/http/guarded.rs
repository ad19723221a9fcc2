//! The guard: host, origin and token.

use proem_server::{Options, Token};
use serde_json::json;

use crate::client::Call;
use crate::routes::{ROUTES, filled};
use crate::server::{Server, Site, check_decent};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Row H4.
#[test]
fn other_hosts_are_misdirected_before_anything_else() {
    let site = Site::new();
    let options = Options { token: Token::new(TOKEN), ..site.options() };
    let server = Server::start(site.store(), options);
    for host in [
        "evil.example",
        "evil.example:80",
        "localhost.",
        "localhost.evil.example",
        "127.0.0.1.",
        "127.0.0.1.evil.example",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "",
        ":80",
        "user@localhost",
        "user:word@127.0.0.1",
        "localhost:word",
        "localhost:99999",
        "localhost:+80",
        "localhost/",
        "localhost evil.example",
        "localhost,evil.example",
        "[::1",
        "[::1]x",
        "[127.0.0.1]",
        "::1",
    ] {
        for (route, _) in ROUTES.iter().chain([&("/nothing", ["GET"].as_slice())]) {
            let answer = server.ask(&Call::get(&filled(route)).header("host", host));
            assert_eq!((answer.status, answer.code()), (421, "wrong_host".into()), "{host} {route}");
        }
    }
}

/// Row H4.
#[test]
fn a_host_is_said_once() {
    let site = Site::new();
    let server = site.serve();
    for head in [
        "GET /healthz HTTP/1.1\r\n",
        "GET /healthz HTTP/1.0\r\n",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n",
        "GET http://evil.example/healthz HTTP/1.1\r\nhost: localhost\r\n",
        "GET http://localhost@evil.example/healthz HTTP/1.1\r\nhost: localhost\r\n",
    ] {
        let answer = server.ask_raw(format!("{head}connection: close\r\n\r\n").as_bytes(), false);
        check_decent(&answer, false);
        assert_eq!(answer.status, 421, "{head}");
    }
}

/// Row H4, the control.
#[test]
fn own_names_are_answered() {
    let site = Site::new();
    let options = Options { hosts: vec!["proem.example".into()], ..site.options() };
    let server = Server::start(site.store(), options);
    for host in ["localhost", "LocalHost:1", "127.0.0.1", "[::1]:80", "proem.example", "PROEM.example:443"] {
        assert_eq!(server.ask(&Call::get("/healthz").header("host", host)).status, 200, "{host}");
    }
    let whole = format!("http://{}/healthz", server.address);
    assert_eq!(server.ask(&Call::get(&whole)).status, 200);
}

/// Row H5.
#[test]
fn pages_of_other_sites_get_nothing() {
    let site = Site::new();
    let server = site.serve();
    let own = format!("http://{}", server.address);
    let other_port = "http://127.0.0.1:1".to_owned();
    for origin in [
        "http://evil.example",
        "null",
        "",
        "file://",
        "http://localhost",
        "http://127.0.0.1",
        &other_port,
        &format!("{own}/"),
        &format!("{own}.evil.example"),
        &format!("{own} http://evil.example"),
        &format!("ftp://{}", server.address),
    ] {
        for call in
            [Call::get("/system-prompt"), Call::json("PUT", "/system-prompt", &json!({ "template": "x" }))]
        {
            let answer = server.ask(&call.header("origin", origin));
            assert_eq!((answer.status, answer.code()), (403, "foreign_origin".into()), "{origin}");
        }
    }
    let twice = Call::get("/system-prompt").header("origin", &own).header("origin", "http://evil.example");
    assert_eq!(server.ask(&twice).status, 403);
    assert_eq!(server.ask(&Call::get("/system-prompt").header("origin", &own)).status, 200);
    assert_eq!(server.ask(&Call::get("/system-prompt/versions")).json(), json!({ "versions": [] }));
}

/// Row H5.
#[test]
fn browsers_that_say_where_they_come_from_are_believed() {
    let site = Site::new();
    let server = site.serve();
    for (sites, status) in [
        (["cross-site"].as_slice(), 403),
        (&["same-site"], 403),
        (&[""], 403),
        (&["Same-Origin"], 403),
        (&["none", "cross-site"], 403),
        (&["same-origin"], 200),
        (&["none"], 200),
    ] {
        let call =
            sites.iter().fold(Call::get("/system-prompt"), |call, site| call.header("sec-fetch-site", site));
        assert_eq!(server.ask(&call).status, status, "{sites:?}");
    }
}

/// Row H6.
#[test]
fn no_preflight_is_granted() {
    let site = Site::new();
    let server = site.serve();
    for (route, methods) in ROUTES {
        for origin in ["http://evil.example", "null", &format!("http://{}", server.address)] {
            let call = Call::new("OPTIONS", &filled(route))
                .header("origin", origin)
                .header("access-control-request-method", methods[0])
                .header("access-control-request-headers", "content-type")
                .header("access-control-request-private-network", "true");
            assert_eq!(server.ask(&call).status, 403, "{route} {origin}");
        }
        let answer = server.ask(&Call::new("OPTIONS", &filled(route)));
        assert!(matches!(answer.status, 403 | 405), "{route}");
    }
    assert!(matches!(server.ask(&Call::new("OPTIONS", "*")).status, 403..=405));
}

/// Rows H3 and H18.
#[test]
fn without_the_token_only_the_probes_answer() {
    let site = Site::new();
    let options = Options { token: Token::new(TOKEN), ..site.options() };
    let server = Server::start(site.store(), options);
    for shown in [
        None,
        Some(String::new()),
        Some("Bearer".into()),
        Some("Bearer ".into()),
        Some(TOKEN.into()),
        Some(format!("Basic {TOKEN}")),
        Some(format!("Bearer {TOKEN}x")),
        Some(format!("Bearer\t{TOKEN}")),
        Some(format!("Bearer {}", TOKEN.replace('f', "e"))),
        Some("Bearer 0123456789abcdef".into()),
    ] {
        for (route, _) in ROUTES.iter().chain([&("/nothing", ["GET"].as_slice())]) {
            let path = format!("{}?token={TOKEN}", filled(route));
            let call = Call::get(&path).header("cookie", &format!("token={TOKEN}"));
            let answer =
                server.ask(&shown.iter().fold(call, |call, shown| call.header("authorization", shown)));
            let is_probe = matches!(*route, "/healthz" | "/readyz");
            assert_eq!(answer.status, if is_probe { 200 } else { 401 }, "{shown:?} {route}");
            assert!(!answer.body.contains(TOKEN), "{answer:?}");
        }
    }
    let with = |path: &str| Call::get(path).header("authorization", &format!("Bearer {TOKEN}"));
    assert_eq!(server.ask(&with("/system-prompt")).status, 200);
    assert_eq!(server.ask(&with("/nothing")).status, 404);
    let lower = Call::get("/system-prompt").header("authorization", &format!("bearer {TOKEN}"));
    assert_eq!(server.ask(&lower).status, 200);
}
