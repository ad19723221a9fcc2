//! `proem check` and `proem evidence` as a user meets them.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::{Value, json};

use crate::desk::{Desk, on_terminal};

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
    assert!(desk.said(&desk.run(&["check", "--fix"]).stderr).contains("fixed 0 findings"), "it is done once");

    let outside = desk.work().parent().unwrap().join("outside.md");
    fs::write(&outside, "a\u{200B}b\n").unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&outside, &path).unwrap();
    drop(desk.run(&["check", "--fix"]));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "a\u{200B}b\n", "what is not read is not mended");
    assert_eq!(desk.run(&["trust", "add"]).status.code(), Some(0));
    let output = desk.run(&["check", "--fix"]);
    assert!(desk.said(&output.stderr).contains("is not fixed: it lies outside of the project"));
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
    let blames: Vec<&Value> = calls.iter().map(|call| &call["blame"]).collect();
    assert_eq!(blames, [&Value::Null, &Value::Null, &json!("provider"), &json!("ours")]);
    let verdicts: Vec<&Value> = calls.iter().map(|call| &call["verdict"]).collect();
    assert_eq!(verdicts, ["cold_start", "hit", "provider", "expired"]);
    assert_eq!(calls[3]["reason"], "expired");
    let text = desk.said(&desk.run(&["evidence", "calls.jsonl"]).stdout);
    assert!(
        text.contains("8000 of 24000 expected tokens were read; misses: 1 ours, 1 the provider's, 0 unknown"),
        "{text}"
    );
    desk.refuses(
        &["evidence"],
        3,
        "error: no calls to judge: neither a file nor a conversation of a store\n\
         hint: name a file of JSON lines, or `--conversation` for calls reported to a server\n",
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

/// The template that `proem init` writes is the base of proem's own prompts: no other agent reads it.
#[test]
fn a_template_of_proem_is_no_concern_of_other_agents() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["init"]).status.code(), Some(0));
    desk.write("AGENTS.md", b"# Rules\n\nUse tabs.\n").write("CLAUDE.md", b"@AGENTS.md\n");
    let checked = desk.run(&["check", "--strict", "--as", "claude-code,codex,pi"]);
    assert_eq!(checked.status.code(), Some(0), "{}", desk.said(&checked.stdout));
    let seen = desk.run(&["compat", "--json"]);
    assert!(!desk.said(&seen.stdout).contains("template.md"), "{}", desk.said(&seen.stdout));
    let own = desk.run(&["check", "-p", "codex"]);
    assert!(desk.said(&own.stdout).contains("unused_field"), "control: {}", desk.said(&own.stdout));
}

/// Everything that one hidden text and one skill are told, as a reader sees it.
#[test]
fn all_files_of_a_repository_are_told_in_80_columns() {
    let desk = Desk::new();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(desk.work()).status().unwrap().success());
    desk.write("AGENTS.md", b"# Rules\n\nBe brief.\n")
        .write("src/AGENTS.md", "Be kind.\u{E0068}\u{E0069}\n".as_bytes())
        .write(
            ".claude/skills/deploy/SKILL.md",
            "---\nname: Deploy\ndescription: Ships.\n---\nA\u{200B}B\n".as_bytes(),
        )
        .write("GEMINI.md", b"Be br\r\nief.\r\n");
    let mut command = desk.command(&["check", "--all"]);
    let output = command.current_dir(desk.work().join("src")).env("COLUMNS", "80").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", desk.said(&output.stderr));
    assert_eq!(
        desk.said(&output.stdout),
        "../.claude/skills/deploy/SKILL.md:2:1: warning[malformed_skill]: the name\n    \
             `Deploy` is not well formed, and not that of its folder, `deploy`\n  \
           use lower-case letters, digits and single hyphens between them\n\
         ../.claude/skills/deploy/SKILL.md:5:2: warning[hidden_text]: 1 invisible\n    \
             character: <U+200B>\n  \
           remove it, or add `--fix` to the command\n\
         AGENTS.md:1:9: error[hidden_text]: 2 tag characters, in clear text: «hi»\n  \
           remove it, or add `--fix` to the command\n\
         1 error, 2 warnings; `--fix` fixes 2; `--strict` has 1 finding more\n\
         4 files of agents; looked in 5 folders\n"
    );
    let report = report(&desk, &["--all"]);
    assert_eq!(report["counts"], json!({ "error": 1, "warning": 2, "info": 1 }));
    assert_eq!((&report["files"], &report["directories"]), (&json!(4), &json!(5)));
    let looked = report["looked_at"].as_array().unwrap().iter();
    let looked: Vec<(String, &str)> = looked
        .map(|one| (desk.said(one["path"].as_str().unwrap().as_bytes()), one["role"].as_str().unwrap()))
        .collect();
    let expected = [
        ("{root}/work/.claude/skills/deploy/SKILL.md", "skill"),
        ("{root}/work/AGENTS.md", "instructions"),
        ("{root}/work/GEMINI.md", "instructions"),
        ("{root}/work/src/AGENTS.md", "instructions"),
    ];
    assert_eq!(looked, expected.map(|(path, role)| (path.to_owned(), role)));
}

#[test]
fn sarif_has_all_files_from_the_root_of_the_repository() {
    let desk = Desk::new();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(desk.work()).status().unwrap().success());
    desk.write("src/AGENTS.md", "x\n\na\u{202E}b\n".as_bytes()).write(
        ".claude/skills/x/SKILL.md",
        "---\nname: x\ndescription: Does x.\n---\na\u{200B}b\n".as_bytes(),
    );
    let output = desk.run(&["check", "--all", "--format", "sarif", "--cwd", "src"]);
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap().iter();
    let places: Vec<String> = results
        .map(|result| {
            let place = &result["locations"][0]["physicalLocation"];
            let line = &place["region"]["startLine"];
            format!("{} {}:{line}", result["ruleId"], place["artifactLocation"]["uri"])
        })
        .collect();
    let expected = [r#""hidden_text" ".claude/skills/x/SKILL.md":5"#, r#""bidi_control" "src/AGENTS.md":3"#];
    assert_eq!(places, expected);
}

#[test]
fn what_agents_and_all_find_is_mended() {
    for flags in [["--all", "--fix", "--strict"].as_slice(), &["--as", "all", "--fix"]] {
        let desk = Desk::of("default");
        desk.write("GEMINI.md", "a\u{200B}b\n".as_bytes())
            .write(".cursor/rules/a.mdc", "---\nalwaysApply: true\n---\nc\u{200B}d\n".as_bytes());
        let output = desk.run(&[&["check"], flags].concat());
        assert_eq!(desk.said(&output.stderr), "fixed 2 findings in 2 files\n", "{flags:?}");
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", desk.said(&output.stdout));
        assert_eq!(fs::read_to_string(desk.work().join("GEMINI.md")).unwrap(), "ab\n");
        let rule = fs::read_to_string(desk.work().join(".cursor/rules/a.mdc")).unwrap();
        assert_eq!(rule, "---\nalwaysApply: true\n---\ncd\n");
    }
}

#[test]
fn a_check_without_files_says_what_there_is() {
    let desk = Desk::new();
    let said = |arguments: &[&str]| {
        let output = desk.command(arguments).env("COLUMNS", "80").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
        desk.said(&output.stdout)
    };
    let none = "nothing to check: no agent has an instruction file or a skill here\n";
    assert_eq!(
        said(&["check"]),
        format!("{none}most agents read AGENTS.md; `proem init` makes files of proem's own\n")
    );
    assert_eq!(said(&["check", "--all", "--strict"]), none);
    desk.write("GEMINI.md", b"Be brief.\n").write(".cursor/rules/a.mdc", b"---\nalwaysApply: true\n---\nx\n");
    assert_eq!(
        said(&["check"]),
        "nothing to check: profile default reads no file here, and other agents read\n  \
           .cursor/rules/a.mdc, GEMINI.md\n\
         `proem check --all` checks what every agent reads\n"
    );
    assert!(said(&["check", "--as", "gemini-cli"]).contains("\nprofile default, 1 file, "));
    assert_eq!(
        said(&["check", "--all"]),
        "nothing to complain about\n2 files of agents; looked in 3 folders\n"
    );
}

/// Findings must not depend on the speed of git, so git does not run.
#[test]
fn no_check_runs_git() {
    let desk = Desk::new();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(desk.work()).status().unwrap().success());
    desk.write("AGENTS.md", b"# Rules\n\nBe brief.\n");
    let (folder, canary) = (desk.root.path().join("bin"), desk.root.path().join("canary"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("git"), format!("#!/bin/sh\necho x >> {}\nexit 1\n", canary.display())).unwrap();
    fs::set_permissions(folder.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let run = |arguments: &[&str]| desk.command(arguments).env("PATH", &path).output().unwrap();

    for arguments in [["check"].as_slice(), &["check", "--strict", "--as", "all"], &["check", "--all"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", desk.said(&output.stdout));
        assert!(!canary.exists(), "{arguments:?} ran git");
    }
    assert_eq!(run(&["build"]).status.code(), Some(0));
    assert!(canary.exists(), "control: a build asks git");
}

/// A file that is read through a link is one file, and a loop of links ends.
#[test]
fn a_file_with_several_names_is_one_finding() {
    let desk = Desk::new();
    desk.write(
        ".agents/skills/x/SKILL.md",
        "---\nname: x\ndescription: Does x.\n---\na\u{200B}b\n".as_bytes(),
    )
    .write("AGENTS.md", "c\u{200B}d\n".as_bytes())
    .write(".claude/settings.json", b"{}");
    symlink("../.agents/skills", desk.work().join(".claude/skills")).unwrap();
    symlink("AGENTS.md", desk.work().join("CLAUDE.md")).unwrap();
    symlink(".", desk.work().join(".claude/loop")).unwrap();
    for flags in [["--all"].as_slice(), &["--as", "all"]] {
        let report = report(&desk, flags);
        let findings = report["findings"].as_array().unwrap().iter();
        let places: Vec<String> =
            findings.map(|found| desk.said(found["source"]["path"].as_str().unwrap().as_bytes())).collect();
        let expected = ["{root}/work/.agents/skills/x/SKILL.md", "{root}/work/AGENTS.md"];
        assert_eq!(places, expected, "{flags:?}: {report}");
    }
}
