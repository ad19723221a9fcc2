//! Invalid conversation ids.

use serde_json::json;

use crate::client::Call;
use crate::routes::{ROUTES, done, turn};
use crate::server::Site;

fn odd() -> Vec<String> {
    let mut odd: Vec<String> = [
        "%2e%2e%2f",
        "..%2f..%2fetc",
        "%00",
        "a%00b",
        "%20",
        "a%20b",
        "+",
        "%ff",
        "%c3%a9",
        "%",
        "%zz",
        "a%0ab",
        "~",
        "*",
        "%27",
        "a%5cb",
        ".",
        "..",
        "%2e",
    ]
    .map(str::to_owned)
    .into();
    odd.push("x".repeat(129));
    odd.push("x".repeat(10 << 10));
    odd.push("%41".repeat(129));
    odd
}

/// Row H13.
#[test]
fn odd_names_are_refused_by_every_route() {
    let site = Site::new();
    let server = site.serve();
    for (route, methods) in ROUTES.iter().filter(|(route, _)| route.starts_with("/conversations/{id}")) {
        for (id, method) in odd().iter().flat_map(|id| methods.iter().map(move |method| (id, method))) {
            let path =
                route.replace("{id}", id).replace("{token}", "0").replace("/diff", "/diff?from=1&to=1");
            let body = match route.rsplit('/').next() {
                Some("tools") => json!({ "tools": [] }),
                Some("active") => json!({ "names": [] }),
                Some("profile") => json!({ "profile": "default" }),
                Some("fork" | "spawn") => json!({ "id": "child" }),
                _ => json!({}),
            };
            let call = match *method {
                "POST" | "PUT" => Call::json(method, &path, &body),
                method => Call::new(method, &path),
            };
            let answer = server.ask(&call);
            let shown: String = path.chars().take(60).collect();
            assert_eq!((answer.status, answer.code()), (400, "bad_id".into()), "{method} {shown} {answer:?}");
        }
    }
    assert_eq!(done(&server, &Call::get("/conversations")), json!({ "conversations": [], "total": 0 }));
}

/// Row H13.
#[test]
fn a_name_is_not_empty() {
    let site = Site::new();
    let server = site.serve();
    for (method, path) in [("POST", "/conversations//turn"), ("GET", "/conversations//drift")] {
        let answer = server.ask(&Call::new(method, path));
        assert_eq!((answer.status, answer.code()), (400, "bad_id".into()), "{path}");
    }
}

/// Row H13, the control.
#[test]
fn names_up_to_the_limit_are_taken_and_are_no_paths() {
    let site = Site::new();
    let server = site.serve();
    let long = "x".repeat(128);
    for id in ["...", ".a", "a:b", "A-b_c.d", "%41", long.as_str()] {
        assert_eq!(server.ask(&turn(id, "x")).status, 200, "{id}");
    }
    assert_eq!(done(&server, &Call::get("/conversations/A"))["conversation"], "A");
    assert_eq!(std::fs::read_dir(site.path("work")).unwrap().count(), 1);
}

#[test]
fn tokens_that_are_not_utf8_are_refused_in_the_shape_of_errors() {
    let site = Site::new();
    let server = site.serve();
    for (method, path) in [
        ("DELETE", "/conversations/c/compaction/%ff"),
        ("POST", "/conversations/c/compaction/%ff/commit"),
        ("POST", "/system-prompt/versions/%ff/restore"),
    ] {
        let answer = server.ask(&Call::new(method, path));
        assert!(matches!(answer.status, 400 | 404), "{method} {path} {answer:?}");
    }
}
