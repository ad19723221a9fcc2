//! The routes of the web editor, and browser sessions.

use proem_server::{Options, Token};
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::routes::{done, turn};
use crate::server::{Server, Site};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn preview(server: &Server, template: &str) -> Value {
    done(server, &Call::json("POST", "/preview", &json!({ "profile": "template", "template": template })))
}

/// Returns the parts of a template in the given ranges.
fn texts<'t>(template: &'t str, ranges: &Value) -> Vec<&'t str> {
    let range = |range: &Value| {
        let at = |name: &str| usize::try_from(range[name].as_u64().unwrap()).unwrap();
        template.get(at("start")..at("end")).unwrap()
    };
    ranges.as_array().unwrap().iter().map(range).collect()
}

/// Row H10.
#[test]
fn pages_are_served_with_a_strict_policy() {
    let site = Site::new();
    let server = site.serve();
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/assets/app.js", "text/javascript; charset=utf-8"),
        ("/assets/app.css", "text/css; charset=utf-8"),
    ] {
        let answer = server.ask(&Call::get(path));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    }
    let page = server.ask(&Call::get("/")).body;
    assert!(!page.contains("<style") && !page.contains("style="), "{page}");
    assert!(page.matches("<script").count() == 1 && page.contains("src=\"assets/app.js\""), "{page}");
    assert_eq!(server.ask(&Call::get("/assets/other.js")).status, 404);
    let tag = server.ask(&Call::get("/assets/app.js")).header("etag").unwrap().to_owned();
    let again = server.ask(&Call::get("/assets/app.js").header("if-none-match", &tag));
    assert_eq!((again.status, again.body.as_str()), (304, ""));
}

#[test]
fn a_preview_tells_what_every_tag_does() {
    let site = Site::new();
    let server = site.serve();
    let template = "Größe [system:clock]\n[if git:branch]on[else]off[endif][git:brnch][else]";
    let answer = preview(&server, template);
    let tags = ["[system:clock]", "[if git:branch]", "[else]", "[endif]", "[git:brnch]", "[else]"];
    assert_eq!(texts(template, &answer["tags"]), tags);
    assert_eq!(answer["tags"][1]["group"], answer["tags"][3]["group"]);
    assert_eq!(answer["tags"][5]["problem"], true);
    assert_eq!(texts(template, &answer["unused"]), ["on"]);
    assert_eq!(texts(template, &json!([answer["breaks"][0]["tag"]])), ["[system:clock]"]);
    let made: Vec<Value> =
        answer["spans"].as_array().unwrap().iter().map(|span| span["tag"].clone()).collect();
    assert_eq!(texts(template, &made.into()), ["Größe ", "[system:clock]", "\n", "off", "[else]"]);
}

#[test]
fn a_fix_mends_what_its_note_is_about() {
    let site = Site::new();
    let server = site.serve();
    for (template, code, mended) in [
        ("[git:brnch]", "unknown_name", "[git:branch]"),
        ("[if !git:brnch]x[endif]", "unknown_name", "[if !git:branch]x[endif]"),
        ("é[if git:branch]x", "unclosed_if", "é[if git:branch]x[endif]"),
        ("é[endif]x", "stray_tag", "éx"),
    ] {
        let answer = preview(&server, template);
        let notes = answer["notes"].as_array().unwrap();
        let note = notes.iter().find(|note| note["code"] == code).unwrap_or_else(|| panic!("{answer}"));
        let fix = &note["fix"];
        let at = |name: &str| usize::try_from(fix[name].as_u64().unwrap()).unwrap();
        let insert = fix["insert"].as_str().unwrap();
        let (before, _) = template.split_at(at("start"));
        let (_, behind) = template.split_at(at("end"));
        assert_eq!([before, insert, behind].concat(), mended);
        let left = preview(&server, mended);
        assert!(!left["notes"].as_array().unwrap().iter().any(|note| note["code"] == code), "{left}");
    }
}

#[test]
fn variables_have_their_values_here() {
    let site = Site::new();
    let server = site.serve();
    let body = json!({ "variables": { "my:own": "x".repeat(5000) }, "host": { "timezone": "Asia/Tokyo" } });
    let answer = done(&server, &Call::json("POST", "/preview/variables", &body));
    let find = |kind: &str, name: &str| {
        let found = answer["variables"].as_array().unwrap().iter();
        found.clone().find(|one| one["type"] == kind && one["name"] == name).cloned().unwrap()
    };
    assert_eq!(find("system", "timezone")["value"], "Asia/Tokyo");
    let own = find("my", "own");
    assert_eq!((own["value"].as_str().unwrap().len(), &own["bytes"]), (4096, &json!(5000)));
    assert!(find("prompt", "model").get("absent").is_some(), "{answer}");
    assert_eq!(find("file", "PATH")["dynamic"], true);
}

#[test]
fn the_editor_is_told_what_there_is_to_choose() {
    let site = Site::new();
    let answer = done(&site.serve(), &Call::get("/editor"));
    assert_eq!(answer["workspaces"], json!([site.text("work")]));
    let names: Vec<&str> =
        answer["profiles"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"template") && names.contains(&"default"), "{names:?}");
    assert_eq!(answer["profile"], "default");
    assert_eq!(answer["built_in"], done(&site.serve(), &Call::get("/system-prompt"))["template"]);
    assert!(answer["providers"].as_array().unwrap().contains(&json!("anthropic")));
}

/// Row H14.
#[test]
fn files_of_workspaces_are_listed_and_no_others() {
    let site = Site::new();
    site.write("work/sub/a.md", "12");
    site.write("outside/secret", "x");
    site.link("work/out", &site.path("outside"));
    let server = site.serve();
    let list = |path: String| server.ask(&Call::get(&format!("/files?dir={path}")));
    let answer = list(site.text("work/sub")).json();
    assert_eq!(answer["entries"], json!([{ "name": "a.md", "kind": "file", "bytes": 2 }]));
    for inside in ["work/missing", "work/sub/a.md", "work/sub/missing/deeper"] {
        let answer = list(site.text(inside));
        assert_eq!((answer.status, answer.code()), (404, "no_directory".into()), "{inside}");
        let there = Call::json("POST", "/preview", &json!({ "cwd": site.text(inside) }));
        assert_eq!(server.ask(&there).status, if inside.contains(".md") { 400 } else { 404 }, "{inside}");
    }
    for outside in
        ["outside", "work/out", "work/out/missing", "work/../outside", "missing", "work/missing/.."]
    {
        let answer = list(site.text(outside));
        assert_eq!((answer.status, answer.code()), (403, "cwd_not_allowed".into()), "{outside}");
    }
    assert_eq!(list("work".into()).status, 403);
}

#[test]
fn an_epoch_tells_where_its_bytes_come_from() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &turn("c", "On [git:branch]"));
    let epoch = done(&server, &Call::get("/conversations/c/epochs/1?provider=anthropic"));
    assert_eq!((&epoch["conversation"], &epoch["epoch"]["reason"]), (&json!("c"), &json!("startup")));
    assert_eq!(epoch["carriers"]["system"], "On ");
    assert_eq!(epoch["spans"][0]["source"]["kind"], "request");
    assert!(epoch["payload"]["system"].to_string().contains("On "), "{epoch}");
    assert_eq!(server.ask(&Call::get("/conversations/c/epochs/2")).status, 404);
    assert_eq!(server.ask(&Call::get("/conversations/d/epochs/1")).status, 404);
    for wrong in ["1?provider=x", "x", "1?other=1"] {
        let answer = server.ask(&Call::get(&format!("/conversations/c/epochs/{wrong}")));
        assert_eq!((answer.status, answer.code()), (400, "bad_request".into()), "{wrong}");
    }
}

#[test]
fn versions_come_with_or_without_their_texts() {
    let site = Site::new();
    let server = site.serve();
    for text in ["one", "three"] {
        done(&server, &Call::json("PUT", "/system-prompt", &json!({ "template": text })));
    }
    let all = done(&server, &Call::get("/system-prompt/versions?text=false"));
    assert_eq!((&all["versions"][0]["bytes"], all["versions"][0].get("template")), (&json!(5), None));
    let older = done(&server, &Call::get("/system-prompt/versions?before=2&limit=1"));
    assert_eq!(
        (older["versions"].as_array().unwrap().len(), &older["versions"][0]["template"]),
        (1, &json!("one"))
    );
    assert_eq!(done(&server, &Call::get("/system-prompt/versions/2"))["template"], "three");
    assert_eq!(server.ask(&Call::get("/system-prompt/versions/3")).status, 404);
    assert_eq!(server.ask(&Call::get("/system-prompt/versions/x")).status, 400);
}

#[test]
fn nothing_stored_yet_is_a_version_too() {
    let site = Site::new();
    let server = site.serve();
    let put = |version: u64| {
        let body = json!({ "template": "mine", "expected_version": version });
        server.ask(&Call::json("PUT", "/system-prompt", &body))
    };
    assert_eq!((put(0).status, put(0).status, put(1).status), (200, 409, 200));
}

fn session(answer: &Answer) -> String {
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(TOKEN), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

/// Row H18.
#[test]
fn a_browser_gets_a_session_for_the_token() {
    let site = Site::new();
    let server = Server::start(site.store(), Options { token: Token::new(TOKEN), ..site.options() });
    assert_eq!(server.ask(&Call::get("/")).status, 200);
    assert_eq!(server.ask(&Call::get("/assets/app.js")).status, 200);
    let refused = server.ask(&Call::get("/editor"));
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(server.ask(&Call::new("POST", "/session")).status, 401);
    let shown = Call::new("POST", "/session").header("authorization", &format!("Bearer {TOKEN}"));
    let answer = server.ask(&shown);
    assert_eq!(answer.status, 204);
    let cookie = session(&answer);
    assert_eq!(server.ask(&Call::get("/editor").header("cookie", &cookie)).status, 200);
    let wrong = Call::get("/editor").header("cookie", &cookie).header("authorization", "Bearer wrong");
    assert_eq!(server.ask(&wrong).status, 401, "a cookie does not make up for a wrong token");
    let ended = server.ask(&Call::new("DELETE", "/session").header("cookie", &cookie));
    assert!(ended.header("set-cookie").unwrap().contains("Max-Age=0"));
    let other = Options { token: Token::new(&TOKEN.replace('0', "f")), ..site.options() };
    let other = Server::start(site.store(), other);
    assert_eq!(other.ask(&Call::get("/editor").header("cookie", &cookie)).status, 401);
}

#[test]
fn a_conversation_that_did_not_change_is_not_sent_again() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &turn("c", "T"));
    let tag = server.ask(&Call::get("/conversations/c")).header("etag").unwrap().to_owned();
    let again = |tag: &str| server.ask(&Call::get("/conversations/c").header("if-none-match", tag));
    let answer = again(&tag);
    assert_eq!((answer.status, answer.body.as_str(), answer.header("etag")), (304, "", Some(tag.as_str())));
    assert_eq!(again(&format!("\"x\", W/{tag}")).status, 304);
    assert_eq!(again("\"x\"").status, 200);
    done(&server, &Call::new("POST", "/conversations/c/compaction?commit=true"));
    assert_eq!(again(&tag).status, 200, "another epoch with the same text is another answer");
}
