//! The configuration: `.proem/proem.toml` over `proem.toml` in the configuration directory over
//! defaults, with `PROEM_*` in the environment on top.
//!
//! Settings that widen what proem may do (environment names, secret files, time limits) are taken from the user's own
//! file only. Such a key in a workspace is ignored, with a note.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proem_core::fact::Absence;
use proem_core::limit::{GIT_TIME_MAX, SETTINGS_BYTES_MAX};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{Hygiene, Secrets};
use proem_core::source::Source;
use serde::Deserialize;

use crate::error::{Error, ErrorCause, FileRole};
use crate::hooks::{ConfiguredHook, HookKeys};
use crate::observe::file::{Cap, ReadPolicy, read_text, shown};
use crate::observe::host::Host;
use crate::observe::workspace::{FOLDER, Workspace};
use crate::settings::allow::{AllowFile, AllowKeys};
use crate::settings::toml_file::parse_toml;
use crate::settings::trust::{self, HookState, TrustedWorkspace};

/// The file's name, in either folder.
pub const FILE_NAME: &str = "proem.toml";

/// The profile of requests that name none, without a configuration.
pub const DEFAULT_PROFILE: &str = "default";

const CAP: Cap = Cap::new(SETTINGS_BYTES_MAX);

/// The place that a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    /// The default.
    Default,
    /// The user's file.
    User(PathBuf),
    /// The workspace's file.
    Workspace(PathBuf),
    /// A variable of the environment.
    Environment(&'static str),
}

impl SettingOrigin {
    /// Describes the place of the setting for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Default => "default".into(),
            Self::User(path) | Self::Workspace(path) => path.display().to_string(),
            Self::Environment(name) => format!("environment variable {name}"),
        }
    }
}

/// A value with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// The place that it comes from.
    pub origin: SettingOrigin,
}

impl<T> Setting<T> {
    const fn default(value: T) -> Self {
        Self { value, origin: SettingOrigin::Default }
    }

    fn set(&mut self, value: Option<T>, origin: &SettingOrigin) {
        if let Some(value) = value {
            *self = Self { value, origin: origin.clone() };
        }
    }
}

/// The effective configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The profile for requests that name none.
    pub profile: Setting<String>,
    /// A template file that replaces the base of the profile.
    pub template: Setting<Option<PathBuf>>,
    /// Environment variables that templates may insert.
    pub env_allow: Setting<Vec<String>>,
    /// Files that may be read although their names suggest a secret.
    pub files_allow: Setting<Vec<PathBuf>>,
    /// The time that all git commands of a build may take together.
    pub git_time_max: Setting<Duration>,
    /// The least strict treatment of hidden characters in files that a profile may choose.
    pub hygiene: Setting<Hygiene>,
    /// The least strict treatment of secrets in files that a profile may choose.
    pub secrets: Setting<Secrets>,
    /// True if a server reads files of its user that become text of prompts.
    pub serve_user_files: Setting<bool>,
    /// Hosts besides this machine that hooks with a URL may be sent to.
    pub hosts_allow: Setting<Vec<String>>,
    /// Programs and servers that take part in making prompts.
    pub hooks: Setting<Vec<ConfiguredHook>>,
    /// Findings that `proem check` does not count.
    pub allow: Vec<AllowFile>,
    /// Notes about settings that were ignored.
    pub notes: Vec<Note>,
}

/// A configuration file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Keys {
    profile: Option<String>,
    template: Option<String>,
    env: Option<EnvKeys>,
    files: Option<FilesKeys>,
    git: Option<GitKeys>,
    hosts: Option<HostsKeys>,
    hygiene: Option<Hygiene>,
    secrets: Option<Secrets>,
    hook: Option<Vec<HookKeys>>,
    check: Option<CheckKeys>,
    serve: Option<ServeKeys>,
}

/// The keys that a workspace may set. All other keys in its file are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PlainKeys {
    profile: Option<String>,
    template: Option<String>,
    check: Option<CheckKeys>,
}

/// The keys of [`PlainKeys`].
const PLAIN: [&str; 3] = ["profile", "template", "check"];

/// Settings that widen what proem may do, as they are written.
const SECURITY: [(&str, &str); 8] = [
    ("env", "[env]"),
    ("files", "[files]"),
    ("git", "[git]"),
    ("hook", "[[hook]]"),
    ("hosts", "[hosts]"),
    ("hygiene", "hygiene"),
    ("secrets", "secrets"),
    ("serve", "[serve]"),
];

/// The hooks of a file; its other keys are skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HookFile {
    hook: Vec<HookKeys>,
}

/// The key of hooks.
const HOOK: &str = "hook";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CheckKeys {
    allow: Vec<AllowKeys>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EnvKeys {
    allow: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FilesKeys {
    allow: Option<Vec<PathBuf>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HostsKeys {
    allow: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GitKeys {
    timeout_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServeKeys {
    user_files: Option<bool>,
}

impl Config {
    /// Reads the configuration that holds for `workspace` on `host`.
    pub fn load(host: &Host, workspace: &Workspace) -> Result<Self, Error> {
        let mut config = Self::load_user(host)?;
        config.notes.extend(workspace.folder_above().map(|folder| above(&folder, workspace)));
        config.take_workspace(host, workspace)?;
        config.take_environment(host, workspace);
        Ok(config)
    }

    /// Reads the configuration of the user alone.
    pub fn load_user(host: &Host) -> Result<Self, Error> {
        let mut config = Self {
            profile: Setting::default(DEFAULT_PROFILE.to_owned()),
            template: Setting::default(None),
            env_allow: Setting::default(Vec::new()),
            files_allow: Setting::default(Vec::new()),
            git_time_max: Setting::default(GIT_TIME_MAX),
            hygiene: Setting::default(Hygiene::Report),
            secrets: Setting::default(Secrets::Report),
            hosts_allow: Setting::default(Vec::new()),
            serve_user_files: Setting::default(false),
            hooks: Setting::default(Vec::new()),
            allow: Vec::new(),
            notes: Vec::new(),
        };
        if let Some(folder) = host.config_dir() {
            config.take_user(&folder.join(FILE_NAME), &ReadPolicy::user(host.home().as_deref(), &[]))?;
        }
        Ok(config)
    }

    fn take_user(&mut self, path: &Path, policy: &ReadPolicy) -> Result<(), Error> {
        let Some(keys) = read(path, policy)? else { return Ok(()) };
        let origin = SettingOrigin::User(path.to_owned());
        self.env_allow.set(keys.env.as_ref().and_then(|env| env.allow.clone()), &origin);
        let folder = path.parent().unwrap_or(path);
        let absolute = |paths: Vec<PathBuf>| paths.into_iter().map(|path| folder.join(path)).collect();
        self.files_allow
            .set(keys.files.as_ref().and_then(|files| files.allow.clone()).map(absolute), &origin);
        let timeout = keys.git.as_ref().and_then(|git| git.timeout_ms).map(Duration::from_millis);
        self.git_time_max.set(timeout, &origin);
        self.hygiene.set(keys.hygiene, &origin);
        self.secrets.set(keys.secrets, &origin);
        self.serve_user_files.set(keys.serve.as_ref().and_then(|serve| serve.user_files), &origin);
        self.hosts_allow.set(keys.hosts.as_ref().and_then(|hosts| hosts.allow.clone()), &origin);
        let hosts = &self.hosts_allow.value;
        let hooks = keys.hook.clone();
        let hooks =
            hooks.map(|all| all.into_iter().map(|hook| ConfiguredHook::new(hook, folder, hosts)).collect());
        self.hooks.set(hooks, &origin);
        let Keys { profile, template, check, .. } = keys;
        self.take_plain(PlainKeys { profile, template, check }, path, &origin, Path::new("/"));
        Ok(())
    }

    /// Takes the settings of a workspace, which is not trusted: keys that it may not set have no effect and cause no
    /// error.
    fn take_workspace(&mut self, host: &Host, workspace: &Workspace) -> Result<(), Error> {
        let path = &workspace.folder().join(FILE_NAME);
        let Some(text) = text_of(path, &workspace.own_files(host), WORKSPACE_ROLE)? else { return Ok(()) };
        let shown = path.display().to_string();
        let table: toml::Table = parse_toml(&text, WORKSPACE_ROLE, &shown)?;
        let trusted = if table.contains_key(HOOK) { trust::find(host, workspace)? } else { None };
        let may_set = |key: &str| PLAIN.contains(&key) || (key == HOOK && trusted.is_some());
        for key in table.keys().filter(|key| !may_set(key)) {
            self.notes.push(ignored(key, path));
        }
        if let Some(trusted) = &trusted {
            self.take_trusted(&text, path, trusted);
        }
        let keys = parse_toml(&text, WORKSPACE_ROLE, &shown)?;
        let project = path.parent().and_then(Path::parent).unwrap_or(path);
        self.take_plain(keys, path, &SettingOrigin::Workspace(path.to_owned()), project);
        Ok(())
    }

    /// Takes the hooks of a workspace that the user approved and that have not changed since.
    fn take_trusted(&mut self, text: &str, path: &Path, trusted: &TrustedWorkspace) {
        let Ok(HookFile { hook }) = toml::from_str(text) else {
            self.notes.push(ignored(HOOK, path));
            return;
        };
        let folder = path.parent().unwrap_or(path);
        let hosts = self.hosts_allow.value.clone();
        for hook in hook.into_iter().map(|keys| ConfiguredHook::new(keys, folder, &hosts)) {
            match trusted.judge(&hook) {
                HookState::Approved => {
                    if self.hooks.origin == SettingOrigin::Default {
                        self.hooks.origin = SettingOrigin::Workspace(path.to_owned());
                    }
                    self.hooks.value.push(hook);
                }
                HookState::Changed(what) => self.notes.push(changed(&hook.name, &what.join(", "), path)),
                HookState::Unknown => self.notes.push(changed(&hook.name, "it was not there", path)),
            }
        }
    }

    /// Takes the settings that any file may have. Paths are relative to the file that names them.
    fn take_plain(&mut self, keys: PlainKeys, path: &Path, origin: &SettingOrigin, home: &Path) {
        let folder = path.parent().unwrap_or(path);
        if let Some(check) = keys.check {
            let is_of_repository = matches!(origin, SettingOrigin::Workspace(_));
            let (origin, folder) = (path.to_owned(), home.to_owned());
            self.allow.push(AllowFile { keys: check.allow, origin, folder, is_of_repository });
        }
        self.profile.set(keys.profile, origin);
        let template = keys.template.map(|template| Some(folder.join(template)));
        self.template.set(template, origin);
    }

    fn take_environment(&mut self, host: &Host, workspace: &Workspace) {
        if let Ok(folder) = host.env("PROEM_CONFIG_DIR")
            && !folder.is_empty()
            && !folder.starts_with('/')
        {
            let message = format!("PROEM_CONFIG_DIR is ignored: `{folder}` is not an absolute path");
            self.notes.push(Note::new(Code::IgnoredSetting, Severity::Warning, message));
        }
        let set = |name| host.env(name).ok().filter(|value| !value.is_empty());
        self.profile.set(set("PROEM_PROFILE"), &SettingOrigin::Environment("PROEM_PROFILE"));
        let template = set("PROEM_TEMPLATE").map(|path| Some(workspace.path().join(path)));
        self.template.set(template, &SettingOrigin::Environment("PROEM_TEMPLATE"));
    }
}

/// Returns the hooks that the workspace at `root` names, trusted or not.
pub(crate) fn hooks_of_workspace(root: &Path) -> Result<Vec<ConfiguredHook>, Error> {
    let folder = root.join(FOLDER);
    let path = folder.join(FILE_NAME);
    let policy = ReadPolicy::beneath(&[root.to_owned()], None, &[]);
    let Some(text) = text_of(&path, &policy, WORKSPACE_ROLE)? else { return Ok(Vec::new()) };
    let HookFile { hook } = parse_toml(&text, WORKSPACE_ROLE, &path.display().to_string())?;
    Ok(hook.into_iter().map(|keys| ConfiguredHook::new(keys, &folder, &[])).collect())
}

/// Notes that the settings come from a folder above the working directory.
fn above(folder: &Path, workspace: &Workspace) -> Note {
    let (folder, cwd) = (shown(folder), shown(workspace.path()));
    let message = format!("the settings in {folder} apply to {cwd}, which has no `{FOLDER}` of its own");
    Note::new(Code::WorkspaceAbove, Severity::Info, message)
        .with_hint(format!("make a `{FOLDER}` in the working directory to use other settings there"))
}

fn changed(hook: &str, what: &str, path: &Path) -> Note {
    let hook = shown(Path::new(hook));
    let message = format!("the hook `{hook}` does not run: since it was approved, this has changed: {what}");
    Note::new(Code::HookChanged, Severity::Warning, message)
        .with_hint("look at it, then approve it with `proem trust add`")
        .with_source(Source::File { path: shown(path).into(), place: None })
}

fn ignored(key: &str, path: &Path) -> Note {
    let place = shown(path);
    let security = SECURITY.iter().find(|(known, _)| *known == key);
    let (message, hint) = match security {
        Some((_, written)) => (
            format!("`{written}` in {place} is ignored: a workspace may not set it"),
            match *written {
                "[[hook]]" => "look at it, then allow it with `proem trust add`",
                _ => "move it to proem.toml in your configuration directory; `proem config` shows its path",
            },
        ),
        None => (
            format!("`{}` in {place} is ignored: a workspace has no such setting", shown(Path::new(key))),
            "a workspace may set `profile`, `template` and `[[check.allow]]`",
        ),
    };
    Note::new(Code::IgnoredSetting, Severity::Warning, message)
        .with_hint(hint)
        .with_source(Source::File { path: place.into(), place: None })
}

/// The role of the user's file in errors.
const ROLE: FileRole = FileRole::Configuration;
const WORKSPACE_ROLE: FileRole = FileRole::WorkspaceConfiguration;

/// Reads a file that need not exist.
fn read(path: &Path, policy: &ReadPolicy) -> Result<Option<Keys>, Error> {
    let text = text_of(path, policy, ROLE)?;
    text.map(|text| parse_toml(&text, ROLE, &path.display().to_string())).transpose()
}

fn text_of(path: &Path, policy: &ReadPolicy, role: FileRole) -> Result<Option<String>, Error> {
    match read_text(path, policy, CAP) {
        Ok(text) => Ok(Some(text)),
        Err(Absence::NoSuchFile) => Ok(None),
        Err(why) => Err(Error::Config {
            role,
            path: path.display().to_string(),
            message: why.to_string(),
            hint: None,
            excerpt: None,
            cause: ErrorCause::new(why),
        }),
    }
}
