//! `proem compat` as a user meets it.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::process::Command;

use serde_json::Value;

use crate::desk::{Desk, on_terminal};

/// A repository with files for several agents.
fn shop() -> Desk {
    let desk = Desk::new();
    let done = Command::new("git").args(["init", "-q"]).current_dir(desk.work()).status().unwrap();
    assert!(done.success());
    desk.write("AGENTS.md", b"Run the tests.\n")
        .write("CLAUDE.md", b"See @docs/style.md\n")
        .write("docs/style.md", b"Four spaces.\n")
        .write(".cursor/rules/all.mdc", b"---\nalwaysApply: true\n---\nSmall commits.\n")
        .write(".cursor/rules/ts.mdc", b"---\nglobs: *.ts\n---\nNo default exports.\n")
        .write(".github/copilot-instructions.md", b"Tests first.\n");
    desk
}

fn json(desk: &Desk, arguments: &[&str]) -> Value {
    let output = desk.run(&[&["compat", "--format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the outcome of a file for an agent.
fn outcome(report: &Value, profile: &str, file: &str) -> Option<String> {
    let agents = report["agents"].as_array().unwrap();
    let agent = agents.iter().find(|agent| agent["profile"] == profile).unwrap();
    let files = agent["files"].as_array().unwrap();
    let found = files.iter().find(|one| one["path"].as_str().unwrap().ends_with(file))?;
    Some(found["outcome"].as_str().unwrap().to_owned())
}

#[test]
fn every_agent_has_its_own_files() {
    let desk = shop();
    let report = json(&desk, &[]);
    assert_eq!(report["agents"].as_array().unwrap().len(), 9);
    for (profile, file, expected) in [
        ("codex", "/work/AGENTS.md", Some("used")),
        ("codex", "/CLAUDE.md", None),
        ("claude-code", "/CLAUDE.md", Some("used")),
        ("claude-code", "/docs/style.md", Some("used")),
        ("claude-code", "/work/AGENTS.md", Some("shadowed")),
        ("opencode", "/CLAUDE.md", Some("shadowed")),
        ("cursor", "/all.mdc", Some("used")),
        ("cursor", "/ts.mdc", Some("hidden")),
        ("zed", "/.github/copilot-instructions.md", Some("used")),
        ("gemini-cli", "/work/AGENTS.md", None),
        ("goose", "/docs/style.md", None),
    ] {
        assert_eq!(outcome(&report, profile, file).as_deref(), expected, "{profile} {file}");
    }
}

#[test]
fn the_table_says_who_reads_what_and_how_old_the_rules_are() {
    let desk = shop();
    let output = desk.run(&["compat", "--as", "codex,claude-code"]);
    let text = desk.said(&output.stdout);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["file", "codex", "claude-code"]);
    assert!(rows.contains(&vec!["AGENTS.md", "yes", "shadowed"]), "{text}");
    assert!(rows.contains(&vec!["CLAUDE.md", "-", "yes"]), "{text}");
    assert!(text.contains("rules of: Codex 0.169.0 (run, 2026-11-18)"), "{text}");
    let mut command = desk.command(&["compat", "--as", "codex"]);
    command.env("TERM", "xterm");
    assert!(on_terminal(command).contains("\u{1b}[32myes"));
    let text = desk.said(&desk.run(&["compat", "CLAUDE.md", "--as", "codex,pi"]).stdout);
    assert!(
        text.starts_with("Codex  never     it does not look for such a file\npi     shadowed  by "),
        "{text}"
    );
    let text = desk.said(&desk.run(&["compat", "--diff", "codex", "copilot"]).stdout);
    assert!(text.contains("AGENTS.md  codex yes, copilot yes, the same text\n"), "{text}");
    let missing = desk.run(&["compat", "NOTHING.md"]);
    assert_eq!((missing.status.code(), missing.stdout.len()), (Some(2), 0));
    desk.refuses(
        &["compat", "--as", "nobody"],
        2,
        "error: no profile `nobody` stands in for an agent\nhint: the agents are: claude-code, codex, copilot, cursor, \
         gemini-cli, goose, opencode, pi, zed\n",
    );
}

#[test]
fn a_budget_that_cuts_is_shown_and_found_by_check() {
    let desk = Desk::of("default");
    desk.write("AGENTS.md", "word ".repeat(8_000).as_bytes());
    let text = desk.said(&desk.run(&["compat", "--as", "codex"]).stdout);
    assert!(text.contains("AGENTS.md  cut\n"), "{text}");
    assert!(text.contains("AGENTS.md is cut: 7232 of its 40000 bytes are left out"), "{text}");
    let output = desk.run(&["check", "--as", "codex"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(desk.said(&output.stdout).contains("[over_limit]: for Codex: "), "{}", desk.said(&output.stdout));
}

/// Row F7.
#[test]
fn hostile_rules_are_bounded() {
    let desk = Desk::new();
    for number in 0..600 {
        desk.write(&format!(".cursor/rules/{number:04}.mdc"), b"---\nalwaysApply: true\n---\nx\n");
    }
    let all = (0..40).map(|number| format!("@a{number}.md")).collect::<Vec<_>>().join(" ");
    for number in 0..40 {
        desk.write(&format!("a{number}.md"), all.as_bytes());
    }
    let outside = format!("{all} @../../../../etc/hostname @/etc/hostname @CLAUDE.md");
    desk.write("CLAUDE.md", outside.as_bytes()).write("GEMINI.md", outside.as_bytes());
    std::os::unix::fs::symlink("..", desk.work().join(".cursor/rules/loop")).unwrap();
    let hostname = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    for profile in ["claude-code", "gemini-cli", "copilot", "cursor", "goose"] {
        let output = desk.run(&["build", "-p", profile, "--format", "json", "-q"]);
        assert_eq!(output.status.code(), Some(0), "{profile}: {}", desk.said(&output.stderr));
        let built: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = built["carriers"].to_string();
        assert!(
            hostname.trim().len() < 4 || !text.contains(hostname.trim()),
            "{profile} reads what lies outside"
        );
        assert!(built["notes"].as_array().unwrap().len() < 100, "{profile} has too many notes");
    }
}

#[test]
fn what_agents_are_told_differently_is_found() {
    let desk = Desk::of("default");
    desk.write("AGENTS.md", b"# Tests\n\nRun `make test`.\n\n@docs/style.md\n")
        .write("CLAUDE.md", b"# Tests\n\nRun `npm test`.\n")
        .write("docs/style.md", b"Four spaces.\n")
        .write(".github/instructions/a.instructions.md", b"---\napplyTo: \"**\"\n---\nBe brief.\n");
    let output = desk.run(&["check", "--as", "codex,claude-code,copilot,goose", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let said: Vec<&str> = findings
        .filter(|found| found["code"] == "agents_differ")
        .map(|found| found["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        said,
        [
            "`@docs/style.md` is imported by GitHub Copilot CLI, goose, and is only text to Codex",
            "Claude Code reads CLAUDE.md and not AGENTS.md; they differ below `tests`",
        ]
    );
}

/// F5: what is only compared is opened with the same care as what is read.
#[test]
fn a_file_that_takes_the_place_of_another_may_be_a_fifo() {
    let desk = Desk::of("default");
    desk.write("AGENTS.md", b"Run the tests.\n").write("CLAUDE.md", b"Run them twice.\n");
    let agents = ["check", "--as", "claude-code,opencode"];
    let said = |desk: &Desk| desk.said(&desk.run(&agents).stdout);
    assert!(said(&desk).contains("CLAUDE.md"), "control: a file is compared");

    let fifo = desk.work().join("CLAUDE.md");
    std::fs::remove_file(&fifo).unwrap();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Blocks until a reader opens the FIFO, and lets that reader end.
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::write(fifo, "---\nwritten: true\n---\n").is_ok()
    });
    let (with_fifo, is_read) = (said(&desk), writer.is_finished());
    let ours = std::fs::File::options().read(true).write(true).open(&fifo).unwrap();
    assert!(writer.join().unwrap());
    drop(ours);
    assert!(!is_read, "the FIFO was read");
    assert!(!with_fifo.is_empty());
}

/// A file below the working directory is read by an agent that is started beside it.
#[test]
fn a_file_of_a_folder_is_read_by_those_who_start_there() {
    let desk = shop();
    desk.write("services/api/AGENTS.md", b"Go.\n")
        .write("services/api/.cursor/rules/a.mdc", b"---\nalwaysApply: true\n---\nA.\n");
    let words = |arguments: &[&str]| -> Vec<String> {
        let text = desk.said(&desk.run(&[&["compat"], arguments].concat()).stdout);
        let rows = text.lines().take_while(|line| !line.is_empty());
        rows.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(
        words(&["services/api/AGENTS.md", "--as", "codex,gemini-cli"]),
        [
            "Codex not here yes when started in services/api",
            "Gemini CLI never it does not look for such a file"
        ]
    );
    assert_eq!(words(&["services/api/.cursor/rules/a.mdc", "--as", "cursor"]), ["Cursor sent"]);
    let report = json(&desk, &["services/api/AGENTS.md", "--as", "codex"]);
    let codex = &report["agents"][0];
    assert_eq!((&codex["outcome"], &codex["started_in"]["outcome"]), (&Value::Null, &"used".into()));
    desk.refuses(
        &["compat", "nosuch.md"],
        2,
        "error: there is no file nosuch.md\n\
         hint: name a file that exists; `proem compat` without one lists the files that agents read here\n",
    );
}

#[test]
fn an_imported_file_is_used_and_not_shadowed() {
    let desk = Desk::of("claude-code");
    desk.write("AGENTS.md", b"Run the tests.\n").write("CLAUDE.md", b"Rules:\n\n@AGENTS.md\n@none.md\n");
    let files = desk.said(&desk.run(&["explain", "--files"]).stdout);
    let about: Vec<Vec<&str>> = files
        .lines()
        .filter(|line| line.contains(" AGENTS.md "))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(about, [["used", "AGENTS.md", "imported", "by", "CLAUDE.md"]], "{files}");
    let notes = desk.said(&desk.run(&["build"]).stderr);
    assert!(
        notes.contains("`@none.md` is not imported: no such file ({root}/work/CLAUDE.md:4:1)\n"),
        "{notes}"
    );
}

/// Installs a package whose program fails when it is run.
fn with_codex(desk: &Desk, version: &str) -> String {
    let package = format!(r#"{{"name": "@openai/codex", "version": "{version}"}}"#);
    desk.write("lib/node_modules/@openai/codex/package.json", package.as_bytes())
        .write("lib/node_modules/@openai/codex/bin/codex.js", b"#!/bin/sh\ntouch ran\n")
        .write("bin/keep", b"");
    let program = desk.work().join("lib/node_modules/@openai/codex/bin/codex.js");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    std::os::unix::fs::symlink(program, desk.work().join("bin/codex")).unwrap();
    format!("{}:/usr/bin:/bin", desk.work().join("bin").display())
}

#[test]
fn a_later_version_than_the_verified_one_is_found_without_running_it() {
    let desk = shop();
    let path = with_codex(&desk, "999.1.0");
    let run = |arguments: &[&str]| {
        let output = desk.command(arguments).env("PATH", &path).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
        desk.said(&output.stdout)
    };
    let report: Value = serde_json::from_str(&run(&["compat", "--agents", "--format", "json"])).unwrap();
    let agents = report["agents"].as_array().unwrap();
    let codex = agents.iter().find(|agent| agent["profile"] == "codex").unwrap();
    assert_eq!((&codex["installed"], &codex["is_newer"]), (&Value::from("999.1.0"), &Value::from(true)));
    let zed = agents.iter().find(|agent| agent["profile"] == "zed").unwrap();
    assert_eq!((&zed["installed"], &zed["known_by"]), (&Value::Null, &Value::from("code")));
    let verified = codex["version"].as_str().unwrap();
    let warning = format!("Codex 999.1.0 is installed; its rules were verified with {verified}\n");
    assert_eq!(run(&["compat", "--agents"]).matches(&warning).count(), 1);
    assert_eq!(
        run(&["compat", "--as", "codex"]).lines().last().map(|line| format!("{line}\n")),
        Some(warning)
    );
    assert!(!desk.work().join("ran").exists(), "the agent was run");
}

#[test]
fn the_verified_version_is_no_warning() {
    let desk = shop();
    let output = desk.run(&["compat", "--agents", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let agents = report["agents"].as_array().unwrap();
    let version =
        agents.iter().find(|agent| agent["profile"] == "codex").unwrap()["version"].as_str().unwrap();
    let path = with_codex(&desk, version);
    let output = desk.command(&["compat"]).env("PATH", &path).output().unwrap();
    assert!(!desk.said(&output.stdout).contains("is installed"), "{}", desk.said(&output.stdout));
}

#[test]
fn files_that_only_a_server_sees_are_sent_and_not_read() {
    let desk = shop();
    desk.write("services/AGENTS.md", b"Below.\n");
    let output = desk.run(&["compat", "--as", "cursor,codex"]);
    let table = desk.said(&output.stdout);
    let row = |file: &str| {
        let line = table.lines().find(|line| line.starts_with(file)).unwrap_or_default();
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        (row("services/AGENTS.md"), row("AGENTS.md")),
        (vec!["sent".into(), "-".into()], vec!["sent".into(), "yes".into()])
    );
    let report = json(&desk, &["--as", "cursor"]);
    assert_eq!(report["agents"][0]["seen"], "client");
}
