//! Every file of tests belongs to a program: packages that list their test programs run no other files.
#![expect(clippy::unwrap_used, reason = "a source that cannot be read must stop the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proem_testkit::project_root;

/// The files that a source includes as modules, and the modules of those.
fn modules(source: &Path, found: &mut BTreeSet<PathBuf>) {
    if !source.is_file() || !found.insert(source.to_owned()) {
        return;
    }
    let text = fs::read_to_string(source).unwrap();
    let folder = source.parent().unwrap();
    let stem = source.file_stem().unwrap().to_str().unwrap();
    let is_root = ["main", "mod"].contains(&stem);
    let mut path = None;
    for line in text.lines().map(str::trim) {
        if let Some(given) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            path = Some(folder.join(given));
        } else if let Some(name) = line
            .strip_prefix("pub(crate) ")
            .unwrap_or(line)
            .strip_prefix("mod ")
            .and_then(|rest| rest.strip_suffix(';'))
        {
            let below = if is_root { folder.to_owned() } else { folder.join(stem) };
            let usual = [below.join(format!("{name}.rs")), below.join(name).join("mod.rs")];
            // The modules of a program that is one file lie beside it.
            let beside = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
            path.take().into_iter().chain(usual).chain(beside).for_each(|file| modules(&file, found));
        }
    }
}

/// The sources below a folder.
fn sources(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(path);
        }
    }
    found
}

/// The files of a package's tests that no program includes.
fn left_out(package: &Path) -> Vec<PathBuf> {
    let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
    if !manifest.contains("autotests = false") {
        return Vec::new();
    }
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if let Some(path) = line.strip_prefix("path = \"tests/").and_then(|rest| rest.strip_suffix('"')) {
            modules(&package.join("tests").join(path), &mut found);
        }
    }
    assert!(!found.is_empty(), "{} lists no test program", package.display());
    sources(&package.join("tests")).difference(&found).cloned().collect()
}

#[test]
fn every_file_of_tests_belongs_to_a_program() {
    let packages = fs::read_dir(project_root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let left_out: Vec<PathBuf> = packages.flat_map(|package| left_out(&package)).collect();
    assert!(
        left_out.is_empty(),
        "no test program includes {left_out:?}; add `mod NAME;` to tests/main.rs, or a [[test]] to Cargo.toml"
    );
}

#[test]
fn a_file_that_no_program_includes_is_found() {
    let package = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = package.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("Cargo.toml", "autotests = false\n\n[[test]]\nname = \"suite\"\npath = \"tests/main.rs\"\n");
    write("tests/main.rs", "mod one;\n#[path = \"two/main.rs\"]\nmod two;\n");
    write("tests/two/main.rs", "mod below;\n");
    for name in ["one", "two/below", "forgotten", "two/forgotten"] {
        write(&format!("tests/{name}.rs"), "");
    }
    let forgotten = ["tests/forgotten.rs", "tests/two/forgotten.rs"].map(|name| package.path().join(name));
    assert_eq!(left_out(package.path()), forgotten);
}
