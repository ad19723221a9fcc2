//! Permissions that a user gives to a workspace: to follow links out of the project, and to run the programs that its
//! configuration names, in the version that the user saw.
//!
//! Trust is by the real path of the workspace and by the content that it names: a hook does not run if its command,
//! environment, limits or files differ from the approved ones. The list is kept in the configuration directory, and not
//! used if that lies in the workspace itself. Text of a workspace needs no trust.

mod words;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use proem_core::digest::Digest;
use proem_core::fact::Absence;
use proem_core::limit::{SETTINGS_BYTES_MAX, TRUSTED_SCRIPT_BYTES_MAX};
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorCause, FileRole};
use crate::hooks::{ConfiguredHandler, ConfiguredHook, HookEvent};
use crate::observe::file::{Cap, ReadPolicy, canonical, read_bytes, read_text};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::settings::config;
use crate::settings::toml_file::parse_toml;

const FILE_NAME: &str = "trust.toml";
const ROLE: FileRole = FileRole::Trust;
const CAP: Cap = Cap::new(SETTINGS_BYTES_MAX);

const SCRIPT: Cap = Cap::new(TRUSTED_SCRIPT_BYTES_MAX);

/// The list of trusted workspaces, as the file has it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustList {
    #[serde(default)]
    workspace: Vec<TrustedWorkspace>,
}

/// A trusted workspace and its approved hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedWorkspace {
    /// Its real path.
    pub path: String,
    /// The hooks, as they were approved.
    #[serde(default)]
    pub hook: Vec<Approval>,
}

/// A hook at the time of its approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The name by which it is reported.
    pub name: String,
    /// The event on which it is called.
    pub event: HookEvent,
    /// The program and its arguments; none for a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The address of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The file with the token for a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Names of environment variables that it gets besides the usual ones.
    #[serde(default)]
    pub env: Vec<String>,
    /// The time that it may run.
    pub timeout_ms: u64,
    /// The most bytes that it may print, if the configuration sets a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes_max: Option<usize>,
    /// The files that the command names, also inside a word: the digest of one in the workspace, the real path of one
    /// elsewhere.
    pub files: BTreeMap<String, String>,
}

/// The state of a hook compared with its approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookState {
    /// The hook is unchanged.
    Approved,
    /// The listed properties have changed.
    Changed(Vec<String>),
    /// The hook was never approved.
    Unknown,
}

impl Approval {
    /// Describes a hook of the workspace at `root` as it is now.
    fn from_hook(hook: &ConfiguredHook, root: &Path) -> Result<Self, Error> {
        let now = Self {
            name: hook.name.clone(),
            event: hook.event,
            command: Vec::new(),
            url: None,
            token_file: None,
            env: Vec::new(),
            timeout_ms: u64::try_from(hook.time_max.as_millis()).unwrap_or(u64::MAX),
            output_bytes_max: hook.output_bytes_max,
            files: BTreeMap::new(),
        };
        let hook = match &hook.handler {
            ConfiguredHandler::Command(hook) => hook,
            ConfiguredHandler::Url(hook) => {
                let (url, token_file) = (Some(hook.url.as_str().to_owned()), hook.token_file.clone());
                return Ok(Self { url, token_file, ..now });
            }
        };
        let mut files = BTreeMap::new();
        // A bare name is a program from `PATH`, never one of the workspace.
        let words = hook.command.iter().enumerate().filter(|(index, word)| *index > 0 || word.contains('/'));
        for path in words.flat_map(|(_, word)| words::paths(word)) {
            if let Ok(real) = canonical(&hook.folder.join(path))
                && real.is_file()
            {
                files.insert(path.to_owned(), identity(&real, root)?);
            }
        }
        Ok(Self { command: hook.command.clone(), env: hook.env.clone(), files, ..now })
    }

    /// Tells whether the command may run more than [`files`](Self::files): a shell command line, or a word that names
    /// files in a way that is not understood. Programs that a script starts by itself are never included.
    #[must_use]
    pub fn is_open_ended(&self) -> bool {
        words::is_open_ended(&self.command)
    }

    /// Describes the changes in words.
    fn changes(&self, now: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let mut say = |is_other: bool, what: &str| changes.extend(is_other.then(|| what.to_owned()));
        say(self.command != now.command, "its command");
        say(self.url != now.url, "its address");
        say(self.token_file != now.token_file, "the file of its token");
        say(self.env != now.env, "the environment that it wants");
        let limits = |one: &Self| (one.timeout_ms, one.output_bytes_max);
        say(limits(self) != limits(now), "its limits");
        let names = self.files.keys().chain(now.files.keys().filter(|name| !self.files.contains_key(*name)));
        for name in names.filter(|name| self.files.get(*name) != now.files.get(*name)) {
            changes.push(format!("the file `{name}`"));
        }
        changes
    }
}

/// Returns the identity of a file that a command names: the digest of its bytes, or its real path outside of the
/// workspace.
fn identity(real: &Path, root: &Path) -> Result<String, Error> {
    if !real.starts_with(root) {
        return Ok(format!("path:{}", real.display()));
    }
    let bytes = read_bytes(real, &ReadPolicy::user(None, &[]), SCRIPT).map_err(|why| Error::File {
        role: FileRole::HookProgram,
        path: real.display().to_string(),
        why,
    })?;
    Ok(format!("sha256:{}", Digest::new(&bytes).hex()))
}

impl TrustedWorkspace {
    /// Compares a hook with its approval.
    pub(crate) fn judge(&self, hook: &ConfiguredHook) -> HookState {
        let same = |known: &&Approval| known.name == hook.name && known.event == hook.event;
        let Some(known) = self.hook.iter().find(same) else { return HookState::Unknown };
        match Approval::from_hook(hook, Path::new(&self.path)) {
            Ok(now) => match known.changes(&now) {
                changes if changes.is_empty() => HookState::Approved,
                changes => HookState::Changed(changes),
            },
            Err(error) => HookState::Changed(vec![error.to_string()]),
        }
    }

    /// Compares each hook that the workspace names now with its approval.
    pub fn states(&self) -> Result<Vec<(String, HookState)>, Error> {
        let hooks = config::hooks_of_workspace(Path::new(&self.path))?;
        Ok(hooks.iter().map(|hook| (hook.name.clone(), self.judge(hook))).collect())
    }
}

/// Returns the trust in a workspace, if there is any.
pub(crate) fn find(host: &Host, workspace: &Workspace) -> Result<Option<TrustedWorkspace>, Error> {
    let Some((file, root)) = places(host, &workspace.root()) else { return Ok(None) };
    let Some(root) = root.to_str() else { return Ok(None) };
    Ok(load(&file)?.workspace.into_iter().find(|trusted| trusted.path == root))
}

/// Tells whether the user trusts a workspace, or a folder of the same project that it lies in. A project inside of a
/// trusted one is a separate project.
pub(crate) fn covers(host: &Host, workspace: &Workspace, project: &Path) -> Result<bool, Error> {
    let Some((file, cwd)) = places(host, workspace.path()) else { return Ok(false) };
    let is_meant = |known: &TrustedWorkspace| {
        let path = Path::new(&known.path);
        cwd.starts_with(path) && path.starts_with(project)
    };
    Ok(load(&file)?.workspace.iter().any(is_meant))
}

/// Returns the path of the list and the real path of a directory. Returns `None` if the list lies in the directory,
/// whose files could then change it.
fn places(host: &Host, directory: &Path) -> Option<(PathBuf, PathBuf)> {
    if crate::observe::file::is_virtual() {
        return None;
    }
    let folder = host.config_dir()?;
    let root = canonical(directory).ok()?;
    let real = canonical(&folder).unwrap_or_else(|_| folder.clone());
    (!real.starts_with(&root)).then(|| (folder.join(FILE_NAME), root))
}

fn load(file: &Path) -> Result<TrustList, Error> {
    let path = file.display().to_string();
    match read_text(file, &ReadPolicy::user(None, &[]), CAP) {
        Ok(text) => parse_toml(&text, ROLE, &path),
        Err(Absence::NoSuchFile) => Ok(TrustList::default()),
        Err(why) => Err(Error::Config {
            role: ROLE,
            path,
            message: why.to_string(),
            hint: None,
            excerpt: None,
            cause: ErrorCause::new(why),
        }),
    }
}

/// Trusts a workspace to run the programs that it names, as they are now. Replaces earlier approvals.
pub fn add(host: &Host, workspace: &Workspace) -> Result<TrustedWorkspace, Error> {
    let (file, root) = places(host, workspace.path()).ok_or_else(nowhere)?;
    let path = root.to_str().ok_or_else(|| {
        Error::usage("cannot trust a workspace whose path is not UTF-8", "give its folder another name")
    })?;
    let hooks = config::hooks_of_workspace(&root)?;
    let hook = hooks.iter().map(|hook| Approval::from_hook(hook, &root)).collect::<Result<_, _>>()?;
    let trusted = TrustedWorkspace { path: path.to_owned(), hook };
    let mut book = load(&file)?;
    book.workspace.retain(|known| known.path != trusted.path);
    book.workspace.push(trusted.clone());
    book.workspace.sort_by(|a, b| a.path.cmp(&b.path));
    save(&file, &book)?;
    Ok(trusted)
}

/// Lists every trusted workspace, by path.
pub fn list(host: &Host) -> Result<Vec<TrustedWorkspace>, Error> {
    let Some(folder) = host.config_dir() else { return Ok(Vec::new()) };
    Ok(load(&folder.join(FILE_NAME))?.workspace)
}

/// Removes the trust in a workspace, by its listed path or a path that leads there; returns whether it was trusted.
pub fn remove(host: &Host, path: &Path) -> Result<bool, Error> {
    let folder = host.config_dir().ok_or_else(nowhere)?;
    let file = folder.join(FILE_NAME);
    let mut book = load(&file)?;
    let real = canonical(path).unwrap_or_else(|_| path.to_owned());
    let is_meant = |known: &TrustedWorkspace| [path, &real].contains(&Path::new(&known.path));
    if !book.workspace.iter().any(is_meant) {
        return Ok(false);
    }
    book.workspace.retain(|known| !is_meant(known));
    save(&file, &book)?;
    Ok(true)
}

fn nowhere() -> Error {
    Error::usage(
        "cannot trust a workspace: there is no configuration directory outside of it",
        "set PROEM_CONFIG_DIR to an absolute path elsewhere",
    )
}

/// Writes the list in one step, readable by the user alone.
fn save(file: &Path, book: &TrustList) -> Result<(), Error> {
    let failed = |why: std::io::Error| Error::Write { path: file.display().to_string(), why };
    let text = toml::to_string(book).map_err(|error| failed(std::io::Error::other(error)))?;
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder).map_err(failed)?;
    let beside = folder.join(format!("{FILE_NAME}.{}", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&beside).and_then(|mut out| {
        out.write_all(text.as_bytes())?;
        out.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, file)).map_err(|why| {
        drop(fs::remove_file(&beside));
        failed(why)
    })
}
