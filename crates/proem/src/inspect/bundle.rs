//! Makes a bundle of a directory: the files that a build of its prompt reads, and what git says about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proem_core::fact::Absence;
use proem_core::limit::{DIRECTORY_ENTRIES_MAX, FILE_BYTES_MAX, SKILL_DEPTH_MAX, WORKSPACE_FILES_MAX};

use crate::discover::ignored;
use crate::engine::build;
use crate::error::{Error, ErrorCause, reason};
use crate::observe::file::{
    Cap, Look, ReadPolicy, canonical, exists, is_dir, read_dir, read_utf8, shown, with_looks, without_dots,
};
use crate::observe::git::{Git, Reach, root_of};
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::request::bundle::{Bundle, BundleGit};
use crate::request::caller::Caller;
use crate::settings::world::World;

/// A bundle of a directory, and the files that the build read and that are not in it.
#[derive(Debug)]
pub struct DirectoryBundle {
    /// The bundle.
    pub bundle: Bundle,
    /// The files outside of the directory, and those that may not be sent, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// Makes a bundle of the directory of a request: its git repository, or the directory alone outside of one.
pub fn bundle(request: &Request) -> Result<DirectoryBundle, Error> {
    let written = Workspace::open(request.cwd.as_deref())?;
    let cwd = canonical(written.path()).map_err(|error| Error::Cwd {
        path: written.cwd().to_owned(),
        why: reason(&error),
        cause: ErrorCause::new(error),
    })?;
    let request = Request { cwd: cwd.to_str().map(str::to_owned), ..request.clone() };
    let world = World::read(&request, Caller::User)?;
    let repository = root_of(&cwd).filter(|root| world.host.reaches(root));
    let git = repository.is_some().then(|| {
        let git = Git::new(&cwd, world.config.git_time_max.value, Reach::User);
        // The status comes first: the summary of changes needs it.
        BundleGit { branch: git.branch().ok(), status: git.status().ok(), diff: git.diff().ok() }
    });
    let home = world.host.home();
    let settings = world.host.config_dir();
    drop(world);
    let (built, looks) = with_looks(|| build(&request, Caller::User));
    built?;
    let root = repository.unwrap_or_else(|| cwd.clone());
    let policy = ReadPolicy::beneath(std::slice::from_ref(&root), home.as_deref(), &[]);
    let mut collection =
        Collection { root: &root, policy, settings, files: BTreeMap::new(), left_out: BTreeMap::new() };
    let looks: BTreeSet<(PathBuf, bool)> = looks
        .into_iter()
        .filter(|(_, look)| matches!(look, Look::Content | Look::Skills))
        .map(|(path, look)| (without_dots(&path), look == Look::Skills))
        .collect();
    for (path, is_skills) in looks {
        if is_skills { collection.skills(&path, 0) } else { collection.file(&path) }
    }
    let Collection { files, left_out, .. } = collection;
    let below = cwd.strip_prefix(&root).ok().and_then(Path::to_str).filter(|below| !below.is_empty());
    let bundle = Bundle::new(files, git, below.map(str::to_owned))?;
    Ok(DirectoryBundle { bundle, left_out: left_out.into_iter().collect() })
}

struct Collection<'c> {
    root: &'c Path,
    policy: ReadPolicy,
    /// The folder of the user's settings: the server has its own.
    settings: Option<PathBuf>,
    files: BTreeMap<String, String>,
    left_out: BTreeMap<String, String>,
}

impl Collection<'_> {
    /// Takes a file that the build read.
    fn file(&mut self, path: &Path) {
        if self.settings.as_ref().is_some_and(|settings| path.starts_with(settings))
            || !exists(path)
            || is_dir(path)
        {
            return;
        }
        let Some(name) = path.strip_prefix(self.root).ok().and_then(Path::to_str) else {
            let why = "it lies outside of the directory";
            self.left_out.insert(shown(path), why.to_owned());
            return;
        };
        // Git's own files are told as facts.
        if name.split('/').any(|part| part == ".git") || self.files.len() > WORKSPACE_FILES_MAX {
            return;
        }
        match read_utf8(path, &self.policy, Cap::new(FILE_BYTES_MAX)) {
            Ok(text) => drop(self.files.insert(name.to_owned(), text)),
            Err(Absence::NoSuchFile) => {}
            Err(why) => drop(self.left_out.insert(shown(path), why.to_string())),
        }
    }

    /// Takes what a search for skills reads in a folder: the skill, else the Markdown and ignore files and the folders below.
    fn skills(&mut self, folder: &Path, depth: usize) {
        if !is_dir(folder) || depth > SKILL_DEPTH_MAX {
            return;
        }
        if folder.strip_prefix(self.root).is_err() {
            self.left_out.insert(shown(folder), "it lies outside of the directory".to_owned());
            return;
        }
        for name in ignored::NAMES {
            self.file(&folder.join(name));
        }
        let skill = folder.join("SKILL.md");
        if depth > 0 && exists(&skill) {
            return self.file(&skill);
        }
        let entries = read_dir(folder).into_iter().flatten().flatten().take(DIRECTORY_ENTRIES_MAX);
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            let (path, bytes) = (folder.join(&name), name.as_encoded_bytes());
            if bytes.starts_with(b".") || name == "node_modules" {
                continue;
            }
            if is_dir(&path) {
                self.skills(&path, depth + 1);
            } else if depth == 0 && bytes.ends_with(b".md") {
                self.file(&path);
            }
        }
    }
}
