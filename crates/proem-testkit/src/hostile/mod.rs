//! Hostile repositories: each tries to run a program or to reveal content from elsewhere.
//!
//! Every trap has a control: plain git, in the same repository, must fall into it before the build and again after
//! it. A trap without effect on plain git proves nothing, so it fails the test too.

mod leads;
mod nuisances;
mod special;
mod traps;

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, mknodat};
use tempfile::TempDir;

pub use leads::{LEADS, Lead};
pub use nuisances::{
    Ask, BRANCHES, Branch, GitSetting, HEADS, Head, NAMES, Name, Nuisance, PATIENT, Reply, SETTINGS, enrich,
};
pub use special::{SPECIAL, Special};
pub use traps::{
    ATTRIBUTES, CONFIGURATION, ELSEWHERE, HOOKS, NESTED, REMOTES, add_side, add_submodule, embed_repository,
    link_away,
};

/// Branch, status and diff.
pub type Facts = [&'static str; 3];

/// The template of all three facts.
pub const TEMPLATE: &str = "[git:branch]|[git:status]|[git:diff]";
/// The status of the tree of every site.
pub const STATUS: &str = " M a\nA  b\n?? new";
/// The summary of unstaged changes.
pub const UNSTAGED: &str = "a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)";
/// The summary of all changes.
pub const DIFF: &str =
    "a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\nb | 1 +\n 1 file changed, 1 insertion(+)";
/// The correct facts about the tree of every site.
pub const WHOLE: Facts = ["main", STATUS, DIFF];

/// The number of sites that are examined in parallel: most of the time is spent waiting for git.
const WORKERS: usize = 4;

/// The notes outside a repository.
pub const NO_REPOSITORY: &str = "\nabsent: `[git:branch]` is absent: not a git repository\
                             \nabsent: `[git:status]` is absent: not a git repository\
                             \nabsent: `[git:diff]` is absent: not a git repository";

/// A folder with a repository in `tree` and, next to it, everything that the repository must not touch.
pub struct Site {
    root: TempDir,
    disturbances: Cell<u64>,
}

impl Site {
    /// Creates a site with one changed file, one unchanged file, one staged file and one untracked file.
    #[must_use]
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("proem-hostile-").tempdir().unwrap();
        let site = Self { root, disturbances: Cell::new(0) };
        site.write("home/.keep", "");
        site.script("program", "exit 1");
        site.write("tree/a", "a\n");
        site.write("tree/kept", "kept\n");
        site.git("tree", "init -q -b main");
        site.git("tree", "add .");
        site.git("tree", "commit -q -m first");
        site.write("tree/a", "changed\n");
        site.write("tree/b", "b\n");
        site.git("tree", "add b");
        site.write("tree/new", "new\n");
        site
    }

    /// Returns a path below the site.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(path)
    }

    /// Inserts the site's paths into `text`.
    pub fn placed(&self, text: &str) -> String {
        let root = self.root.path().to_str().unwrap();
        text.replace("{program}", "{root}/program").replace("{root}", root)
    }

    /// Removes the parts of a message that differ between sites and between versions of git.
    #[must_use]
    pub fn in_general(&self, message: &str) -> String {
        let ours = ["fatal:", "error:"].iter().find_map(|word| Some(message.split_once(word)?.0));
        ours.unwrap_or(message).replace(self.root.path().to_str().unwrap(), "{root}")
    }

    /// Creates the parent of `path`, whose name may be any bytes.
    pub fn place(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// Writes a file, with the site's paths inserted.
    pub fn write(&self, path: impl AsRef<Path>, text: &str) {
        fs::write(self.place(path), self.placed(text)).unwrap();
    }

    /// Writes a program that creates the canary and then runs `then`.
    pub fn script(&self, path: &str, then: &str) {
        let (text, place) = (format!("{path}.text"), self.place(path));
        self.write(&text, &format!("#!/bin/sh\n: >'{{root}}/canary'\n{then}\n"));
        fs::set_permissions(self.path(&text), fs::Permissions::from_mode(0o755)).unwrap();
        // Another process writes the file. If this process had it open for writing, a child started by another thread
        // could inherit the descriptor for a moment, and the system does not execute a file that is open for writing.
        let copied = Command::new("cp").arg(self.path(&text)).arg(place).status().unwrap();
        assert!(copied.success(), "{path} is not copied");
        fs::remove_file(self.path(text)).unwrap();
    }

    /// Replaces a path with a FIFO.
    pub fn fifo(&self, path: &str) {
        let place = self.place(path);
        drop(fs::remove_file(&place));
        mknodat(CWD, place, FileType::Fifo, 0o644.into(), 0).unwrap();
    }

    /// Runs plain git and returns its output.
    pub fn git(&self, folder: &str, words: &str) -> String {
        let output = self.plain(folder, "git", words.split_whitespace());
        assert!(output.status.success(), "git {words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Runs a program with an environment that contains only `PATH`.
    pub fn plain<'w>(&self, folder: &str, program: &str, words: impl Iterator<Item = &'w str>) -> Output {
        let mut command = Command::new(program);
        command.args(words.map(|word| self.placed(word))).current_dir(self.path(folder)).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.path("home"));
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
        // Durability does not matter here, and syncing to a busy disk is slow.
        command.env("GIT_CONFIG_COUNT", "1");
        command.env("GIT_CONFIG_KEY_0", "core.fsync").env("GIT_CONFIG_VALUE_0", "none");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@example.org");
            command.env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
        }
        command.output().unwrap()
    }

    /// Changes the timestamps of unchanged files, so that git compares their content again.
    pub fn disturb(&self) {
        self.disturbances.set(self.disturbances.get() + 1);
        let moment = SystemTime::UNIX_EPOCH + Duration::from_hours(self.disturbances.get());
        for folder in ["tree", "tree/sub", "side", "clone"] {
            if let Ok(file) = fs::File::options().write(true).open(self.path(folder).join("kept")) {
                file.set_modified(moment).unwrap();
            }
        }
    }
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs `check` on every case, several at a time, and lists all failures.
pub fn for_each<C: Sync>(cases: &[C], name: impl Fn(&C) -> String, check: impl Fn(&C) + Sync) {
    let next = AtomicUsize::new(0);
    let has_failed = |case: &C| catch_unwind(AssertUnwindSafe(|| check(case))).is_err();
    let work = || {
        let all = std::iter::from_fn(|| cases.get(next.fetch_add(1, Ordering::Relaxed)));
        all.filter(|case| has_failed(case)).collect::<Vec<&C>>()
    };
    let failed: Vec<&C> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let names: Vec<String> = failed.into_iter().map(name).collect();
    assert!(names.is_empty(), "{} of {} failed:\n{}", names.len(), cases.len(), names.join("\n"));
}

/// The command that makes plain git fall into a trap: a folder and git's arguments.
#[derive(Debug)]
pub enum Control {
    /// Without a terminal.
    Git(&'static str, &'static str),
    /// With a terminal as output, because git starts a pager only for a terminal.
    GitOnTerminal(&'static str, &'static str),
}

impl Control {
    /// Runs the command.
    #[must_use]
    pub fn run(&self, site: &Site) -> Output {
        match self {
            Self::Git(folder, words) => site.plain(folder, "git", words.split_whitespace()),
            Self::GitOnTerminal(folder, words) => {
                let command = format!("git {words}");
                site.plain(folder, "script", ["-qec", &command, "/dev/null"].into_iter())
            }
        }
    }
}
/// A repository that names a program.
#[derive(Debug)]
pub struct Trap {
    /// The name of the case.
    pub name: &'static str,
    /// Sets the trap.
    pub set: fn(&Site),
    /// The command that makes plain git fall into it.
    pub control: Control,
    /// The directory of the build.
    pub cwd: &'static str,
    /// The expected facts.
    pub expected: Facts,
    /// The expected notes for absent facts.
    pub absent: &'static str,
}

/// The defaults of most traps.
pub(crate) const IN_TREE: Trap = Trap {
    name: "",
    set: |_| {},
    control: Control::Git("tree", "status --short"),
    cwd: "tree",
    expected: WHOLE,
    absent: "",
};

impl Trap {
    /// Returns all traps.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        [&CONFIGURATION[..], &ATTRIBUTES, &HOOKS, &REMOTES, &NESTED, &ELSEWHERE].into_iter().flatten()
    }

    /// Sets the trap, checks that `build` runs nothing while plain git does, and returns the output of the build.
    pub fn check(&self, build: impl FnOnce(&Site) -> String) -> String {
        let site = Site::new();
        (self.set)(&site);
        self.spring(&site, "before the build");
        site.disturb();
        let said = build(&site);
        assert!(!site.path("canary").exists(), "{}: the build ran the program", self.name);
        self.spring(&site, "after the build");
        said
    }

    /// Checks that plain git runs the program, and removes the canary.
    fn spring(&self, site: &Site, when: &str) {
        site.disturb();
        let output = self.control.run(site);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(site.path("canary").exists(), "{}: control did not fire {when}: {errors}", self.name);
        fs::remove_file(site.path("canary")).unwrap();
    }
}
