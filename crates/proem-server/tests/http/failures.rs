//! Prompts that cannot be built: 422, with the kind of the failure and its place.

use serde_json::{Value, json};

use crate::client::Call;
use crate::server::{Server, Site};

fn first_turn(server: &Server, site: &Site, request: &Value) -> (u16, Value) {
    let mut body = json!({ "cwd": site.path("work") });
    body.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
    let answer = server.ask(&Call::json("POST", "/conversations/c/turn", &body));
    (answer.status, answer.json())
}

/// Compares the parts of an error that programs read; paths are relative to the site.
fn check(site: &Site, answer: &(u16, Value), expected: &Value) {
    let (status, error) = answer;
    let keys = ["code", "kind", "path", "field", "line", "column"];
    let root = site.text("");
    let found: serde_json::Map<String, Value> = keys
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), error.get(key)?.clone())))
        .map(|(key, value)| match value {
            Value::String(text) => (key, json!(text.replace(&root, ""))),
            value => (key, value),
        })
        .collect();
    assert_eq!((*status, &Value::Object(found)), (422, expected), "{error}");
    assert!(error["message"].is_string(), "{error}");
}

#[test]
fn a_failed_build_has_its_kind_and_its_place() {
    let site = Site::new();
    site.write("work/.proem/prompts/broken.md", "fine\n{% if %}");
    site.write("work/.proem/prompts/parent.md", "{% include 'gone' %}");
    site.write("work/.proem/profiles/bad.toml", "extends = \"template\"\ncompaction = \"maybe\"\n");
    site.write("work/.proem/profiles/strict.toml", "extends = \"template\"\n[bracket]\nabsent = \"error\"\n");
    site.write("work/.proem/profiles/lost.toml", "extends = \"nothing\"\n");
    site.write("work/bad.toml", "[prompt]\nagents_md_section = '''{{ oops'''\n");
    site.write("work/worse.toml", "[prompt\n");
    let server = site.serve();
    let endless = "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}";
    let rows = [
        (
            json!({"profile": "assets", "instruction": "$workspace/gone"}),
            json!({"kind": "asset_missing", "field": "instruction"}),
        ),
        (
            json!({"profile": "assets", "instruction": "$workspace/parent"}),
            json!({"kind": "asset_missing", "path": "work/.proem/prompts/parent.md", "line": 1, "column": 12}),
        ),
        (
            json!({"profile": "assets", "instruction": "$workspace/broken"}),
            json!({"kind": "template_syntax", "path": "work/.proem/prompts/broken.md", "line": 2, "column": 7}),
        ),
        (
            json!({"profile": "assets", "template": "{{ unclosed"}),
            json!({"kind": "template_syntax", "field": "template", "line": 1, "column": 4}),
        ),
        (
            json!({"profile": "assets", "template": "a\n{{ ghost }}"}),
            json!({"kind": "template_undefined", "field": "template", "line": 2, "column": 4}),
        ),
        (
            json!({"profile": "assets", "template": "{{ 'a' + 1 }}"}),
            json!({"kind": "template_render", "field": "template", "line": 1, "column": 4}),
        ),
        (
            json!({"profile": "assets", "template": endless}),
            json!({"kind": "limit", "field": "template", "line": 1, "column": 1}),
        ),
        (
            json!({"profile": "strict", "template": "a [prompt:model]"}),
            json!({"kind": "template_undefined", "field": "template", "line": 1, "column": 3}),
        ),
        (
            json!({"profile": "assets", "packs": ["bad.toml"]}),
            json!({
                "kind": "pack", "path": "work/bad.toml", "field": "agents_md_section", "line": 1, "column": 4
            }),
        ),
        (
            json!({"profile": "assets", "packs": ["worse.toml"]}),
            json!({"kind": "pack", "path": "work/worse.toml", "line": 1, "column": 8}),
        ),
        (json!({"profile": "assets", "packs": ["no.toml"]}), json!({"kind": "pack", "path": "work/no.toml"})),
        (json!({"profile": "missing"}), json!({"kind": "profile"})),
        (json!({"profile": "lost"}), json!({"kind": "profile", "path": "work/.proem/profiles/lost.toml"})),
        (
            json!({"profile": "bad"}),
            json!({"kind": "profile", "path": "work/.proem/profiles/bad.toml", "line": 2, "column": 14}),
        ),
    ];
    for (request, mut expected) in rows {
        expected["code"] = json!("build_failed");
        let answer = first_turn(&server, &site, &request);
        check(&site, &answer, &expected);
    }
    assert_eq!(server.ask(&Call::get("/conversations/c")).status, 404, "nothing was stored");
}

#[test]
fn a_failed_build_of_the_project_has_its_kind_and_its_place() {
    for (file, text, profile, expected) in [
        ("work/.proem/workflow/Bad Name.md", "x", "assets", json!({"kind": "workflow", "path": ""})),
        (
            "work/.proem/proem.toml",
            "profile = 7\n",
            "template",
            json!({"kind": "configuration", "path": "", "line": 1, "column": 11}),
        ),
        (
            "work/.proem/prompts.toml",
            "[prompt]\nagents_md_section = '''{{ oops'''\n",
            "assets",
            json!({"kind": "pack", "path": "", "field": "agents_md_section", "line": 1, "column": 4}),
        ),
    ] {
        let site = Site::new();
        site.write(file, text);
        let server = site.serve();
        let mut expected = expected;
        expected["path"] = json!(file);
        expected["code"] = json!("build_failed");
        check(&site, &first_turn(&server, &site, &json!({ "profile": profile })), &expected);
    }
}

#[test]
fn a_malformed_request_is_no_failed_build() {
    let site = Site::new();
    let server = site.serve();
    for request in [
        json!({"unknown": 1}),
        json!({"profile": 7}),
        json!({"system": "a", "template": "b"}),
        json!({"profile": "assets", "scope": {"allow": []}}),
        json!({"prompt": "Hello", "provider": "anthropic", "messages": [{"content": 7}]}),
    ] {
        let (status, error) = first_turn(&server, &site, &request);
        assert_eq!((status, &error["code"], &error["kind"]), (400, &json!("bad_request"), &Value::Null));
    }
}

#[test]
fn drift_against_a_pack_that_is_gone_is_a_failed_build() {
    let site = Site::new();
    site.write("work/p.toml", "[prompt]\nagents_md_section = 'x'\n");
    let server = site.serve();
    let request = json!({"profile": "assets", "packs": ["p.toml"]});
    assert_eq!(first_turn(&server, &site, &request).0, 200);
    std::fs::remove_file(site.path("work/p.toml")).unwrap();
    let answer = server.ask(&Call::get("/conversations/c/drift"));
    let expected = json!({"code": "build_failed", "kind": "pack", "path": "work/p.toml"});
    check(&site, &(answer.status, answer.json()), &expected);
}
