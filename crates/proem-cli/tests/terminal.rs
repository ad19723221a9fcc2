//! Output at 80 columns and into pipes, the help, and questions about files.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::process::Output;

use crate::desk::{Desk, on_terminal};
use serde_json::Value;

/// A repository with rules on two levels, a skill with a long description, and files with long paths.
fn desk() -> Desk {
    let desk = Desk::new();
    proem_testkit::git(&desk.work(), &["init".to_owned(), "-q".to_owned()]);
    let deep = "services/payments/internal/adapters/accounting";
    desk.write("AGENTS.md", b"# Rules\n\nUse tabs.\nWrite tests first.\n")
        .write(&format!("{deep}/AGENTS.md"), b"Round half to even.\n")
        .write(&format!("{deep}/CLAUDE.md"), b"Other rules.\n")
        .write(
            ".proem/skills/reconciliation/SKILL.md",
            b"---\nname: reconciliation\ndescription: Compares what the ledger says with what the bank says, and lists \
              every difference with the day on which it came up first\n---\n",
        );
    desk
}

const DEEP: &str = "services/payments/internal/adapters/accounting";

fn at(desk: &Desk, columns: &str, arguments: &[&str]) -> Output {
    desk.command(arguments).env("COLUMNS", columns).output().unwrap()
}

/// Every command that prints a table or findings.
const TABLES: [&[&str]; 16] = [
    &["explain"],
    &["explain", "--all"],
    &["explain", "--files"],
    &["explain", "--model", "claude-opus-5"],
    &["build", "--stats", "--model", "claude-opus-5"],
    &["compat"],
    &["compat", "AGENTS.md"],
    &["vars"],
    &["skills", "list"],
    &["profile", "list"],
    &["config"],
    &["check", "--strict"],
    &["check", "--codes"],
    &["check", "--determinism"],
    &["why", "AGENTS.md"],
    &["why", "Round half"],
];

/// The longest word of a line that cannot be broken is a path or a digest; nothing else is wider than the terminal.
#[test]
fn lines_fit_the_terminal() {
    let desk = desk();
    for columns in [60, 80, 100] {
        for command in TABLES {
            let takes_cwd = !matches!(command, ["check", "--codes"]);
            let cwd = if takes_cwd { &["--cwd", DEEP][..] } else { &[] };
            let output = at(&desk, &columns.to_string(), &[command, cwd].concat());
            assert!(!output.stdout.is_empty(), "{command:?}: {}", desk.said(&output.stderr));
            for line in String::from_utf8(output.stdout).unwrap().lines() {
                let is_one_word = line.trim().split(' ').any(|word| word.chars().count() > columns - 30);
                assert!(line.chars().count() <= columns || is_one_word, "{command:?} at {columns}: {line}");
            }
        }
    }
}

#[test]
fn help_fits_the_terminal() {
    let desk = Desk::new();
    for command in [&["--help"][..], &["build", "-h"], &["explain", "--help"], &["why", "--help"]] {
        let output = at(&desk, "80", command);
        assert_eq!(output.status.code(), Some(0));
        for line in desk.said(&output.stdout).lines() {
            assert!(line.chars().count() <= 80, "{command:?}: {line}");
        }
    }
}

/// Into a pipe, every row is one line and nothing is cut: programs do that as they like.
#[test]
fn nothing_is_cut_for_a_program() {
    let desk = desk();
    let piped = desk.said(&desk.run(&["skills", "list"]).stdout);
    let expected = "\
outcome  name            description                                                                                                             file                                   why
listed   reconciliation  Compares what the ledger says with what the bank says, and lists every difference with the day on which it came up first  .proem/skills/reconciliation/SKILL.md
";
    assert_eq!(piped.lines().count(), expected.lines().count(), "{piped}");
    assert_eq!(piped.lines().last(), expected.lines().last(), "{piped}");
    let narrow = desk.said(&at(&desk, "80", &["skills", "list"]).stdout);
    let expected = "\
outcome  name            description               file                      why
listed   reconciliation  Compares what the ledger  .proem/skills/
                         says with what the bank   reconciliation/SKILL.md
                         says, and lists every
                         difference with the day
                         on…
";
    assert_eq!(narrow, expected);
}

#[test]
fn columns_that_do_not_fit_are_named() {
    let desk = desk();
    let narrow = desk.said(&at(&desk, "60", &["explain", "--all"]).stdout);
    assert!(narrow.contains("\ncolumns left out, for lack of room: range, inserted by\n"), "{narrow}");
    let wide = desk.said(&desk.run(&["explain", "--all"]).stdout);
    assert!(!wide.contains("left out") && wide.contains("inserted by"), "{wide}");
}

#[test]
fn explain_is_short_by_default() {
    let desk = Desk::of("template");
    desk.write("t.md", b"Be brief.\n[file:AGENTS.md]\n").write("AGENTS.md", b"Use tabs.\n");
    let output = desk.run(&["explain", "--template", "t.md", "--model", "gpt-5"]);
    let expected = "\
profile  template
digest   c987857338ab95199103605b0339ea272403e2d4c56d72c6e48453b4b8c38664
prefix   21 bytes
tokens   6 with the tools
counted  exact, o200k_base

section        tokens  cached     stability  USD a call  from
system              6
  base              6  too short  session      0.000008  t.md
    t.md            3             session
    AGENTS.md       3             project

turn  tokens  read  written  uncached       USD
cold      17     0        0        17  0.000021
warm      29     0        0        29  0.000036
rules and prices of openai-responses as of 2026-11-15

`--all` shows the source of every byte; `proem build --annotate` shows the text with the source of each line
";
    assert_eq!(desk.said(&output.stdout), expected);
}

#[test]
fn the_command_alone_prints_its_help() {
    let desk = Desk::new();
    let (alone, asked) = (desk.run(&[]), desk.run(&["--help"]));
    assert_eq!((alone.status.code(), alone.stderr.len()), (Some(0), 0));
    assert_eq!(alone.stdout, asked.stdout);
    let said = desk.said(&alone.stdout);
    for title in ["\nBuild:\n", "\nUnderstand:\n", "\nCheck:\n", "\nServe:\n", "\nManage:\n"] {
        assert!(said.contains(title), "{said}");
    }
    let lint = desk.run(&["lint"]);
    assert_eq!(lint.status.code(), Some(2));
    assert!(desk.said(&lint.stderr).contains("a similar subcommand exists: 'check'"));
}

#[test]
fn a_file_is_followed_into_the_prompt() {
    let desk = desk();
    let ask = |path: &str| {
        let output = desk.run(&["why", path, "--cwd", DEEP]);
        (output.status.code(), desk.said(&output.stdout), desk.said(&output.stderr))
    };
    let (code, said, _) = ask("AGENTS.md");
    assert_eq!(code, Some(0));
    let bytes = said.split("bytes ").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
    let (start, end) = bytes.split_once("..").unwrap();
    let range = start.parse::<usize>().unwrap()..end.parse::<usize>().unwrap();
    let prompt = desk.run(&["build", "-q", "--cwd", DEEP]).stdout;
    assert_eq!(prompt.get(range), Some(b"# Rules\n\nUse tabs.\nWrite tests first.".as_slice()));
    assert!(said.starts_with("AGENTS.md is in the prompt\n  system carrier, lines "), "{said}");
    assert!(said.ends_with(", section context, frozen; from line 1 of the file\n"), "{said}");

    let shadowed = format!("{DEEP}/CLAUDE.md");
    let (code, said, _) = ask(&shadowed);
    assert_eq!(code, Some(1));
    assert!(said.starts_with(&format!("{shadowed} is not in the prompt (shadowed): ")), "{said}");

    desk.write("README.md", b"Use tabs.\n");
    let (code, said, hint) = ask("README.md");
    assert_eq!(code, Some(1));
    assert_eq!(said, "README.md is not in the prompt: the profile `default` does not look for it\n");
    assert!(hint.starts_with("hint: `proem explain --files` lists"), "{hint}");
    let missing = ask("no/such/file.md");
    let expected = "no/such/file.md is not in the prompt: the file does not exist\n";
    assert_eq!((missing.0, missing.1.as_str()), (Some(1), expected));
}

#[test]
fn a_name_can_be_looked_for_as_text() {
    let desk = desk();
    let text = desk.run(&["why", "--text", "AGENTS.md"]);
    assert_eq!(text.status.code(), Some(0));
    assert!(desk.said(&text.stdout).starts_with("AGENTS.md\nsystem carrier, line "));
    let json: Value = serde_json::from_slice(&desk.run(&["why", "AGENTS.md", "--json"]).stdout).unwrap();
    assert_eq!((&json["outcome"], &json["places"][0]["section"]), (&"used".into(), &"context".into()));
    let nothing = desk.run(&["why", "not there"]);
    assert_eq!(
        desk.said(&nothing.stderr),
        "this text is neither in the prompt nor in a file that was considered\nhint: search for words of the \
         prompt that are on one line, or for the path of a file; `proem build --annotate` shows the whole prompt with its sources\n"
    );
}

#[test]
fn a_turn_without_words_says_what_is_not_sent() {
    let desk = Desk::new();
    let silent = desk.run(&["turn"]);
    assert_eq!(silent.status.code(), Some(0));
    assert_eq!(
        desk.said(&silent.stderr),
        "warning: the user says nothing in this turn, so nothing of the `turn` carrier is sent\nhint: say what the user \
         says with `--prompt`, or `prompt` in the request\n"
    );
    let spoken = desk.run(&["turn", "--prompt", "Hello"]);
    assert_eq!(desk.said(&spoken.stderr), "");
    assert!(desk.said(&spoken.stdout).contains("== Messages (2)"));
}

#[test]
fn the_stricter_of_profile_and_configuration_is_in_effect() {
    let desk = Desk::new();
    let line = |desk: &Desk| {
        let said = desk.said(&desk.run(&["config"]).stdout);
        said.lines().find(|line| line.starts_with("hygiene in effect")).unwrap().to_owned()
    };
    assert_eq!(
        line(&desk),
        "hygiene in effect: \"neutralise\"; the profile `default` is stricter than the configuration, and the stricter one counts"
    );
    fs::create_dir_all(desk.root.path().join(".config/proem")).unwrap();
    fs::write(desk.root.path().join(".config/proem/proem.toml"), "hygiene = \"refuse\"\n").unwrap();
    assert_eq!(
        line(&desk),
        "hygiene in effect: \"refuse\"; the configuration is stricter than the profile `default`, which has \"neutralise\""
    );
    let json: Value = serde_json::from_slice(&desk.run(&["config", "--json"]).stdout).unwrap();
    let hygiene = json["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == "hygiene");
    assert_eq!(hygiene.unwrap()["effective"], "refuse");
}

/// Words that are compiled in stay until the next release; a user's own profile is the user's.
#[test]
fn built_in_words_are_as_stable_as_a_release() {
    let desk = Desk::new();
    let stability = |arguments: &[&str], key: &str| -> String {
        let json: Value = serde_json::from_slice(&desk.run(arguments).stdout).unwrap();
        let spans = json["spans"].as_array().unwrap();
        spans.iter().find(|span| span["source"]["key"] == key).unwrap()["stability"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let key = "section.environment.template";
    assert_eq!(stability(&["build", "--json"], key), "release");
    let own = b"extends = \"default\"\n[[section]]\nid = \"environment\"\ntemplate = { text = \"Mine.\" }\n";
    desk.write(".proem/profiles/mine.toml", own);
    assert_eq!(stability(&["build", "--json", "-p", "mine"], key), "user");
}

/// The margin has sources alone: a line that is longer than the terminal goes on behind the bar.
#[test]
fn an_annotated_line_goes_on_behind_the_bar() {
    let desk = Desk::of("template");
    desk.write(
        "t.md",
        "These words take more than one line of a terminal, and so does averyveryverylongword".as_bytes(),
    );
    let mut command = desk.command(&["build", "--annotate", "--template", "t.md"]);
    command.env("COLUMNS", "60").env("NO_COLOR", "1");
    let shown = on_terminal(command);
    let lines: Vec<&str> = shown.lines().collect();
    let texts: Vec<&str> =
        lines.iter().filter_map(|line| line.split_once("│ ")).map(|(_, text)| text).collect();
    assert_eq!(
        texts,
        ["These words take more than ", "one line of a terminal, and ", "so does averyveryverylongword",],
        "{shown}"
    );
    assert!(shown.ends_with('\n') && lines.len() == texts.len(), "{shown}");
}
