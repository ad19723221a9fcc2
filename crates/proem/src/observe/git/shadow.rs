//! A shadow of a repository, in which `git status` runs nothing but git.
//!
//! A repository can make a plain `git status` run programs in more than a dozen ways: by its configuration, attributes,
//! hooks, nested repositories, partial clones. Forbidding them one by one misses the next one. So git is pointed at a
//! folder that proem makes: with proem's configuration, links to the objects, refs and index, copies of `HEAD` and the
//! ignore file; without hooks, attributes and remotes. Its environment is cleared as well.
//!
//! For parties that may see the working tree only, refs are not linked: only the ref that is needed is written. And git
//! runs behind a [`Fence`], since a repository could otherwise name the objects of another one.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use proem_core::fact::Absence;
use proem_core::limit::{
    GIT_BLOB_BYTES_MAX, GIT_CHECKOUT_FILE_BYTES_MAX, GIT_MEMORY_BYTES_MAX, GIT_OUTPUT_BYTES_MAX,
    GIT_SHARED_INDEXES_MAX, SETTINGS_BYTES_MAX,
};
use tempfile::TempDir;

use super::fence::Fence;
use super::refs::{Refs, is_ref_name};
use super::repository::{POINTER, Repository};
use super::{head, program};
use crate::error::reason;
use crate::observe::file::{Cap, ReadPolicy, check_regular, read_bytes, read_head, shown};
use crate::observe::process::{Allowance, Dialogue, Limits, ProcessOutput, ProcessStop, RunningProcess};

/// Settings of the shadow. They come last, so they win over the few that are taken from the repository.
///
/// A file above `bigFileThreshold` is hashed piece by piece and counts as binary in a diff, so that its text is not
/// held in memory. A diff of a text of that size takes far longer than git may run.
const SETTINGS: &str = "\
[core]
	bare = false
	fsmonitor = false
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	quotePath = true
	pager = cat
	untrackedCache = false
	bigFileThreshold = 128m
	packedGitWindowSize = 32m
	packedGitLimit = 256m
	deltaBaseCacheLimit = 64m
[color]
	ui = never
[status]
	branch = false
	relativePaths = true
	short = false
	showStash = false
	showUntrackedFiles = normal
	submoduleSummary = false
[diff]
	ignoreSubmodules = all
	mnemonicPrefix = false
	noPrefix = false
	relative = false
[submodule]
	recurse = false
[gc]
	auto = 0
[maintenance]
	auto = false
[protocol]
	allow = never
";

/// Settings for an index of few files. Git starts a thread for each 500 files to check them ahead of time; with few
/// files, starting threads costs more than it saves.
const FEW_FILES: &str = "\
[core]
	preloadIndex = false
";

const FILES_MANY: u32 = 2_000;

const IGNORE_FILE: Cap = Cap::new(SETTINGS_BYTES_MAX);

/// A temporary folder that takes the place of a repository's `.git`.
pub(super) struct Shadow {
    folder: TempDir,
    program: PathBuf,
    worktree: PathBuf,
    cwd: PathBuf,
    /// The time that all commands together may still take.
    time_left: Cell<Duration>,
    fence: Option<Fence>,
}

impl Shadow {
    /// Makes the shadow of `repository`.
    pub(super) fn new(repository: &Repository, cwd: &Path, time_max: Duration) -> Result<Self, Absence> {
        let program = program::find().ok_or(Absence::NotOnThisHost("git program"))?;
        let folder =
            tempfile::Builder::new().prefix("proem-git-").tempdir().map_err(|error| failed(&error))?;
        fill(folder.path(), repository)?;
        let (worktree, cwd) = (repository.worktree.clone(), cwd.to_owned());
        let fence = match &repository.bounds {
            None => None,
            Some(bounds) => Some(Fence::around(bounds, folder.path(), &program)?),
        };
        Ok(Self { folder, program, worktree, cwd, time_left: Cell::new(time_max), fence })
    }

    /// Returns the commit that a name stands for. The name must not be taken for an option.
    pub(super) fn commit(&self, name: &str) -> Result<String, Absence> {
        let wanted = format!("{name}^{{commit}}");
        let output = self.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted])?;
        Ok(output.trim().to_owned())
    }

    /// Writes the files of a commit into `worktree`, and an index of them: nothing of the repository changes.
    pub(super) fn check_out(&self, commit: &str, worktree: &Path, index: &Path) -> Result<(), Absence> {
        let mut command = self.command(&["read-tree", "-u", "--reset", commit], worktree, worktree);
        command.env("GIT_INDEX_FILE", index);
        self.ask(command, GIT_CHECKOUT_FILE_BYTES_MAX).map(drop)
    }

    /// Starts git as a dialogue of several questions; for the user only, who needs no fence.
    pub(super) fn start(&self, arguments: &[&str]) -> Result<Dialogue, Absence> {
        if self.fence.is_some() {
            return Err(Absence::OutsideRoots);
        }
        let command = self.command(arguments, &self.worktree, &self.worktree);
        let limits = Limits { memory_bytes_max: GIT_MEMORY_BYTES_MAX, file_bytes_max: 0 };
        Dialogue::start(command, self.time_left.get(), limits).map_err(|why| self.stopped(why))
    }

    /// Runs git in another working tree with an index of its own, and returns the bytes that it printed.
    pub(super) fn run_for_bytes(
        &self,
        arguments: &[&OsStr],
        worktree: &Path,
        index: &Path,
    ) -> Result<Vec<u8>, Absence> {
        let mut command = self.command(arguments, worktree, worktree);
        command.env("GIT_INDEX_FILE", index);
        self.ask_for_bytes(command, 0, GIT_BLOB_BYTES_MAX)
    }

    /// Runs git with `arguments` and returns its output.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String, Absence> {
        let command = self.command(arguments, &self.cwd, &self.worktree);
        self.ask(command, 0)
    }

    /// Runs git with `arguments` on literal paths from the top of the tree. Returns an empty text if `paths` is empty.
    pub(super) fn run_on(&self, arguments: &[&str], paths: &[String]) -> Result<String, Absence> {
        if paths.is_empty() {
            return Ok(String::new());
        }
        let paths = paths.iter().map(String::as_str);
        // Threads that check every file ahead of time cost more than they save with few files.
        let all: Vec<&str> = ["-c", "core.preloadIndex=false", "--literal-pathspecs"]
            .into_iter()
            .chain(arguments.iter().copied())
            .chain(["--"])
            .chain(paths)
            .collect();
        let command = self.command(&all, &self.worktree, &self.worktree);
        self.ask(command, 0)
    }

    /// Runs git, which may write files of at most `file_bytes_max` bytes. All commands share one deadline.
    fn ask(&self, command: Command, file_bytes_max: u64) -> Result<String, Absence> {
        let bytes = self.ask_for_bytes(command, file_bytes_max, GIT_OUTPUT_BYTES_MAX)?;
        String::from_utf8(bytes).map_err(|error| Absence::NotUtf8(error.utf8_error().valid_up_to()))
    }

    fn ask_for_bytes(
        &self,
        command: Command,
        file_bytes_max: u64,
        output_bytes_max: usize,
    ) -> Result<Vec<u8>, Absence> {
        let time = self.time_left.get();
        if time.is_zero() {
            return Err(Absence::TimedOut);
        }
        let begun = Instant::now();
        let allowance = Allowance { time, output_bytes_max };
        let limits = Limits { memory_bytes_max: GIT_MEMORY_BYTES_MAX, file_bytes_max };
        let started = match &self.fence {
            None => RunningProcess::start(command, allowance, limits),
            Some(fence) => fence.start(command, allowance, limits)?,
        };
        let answer = self.read_answer(started.and_then(RunningProcess::finish));
        self.time_left.set(time.saturating_sub(begun.elapsed()));
        answer
    }

    /// Builds a git command with a clean environment, which has only our `PATH`.
    fn command(&self, arguments: &[impl AsRef<OsStr>], cwd: &Path, worktree: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--no-pager").args(arguments).current_dir(cwd).env_clear();
        command.env("GIT_DIR", self.folder.path()).env("GIT_WORK_TREE", worktree);
        command.env("HOME", self.folder.path()).env("LC_ALL", "C");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", "none"),
        ] {
            command.env(name, value);
        }
        // Limits one allocation, on every system. The kernel limits all of them together where it can.
        command.env("GIT_ALLOC_LIMIT", GIT_MEMORY_BYTES_MAX.to_string());
        command
    }

    fn read_answer(&self, finished: Result<ProcessOutput, ProcessStop>) -> Result<Vec<u8>, Absence> {
        match finished {
            Ok(finished) if finished.status.success() => Ok(finished.output),
            Ok(finished) => Err(Absence::GitFailed(self.complaint(&finished.errors))),
            Err(why) => Err(self.stopped(why)),
        }
    }

    /// Converts the reason why git was stopped.
    #[expect(clippy::unused_self, reason = "stands beside `complaint`, which needs it")]
    pub(super) fn stopped(&self, why: ProcessStop) -> Absence {
        match why {
            ProcessStop::TimedOut => Absence::TimedOut,
            ProcessStop::WaitsForFifo => {
                Absence::GitFailed("a file of the repository that it reads is a FIFO".into())
            }
            ProcessStop::TooMuchOutput => Absence::OverLimit(GIT_OUTPUT_BYTES_MAX),
            ProcessStop::CannotStart(error) | ProcessStop::CannotRead(error) => {
                Absence::GitFailed(reason(&error))
            }
        }
    }

    /// Returns the first line of git's errors, without the shadow's own path, which differs each time.
    pub(super) fn complaint(&self, errors: &[u8]) -> String {
        let errors = String::from_utf8_lossy(errors);
        let line = errors.lines().next().unwrap_or("it printed no error message");
        line.replace(&self.folder.path().display().to_string(), ".git").escape_debug().to_string()
    }
}

/// Fills the shadow: writes proem's own files, links files that are large or only looked up, and copies files that git
/// opens without checks.
fn fill(folder: &Path, repository: &Repository) -> Result<(), Absence> {
    let common = common_folder(folder, repository)?;
    let mut settings = repository.settings().lines() + SETTINGS;
    let indexes = indexes(&repository.own);
    if repository.bounds.is_none() && has_few_files(&repository.own, &indexes) {
        settings.push_str(FEW_FILES);
    }
    fs::write(common.join("config"), settings).map_err(|error| failed(&error))?;
    fs::create_dir(common.join("info")).map_err(|error| failed(&error))?;
    link(&repository.common.join("objects"), &common.join("objects"))?;
    copy(repository, &repository.common.join("info/exclude"), &common.join("info/exclude"), IGNORE_FILE)?;
    copy(repository, &repository.own.join("HEAD"), &folder.join("HEAD"), POINTER)?;
    if repository.bounds.is_none() || repository.uses_reftable() {
        link(&repository.common.join("refs"), &common.join("refs"))?;
        link_if_regular(&repository.common.join("packed-refs"), &common.join("packed-refs"))?;
    } else {
        write_head_ref(folder, repository)?;
    }
    for name in indexes {
        link_if_regular(&repository.own.join(&name), &folder.join(&name))?;
    }
    Ok(())
}

/// Tells whether a repository has so few files that checking them one after the other is fastest. A split index does
/// not tell their number.
fn has_few_files(own: &Path, indexes: &[String]) -> bool {
    let [index] = indexes else { return false };
    files_of(&own.join(index)).is_some_and(|files| files < FILES_MANY)
}

/// Returns the number of files that an index declares; `None` if it is missing or invalid. Only speed depends on it.
fn files_of(index: &Path) -> Option<u32> {
    let head = read_head(index, &ReadPolicy::user(None, &[]), 12).ok()?.bytes;
    let files = head.strip_prefix(b"DIRC")?.last_chunk()?;
    (head.len() == 12).then_some(u32::from_be_bytes(*files))
}

/// Writes the ref that `HEAD` names, and no other: a link among the refs could lead to those of another repository.
fn write_head_ref(folder: &Path, repository: &Repository) -> Result<(), Absence> {
    fs::create_dir(folder.join("refs")).map_err(|error| failed(&error))?;
    // A name that git would not accept is left for git to report.
    let name = head::target(repository)?.filter(|name| name.starts_with("refs/") && is_ref_name(name));
    let Some(name) = name else { return Ok(()) };
    let Some(object) = Refs::new(repository).object(&name)? else { return Ok(()) };
    let path = folder.join(&name);
    let written =
        fs::create_dir_all(path.parent().unwrap_or(folder)).and_then(|()| fs::write(path, object + "\n"));
    written.map_err(|error| failed(&error))
}

/// Returns the folder for the common part. A linked working tree keeps refs of its own only in the reftable format;
/// there the shadow has two folders as well.
fn common_folder(folder: &Path, repository: &Repository) -> Result<PathBuf, Absence> {
    if !repository.uses_reftable() {
        return Ok(folder.to_owned());
    }
    link(&repository.own.join("reftable"), &folder.join("reftable"))?;
    if repository.own == repository.common {
        return Ok(folder.to_owned());
    }
    let common = folder.join("common");
    fs::create_dir(&common).map_err(|error| failed(&error))?;
    fs::write(folder.join("commondir"), "common\n").map_err(|error| failed(&error))?;
    link(&repository.own.join("refs"), &folder.join("refs"))?;
    link(&repository.common.join("reftable"), &common.join("reftable"))?;
    Ok(common)
}

fn failed(error: &std::io::Error) -> Absence {
    Absence::GitFailed(format!("cannot prepare a safe copy: {}", reason(error)))
}

fn link(from: &Path, to: &Path) -> Result<(), Absence> {
    let linked = crate::observe::file::canonical(from).and_then(|from| symlink(from, to));
    linked.map_err(|error| Absence::GitFailed(format!("{}: {}", shown(from), reason(&error))))
}

/// Links a file that need not exist. Git only reads it: its optional locks are switched off.
fn link_if_regular(from: &Path, to: &Path) -> Result<(), Absence> {
    match check_regular(from) {
        Ok(()) => link(from, to),
        Err(Absence::NoSuchFile) => Ok(()),
        Err(why) => Err(Absence::GitFailed(format!("{}: {why}", shown(from)))),
    }
}

/// Copies a file that need not exist.
fn copy(repository: &Repository, from: &Path, to: &Path, cap: Cap) -> Result<(), Absence> {
    let read = match repository.bounds {
        None => read_bytes(from, &ReadPolicy::user(None, &[]), cap),
        Some(_) => repository.read(from, cap).map(String::into_bytes),
    };
    match read {
        Ok(bytes) => fs::write(to, bytes).map_err(|error| failed(&error)),
        Err(Absence::NoSuchFile) => Ok(()),
        Err(why) => Err(Absence::GitFailed(format!("{}: {why}", shown(from)))),
    }
}

/// The index, and the files that a split one shares.
fn indexes(own: &Path) -> Vec<String> {
    let names = fs::read_dir(own).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut shared: Vec<String> = names.filter(|name| name.starts_with("sharedindex.")).collect();
    shared.sort();
    shared.truncate(GIT_SHARED_INDEXES_MAX);
    shared.push("index".to_owned());
    shared
}
