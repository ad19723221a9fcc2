//! Finds profiles: the workspace's, then the user's, then the built-in ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use proem_core::builtin;
use proem_core::fact::Absence;
use proem_core::limit::{EXTENDS_DEPTH_MAX, SETTINGS_BYTES_MAX};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{self, Collection, Content, Layer, Profile, ProfileFile, SectionRecipe};
use proem_core::source::Source;

use crate::error::Error;
use crate::error::FileRole;
use crate::observe::file::{Cap, ReadPolicy, exists, read_dir, read_text};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::request::caller::Caller;

const CAP: Cap = Cap::new(SETTINGS_BYTES_MAX);

/// The place that a profile comes from, nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// `.proem/profiles` of the workspace.
    Workspace,
    /// `profiles` in the configuration directory.
    User,
    /// Compiled in.
    BuiltIn,
}

impl Home {
    /// The word for people and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::User => "user",
            Self::BuiltIn => "built-in",
        }
    }
}

/// A profile that a request can name.
#[derive(Debug, Clone)]
pub struct ProfileEntry {
    /// The name.
    pub name: String,
    /// The place that it comes from.
    pub home: Home,
    /// The file, unless it is compiled in.
    pub path: Option<PathBuf>,
    /// The purpose of the profile, or the reason why it cannot be read.
    pub description: Result<String, String>,
}

/// The folders that are searched for profiles.
#[derive(Debug)]
pub struct Profiles {
    workspace: Option<PathBuf>,
    user: Option<PathBuf>,
    notes: Vec<Note>,
    workspace_policy: ReadPolicy,
    user_policy: ReadPolicy,
}

/// A profile with all inherited values resolved, and notes about how it was found.
#[derive(Debug)]
pub struct ResolvedProfile {
    /// The profile.
    pub profile: Arc<Profile>,
    /// True if any part of it was written by the workspace.
    pub is_of_workspace: bool,
    /// Notes, for example that a file of the workspace hides a built-in profile.
    pub notes: Vec<Note>,
}

struct ProfileText {
    name: String,
    home: Home,
    origin: String,
    file: Arc<ProfileFile>,
}

impl Profiles {
    /// Sets the folders to search; reads nothing yet.
    #[must_use]
    pub fn new(host: &Host, workspace: &Workspace) -> Self {
        let folder = workspace.folder().join("profiles");
        let workspace_policy = workspace.own_files(host);
        let is_outside =
            crate::observe::file::canonical(&folder).is_ok_and(|folder| !workspace_policy.allows(&folder));
        let notes = is_outside.then(|| outside(&folder)).into_iter().collect();
        Self {
            workspace: (!is_outside).then_some(folder),
            notes,
            user: host.config_dir().map(|folder| folder.join("profiles")),
            workspace_policy,
            user_policy: ReadPolicy::user(host.home().as_deref(), &[]),
        }
    }

    /// Finds a profile and everything that it extends.
    ///
    /// A profile that extends its own name starts from the one that it hides.
    pub fn find(&self, name: &str) -> Result<ResolvedProfile, Error> {
        let mut chain: Vec<ProfileText> = Vec::new();
        let mut wanted = Some((name.to_owned(), Home::Workspace));
        while let Some((next, from)) = wanted {
            let text =
                self.text(&next, from).map_err(|error| error.named_by(chain.last().map(|by| &*by.origin)))?;
            let is_repeated = chain.iter().any(|earlier| earlier.origin == text.origin);
            let extends = text.file.extends().map(str::to_owned);
            let hidden =
                if extends.as_deref() == Some(&next) { text.home.below() } else { Some(Home::Workspace) };
            chain.push(text);
            if is_repeated || chain.len() > EXTENDS_DEPTH_MAX || (extends.is_some() && hidden.is_none()) {
                return Err(Error::ProfileChain {
                    chain: chain.into_iter().map(|text| text.origin).collect(),
                });
            }
            wanted = extends.zip(hidden);
        }
        self.resolve(name, chain)
    }

    fn resolve(&self, name: &str, chain: Vec<ProfileText>) -> Result<ResolvedProfile, Error> {
        let is_of_workspace = chain.iter().any(|text| text.home == Home::Workspace);
        let mut notes: Vec<Note> =
            self.notes.iter().cloned().chain(chain.iter().filter_map(|text| self.hides(text))).collect();
        let is_built_in = chain.iter().all(|text| text.home == Home::BuiltIn);
        let layer = |text: ProfileText| Layer { origin: text.origin, file: Arc::unwrap_or_clone(text.file) };
        let resolve = || profile::resolve(name, chain.into_iter().rev().map(layer).collect());
        let profile = if is_built_in { once(&RESOLVED, name, resolve)? } else { Arc::new(resolve()?) };
        notes.extend(profile.sections.iter().filter_map(|section| empty_deny(&profile, section)));
        Ok(ResolvedProfile { profile, is_of_workspace, notes })
    }

    /// Notes that a file takes the place of another profile of the same name.
    fn hides(&self, text: &ProfileText) -> Option<Note> {
        let hidden = self.text_if_any(&text.name, text.home.below()?).ok()??;
        let message = format!("profile `{}` is {}, which hides {}", text.name, text.origin, hidden.origin);
        let severity = if text.home == Home::Workspace { Severity::Warning } else { Severity::Info };
        let source = Source::File { path: text.origin.clone().into(), place: None };
        Some(Note::new(Code::Shadowed, severity, message).with_source(source))
    }

    /// Returns the profiles that a request may name.
    pub fn from_request(request: &Request, caller: Caller) -> Result<Self, Error> {
        let host = Host::observe(request, caller)?;
        Ok(Self::new(&host, &Workspace::find(&host, request.cwd.as_deref())?))
    }

    /// Lists every name once, with the nearest profile of that name.
    #[must_use]
    pub fn list(&self) -> Vec<ProfileEntry> {
        let mut names: BTreeSet<String> =
            builtin::PROFILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        for folder in [&self.workspace, &self.user].into_iter().flatten() {
            names.extend(names_in(folder));
        }
        names.into_iter().map(|name| self.listed(name)).collect()
    }

    fn listed(&self, name: String) -> ProfileEntry {
        let home = [Home::Workspace, Home::User]
            .into_iter()
            .find(|home| self.path(*home, &name).is_some_and(|path| exists(&path)))
            .unwrap_or(Home::BuiltIn);
        let description = self
            .find(&name)
            .map(|found| found.profile.description.clone())
            .map_err(|error| error.to_string());
        ProfileEntry { path: self.path(home, &name), name, home, description }
    }

    fn path(&self, home: Home, name: &str) -> Option<PathBuf> {
        let folder = match home {
            Home::Workspace => self.workspace.as_ref(),
            Home::User => self.user.as_ref(),
            Home::BuiltIn => None,
        };
        folder.map(|folder| folder.join(format!("{name}.toml")))
    }

    /// Reads the nearest file of this name, in `from` or a later place.
    fn text(&self, name: &str, from: Home) -> Result<ProfileText, Error> {
        if !is_name(name) {
            return Err(self.unknown(&name.escape_debug().to_string()));
        }
        self.text_if_any(name, from)?.ok_or_else(|| self.unknown(name))
    }

    fn text_if_any(&self, name: &str, from: Home) -> Result<Option<ProfileText>, Error> {
        for home in [Home::Workspace, Home::User].into_iter().filter(|home| *home >= from) {
            let Some(path) = self.path(home, name) else { continue };
            let origin = path.display().to_string();
            let policy = if home == Home::Workspace { &self.workspace_policy } else { &self.user_policy };
            match read_text(&path, policy, CAP) {
                Ok(text) => {
                    let file = Arc::new(profile::parse(&text, &origin, name)?);
                    return Ok(Some(ProfileText { name: name.to_owned(), home, file, origin }));
                }
                Err(Absence::NoSuchFile) => {}
                Err(why) => return Err(Error::File { role: FileRole::Profile, path: origin, why }),
            }
        }
        let origin = format!("built-in {name}");
        let Some(file) = built_in(name, &origin)? else { return Ok(None) };
        Ok(Some(ProfileText { name: name.to_owned(), home: Home::BuiltIn, file, origin }))
    }

    fn unknown(&self, name: &str) -> Error {
        let mut known: BTreeSet<String> =
            builtin::PROFILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        known.extend([&self.workspace, &self.user].into_iter().flatten().flat_map(|folder| names_in(folder)));
        Error::UnknownProfile { name: name.to_owned(), known: known.into_iter().collect(), named_by: None }
    }
}

impl Home {
    const fn below(self) -> Option<Self> {
        match self {
            Self::Workspace => Some(Self::User),
            Self::User => Some(Self::BuiltIn),
            Self::BuiltIn => None,
        }
    }
}

/// Built-in profiles by name. They are the same for the life of the process.
type BuiltInCache<T> = Mutex<BTreeMap<String, Arc<T>>>;

static READ: BuiltInCache<ProfileFile> = Mutex::new(BTreeMap::new());
/// Resolved profiles that extend built-in profiles only.
static RESOLVED: BuiltInCache<Profile> = Mutex::new(BTreeMap::new());

fn built_in(name: &str, origin: &str) -> Result<Option<Arc<ProfileFile>>, Error> {
    let read = |text: &str| once(&READ, name, || profile::parse(text, origin, name));
    Ok(builtin::profile(name).map(read).transpose()?)
}

/// Returns the value with this name; makes it on first use.
fn once<T, E>(known: &BuiltInCache<T>, name: &str, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(name) {
        return Ok(Arc::clone(found));
    }
    let found = Arc::new(make()?);
    known.insert(name.to_owned(), Arc::clone(&found));
    Ok(found)
}

/// Notes that a section of a profile gives up the names that are never read.
fn empty_deny(profile: &Profile, section: &SectionRecipe) -> Option<Note> {
    let Content::Collected(Collection::Documents(rules)) = &section.content else { return None };
    rules.deny.as_ref().filter(|deny| deny.is_empty())?;
    let (name, id) = (&profile.name, &section.id);
    let message =
        format!("section `{id}` of the profile `{name}` has `deny = []`: it reads every name on its list");
    let key = format!("section.{id}.collect");
    let source = Source::Profile { profile: name.as_str().into(), key: key.into() };
    let note = Note::new(Code::EmptyDeny, Severity::Warning, message).with_source(source);
    Some(note.with_hint("leave `deny` out to keep the list of the profile that it extends"))
}

fn outside(folder: &Path) -> Note {
    let message =
        format!("profiles in {} are not used: it is a link that leaves the workspace", folder.display());
    Note::new(Code::RootNotAllowed, Severity::Warning, message)
}

/// The profile names in a folder; one that cannot be listed has none.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .filter(|name| is_name(name))
        .collect()
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_'))
}
