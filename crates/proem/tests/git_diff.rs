//! A diff of the paths that the status lists equals the diff of everything, whatever the changes to the tree.
#![expect(clippy::unwrap_used, reason = "a repository that cannot be made must stop the test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use proem::{Caller, Request};
use serde_json::json;

const NAMES: [&str; 10] = [
    "a",
    "b.txt",
    "sub/c",
    "sub/deep/d",
    "with space",
    "\"quoted\"",
    "ä ö",
    "x -> y",
    "tab\there",
    "sub/e -> f",
];

/// A generator of numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

fn git(tree: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=x", "-c", "user.email=x@example.org"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(tree);
    command.output().unwrap().status.success()
}

fn text(lines: usize, last: &str) -> String {
    (0..lines).map(|line| format!("line {line}\n")).chain([format!("{last}\n")]).collect()
}

fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    for (index, name) in NAMES.iter().enumerate() {
        let path = tree.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text(20 + index, name)).unwrap();
    }
    fs::create_dir(folder.path().join("home")).unwrap();
    assert!(git(&tree, &["init", "--quiet", "--initial-branch=main"]));
    assert!(git(&tree, &["add", "."]));
    assert!(git(&tree, &["commit", "--quiet", "--message=x"]));
    folder
}

/// Makes one of the changes that people make to a tree.
fn change(tree: &Path, chance: &mut Chance) {
    let name = NAMES[chance.below(NAMES.len())];
    let path = tree.join(name);
    match chance.below(10) {
        0 | 1 => drop(fs::write(&path, text(chance.below(30), "other"))),
        2 => drop(fs::remove_file(&path)),
        3 => drop(git(tree, &["rm", "--quiet", "--force", "--", name])),
        4 => drop(git(tree, &["mv", "--", name, &format!("{name} moved")])),
        5 => drop(git(tree, &["add", "--", name])),
        6 => drop(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))),
        7 => {
            fs::write(tree.join(format!("new {}", chance.below(5))), text(3, "new")).unwrap();
        }
        8 => {
            let new = format!("sub/meant {}", chance.below(5));
            fs::create_dir_all(tree.join("sub")).unwrap();
            fs::write(tree.join(&new), text(4, "meant")).unwrap();
            git(tree, &["add", "--intent-to-add", "--", &new]);
        }
        _ => {
            drop(fs::remove_file(&path));
            drop(symlink("elsewhere", &path));
        }
    }
}

fn built(root: &Path, cwd: &Path, template: &str) -> String {
    let request = json!({
        "profile": "template", "cwd": cwd, "template": template,
        "host": {"home": root.join("home"), "config_dir": root.join("home"), "env": {}, "timezone": "UTC"},
    });
    let request = Request::from_json(&request.to_string()).unwrap();
    proem::build(&request, Caller::User).unwrap().system().unwrap_or_default().to_owned()
}

#[test]
fn a_diff_of_what_is_listed_is_the_diff_of_everything() {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let (mut changed, mut renamed) = (0, 0);
    for round in 0..40 {
        let folder = repository();
        let tree = folder.path().join("tree");
        for _ in 0..chance.below(8) {
            change(&tree, &mut chance);
        }
        let places: [PathBuf; 2] = [tree.clone(), tree.join("sub/deep")];
        for cwd in places.iter().filter(|cwd| cwd.is_dir()) {
            let both = built(folder.path(), cwd, "[git:status]\n<<<\n[git:diff]\n>>>");
            let alone = built(folder.path(), cwd, "\n<<<\n[git:diff]\n>>>");
            let of = |text: &str| text.split_once("\n<<<\n").map(|(_, diff)| diff.to_owned());
            assert_eq!(of(&both), of(&alone), "round {round} in {}: {both}", cwd.display());
            changed += usize::from(alone.contains("changed"));
            renamed += usize::from(alone.contains("=>"));
        }
    }
    assert!(changed > 30 && renamed > 3, "the changes have become too tame: {changed}, {renamed}");
}
