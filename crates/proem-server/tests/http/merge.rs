//! Fields of earlier requests stay: bodies of later turns, reloads and compactions are merged into the request.

use serde_json::{Value, json};

use crate::client::Call;
use crate::routes::{changed, done};
use crate::server::{Server, Site};

fn post(server: &Server, path: &str, body: &Value) -> Value {
    done(server, &Call::json("POST", &format!("/conversations/c/{path}"), body))
}

fn codes(answer: &Value) -> Vec<(&str, &str)> {
    let notes = answer["notes"].as_array().unwrap().iter();
    notes.map(|note| (note["code"].as_str().unwrap(), note["message"].as_str().unwrap())).collect()
}

/// F2.
#[test]
fn a_compaction_keeps_profile_and_tools_and_takes_what_it_names() {
    let site = Site::new();
    let server = site.serve();
    let tools = json!([{ "name": "read", "description": "Reads." }]);
    let first =
        json!({ "profile": "template", "template": "m=[prompt:model]", "model": "m1", "tools": tools });
    post(&server, "turn", &first);
    post(&server, "compaction?commit=true", &json!({ "model": "m2" }));
    let later = post(&server, "turn", &json!({ "provider": "anthropic", "prompt": "hello" }));
    assert_eq!(later["epoch"], 2, "{later}");
    assert_eq!(later["carriers"]["system"], "m=m2");
    assert_eq!(later["payload"]["tools"][0]["name"], "read");
}

/// F2.
#[test]
fn a_reload_keeps_the_profile_and_null_removes_a_field() {
    let site = Site::new();
    let server = site.serve();
    let first = json!({ "profile": "layers", "append": "One.", "tools": [{ "name": "read" }] });
    let before = post(&server, "turn", &first);
    let reload = Call::json("POST", "/conversations/c/reload", &json!({ "append": "Two." }));
    assert_eq!(changed(&server, &reload), (2, true, vec![]));
    let second = post(&server, "turn", &json!({}));
    let text = |answer: &Value| answer["carriers"]["system"].as_str().unwrap().to_owned();
    assert_eq!(text(&second), text(&before).replace("One.", "Two."));
    post(&server, "reload", &json!({ "append": null }));
    assert!(!text(&post(&server, "turn", &json!({}))).contains("Two."));
}

/// F5.
#[test]
fn later_turns_remember_project_variables_and_host() {
    let site = Site::new();
    let server = site.serve();
    let without = json!({ "profile": "boundary", "project": false });
    let first = post(&server, "turn", &without);
    let later = post(&server, "turn", &json!({}));
    let parts =
        |answer: &Value| ["carriers", "boundary", "suffix", "system_prompt"].map(|key| answer[key].clone());
    assert_eq!(parts(&later), parts(&first));

    let site = Site::new();
    let server = site.serve();
    let pinned = json!({
        "profile": "boundary",
        "variables": { "git:status": "PINNED", "git:diff": "", "git:branch": "trunk" },
        "host": { "shell": "/bin/zsh", "now": "2026-01-02T03:04:05Z", "os": "linux", "os_version": "1" },
    });
    let first = post(&server, "turn", &pinned);
    let later = post(&server, "turn", &json!({}));
    assert!(first["suffix"].as_str().unwrap().contains("PINNED"), "{first}");
    assert_eq!(first["carriers"]["system"], first["prefix"], "carriers are frozen");
    assert_eq!(parts(&later), parts(&first));
}

/// F10.
#[test]
fn a_field_that_changes_nothing_in_the_frozen_prompt_is_noted() {
    let site = Site::new();
    let server = site.serve();
    let template = "m=[prompt:model][if prompt:language] l[endif]";
    post(&server, "turn", &json!({ "profile": "template", "template": template, "model": "m1" }));
    let message = |field: &str| {
        format!("the change of `{field}` waits: the profile `template` keeps its prompt until the next epoch")
    };
    for (field, value) in [
        ("system", json!("other")),
        ("append", json!("more")),
        ("language", json!("French")),
        ("model", json!("m2")),
    ] {
        let mut body = json!({});
        body[field] = value;
        let later = post(&server, "turn", &body);
        assert_eq!(later["carriers"]["system"], "m=m1");
        assert_eq!(codes(&later), [("pending_change", message(field).as_str())], "{field}");
    }
    let same = post(&server, "turn", &json!({ "model": "m1", "profile": "template" }));
    assert_eq!(codes(&same), []);
}

/// A model that the text does not name takes effect at once.
#[test]
fn another_model_is_no_change_of_a_text_without_it() {
    let site = Site::new();
    let server = site.serve();
    post(&server, "turn", &json!({ "profile": "template", "template": "T", "model": "claude-sonnet-4-5" }));
    let body = json!({ "model": "claude-opus-4-5", "provider": "anthropic", "prompt": "hello" });
    let later = post(&server, "turn", &body);
    assert_eq!(later["payload"]["model"], "claude-opus-4-5");
    assert!(codes(&later).iter().all(|(code, _)| *code != "pending_change"), "{later}");
}
