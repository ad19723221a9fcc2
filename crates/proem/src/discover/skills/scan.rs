//! Searches one directory of skills, depth first, by entry name.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use proem_core::fact::Absence;
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::limit::{DIRECTORY_ENTRIES_MAX, SKILL_DEPTH_MAX, SKILL_FOLDERS_MAX};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::SkillFolders;
use proem_core::text_safety::confusable::is_variant;
use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::head::{self, HEAD_BYTES_MAX, HeadResult};
use super::{Root, Search, SkillPlace, entry};
use crate::discover::ignored::{self, Reader, Rules};
use crate::error::reason;
use crate::observe::deadline;
use crate::observe::file::{self, Identity, Look};
use crate::observe::listing_order;

const FILE_NAME: &[u8] = b"SKILL.md";

/// Searches a directory of skills; a missing one is only listed.
pub(super) fn directory(root: &Root, search: &mut Search<'_>) {
    // Checked before any access: the error must not reveal which files exist outside.
    if let Err(why @ (Absence::OutsideRoots | Absence::PathEscape)) =
        search.policy.check_as_written(&root.path)
    {
        return search.out_of_reach(&root.path, &why);
    }
    let Some(folder) = open_allowed(&root.path, search) else { return };
    let mut walk = Walk {
        root,
        search,
        chain: Vec::new(),
        seen: BTreeSet::new(),
        rules: Vec::new(),
        folders: 0,
        buffer: Vec::with_capacity(HEAD_BYTES_MAX),
    };
    walk.folder(&folder, &root.path);
}

/// Opens a folder that a link may lead to, and checks the opened folder with the policy: the path may lead elsewhere by
/// now.
fn open_allowed(path: &Path, search: &mut Search<'_>) -> Option<OwnedFd> {
    let opened = open_folder(path).map_err(|error| match error {
        Errno::NOTDIR if file::exists(path) => Absence::Unreadable("it is not a directory".to_owned()),
        error => absence(&error.into()),
    });
    let opened = opened
        .and_then(|folder| Ok((file::real_path(&folder, path).map_err(|error| absence(&error))?, folder)));
    match opened {
        Ok((real, folder)) => {
            // Tests the path of the file in it: a folder of secrets is recognised by its location.
            if let Err(why) = search.policy.check_opened(&path.join("SKILL.md"), &real.join("SKILL.md")) {
                search.unread(path, &named_as_folder(why, &real));
                return None;
            }
            let note = search.places.link_outside(path, &real);
            search.found.notes.extend(note);
            return Some(folder);
        }
        Err(why) => search.unread(path, &search.policy.hide_absence(path, why)),
    }
    None
}

/// Replaces the file's name in a refusal by that of its folder.
fn named_as_folder(why: Absence, real: &Path) -> Absence {
    match why {
        Absence::OutsideProject(_) => Absence::OutsideProject(file::shown(real)),
        why => why,
    }
}

struct Walk<'w, 's> {
    root: &'w Root,
    search: &'w mut Search<'s>,
    /// The folders on the current path, so that a loop of links ends.
    chain: Vec<Identity>,
    /// The folders searched so far, so that each is searched once.
    seen: BTreeSet<Identity>,
    rules: Vec<Arc<Rules>>,
    folders: usize,
    buffer: Vec<u8>,
}

/// An entry of a folder.
struct Entry {
    name: Vec<u8>,
    kind: FileType,
}

impl Walk<'_, '_> {
    fn folder(&mut self, folder: &OwnedFd, path: &Path) {
        let Ok(identity) = identity(folder) else { return };
        if self.is_loop(identity, path) {
            return;
        }
        if !self.seen.insert(identity) {
            let (path, why) = (file::shown(path), Some("of a folder that was searched".to_owned()));
            let outcome = Outcome::Duplicate;
            return self.search.found.considered.push(FileOutcome { path, outcome, why });
        }
        file::watch(path, Look::Names);
        let (entries, ignore_files) = match list(folder, &self.search.recipe.also) {
            Ok(listed) => listed,
            Err(error) => return self.search.unread(path, &absence(&error.into())),
        };
        if entries.len() > DIRECTORY_ENTRIES_MAX {
            return self.search.over_limit(path, "it has too many entries");
        }
        let pushed = self.push_rules(path, |name| ignore_files.contains(&name));
        self.chain.push(identity);
        if self.search.recipe.below_skills {
            self.own_skill(folder, path);
        }
        for entry in &entries {
            self.entry(folder, path, entry);
        }
        self.chain.pop();
        if pushed {
            self.rules.pop();
        }
    }

    /// Takes the `SKILL.md` of a folder whose other folders are searched too.
    fn own_skill(&mut self, folder: &OwnedFd, path: &Path) {
        let opened = head::read_beneath(folder.as_fd(), FILE_NAME, &mut self.buffer);
        let (file, has) = (path.join("SKILL.md"), |file: &str| exists(folder, file.as_bytes()));
        if !matches!(opened, HeadResult::Missing) && self.is_skill(path, &file, &opened, has) {
            self.opened(&opened, &file, false);
        }
    }

    /// Tells whether a folder is already on the current path, and records it if so.
    fn is_loop(&mut self, identity: Identity, path: &Path) -> bool {
        let is_loop = self.chain.contains(&identity);
        if is_loop {
            let why = Some("of a folder that it lies in: a loop of links".to_owned());
            let (path, outcome) = (file::shown(path), Outcome::Duplicate);
            self.search.found.considered.push(FileOutcome { path, outcome, why });
        }
        is_loop
    }

    fn entry(&mut self, folder: &OwnedFd, parent: &Path, entry: &Entry) {
        if deadline::check().is_err() {
            return;
        }
        let path = parent.join(OsStr::from_bytes(&entry.name));
        let kind = match entry.kind {
            FileType::Symlink | FileType::Unknown => {
                // Paths outside are refused, whether they exist or not.
                let why = self.search.policy.hide_absence(&path, Absence::NoSuchFile);
                match target_kind(&path) {
                    Some(kind) if why == Absence::NoSuchFile => kind,
                    _ => return self.search.unread(&path, &why),
                }
            }
            kind => kind,
        };
        let is_folder = kind == FileType::Directory;
        let is_skill_file = self.chain.len() == 1 && self.root.files && entry.name.ends_with(b".md");
        if !is_folder && !is_skill_file {
            return self.other_file(&entry.name, &path);
        }
        if let Some(by) = self.excluding(&path, is_folder) {
            return self.search.ignored(&path, &by);
        }
        if !is_folder && self.search.policy.is_secret(&path) {
            self.search.unread(&path, &Absence::SecretPath);
        } else if !is_folder {
            self.file(folder, &entry.name, &path, true);
        } else if entry.kind == FileType::Directory {
            self.real_folder(folder, &entry.name, &path);
        } else {
            self.linked_folder(&path);
        }
    }

    /// Records a file that is not a skill. Notes a misspelt name, which would have no effect without any message.
    fn other_file(&mut self, name: &[u8], path: &Path) {
        if self.chain.len() > 1 && str::from_utf8(name).is_ok_and(|name| is_variant(name, "SKILL.md")) {
            let shown = file::shown(path);
            let message = format!("{shown} is not read: a skill's file is called `SKILL.md`, byte for byte");
            let note = Note::new(Code::NameVariant, Severity::Warning, message);
            self.search.found.notes.push(note.with_source(super::file(&shown)));
            let (outcome, why) = (Outcome::Malformed, Some("its name is not SKILL.md".to_owned()));
            self.search.found.considered.push(FileOutcome { path: shown, outcome, why });
        }
    }

    /// Searches a folder that is not a link: its `SKILL.md` is tried first.
    fn real_folder(&mut self, parent: &OwnedFd, name: &[u8], path: &Path) {
        let file = path.join("SKILL.md");
        file::watch(&file, Look::Names);
        let opened =
            below(name, FILE_NAME, |skill| head::read_beneath(parent.as_fd(), skill, &mut self.buffer));
        // Relative to the open folder: the path from the root need not be resolved again.
        let has = |file: &str| below(name, file.as_bytes(), |file| exists(parent, file));
        let is_last = !self.search.recipe.below_skills;
        if is_last && !matches!(opened, HeadResult::Missing) && self.is_skill(path, &file, &opened, has) {
            return self.opened(&opened, &file, false);
        }
        match rustix::fs::openat(parent, name, FOLDER_FLAGS.union(OFlags::NOFOLLOW), Mode::empty()) {
            Ok(folder) => self.descend(&folder, path),
            Err(error) => self.search.unread(path, &absence(&error.into())),
        }
    }

    /// Searches a link to a folder. It may lead anywhere, so the policy decides.
    fn linked_folder(&mut self, path: &Path) {
        let Some(folder) = open_allowed(path, self.search) else { return };
        if identity(&folder).is_ok_and(|identity| self.is_loop(identity, path)) {
            return;
        }
        let opened = head::read_beneath(folder.as_fd(), FILE_NAME, &mut self.buffer);
        let has = |file: &str| exists(&folder, file.as_bytes());
        let file = path.join("SKILL.md");
        let is_last = !self.search.recipe.below_skills;
        if is_last && !matches!(opened, HeadResult::Missing) && self.is_skill(path, &file, &opened, has) {
            return self.opened(&opened, &file, false);
        }
        self.descend(&folder, path);
    }

    /// Tells whether the `SKILL.md` of a folder makes it a skill: it is a file, and no rule excludes it.
    fn is_skill(
        &mut self,
        folder: &Path,
        path: &Path,
        opened: &HeadResult,
        has: impl Fn(&str) -> bool,
    ) -> bool {
        if matches!(opened, HeadResult::Careful) {
            match target_kind(path) {
                Some(FileType::RegularFile) => {}
                None | Some(FileType::Directory) => return false,
                Some(_) => {
                    if let Err(why) = file::check_regular(path) {
                        self.search.unread(path, &why);
                    }
                    return false;
                }
            }
        }
        let pushed = self.push_rules(folder, has);
        let by = self.excluding(path, false);
        if pushed {
            self.rules.pop();
        }
        if let Some(by) = &by {
            self.search.ignored(path, by);
        }
        by.is_none()
    }

    fn descend(&mut self, folder: &OwnedFd, path: &Path) {
        if self.chain.len() >= self.root.depth_max && self.root.depth_max < SKILL_DEPTH_MAX {
            return;
        }
        self.folders += 1;
        if self.folders > SKILL_FOLDERS_MAX {
            if self.folders == SKILL_FOLDERS_MAX + 1 {
                self.search.over_limit(path, "too many folders lie below this directory of skills");
            }
        } else if self.chain.len() >= SKILL_DEPTH_MAX {
            self.search.over_limit(path, "it lies too deep");
        } else {
            self.folder(folder, path);
        }
    }

    fn file(&mut self, folder: &OwnedFd, name: &[u8], path: &Path, is_in_root: bool) {
        file::watch(path, Look::Names);
        let opened = head::read_beneath(folder.as_fd(), name, &mut self.buffer);
        self.opened(&opened, path, is_in_root);
    }

    fn opened(&mut self, opened: &HeadResult, path: &Path, is_in_root: bool) {
        let spot = self.spot(path, is_in_root);
        match opened {
            HeadResult::Head(identity, bytes) => {
                let head = self.buffer.get(..*bytes).unwrap_or_default();
                let recipe = self.search.recipe;
                self.search.take(&spot, *identity, |location| entry::read(&spot, recipe, location, head));
            }
            HeadResult::Careful => self.search.linked_file(&spot),
            HeadResult::Missing => self.search.unread(path, &Absence::NoSuchFile),
            HeadResult::Failed(error) => self.search.unread(path, &absence(&(*error).into())),
        }
    }

    fn spot<'p>(&self, path: &'p Path, is_in_root: bool) -> SkillPlace<'p> {
        let Root { owner, named_by_file, .. } = *self.root;
        SkillPlace { path, owner, is_in_root, named_by_file: is_in_root && named_by_file }
    }

    /// Adds the rules of a folder, if it has any.
    fn push_rules(&mut self, folder: &Path, exists: impl Fn(&str) -> bool) -> bool {
        let is_free = self.search.recipe.also.contains(&SkillFolders::Ignored);
        if is_free || !ignored::NAMES.into_iter().any(&exists) {
            return false;
        }
        let ignores = self.search.places.ignores();
        let (rules, is_new) = ignores.rules_of(folder, Reader::Skills, exists, self.search.policy);
        if is_new {
            rules.unread.iter().for_each(|unread| self.search.unread_rules(unread));
        }
        let has_rules = rules.is_any();
        self.rules.extend(has_rules.then_some(rules));
        has_rules
    }

    /// Returns the ignore file that excludes a path.
    fn excluding(&self, path: &Path, is_folder: bool) -> Option<String> {
        self.search.places.ignores().excluding(&self.rules, path, is_folder)
    }
}

const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

fn identity(folder: &OwnedFd) -> Result<Identity, Errno> {
    rustix::fs::fstat(folder).map(|status| Identity::from_status(&status))
}

fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    file::look(path, Look::Skills);
    rustix::fs::open(&*file::on_disk(path), FOLDER_FLAGS, Mode::empty())
}

/// Returns the entries that may be skills or hold some, by name, and the ignore files.
fn list(folder: &OwnedFd, also: &[SkillFolders]) -> Result<(Vec<Entry>, Vec<&'static str>), Errno> {
    let (mut entries, mut ignore_files) = (Vec::new(), Vec::new());
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let is_searched = match name {
            b"." | b".." | b".git" => false,
            b"node_modules" => also.contains(&SkillFolders::NodeModules),
            name => !name.starts_with(b".") || also.contains(&SkillFolders::Hidden),
        };
        ignore_files.extend(ignored::is_ignore_file(name));
        if is_searched {
            entries.push(Entry { name: name.to_vec(), kind: entry.file_type() });
        }
        if entries.len() > DIRECTORY_ENTRIES_MAX {
            break;
        }
    }
    listing_order::arrange(&mut entries);
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((entries, ignore_files))
}

/// Calls `work` with the name of a file in a folder below the open one. Four names are needed for each skill, so they
/// are built without an allocation.
fn below<R>(folder: &[u8], file: &[u8], work: impl FnOnce(&[u8]) -> R) -> R {
    /// The longest folder name, a slash, and more than the longest file name used here.
    const BYTES_MAX: usize = 255 + 1 + 32;
    let mut room = [0; BYTES_MAX];
    let (bytes, start) = (folder.len() + 1 + file.len(), folder.len() + 1);
    let Some(name) = room.get_mut(..bytes) else { return work(&[folder, b"/", file].concat()) };
    name[..folder.len()].copy_from_slice(folder);
    name[folder.len()] = b'/';
    name[start..].copy_from_slice(file);
    work(name)
}

fn exists(folder: &OwnedFd, name: &[u8]) -> bool {
    rustix::fs::accessat(folder, name, Access::EXISTS, AtFlags::empty()).is_ok()
}

/// Returns the kind of a link's target.
fn target_kind(path: &Path) -> Option<FileType> {
    file::look(path, Look::Kind);
    let status = rustix::fs::stat(&*file::on_disk(path)).ok()?;
    Some(FileType::from_raw_mode(status.st_mode))
}

fn absence(error: &io::Error) -> Absence {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Absence::NoSuchFile,
        _ => Absence::Unreadable(reason(error)),
    }
}
