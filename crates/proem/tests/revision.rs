//! A revision that is laid out on demand gives the same prompts as a full checkout of it.
#![expect(clippy::unwrap_used, reason = "a repository that cannot be made must stop the test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use proem::compare::Snapshot;
use proem::{Caller, Request, Revision, RevisionError};
use proem_core::builtin::PROFILES;
use serde_json::{Value, json};

/// Files that some profile reads, or might take for one that it reads.
const FILES: [(&str, &str); 40] = [
    ("AGENTS.md", "# Top\n\nSee @docs/style.md and @./docs/linked.md and @docs/missing.md.\n"),
    ("CLAUDE.md", "@AGENTS.md\n\nImported: @docs/deep/a.md\n"),
    ("GEMINI.md", "Gemini. @./docs/style.md\n"),
    ("agents.MD", "a variant of the name\n"),
    (".goosehints", "hints @docs/style.md\n"),
    (".cursorrules", "old rules\n"),
    (".windsurfrules", "wind\n"),
    (".rules", "rules\n"),
    (".cursor/rules/a.mdc", "---\nalwaysApply: true\n---\nAlways.\n"),
    (".cursor/rules/deep/b.mdc", "---\nglobs: src/**\n---\nSometimes.\n"),
    (".github/copilot-instructions.md", "Copilot.\n"),
    (".github/instructions/x.instructions.md", "---\napplyTo: '**'\n---\nInstructed.\n"),
    (".claude/CLAUDE.md", "Inner.\n"),
    (".claude/rules/r.md", "A rule.\n"),
    (".claude/rules/deep/s.md", "---\npaths: src/**\n---\nA rule for files.\n"),
    (".proem/APPEND_SYSTEM.md", "Appended.\n"),
    (
        ".proem/SYSTEM.md",
        "On [git:branch], changed: <[git:status]><[git:diff]>.\n[file:docs/style.md][file:docs/none.md]",
    ),
    (".proem/proem.toml", "profile = \"own\"\n"),
    (".proem/profiles/own.toml", "name = \"own\"\nextends = \"default\"\n"),
    (".proem/skills/plain.md", "---\nname: plain\ndescription: A plain skill\n---\nbody\n"),
    (".proem/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Deploys\n---\nbody\n"),
    (".proem/skills/deploy/notes.txt", "not read\n"),
    (".proem/skills/.gitignore", "hidden/\n"),
    (".proem/skills/hidden/SKILL.md", "---\nname: hidden\ndescription: Ignored\n---\n"),
    (".agents/skills/review/SKILL.md", "---\nname: review\ndescription: Reviews\n---\n"),
    (".agents/skills/variant/Skill.md", "---\nname: variant\ndescription: Not read\n---\n"),
    (".codex/skills/own/SKILL.md", "---\nname: own\ndescription: Of codex\n---\n"),
    (".pi/SYSTEM.md", "pi\n"),
    (".opencode/AGENTS.md", "opencode\n"),
    (".gitattributes", "*.crlf.md text eol=crlf\n*.md diff=markdown\n"),
    (".gitignore", "*.secret.md\n"),
    ("docs/style.md", "Be brief. @deep/a.md\n"),
    ("docs/windows.crlf.md", "one\ntwo\n"),
    ("docs/deep/a.md", "Deep. @../windows.crlf.md\n"),
    ("sub/AGENTS.md", "Sub. @../docs/windows.crlf.md @windows.md\n"),
    ("sub/CLAUDE.md", "Sub for Claude.\n"),
    ("sub/.agents/skills/inner/SKILL.md", "---\nname: inner\ndescription: Inner\n---\n"),
    ("sub/.cursor/rules/c.mdc", "---\nalwaysApply: true\n---\nIn sub.\n"),
    ("src/main.rs", "fn main() {}\n"),
    ("src/AGENTS.md", "beside\n"),
];

const LINKS: [(&str, &str); 8] = [
    ("docs/linked.md", "deep/a.md"),
    ("QWEN.md", "AGENTS.md"),
    ("sub/windows.md", "../docs/windows.crlf.md"),
    (".agents/skills/linked", "../../tools/skill"),
    (".agents/skills/file/SKILL.md", "../../../tools/skill/SKILL.md"),
    (".claude/skills", "../.agents/skills"),
    ("docs/outside.md", "/etc/hostname"),
    ("docs/loop.md", "loop.md"),
];

struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    /// A repository with two commits, which differ in a few files.
    fn new() -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap() };
        let work = desk.work();
        fs::create_dir_all(&work).unwrap();
        desk.git(&["init", "--quiet", "--initial-branch=main"]);
        for (path, text) in FILES {
            desk.write(path, text);
        }
        desk.write("tools/skill/SKILL.md", "---\nname: far\ndescription: Behind a link\n---\n");
        for (path, target) in LINKS {
            fs::create_dir_all(work.join(path).parent().unwrap()).unwrap();
            symlink(target, work.join(path)).unwrap();
        }
        desk.git(&["add", "--all"]);
        desk.git(&["commit", "--quiet", "--message=first"]);
        let commit = desk.git(&["rev-parse", "HEAD"]);
        let module = format!("160000,{},module", commit.trim());
        desk.git(&["update-index", "--add", "--cacheinfo", &module]);
        desk.write("AGENTS.md", "# Top\n\nEdited. @docs/deep/a.md\n");
        desk.write("docs/deep/a.md", "Deeper.\n");
        fs::remove_file(work.join("CLAUDE.md")).unwrap();
        desk.git(&["add", "AGENTS.md", "docs", "CLAUDE.md"]);
        desk.git(&["commit", "--quiet", "--message=second"]);
        desk
    }

    fn work(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.work(), arguments)
    }

    /// Removes the object of a file, as in a partial clone.
    fn lose(&self, path: &str) -> String {
        let id = self.git(&["rev-parse", &format!("HEAD:{path}")]).trim().to_owned();
        let (folder, name) = id.split_at(2);
        fs::remove_file(self.work().join(".git/objects").join(folder).join(name)).unwrap();
        id
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=x", "-c", "user.email=x@example.org"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn request(profile: &str, cwd: &Path) -> Request {
    let mut request = json!({
        "profile": profile,
        "cwd": cwd.to_str(),
        "host": { "home": "/nowhere", "config_dir": "/nowhere/proem", "now": "2026-03-07T14:55:05Z", "env": {} },
        "tools": [{ "name": "read" }],
    });
    if profile == "template" {
        request["template"] = json!("[git:branch] <[git:status]> <[git:diff]> [file:docs/style.md]");
    }
    Request::from_json(&request.to_string()).unwrap()
}

/// Returns the compared properties of a prompt, without the folder that it was built in.
fn built(profile: &str, cwd: &Path, root: &Path) -> Value {
    let request = request(profile, cwd);
    let build = proem::build(&request, Caller::User).unwrap();
    let snapshot = Snapshot::new("x", build.frozen(), &request, None).without_root(root.to_str().unwrap());
    let carriers: Vec<Value> = snapshot
        .carriers
        .iter()
        .map(|carrier| json!({ "carrier": carrier.carrier.word(), "text": carrier.text, "spans": carrier.spans.len() }))
        .collect();
    json!({ "carriers": carriers, "considered": snapshot.considered })
}

/// A revision that was checked out by hand, at the same path below a folder of its own.
struct Checkout {
    _folder: tempfile::TempDir,
    root: PathBuf,
    tree: PathBuf,
}

impl Checkout {
    fn new(work: &Path, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let tree = root.join(work.strip_prefix("/").unwrap());
        fs::create_dir_all(tree.parent().unwrap()).unwrap();
        git(&root, &["clone", "--quiet", work.to_str().unwrap(), tree.to_str().unwrap()]);
        git(&tree, &["reset", "--quiet", "--hard", name]);
        Self { _folder: folder, root, tree }
    }
}

#[test]
fn a_revision_gives_what_its_checkout_gives_in_every_profile() {
    let desk = Desk::new();
    let (work, mut differing) = (desk.work(), 0);
    let checkouts = ["HEAD~1", "HEAD"].map(|name| (name, Checkout::new(&work, name)));
    for profile in PROFILES.iter().map(|(name, _)| *name).chain(["own"]) {
        for below in ["", "sub", "sub/none"] {
            // A profile of the workspace is searched for in the working directory only.
            if profile == "own" && !below.is_empty() {
                continue;
            }
            let [before, after] = checkouts.each_ref().map(|(name, checkout)| {
                let cwd: PathBuf = checkout.tree.join(below).components().collect();
                fs::create_dir_all(&cwd).unwrap();
                let expected = built(profile, &cwd, &checkout.root);
                fs::create_dir_all(work.join(below)).unwrap();
                let revision = Revision::open(&work.join(below), name).unwrap();
                let found = built(profile, &revision.cwd(), revision.root());
                assert_eq!(revision.problem(), None);
                assert_eq!(found, expected, "{profile} in `{below}` at {name}");
                found
            });
            differing += usize::from(before != after);
        }
    }
    assert!(differing > 20, "the two commits must differ for most profiles: {differing}");
}

/// The files and links below a folder, `.git` aside.
fn laid(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let count = |entry: fs::DirEntry| match entry.file_type().unwrap() {
        kind if kind.is_dir() && entry.file_name() == ".git" => 0,
        kind if kind.is_dir() => laid(&entry.path()),
        _ => 1,
    };
    entries.map(count).sum()
}

#[test]
fn only_what_a_build_looks_at_is_laid_out() {
    let desk = Desk::new();
    for number in 0..500 {
        desk.write(&format!("src/deep/{number}.md"), "never looked at\n");
    }
    desk.git(&["add", "--all"]);
    desk.git(&["commit", "--quiet", "--message=many"]);
    let revision = Revision::open(&desk.work(), "HEAD").unwrap();
    built("default", &revision.cwd(), revision.root());
    let count = laid(&revision.cwd());
    assert!((5..100).contains(&count), "{count}");
}

#[test]
fn a_missing_object_matters_only_where_it_is_needed() {
    let desk = Desk::new();
    for path in ["src/main.rs", ".proem/skills/deploy/notes.txt", "src/AGENTS.md"] {
        desk.lose(path);
    }
    let build = || {
        let revision = Revision::open(&desk.work(), "HEAD").unwrap();
        built("claude-code", &revision.cwd(), revision.root());
        built("default", &revision.cwd(), revision.root());
        revision.problem()
    };
    assert_eq!(build(), None, "control: none of them is read");
    let id = desk.lose("docs/style.md");
    let problem = build().expect("a template and an import name it");
    assert_eq!(problem, RevisionError::Missing { path: "docs/style.md".into(), id: id.clone() });
    assert_eq!(problem.to_string(), format!("`docs/style.md` is not in the object store (object {id})"));
    assert!(problem.hint().contains(&format!("git cat-file -t {id}")), "{}", problem.hint());
}

#[test]
fn what_is_wrong_with_a_revision_is_said() {
    let desk = Desk::new();
    let unknown = Revision::open(&desk.work(), "nothing").unwrap_err();
    assert_eq!(unknown, RevisionError::Unknown { name: "nothing".into(), is_shallow: false });
    let shallow = desk.folder.path().join("shallow");
    let url = format!("file://{}", desk.work().display());
    git(desk.folder.path(), &["clone", "--quiet", "--depth=1", &url, shallow.to_str().unwrap()]);
    let unknown = Revision::open(&shallow, "HEAD~1").unwrap_err();
    assert_eq!(unknown, RevisionError::Unknown { name: "HEAD~1".into(), is_shallow: true });
    assert!(unknown.hint().contains("git fetch --unshallow"));
    assert!(Revision::open(&shallow, "HEAD").is_ok());
    let none = tempfile::tempdir().unwrap();
    assert_eq!(Revision::open(none.path(), "HEAD").unwrap_err(), RevisionError::NotARepository);
    assert!(Revision::exists(&desk.work(), "HEAD~1"));
    assert!(!Revision::exists(&desk.work(), "HEAD~9"));
}
