//! Rules of the core that the compiler and lints cannot check.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { sources(&path, found) } else { found.push(path) }
    }
}

/// Checks `no_std`, which excludes files, clocks, processes and hash maps; only tests may link `std`.
#[test]
fn core_links_std_in_tests_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    assert!(library.contains("\n#![no_std]\n"));
    assert!(library.contains("#[cfg(test)]\nextern crate std;\n"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let mentions = product.matches("extern crate std").count();
        assert!(mentions <= usize::from(file.ends_with("src/lib.rs")), "{} links std", file.display());
    }
}

#[test]
fn core_has_at_most_eight_dependencies() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let section = manifest.split("[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let lines = section.lines().filter(|line| line.contains('=') && !line.starts_with('#')).count();
    assert!((1..=8).contains(&lines), "{lines} dependencies:\n{section}");
}
