//! P9: what a prompt wants to know of a repository, against git itself.

use std::fs;
use std::path::Path;
use std::process::Command;

use proem::{Caller, Request};
use proem_bench::fixture::{request_with, write};
use proem_bench::{Options, Race};
use serde_json::json;

pub(crate) fn run(options: &Options) {
    let root = options.path("git");
    if options.wants("P9") {
        for files in options.sizes(&[1_000, 10_000, 50_000], 1_000) {
            whole(options, &root.join(files.to_string()), files);
        }
    }
}

fn build(request: &Request) -> String {
    let built = proem::build(request, Caller::User).expect("it builds");
    built.system().unwrap_or_default().to_owned()
}

fn template(root: &Path, template: &str) -> Request {
    request_with("template", &root.join("tree"), root, &json!({ "template": template }))
}

/// Branch, status and the summary of the diff, with 20 changed files: the CPU time of this process and its children.
/// The floor is one `git status`.
fn whole(options: &Options, root: &Path, files: usize) {
    repository(root, files);
    let tree = root.join("tree");
    for number in 0..20 {
        let path = tree.join(name(number * files / 20));
        let text = fs::read_to_string(&path).expect("it was written");
        fs::write(&path, text.replace("Line 3", "Line three")).expect("it can be changed");
    }
    let request = template(root, "[git:branch]\n[git:status]\n[git:diff]");
    let found = build(&request);
    assert!(
        found.contains("20 files changed") && found.contains(&name(0)),
        "all three are found: {found:.300}"
    );
    Race::new("P9", format!("branch, status and diff, {files} files"))
        .grows("branch, status and diff", files)
        .enter("floor", || git(&tree, &["status", "--short"]))
        .enter("three git spawns", || {
            git(&tree, &["rev-parse", "--abbrev-ref", "HEAD"]);
            git(&tree, &["status", "--short"]);
            git(&tree, &["diff", "--stat"])
        })
        .enter("proem", || build(&request))
        .run_long(&options.at_most(500_000 / files));
}

fn name(number: usize) -> String {
    format!("part-{:03}/file-{number:05}.txt", number / 100)
}

fn repository(root: &Path, files: usize) {
    let tree = root.join("tree");
    write(&root.join("home/.keep"), "");
    for number in 0..files {
        let line = |line| format!("Line {line} of file {number}.\n");
        write(&tree.join(name(number)), &(0..20).map(line).collect::<String>());
    }
    git(&tree, &["init", "--quiet", "--initial-branch=main"]);
    git(&tree, &["add", "."]);
    // In a later turn everything is there already.
    git(&tree, &["commit", "--quiet", "--allow-empty", "--message=All of it."]);
}

/// Runs git on a repository, with no configuration but its own.
fn git(tree: &Path, arguments: &[&str]) -> Vec<u8> {
    let done = Command::new("git")
        .args(["-c", "user.name=Bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(tree)
        .output()
        .expect("git is installed");
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}
