//! Versions of the template, the epochs that begin with them, and what a drift and a comparison say.

use serde_json::{Value, json};

use crate::client::Call;
use crate::kept::on_each_store;
use crate::routes::{done, turn};
use crate::server::{Server, Site};

fn save(server: &Server, body: &Value) -> Value {
    done(server, &Call::json("PUT", "/system-prompt", body))
}

fn versions(server: &Server) -> Vec<Value> {
    let answer = done(server, &Call::get("/system-prompt/versions?text=false"));
    answer["versions"].as_array().unwrap().clone()
}

/// Begins a conversation whose prompt is the stored template.
fn begin(server: &Server, id: &str) -> Value {
    done(server, &Call::json("POST", &format!("/conversations/{id}/turn"), &json!({ "profile": "template" })))
}

#[test]
fn a_version_has_a_message_a_label_and_its_conversations() {
    on_each_store(|kind, server| {
        save(server, &json!({ "template": "one", "author": "Ada", "message": "Say one" }));
        assert_eq!(begin(server, "a")["carriers"]["system"], "one", "{kind}");
        let draft = save(server, &json!({ "template": "two", "label": "draft" }));
        assert_eq!((&draft["used"], &draft["label"]), (&json!(false), &json!("draft")), "{kind}");
        assert_eq!(begin(server, "b")["carriers"]["system"], "one", "{kind}: a draft is not used");
        let rows = versions(server);
        let row = |row: &Value| json!([row["version"], row["message"], row["label"], row["conversations"]]);
        let found: Vec<Value> = rows.iter().map(row).collect();
        let expected = [json!([2, null, "draft", 0]), json!([1, "Say one", "live", 2])];
        assert_eq!(found, expected, "{kind}");
        let label = |version: u64, label: &str| {
            let path = format!("/system-prompt/versions/{version}/label");
            server.ask(&Call::json("PUT", &path, &json!({ "label": label })))
        };
        assert_eq!(label(2, "live").json()["label"], "live", "{kind}");
        assert_eq!(begin(server, "c")["carriers"]["system"], "two", "{kind}");
        assert_eq!((label(1, "live").status, label(9, "live").status), (409, 404), "{kind}");
        assert_eq!(label(1, "old").status, 400, "{kind}");
        let epochs = done(server, &Call::get("/conversations/c"))["epochs"].clone();
        assert_eq!(epochs[0]["template_version"], 2, "{kind}");
        let restored = done(server, &Call::new("POST", "/system-prompt/versions/1/restore"));
        assert_eq!(restored, json!({ "template": "one", "version": 3, "used": true }), "{kind}");
        assert_eq!(versions(server)[0]["message"], "Restored version 1", "{kind}");
        let long = json!({ "template": "x", "message": "m".repeat(1001) });
        let answer = server.ask(&Call::json("PUT", "/system-prompt", &long));
        assert_eq!(answer.status, 400, "{kind}");
        assert!(answer.body.contains("`message` has 1001 bytes, and 1000 are allowed"), "{answer:?}");
    });
}

#[test]
fn a_drift_names_the_versions_of_the_template() {
    let site = Site::new();
    let server = site.serve();
    save(&server, &json!({ "template": "Be calm." }));
    // A profile that allows reloads, and takes the stored template.
    done(&server, &Call::json("POST", "/conversations/c/turn", &json!({ "profile": "default" })));
    save(&server, &json!({ "template": "Be quick.", "author": "Miguel" }));
    let drift = done(&server, &Call::get("/conversations/c/drift"));
    let first = &drift["comparison"]["first_difference"];
    assert_eq!(
        (&first["cause"], &first["message"]),
        (&json!("template"), &json!("template version 1 → 2, saved by Miguel"))
    );
    assert_eq!(drift["plan"]["volatile_only"], false);
    done(&server, &Call::new("POST", "/conversations/c/reload"));
    let epochs = done(&server, &Call::get("/conversations/c"))["epochs"].clone();
    assert_eq!(json!([epochs[0]["template_version"], epochs[1]["template_version"]]), json!([1, 2]));
    let diff = done(&server, &Call::get("/conversations/c/diff?from=1&to=2"));
    assert_eq!(diff["comparison"]["first_difference"]["cause"], "template");
}

#[test]
fn a_drift_tells_a_clock_from_an_edit() {
    let site = Site::new();
    site.write("work/notes.md", "one\n");
    let server = site.serve();
    let now = |time: &str, template: &str| json!({ "profile": "template", "template": template, "host": { "now": time } });
    let begin = |id: &str, template: &str| {
        let path = format!("/conversations/{id}/turn");
        done(&server, &Call::json("POST", &path, &now("2026-03-07T14:55:05Z", template)))
    };
    let plan = |id: &str| {
        let path = format!("/conversations/{id}/reload?plan=true");
        let update = json!({ "host": { "now": "2026-03-08T14:55:06Z" } });
        done(&server, &Call::json("POST", &path, &update))["plan"].clone()
    };
    begin("clock", "It is [system:time] on [system:date].");
    begin("file", "It is [system:time]. [file:notes.md]");
    begin("calm", "It is [prompt:cwd].");
    assert_eq!((&plan("clock")["changed"], &plan("clock")["volatile_only"]), (&json!(true), &json!(true)));
    assert_eq!(plan("calm")["volatile_only"], false, "nothing changed");
    site.write("work/notes.md", "two\n");
    assert_eq!(plan("file")["volatile_only"], false, "a file was edited too");
}

#[test]
fn tools_that_differ_come_with_their_definitions() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &turn("c", "x"));
    let tools = json!({ "tools": [{ "name": "fetch", "description": "Fetches." }] });
    let plan = done(&server, &Call::json("PUT", "/conversations/c/tools?plan=true", &tools))["plan"].clone();
    assert_eq!(json!([plan["tools"][0]["name"], plan["tools"][0]["kind"]]), json!(["fetch", "added"]));
    assert!(plan["tools"][0].get("before").is_none(), "{plan}");
    done(
        &server,
        &Call::json(
            "POST",
            "/conversations/d/turn",
            &json!({
                "profile": "default", "tools": [{ "name": "read", "description": "Reads." }],
            }),
        ),
    );
    done(&server, &Call::json("PUT", "/conversations/d/tools", &tools));
    let diff = done(&server, &Call::get("/conversations/d/diff?from=1&to=2"));
    let kinds: Vec<Value> =
        diff["tools"].as_array().unwrap().iter().map(|tool| json!([tool["name"], tool["kind"]])).collect();
    assert_eq!(kinds, [json!(["read", "removed"]), json!(["fetch", "added"])]);
    let after = diff["tools"][1]["after"].as_str().unwrap();
    assert!(after.contains('\n') && after.contains("\"Fetches.\""), "{after}");
    assert_eq!(diff["comparison"]["first_difference"]["place"], "tools");
}

#[test]
fn files_are_searched_on_all_levels() {
    let site = Site::new();
    for number in 0..1200 {
        site.write(&format!("work/sub/many/file-{number:05}.txt"), "");
    }
    site.write("work/sub/Deep/AGENTS.md", "x");
    let server = site.serve();
    let search = |query: &str| done(&server, &Call::get(&format!("/files?{query}")));
    let found = search("search=01199");
    assert_eq!(found["entries"][0]["path"], site.text("work/sub/many/file-01199.txt"));
    assert_eq!(json!([found["entries"].as_array().unwrap().len(), found["more"]]), json!([1, false]));
    let below = search(&format!("search=deep%20agents&dir={}", site.text("work/sub")));
    assert_eq!(below["entries"][0]["name"], "Deep/AGENTS.md");
    let all = search("search=file-");
    assert_eq!(json!([all["entries"].as_array().unwrap().len(), all["more"]]), json!([1000, true]));
    assert_eq!(server.ask(&Call::get("/files?search=x&dir=/etc")).status, 403);
    assert_eq!(server.ask(&Call::get("/files")).status, 400);
    assert_eq!(server.ask(&Call::get(&format!("/files?search={}", "x".repeat(1001)))).status, 400);
    let none = Server::start(site.store(), proem_server::Options::default());
    let empty = done(&none, &Call::get("/files?search=x"));
    assert_eq!(empty, json!({ "dir": "", "entries": [], "more": false }));
}
