//! Every route with valid input, and with methods that it does not support.

use proem_core::builtin;
use proem_core::variable::Variable;
use serde_json::{Value, json};

use crate::client::Call;
use crate::server::{Server, Site};

/// All routes and their methods.
pub(crate) const ROUTES: [(&str, &[&str]); 42] = [
    ("/healthz", &["GET"]),
    ("/readyz", &["GET"]),
    ("/metrics", &["GET"]),
    ("/health", &["GET"]),
    ("/events", &["GET"]),
    ("/sources", &["GET"]),
    ("/openapi.json", &["GET"]),
    ("/session", &["POST", "DELETE"]),
    ("/editor", &["GET"]),
    ("/files", &["GET"]),
    ("/system-prompt", &["GET", "PUT"]),
    ("/system-prompt/variables", &["GET"]),
    ("/system-prompt/versions", &["GET"]),
    ("/system-prompt/versions/{version}", &["GET"]),
    ("/system-prompt/versions/{version}/restore", &["POST"]),
    ("/system-prompt/versions/{version}/label", &["PUT"]),
    ("/compat", &["GET"]),
    ("/preview", &["POST"]),
    ("/preview/variables", &["POST"]),
    ("/workspaces", &["POST"]),
    ("/calls", &["GET", "POST"]),
    ("/calls/{id}", &["GET"]),
    ("/usage", &["GET"]),
    ("/v1/logs", &["POST"]),
    ("/conversations", &["GET"]),
    ("/conversations/{id}", &["GET", "DELETE"]),
    ("/conversations/{id}/epochs/{number}", &["GET"]),
    ("/conversations/{id}/turn", &["POST"]),
    ("/conversations/{id}/reload", &["POST"]),
    ("/conversations/{id}/tools", &["PUT"]),
    ("/conversations/{id}/tools/active", &["PUT"]),
    ("/conversations/{id}/profile", &["PUT"]),
    ("/conversations/{id}/resources", &["POST"]),
    ("/conversations/{id}/fork", &["POST"]),
    ("/conversations/{id}/spawn", &["POST"]),
    ("/conversations/{id}/calls", &["GET", "POST"]),
    ("/conversations/{id}/simulate", &["POST"]),
    ("/conversations/{id}/drift", &["GET"]),
    ("/conversations/{id}/diff", &["GET"]),
    ("/conversations/{id}/compaction", &["POST"]),
    ("/conversations/{id}/compaction/{token}", &["DELETE"]),
    ("/conversations/{id}/compaction/{token}/commit", &["POST"]),
];

/// Returns a route with a value for every parameter.
pub(crate) fn filled(route: &str) -> String {
    route.replace("{id}", "c").replace("{token}", "0").replace("{version}", "1").replace("{number}", "1")
}

/// Sends a request, and expects success.
pub(crate) fn done(server: &Server, call: &Call) -> Value {
    let answer = server.ask(call);
    assert_eq!(answer.status, 200, "{call:?}: {answer:?}");
    answer.json()
}

/// Sends a change of a conversation. Returns the number of its epoch, whether this change opened it, and the fields that
/// wait.
pub(crate) fn changed(server: &Server, call: &Call) -> (u64, bool, Vec<String>) {
    let answer = done(server, call);
    let waiting = answer["pending"].as_array().unwrap().iter();
    let waiting = waiting.map(|pending| pending["field"].as_str().unwrap().to_owned()).collect();
    (answer["epoch"].as_u64().unwrap(), answer["opened"].as_bool().unwrap(), waiting)
}

/// Returns a turn of a conversation whose prompt is its template.
pub(crate) fn turn(id: &str, template: &str) -> Call {
    let body = json!({ "profile": "template", "template": template });
    Call::json("POST", &format!("/conversations/{id}/turn"), &body)
}

#[test]
fn probes_answer() {
    let site = Site::new();
    let server = site.serve();
    assert_eq!(done(&server, &Call::get("/healthz")), json!({ "status": "ok" }));
    let metrics = server.ask(&Call::get("/metrics"));
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4"));
    assert!(metrics.body.contains("proem_requests_total{status=\"2xx\"} 1\n"), "{}", metrics.body);
}

#[test]
fn readiness_asks_the_store() {
    let site = Site::new();
    assert_eq!(done(&site.serve(), &Call::get("/readyz")), json!({ "status": "ok" }));
}

/// Row H7, the control.
#[test]
fn templates_are_kept_in_versions() {
    let site = Site::new();
    let server = site.serve();
    let built_in = json!({ "template": builtin::asset("default/base").unwrap(), "used": true });
    assert_eq!(done(&server, &Call::get("/system-prompt")), built_in);
    for (version, text) in [(1, "first"), (2, "second")] {
        let put = Call::json("PUT", "/system-prompt", &json!({ "template": text, "author": "me" }));
        let stored = json!({ "template": text, "version": version, "used": true });
        assert_eq!(done(&server, &put), stored);
        assert_eq!(done(&server, &Call::get("/system-prompt")), stored);
    }
    let restored = json!({ "template": "first", "version": 3, "used": true });
    assert_eq!(done(&server, &Call::new("POST", "/system-prompt/versions/1/restore")), restored);
    let versions = done(&server, &Call::get("/system-prompt/versions"));
    let texts: Vec<&Value> =
        versions["versions"].as_array().unwrap().iter().map(|one| &one["template"]).collect();
    assert_eq!(texts, ["first", "second", "first"]);
}

#[test]
fn a_template_that_replaces_another_version_is_refused() {
    let site = Site::new();
    let server = site.serve();
    let put = Call::json("PUT", "/system-prompt", &json!({ "template": "x", "expected_version": 7 }));
    let answer = server.ask(&put);
    assert_eq!((answer.status, answer.code()), (409, "conflict".into()));
    assert_eq!(done(&server, &Call::get("/system-prompt/versions")), json!({ "versions": [] }));
}

#[test]
fn variables_are_those_of_the_table() {
    let site = Site::new();
    let answer = done(&site.serve(), &Call::get("/system-prompt/variables"));
    let names = answer["variables"].as_array().unwrap().iter();
    let names: Vec<String> =
        names.map(|one| format!("{}:{}", one["type"], one["name"]).replace('"', "")).collect();
    let known: Vec<String> =
        Variable::ALL.iter().map(|one| format!("{}:{}", one.kind(), one.name())).collect();
    assert_eq!(names, known);
}

#[test]
fn previews_leave_nothing_behind() {
    let site = Site::new();
    site.write("work/AGENTS.md", "rules");
    let server = site.serve();
    let body = json!({ "profile": "template", "template": "<[file:AGENTS.md]>", "conversation": "c" });
    let answer = server.ask(&Call::json("POST", "/preview", &body));
    assert_eq!((answer.status, answer.system()), (200, "<rules>".into()));
    assert_eq!(done(&server, &Call::get("/conversations")), json!({ "conversations": [], "total": 0 }));
}

#[test]
fn conversations_are_listed_in_pages() {
    let site = Site::new();
    let server = site.serve();
    for id in ["one", "two", "three"] {
        done(&server, &turn(id, "x"));
    }
    let (mut names, mut place) = (Vec::new(), String::new());
    loop {
        let page = done(&server, &Call::get(&format!("/conversations?limit=1{place}")));
        names.push(page["conversations"][0]["conversation"].as_str().unwrap_or_default().to_owned());
        let Some(next) = page["next"].as_str() else { break };
        place = format!("&after={next}");
    }
    names.sort();
    assert_eq!(names, ["one", "three", "two"]);
    let found = done(&server, &Call::get("/conversations?search=thr"));
    assert_eq!(found["conversations"].as_array().unwrap().len(), 1);
}

/// Row H7.
#[test]
fn other_methods_are_refused_and_the_right_ones_named() {
    let site = Site::new();
    let server = site.serve();
    for (route, methods) in ROUTES {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "BREW"] {
            if methods.contains(&method) {
                continue;
            }
            let answer = server.ask(&Call::new(method, &filled(route)));
            assert_eq!((answer.status, answer.code()), (405, "wrong_method".into()), "{method} {route}");
            let allowed: Vec<&str> = answer.header("allow").unwrap_or_default().split(',').collect();
            assert!(methods.iter().all(|method| allowed.contains(method)), "{route}: {allowed:?}");
        }
    }
    assert_eq!(done(&server, &Call::get("/conversations")), json!({ "conversations": [], "total": 0 }));
}

#[test]
fn paths_that_are_no_routes_are_not_found() {
    let site = Site::new();
    let server = site.serve();
    for path in ["/nothing", "/healthz/", "//", "/conversations/", "/..", "/%2e%2e/etc/passwd"] {
        let answer = server.ask(&Call::get(path));
        assert_eq!((answer.status, answer.code()), (404, "not_found".into()), "{path}");
    }
}

#[test]
fn head_answers_like_get_without_a_body() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &turn("c", "x"));
    done(&server, &Call::json("PUT", "/system-prompt", &json!({ "template": "x" })));
    let is_of_content = |(name, _): &&(String, String)| name.starts_with("content-") || name == "etag";
    for (route, _) in ROUTES.iter().filter(|(route, methods)| {
        methods.contains(&"GET") && !["/metrics", "/health", "/events", "/calls/{id}"].contains(route)
    }) {
        let path = filled(route).replace("/diff", "/diff?from=1&to=1");
        let path = path.replace("/files", &format!("/files?dir={}", site.text("work")));
        let (get, head) = (server.ask(&Call::get(&path)), server.ask(&Call::new("HEAD", &path)));
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{route}");
        let of = |answer: &crate::client::Answer| -> Vec<(String, String)> {
            answer.headers.iter().filter(is_of_content).cloned().collect()
        };
        assert_eq!(of(&get), of(&head), "{route}");
    }
}
