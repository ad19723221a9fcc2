//! `proem check` and `proem evidence` as a user meets them.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

mod desk;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::{Value, json};

use desk::{Desk, on_terminal};

fn report(desk: &Desk, arguments: &[&str]) -> Value {
    let output = desk.run(&[&["check", "--format", "json"], arguments].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn codes(desk: &Desk, arguments: &[&str]) -> Vec<String> {
    let report = report(desk, arguments);
    let findings = report["findings"].as_array().unwrap().iter();
    let counts = findings.filter(|found| found["severity"] != "info");
    counts.map(|found| found["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_clean_project_has_nothing_to_complain_about() {
    let desk = Desk::new();
    desk.write("AGENTS.md", b"# Rules\n\n- Be brief.\n");
    let output = desk.run(&["check", "-p", "default"]);
    assert_eq!(output.status.code(), Some(0));
    let said = desk.said(&output.stdout);
    assert!(said.starts_with("nothing to complain about\nprofile default, 1 file, "), "{said}");
    assert_eq!(desk.run(&["check", "-p", "default", "--strict"]).status.code(), Some(0));
}

#[test]
fn only_what_is_safe_is_mended_and_only_in_the_project() {
    let desk = Desk::of("default");
    let hidden = "a\u{200B}b\u{E0062}\n".repeat(1000) + "[if git:branch]never closed\r\nline\n";
    desk.write("AGENTS.md", hidden.as_bytes());
    let path = desk.work().join("AGENTS.md");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let output = desk.run(&["check", "--fix"]);
    assert!(desk.said(&output.stderr).contains(" in 1 file"), "{}", desk.said(&output.stderr));
    let clean = "ab\n".repeat(1000) + "[if git:branch]never closed\nline\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), clean);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(
        desk.said(&desk.run(&["check", "--fix"]).stderr).contains("mended 0 findings"),
        "it is done once"
    );

    let outside = desk.work().parent().unwrap().join("outside.md");
    fs::write(&outside, "a\u{200B}b\n").unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&outside, &path).unwrap();
    drop(desk.run(&["check", "--fix"]));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "a\u{200B}b\n", "what is not read is not mended");
    assert_eq!(desk.run(&["trust", "add"]).status.code(), Some(0));
    let output = desk.run(&["check", "--fix"]);
    assert!(desk.said(&output.stderr).contains("is not mended: it lies outside of the project"));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "a\u{200B}b\n");
}

#[test]
fn a_template_of_the_command_line_is_read_again_after_each_change() {
    let desk = Desk::of("template");
    let text = "Close with [endif].\u{200B}\n\nOn [git:brnach].\u{200B}\n";
    desk.write("t.md", text.as_bytes());
    desk.run(&["check", "--template", "t.md", "--fix"]);
    let mended = fs::read_to_string(desk.work().join("t.md")).unwrap();
    assert_eq!(mended, "Close with [endif].\n\nOn [git:branch].\n");
    assert_eq!(codes(&desk, &["--template", "t.md"]), ["stray_tag"], "what may be prose is left alone");
}

#[test]
fn an_allowance_needs_a_reason_and_is_shown() {
    let desk = Desk::of("default");
    desk.write("AGENTS.md", "a\u{202E}b\n".as_bytes());
    desk.write(
        ".proem/proem.toml",
        b"[[check.allow]]\ncode = \"bidi_control\"\npath = \"AGENTS.md\"\nreason = \"a test\"\n",
    );
    let output = desk.run(&["check"]);
    assert_eq!(output.status.code(), Some(0));
    let said = desk.said(&output.stdout);
    assert!(said.contains("AGENTS.md:1:2: allowed[bidi_control]: a test\n"), "{said}");
    let mut command = desk.command(&["check"]);
    command.env("TERM", "xterm");
    let shown = on_terminal(command);
    assert!(shown.contains("\u{1b}[2mAGENTS.md:1:2: allowed"), "{shown}");
    desk.write(".proem/proem.toml", b"[[check.allow]]\ncode = \"bidi_controls\"\nreason = \"a test\"\n");
    let output = desk.run(&["check"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(desk.said(&output.stderr).contains("did you mean `bidi_control`?"));
}

/// A repository that allows its own hidden text does not hide it from a reader of the report; the user's own rule does.
#[test]
fn hidden_text_that_the_repository_allows_itself_stays_visible() {
    const RULES: &str = "[[check.allow]]\ncode = \"hidden_text\"\nreason = \"mine\"\n\
                         [[check.allow]]\ncode = \"bidi_control\"\nreason = \"mine\"\n";
    let desk = Desk::of("default");
    desk.write("AGENTS.md", "a\u{202E}b\nc\u{E0068}\u{E0069}d\n".as_bytes());
    let check = || {
        let (text, json) = (desk.run(&["check"]), desk.run(&["check", "--format", "json"]));
        assert_eq!(text.status.code(), json.status.code());
        let json: Value = serde_json::from_slice(&json.stdout).unwrap();
        (text.status.code(), desk.said(&text.stdout), json)
    };
    let (code, said, json) = check();
    assert_eq!((code, &json["silenced_by_repository"]), (Some(1), &0.into()), "control: {said}");
    assert!(said.contains("hidden_text]: ") && said.contains("bidi_control]: "), "{said}");

    desk.write(".proem/proem.toml", RULES.as_bytes());
    let (code, said, json) = check();
    assert_eq!(code, Some(0), "what is allowed does not count: {said}");
    assert_eq!(
        (&json["silenced_by_repository"], &json["allowed"][0]["by"]),
        (&2.into(), &"repository".into())
    );
    assert!(said.contains("the repository's own rules silence 2 findings\n"), "{said}");
    assert!(said.contains("AGENTS.md:1:2: note[bidi_control]: "), "{said}");
    assert!(said.contains("AGENTS.md:2:2: note[hidden_text]: ") && said.contains("«hi»"), "{said}");
    let strict = desk.said(&desk.run(&["check", "--strict"]).stdout);
    assert!(!strict.contains("error[hidden_text]") && !strict.contains("error[bidi_control]"), "{strict}");

    let own = desk.root.path().join(".config/proem/proem.toml");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(own, RULES).unwrap();
    let (code, said, json) = check();
    assert_eq!((code, &json["silenced_by_repository"]), (Some(0), &0.into()), "{said}");
    assert!(!said.contains("note[") && !said.contains("silence"), "the user has decided: {said}");
}

#[test]
fn sarif_names_files_from_the_root_of_the_repository() {
    let desk = Desk::of("default");
    let done = Command::new("git").args(["init", "-q"]).current_dir(desk.work()).status().unwrap();
    assert!(done.success());
    desk.write("sub dir/AGENTS.md", "a\u{202E}b\n".as_bytes());
    let folder = desk.work().join("sub dir");
    let output = desk.run(&["check", "--format", "sarif", "--cwd", folder.to_str().unwrap()]);
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "bidi_control");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "sub%20dir/AGENTS.md");
    assert_eq!(place["region"], json!({ "startLine": 1, "startColumn": 2 }));
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules[0]["id"], "bidi_control");
}

#[test]
fn what_moves_is_named_with_whether_it_may() {
    let desk = Desk::of("template");
    desk.write("t.md", b"[system:clock] [system:date] [system:hostname] [prompt:cwd]");
    let report = report(&desk, &["--template", "t.md", "--determinism"]);
    let moved: Vec<(String, String, bool)> = report["moved"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&one["source"]["key"]), text(&one["with"]), one["allowed"].as_bool().unwrap())
        })
        .collect();
    let is_moved = |key: &str, with: &str| moved.contains(&(key.to_owned(), with.to_owned(), true));
    assert!(is_moved("system:clock", "clock") && is_moved("system:date", "day"), "{moved:?}");
    assert!(is_moved("system:hostname", "environment"), "{moved:?}");
    assert!(!moved.iter().any(|(key, with, _)| key == "prompt:cwd" || with == "again"), "{moved:?}");
}

#[test]
fn misses_of_a_file_of_calls_are_judged() {
    let desk = Desk::new();
    let call = |at: u64, read: u64, written: u64, question: &str| {
        json!({
            "at": at, "model": "claude-opus-5", "conversation": "c",
            "request": { "model": "claude-opus-5", "system": [{ "type": "text", "text": "frozen",
                "cache_control": { "type": "ephemeral" } }],
                "messages": [{ "role": "user", "content": question }] },
            "response": { "usage": { "input_tokens": 5, "cache_read_input_tokens": read,
                "cache_creation_input_tokens": written } },
        })
        .to_string()
    };
    let lines = [
        call(0, 0, 8000, "one"),
        call(10, 8000, 0, "one"),
        call(20, 0, 8000, "one"),
        call(600, 0, 8000, "one"),
    ];
    desk.write("calls.jsonl", lines.join("\n").as_bytes());
    let output = desk.run(&["evidence", "calls.jsonl", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", desk.said(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let calls = said["conversations"][0]["calls"].as_array().unwrap();
    let verdicts: Vec<&Value> = calls.iter().map(|call| &call["verdict"]).collect();
    assert_eq!(verdicts, [&Value::Null, &Value::Null, &json!("provider"), &json!("ours")]);
    assert_eq!(calls[3]["reason"], "expired");
    let text = desk.said(&desk.run(&["evidence", "calls.jsonl"]).stdout);
    assert!(
        text.contains("8000 of 24000 expected tokens were read; misses: 1 ours, 1 the provider's, 0 unknown"),
        "{text}"
    );
    desk.refuses(
        &["evidence"],
        3,
        "error: there are no calls to look at: no file, and no conversation of a store\n\
         hint: name a file of JSON lines, or `--conversation` for calls that a server was told about\n",
    );
}

/// A repository chooses its template, and the template is not asked to be kind.
#[test]
fn a_template_of_the_workspace_that_doubles_its_lists_is_refused() {
    let desk = Desk::new();
    let doubled = "{% set a = [a, a] %}{% set b = [b, b] %}\n".repeat(60);
    let template = format!("{{% set a = 1 %}}{{% set b = 1 %}}\n{doubled}{{{{ a == b }}}}\n");
    desk.write(".proem/proem.toml", b"profile = \"assets\"\ntemplate = \"t.j2\"\n");
    desk.write(".proem/t.j2", template.as_bytes());
    for command in ["build", "check"] {
        let output = desk.run(&[command]);
        let said = desk.said(&output.stderr);
        assert!(
            said.contains("t.j2, line 18, column 12: it makes a value that is too large"),
            "{command}: {said}"
        );
        assert_eq!(output.status.code(), Some(3), "{command}: {said}");
    }
    desk.write(".proem/t.j2", b"{% set a = [1, 1] %}{{ a == [1, 1] }}\n");
    for command in ["build", "check"] {
        let output = desk.run(&[command]);
        assert_eq!(output.status.code(), Some(0), "control: {}", desk.said(&output.stderr));
    }
}

/// A link out of a project that is not trusted: its target does not even decide which words are used.
#[test]
fn a_shadowed_link_out_of_the_project_tells_nothing_of_its_target() {
    let findings = |private: &[u8]| {
        let desk = Desk::new();
        desk.write(".git/HEAD", b"ref: refs/heads/main\n").write("AGENTS.md", b"The word is salmon.\n");
        desk.write("../private.md", private);
        symlink(desk.root.path().join("private.md"), desk.work().join("CLAUDE.md")).unwrap();
        desk.said(&desk.run(&["check", "--as", "all"]).stdout)
    };
    assert_eq!(findings(b"The word is salmon.\n"), findings(b"Something else.\n"));
}
