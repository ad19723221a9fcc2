//! Finds the `git` program without letting the working directory provide one.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The first executable `git` in an absolute directory of `PATH`.
///
/// A relative entry, `.` above all, would take the program from the repository itself.
pub(super) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join("git")).find(
        |candidate| {
            candidate.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        },
    )
}
