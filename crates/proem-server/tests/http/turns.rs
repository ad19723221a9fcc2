//! Turns, epochs and compactions.

use serde_json::{Value, json};

use crate::client::Call;
use crate::routes::{changed, done, turn};
use crate::server::{Server, Site};

fn store_template(server: &Server, text: &str) {
    done(server, &Call::json("PUT", "/system-prompt", &json!({ "template": text })));
}

#[test]
fn later_turns_get_the_bytes_of_the_first_one() {
    let site = Site::new();
    site.write("work/AGENTS.md", "old");
    let server = site.serve();
    let call = turn("c", "<[file:AGENTS.md]>");
    let first = server.ask(&call);
    site.write("work/AGENTS.md", "new");
    store_template(&server, "another");
    let later = server.ask(&Call::json("POST", "/conversations/c/turn", &json!({ "profile": "template" })));
    assert_eq!((first.system(), later.system()), ("<old>".into(), "<old>".into()));
    assert_eq!((&first.json()["reused"], &later.json()["reused"]), (&json!(false), &json!(true)));
    let digest = proem_core::digest::Digest::new(b"<old>").hex();
    for answer in [&first, &later] {
        assert_eq!(answer.json()["digest"], digest);
        assert_eq!(answer.header("etag"), Some(format!("\"{digest}\"").as_str()));
        assert_eq!((&answer.json()["epoch"], &answer.json()["reason"]), (&json!(1), &json!("startup")));
    }
}

#[test]
fn a_provider_gets_its_parts() {
    let site = Site::new();
    let server = site.serve();
    let body = json!({ "profile": "template", "template": "T", "provider": "anthropic", "prompt": "hello", "model": "claude-sonnet-4-5" });
    let answer = done(&server, &Call::json("POST", "/conversations/c/turn", &body));
    assert!(answer["payload"].is_object() && answer["messages"].is_array(), "{answer}");
    let begun = done(
        &server,
        &Call::json("POST", "/conversations/c/compaction", &json!({ "provider": "anthropic" })),
    );
    assert!(begun["payload"].is_object() && begun["messages"].is_array(), "{begun}");
    assert_eq!(done(&server, &Call::new("POST", "/conversations/c/compaction"))["payload"], Value::Null);
}

#[test]
fn a_turn_has_every_key() {
    const KEYS: [&str; 24] = [
        "boundary",
        "carriers",
        "changes",
        "conversation",
        "digest",
        "epoch",
        "expected_miss",
        "fingerprint",
        "history",
        "messages",
        "notes",
        "notices",
        "payload",
        "pending",
        "prefix",
        "profile",
        "reason",
        "reused",
        "signature",
        "suffix",
        "system_prompt",
        "tools",
        "turn",
        "version",
    ];
    let site = Site::new();
    let server = site.serve();
    for (id, body) in [
        ("c", json!({ "profile": "template", "template": "T" })),
        (
            "d",
            json!({ "profile": "boundary", "provider": "anthropic", "prompt": "hello", "model": "claude-sonnet-4-5" }),
        ),
    ] {
        for body in [body, json!({}), json!({ "prompt": "Go on" })] {
            let answer = done(&server, &Call::json("POST", &format!("/conversations/{id}/turn"), &body));
            let mut keys: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
            keys.sort_unstable();
            assert_eq!(keys, KEYS, "{answer}");
        }
    }
}

#[test]
fn what_a_turn_does_not_mention_stays() {
    let site = Site::new();
    let server = site.serve();
    let first = json!({ "cwd": site.text("work/sub"), "tools": [{ "name": "t" }] });
    let first = done(&server, &Call::json("POST", "/conversations/c/turn", &first));
    let later = done(&server, &Call::json("POST", "/conversations/c/turn", &json!({})));
    assert_eq!(
        (&later["epoch"], &later["reused"], &later["digest"]),
        (&json!(1), &json!(true), &first["digest"])
    );
}

#[test]
fn a_reload_takes_the_template_that_is_stored_now() {
    let site = Site::new();
    let server = site.serve();
    store_template(&server, "old words");
    done(&server, &Call::json("POST", "/conversations/c/turn", &json!({})));
    store_template(&server, "new words");
    let drift = done(&server, &Call::get("/conversations/c/drift"));
    assert_eq!(drift["plan"]["changed"], true, "{drift}");
    let plan = done(&server, &Call::new("POST", "/conversations/c/reload?plan=true"));
    assert_eq!((&plan["opened"], &plan["plan"]["changed"]), (&json!(false), &json!(true)));
    assert_eq!(changed(&server, &Call::new("POST", "/conversations/c/reload")), (2, true, vec![]));
    let diff = done(&server, &Call::get("/conversations/c/diff?from=1&to=2"));
    assert_eq!(diff["carriers"][0]["first_byte"], 0, "{diff}");
}

#[test]
fn a_reload_reads_the_files_as_they_are_now() {
    let site = Site::new();
    site.write("work/AGENTS.md", "old rules");
    let server = site.serve();
    done(&server, &Call::json("POST", "/conversations/c/turn", &json!({})));
    assert_eq!(changed(&server, &Call::new("POST", "/conversations/c/reload")), (1, false, vec![]));
    site.write("work/AGENTS.md", "new rules");
    assert_eq!(done(&server, &Call::get("/conversations/c/drift"))["plan"]["changed"], true);
    assert_eq!(done(&server, &Call::get("/conversations/c"))["epoch"], 1);
    assert_eq!(changed(&server, &Call::new("POST", "/conversations/c/reload")), (2, true, vec![]));
    let shown = server.ask(&Call::get("/conversations/c"));
    assert!(shown.system().contains("new rules"), "{shown:?}");
    assert_eq!(shown.json()["epochs"].as_array().unwrap().len(), 2);
}

#[test]
fn an_object_without_a_field_says_nothing() {
    let site = Site::new();
    site.write("work/AGENTS.md", "the old rules");
    let server = site.serve();
    let first = Call::json("POST", "/conversations/c/turn", &json!({ "profile": "layers" }));
    let first = server.ask(&first).system();
    assert!(first.contains("the old rules"), "{first}");
    for (path, rules) in [("reload", "the new rules"), ("compaction?commit=true", "the newest rules")] {
        site.write("work/AGENTS.md", rules);
        done(&server, &Call::json("POST", &format!("/conversations/c/{path}"), &json!({})));
        let shown = server.ask(&Call::get("/conversations/c")).system();
        assert_eq!(shown, first.replace("the old rules", rules), "{path}: the profile stays");
    }
}

#[test]
fn a_miss_is_judged_by_what_is_known() {
    let site = Site::new();
    site.write("work/AGENTS.md", "old rules");
    let server = site.serve();
    let model = "claude-opus-5";
    done(&server, &Call::json("POST", "/conversations/c/turn", &json!({ "model": model })));
    let call = |read: u64, written: u64, more: Value| {
        let usage = json!({
            "input_tokens": 9, "cache_read_input_tokens": read, "cache_creation_input_tokens": written });
        let mut body = json!({ "response": { "model": model, "usage": usage } });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        done(&server, &Call::json("POST", "/conversations/c/calls", &body))
    };
    let first = call(0, 7000, json!({}));
    assert_eq!((&first["call"], &first["epoch"], &first["blame"]), (&json!(1), &json!(1), &Value::Null));
    assert_eq!(first["verdict"], "cold_start");
    assert_eq!(call(7000, 40, json!({}))["expected"], 7000);
    site.write("work/AGENTS.md", "new rules");
    done(&server, &Call::new("POST", "/conversations/c/reload"));
    let miss = call(0, 7100, json!({}));
    assert_eq!((&miss["blame"], &miss["reason"]), (&json!("ours"), &json!("system_changed")));
    assert_eq!((&miss["verdict"], &miss["lost_tokens"]), (&json!("system_changed"), &json!(7040)));
    assert!(miss["why"].as_str().unwrap().contains("AGENTS.md was edited"), "{miss}");
    assert_eq!(call(0, 7200, json!({}))["blame"], "unknown", "what was sent is not known");
    let sent = |system: &str| json!({ "request": { "model": model, "system": system, "messages": [] } });
    assert_eq!(
        call(0, 7200, sent("something else"))["blame"],
        "unknown",
        "what was sent before is not known"
    );
    let frozen = server.ask(&Call::get("/conversations/c")).system();
    assert_eq!(call(0, 7200, sent(&frozen))["reason"], "system_changed");
    let all = done(&server, &Call::get("/conversations/c/calls"));
    assert_eq!(all["calls"].as_array().unwrap().len(), 6);
    let bad = server.ask(&Call::json("POST", "/conversations/c/calls", &json!({ "usage": {} })));
    assert_eq!((bad.status, bad.code()), (400, "bad_request".into()));
    let none = server.ask(&Call::json("POST", "/conversations/d/calls", &json!({ "usage": {} })));
    assert_eq!((none.status, none.code()), (404, "no_conversation".into()));
}

#[test]
fn tools_are_changed_or_only_planned() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &Call::json("POST", "/conversations/c/turn", &json!({})));
    let tools = json!({ "tools": [{ "name": "look", "snippet": "Looks" }] });
    let plan = done(&server, &Call::json("PUT", "/conversations/c/tools?plan=true", &tools));
    assert_eq!(
        (&plan["epoch"], &plan["opened"], &plan["plan"]["tools_changed"]),
        (&json!(1), &json!(false), &json!(true))
    );
    let put = Call::json("PUT", "/conversations/c/tools", &tools);
    let answer = done(&server, &put);
    let shown = done(&server, &Call::get("/conversations/c"));
    let expected = json!({
        "epoch": 2, "opened": true, "reason": "tools", "digest": shown["epochs"][1]["digest"], "pending": [],
        "notes": [],
    });
    assert_ne!(shown["epochs"][1]["digest"], shown["epochs"][0]["digest"]);
    assert_eq!(answer, expected);
    assert_eq!(changed(&server, &put), (2, false, vec![]));
}

#[test]
fn active_tools_are_chosen_by_name() {
    let site = Site::new();
    let server = site.serve();
    let first = json!({ "tools": [{ "name": "read" }, { "name": "bash" }] });
    done(&server, &Call::json("POST", "/conversations/c/turn", &first));
    let put = |names: &[&str]| Call::json("PUT", "/conversations/c/tools/active", &json!({ "names": names }));
    assert_eq!(changed(&server, &put(&["bash", "read"])), (1, false, vec![]), "the same set");
    let answer = done(&server, &put(&["read", "no-such"]));
    assert_eq!(
        (&answer["epoch"], &answer["opened"], &answer["reason"]),
        (&json!(2), &json!(true), &json!("tools"))
    );
    let note = &answer["notes"][0];
    assert_eq!(note["code"], "unknown_name");
    assert_eq!(note["message"], "no tool of the registry has the name `no-such`: ignored");
    let later = done(&server, &Call::json("POST", "/conversations/c/turn", &json!({})));
    let names: Vec<&Value> = later["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["read"]);
    // The registry has both, so that `bash` can become active again.
    assert_eq!(changed(&server, &put(&["bash"])), (3, true, vec![]));
}

#[test]
fn a_profile_is_switched() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &Call::json("POST", "/conversations/c/turn", &json!({})));
    let put = |profile: &str| Call::json("PUT", "/conversations/c/profile", &json!({ "profile": profile }));
    let answer = done(&server, &put("layers"));
    assert_eq!((&answer["epoch"], &answer["reason"]), (&json!(2), &json!("profile_switch:layers")));
    let later = done(&server, &Call::json("POST", "/conversations/c/turn", &json!({})));
    assert_eq!(
        (&later["profile"], &later["expected_miss"]),
        (&json!("layers"), &json!("profile_switch:layers"))
    );
    // `layers` does not list the reason.
    assert_eq!(changed(&server, &put("default")), (2, false, vec!["profile".into()]));
    let unknown = server.ask(&put("no-such"));
    assert_eq!(
        (unknown.status, unknown.code(), &unknown.json()["kind"]),
        (422, "build_failed".into(), &json!("profile"))
    );
    assert_eq!(changed(&server, &Call::new("POST", "/conversations/c/reload")), (3, true, vec![]));
    assert_eq!(done(&server, &Call::get("/conversations/c"))["epochs"][2]["profile"], "default");
}

#[test]
fn resources_and_skills_are_added_and_read_again() {
    let site = Site::new();
    let server = site.serve();
    let skill = |name: &str, words: &str| {
        let text = format!("---\nname: {name}\ndescription: {words}.\n---\n");
        site.write(&format!("work/more/{name}/SKILL.md"), &text);
    };
    let first = json!({ "tools": [{ "name": "read" }] });
    done(&server, &Call::json("POST", "/conversations/c/turn", &first));
    skill("one", "Old words");
    site.write("work/AGENTS.md", "new rules");
    let add = json!({ "skill_paths": ["more"] });
    let answer = done(&server, &Call::json("POST", "/conversations/c/resources", &add));
    assert_eq!((&answer["epoch"], &answer["reason"]), (&json!(2), &json!("resources")), "{answer}");
    let system = || server.ask(&Call::get("/conversations/c")).system();
    assert!(system().contains("Old words") && !system().contains("new rules"), "{}", system());
    assert_eq!(changed(&server, &Call::json("POST", "/conversations/c/resources", &add)), (2, false, vec![]));
    skill("one", "New words");
    skill("two", "Second words");
    let answer = done(&server, &Call::new("POST", "/conversations/c/reload?only=skills"));
    assert_eq!((&answer["epoch"], &answer["reason"]), (&json!(3), &json!("skills_reload")), "{answer}");
    assert!(system().contains("New words") && system().contains("Second words"), "{}", system());
    assert!(!system().contains("new rules"), "other files stay as they were read");
    for body in [json!({}), json!({ "model": "m" })] {
        let call = Call::json("POST", "/conversations/c/reload?only=skills&plan=true", &body);
        assert_eq!(server.ask(&call).status, 400, "{body}");
    }
}

#[test]
fn a_profile_that_does_not_rebuild_lets_the_change_wait() {
    let site = Site::new();
    let server = site.serve();
    let first = done(&server, &turn("c", "x"));
    let answer = done(&server, &Call::new("POST", "/conversations/c/reload"));
    let hint = "the next compaction applies it; for another prompt now, begin another conversation";
    let note = json!({
        "code": "pending_change", "severity": "info", "hint": hint,
        "message": "the change of `files` waits: the profile `template` keeps its prompt until the next epoch",
    });
    let expected = json!({
        "epoch": 1, "opened": false, "reason": "startup", "digest": first["digest"],
        "pending": [{ "field": "files", "reason": "reload" }], "notes": [note],
    });
    assert_eq!(answer, expected);
    let later = done(&server, &Call::json("POST", "/conversations/c/turn", &json!({})));
    assert_eq!((&later["digest"], &later["pending"]), (&first["digest"], &expected["pending"]));
}

#[test]
fn a_compaction_that_the_profile_does_not_allow_is_refused() {
    let site = Site::new();
    let profile = "name = \"still\"\nextends = \"template\"\nrebuild = []\n";
    site.write("work/.proem/profiles/still.toml", profile);
    let server = site.serve();
    let first = json!({ "profile": "still", "template": "x" });
    done(&server, &Call::json("POST", "/conversations/c/turn", &first));
    let answer = server.ask(&Call::new("POST", "/conversations/c/compaction"));
    assert_eq!((answer.status, answer.code()), (409, "rebuild_not_allowed".into()));
}

fn begin(server: &Server, id: &str) -> Value {
    done(server, &Call::new("POST", &format!("/conversations/{id}/compaction")))
}

/// Row S8.
#[test]
fn a_compaction_has_two_steps() {
    let site = Site::new();
    let server = site.serve();
    for (id, body, policy) in
        [("c", json!({}), "aligned"), ("d", json!({ "profile": "template", "template": "T" }), "append")]
    {
        done(&server, &Call::json("POST", &format!("/conversations/{id}/turn"), &body));
        let begun = begin(&server, id);
        assert_eq!((&begun["policy"], &begun["epoch"]), (&json!(policy), &json!(1)));
        assert_eq!(done(&server, &Call::get(&format!("/conversations/{id}")))["epoch"], 1);
        let token = begun["token"].as_str().unwrap();
        let commit = Call::new("POST", &format!("/conversations/{id}/compaction/{token}/commit"));
        let answer = done(&server, &commit);
        let shown = done(&server, &Call::get(&format!("/conversations/{id}")));
        let digest = &shown["epochs"][1]["digest"];
        let expected = json!({
            "epoch": 2, "opened": true, "reason": "compaction", "digest": digest, "pending": [], "notes": [],
        });
        assert!(digest.is_string());
        assert_eq!(answer, expected);
        // An answer may get lost: a retry gets the same answer, and opens no further epoch.
        assert_eq!(done(&server, &commit), expected, "{id}");
        assert_eq!(done(&server, &Call::get(&format!("/conversations/{id}")))["epoch"], 2);
    }
}

/// Row S2.
#[test]
fn a_compaction_that_another_overtook_opens_no_epoch() {
    let site = Site::new();
    let server = site.serve();
    for (id, overtakes) in [("control", false), ("overtaken", true)] {
        done(&server, &turn(id, "T"));
        let token = begin(&server, id)["token"].as_str().unwrap().to_owned();
        if overtakes {
            let other = Call::new("POST", &format!("/conversations/{id}/compaction?commit=true"));
            assert_eq!(done(&server, &other)["epoch"], 2);
        }
        let commit = Call::new("POST", &format!("/conversations/{id}/compaction/{token}/commit"));
        // One of the two opened it: there is one epoch after the first.
        assert_eq!(done(&server, &commit)["epoch"], 2, "{id}");
        assert_eq!(done(&server, &Call::get(&format!("/conversations/{id}")))["epoch"], 2, "{id}");
    }
}

#[test]
fn an_appended_compaction_ends_with_its_instructions() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &turn("c", "T"));
    let begun = begin(&server, "c");
    let whole = format!("T\n\n{}", begun["instructions"].as_str().unwrap());
    assert_eq!(begun["carriers"]["system"], whole);
    let at_once = done(&server, &Call::new("POST", "/conversations/c/compaction?commit=true"));
    assert_eq!(at_once["epoch"], 2);
    assert_eq!(server.ask(&Call::get("/conversations/c")).system(), "T");
}

#[test]
fn a_compaction_that_is_ended_changes_nothing() {
    let site = Site::new();
    let server = site.serve();
    for id in ["c", "d"] {
        done(&server, &turn(id, "T"));
    }
    let token = begin(&server, "c")["token"].as_str().unwrap().to_owned();
    let ask = |method: &str, id: &str, end: &str| {
        server.ask(&Call::new(method, &format!("/conversations/{id}/compaction/{token}{end}"))).status
    };
    assert_eq!(
        (ask("POST", "d", "/commit"), ask("DELETE", "d", "")),
        (404, 404),
        "it is another conversation's"
    );
    assert_eq!(ask("DELETE", "c", ""), 204);
    assert_eq!((ask("DELETE", "c", ""), ask("POST", "c", "/commit")), (404, 404));
    assert_eq!(done(&server, &Call::get("/conversations/c"))["epoch"], 1);
}

#[test]
fn a_conversation_that_is_forgotten_is_gone() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &turn("c", "old"));
    let token = begin(&server, "c")["token"].as_str().unwrap().to_owned();
    assert_eq!(server.ask(&Call::new("DELETE", "/conversations/c")).status, 204);
    assert_eq!(server.ask(&Call::new("DELETE", "/conversations/c")).status, 404);
    assert_eq!(server.ask(&turn("c", "new")).system(), "new");
    let commit = Call::new("POST", &format!("/conversations/c/compaction/{token}/commit"));
    assert_eq!(server.ask(&commit).status, 404);
}

#[test]
fn no_conversation_shows_the_text_of_another() {
    let site = Site::new();
    let server = site.serve();
    for id in ["a", "b"] {
        done(&server, &turn(id, &format!("SECRET-OF-{id}")));
    }
    for path in ["", "/drift", "/diff?from=1&to=1"] {
        assert!(
            !server.ask(&Call::get(&format!("/conversations/b{path}"))).body.contains("SECRET-OF-a"),
            "{path}"
        );
    }
    for path in ["turn", "reload", "reload?plan=true", "compaction", "compaction?commit=true"] {
        let answer = server.ask(&Call::new("POST", &format!("/conversations/b/{path}")));
        assert!(!answer.body.contains("SECRET-OF-a"), "{path}");
    }
    for path in ["/conversations", "/conversations?search=SECRET", "/metrics", "/system-prompt/versions"] {
        assert!(!server.ask(&Call::get(path)).body.contains("SECRET-OF"), "{path}");
    }
}

#[test]
fn a_conversation_outlives_its_directory() {
    let site = Site::new();
    let server = site.serve();
    for (id, profile) in [("c", "template"), ("d", "default")] {
        std::fs::create_dir_all(site.path("work/gone")).unwrap();
        let body = json!({ "profile": profile, "cwd": site.text("work/gone") });
        let path = format!("/conversations/{id}/turn");
        let first = server.ask(&Call::json("POST", &path, &body)).json();
        std::fs::remove_dir(site.path("work/gone")).unwrap();
        let later = done(&server, &Call::json("POST", &path, &json!({ "prompt": "Go on" })));
        assert_eq!((&later["digest"], &later["reused"]), (&first["digest"], &json!(true)), "{profile}");
        let drift = server.ask(&Call::get(&format!("/conversations/{id}/drift")));
        assert_eq!((drift.status, drift.code()), (404, "no_directory".into()), "{profile}");
    }
}

#[test]
fn every_built_in_profile_can_be_previewed() {
    let site = Site::new();
    let server = site.serve();
    for profile in ["assets", "boundary", "default", "engraving", "layers", "template"] {
        done(&server, &Call::json("POST", "/preview", &json!({ "profile": profile })));
    }
}
