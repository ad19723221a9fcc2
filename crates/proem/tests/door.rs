//! Only the modules listed here open files.
//!
//! A file that is opened without `file/handle.rs` can hang (a FIFO), take all memory (a device), lie outside of the
//! allowed folders, or be the store's own, whose locks end when it is closed.

#![expect(clippy::unwrap_used, reason = "a source that cannot be read must stop the test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Words that open a file, or make a library open one.
const OPENING: [&str; 20] = [
    "File::open",
    "File::create",
    "OpenOptions::new",
    "fs::read(",
    "fs::read_to_string",
    "fs::write(",
    "fs::copy(",
    "rustix::fs::open(",
    "rustix::fs::openat(",
    "openat(",
    "openat2(",
    "Gitignore::new(",
    "Gitignore::global(",
    "WalkBuilder",
    "Ini::load",
    "include_dir",
    "tempfile_in(",
    "NamedTempFile",
    "read_to_end_from_path",
    "Mmap",
];

/// Modules that may open files, each with the reason.
const DOORS: [(&str, &str); 19] = [
    ("proem/src/observe/file/handle.rs", "the door itself"),
    ("proem/src/observe/file/open.rs", "finds paths with O_PATH, which opens nothing"),
    ("proem/src/observe/file/below.rs", "finds names below an open folder for the door"),
    ("proem/src/discover/skills/scan.rs", "opens folders alone: O_DIRECTORY"),
    ("proem/src/inspect/directory_listing.rs", "opens folders alone: O_DIRECTORY"),
    ("proem/src/observe/git/fence.rs", "opens folders alone: O_DIRECTORY"),
    ("proem/src/observe/git/shadow.rs", "writes into a temporary folder of its own"),
    ("proem/src/observe/git/lazy_tree.rs", "writes into a temporary folder of its own"),
    ("proem/src/observe/git/revision.rs", "writes into a temporary folder of its own"),
    ("proem/src/observe/file/view.rs", "writes into a temporary folder of its own"),
    ("proem/src/observe/process/limits.rs", "asks the kernel about a program that it started"),
    ("proem/src/settings/init.rs", "makes new files: O_EXCL"),
    ("proem/src/settings/trust.rs", "writes a new file beside the list, and renames it"),
    ("proem/src/inspect/check/fix.rs", "writes a new file beside the one that it mends, and renames it"),
    ("proem-server/src/app.rs", "looks at a folder with O_PATH, which opens nothing"),
    ("proem-store/src/sqlite/file.rs", "makes the store"),
    ("proem-cli/src/commands/server/store.rs", "makes the file of an export: O_EXCL"),
    ("proem-cli/src/commands/server/run.rs", "writes the report that its user names"),
    ("proem-cli/src/commands/server/bodies.rs", "keeps requests beside the store"),
];

/// Words that examine a file without opening it.
const LOOKING: [&str; 6] =
    [".exists()", ".is_dir()", ".is_file()", "fs::metadata(", "fs::read_dir(", "rustix::fs::stat("];

/// Modules that may do so, each with the reason: the file is not in a workspace, or was announced to `file/lazy.rs`.
const WINDOWS: [(&str, &str); 14] = [
    ("observe/file/", "the looks themselves"),
    ("observe/git/", "git's own folders"),
    ("inspect/check/fix.rs", "mends files of the working tree, never of a revision"),
    ("inspect/check/references.rs", "looks at the working tree, never at a revision"),
    ("discover/repository.rs", "walks the working tree, never a revision"),
    ("discover/search_roots.rs", "looks for `.git`, which a revision has from the beginning"),
    ("discover/skill_directory.rs", "asks a listed entry for its kind"),
    ("discover/skills/scan.rs", "announces the look before"),
    ("inspect/compare/comparison.rs", "asks when files of the working tree were written"),
    ("hooks/command.rs", "looks for programs in `PATH`"),
    ("inspect/directory_listing.rs", "lists the working tree for the editor"),
    ("settings/trust.rs", "hooks of a workspace, which a revision is not trusted to have"),
    ("observe/workspace.rs", "asks metadata that it has"),
    ("inspect/traffic/collect/files.rs", "asks metadata that it has"),
];

/// A revision is laid out on access, so each access must be announced.
#[test]
fn files_are_looked_at_through_one_window() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&source, &mut files);
    let mut strays = Vec::new();
    for file in files {
        let name = file.strip_prefix(&source).unwrap().to_str().unwrap().to_owned();
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
        if is_test || WINDOWS.iter().any(|(window, _)| name.starts_with(window)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let code = product.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        let looks = code.filter(|line| LOOKING.iter().any(|word| line.contains(word)));
        strays.extend(looks.map(|line| format!("{name}: {line}")));
    }
    assert!(strays.is_empty(), "look through `crate::observe::file` instead:\n{}", strays.join("\n"));
}

/// Collects the source files of the product, with paths from `crates/` on.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|ending| ending == "rs") {
            found.push(entry);
        }
    }
}

/// Returns the lines of a file that open files, except in tests and comments.
fn openings(text: &str) -> Vec<String> {
    let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let code = product.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let opens = |line: &&str| OPENING.iter().any(|word| line.contains(word));
    code.filter(opens).map(str::to_owned).collect()
}

#[test]
fn files_are_opened_through_one_door() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut strays = Vec::new();
    let mut used = Vec::new();
    for name in ["proem-core", "proem", "proem-store", "proem-server", "proem-cli"] {
        let mut files = Vec::new();
        sources(&crates.join(name).join("src"), &mut files);
        for file in files {
            let shown = file.strip_prefix(crates).unwrap().display().to_string();
            if shown.ends_with("tests.rs") {
                continue;
            }
            let found = openings(&fs::read_to_string(&file).unwrap());
            if found.is_empty() {
                continue;
            }
            match DOORS.iter().find(|(door, _)| *door == shown) {
                Some((door, _)) => used.push(*door),
                None => strays.extend(found.into_iter().map(|line| format!("{shown}: {line}"))),
            }
        }
    }
    assert!(strays.is_empty(), "these open files past the door:\n{}", strays.join("\n"));
    let unused: Vec<_> = DOORS.iter().filter(|(door, _)| !used.contains(door)).collect();
    assert!(unused.is_empty(), "these open nothing any more: {unused:?}");
}

#[test]
fn an_opening_is_found_and_a_comment_is_none() {
    let text =
        "let file = File::open(path)?;\n// File::open\n#[cfg(test)]\nmod tests {\n fs::write(a, b) }\n";
    assert_eq!(openings(text), ["let file = File::open(path)?;"]);
}
