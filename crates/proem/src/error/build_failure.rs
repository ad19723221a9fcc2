//! The reason why a valid request has no prompt: a stable word, and the place to look at.

use proem_core::source::Source;
use proem_core::text::Place;

use super::{Error, ErrorKind, FileRole, StopReason, TemplateErrorKind};

/// The place of an error; parts that are not known are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorPlace {
    /// The file.
    pub path: Option<String>,
    /// The field of the request, or the key of the pack.
    pub field: Option<String>,
    /// The line and the column in that text.
    pub place: Option<Place>,
}

impl ErrorPlace {
    fn file(path: &str, place: Option<Place>) -> Self {
        Self { path: Some(path.to_owned()), field: None, place }
    }

    fn source(source: &Source) -> Self {
        match source {
            Source::File { path, place } => Self::file(path, *place),
            Source::Pack { path, key, place } => {
                Self { path: Some(path.as_ref().into()), field: Some(key.as_ref().into()), place: *place }
            }
            Source::Request { field, place } => {
                Self { path: None, field: Some(field.as_ref().into()), place: *place }
            }
            Source::Variable { path: Some(path), .. } => Self::file(path, None),
            Source::BuiltIn { .. }
            | Source::Variable { .. }
            | Source::Profile { .. }
            | Source::Hook { .. } => Self::default(),
        }
    }
}

impl Error {
    /// Returns a stable word for an error that leaves a valid request without a prompt; `None` if the request itself is
    /// invalid, or if no prompt was wanted.
    ///
    /// ```
    /// use proem::{Caller, Request};
    ///
    /// let request = Request::from_json(r#"{"profile": "assets", "template": "{{ ghost }}"}"#)?;
    /// let error = proem::build(&request, Caller::User).unwrap_err();
    /// assert_eq!(error.build_failure(), Some("template_undefined"));
    /// # Ok::<(), proem::Error>(())
    /// ```
    #[must_use]
    pub fn build_failure(&self) -> Option<&'static str> {
        match self {
            Self::UnknownProfile { .. }
            | Self::Profile(_)
            | Self::ProfileChain { .. }
            | Self::SectionRules { .. }
            | Self::NoWording { .. } => Some("profile"),
            Self::Config { role, .. } | Self::File { role, .. } => Some(role.build_failure()),
            Self::Instructions { .. } => Some("instructions"),
            Self::Resident { .. } => Some("workflow"),
            Self::NoAsset { .. } => Some("asset_missing"),
            Self::Template(error) if matches!(error.origin, Some(Source::Pack { .. })) => Some("pack"),
            Self::Template(error) => Some(error.kind.build_failure()),
            Self::Policy { .. } => Some("template_undefined"),
            Self::Refused { .. } => Some("refused"),
            Self::TooLarge(_) | Self::Stopped { why: StopReason::Work | StopReason::Cpu } => Some("limit"),
            Self::Request { .. }
            | Self::Cwd { .. }
            | Self::Usage { .. }
            | Self::Message { .. }
            | Self::Stopped { .. }
            | Self::Write { .. } => None,
        }
    }

    /// Returns a stable word for the kind of error, the same through every interface.
    ///
    /// ```
    /// let error = proem::Request::from_json("[]").unwrap_err();
    /// assert_eq!(error.code(), "bad_request");
    /// ```
    #[must_use]
    pub fn code(&self) -> &'static str {
        if self.is_of_host() {
            return "misconfigured";
        }
        if self.build_failure().is_some() {
            return "build_failed";
        }
        match self {
            Self::Stopped { why: StopReason::Time | StopReason::Cancelled } => "busy",
            error if error.kind() == ErrorKind::Usage => "bad_request",
            _ => "internal",
        }
    }

    /// Returns the place of the error, as far as it is known.
    #[must_use]
    pub fn place(&self) -> ErrorPlace {
        match self {
            Self::UnknownProfile { named_by: Some(origin), .. } => ErrorPlace::file(origin, None),
            Self::Profile(error) if error.is_built_in() => ErrorPlace::default(),
            Self::Profile(error) => ErrorPlace::file(&error.origin, error.place),
            Self::Config { path, excerpt, .. } => {
                ErrorPlace::file(path, excerpt.as_ref().map(|excerpt| excerpt.place))
            }
            Self::File { path, .. } | Self::Instructions { path, .. } | Self::Resident { path, .. } => {
                ErrorPlace::file(path, None)
            }
            Self::NoAsset { field: Some(field), .. } => {
                ErrorPlace { field: Some((*field).to_owned()), ..ErrorPlace::default() }
            }
            Self::Template(error) => {
                let known = error.origin.as_ref().map(ErrorPlace::source).unwrap_or_default();
                ErrorPlace { place: error.place, ..known }
            }
            Self::Policy { template, error } => {
                ErrorPlace { place: Some(error.place), ..ErrorPlace::source(template) }
            }
            Self::Refused { source: Some(source), .. } => ErrorPlace::source(source),
            _ => ErrorPlace::default(),
        }
    }
}

impl FileRole {
    const fn build_failure(self) -> &'static str {
        match self {
            Self::Pack => "pack",
            Self::Profile => "profile",
            Self::Template => "asset_missing",
            Self::Configuration
            | Self::WorkspaceConfiguration
            | Self::Models
            | Self::Trust
            | Self::HookProgram => "configuration",
        }
    }
}

impl TemplateErrorKind {
    const fn build_failure(self) -> &'static str {
        match self {
            Self::Syntax => "template_syntax",
            Self::Undefined => "template_undefined",
            Self::Missing => "asset_missing",
            Self::Render => "template_render",
            Self::Limit | Self::Nesting => "limit",
        }
    }
}
