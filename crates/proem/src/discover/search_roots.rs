//! The directories that a search starts from.

use std::path::{Path, PathBuf};

use proem_core::limit::ANCESTORS_MAX;
use proem_core::note::{Code, Note, Severity};

use super::ignored::IgnoreFiles;
use super::{Owner, file};
use crate::observe::file::{ProjectFence, shown, without_dots};
use crate::observe::host::Host;
use crate::observe::workspace::{FOLDER, Workspace, repository_of};
use crate::settings::trust;

/// The directories of a search, as paths that prompts may show: links are not resolved.
#[derive(Debug, Clone)]
pub(crate) struct SearchRoots {
    cwd: PathBuf,
    /// The folder of proem's own files, if it lies above the working directory.
    folder: Option<PathBuf>,
    home: Option<PathBuf>,
    config: Option<PathBuf>,
    repository: Option<PathBuf>,
    /// The repository if it belongs to the working directory, else the directory alone.
    project: PathBuf,
    /// The same path, with links resolved.
    real_project: PathBuf,
    is_trusted: bool,
    ignores: IgnoreFiles,
}

impl SearchRoots {
    pub(crate) fn new(host: &Host, workspace: &Workspace) -> Self {
        let cwd = without_dots(workspace.path());
        let repository = repository_of(&cwd).map(Path::to_owned);
        let project =
            repository.as_ref().filter(|repository| host.reaches(repository)).unwrap_or(&cwd).clone();
        let real_project = crate::observe::file::canonical(&project).unwrap_or_else(|_| project.clone());
        // An unreadable list trusts nothing; `proem trust list` shows its error.
        let is_trusted = trust::covers(host, workspace, &real_project).unwrap_or(false);
        Self {
            folder: workspace.folder_above(),
            cwd,
            home: host.home(),
            config: host.config_dir(),
            repository,
            project,
            real_project,
            is_trusted,
            ignores: IgnoreFiles::default(),
        }
    }

    /// Returns the directories of a search that starts from a folder of the same project.
    pub(crate) fn below(&self, folder: &Path) -> Self {
        Self { cwd: folder.to_owned(), ..self.clone() }
    }

    /// Returns the path of the project, as it is written: the git repository, or the working directory outside of one.
    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    /// Returns the real path of the project: the git repository, or the working directory outside of one.
    pub(crate) fn real_project(&self) -> &Path {
        &self.real_project
    }

    /// Returns the boundary that links in the project must not cross; `None` if the user trusts the workspace.
    pub(crate) fn fence(&self) -> Option<ProjectFence> {
        (!self.is_trusted).then(|| ProjectFence::around(&self.project, &self.real_project))
    }

    /// The ignore files of this build, with one budget for all of them.
    pub(super) const fn ignores(&self) -> &IgnoreFiles {
        &self.ignores
    }

    /// The working directory, without `.`, `..` and doubled slashes.
    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Tells whether a directory is the working directory, by its real path.
    pub(crate) fn is_cwd(&self, folder: &Path) -> bool {
        let real = |path: &Path| crate::observe::file::canonical(path).unwrap_or_else(|_| path.to_owned());
        folder == self.cwd || real(folder) == real(&self.cwd)
    }

    /// Resolves a path of a profile: from `~`, `{config}`, `/`, or the working directory. A path in `.proem` refers to
    /// the `.proem` that applies, which may lie above. Returns `None` if the machine has no such place.
    pub(crate) fn path(&self, written: &str) -> Option<(PathBuf, Owner)> {
        if let Some(rest) = written.strip_prefix("{config}") {
            return Some((below(self.config.as_ref()?, rest), Owner::User));
        }
        match written.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Some((below(self.home.as_ref()?, rest), Owner::User))
            }
            _ if written.starts_with('/') => Some((without_dots(Path::new(written)), Owner::User)),
            _ => Some((self.of_project(Path::new(written)), Owner::Project)),
        }
    }

    fn of_project(&self, written: &Path) -> PathBuf {
        match (&self.folder, written.strip_prefix(FOLDER)) {
            (Some(folder), Ok(rest)) => without_dots(&folder.join(rest)),
            _ => without_dots(&self.cwd.join(written)),
        }
    }

    /// Returns the working directory and those above it, up to the repository's root or `/`.
    pub(crate) fn upwards(&self) -> impl Iterator<Item = &Path> {
        let top = self.repository.as_deref();
        let mut is_done = false;
        self.cwd.ancestors().take(ANCESTORS_MAX).take_while(move |folder| {
            let goes_on = !is_done;
            is_done = top == Some(*folder);
            goes_on
        })
    }

    /// Tells whether a directory belongs to the project, by its path as it is written.
    pub(crate) fn is_in_project(&self, folder: &Path) -> bool {
        folder.starts_with(&self.project)
    }

    /// Makes a note if a link in the project led outside of it: a stranger may have made the link.
    pub(crate) fn link_outside(&self, found: &Path, real: &Path) -> Option<Note> {
        if !self.is_in_project(found) || real.starts_with(&self.real_project) {
            return None;
        }
        let (found, real) = (shown(found), shown(real));
        let message = format!("{found} is a link that leads out of the project, to {real}");
        Some(Note::new(Code::LinkOutside, Severity::Warning, message).with_source(file(&found)))
    }
}

fn below(folder: &Path, rest: &str) -> PathBuf {
    without_dots(&folder.join(rest.trim_start_matches('/')))
}
