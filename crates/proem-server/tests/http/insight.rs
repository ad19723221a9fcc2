//! Events, health, sources of a folder, and simulations of a conversation.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use proem_server::Options;
use serde_json::{Value, json};

use crate::client::Call;
use crate::routes::{done, turn};
use crate::server::{Server, Site};

/// An open stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(server: &Server, target: &str) -> Self {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(&Call::get(target).bytes(server.address, "close")).unwrap();
        Self(BufReader::new(stream))
    }

    /// Returns the next event: its name and its data; `None` at the end of the stream.
    fn next(&mut self) -> Option<(String, Value)> {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(word) = line.strip_prefix("event: ") {
                word.trim().clone_into(&mut name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap()));
            }
        }
    }
}

#[test]
fn events_tell_what_changes_in_the_store() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &turn("old", "x"));
    let mut events = Events::open(&server, "/events");
    let hello = json!({ "version": env!("CARGO_PKG_VERSION") });
    assert_eq!(events.next(), Some(("hello".into(), hello)));
    done(&server, &turn("c", "x"));
    assert_eq!(events.next(), Some(("epoch".into(), json!({ "conversation": "c", "epoch": 1 }))));
    done(&server, &Call::json("PUT", "/system-prompt", &json!({ "template": "x" })));
    assert_eq!(events.next(), Some(("template".into(), json!({ "version": 1 }))));
}

#[test]
fn events_of_a_conversation_tell_its_calls_and_not_those_of_others() {
    let site = Site::new();
    let server = site.serve();
    for id in ["c", "other"] {
        done(&server, &turn(id, "x"));
    }
    let mut events = Events::open(&server, "/events?conversation=c");
    assert_eq!(events.next().map(|(name, _)| name), Some("hello".into()));
    let usage = json!({ "usage": { "input_tokens": 12, "cache_read_input_tokens": 0 } });
    for id in ["other", "c"] {
        done(&server, &Call::json("POST", &format!("/conversations/{id}/calls"), &usage));
    }
    assert_eq!(events.next(), Some(("call".into(), json!({ "conversation": "c" }))));
    assert_eq!(server.ask(&Call::new("DELETE", "/conversations/c")).status, 204);
    assert_eq!(events.next(), Some(("removed".into(), json!({ "conversation": "c" }))));
}

#[test]
fn streams_end_with_the_server() {
    let site = Site::new();
    let mut server = site.serve();
    let mut events = Events::open(&server, "/events");
    assert_eq!(events.next().map(|(name, _)| name), Some("hello".into()));
    server.end();
    assert_eq!(events.next(), None);
}

#[test]
fn streams_are_bounded_and_a_closed_one_makes_room() {
    let site = Site::new();
    let server = site.serve();
    let open = || {
        let mut events = Events::open(&server, "/events");
        events.next().map(|_| events)
    };
    let held: Vec<Events> = std::iter::repeat_with(open).take(64).map(Option::unwrap).collect();
    let answer = server.ask(&Call::get("/events"));
    assert_eq!((answer.status, answer.code()), (503, "busy".into()));
    assert_eq!(done(&server, &Call::get("/health"))["work"]["streams"], 64);
    drop(held);
    let is_free = |_| done(&server, &Call::get("/health"))["work"]["streams"] == 0;
    assert!((0..100_000).any(is_free), "the places stay taken");
}

#[test]
fn events_of_no_conversation_are_refused() {
    let site = Site::new();
    let answer = site.serve().ask(&Call::get("/events?conversation=a%20b"));
    assert_eq!((answer.status, answer.code()), (400, "bad_id".into()));
}

#[test]
fn health_names_prices_store_and_work() {
    let site = Site::new();
    let options = Options { work_max: 3, ..site.options() };
    let server = Server::start(site.store(), options);
    done(&server, &Call::get("/healthz"));
    let health = done(&server, &Call::get("/health"));
    assert_eq!(health["store"]["answers"], true);
    assert_eq!(health["workspaces"], json!([site.text("work")]));
    assert_eq!((&health["work"]["running"], &health["work"]["running_max"]), (&json!(1), &json!(3)));
    assert_eq!((&health["latency"]["count"], &health["requests"]["2xx"]), (&json!(1), &json!(1)));
    let models = health["models"].as_array().unwrap();
    let opus = models.iter().find(|model| model["name"] == "claude-opus-5").unwrap();
    assert!(opus["cache_read"].as_f64() < opus["input"].as_f64(), "{opus}");
}

#[test]
fn sources_have_cost_readers_findings_and_older_texts() {
    let site = Site::new();
    site.write("work/AGENTS.md", "Run the tests.\n");
    let server = site.serve();
    let tools =
        json!([{ "name": "fetch", "description": "Fetches a page", "input_schema": { "type": "object" } }]);
    done(&server, &Call::json("POST", "/conversations/c/turn", &json!({ "prompt": "Hi", "tools": tools })));
    site.write("work/AGENTS.md", "Run the linter.\n");
    let answer = done(&server, &Call::get("/sources?model=claude-opus-5"));
    let row = |name: &str| {
        let rows = answer["sources"].as_array().unwrap().iter();
        rows.clone().find(|row| row["name"] == name).cloned().unwrap_or_default()
    };
    let file = row(&site.text("work/AGENTS.md"));
    assert_eq!((&file["kind"], &file["outcome"]), (&json!("instruction_file"), &json!("used")));
    assert_eq!((&file["older"], &file["older_in"]), (&json!(1), &json!(["c"])));
    assert!(file["usd_turn"].as_f64() < file["usd_new"].as_f64(), "{file}");
    let readers = file["agents"].as_array().unwrap().iter();
    let readers: Vec<&str> = readers.filter_map(|reader| reader["profile"].as_str()).collect();
    assert!(readers.contains(&"codex"), "{readers:?}");
    assert_eq!(row("fetch")["kind"], "tool");
    assert_eq!(answer["conversations"], 1);
}

#[test]
fn sources_of_a_folder_outside_are_refused() {
    let site = Site::new();
    let answer = site.serve().ask(&Call::get(&format!("/sources?cwd={}", site.text("outside"))));
    assert_eq!((answer.status, answer.code()), (403, "cwd_not_allowed".into()));
}

/// A conversation whose prompt is large enough for a cache.
fn conversation(server: &Server) {
    let text = format!("It is [system:time]. {}", "Read each file before you change it. ".repeat(400));
    let body = json!({ "profile": "template", "template": text, "model": "claude-opus-5" });
    done(server, &Call::json("POST", "/conversations/c/turn", &body));
}

#[test]
fn a_prompt_that_is_rebuilt_at_every_turn_costs_more() {
    let site = Site::new();
    let server = site.serve();
    conversation(&server);
    let ask = |body: Value| done(&server, &Call::json("POST", "/conversations/c/simulate", &body));
    let same = ask(json!({}));
    assert_eq!((&same["difference_usd"], &same["recorded"]), (&json!(0.0), &json!(false)));
    let moved = ask(json!({ "layout": "every_turn" }));
    assert!(moved["difference_usd"].as_f64() > Some(0.0), "{moved}");
    assert!(moved["then"]["turns"][5]["miss"].is_string(), "{moved}");
    let other = ask(json!({ "model": "claude-haiku-4-5" }));
    assert!(other["difference_usd"].as_f64() < Some(0.0), "{other}");
}

#[test]
fn a_simulation_takes_the_recorded_calls() {
    let site = Site::new();
    let server = site.serve();
    conversation(&server);
    for (at, read, written) in [(1_790_000_000, 0, 9_000), (1_790_000_060, 9_000, 500)] {
        let usage = json!({ "input_tokens": 10, "cache_read_input_tokens": read, "cache_creation_input_tokens": written });
        let call = json!({ "at": at, "response": { "usage": usage } });
        done(&server, &Call::json("POST", "/conversations/c/calls", &call));
    }
    let answer = done(&server, &Call::new("POST", "/conversations/c/simulate"));
    assert_eq!((&answer["calls"], &answer["recorded"]), (&json!(2), &json!(true)));
    let input = answer["now"]["turns"][1]["input_tokens"].as_u64().unwrap();
    assert!(input.abs_diff(9_510) < 300, "{input}");
    assert!(answer["now"]["turns"][1]["read"].as_u64() > Some(8_000), "{answer}");
}

#[test]
fn a_simulation_of_an_unknown_model_or_version_is_refused() {
    let site = Site::new();
    let server = site.serve();
    conversation(&server);
    for (body, status) in [(json!({ "model": "none" }), 400), (json!({ "version": 7 }), 404)] {
        let answer = server.ask(&Call::json("POST", "/conversations/c/simulate", &body));
        assert_eq!(answer.status, status, "{body}");
    }
}
