//! Invalid bodies and queries.

use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_server::Options;
use serde_json::json;

use crate::client::Call;
use crate::routes::{done, turn};
use crate::server::{Server, Site};

/// The routes that read a body, with a flag for those that accept an empty one.
const WITH_BODY: [(&str, &str, bool); 9] = [
    ("PUT", "/system-prompt", false),
    ("POST", "/preview", true),
    ("POST", "/conversations/c/turn", true),
    ("POST", "/conversations/c/reload", true),
    ("PUT", "/conversations/c/tools", false),
    ("PUT", "/conversations/c/tools/active", false),
    ("PUT", "/conversations/c/profile", false),
    ("POST", "/conversations/c/resources", false),
    ("POST", "/conversations/c/compaction", true),
];

/// Starts a server with a conversation.
fn server(site: &Site) -> Server {
    let server = site.serve();
    done(&server, &Call::json("POST", "/conversations/c/turn", &json!({})));
    server
}

/// Checks that nothing was stored.
fn check_unchanged(server: &Server) {
    assert_eq!(done(server, &Call::get("/system-prompt/versions")), json!({ "versions": [] }));
    assert_eq!(done(server, &Call::get("/conversations/c"))["epoch"], 1);
}

/// Row H7.
#[test]
fn only_json_is_taken() {
    let site = Site::new();
    let server = server(&site);
    for (method, path, _) in WITH_BODY {
        for kind in [
            "text/plain",
            "text/plain; application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonx",
            "application/json-patch+json",
            "text/json",
            "",
        ] {
            let answer = server.ask(&Call::new(method, path).text(kind, "{\"template\":\"x\",\"tools\":[]}"));
            assert_eq!((answer.status, answer.code()), (415, "not_json".into()), "{method} {path} {kind}");
        }
    }
    check_unchanged(&server);
}

/// Row M2.
#[test]
fn a_body_must_be_what_the_route_reads() {
    let site = Site::new();
    let server = server(&site);
    let deep = "[".repeat(100_000);
    for (method, path, takes_empty) in WITH_BODY {
        let odd: [&[u8]; 14] = [
            b"{",
            b"nothing",
            b"null",
            b"1",
            b"\"x\"",
            b"[]",
            b"[\"x\"]",
            b"[[]]",
            b"{\"unknown\":1}",
            b"{\"template\":1,\"tools\":1}",
            b"{\"template\":\"\xff\"}",
            b"\xef\xbb\xbf{}x",
            b"{\"template\":\"a\",\"template\":\"b\",\"tools\":[],\"tools\":[]}",
            deep.as_bytes(),
        ];
        for body in odd {
            let answer = server.ask(&Call::new(method, path).text("application/json", body));
            let shown = String::from_utf8_lossy(body).chars().take(60).collect::<String>();
            assert_eq!(
                (answer.status, answer.code()),
                (400, "bad_request".into()),
                "{method} {path} {shown}"
            );
        }
        let status = server.ask(&Call::new(method, path)).status;
        assert_eq!(status, if takes_empty { 200 } else { 400 }, "{method} {path} without a body");
    }
    assert_eq!(done(&server, &Call::get("/system-prompt/versions")), json!({ "versions": [] }));
}

#[test]
fn compressed_bodies_are_not_taken() {
    let site = Site::new();
    let server = server(&site);
    for (method, path, _) in WITH_BODY {
        let call = Call::new(method, path).header("content-encoding", "gzip");
        let answer = server.ask(&call.text("application/json", b"\x1f\x8b\x08\x00\x00".as_slice()));
        assert!(matches!(answer.status, 400 | 415), "{method} {path} {answer:?}");
    }
    check_unchanged(&server);
}

#[test]
fn a_field_said_twice_is_refused_also_beside_a_provider() {
    let site = Site::new();
    let server = server(&site);
    for body in [
        "{\"model\":\"a\",\"model\":\"b\"}",
        "{\"provider\":\"anthropic\",\"model\":\"a\",\"model\":\"b\"}",
        "{\"provider\":\"nobody\",\"provider\":null}",
    ] {
        let call = Call::new("POST", "/conversations/d/turn").text("application/json", body);
        assert_eq!(server.ask(&call).status, 400, "{body}");
    }
}

#[test]
fn bodies_over_the_limit_are_too_large() {
    let site = Site::new();
    let options = Options { body_bytes_max: 4096, ..site.options() };
    let server = Server::start(site.store(), options);
    for (method, path, _) in WITH_BODY {
        let body = format!("{{\"template\":\"{}\"}}", "x".repeat(4096));
        let answer = server.ask(&Call::new(method, path).text("application/json", body));
        assert_eq!((answer.status, answer.code()), (413, "too_large".into()), "{method} {path}");
    }
    assert!(server.is_well());
}

/// Row M4.
#[test]
fn templates_have_a_size_and_no_nul() {
    let site = Site::new();
    let server = server(&site);
    let put = |text: &str| server.ask(&Call::json("PUT", "/system-prompt", &json!({ "template": text })));
    let answer = put(&"x".repeat(TEMPLATE_BYTES_MAX + 1));
    assert_eq!((answer.status, answer.code()), (413, "too_large".into()));
    assert_eq!(put("a\0b").status, 400);
    check_unchanged(&server);
    assert_eq!(put(&"x".repeat(TEMPLATE_BYTES_MAX)).status, 200);
    assert_eq!(put("").status, 200);
}

#[test]
fn queries_must_be_known_and_of_their_type() {
    let site = Site::new();
    let server = server(&site);
    for (method, target) in [
        ("GET", "/conversations?limit=x"),
        ("GET", "/conversations?limit=-1"),
        ("GET", "/conversations?limit=99999999999999999999999"),
        ("GET", "/conversations?unknown=1"),
        ("GET", "/conversations?search=a&search=b"),
        ("POST", "/conversations/c/reload?plan=yes"),
        ("POST", "/conversations/c/reload?plan"),
        ("POST", "/conversations/c/reload?plan=true&plan=false"),
        ("POST", "/conversations/c/reload?planned=true"),
        ("POST", "/conversations/c/compaction?commit=1"),
        ("GET", "/conversations/c/diff"),
        ("GET", "/conversations/c/diff?from=1"),
        ("GET", "/conversations/c/diff?from=1&to=-1"),
        ("POST", "/system-prompt/versions/x/restore"),
        ("POST", "/system-prompt/versions/-1/restore"),
        ("POST", "/system-prompt/versions/99999999999999999999999/restore"),
    ] {
        let answer = server.ask(&Call::new(method, target));
        assert_eq!((answer.status, answer.code()), (400, "bad_request".into()), "{method} {target}");
    }
    check_unchanged(&server);
}

#[test]
fn what_is_not_there_is_not_found() {
    let site = Site::new();
    let server = server(&site);
    for (method, target, code) in [
        ("POST", "/system-prompt/versions/0/restore", "not_found"),
        ("POST", "/system-prompt/versions/1/restore", "not_found"),
        ("POST", "/system-prompt/versions/9223372036854775808/restore", "not_found"),
        ("POST", "/system-prompt/versions/18446744073709551615/restore", "not_found"),
        ("GET", "/conversations/c/diff?from=1&to=2", "not_found"),
        ("GET", "/conversations/c/diff?from=0&to=18446744073709551615", "not_found"),
        ("GET", "/conversations/d", "no_conversation"),
        ("DELETE", "/conversations/d", "no_conversation"),
        ("POST", "/conversations/d/reload", "no_conversation"),
        ("GET", "/conversations/d/drift", "no_conversation"),
        ("POST", "/conversations/d/compaction", "no_conversation"),
        ("POST", "/conversations/c/compaction/0/commit", "no_compaction"),
        ("DELETE", "/conversations/c/compaction/0", "no_compaction"),
        ("DELETE", "/conversations/c/compaction/%27%20OR%201=1", "no_compaction"),
    ] {
        let answer = server.ask(&Call::new(method, target));
        assert_eq!((answer.status, answer.code()), (404, code.into()), "{method} {target} {answer:?}");
    }
    check_unchanged(&server);
}

/// Row H7.
#[test]
fn a_get_changes_nothing() {
    let site = Site::new();
    let server = server(&site);
    for target in [
        "/conversations/c/compaction?commit=true",
        "/conversations/c/reload",
        "/conversations/c/tools?plan=false",
        "/conversations/e/turn",
        "/preview",
    ] {
        let call = Call::get(target).header("x-http-method-override", "POST");
        assert_eq!(server.ask(&call).status, 405, "{target}");
    }
    let call = Call::get("/conversations/c?_method=DELETE").header("x-http-method", "DELETE");
    assert_eq!(server.ask(&call).status, 200);
    check_unchanged(&server);
    assert_eq!(done(&server, &Call::get("/conversations"))["conversations"].as_array().unwrap().len(), 1);
}

#[test]
fn the_path_names_the_conversation() {
    let site = Site::new();
    let server = site.serve();
    let call = Call::json("POST", "/conversations/a/turn", &json!({ "conversation": "b" }));
    assert_eq!(server.ask(&call).status, 400);
    let call = Call::json("POST", "/conversations/a/turn", &json!({ "provider": "nobody" }));
    assert_eq!(server.ask(&call).status, 400);
    assert_eq!(done(&server, &Call::get("/conversations")), json!({ "conversations": [], "total": 0 }));
    assert_eq!(server.ask(&turn("a", "x")).status, 200);
}
