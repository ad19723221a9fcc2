//! Answers from memory have the same bytes as built ones, and are never those of another epoch.

use std::sync::Arc;

use proem_store::{PostgresStore, Store};
use proem_testkit::PostgresServer;
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::routes::{done, turn};
use crate::server::{Server, Site};

const TURN: &str = "/conversations/c/turn";
const SHOW: &str = "/conversations/c";

fn later() -> Call {
    Call::json("POST", TURN, &json!({}))
}

/// Returns the answer to the next turn. It is requested twice, so that the second answer may come from memory.
fn asked(server: &Server) -> Answer {
    let (first, second) = (server.ask(&later()), server.ask(&later()));
    assert_eq!((first.status, second.status), (200, 200), "{first:?}");
    assert_eq!((told_once(&first), first.header("etag")), (told_once(&second), second.header("etag")));
    assert_eq!(second.json()["expected_miss"], Value::Null, "it is reported once");
    assert_eq!(first.header("content-type"), Some("application/json"));
    second
}

/// Returns the bytes of an answer without the expected miss, which one turn after a change reports.
fn told_once(answer: &Answer) -> String {
    let miss = format!("\"expected_miss\":{}", answer.json()["expected_miss"]);
    assert!(answer.body.contains(&miss), "{answer:?}");
    answer.body.replacen(&miss, "", 1)
}

/// Returns the epoch and the prompt of two servers, which must agree.
fn both(servers: &[Server; 2]) -> (Value, String) {
    let [one, two] = [0, 1].map(|index| asked(&servers[index]));
    assert_eq!(one.body, two.body);
    (one.json()["epoch"].clone(), one.system())
}

/// Returns the `ETag` of the conversation. A request with it gets 304.
fn tag(servers: &[Server; 2]) -> String {
    let tags = [0, 1].map(|index| servers[index].ask(&Call::get(SHOW)).header("etag").unwrap().to_owned());
    assert_eq!(tags[0], tags[1]);
    for server in servers {
        for _ in 0..2 {
            let known = server.ask(&Call::get(SHOW).header("if-none-match", &tags[0]));
            assert_eq!((known.status, known.body.as_str()), (304, ""));
        }
    }
    tags[0].clone()
}

/// Changes a conversation in every way with one server, and checks the answers of the other.
fn check_follows(site: &Site, servers: &[Server; 2]) {
    let [one, two] = servers;
    let profile = "name = \"loose\"\nextends = \"template\"\nrebuild = [\"reload\", \"compaction\"]\n";
    site.write("work/.proem/profiles/loose.toml", profile);
    site.write("work/AGENTS.md", "first");
    let begin = Call::json("POST", TURN, &json!({ "profile": "loose", "template": "<[file:AGENTS.md]>" }));
    assert_eq!(one.ask(&begin).system(), "<first>");
    assert_eq!(both(servers), (json!(1), "<first>".into()));
    let mut tags = vec![tag(servers)];
    let mut check_new = |expected: (Value, &str), why: &str| {
        // The first request after the change has the old `ETag`, and gets the new answer.
        let stale = Call::get(SHOW).header("if-none-match", tags.last().unwrap());
        assert_eq!(two.ask(&stale).status, 200, "{why}");
        let (epoch, system) = both(servers);
        assert_eq!((epoch, system.as_str()), expected, "{why}");
        let tag = tag(servers);
        assert!(!tags.contains(&tag), "{why}: {tag} in {tags:?}");
        tags.push(tag);
    };
    site.write("work/AGENTS.md", "second");
    done(one, &Call::new("POST", "/conversations/c/reload"));
    check_new((json!(2), "<second>"), "a reload");
    done(one, &Call::new("POST", "/conversations/c/compaction?commit=true"));
    check_new((json!(3), "<second>"), "a compaction");
    done(one, &Call::json("PUT", "/system-prompt", &json!({ "template": "another" })));
    assert_eq!(both(servers), (json!(3), "<second>".into()), "a template changes nothing");
    assert_eq!(one.ask(&Call::new("DELETE", SHOW)).status, 204);
    assert_eq!(two.ask(&Call::get(SHOW).header("if-none-match", "*")).status, 404);
    assert_eq!(one.ask(&begin).system(), "<second>");
    check_new((json!(1), "<second>"), "started again");
    assert_eq!(one.ask(&Call::new("DELETE", SHOW)).status, 204);
    assert_eq!(two.ask(&turn("c", "other")).system(), "other");
    check_new((json!(1), "other"), "started again with another prompt");
}

#[test]
fn two_servers_on_one_file_give_what_is_current() {
    let site = Site::new();
    check_follows(&site, &[site.serve(), site.serve()]);
}

#[test]
fn two_servers_on_one_database_give_what_is_current() {
    let Some(database) = PostgresServer::start() else { return };
    let (site, url) = (Site::new(), database.database("memory"));
    // They outlive the servers: a connection to a database cannot be closed inside the runtime.
    let stores = [0, 1].map(|_| -> Arc<dyn Store> { Arc::new(PostgresStore::connect(&url).unwrap()) });
    let serve = |store: &Arc<dyn Store>| Server::start(Arc::clone(store), site.options());
    check_follows(&site, &[serve(&stores[0]), serve(&stores[1])]);
}

#[test]
fn a_change_that_a_turn_names_is_followed_whatever_is_in_memory() {
    let site = Site::new();
    let server = site.serve();
    let body = |tool: &str| json!({ "profile": "layers", "tools": [{ "name": tool, "snippet": "does it" }] });
    let call = |tool: &str| Call::json("POST", TURN, &body(tool));
    let first = done(&server, &call("read"));
    assert_eq!(done(&server, &call("read"))["epoch"], first["epoch"]);
    let other = done(&server, &call("write"));
    assert_eq!((&other["epoch"], &other["reason"]), (&json!(2), &json!("tools")), "{other}");
    assert_eq!(done(&server, &later())["epoch"], 2);
    assert_eq!(done(&server, &call("write"))["reused"], true);
}

/// An answer that is stored in memory and one that is built have the same bytes.
#[test]
fn later_turns_differ_from_the_first_in_one_word() {
    let site = Site::new();
    let server = site.serve();
    let text = "\"a\" \\ b\tc\r\n\u{1}\u{7f}é🦀\n".repeat(50);
    let call = Call::json("POST", TURN, &json!({ "profile": "template", "system": text }));
    let first = server.ask(&call);
    assert_eq!(first.system(), text);
    let expected = first.body.replacen("\"reused\":false", "\"reused\":true", 1);
    assert_ne!(expected, first.body);
    for _ in 0..2 {
        let later = server.ask(&call);
        assert_eq!(later.body, expected);
        let named = |answer: &Answer| {
            let names = answer.headers.iter().map(|(name, _)| name.clone());
            names.collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(named(&later), named(&first));
    }
}

/// An answer in memory does not bypass any check of the request.
#[test]
fn a_known_conversation_still_looks_at_the_request() {
    let site = Site::new();
    let server = Server::start(site.store(), proem_server::Options { body_bytes_max: 300, ..site.options() });
    done(&server, &turn("c", "T"));
    done(&server, &later());
    let text = |body: &str| Call::new("POST", TURN).text("application/json", body.as_bytes().to_vec());
    for (body, status) in [
        (String::new(), 200),
        (" { } ".into(), 200),
        ("{\"prompt\": \"hello\"}".into(), 200),
        (format!("{{\"prompt\": \"{}\"}}", "x".repeat(300)), 413),
        ("{\"unknown\": 1}".into(), 400),
        ("{".into(), 400),
        ("[]".into(), 400),
        ("{\"conversation\": \"d\"}".into(), 400),
        ("{\"provider\": \"nobody\"}".into(), 400),
        ("{\"prov\\u0069der\": \"nobody\"}".into(), 400),
        ("{\"cwd\": \"/\"}".into(), 403),
    ] {
        let answer = server.ask(&text(&body));
        assert_eq!(answer.status, status, "{body}: {answer:?}");
    }
    let no_text = Call::new("POST", TURN).text("application/json", vec![b'{', 0xff, b'}']);
    assert_eq!(server.ask(&no_text).status, 400);
    assert_eq!(server.ask(&later().header("host", "elsewhere")).status, 421);
    assert_eq!(server.ask(&Call::json("POST", "/conversations/%63/turn", &json!({}))).system(), "T");
}

/// Row H14: the directory was replaced by a link out of the workspace, or removed.
#[test]
fn a_directory_that_leads_outside_is_refused() {
    let site = Site::new();
    let body = json!({ "profile": "template", "template": "T", "cwd": site.text("work/sub") });
    done(&site.serve(), &Call::json("POST", TURN, &body));
    std::fs::rename(site.path("work/sub"), site.path("work/moved")).unwrap();
    site.link("work/sub", &site.path("outside"));
    // Each with a new server, which has not checked the directory yet.
    let refused = site.serve().ask(&later());
    assert_eq!((refused.status, refused.code()), (403, "cwd_not_allowed".into()));
    std::fs::remove_file(site.path("work/sub")).unwrap();
    assert_eq!(site.serve().ask(&later()).status, 200, "a conversation outlives its directory");
    site.link("work/sub", &site.path("work/moved"));
    assert_eq!(site.serve().ask(&later()).status, 200, "the link stays within the workspace");
}
