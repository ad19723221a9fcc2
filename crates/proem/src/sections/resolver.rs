//! Observes the facts that a template reads, each once, at one moment.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use proem_core::fact::{Absence, Fact, Facts};
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::limit::{FILE_BYTES_MAX, FILES_BYTES_MAX};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::Profile;
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::clip;
use proem_core::variable::{self, ReadFrom, Variable};

use crate::discover::SearchRoots;
use crate::error::Error;
use crate::observe::date_words::{local_date, long_date};
use crate::observe::file::{Cap, ReadPolicy, read_source_text};
use crate::observe::git::{Git, Reach};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::request::caller::Author;
use crate::request::caller::Caller;
use crate::sections::text_policy::Treatment;
use crate::settings::config::Config;

/// The text that follows a fact that was cut.
pub(crate) const CUT_MARKER: &str = "\n... [truncated]";

const FILE: Cap = Cap::new(FILE_BYTES_MAX);

/// Looks things up for one build.
pub(crate) struct Resolver<'b> {
    request: &'b Request,
    host: &'b Host,
    workspace: &'b Workspace,
    config: &'b Config,
    profile: Option<&'b Profile>,
    git: OnceCell<Git>,
    /// A second runner for templates of other authors, created on first use.
    guarded_git: OnceCell<Git>,
    considered: BTreeMap<(String, Author), FileOutcome>,
    notes: Vec<Note>,
    /// The bytes of all files that were read so far.
    files_bytes: usize,
    /// The error that stops the build, if a fact contains refused text.
    refusal: Option<Error>,
    /// The values of the facts of one section.
    seen: BTreeMap<String, Result<String, Absence>>,
}

impl<'b> Resolver<'b> {
    pub(crate) fn new(
        request: &'b Request,
        host: &'b Host,
        workspace: &'b Workspace,
        config: &'b Config,
    ) -> Self {
        Self {
            request,
            host,
            workspace,
            config,
            profile: None,
            git: OnceCell::new(),
            guarded_git: OnceCell::new(),
            considered: BTreeMap::new(),
            notes: Vec::new(),
            files_bytes: 0,
            refusal: None,
            seen: BTreeMap::new(),
        }
    }

    /// Uses the profile's values for facts that neither the request nor the host provides.
    pub(crate) const fn with_profile(mut self, profile: &'b Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Observes the wanted facts and nothing else.
    pub(crate) fn resolve(&mut self, wanted: &[&str], author: Author) -> Facts {
        let mut facts = Facts::new();
        for key in wanted {
            let fact = self.fact(key, author);
            facts.insert(key, fact);
        }
        facts
    }

    /// The facts that the request gives a value, and that do not change while a conversation lasts.
    pub(crate) fn given(&self) -> Vec<&'b str> {
        let is_lasting =
            |key: &str| variable::find(key).is_none_or(|variable| variable.stability() <= Stability::Session);
        let given = self.request.variables.iter().filter(|(_, value)| value.is_some());
        given.map(|(key, _)| key.as_str()).filter(|key| is_lasting(key)).collect()
    }

    /// Observes one fact, and records its value.
    pub(crate) fn fact(&mut self, key: &str, author: Author) -> Fact {
        let fact = self.observe(key, author);
        self.seen.insert(key.to_owned(), fact.value.clone());
        fact
    }

    /// Returns the values that were observed since the last call.
    pub(crate) fn take_seen(&mut self) -> BTreeMap<String, Result<String, Absence>> {
        std::mem::take(&mut self.seen)
    }

    /// Observes one fact.
    pub(crate) fn observe(&mut self, key: &str, author: Author) -> Fact {
        let known = variable::find(key);
        let stability = known.map_or(Stability::Session, Variable::stability);
        if let Some(given) = self.request.variables.get(key) {
            return Fact { value: given.clone().ok_or(Absence::SaidAbsent), stability, path: None };
        }
        let Some(variable) = known else { return self.undefined(key) };
        let (_, name) = variable::split(key);
        let given = |field: &Option<String>| field.clone().ok_or(Absence::NotGiven);
        // A variable without an arm does not compile.
        let value = match variable {
            Variable::SystemTime => self.utc("%Y-%m-%dT%H:%M:%S%.3fZ"),
            Variable::SystemDate => self.utc("%Y-%m-%d"),
            Variable::SystemClock => self.utc("%H:%M:%S"),
            Variable::SystemDatetime => self.utc("%Y-%m-%dT%H:%M:%SZ"),
            Variable::SystemLocalTime => self.local(long_date),
            Variable::SystemLocalDate => self.local(local_date),
            Variable::SystemOs => self.host.os(),
            Variable::SystemOsName => self.host.os_name(),
            Variable::SystemOsVersion => self.host.os_version(),
            Variable::SystemHostname => self.host.hostname(),
            Variable::SystemShell => self.host.shell(),
            Variable::SystemTimezone => self.host.timezone(),
            Variable::PromptCwd => Ok(self.workspace.cwd().to_owned()),
            Variable::PromptModel => given(&self.request.model),
            Variable::PromptConversationId => given(&self.request.conversation),
            Variable::PromptWorkspaceId => given(&self.request.workspace_id),
            Variable::PromptLanguage => given(&self.request.language),
            Variable::PromptBackend => given(&self.request.backend),
            Variable::PromptMcpServers => {
                self.request.mcp_servers.as_ref().map(|names| names.join(", ")).ok_or(Absence::NotGiven)
            }
            Variable::GitBranch => self.git(author).branch(),
            Variable::GitStatus => self.git(author).status(),
            Variable::GitDiff => self.git(author).diff(),
            Variable::Env => self.env(name),
            Variable::File => return self.file(name, author),
        };
        let value = match value {
            Ok(text) if variable.read_from() == ReadFrom::Git => Ok(self.treated(key, text, None)),
            value => value,
        };
        let value = value.map(|text| self.cut(key, text));
        Fact { value: value.or_else(|why| self.default(key).ok_or(why)), stability, path: None }
    }

    /// The fact for a key that the table of variables does not have.
    fn undefined(&self, key: &str) -> Fact {
        let (kind, name) = variable::split(key);
        if kind == variable::LITERAL {
            return Fact::given(format!("[{name}]"), Stability::Release);
        }
        let why = if variable::is_known_type(kind) { Absence::UnknownName } else { self.unknown(kind) };
        Fact { value: self.default(key).ok_or(why), stability: Stability::Session, path: None }
    }

    /// Applies the profile's text policy to text from outside.
    fn treated(&mut self, key: &str, mut text: String, path: Option<&str>) -> String {
        let Some(profile) = self.profile else { return text };
        let source = match path {
            Some(path) => Source::File { path: path.into(), place: None },
            None => Source::Variable { key: key.into(), path: None },
        };
        let mut notes = Vec::new();
        if let Err(refusal) = Treatment::new(profile, self.config).treat(&mut text, &source, &mut notes) {
            self.refusal.get_or_insert(refusal);
        }
        notes.retain(|note| !self.notes.contains(note));
        self.notes.append(&mut notes);
        text
    }

    /// Fails if a fact contains refused text.
    pub(crate) fn take_refusal(&mut self) -> Result<(), Error> {
        self.refusal.take().map_or(Ok(()), Err)
    }

    /// Cuts a fact at the profile's limit for it. Values that the request gives are taken as they are.
    fn cut(&mut self, key: &str, text: String) -> String {
        let bytes_max = self.profile.and_then(|profile| profile.fact_bytes_max.get(key)).copied();
        let Some(bytes_max) = bytes_max.filter(|bytes_max| text.len() > *bytes_max) else { return text };
        let kept = clip(&text, bytes_max);
        let message = format!("`[{key}]` is cut after {} of {} bytes", kept.len(), text.len());
        let source = Source::Variable { key: key.into(), path: None };
        let note = Note::new(Code::OverLimit, Severity::Warning, message).with_source(source);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        format!("{kept}{CUT_MARKER}")
    }

    /// Returns the notes about facts that were cut.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn default(&self, key: &str) -> Option<String> {
        self.profile?.jinja.defaults.get(key).cloned()
    }

    /// Returns the files that were examined, by path.
    pub(crate) fn into_considered(self) -> Vec<FileOutcome> {
        self.considered.into_values().collect()
    }

    fn unknown(&self, kind: &str) -> Absence {
        let is_of_request = self.request.variables.keys().any(|key| variable::split(key).0 == kind);
        if is_of_request { Absence::UnknownName } else { Absence::UnknownType }
    }

    /// The moment of the build in UTC.
    fn utc(&self, format: &str) -> Result<String, Absence> {
        self.host.now().map(|now: Timestamp| now.strftime(format).to_string())
    }

    /// The moment of the build in the host's time zone. A missing or unknown zone falls back to UTC, and the text
    /// names it.
    fn local(&self, format: fn(Timestamp, &str) -> Option<String>) -> Result<String, Absence> {
        let now = self.host.now()?;
        let zone = self.host.timezone().unwrap_or_default();
        format(now, &zone).or_else(|| format(now, "UTC")).ok_or(Absence::NotOnThisHost("time zone"))
    }

    fn git(&self, author: Author) -> &Git {
        let time_max = self.config.git_time_max.value;
        match author {
            Author::User => self.own_git(),
            Author::Other => {
                self.guarded_git.get_or_init(|| Git::new(self.workspace.path(), time_max, Reach::Tree))
            }
        }
    }

    /// Git for the user's own templates and proem's.
    fn own_git(&self) -> &Git {
        self.git.get_or_init(|| {
            let reach = match self.host.caller() {
                Caller::Remote(workspaces) if !workspaces.is_empty() => Reach::Served(workspaces),
                Caller::Remote(_) | Caller::User => Reach::User,
            };
            Git::new(self.workspace.path(), self.config.git_time_max.value, reach)
        })
    }

    fn env(&self, name: &str) -> Result<String, Absence> {
        if self.allows_env(name) { self.host.env(name) } else { Err(Absence::EnvNotAllowed) }
    }

    /// Tells whether the user's configuration allows templates to read a variable of the environment.
    pub(crate) fn allows_env(&self, name: &str) -> bool {
        self.config.env_allow.value.iter().any(|allowed| allowed == name)
    }

    fn file(&mut self, name: &str, author: Author) -> Fact {
        let path = self.workspace.path().join(name);
        let shown = path.display().to_string();
        let value = match name {
            "" => Err(Absence::BadPath("the path is empty")),
            _ if self.files_bytes >= FILES_BYTES_MAX => Err(Absence::OverTotal(FILES_BYTES_MAX)),
            _ => read_source_text(&path, &self.read_policy(author), FILE),
        };
        self.files_bytes += value.as_ref().map_or(0, String::len);
        let (outcome, why) = match &value {
            Ok(_) => (Outcome::Used, None),
            Err(why) => (Outcome::from_absence(why), Some(why.to_string())),
        };
        self.considered.insert((shown.clone(), author), FileOutcome { path: shown.clone(), outcome, why });
        let value = value.map(|text| self.treated(name, text, Some(&shown)));
        Fact { value, stability: Stability::Project, path: Some(shown.into()) }
    }

    pub(crate) fn read_policy(&self, author: Author) -> ReadPolicy {
        let home = self.host.home();
        let allowed = &self.config.files_allow.value;
        match author {
            Author::User => ReadPolicy::user(home.as_deref(), allowed),
            Author::Other => {
                ReadPolicy::beneath(&self.roots(), home.as_deref(), allowed).served(self.host.caller(), &[])
            }
        }
    }

    /// The policy for files that a profile names: instruction files and skills, the user's own and the project's.
    pub(crate) fn discovery_policy(&self, author: Author, places: &SearchRoots) -> ReadPolicy {
        let policy = match author {
            Author::User if self.host.caller().is_remote() => {
                let own = self.user_folders();
                let roots: Vec<PathBuf> = self.roots().into_iter().chain(own.iter().cloned()).collect();
                ReadPolicy::beneath(&roots, self.host.home().as_deref(), &self.config.files_allow.value)
                    .served(self.host.caller(), &own)
            }
            author => self.read_policy(author),
        };
        policy.fenced(places.fence())
    }

    /// Returns the folders of the server's user in which a build for a remote client reads: none, unless the server was
    /// told to read the user's files. A client cannot give another home.
    fn user_folders(&self) -> Vec<PathBuf> {
        match self.host.caller() {
            Caller::Remote(workspaces) if workspaces.has_user_files() => {
                self.host.home().into_iter().chain(self.host.config_dir()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The working directory, and its git root where that belongs to it.
    fn roots(&self) -> Vec<PathBuf> {
        let mut roots = vec![self.workspace.path().to_owned()];
        roots.extend(self.own_git().root().filter(|root| self.host.reaches(root)).map(Path::to_owned));
        roots
    }
}
