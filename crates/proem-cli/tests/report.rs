//! `proem report` as a user meets it.

use serde_json::{Value, json};

use crate::desk::Desk;

fn call(second: u64, system: &str, read: u64) -> String {
    json!({
        "at": 1_794_900_000 + second,
        "conversation": "c-17",
        "request": {
            "model": "claude-opus-5",
            "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "Hello"}],
        },
        "response": {"usage": {"input_tokens": 12, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": 8000 - read, "output_tokens": 5}},
    })
    .to_string()
}

fn desk() -> Desk {
    let desk = Desk::new();
    let lines =
        [call(0, "It is 10:00:01.", 0), call(40, "It is 10:00:01.", 8000), call(90, "It is 10:02:01.", 0)];
    desk.write("calls.jsonl", (lines.join("\n") + "\n{\"torn").as_bytes());
    desk
}

#[test]
fn the_report_names_the_byte_the_owner_and_the_money() {
    let desk = desk();
    let output = desk.run(&["report", "calls.jsonl"]);
    let text = desk.said(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for words in
        ["3 calls", "system_changed", "byte 10, 1:11", "by clock", "$0.0460", "calls.jsonl:4 is left out"]
    {
        assert!(text.contains(words), "`{words}` is missing in:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_json_of_the_report_is_that_of_the_schema() {
    let desk = desk();
    let report: Value =
        serde_json::from_slice(&desk.run(&["report", "calls.jsonl", "--json"]).stdout).unwrap();
    assert_eq!((&report["version"], &report["totals"]["calls"]), (&json!(1), &json!(3)));
    assert_eq!(report["calls"][2]["owner"], json!({"kind": "clock"}));
    assert_eq!(report["totals"]["by_verdict"]["system_changed"]["lost_tokens"], 8000);
    let html = desk.said(&desk.run(&["report", "calls.jsonl", "--format", "html"]).stdout);
    assert!(html.starts_with("<!doctype html>") && !html.contains("http://"), "{html}");
}

#[test]
fn misses_that_cost_too_much_fail() {
    let desk = desk();
    let code = |most: &str| desk.run(&["report", "calls.jsonl", "--max-miss-cost", most]).status.code();
    assert_eq!((code("0.01"), code("1")), (Some(1), Some(0)));
}

/// Copies a folder.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn recordings_are_found_where_agents_keep_them() {
    let desk = Desk::new();
    desk.refuses(
        &["report"],
        2,
        "error: no recordings of agents were found in the usual places\n\
         hint: name a file or folder, with `--from` for the agent that wrote it; see docs/report-sources.md\n",
    );
    let fixture = proem_testkit::project_root().join("corpus/collectors/claude-code/transcript");
    copy(&fixture.join("input"), &desk.root.path().join(".claude"));
    let output = desk.run(&["report", "--since", "36500d", "--json"]);
    let said = desk.said(&output.stderr);
    assert!(said.contains("reading transcripts of claude-code in {root}/.claude/projects"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["totals"]["calls"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["sources"][0]["kind"], "claude-code");
    // The same calls from a named folder.
    let named = desk.run(&["report", "--from", "claude-code", "../.claude", "--json"]);
    let named: Value = serde_json::from_slice(&named.stdout).unwrap();
    assert_eq!(named["totals"]["calls"], report["totals"]["calls"]);
}

#[test]
fn a_folder_shows_the_name_of_its_writer() {
    let desk = desk();
    let output = desk.run(&["report", "."]);
    assert_eq!(desk.said(&output.stderr), "read 3 calls of jsonl\n");
    desk.write("empty/notes.txt", b"nothing of an agent");
    desk.refuses(
        &["report", "empty"],
        2,
        "error: empty has no recordings of a known agent\n\
         hint: add `--from`, such as `--from claude-code`, to learn what was skipped; see docs/report-sources.md\n",
    );
}
