//! Keeps git within one repository, even if it meets links, alternates or a folder that is swapped meanwhile.
//!
//! The kernel enforces this (Landlock): git may read the working tree, the repository's own folders and the system, run
//! programs of the system, and write nothing. The folders are opened before git starts, so that no name can be made to
//! mean another folder. On a kernel without Landlock, links and alternates are searched for beforehand. Then only an
//! attacker who changes the repository at that moment, and knows the id of a commit of another repository, could get
//! names out of it.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use proem_core::fact::Absence;
use proem_core::limit::GIT_OBJECT_ENTRIES_MAX;
use rustix::fs::{Mode, OFlags};

use super::repository::Bounds;
use crate::error::reason;
use crate::observe::file::real_path;
use crate::observe::process::{Allowance, Limits, ProcessStop, RunningProcess};

/// Folders of programs and their libraries.
#[cfg(target_os = "linux")]
const SYSTEM: [&str; 9] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
];

/// The folders that git may read.
pub(super) struct Fence {
    inside: Vec<OwnedFd>,
    objects: PathBuf,
    /// The folder in which git itself is installed.
    program: PathBuf,
}

impl Fence {
    /// Creates the fence of a repository and its shadow.
    pub(super) fn around(bounds: &Bounds, shadow: &Path, program: &Path) -> Result<Self, Absence> {
        let objects = bounds.common.join("objects");
        // Alternates lead to the objects of another repository.
        if objects.join("info/alternates").symlink_metadata().is_ok() {
            return Err(Absence::OutsideRoots);
        }
        let shadow = crate::observe::file::canonical(shadow).map_err(|error| failed(&error))?;
        let folders = [&bounds.tree, &bounds.own, &bounds.common, &shadow];
        let inside = folders.into_iter().map(|folder| opened(folder)).collect::<Result<_, _>>()?;
        let program = crate::observe::file::canonical(program).unwrap_or_else(|_| program.to_owned());
        // The program is `bin/git` of some folder, which then also has its libraries.
        let program = program
            .ancestors()
            .nth(2)
            .filter(|folder| folder.parent().is_some())
            .map_or(program.clone(), Path::to_owned);
        Ok(Self { inside, objects, program })
    }

    /// Starts git inside the fence.
    pub(super) fn start(
        &self,
        command: Command,
        allowance: Allowance,
        limits: Limits,
    ) -> Result<Result<RunningProcess, ProcessStop>, Absence> {
        // Landlock restricts a thread and the processes that it starts. The process is watched from outside, because a
        // restricted thread could not query the kernel about it.
        std::thread::scope(|scope| {
            let started = scope.spawn(|| {
                if !self.shut() && leads_out(&self.objects) {
                    return Err(Absence::OutsideRoots);
                }
                Ok(RunningProcess::start(command, allowance, limits))
            });
            started.join().unwrap_or_else(|_| {
                Err(Absence::GitFailed("it could not be restricted to the repository".into()))
            })
        })
    }

    /// Restricts the calling thread permanently. Returns whether the kernel supports that.
    #[cfg(target_os = "linux")]
    fn shut(&self) -> bool {
        self.restrict().is_ok_and(|status| status != landlock::RulesetStatus::NotEnforced)
    }

    #[cfg(not(target_os = "linux"))]
    fn shut(&self) -> bool {
        let Self { inside, program, .. } = self;
        inside.is_empty() && program.as_os_str().is_empty()
    }

    #[cfg(target_os = "linux")]
    fn restrict(&self) -> Result<landlock::RulesetStatus, landlock::RulesetError> {
        use landlock::{
            ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
        };
        let (look, read) = (AccessFs::ReadFile | AccessFs::ReadDir, AccessFs::from_read(ABI::V1));
        let mut rules = Ruleset::default().handle_access(AccessFs::from_all(ABI::V1))?.create()?;
        for folder in &self.inside {
            rules = rules.add_rule(PathBeneath::new(folder, look))?;
        }
        let system = SYSTEM.iter().map(Path::new).chain([self.program.as_path()]);
        for place in system.filter_map(|path| PathFd::new(path).ok()) {
            rules = rules.add_rule(PathBeneath::new(place, read))?;
        }
        if let Ok(nowhere) = PathFd::new("/dev/null") {
            let both = AccessFs::ReadFile | AccessFs::WriteFile;
            rules = rules.add_rule(PathBeneath::new(nowhere, both))?;
        }
        Ok(rules.restrict_self()?.ruleset)
    }
}

/// Opens a folder. Fails if it no longer lies at the path that was checked.
fn opened(folder: &Path) -> Result<OwnedFd, Absence> {
    #[cfg(target_os = "linux")]
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::open(folder, flags, Mode::empty()).map_err(|error| failed(&error.into()))?;
    let real = real_path(&open, folder).map_err(|error| failed(&error))?;
    if real == folder { Ok(open) } else { Err(Absence::OutsideRoots) }
}

/// Tells whether there is a link among a repository's objects, or more entries than are searched.
fn leads_out(objects: &Path) -> bool {
    let mut folders = vec![objects.to_owned()];
    let mut left = GIT_OBJECT_ENTRIES_MAX;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { return true };
        for entry in entries {
            let Some(kind) = entry.ok().and_then(|entry| Some((entry.file_type().ok()?, entry.path())))
            else {
                return true;
            };
            left = left.saturating_sub(1);
            match kind {
                _ if left == 0 => return true,
                (kind, _) if kind.is_symlink() => return true,
                (kind, path) if kind.is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    false
}

fn failed(error: &std::io::Error) -> Absence {
    Absence::GitFailed(format!("cannot prepare a safe copy: {}", reason(error)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Row G6: the fallback for kernels without Landlock.
    #[test]
    fn a_link_among_objects_is_found_however_deep() {
        for name in ["pack", "ab", "pack/x.pack", "ab/cdef", "info/x/y"] {
            let folder = tempfile::tempdir().expect("a folder");
            let objects = folder.path().join("objects");
            for part in ["pack", "ab", "info/x"] {
                fs::create_dir_all(objects.join(part)).expect("a folder");
            }
            assert!(!leads_out(&objects), "control");
            let place = objects.join(name);
            drop(fs::remove_dir(&place));
            symlink(folder.path(), place).expect("a link");
            assert!(leads_out(&objects), "{name}");
        }
    }
}
