//! A commit's tree of files, laid out in a folder as far as a build uses it.
//!
//! A tree object names its entries, so an access to a path reads only the trees on the way to it. A file of which only
//! the existence matters is an empty file until its content is read. Names come from the repository and are not
//! trusted: this module makes the folders itself, never writes files through a link, and leaves out entries that git
//! refuses to check out.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use proem_core::fact::Absence;
use proem_core::limit::{GIT_SKILL_ENTRIES_MAX, LINKS_MAX, SKILL_DEPTH_MAX};
use rustix::fs::OFlags;

use super::objects::{EntryKind, Object, Objects, parse_tree};
use super::shadow::Shadow;
use crate::error::{ErrorCause, reason};
use crate::observe::file::Look;

/// Words of `.gitattributes` that make git check a file out with other bytes than it stores. Programs named there
/// (`filter`) never run, and on this system `text` alone changes nothing.
const CONVERTING: [&[u8]; 3] = [b"crlf", b"ident", b"working-tree-encoding"];

/// A tree of files that is laid out on demand.
pub(super) struct LazyTree {
    /// The folder in which its files are written: a real path.
    worktree: PathBuf,
    shadow: Shadow,
    objects: Objects,
    commit: String,
    /// The folders read so far, by path from the top.
    folders: BTreeMap<PathBuf, Folder>,
    /// True if settings of the repository convert line ends in every file.
    is_converted: bool,
    /// The `.git` of the laid-out tree.
    own: PathBuf,
    /// The object store of the repository.
    store: PathBuf,
    is_whole: bool,
    problem: Option<Problem>,
}

/// A path that could not be laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// The object store lacks an object that the build needs.
    Missing {
        /// The path from the top of the repository.
        path: PathBuf,
        /// The id of the object.
        id: String,
    },
    /// Git or the system failed.
    Failed { why: String, cause: ErrorCause },
}

#[derive(Default)]
struct Folder {
    entries: BTreeMap<OsString, Entry>,
    /// True if every name is laid out.
    is_listed: bool,
    /// True if files below are checked out with other bytes than are stored; `None` until that is known.
    is_converted: Option<bool>,
}

struct Entry {
    kind: EntryKind,
    id: String,
    laid: LaidExtent,
}

/// The extent to which an entry is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaidExtent {
    Nothing,
    /// Its name; for folders and links that is everything.
    Name,
    Content,
}

/// A step on the way to a path.
enum Step {
    /// A folder.
    Into,
    /// A link, and its target.
    Link(PathBuf),
    /// The end of the way.
    End,
}

/// The inputs of a laid-out tree, collected before the first access.
pub(super) struct Plan {
    pub(super) worktree: PathBuf,
    pub(super) commit: String,
    pub(super) own: PathBuf,
    pub(super) objects: PathBuf,
    pub(super) is_converted: bool,
}

impl LazyTree {
    pub(super) fn new(plan: Plan, shadow: Shadow) -> Result<Self, Absence> {
        let objects = Objects::new(&shadow)?;
        let Plan { worktree, own, objects: store, commit, is_converted } = plan;
        let folders = BTreeMap::new();
        let (is_whole, problem) = (false, None);
        Ok(Self { worktree, shadow, objects, commit, folders, is_converted, own, store, is_whole, problem })
    }

    /// Returns the first problem.
    pub(super) fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    /// Lays out the files that an access to `path` needs. A failure is kept as the [problem](Self::problem): the access
    /// then finds nothing, and the resulting build must be discarded.
    pub(super) fn prepare(&mut self, path: &Path, look: Look) {
        let Ok(relative) = path.strip_prefix(&self.worktree) else {
            if look == Look::Everything {
                self.lay_everything();
            }
            return;
        };
        if relative.starts_with(".git") {
            return;
        }
        if look == Look::Everything {
            return self.lay_everything();
        }
        if self.is_whole || self.problem.is_some() {
            return;
        }
        if let Err(problem) = self.walk(relative, look) {
            self.problem = Some(problem);
        }
    }

    /// Checks the whole tree out, as git does.
    fn lay_everything(&mut self) {
        if self.is_whole || self.problem.is_some() {
            return;
        }
        if let Err(why) = self.shadow.check_out(&self.commit, &self.worktree, &self.own.join("index")) {
            self.problem = Some(unfinished(why));
            return;
        }
        // A program may query git about the tree.
        let objects = self.own.join("objects");
        match fs::remove_dir(&objects).and_then(|()| symlink(&self.store, &objects)) {
            Ok(()) => self.is_whole = true,
            Err(error) => self.problem = Some(failed(error)),
        }
    }

    /// Follows a path from the top, links included, and lays out what is on the way.
    fn walk(&mut self, path: &Path, look: Look) -> Result<(), Problem> {
        let mut way = parts(path);
        let (mut at, mut links) = (PathBuf::new(), 0);
        while let Some(part) = way.pop_front() {
            if part == ".." {
                // Files above the repository are not part of the tree.
                if !at.pop() {
                    return Ok(());
                }
                continue;
            }
            match self.step(&at, &part, look, way.is_empty())? {
                Step::Into => at.push(part),
                Step::End => return Ok(()),
                Step::Link(target) => {
                    links += 1;
                    if target.is_absolute() || links > LINKS_MAX {
                        return Ok(());
                    }
                    let mut ahead = parts(&target);
                    ahead.append(&mut way);
                    way = ahead;
                }
            }
        }
        match look {
            Look::Names => self.list(&at),
            Look::Skills => self.list_skills(&at),
            Look::Kind | Look::Content | Look::Everything => Ok(()),
        }
    }

    fn step(&mut self, at: &Path, name: &OsStr, look: Look, is_last: bool) -> Result<Step, Problem> {
        let Some(kind) = self.folder(at)?.entries.get(name).map(|entry| entry.kind) else {
            return Ok(Step::End);
        };
        self.lay_name(at, name)?;
        match kind {
            EntryKind::Folder => Ok(Step::Into),
            EntryKind::Link => {
                let target = fs::read_link(self.worktree.join(at).join(name)).map_err(failed)?;
                Ok(Step::Link(target))
            }
            EntryKind::File if is_last && look == Look::Content => {
                self.lay_content(at, name).map(|()| Step::End)
            }
            EntryKind::File | EntryKind::Submodule => Ok(Step::End),
        }
    }

    /// Returns the entries of `at`, which must be a folder.
    fn folder(&mut self, at: &Path) -> Result<&mut Folder, Problem> {
        if !self.folders.contains_key(at) {
            let id = match at.parent().zip(at.file_name()) {
                None => format!("{}^{{tree}}", self.commit),
                Some((above, name)) => {
                    let above = self.folder(above)?;
                    above.entries.get(name).map(|entry| entry.id.clone()).unwrap_or_default()
                }
            };
            let tree = self.read(at, &id)?;
            let id_bytes = self.commit.len() / 2;
            let listed = parse_tree(&tree, id_bytes)
                .ok_or_else(|| plain(format!("the tree of `{}` is damaged", shown(at))))?;
            let entries = listed.into_iter().map(|entry| {
                let laid = LaidExtent::Nothing;
                (entry.name, Entry { kind: entry.kind, id: entry.id, laid })
            });
            let folder = Folder { entries: entries.collect(), ..Folder::default() };
            self.folders.insert(at.to_owned(), folder);
        }
        self.folders.get_mut(at).ok_or_else(|| plain("a folder is not known"))
    }

    /// Reads an object that the build needs. One that is too large has no bytes; readers refuse it by its size.
    fn read(&mut self, path: &Path, id: &str) -> Result<Vec<u8>, Problem> {
        match self.objects.read(id, &self.shadow) {
            Ok(Object::Bytes(bytes)) => Ok(bytes),
            Ok(Object::Missing) => Err(Problem::Missing { path: path.to_owned(), id: id.to_owned() }),
            Ok(Object::TooLarge(bytes)) => {
                Err(plain(format!("`{}` has {bytes} bytes, which is too much", shown(path))))
            }
            Err(why) => Err(unfinished(why)),
        }
    }

    /// Creates an entry without its content.
    fn lay_name(&mut self, at: &Path, name: &OsStr) -> Result<(), Problem> {
        let place = self.worktree.join(at).join(name);
        let path = at.join(name);
        let Some(entry) = self.folder(at)?.entries.get_mut(name) else { return Ok(()) };
        if entry.laid != LaidExtent::Nothing {
            return Ok(());
        }
        entry.laid = LaidExtent::Name;
        let (kind, id) = (entry.kind, entry.id.clone());
        let made = match kind {
            EntryKind::Folder | EntryKind::Submodule => make_folder(&place),
            EntryKind::File => new_file(&place).map(drop),
            EntryKind::Link => symlink(OsString::from_vec(self.read(&path, &id)?), &place),
        };
        made.map_err(failed)
    }

    /// Writes the content of a file that was created before.
    fn lay_content(&mut self, at: &Path, name: &OsStr) -> Result<(), Problem> {
        let place = self.worktree.join(at).join(name);
        let path = at.join(name);
        let Some(entry) = self.folder(at)?.entries.get_mut(name) else { return Ok(()) };
        if entry.kind != EntryKind::File || entry.laid == LaidExtent::Content {
            return Ok(());
        }
        entry.laid = LaidExtent::Content;
        let id = entry.id.clone();
        let is_converted = name != ".gitattributes" && self.is_converted(at)?;
        match self.objects.read(&id, &self.shadow) {
            Ok(Object::Missing) => Err(Problem::Missing { path, id }),
            Err(why) => Err(unfinished(why)),
            // Every reader refuses a file of this size; the size is all that it needs.
            Ok(Object::TooLarge(bytes)) => {
                rewritten(&place).and_then(|file| file.set_len(bytes)).map_err(failed)
            }
            Ok(Object::Bytes(bytes)) => {
                let bytes = if is_converted { self.converted(&path, &id)? } else { bytes };
                rewritten(&place).and_then(|mut file| file.write_all(&bytes)).map_err(failed)
            }
        }
    }

    /// Reads a file as git checks it out. Its attributes are laid out already.
    fn converted(&self, path: &Path, id: &str) -> Result<Vec<u8>, Problem> {
        let mut option = OsString::from("--path=");
        option.push(path);
        let arguments = [OsStr::new("cat-file"), OsStr::new("--filters"), &option, OsStr::new(id)];
        let read = self.shadow.run_for_bytes(&arguments, &self.worktree, &self.own.join("index"));
        read.map_err(unfinished)
    }

    /// Tells whether files of a folder may be checked out in other bytes than they are stored in.
    fn is_converted(&mut self, at: &Path) -> Result<bool, Problem> {
        if self.is_converted {
            return Ok(true);
        }
        let mut is_converted = false;
        let mut above: Vec<&Path> = at.ancestors().collect();
        above.reverse();
        for folder in above {
            let own = match self.folder(folder)?.is_converted {
                Some(known) => known,
                None => self.has_converting_attributes(folder)?,
            };
            self.folder(folder)?.is_converted = Some(own);
            is_converted |= own;
        }
        Ok(is_converted)
    }

    fn has_converting_attributes(&mut self, at: &Path) -> Result<bool, Problem> {
        let name = OsStr::new(".gitattributes");
        if self.folder(at)?.entries.get(name).is_none_or(|entry| entry.kind != EntryKind::File) {
            return Ok(false);
        }
        self.lay_name(at, name)?;
        self.lay_content(at, name)?;
        let id = self.folder(at)?.entries.get(name).map(|entry| entry.id.clone()).unwrap_or_default();
        let text = self.read(&at.join(name), &id)?;
        Ok(CONVERTING.iter().any(|word| memchr::memmem::find(&text, word).is_some()))
    }

    /// Lays out every name of a folder.
    fn list(&mut self, at: &Path) -> Result<(), Problem> {
        let folder = self.folder(at)?;
        if std::mem::replace(&mut folder.is_listed, true) {
            return Ok(());
        }
        let names: Vec<OsString> = folder.entries.keys().cloned().collect();
        names.iter().try_for_each(|name| self.lay_name(at, name))
    }

    /// Lays out a directory of skills and the files below it, as deep as skills are searched for.
    fn list_skills(&mut self, at: &Path) -> Result<(), Problem> {
        let mut folders = vec![(at.to_owned(), 0)];
        let mut left = GIT_SKILL_ENTRIES_MAX;
        while let Some((at, depth)) = folders.pop() {
            self.list(&at)?;
            let entries = self.folder(&at)?.entries.iter();
            let entries: Vec<(OsString, EntryKind)> =
                entries.map(|(name, entry)| (name.clone(), entry.kind)).take(left).collect();
            left -= entries.len();
            for (name, kind) in entries {
                let is_hidden = name.as_bytes().starts_with(b".");
                match kind {
                    EntryKind::Folder
                        if depth < SKILL_DEPTH_MAX + 1 && !is_hidden && name != "node_modules" =>
                    {
                        folders.push((at.join(name), depth + 1));
                    }
                    EntryKind::File if is_hidden || name.as_bytes().ends_with(b".md") => {
                        self.lay_content(&at, &name)?;
                    }
                    EntryKind::Link => self.walk(&at.join(name), Look::Content)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(part).collect()
}

/// Makes a folder. An existing entry must be a folder: on a file system that ignores case, it could be a link.
fn make_folder(place: &Path) -> io::Result<()> {
    match fs::create_dir(place) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(place)?.is_dir() { Ok(()) } else { Err(error) }
        }
        made => made,
    }
}

fn new_file(place: &Path) -> io::Result<fs::File> {
    OpenOptions::new().write(true).create_new(true).open(place)
}

/// Opens a file that was laid out, to write its content; never through a link.
fn rewritten(place: &Path) -> io::Result<fs::File> {
    let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
    OpenOptions::new().write(true).truncate(true).custom_flags(no_follow).open(place)
}

fn plain(why: impl Into<String>) -> Problem {
    Problem::Failed { why: why.into(), cause: ErrorCause::NONE }
}

fn unfinished(why: Absence) -> Problem {
    Problem::Failed { why: why.to_string(), cause: ErrorCause::new(why) }
}

fn failed(error: io::Error) -> Problem {
    let why = format!("cannot write into a temporary folder: {}", reason(&error));
    Problem::Failed { why, cause: ErrorCause::new(error) }
}

fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".into() } else { crate::observe::file::shown(path) }
}
