//! Errors of builds. Each message names the action, the thing, the problem and the fix.

mod build_failure;
mod cause;
mod template;

use std::{fmt, io};

use proem_core::bracket::PolicyError;
use proem_core::draft::TooLarge;
use proem_core::fact::Absence;
use proem_core::limit::{BUILD_CPU_MAX, EXTENDS_DEPTH_MAX};
use proem_core::profile::ProfileError;
use proem_core::source::Source;
use proem_core::text_safety::escape::{escape, escape_line};

pub use build_failure::ErrorPlace;
pub use cause::ErrorCause;
pub use proem_core::text::Excerpt;
pub use template::{TemplateError, TemplateErrorKind};

/// The party that can fix an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line, the request, a profile or the configuration is wrong.
    Usage,
    /// The input is valid, and the operation failed.
    Failed,
}

/// The purpose of a settings file that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileRole {
    /// The user's configuration.
    Configuration,
    /// The configuration of a workspace.
    WorkspaceConfiguration,
    /// The table of models.
    Models,
    /// The list of trusted workspaces.
    Trust,
    /// The program of a hook.
    HookProgram,
    /// A pack of assets.
    Pack,
    /// A profile.
    Profile,
    /// A template that the request or the configuration names.
    Template,
}

impl FileRole {
    /// Tells whether the file belongs to the user who runs proem, so that remote callers may not see its content.
    const fn is_of_host(self) -> bool {
        matches!(self, Self::Configuration | Self::Models | Self::Trust)
    }
}

impl fmt::Display for FileRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Configuration => "configuration",
            Self::WorkspaceConfiguration => "workspace's configuration",
            Self::Models => "table of models",
            Self::Trust => "list of trusted workspaces",
            Self::HookProgram => "program of a hook",
            Self::Pack => "pack",
            Self::Profile => "profile",
            Self::Template => "template",
        })
    }
}

/// The reason why a build was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// Its templates needed more work than one build may do.
    Work,
    /// It used up its CPU time.
    Cpu,
    /// The time of its [`Cancel`](crate::Cancel) was over.
    Time,
    /// Its [`Cancel`](crate::Cancel) was set.
    Cancelled,
}

impl fmt::Display for StopReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work => formatter.write_str("its templates compare, sort or copy too much"),
            Self::Cpu => write!(formatter, "it took more than {} s of CPU time", BUILD_CPU_MAX.as_secs()),
            Self::Time => formatter.write_str("the caller's time limit was reached"),
            Self::Cancelled => formatter.write_str("the caller cancelled it"),
        }
    }
}

/// An error that stopped a build.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The request is not valid.
    Request {
        /// The problem.
        message: String,
        /// The fix.
        hint: Option<String>,
        /// The line in question, if the request was JSON text.
        excerpt: Option<Box<Excerpt>>,
        /// The error of the parser, if any.
        cause: ErrorCause,
    },
    /// The working directory cannot be used.
    Cwd {
        /// The path as it was given.
        path: String,
        /// The reason.
        why: String,
        /// The error of the system, if any.
        cause: ErrorCause,
    },
    /// The profile does not exist.
    UnknownProfile {
        /// The name.
        name: String,
        /// The existing names.
        known: Vec<String>,
        /// The profile that extends it, if any.
        named_by: Option<String>,
    },
    /// A profile file cannot be used.
    Profile(Box<ProfileError>),
    /// Profiles that extend each other in a circle, or too many in a row.
    ProfileChain {
        /// The names, in the order of the chain.
        chain: Vec<String>,
    },
    /// A configuration file cannot be used.
    Config {
        /// The purpose of the file, for example `configuration` or `pack`.
        role: FileRole,
        /// The file.
        path: String,
        /// The problem.
        message: String,
        /// The fix.
        hint: Option<String>,
        /// The line in question.
        excerpt: Option<Box<Excerpt>>,
        /// The error of the parser or the reason why the file cannot be read, if any.
        cause: ErrorCause,
    },
    /// A file that the request or the configuration names cannot be used.
    File {
        /// The purpose of the file, for example `template`.
        role: FileRole,
        /// The path.
        path: String,
        /// The reason.
        why: Absence,
    },
    /// Another input is wrong.
    Usage {
        /// The problem.
        message: String,
        /// The fix.
        hint: String,
    },
    /// A message that the provider would refuse.
    Message {
        /// Its number in the conversation, from 0.
        index: usize,
        /// The provider.
        provider: &'static str,
        /// The reason.
        why: String,
        /// The error of the serializer, if any.
        cause: ErrorCause,
    },
    /// An instruction file exists and cannot be read, and the profile requires it.
    Instructions {
        /// The path.
        path: String,
        /// The reason.
        why: Absence,
    },
    /// A workflow file, or the folder of workflows, is not valid.
    Resident {
        /// The file or folder.
        path: String,
        /// The problem.
        message: String,
    },
    /// An asset cannot be loaded.
    NoAsset {
        /// The reason, with the reference.
        message: String,
        /// The fix.
        hint: Option<String>,
        /// The file or setting that names it.
        named_by: String,
        /// The field of the request that names it, if one does.
        field: Option<&'static str>,
    },
    /// A Jinja template cannot be used.
    Template(Box<TemplateError>),
    /// The rules by which a section of a profile collects files are not valid.
    SectionRules {
        /// The section.
        section: String,
        /// The profile.
        profile: String,
        /// The problem.
        why: String,
    },
    /// A profile names wording that the catalog does not have.
    NoWording {
        /// The key.
        key: String,
        /// The existing keys.
        known: Vec<String>,
        /// The section that names it.
        section: String,
    },
    /// A variable has no value, and the profile makes that an error.
    Policy {
        /// The template.
        template: Box<Source>,
        /// The variable.
        error: Box<PolicyError>,
    },
    /// A file contains something that the profile or the user's configuration refuses.
    Refused {
        /// The place.
        source: Option<Box<Source>>,
        /// The first finding.
        message: String,
        /// The number of further places.
        more: usize,
        /// The setting that refuses it.
        key: String,
    },
    /// A prompt exceeds its size limit.
    TooLarge(TooLarge),
    /// A build was stopped before it was done.
    Stopped {
        /// The reason.
        why: StopReason,
    },
    /// A file could not be written.
    Write {
        /// The path.
        path: String,
        /// The reason.
        why: io::Error,
    },
}

impl Error {
    /// The error for a word that names no provider.
    pub(crate) fn unknown_provider(unknown: &(impl fmt::Display + ?Sized), hint: Option<String>) -> Self {
        match hint {
            Some(hint) => Self::request_with_hint(unknown.to_string(), hint),
            None => Self::request(unknown.to_string()),
        }
    }

    /// Makes an error about the request.
    #[must_use]
    pub fn request(message: impl Into<String>) -> Self {
        Self::Request { message: message.into(), hint: None, excerpt: None, cause: ErrorCause::NONE }
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub(crate) fn caused_by(mut self, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        if let Self::Request { cause, .. }
        | Self::Cwd { cause, .. }
        | Self::Config { cause, .. }
        | Self::Message { cause, .. } = &mut self
        {
            *cause = ErrorCause::new(error);
        }
        self
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: hint.into() }
    }

    /// Makes an error about the request, with advice.
    #[must_use]
    pub fn request_with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Request {
            message: message.into(),
            hint: Some(hint.into()),
            excerpt: None,
            cause: ErrorCause::NONE,
        }
    }

    /// Adds the profile that extends the missing one.
    pub(crate) fn named_by(mut self, origin: Option<&str>) -> Self {
        if let Self::UnknownProfile { named_by, .. } = &mut self {
            *named_by = origin.map(str::to_owned);
        }
        self
    }

    /// Adds the field of the request that names a missing asset.
    pub(crate) fn in_field(mut self, name: &'static str) -> Self {
        if let Self::NoAsset { field, .. } = &mut self {
            *field = Some(name);
        }
        self
    }

    /// Tells whether a file of the user who runs proem is wrong. Remote callers cannot fix it and may not see its content.
    #[must_use]
    pub fn is_of_host(&self) -> bool {
        matches!(self, Self::Config { role, .. } | Self::File { role, .. } if role.is_of_host())
    }

    /// Returns the party that can fix the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Request { .. }
            | Self::Cwd { .. }
            | Self::UnknownProfile { .. }
            | Self::Profile(_)
            | Self::ProfileChain { .. }
            | Self::Config { .. }
            | Self::Usage { .. }
            | Self::Message { .. }
            | Self::NoAsset { .. }
            | Self::NoWording { .. }
            | Self::SectionRules { .. }
            | Self::Resident { .. }
            | Self::File { .. } => ErrorKind::Usage,
            Self::Template(error)
                if !matches!(error.kind, TemplateErrorKind::Limit | TemplateErrorKind::Nesting) =>
            {
                ErrorKind::Usage
            }
            Self::Instructions { .. }
            | Self::Template(_)
            | Self::Policy { .. }
            | Self::Refused { .. }
            | Self::TooLarge(_)
            | Self::Stopped { .. }
            | Self::Write { .. } => ErrorKind::Failed,
        }
    }

    /// Returns advice on how to fix the error.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Request { hint, .. } | Self::Config { hint, .. } | Self::NoAsset { hint, .. } => hint.clone(),
            Self::Template(error) => error.hint.clone(),
            Self::SectionRules { .. } => {
                Some("correct the profile; `proem profile show` says which file has the key".into())
            }
            Self::NoWording { known, .. } => Some(format!("the keys are: {}", known.join(", "))),
            Self::Cwd { .. } => {
                Some("name a directory that exists, with `--cwd` or `cwd` in the request".into())
            }
            Self::UnknownProfile { name, known, .. } => Some(unknown_profile_hint(name, known)),
            Self::Profile(error) => error.hint.clone(),
            Self::ProfileChain { chain } if is_circle(chain) => {
                Some("remove one `extends` of the circle".into())
            }
            Self::ProfileChain { .. } => {
                Some(format!("at most {EXTENDS_DEPTH_MAX} profiles may extend each other"))
            }
            Self::File { why, .. } => why.hint().map(Into::into),
            Self::Usage { hint, .. } => Some(hint.clone()),
            Self::Message { provider, .. } => Some(format!(
                "give messages as {provider} takes them, or as `{{\"role\": …, \"content\": \"text\"}}`"
            )),
            Self::Instructions { why, .. } => {
                Some(why.hint().unwrap_or("make it a readable text file, or remove it").to_owned())
            }
            Self::Resident { .. } => Some(
                "name it like `deploy-site.md`, and begin it with three lines: `---`, `description: …`, `---`".into(),
            ),
            Self::Policy { error, .. } => Some(format!(
                "put it into `[if {}]…[endif]`, give it with `--var {}=VALUE`, or set the profile's policy to `blank`",
                error.key, error.key
            )),
            Self::Refused { key, .. } => Some(format!(
                "take it out of the file (`proem check` finds all of it), or set `{key}` to less in the profile or the configuration"
            )),
            Self::TooLarge(_) => Some("leave out the largest inserted file".into()),
            Self::Stopped { why: StopReason::Work | StopReason::Cpu } => Some(
                "shorten the loops of templates, or leave out files and folders; the limits are listed by `proem config`".into(),
            ),
            Self::Stopped { .. } | Self::Write { .. } => None,
        }
    }

    /// Returns the wrong line, if the mistake is in the user's own text.
    #[must_use]
    pub fn excerpt(&self) -> Option<Excerpt> {
        match self {
            Self::Request { excerpt, .. } | Self::Config { excerpt, .. } => excerpt.as_deref().cloned(),
            Self::Profile(error) => Some(Excerpt { place: error.place?, line: error.line.clone()? }),
            Self::Template(error) => error.excerpt(),
            _ => None,
        }
    }
}

/// Tells whether the last profile of a chain occurs twice.
fn is_circle(chain: &[String]) -> bool {
    chain.split_last().is_some_and(|(last, before)| before.contains(last))
}

fn chain_problem(chain: &[String]) -> String {
    let why =
        if is_circle(chain) { "profiles extend each other in a circle" } else { "the chain is too long" };
    format!("{why}: {}", chain.join(" → "))
}

fn unknown_profile_hint(name: &str, known: &[String]) -> String {
    match proem_core::did_you_mean::nearest(name, known.iter().map(String::as_str)) {
        Some(near) if near == name => {
            "a profile that extends its own name needs one of that name to hide".into()
        }
        Some(near) => format!("did you mean `{near}`? there are: {}", known.join(", ")),
        None => format!("there are: {}", known.join(", ")),
    }
}

impl fmt::Display for Error {
    /// Writes the message. Quoted names may be hostile: they are escaped, so that nothing is hidden or controls a
    /// terminal.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut message = String::new();
        self.say(&mut message)?;
        formatter.write_str(&escape(&message))
    }
}

impl Error {
    fn say(&self, formatter: &mut impl fmt::Write) -> fmt::Result {
        match self {
            Self::Request { message, .. } => write!(formatter, "cannot use the request: {message}"),
            Self::Cwd { path, why, .. } => {
                write!(formatter, "cannot use `{}` as the working directory: {why}", escape_line(path))
            }
            Self::UnknownProfile { name, named_by, .. } => {
                write!(formatter, "there is no profile `{name}`")?;
                named_by.as_ref().map_or(Ok(()), |by| write!(formatter, ", which {by} extends"))
            }
            Self::Profile(error) => write!(formatter, "{error}"),
            Self::ProfileChain { chain } => {
                let first = chain.first().map_or("", String::as_str);
                write!(formatter, "cannot resolve the profile `{first}`: {}", chain_problem(chain))
            }
            Self::Config { role, path, message, .. } => {
                write!(formatter, "cannot use the {role} {}: {message}", escape_line(path))
            }
            Self::File { role, path, why } => {
                write!(formatter, "cannot read the {role} {}: {why}", escape_line(path))
            }
            Self::Usage { message, .. } => formatter.write_str(message),
            Self::Message { index, provider, why, .. } => {
                write!(formatter, "cannot send `messages[{index}]` to {provider}: {why}")
            }
            Self::Instructions { path, why } => {
                write!(
                    formatter,
                    "cannot build the prompt without the instructions of {}: {why}",
                    escape_line(path)
                )
            }
            Self::Resident { path, message } => {
                write!(formatter, "cannot use the workflow {}: {message}", escape_line(path))
            }
            Self::NoAsset { message, named_by, .. } => {
                write!(formatter, "cannot load the template that {named_by} names: {message}")
            }
            Self::Template(error) => write!(formatter, "{error}"),
            Self::SectionRules { section, profile, why } => {
                write!(formatter, "section `{section}` of the profile `{profile}`: {why}")
            }
            Self::NoWording { key, section, .. } => {
                write!(
                    formatter,
                    "the catalog has no key `{key}`, which section `{section}` of the profile names"
                )
            }
            Self::Policy { template, error } => write!(formatter, "cannot render {template}: {error}"),
            Self::Refused { source, message, more, key } => {
                formatter.write_str("cannot build the prompt")?;
                if let Some(source) = source {
                    write!(formatter, " from {}", escape_line(&source.to_string()))?;
                }
                write!(formatter, ": `{key}` refuses it: {message}")?;
                if *more > 0 { write!(formatter, "; and {more} more") } else { Ok(()) }
            }
            Self::TooLarge(error) => write!(formatter, "cannot assemble the prompt: {error}"),
            Self::Stopped { why } => write!(formatter, "the build was stopped: {why}"),
            Self::Write { path, why } => {
                write!(formatter, "cannot write {}: {}", escape_line(path), reason(why))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Profile(error) => Some(error.as_ref()),
            Self::Template(error) => Some(error.as_ref()),
            Self::Policy { error, .. } => Some(error.as_ref()),
            Self::TooLarge(error) => Some(error),
            Self::Write { why, .. } => Some(why),
            Self::File { why, .. } | Self::Instructions { why, .. } => Some(why),
            Self::Request { cause, .. }
            | Self::Cwd { cause, .. }
            | Self::Config { cause, .. }
            | Self::Message { cause, .. } => cause.source(),
            _ => None,
        }
    }
}

impl From<ProfileError> for Error {
    fn from(error: ProfileError) -> Self {
        Self::Profile(Box::new(error))
    }
}

impl From<TooLarge> for Error {
    fn from(error: TooLarge) -> Self {
        Self::TooLarge(error)
    }
}

/// Returns the system's message in lower case, without its number and without internal paths.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    words.split(" at path ").next().unwrap_or(words).to_lowercase()
}
