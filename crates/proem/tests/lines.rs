//! Every line that proem names is the line of the file that has the text.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proem::compare::{Owner, Snapshot, compare};
use proem::tokens::Tokenizer;
use proem::{Build, Caller, Request, build};
use proem_core::source::Source;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

/// Profiles, and the file that each of them reads.
const PROFILES: [(&str, &str); 14] = [
    ("default", "AGENTS.md"),
    ("layers", "AGENTS.md"),
    ("boundary", "AGENTS.md"),
    ("engraving", "AGENTS.md"),
    ("assets", "AGENTS.md"),
    ("claude-code", "CLAUDE.md"),
    ("claude-code", ".claude/rules/a.md"),
    ("codex", "AGENTS.md"),
    ("copilot", ".github/copilot-instructions.md"),
    ("cursor", ".cursor/rules/a.mdc"),
    ("gemini-cli", "GEMINI.md"),
    ("goose", ".goosehints"),
    ("opencode", "AGENTS.md"),
    ("pi", "AGENTS.md"),
];

/// Parts of a document. A number stands for a line of its own, so that no two lines are the same.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..1_000_000_u32).prop_map(|number| format!("line {number}\n")),
        2 => Just("\n".to_owned()),
        1 => Just("  \t\n".to_owned()),
        1 => Just("<!-- a comment -->\n".to_owned()),
        1 => Just("<!-- a comment\nof two lines -->\n\n".to_owned()),
        1 => (0..1_000_000_u32).prop_map(|number| format!("<!-- before --> line {number}\n")),
        1 => Just("```\n<!-- code -->\n```\n".to_owned()),
        1 => (0..1_000_000_u32).prop_map(|number| format!("    line {number} & <b>\n")),
        1 => Just("See @docs/other.md there\n".to_owned()),
        1 => Just("@docs/other.md\n".to_owned()),
        1 => (0..1_000_000_u32).prop_map(|number| format!("# line {number}\u{200B}\n")),
    ]
}

fn document() -> impl Strategy<Value = String> {
    let head = prop_oneof![
        3 => Just(String::new()),
        1 => Just("---\nalwaysApply: true\n---\n".to_owned()),
        1 => Just("\u{FEFF}".to_owned()),
        1 => Just("\n\n \n".to_owned()),
    ];
    let parts = proptest::collection::vec(part(), 0..24);
    (head, parts, any::<bool>(), any::<bool>()).prop_map(|(head, parts, has_returns, ends_open)| {
        let mut text = head + &parts.concat();
        if ends_open {
            text.truncate(text.trim_end().len());
        }
        if has_returns { text.replace('\n', "\r\n") } else { text }
    })
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn request(folder: &Path, profile: &str) -> Request {
    let cwd = folder.join("work");
    let request = json!({
        "profile": profile, "cwd": cwd,
        "host": {
            "home": folder.join("home"), "config_dir": folder.join("home/.config/proem"), "env": {},
            "now": "2026-03-07T14:55:05Z",
        },
    });
    Request::from_json(&request.to_string()).unwrap()
}

fn built(folder: &Path, profile: &str) -> Build {
    build(&request(folder, profile), Caller::User).unwrap()
}

fn snapshot(folder: &Path, profile: &str) -> Snapshot {
    Snapshot::new(profile, built(folder, profile).frozen(), &request(folder, profile), None)
}

/// Returns a line as it appears in a prompt: characters without width may be removed.
fn plain(line: &str) -> String {
    line.replace(['\u{200B}', '\u{FEFF}', '\r'], "")
}

/// Compares each line of the spans that name a line of a file with that file. Returns the number of occurrences of each
/// line.
fn compared(build: &Build) -> BTreeMap<String, usize> {
    let mut met = BTreeMap::new();
    for (carrier, whole) in build.whole().carriers() {
        for span in build.whole().spans(carrier) {
            let Source::File { path, place } = &span.source else { continue };
            let text = whole.get(span.bytes.clone()).unwrap();
            let Some(place) = place else {
                assert!(!text.contains("line "), "{text:?} has no line in {path}");
                continue;
            };
            let file = fs::read_to_string(&**path).unwrap();
            let lines: Vec<String> = file.split('\n').map(plain).collect();
            for (index, line) in text.split('\n').enumerate() {
                let named = lines.get(place.line - 1 + index).map_or("", String::as_str);
                assert!(
                    named.contains(&plain(line)),
                    "{path}:{}: {line:?} is not in {named:?}",
                    place.line + index
                );
                *met.entry(plain(line).trim().to_owned()).or_insert(0) += 1;
            }
        }
    }
    met
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_line_that_is_named_has_the_text(first in document(), other in document()) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("work/.git")).unwrap();
        for (_, name) in PROFILES {
            write(folder.path(), &format!("work/{name}"), &first);
        }
        write(folder.path(), "work/docs/other.md", &other);
        for (profile, name) in PROFILES {
            let build = built(folder.path(), profile);
            let met = compared(&build);
            // Numbered lines reach every prompt, and are found in it with their place.
            let is_own = |line: &&str| line.starts_with("line ") && !first.contains("<!-- a comment\n");
            for line in first.lines().filter(is_own) {
                prop_assert!(met.contains_key(plain(line).trim()), "{}: {:?} of {} is not met", profile, line, name);
            }
        }
    }
}

/// Returns the line of each owner that is a file.
fn lines_of<'o>(owners: impl Iterator<Item = &'o Owner>) -> Vec<Option<usize>> {
    let is_file =
        |owner: &&Owner| matches!(owner.source, Source::File { .. } | Source::Variable { path: Some(_), .. });
    owners.filter(is_file).map(|owner| owner.line).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// `diff` names the line that was edited, wherever comments, blank lines and imports were taken out before it.
    #[test]
    fn a_difference_names_the_line_of_the_file(first in document(), chosen in any::<Index>()) {
        let is_own = |line: &str| line.starts_with("line ");
        let own: Vec<usize> = first.split('\n').enumerate().filter(|(_, line)| is_own(line)).map(|(at, _)| at).collect();
        prop_assume!(!own.is_empty());
        let edited = own[chosen.index(own.len())];
        let second: Vec<String> = first
            .split('\n')
            .enumerate()
            .map(|(at, line)| if at == edited { line.replacen("line", "LINE", 1) } else { line.to_owned() })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("work/.git")).unwrap();
        write(folder.path(), "work/docs/other.md", "\nother\n");
        for (profile, name) in PROFILES {
            let name = format!("work/{name}");
            write(folder.path(), &name, &first);
            let before = snapshot(folder.path(), profile);
            write(folder.path(), &name, &second.join("\n"));
            let after = snapshot(folder.path(), profile);
            fs::remove_file(folder.path().join(name)).unwrap();
            let found = compare(&before, &after, Tokenizer::Estimate).differences;
            let sides = [lines_of(found.iter().filter_map(|one| one.a.as_ref())), lines_of(found.iter().filter_map(|one| one.b.as_ref()))];
            // A rule that has no text without comments is left out, with all of its lines.
            if !found.is_empty() {
                prop_assert_eq!(sides, [[Some(edited + 1)], [Some(edited + 1)]], "{}: {:?}", profile, first);
            }
        }
    }
}

/// A long document that a profile cuts keeps its lines, and the marker after it has none.
#[test]
fn a_document_that_is_cut_keeps_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("work/.git")).unwrap();
    let text = (0..9_000).map(|number| format!("line {number}\n")).collect::<Vec<_>>().concat();
    write(folder.path(), "work/AGENTS.md", &format!("\n\n{text}"));
    for profile in ["boundary", "engraving", "codex"] {
        let met = compared(&built(folder.path(), profile));
        assert_eq!(met.get("line 100"), Some(&1), "{profile}");
        assert_eq!(met.get("line 8999"), None, "{profile}");
    }
}

/// Notes about hidden characters name the line of the file, also after front matter and comments.
#[test]
fn notes_name_the_line_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("work/.git")).unwrap();
    let text = "---\nalwaysApply: true\n---\n<!-- one\ntwo -->\nplain\nhid\u{E0041}den\n";
    for (profile, name, line) in [
        ("cursor", ".cursor/rules/a.mdc", 7),
        ("claude-code", ".claude/rules/a.md", 7),
        ("default", "AGENTS.md", 7),
    ] {
        write(folder.path(), &format!("work/{name}"), text);
        let build = built(folder.path(), profile);
        let notes = build.notes().iter().filter(|note| note.code.word() == "hidden_text");
        let lines: Vec<Option<usize>> =
            notes.map(|note| note.source.as_ref().unwrap().place().map(|place| place.line)).collect();
        assert_eq!(lines, [Some(line)], "{profile}");
        fs::remove_file(folder.path().join("work").join(name)).unwrap();
    }
}
