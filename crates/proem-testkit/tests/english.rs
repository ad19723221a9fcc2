//! Keeps two habits out of the project's English: doc comments that begin with a question word, and words that hide
//! the subject of a sentence.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::path::{Path, PathBuf};

use proem_testkit::project_root;

const QUESTION_WORDS: [&str; 10] =
    ["What", "Whether", "How", "Who", "Whose", "Which", "Why", "Where", "When", "Those"];
/// Words and phrases in lower case.
const LISTED: [&[&str]; 12] = [
    &["whoever"],
    &["nobody"],
    &["somebody"],
    &["anew"],
    &["who", "asks"],
    &["what", "is", "said"],
    &["puts", "into", "words"],
    &["so", "many"],
    &["stand", "behind"],
    &["stands", "behind"],
    &["is", "no"],
    &["are", "no"],
];

/// The beginnings of documentation in Rust, Python and TypeScript.
const DOC_MARKERS: [&str; 4] = ["///", "//!", "\"\"\"", "/**"];

/// Folders and files whose text is the project's own.
const TEXTS: [&str; 19] = [
    ".ci",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "README.md",
    "SECURITY.md",
    "bench",
    "bindings",
    "crates",
    "deny.toml",
    "docs",
    "examples",
    "fuzz",
    "rustfmt.toml",
    "scripts",
    "web/build.mjs",
    "web/src",
    "web/tests",
];

/// Folders with generated or foreign text.
const SKIPPED: [&str; 6] = ["__pycache__", "corpus", "dist", "node_modules", "results", "target"];

/// Lines that quote text of users, names in test data or prompt bytes: the end of the file's path, and a part of the line.
const QUOTATIONS: [(&str, &str); 13] = [
    // Prompt bytes must not change.
    ("crates/proem-core/builtin/catalog.toml", "whoever goes on will see the summary"),
    ("crates/proem-core/src/front_matter/plain/tests.rs", "# Why: nobody knows."),
    ("crates/proem-cli/tests/compat.rs", "\"nobody\""),
    ("crates/proem-cli/tests/compat.rs", "no profile `nobody`"),
    ("crates/proem-cli/tests/doctor.rs", "\"nobody\""),
    ("crates/proem-cli/tests/doctor.rs", "\\\"nobody\\\""),
    ("crates/proem-server/tests/http/memory.rs", "\\\"nobody\\\""),
    ("crates/proem-server/tests/http/wrong.rs", "nobody"),
    ("crates/proem-testkit/tests/english.rs", ""),
    ("bench/src/programs/doctor.rs", "use it when somebody asks for that"),
    ("scripts/soak_parts/traffic.py", "/conversations/nobody"),
    ("web/tests/browser/conversations.test.mjs", "nobody"),
    ("web/tests/browser/saving.test.mjs", "author: \"Somebody\""),
];

#[test]
fn no_documentation_begins_with_a_question_word() {
    let mut count = 0;
    let mut found = Vec::new();
    for (file, text) in texts() {
        for (line, first) in documentation(&text) {
            count += 1;
            let word = first.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
            if QUESTION_WORDS.contains(&word) {
                found.push(format!("{}:{line}: {first}", file.display()));
            }
        }
    }
    assert!(count > 5_000, "{count} comments: the sources are not read as they are written");
    assert!(
        found.is_empty(),
        "{} of {count} doc comments begin with a question word; begin with a verb or a noun:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn listed_words_are_not_used() {
    let mut found = Vec::new();
    for (file, text) in texts() {
        let is_quoted =
            |line: &str| QUOTATIONS.iter().any(|(path, part)| file.ends_with(path) && line.contains(part));
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !is_quoted(line)) {
            found.extend(listed(line).map(|words| format!("{}:{}: {words}", file.display(), index + 1)));
        }
    }
    assert!(
        found.is_empty(),
        "{} times words that hide the subject; name the caller, the user, the client:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// The control of the tests above.
#[test]
fn listed_words_and_question_words_are_found() {
    for line in ["Nobody reads it.", "a text of so many bytes", "A list is no answer"] {
        assert!(listed(line).is_some(), "{line}");
    }
    for line in
        ["There is no answer.", "is no answer", "it is no longer trusted", "`nobody_reads`", "so much"]
    {
        assert_eq!(listed(line), None, "{line}");
    }
    let text = "/// What it is.\n/// When.\nfn a() {}\n    \"\"\"How it is.\"\"\"\n  /** Which. */\n// Why.\n//! Text.\n";
    let expected = [(1, "What it is."), (4, "How it is.\"\"\""), (5, "Which. */"), (7, "Text.")];
    assert_eq!(documentation(text), expected);
}

/// Returns every text of the project with its path.
fn texts() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for name in TEXTS {
        collect(&project_root().join(name), &mut files);
    }
    let read = |file: PathBuf| fs::read_to_string(&file).ok().map(|text| (file, text));
    files.into_iter().filter_map(read).collect()
}

/// Returns the first listed word or phrase of a line.
fn listed(line: &str) -> Option<String> {
    let line = line.to_lowercase();
    let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    // `There is no file` and `is no longer read` are plain; at the start of a line, the word before is not known.
    let is_plain = |at: usize, phrase: &[&str]| {
        let after = words.get(at + phrase.len());
        phrase.ends_with(&["no"]) && (at == 0 || words[at - 1] == "there" || after == Some(&"longer"))
    };
    let is_at = |at: usize, phrase: &[&str]| words[at..].starts_with(phrase) && !is_plain(at, phrase);
    (0..words.len())
        .find_map(|at| LISTED.iter().find(|phrase| is_at(at, phrase)).map(|phrase| phrase.join(" ")))
}

/// Returns the first line of each doc comment, with its number.
fn documentation(text: &str) -> Vec<(usize, &str)> {
    let mut comments = Vec::new();
    let mut before = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let marker = DOC_MARKERS.into_iter().find(|marker| line.starts_with(marker));
        if let Some(own) = marker.filter(|own| before != Some(*own)) {
            comments.push((index + 1, line.trim_start_matches(own).trim_start()));
        }
        before = marker;
    }
    comments
}

/// Collects the files below a path, except those in folders that are skipped.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let is_skipped = path.file_name().is_some_and(|name| SKIPPED.iter().any(|skipped| name == *skipped));
    if path.is_dir() && !is_skipped {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for entry in &entries {
            collect(entry, files);
        }
    } else if path.is_file() {
        files.push(path.to_owned());
    }
}
