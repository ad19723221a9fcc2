//! The command as a user meets it: good, bad and no input, pipes, terminals, exit codes.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::desk::{Desk, on_terminal};

#[test]
fn empty_directory_gives_the_documented_bytes() {
    let desk = Desk::of("template");
    let output = desk.run(&["build", "--verbose"]);
    let expected =
        "You are a helpful coding assistant.\n\n\n\nThe current working directory is {root}/work.\n";
    assert_eq!(desk.said(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(0));
    let notes = desk.said(&output.stderr);
    assert_eq!(notes, "note: `[file:AGENTS.md]` is absent: no such file (built-in template/base:3:1)\n");
    assert_eq!(desk.run(&["build"]).stderr, b"", "it is only good to know");
}

#[test]
fn flags_override_the_request_file() {
    let desk = Desk::new();
    desk.write(
        "request.json",
        br#"{"profile": "template", "model": "a", "system": "gone", "variables": {"x:y": "a", "x:z": "z"}}"#,
    );
    desk.write("t.md", b"[prompt:model] [x:y] [if x:z]z[else]none[endif] [system:time]");
    let output = desk.run(&[
        "build",
        "--request",
        "request.json",
        "--template",
        "t.md",
        "--model",
        "b",
        "--var",
        "x:y=b=c",
        "--absent",
        "x:z",
        "--now",
        "2026-01-02T03:04:05Z",
        "-q",
    ]);
    assert_eq!(desk.said(&output.stdout), "b b=c none 2026-01-02T03:04:05.000Z");
}

#[test]
fn request_and_template_come_from_standard_input() {
    let desk = Desk::new();
    for (arguments, input, expected) in [
        (["build", "-qptemplate", "--request", "-"], r#"{"system": "from a pipe"}"#, "from a pipe"),
        (["build", "-qptemplate", "--template", "-"], "[literal:x]", "[x]"),
    ] {
        let mut child =
            desk.command(&arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        assert_eq!(desk.said(&child.wait_with_output().unwrap().stdout), expected);
    }
}

#[test]
fn bad_input_gets_a_message_a_hint_and_code_2() {
    let desk = Desk::new();
    desk.write("bad.json", b"{\n  \"model\": \n}")
        .write("latin1", b"caf\xe9")
        .write("unknown.json", b"{\"modle\": \"x\"}");
    desk.refuses(
        &["build", "--request", "bad.json"],
        2,
        "error: cannot use the request: expected value, at line 3, column 1\n  |\n3 | }\n  | ^\n\
         hint: docs/request.md describes every field\n",
    );
    desk.refuses(
        &["build", "--request", "unknown.json"],
        2,
        "error: cannot use the request: unknown field `modle`\nhint: did you mean `model` for `modle`?\n",
    );
    let hint = "hint: name a readable UTF-8 file, or `-` for standard input\n";
    for (file, why) in [
        ("missing", "no such file or directory"),
        ("latin1", "it is not UTF-8: bad byte at offset 3"),
        (".", "is a directory"),
    ] {
        desk.refuses(
            &["build", "--template", file],
            2,
            &format!("error: cannot read the template {file}: {why}\n{hint}"),
        );
    }
    desk.refuses(
        &["build", "--cwd", "nowhere"],
        2,
        "error: cannot use `{root}/work/nowhere` as the working directory: no such directory\n\
         hint: name a directory that exists, with `--cwd` or `cwd` in the request\n",
    );
    desk.refuses(
        &["build", "--now", "noon"],
        2,
        "error: cannot use the request: `noon` is not a point in time\n\
         hint: write it in RFC 3339, for example `2026-03-07T14:55:05Z`\n",
    );
}

#[test]
fn bad_profile_shows_the_line() {
    let desk = Desk::new();
    desk.write(".proem/profiles/mine.toml", b"extends = \"template\"\n\n[bracket]\nabsent = \"maybe\"\n");
    desk.refuses(
        &["build", "--profile", "mine"],
        2,
        "error: cannot use the profile {root}/work/.proem/profiles/mine.toml, line 4, column 10: \
         unknown variant `maybe`, expected `blank` or `error`\n  |\n4 | absent = \"maybe\"\n  |          ^\n",
    );
}

#[test]
fn standard_input_is_read_once() {
    let desk = Desk::new();
    desk.refuses(
        &["build", "--request", "-", "--template", "-"],
        2,
        "error: cannot read two of request, template and messages from standard input\n\
         hint: put one of them into a file\n",
    );
}

#[test]
fn template_files_are_named_in_notes() {
    let desk = Desk::new();
    desk.write("t.md", b"a\n [x:y]");
    let output = desk.run(&["build", "--template", "t.md"]);
    assert!(
        desk.said(&output.stderr)
            .starts_with("warning: `[x:y]` is of the unknown type `x` and inserts nothing (t.md:2:2)\n")
    );
}

/// Pinned values do not depend on the machine: the zone comes from the environment of the request.
#[test]
fn time_zone_comes_from_the_pinned_environment() {
    let desk = Desk::new();
    desk.write("r.json", br#"{"profile": "template", "template": "[system:timezone]", "host": {"env": {"TZ": ":Europe/Berlin"}}}"#);
    let output =
        desk.command(&["build", "-q", "--request", "r.json"]).env("TZ", "Asia/Tokyo").output().unwrap();
    assert_eq!(desk.said(&output.stdout), "Europe/Berlin");
}

#[test]
fn wrong_usage_is_code_2() {
    let desk = Desk::new();
    for arguments in
        [&["conversation"][..], &["build", "--nonsense"], &["nonsense"], &["build", "--var", "novalue"]]
    {
        let output = desk.run(arguments);
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(2), b"".as_slice()),
            "{arguments:?}"
        );
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn closed_pipe_is_quiet_success() {
    let desk = Desk::new();
    desk.write("t.md", "x".repeat(1 << 20).as_bytes());
    let mut child = desk.command(&["build", "--template", "t.md"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn full_disk_is_code_3() {
    let desk = Desk::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = desk.command(&["build", "-q"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let expected = "error: cannot write to standard output: no space left on device\n";
    assert_eq!((output.status.code(), desk.said(&output.stderr)), (Some(3), expected.to_owned()));
}

#[test]
fn init_writes_once_and_never_overwrites() {
    let desk = Desk::new();
    let first = desk.run(&["init"]);
    let written = "wrote {root}/work/.proem/proem.toml\nwrote {root}/work/.proem/template.md\n";
    assert_eq!(desk.said(&first.stdout), format!("{written}Try `proem build`, then edit the template.\n"));
    let built = desk.run(&["build", "-q"]);
    assert!(desk.said(&built.stdout).starts_with("You are a software engineer at work in a real project"));

    desk.write(".proem/template.md", b"mine");
    let second = desk.run(&["init"]);
    assert_eq!((second.status.code(), desk.said(&second.stdout).matches("kept").count()), (Some(0), 2));
    assert_eq!(fs::read(desk.work().join(".proem/template.md")).unwrap(), b"mine");
    assert!(desk.run(&["build", "-q"]).stdout.starts_with(b"mine\n\n# Environment\n"));
}

#[test]
fn vars_tell_the_value_or_why_there_is_none() {
    let desk = Desk::new();
    let output = desk.run(&["vars", "--format", "json", "--model", "m", "--now", "2026-01-02T03:04:05Z"]);
    let shape: Value = serde_json::from_slice(&output.stdout).unwrap();
    let variables = shape["variables"].as_array().unwrap();
    let find = |kind: &str, name: &str| {
        variables
            .iter()
            .find(|row| row["type"] == kind && row["name"] == name)
            .unwrap_or(&Value::Null)
            .clone()
    };
    assert_eq!(find("prompt", "model")["value"], "m");
    assert_eq!(find("system", "date")["value"], "2026-01-02");
    assert_eq!(find("git", "branch")["absent"], "not a git repository");
    assert_eq!(find("file", "PATH")["dynamic"], true);
    assert_eq!(find("git", "status")["stability"], "turn");
    let text = desk.said(&desk.run(&["vars"]).stdout);
    let line = text.lines().find(|line| line.starts_with("prompt:language")).unwrap();
    assert!(line.contains("absent: not given in the request"), "{line}");
}

#[test]
fn profile_show_names_the_file_of_each_key() {
    let desk = Desk::new();
    desk.write(".proem/profiles/mine.toml", b"extends = \"template\"\ncompaction = \"aligned\"\n");
    let text = desk.said(&desk.run(&["profile", "show", "mine"]).stdout);
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert_eq!(line("compaction"), "compaction = \"aligned\"  # {root}/work/.proem/profiles/mine.toml");
    assert_eq!(line("rebuild"), "rebuild = [\"compaction\"]  # built-in template");
    assert_eq!(line("stored_template"), "stored_template = true  # built-in template");
    assert_eq!(line("fixed"), "");
    let json = desk.run(&["profile", "show", "boundary", "--format", "json"]).stdout;
    let shown: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(shown["stored_template"], serde_json::json!(false));
    assert_eq!(
        shown["fixed"],
        serde_json::json!(["system:date", "system:os", "system:os_version", "system:shell", "prompt:cwd"])
    );
    let listed = desk.said(&desk.run(&["profile", "list"]).stdout);
    let expected = "assets       built-in   Jinja templates from libraries, packs, and a trailing section that cannot be dropped\n\
                    boundary     built-in   Versioned base, whitelisted instruction files, skill directory; a boundary; git state of the turn\n\
                    claude-code  built-in   What Claude Code would read here\n\
                    codex        built-in   What Codex would read here\n\
                    copilot      built-in   What GitHub Copilot would read here\n\
                    cursor       built-in   What Cursor would read here\n\
                    default      built-in   Base, tools, instruction files, skills and environment; volatile facts on the turn carrier\n\
                    engraving    built-in   A small operator text as system prompt; identity, tools, AGENTS.md and date before the first message\n\
                    gemini-cli   built-in   What Gemini CLI would read here\n\
                    goose        built-in   What goose would read here\n\
                    layers       built-in   Base with tools and guidelines, SYSTEM.md, instruction files, skills, date and directory\n\
                    mine         workspace  One bracket template with variables and conditions\n\
                    opencode     built-in   What opencode would read here\n\
                    pi           built-in   What pi would read here\n\
                    template     built-in   One bracket template with variables and conditions\n\
                    zed          built-in   What Zed would read here\n";
    assert_eq!(listed, expected);
}

/// Row T2.
#[test]
fn config_says_where_each_value_comes_from() {
    let desk = Desk::new();
    fs::create_dir_all(desk.root.path().join(".config/proem")).unwrap();
    fs::write(desk.root.path().join(".config/proem/proem.toml"), "[git]\ntimeout_ms = 500\n").unwrap();
    desk.write(".proem/proem.toml", b"profile = \"mine\"\n[git]\ntimeout_ms = 99999\n");
    let output = desk.run(&["config"]);
    let text = desk.said(&output.stdout);
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert_eq!(
        line("profile").split_whitespace().collect::<Vec<_>>(),
        ["profile", "\"mine\"", ".proem/proem.toml"]
    );
    assert_eq!(line("git.timeout_ms").split_whitespace().nth(1), Some("500"));
    assert!(
        desk.said(&output.stderr).starts_with("warning: `[git]` in {root}/work/.proem/proem.toml is ignored")
    );
}

#[test]
fn manual_and_completions_are_made() {
    let desk = Desk::new();
    assert!(desk.said(&desk.run(&["man"]).stdout).contains(".TH proem 1"));
    assert_eq!(desk.run(&["man", "--dir", "man"]).status.code(), Some(0));
    assert!(Path::new(&desk.work().join("man/proem-build.1")).exists());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(desk.said(&desk.run(&["completions", shell]).stdout).contains("proem"), "{shell}");
    }
}

/// The words as bash gives them to a completion: it splits at `=`, and not at commas.
#[test]
fn bash_completes_values_wherever_they_stand() {
    let desk = Desk::new();
    desk.write("script", &desk.run(&["completions", "bash"]).stdout);
    for (words, expected) in [
        (&["build", "--profile", "cl"][..], "claude-code"),
        (&["build", "--profile", "=", "cl"], "claude-code"),
        (&["build", "--profile=cl"], "--profile=claude-code"),
        (&["check", "--as", "a"], "all"),
        (&["check", "--as", "codex,cl"], "codex,claude-code"),
        (&["compat", "--as", "=", "codex,cl"], "codex,claude-code"),
        (&["compat", "--diff", "codex", "cl"], "claude-code"),
        (&["bui"], "build"),
    ] {
        let program = "source ./script; COMP_WORDS=(proem \"$@\"); COMP_CWORD=$#; \
                       _proem proem \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; echo \"${COMPREPLY[*]}\"";
        let mut command = std::process::Command::new("bash");
        let output =
            command.args(["-c", program, "bash"]).args(words).current_dir(desk.work()).output().unwrap();
        assert_eq!(
            desk.said(&output.stdout),
            format!("{expected}\n"),
            "{words:?} {}",
            desk.said(&output.stderr)
        );
    }
}

/// Row H21: on a terminal, text from files cannot move the cursor; into a pipe it goes raw.
#[test]
fn control_characters_are_shown_on_a_terminal_only() {
    let desk = Desk::new();
    desk.write("AGENTS.md", b"\x1b]0;evil\x07");
    let piped = desk.run(&["build", "-q", "--var", "prompt:cwd=\u{1b}[2J"]);
    assert!(piped.stdout.contains(&0x1b));

    let shown = on_terminal(desk.command(&["build", "-q"]));
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(shown.contains("<U+001B>]0;evil<U+0007>"), "{shown}");
}

/// Standard output has the system carrier alone, which some agents leave empty.
#[test]
fn a_prompt_on_another_carrier_is_said_to_be_there() {
    let desk = Desk::of("claude-code");
    desk.write("CLAUDE.md", b"Be brief.\n");
    let shape: Value = serde_json::from_slice(&desk.run(&["build", "--json"]).stdout).unwrap();
    let bytes = shape["carriers"]["first_user"].as_str().unwrap().len();
    let output = desk.run(&["build"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"".as_slice()));
    let expected = format!(
        "note: the system carrier is empty, and nothing else is printed: the prompt is on first_user ({bytes} bytes); \
         `--annotate` shows its text, `--format json` has every carrier, and `--for PROVIDER` the request\n"
    );
    assert_eq!(desk.said(&output.stderr), expected);
    for quiet in [&["build", "-q"][..], &["build", "--annotate"], &["build", "--json"]] {
        assert_eq!(desk.said(&desk.run(quiet).stderr), "", "{quiet:?}");
    }
    let explained = desk.said(&desk.run(&["explain"]).stdout);
    assert!(
        explained.contains(&format!("\nprefix   0 bytes on system, {bytes} bytes on first_user\n")),
        "{explained}"
    );
    assert!(!explained.contains("tokens   0 "), "{explained}");
    let stats: Value = serde_json::from_slice(&desk.run(&["build", "--stats", "--json"]).stdout).unwrap();
    assert_eq!(stats["stats"]["prefix_tokens"], stats["stats"]["carriers"][0]["tokens"]);
}
