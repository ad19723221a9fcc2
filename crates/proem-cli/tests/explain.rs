//! `proem explain` and `proem build --annotate`, as a user sees them.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fmt::Write as _;

use crate::desk::{Desk, on_terminal};
use serde_json::{Map, Value};

const TEMPLATE: &[u8] = b"You run [prompt:model].\n\
    [if file:AGENTS.md]Follow the rules:\n\n[file:AGENTS.md][endif]\n\
    [if file:MORE.md]More: [file:MORE.md][else]There is no more.[endif]\n\
    It is [system:time].";

/// A template with a file, variables, conditions and a file that is not there.
fn desk() -> Desk {
    let desk = Desk::of("template");
    desk.write("t.md", TEMPLATE).write("AGENTS.md", "# Rules\n\nWrite tests first, naïvely.\n".as_bytes());
    desk
}

/// The command with everything pinned.
fn arguments<'a>(command: &[&'a str]) -> Vec<&'a str> {
    let pins = ["--template", "t.md", "--model", "m-1", "--now", "2026-01-02T03:04:05Z"];
    [command, &pins].concat()
}

/// Compares all of standard output with a text that begins on a line of its own. A desk's path stands in it
/// as another one of the same length.
#[track_caller]
fn says(desk: &Desk, arguments: &[&str], expected: &str) {
    let output = desk.run(arguments);
    let said = desk.said(&output.stdout).replace("{root}", "/tmp/proem-000000");
    let expected = expected.strip_prefix('\n').unwrap_or(expected);
    assert_eq!(said, expected, "{}", desk.said(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}

/// Takes the margin away from each line.
fn without_margin(page: &str) -> String {
    let lines = page.split_inclusive('\n').map(|line| {
        let (margin, text) = line.split_once(" │").unwrap();
        assert_eq!(margin.chars().count(), 28, "{line}");
        text.strip_prefix(' ').unwrap_or(text)
    });
    lines.collect()
}

#[test]
fn explain_shows_the_source_of_every_byte() {
    let desk = desk();
    let output = desk.run(&arguments(&["explain", "--all"]));
    assert_eq!(desk.said(&output.stderr), "");
    let expected = r"
profile  template
digest   beebf3c25a4069b0ba586ea3279cb30f91d57e64463311562684ab39b0d0b8ae
prefix   120 bytes
tokens   45 with the tools
counted  estimated, −45 % to +94 %: the tokenizer of m-1 is not known

bytes  range     tokens  cached  stability  source              inserted by
  120                45                     system
  120  0..120        45  yes     turn         base from t.md
    8  0..8                      session        t.md:1
    3  8..11                     session        [prompt:model]  t.md:1:9
   21  11..32                    session        t.md:1
   38  32..70                    project        AGENTS.md:1     [file:AGENTS.md] at t.md:4:1
   25  70..95                    session        t.md:4
   24  95..119                   turn           [system:time]   t.md:6:7
    1  119..120                  session        t.md:6

outcome  file       why
used     AGENTS.md
missing  MORE.md    no such file

note: `[file:MORE.md]` is absent: no such file (t.md:5:1)
warning: [system:time] changes with every turn and stands at byte 95 of the system carrier: when it does, the cache loses 25 bytes (t.md:6:7)
hint: move it to a section on the `turn` carrier, or as far down as possible
";
    says(&desk, &arguments(&["explain", "--all"]), expected);
}

#[test]
fn files_alone_are_the_files_that_were_looked_at() {
    let expected = r"
outcome  file       why
used     AGENTS.md
missing  MORE.md    no such file
";
    says(&desk(), &arguments(&["explain", "--files"]), expected);
}

#[test]
fn nothing_is_said_in_words() {
    let desk = Desk::of("template");
    desk.write("empty.md", b"");
    let expected = r"
profile  template
digest   e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
prefix   0 bytes
tokens   0 with the tools
counted  estimated: no model is named

The prompt is empty: no section has text.

No file was looked at.

There are no notes.
";
    says(&desk, &["explain", "--all", "--template", "empty.md"], expected);
    says(&desk, &["explain", "--template", "empty.md", "--files"], "No file was looked at.\n");
    says(&desk, &["build", "--annotate", "--template", "empty.md"], "");
}

/// A value that is empty today may not be tomorrow, so its place is shown.
#[test]
fn empty_values_have_a_line() {
    let desk = Desk::of("template");
    desk.write("t.md", b"[x:y]");
    let expected = r"
profile  template
digest   e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
prefix   0 bytes
tokens   0 with the tools
counted  estimated: no model is named

The prompt is empty: no section has text.

bytes  range  tokens  cached  stability  source     inserted by
    0              0                     system
    0  0..0                   session        [x:y]  t.md:1:1

No file was looked at.

There are no notes.
";
    says(&desk, &["explain", "--all", "--template", "t.md", "--var", "x:y="], expected);
}

/// Without bytes, the end of one section and the start of the next are the same place.
#[test]
fn empty_values_stay_in_their_section() {
    let desk = Desk::of("template");
    let profile = "extends = \"template\"\n[[section]]\nid = \"second\"\n\
        template = { text = \"[x:y]B\", syntax = \"bracket\" }\n";
    desk.write(".proem/profiles/mine.toml", profile.as_bytes()).write("t.md", b"A[x:y]");
    let expected = r"
profile  mine
digest   38164fbd17603d73f696b8b4d72664d735bb6a7c88577687fd2ae33fd6964153
prefix   2 bytes
tokens   1 with the tools
counted  estimated, −0 % to +100 %: no model is named

bytes  range  tokens  cached  stability  source                                               inserted by
    2              1                     system
    1  0..1        1  yes     session      base from t.md
    1  0..1                   session        t.md:1
    0  1..1                   session        [x:y]                                            t.md:1:2
    1  1..2        1  yes     session      second from profile mine, section.second.template
    0  1..1                   session        [x:y]                                            profile mine, section.second.template
    1  1..2                   user           profile mine, section.second.template

No file was looked at.

There are no notes.
";
    says(&desk, &["explain", "--all", "-p", "mine", "--template", "t.md", "--var", "x:y="], expected);
}

#[test]
fn annotated_lines_name_the_source_where_it_changes() {
    let desk = desk();
    let output = desk.run(&arguments(&["build", "--annotate"]));
    let expected = r"
t.md:1                       │ You run m-1.
                             │ Follow the rules:
                             │
AGENTS.md:1                  │ # Rules
                             │
                             │ Write tests first, naïvely.
t.md:4                       │
                             │ There is no more.
                             │ It is 2026-01-02T03:04:05.000Z.";
    says(&desk, &arguments(&["build", "--annotate"]), expected);
    assert_eq!(output.stderr, desk.run(&arguments(&["build"])).stderr);
    let prompt = desk.run(&arguments(&["build"])).stdout;
    assert_eq!(without_margin(&desk.said(&output.stdout)), desk.said(&prompt));
}

/// Lines that a condition leaves out break the count, so the margin says where it goes on.
#[test]
fn annotated_lines_are_numbered_as_in_their_source() {
    let desk = Desk::of("template");
    desk.write("a/rather/deep/folder/RULES.md", b"one\ntwo\n");
    desk.write("t.md", b"1\n2\n[if x:y]\n4\n[endif]\n6 [file:a/rather/deep/folder/RULES.md]7\n");
    let expected = r"
t.md:1                       │ 1
                             │ 2
t.md:5                       │
                             │ 6 one
…/deep/folder/RULES.md:2     │ two
t.md:6                       │ 7
";
    says(&desk, &["build", "-q", "--annotate", "--template", "t.md", "--absent", "x:y"], expected);
}

/// Columns count the characters of the file: a byte-order mark is one, whichever profile removes it.
#[test]
fn a_byte_order_mark_is_a_column() {
    let desk = Desk::new();
    for name in ["AGENTS.md", "CLAUDE.md", "GEMINI.md"] {
        desk.write(name, "\u{feff}Alpha\nbeta\n".as_bytes());
    }
    for profile in ["default", "claude-code", "gemini-cli", "pi"] {
        let output = desk.run(&["build", "-p", profile, "--json"]);
        let shape: Value = serde_json::from_slice(&output.stdout).unwrap();
        let (spans, carriers) = (shape["spans"].as_array().unwrap(), &shape["carriers"]);
        let text = |span: &Value| {
            let (start, end) = (span["start"].as_u64().unwrap(), span["end"].as_u64().unwrap());
            let text = carriers[span["carrier"].as_str().unwrap()].as_str().unwrap();
            text.get(usize::try_from(start).unwrap()..usize::try_from(end).unwrap()).unwrap().to_owned()
        };
        let found = spans.iter().find(|span| text(span).starts_with("Alpha")).unwrap();
        let place = (&found["source"]["line"], &found["source"]["column"]);
        assert_eq!(place, (&1.into(), &2.into()), "{profile}: {found}");
    }
}

/// A run goes on in its file as it does in the prompt: where lines are left out, another one begins.
#[test]
fn runs_are_contiguous_in_their_file() {
    let desk = Desk::of("template");
    desk.write("t.md", b"1\n2\n[if x:y]\n4\n5\n[endif]\n7\n");
    let output = desk.run(&["explain", "--all", "--template", "t.md", "--absent", "x:y"]);
    let text = desk.said(&output.stdout);
    let lines = text.lines().filter(|line| line.contains("        t.md:"));
    let runs: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(runs, [["4", "0..4", "session", "t.md:1"], ["3", "4..7", "session", "t.md:6"]], "{text}");
}

#[test]
fn carriers_have_headings_where_there_are_several() {
    let desk = Desk::of("template");
    let profile = "extends = \"template\"\n[[section]]\nid = \"clock\"\ncarrier = \"turn\"\n\
        template = { text = \"It is [system:date].\\n\", syntax = \"bracket\" }\n";
    desk.write(".proem/profiles/mine.toml", profile.as_bytes());
    desk.write("t.md", b"Be brief.");
    desk.write("r.json", br#"{"append": "Be kind.\nBe exact."}"#);
    let pins = ["-p", "mine", "--template", "t.md", "--request", "r.json", "--now", "2026-01-02T03:04:05Z"];
    let expected = r"
system, 29 bytes ────────────┬─
t.md:1                       │ Be brief.
… mine, section.append.lead  │
request field `append`       │ Be kind.
                             │ Be exact.
turn, 18 bytes ──────────────┬─
… section.clock.template     │ It is 2026-01-02.
";
    says(&desk, &[&["build", "-q", "--annotate"], &pins[..]].concat(), expected);
    let expected = r"
profile  mine
digest   8539f1eec7d93aa7eddf9c3c2894d8e6740ab9a1cd3d5f90f802adc086fc5939
prefix   29 bytes
tokens   11 with the tools
counted  estimated, −46 % to +82 %: no model is named

bytes  range   tokens  cached      stability  source                                             inserted by
   29              11                         system
    9  0..9         4  yes         session      base from t.md
    9  0..9                        session        t.md:1
   20  9..29        8  yes         session      append from request field `append`
    2  9..11                       release        profile mine, section.append.lead
   18  11..29                      session        request field `append`
   18               7                         turn
   18  0..18        7  as history  day          clock from profile mine, section.clock.template
    6  0..6                        user           profile mine, section.clock.template
   10  6..16                       day            [system:date]                                  profile mine, section.clock.template
    2  16..18                      user           profile mine, section.clock.template

No file was looked at.

There are no notes.
";
    says(&desk, &[&["explain", "--all"], &pins[..]].concat(), expected);
}

/// Rows M11 and H21: a path may hold anything but NUL: it must not move the cursor or pretend to be another
/// line.
#[test]
fn paths_cannot_act_on_the_terminal() {
    let desk = Desk::of("template");
    let folder = "e\u{1b}[2Jvil\nused  x";
    desk.write(&format!("{folder}/a.md"), b"a\n").write("t.md", b"[file:a.md][file:b\t.md]");
    let flags = ["--template", "t.md", "--cwd", folder];
    let expected = r"
profile  template
digest   87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7
prefix   2 bytes
tokens   1 with the tools
counted  estimated, −0 % to +100 %: no model is named

bytes  range  tokens  cached  stability  source                                     inserted by
    2              1                     system
    2  0..2        1  yes     project      base from t.md
    2  0..2                   project        e<U+001B>[2Jvil<U+000A>used  x/a.md:1  [file:a.md] at t.md:1:1

outcome  file                                         why
used     e<U+001B>[2Jvil<U+000A>used  x/a.md
missing  e<U+001B>[2Jvil<U+000A>used  x/b<U+0009>.md  no such file

note: `[file:b\u{9}.md]` is absent: no such file (t.md:1:12)
";
    says(&desk, &[&["explain", "--all"], &flags[..]].concat(), expected);
    let expected = r"
…  x/a.md:1                  │ a
";
    says(&desk, &[&["build", "-q", "--annotate"], &flags[..]].concat(), expected);
}

#[test]
fn json_is_that_of_build() {
    let desk = desk();
    let explained = desk.run(&arguments(&["explain", "--format", "json"]));
    assert_eq!(explained, desk.run(&arguments(&["build", "--format", "json"])));
    assert!(serde_json::from_slice::<Value>(&explained.stdout).unwrap()["spans"].is_array());
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let desk = Desk::of("template");
    desk.refuses(
        &["build", "--annotate", "--format", "json"],
        2,
        "error: cannot use `--annotate` together with `--format json`\n\
         hint: leave `--annotate` out: `spans` in the JSON holds the source of every byte\n",
    );
    desk.refuses(
        &["explain", "--files", "--format", "json"],
        2,
        "error: cannot use `--files` together with `--format json`\n\
         hint: leave `--files` out: `considered` in the JSON is the list of files\n",
    );
    assert_eq!(desk.run(&["build", "--annotate", "--format", "text"]).status.code(), Some(0));
}

/// Into a pipe the text goes raw, with the escapes that a file holds; on a terminal they are harmless.
#[test]
fn annotated_text_has_colours_on_a_terminal_only() {
    let desk = Desk::of("template");
    desk.write("t.md", b"A [x:y] B\x1b[2J [system:time]\n");
    let flags = ["build", "-q", "--annotate", "--template", "t.md", "--var", "x:y=v", "--now"];
    let flags = [&flags[..], &["2026-01-02T03:04:05Z"]].concat();
    says(&desk, &flags, "t.md:1                       │ A v B\u{1b}[2J 2026-01-02T03:04:05.000Z\n");

    let mut command = desk.command(&flags);
    command.env("TERM", "xterm");
    assert_eq!(
        on_terminal(command),
        "\u{1b}[2mt.md:1                       │ \u{1b}[0mA \u{1b}[32mv\u{1b}[0m \
         B<U+001B>[2J \u{1b}[31m2026-01-02T03:04:05.000Z\u{1b}[0m\n"
    );
    let mut command = desk.command(&flags);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    assert_eq!(
        on_terminal(command),
        "t.md:1                       │ A v B<U+001B>[2J 2026-01-02T03:04:05.000Z\n"
    );
}

#[test]
fn explain_colours_stability_on_a_terminal() {
    let desk = Desk::of("template");
    desk.write("t.md", b"[system:date][file:a.md]").write("a.md", b"a");
    let mut command =
        desk.command(&["explain", "--all", "--template", "t.md", "--now", "2026-01-02T03:04:05Z"]);
    command.env("TERM", "xterm").env("COLUMNS", "120");
    let shown = on_terminal(command);
    let shown = desk.said(shown.as_bytes()).replace("{root}", "/tmp/proem-000000");
    let rows: Vec<&str> = shown.lines().skip(7).take(4).collect();
    let expected = [
        "   11               5                     \u{1b}[1msystem\u{1b}[0m",
        "   11  0..11        5  yes     \u{1b}[33mday\u{1b}[0m          base from t.md",
        "   10  0..10                   \u{1b}[33mday\u{1b}[0m            [system:date]  \u{1b}[2mt.md:1:1\u{1b}[0m",
        "    1  10..11                  \u{1b}[32mproject\u{1b}[0m        a.md:1         \
         \u{1b}[2m[file:a.md] at t.md:1:14\u{1b}[0m",
    ];
    assert_eq!(rows, expected);
}

/// The tree shows assets, the includes on the way to them, the wording of packs, and what was collected.
#[test]
fn assets_are_traced_through_includes_and_packs() {
    let desk = Desk::of("template");
    desk.write("../.config/proem/prompts/greet.md", b"Hello.\n{% include \"part\" %}");
    desk.write("../.config/proem/prompts/part.md", b"You are in {{ cwd }}.");
    desk.write("pack.toml", b"[prompt]\nagents_md_section = \"Rules: {{ agents_md }}\"\n");
    desk.write("AGENTS.md", b"Be brief.\n");
    let arguments =
        ["explain", "--all", "--profile", "assets", "--instruction", "$user/greet", "--pack", "pack.toml"];
    let page = desk.said(&desk.run(&arguments).stdout);
    let rows: Vec<String> =
        page.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let greet = "~/.config/proem/prompts/greet.md";
    let part = "~/.config/proem/prompts/part.md";
    for expected in [
        format!("7 0..7 user {greet}:1"),
        format!("11 7..18 user {part}:1 included from {greet}:2:12"),
        format!("22 18..40 session [prompt:cwd] {part}:1:12, included from {greet}:2:12"),
        "AGENTS.md:1 pack.toml, `agents_md_section`:1:8".to_owned(),
    ] {
        assert!(rows.iter().any(|row| row.ends_with(&expected)), "no row ends with {expected:?} in\n{page}");
    }
}

#[test]
fn profile_show_names_the_layer_of_each_wording() {
    let desk = Desk::of("template");
    desk.write(
        ".proem/prompts.toml",
        b"[prompt]\nagents_md_section = \"Rules: {{ agents_md }}\"\nagents = \"x\"\n",
    );
    let output = desk.run(&["profile", "show", "assets"]);
    let page = desk.said(&output.stdout);
    let line = |key: &str| {
        page.lines().find(|line| line.starts_with(&format!("# {key} ="))).unwrap_or_default().to_owned()
    };
    assert_eq!(
        line("agents_md_section"),
        "# agents_md_section = \"Rules: {{ agents_md }}\"  # {root}/work/.proem/prompts.toml"
    );
    assert_eq!(
        line("working_boundaries_section"),
        "# working_boundaries_section = \"## Working boundaries\"  # built-in"
    );
    let said = desk.said(&output.stderr);
    assert!(
        said.starts_with("warning: `agents` in {root}/work/.proem/prompts.toml is not a key of the catalog"),
        "{said}"
    );
}

/// Checks that the margin only stands before the prompt.
pub(crate) fn check_page(page: &str, carriers: &Map<String, Value>) {
    if carriers.keys().all(|carrier| carrier == "system") {
        let system = carriers.get("system").map_or("", |text| text.as_str().unwrap());
        assert_eq!(without_margin(page), system);
        return;
    }
    let order = ["system", "developer", "first_user", "turn"];
    let mut expected = String::new();
    for (carrier, text) in order.iter().filter_map(|carrier| Some((carrier, carriers.get(*carrier)?))) {
        let text = text.as_str().unwrap();
        let _ = writeln!(expected, "{carrier} {}\n{}", text.len(), text.strip_suffix('\n').unwrap_or(text));
    }
    let found: String = page
        .split_terminator('\n')
        .map(|line| match line.split_once(" bytes ──").or_else(|| line.split_once(" byte ──")) {
            Some((heading, _)) => heading.replace(',', "") + "\n",
            None => without_margin(&format!("{line}\n")),
        })
        .collect();
    assert_eq!(found, expected);
}
