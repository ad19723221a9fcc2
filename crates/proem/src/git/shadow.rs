//! A shadow of a repository, in which `git status` runs nothing but git.
//!
//! A repository can make a plain `git status` run programs in more than a dozen ways: by its
//! configuration, attributes, hooks, nested repositories, partial clones. Forbidding them one by one
//! misses the next one. So git is pointed at a folder of our own: our configuration, links to the
//! objects and refs, copies of `HEAD`, `index` and the ignore file; no hooks, no attributes, no
//! remotes. Its environment is cleared as well.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use proem_core::fact::Absence;
use proem_core::limit::{
    GIT_INDEX_BYTES_MAX, GIT_OUTPUT_BYTES_MAX, GIT_PACKED_REFS_BYTES_MAX, SETTINGS_BYTES_MAX,
};
use tempfile::TempDir;

use super::program;
use super::repository::{POINTER, Repository};
use crate::file::{Cap, ReadPolicy, read_bytes};
use crate::process::{self, Allowance, Stopped};

/// Our own settings: they come last, so they win over the few that are taken over.
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

const INDEX: Cap = Cap { bytes_max: GIT_INDEX_BYTES_MAX, words: "1 GiB" };
const PACKED_REFS: Cap = Cap { bytes_max: GIT_PACKED_REFS_BYTES_MAX, words: "64 MiB" };
const IGNORE_FILE: Cap = Cap { bytes_max: SETTINGS_BYTES_MAX, words: "256 KiB" };

/// A folder that stands in for a repository's own; it goes when this does.
pub(super) struct Shadow {
    folder: TempDir,
    program: PathBuf,
    worktree: PathBuf,
    cwd: PathBuf,
    time_max: Duration,
}

impl Shadow {
    /// Makes the shadow of `repository`.
    pub(super) fn of(repository: &Repository, cwd: &Path, time_max: Duration) -> Result<Self, Absence> {
        let program = program::find().ok_or(Absence::NotOnThisHost("git program"))?;
        let failed =
            |error: std::io::Error| Absence::GitFailed(format!("cannot prepare a safe copy: {error}"));
        let folder = tempfile::Builder::new().prefix("proem-git-").tempdir().map_err(failed)?;
        fill(folder.path(), repository).map_err(failed)?;
        copy_parts(folder.path(), repository)?;
        let (worktree, cwd) = (repository.worktree.clone(), cwd.to_owned());
        Ok(Self { folder, program, worktree, cwd, time_max })
    }

    /// Runs git with `arguments` and returns what it printed.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String, Absence> {
        let mut command = Command::new(&self.program);
        command.arg("--no-pager").args(arguments).current_dir(&self.cwd).env_clear();
        command.env("GIT_DIR", self.folder.path()).env("GIT_WORK_TREE", &self.worktree);
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
        let allowance = Allowance { time: self.time_max, output_bytes_max: GIT_OUTPUT_BYTES_MAX };
        read_answer(process::run(command, allowance))
    }
}

fn read_answer(finished: Result<process::Finished, Stopped>) -> Result<String, Absence> {
    match finished {
        Ok(finished) if finished.status.success() => String::from_utf8(finished.output)
            .map_err(|error| Absence::NotUtf8(error.utf8_error().valid_up_to())),
        Ok(finished) => {
            let errors = String::from_utf8_lossy(&finished.errors);
            let line = errors.lines().next().unwrap_or("it said nothing").escape_debug().to_string();
            Err(Absence::GitFailed(line))
        }
        Err(Stopped::TimedOut) => Err(Absence::TimedOut),
        Err(Stopped::TooMuchOutput) => Err(Absence::OverLimit("1 MiB")),
        Err(Stopped::CannotStart(error) | Stopped::CannotRead(error)) => {
            Err(Absence::GitFailed(error.to_string()))
        }
    }
}

/// Writes what is ours and links what is only read.
fn fill(folder: &Path, repository: &Repository) -> std::io::Result<()> {
    fs::write(folder.join("config"), repository.settings.lines() + SETTINGS)?;
    fs::create_dir(folder.join("info"))?;
    symlink(absolute(&repository.common.join("objects"))?, folder.join("objects"))?;
    symlink(absolute(&repository.common.join("refs"))?, folder.join("refs"))?;
    if repository.uses_reftable() {
        symlink(absolute(&repository.common.join("reftable"))?, folder.join("reftable"))?;
    }
    Ok(())
}

fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    path.canonicalize()
}

/// Copies what git would open by name, so that it meets regular files of a known size only.
fn copy_parts(folder: &Path, repository: &Repository) -> Result<(), Absence> {
    copy(&repository.own.join("HEAD"), &folder.join("HEAD"), POINTER)?;
    copy(&repository.common.join("packed-refs"), &folder.join("packed-refs"), PACKED_REFS)?;
    copy(&repository.common.join("info/exclude"), &folder.join("info/exclude"), IGNORE_FILE)?;
    copy(&repository.own.join("index"), &folder.join("index"), INDEX)?;
    for name in shared_indexes(&repository.own) {
        copy(&repository.own.join(&name), &folder.join(&name), INDEX)?;
    }
    Ok(())
}

/// Copies a file that need not exist, with its time: git compares files with the index's own.
fn copy(from: &Path, to: &Path, cap: Cap) -> Result<(), Absence> {
    // Taken before the bytes: should the file change in between, git looks twice rather than not at all.
    let modified = fs::metadata(from).and_then(|found| found.modified());
    let bytes = match read_bytes(from, &ReadPolicy::user(None, &[]), cap) {
        Ok(bytes) => bytes,
        Err(Absence::NoSuchFile) => return Ok(()),
        Err(why) => return Err(Absence::GitFailed(format!("{}: {why}", from.display()))),
    };
    let written =
        fs::write(to, bytes).and_then(|()| fs::File::options().write(true).open(to)?.set_modified(modified?));
    written.map_err(|error| Absence::GitFailed(format!("cannot prepare a safe copy: {error}")))
}

/// The files of a split index.
fn shared_indexes(own: &Path) -> Vec<String> {
    let names = fs::read_dir(own)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut shared: Vec<String> = names.filter(|name| name.starts_with("sharedindex.")).take(16).collect();
    shared.sort();
    shared
}
