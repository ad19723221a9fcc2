//! Keeps two habits out of the project's English: doc comments that begin with a question word, and words that hide
//! the subject of a sentence.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::path::{Path, PathBuf};

use proem_testkit::project_root;

/// The most doc comments that may begin with a question word, in percent.
const QUESTION_FIRST_PERCENT_MAX: usize = 2;
/// The most occurrences of the listed words. The goal is 0.
const LISTED_WORDS_MAX: usize = 76;

const QUESTION_WORDS: [&str; 10] =
    ["What", "Whether", "How", "Who", "Whose", "Which", "Why", "Where", "When", "Those"];
const LISTED_WORDS: [&str; 4] = ["whoever", "nobody", "somebody", "anew"];

/// Folders and files whose text is the project's own.
const TEXTS: [&str; 15] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "README.md",
    "SECURITY.md",
    "bench",
    "crates",
    "deny.toml",
    "docs",
    "examples",
    "fuzz/src",
    "scripts",
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
fn few_doc_comments_begin_with_a_question_word() {
    let crates = fs::read_dir(project_root().join("crates")).unwrap();
    let mut files = Vec::new();
    for one in crates {
        collect(&one.unwrap().path().join("src"), &mut files);
    }
    let (mut count, mut found) = (0, Vec::new());
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs")) {
        let text = fs::read_to_string(file).unwrap();
        for (line, first) in doc_comments(&text) {
            count += 1;
            let word = first.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
            if QUESTION_WORDS.contains(&word) {
                found.push(format!("{}:{line}: {first}", file.display()));
            }
        }
    }
    assert!(
        found.len() * 100 <= count * QUESTION_FIRST_PERCENT_MAX,
        "{} of {count} doc comments begin with a question word; begin with a verb or a noun:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn listed_words_are_not_used() {
    let mut files = Vec::new();
    for name in TEXTS {
        collect(&project_root().join(name), &mut files);
    }
    let mut found = Vec::new();
    for file in &files {
        let Ok(text) = fs::read_to_string(file) else { continue };
        let is_quoted =
            |line: &str| QUOTATIONS.iter().any(|(path, part)| file.ends_with(path) && line.contains(part));
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !is_quoted(line)) {
            let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let listed = words.filter(|word| LISTED_WORDS.contains(&word.to_lowercase().as_str()));
            found.extend(listed.map(|word| format!("{}:{}: {word}", file.display(), index + 1)));
        }
    }
    assert!(
        found.len() <= LISTED_WORDS_MAX,
        "{} times a word that hides the subject; name the caller, the user, the client:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Returns the first line of each doc comment, with its number.
fn doc_comments(text: &str) -> Vec<(usize, &str)> {
    let mut comments = Vec::new();
    let mut before = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker));
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
