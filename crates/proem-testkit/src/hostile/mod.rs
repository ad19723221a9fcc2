//! Repositories that strangers made: each wants to run a program, or to show what lies elsewhere.
//!
//! Every trap has a control: plain git, in the very same repository, must walk into it before the build and again after
//! it. A trap that plain git does not spring proves nothing, so it fails too.

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
    Ask, BRANCHES, Branch, HEADS, Head, NAMES, Name, Nuisance, PATIENT, SETTINGS, Said, Setting, enrich,
};
pub use special::{SPECIAL, Special};
pub use traps::{
    ATTRIBUTES, CONFIGURATION, ELSEWHERE, HOOKS, NESTED, REMOTES, add_side, add_submodule, embed_repository,
    link_away,
};

/// Branch, status and diff.
pub type Facts = [&'static str; 3];

/// All of it in one text.
pub const TEMPLATE: &str = "[git:branch]|[git:status]|[git:diff]";
/// What git says of the tree of every site.
pub const STATUS: &str = " M a\nA  b\n?? new";
/// The summary of what is not staged.
pub const UNSTAGED: &str = "a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)";
/// The summary of all changes.
pub const DIFF: &str =
    "a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\nb | 1 +\n 1 file changed, 1 insertion(+)";
/// What is true about the tree of every site.
pub const WHOLE: Facts = ["main", STATUS, DIFF];

/// How many sites are looked at together: most of the time is spent waiting for git.
const WORKERS: usize = 4;

/// What is said where there is no repository.
pub const NO_REPOSITORY: &str = "\nabsent: `[git:branch]` is absent: not a git repository\
                             \nabsent: `[git:status]` is absent: not a git repository\
                             \nabsent: `[git:diff]` is absent: not a git repository";

/// A folder with a repository in `tree` and, beside it, everything that the repository must not touch.
pub struct Site {
    root: TempDir,
    disturbances: Cell<u64>,
}

impl Site {
    /// Lays out one committed file that is changed, one that is kept, one staged and one unknown.
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

    /// A path below the site.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(path)
    }

    /// Puts the site's own paths into `text`.
    pub fn placed(&self, text: &str) -> String {
        let root = self.root.path().to_str().unwrap();
        text.replace("{program}", "{root}/program").replace("{root}", root)
    }

    /// A message without what differs between sites and between versions of git.
    #[must_use]
    pub fn in_general(&self, message: &str) -> String {
        let ours = ["fatal:", "error:"].iter().find_map(|word| Some(message.split_once(word)?.0));
        ours.unwrap_or(message).replace(self.root.path().to_str().unwrap(), "{root}")
    }

    /// Makes the parent of `path`, whose name may be any bytes.
    pub fn place(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// Writes a file, with the site's own paths in it.
    pub fn write(&self, path: impl AsRef<Path>, text: &str) {
        fs::write(self.place(path), self.placed(text)).unwrap();
    }

    /// Writes a program that leaves the canary and then does what `then` says.
    pub fn script(&self, path: &str, then: &str) {
        let (text, place) = (format!("{path}.text"), self.place(path));
        self.write(&text, &format!("#!/bin/sh\n: >'{{root}}/canary'\n{then}\n"));
        fs::set_permissions(self.path(&text), fs::Permissions::from_mode(0o755)).unwrap();
        // Another process copies it. Were it open for writing here, then a child that another thread starts just now
        // would hold it open for a moment, too, and the system runs no file that is being written.
        let copied = Command::new("cp").arg(self.path(&text)).arg(place).status().unwrap();
        assert!(copied.success(), "{path} is not copied");
        fs::remove_file(self.path(text)).unwrap();
    }

    /// Puts a FIFO in the place of whatever is there.
    pub fn fifo(&self, path: &str) {
        let place = self.place(path);
        drop(fs::remove_file(&place));
        mknodat(CWD, place, FileType::Fifo, 0o644.into(), 0).unwrap();
    }

    /// Runs plain git and returns what it printed.
    pub fn git(&self, folder: &str, words: &str) -> String {
        let output = self.plain(folder, "git", words.split_whitespace());
        assert!(output.status.success(), "git {words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Runs a program with nothing of this process's environment but `PATH`.
    pub fn plain<'w>(&self, folder: &str, program: &str, words: impl Iterator<Item = &'w str>) -> Output {
        let mut command = Command::new(program);
        command.args(words.map(|word| self.placed(word))).current_dir(self.path(folder)).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.path("home"));
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
        // Nothing of this has to outlive a power cut, and a busy disk takes its time.
        command.env("GIT_CONFIG_COUNT", "1");
        command.env("GIT_CONFIG_KEY_0", "core.fsync").env("GIT_CONFIG_VALUE_0", "none");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@example.org");
            command.env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
        }
        command.output().unwrap()
    }

    /// Gives the kept files another time: git must look at their content again, and finds it the same.
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

/// Runs `check` on every case, some at a time, and names all those that failed.
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

/// How plain git is made to walk into a trap: a folder and git's arguments.
#[derive(Debug)]
pub enum Control {
    /// As it comes.
    Git(&'static str, &'static str),
    /// With a terminal for its output: git starts a pager for nothing less.
    GitOnTerminal(&'static str, &'static str),
}

impl Control {
    /// Runs it.
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
    /// What it is.
    pub name: &'static str,
    /// Sets it.
    pub set: fn(&Site),
    /// How plain git walks into it.
    pub control: Control,
    /// Where the build is made.
    pub cwd: &'static str,
    /// What the build must say.
    pub expected: Facts,
    /// Lines for the facts that are rightly absent.
    pub absent: &'static str,
}

/// What most traps have in common.
pub(crate) const IN_TREE: Trap = Trap {
    name: "",
    set: |_| {},
    control: Control::Git("tree", "status --short"),
    cwd: "tree",
    expected: WHOLE,
    absent: "",
};

impl Trap {
    /// All of them.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        [&CONFIGURATION[..], &ATTRIBUTES, &HOOKS, &REMOTES, &NESTED, &ELSEWHERE].into_iter().flatten()
    }

    /// Lays it out, and shows that `build` runs nothing where plain git does; returns what the build said.
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

    /// Checks that plain git runs the program, and takes the canary away.
    fn spring(&self, site: &Site, when: &str) {
        site.disturb();
        let output = self.control.run(site);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(site.path("canary").exists(), "{}: control did not fire {when}: {errors}", self.name);
        fs::remove_file(site.path("canary")).unwrap();
    }
}
