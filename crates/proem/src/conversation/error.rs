//! The errors of conversations.

use std::fmt;

use crate::conversation::store::StoreError;
use crate::error::{Error, ErrorKind};

/// An error of a conversation.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConversationError {
    /// The prompt could not be built.
    Build(Error),
    /// The store did not do its work.
    Store(StoreError),
    /// The id of the conversation is invalid.
    BadId,
    /// There is no such conversation.
    NoConversation(String),
    /// There is no such compaction, or not any more.
    NoCompaction,
    /// The prompt was built with files that this caller may not read, so a comparison would report them as removed.
    OtherView,
    /// The store has no workspace with this digest.
    NoWorkspace(String),
    /// Another conversation has this id.
    Exists(String),
    /// A conversation has as many branches as are allowed.
    TooManyChildren(String),
    /// The record of a call cannot be parsed.
    BadCall(String),
    /// The profile does not rebuild for this reason.
    NotAllowed {
        /// The reason.
        reason: &'static str,
        /// The profile.
        profile: String,
    },
}

impl ConversationError {
    /// Tells whether what the caller gave is wrong.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Build(error) => error.kind() == ErrorKind::Usage,
            Self::Store(_) => false,
            Self::BadId
            | Self::NoConversation(_)
            | Self::NoCompaction
            | Self::OtherView
            | Self::NoWorkspace(_)
            | Self::BadCall(_)
            | Self::Exists(_)
            | Self::TooManyChildren(_)
            | Self::NotAllowed { .. } => true,
        }
    }

    /// Returns a stable word for the kind of error, the same through every interface.
    ///
    /// ```
    /// let missing = proem::conversation::ConversationError::NoConversation("c-1".into());
    /// assert_eq!(missing.code(), "no_conversation");
    /// ```
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Build(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::BadId => "bad_id",
            Self::BadCall(_) => "bad_request",
            Self::NoConversation(_) => "no_conversation",
            Self::NoCompaction => "no_compaction",
            Self::NoWorkspace(_) => "no_workspace",
            Self::Exists(_) => "conversation_exists",
            Self::TooManyChildren(_) => "too_many_children",
            Self::OtherView => "other_view",
            Self::NotAllowed { .. } => "rebuild_not_allowed",
        }
    }

    /// Returns advice on how to fix it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Build(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::BadId => Some("use 1 to 128 letters, digits, `.`, `_`, `:` and `-`".into()),
            Self::NoConversation(_) => Some("the first turn creates it".into()),
            Self::NoCompaction => Some("begin it again".into()),
            Self::NoWorkspace(_) => {
                Some("send its files again: a workspace that no epoch refers to is removed after some days".into())
            }
            Self::OtherView => Some(
                "start the server with `--user-files`, or use `proem drift` or `proem conversation reload` with `--store` on \
                 the machine of that user"
                    .into(),
            ),
            Self::Exists(_) => Some("choose another id, or remove that conversation first".into()),
            Self::TooManyChildren(_) => Some("begin a branch from one of its branches".into()),
            Self::BadCall(_) => {
                Some("send the provider's response, or {\"response\": …, \"request\": …}".into())
            }
            Self::NotAllowed { reason, .. } => {
                Some(format!("add `{reason}` to `rebuild` in a profile that extends this one"))
            }
        }
    }
}

impl fmt::Display for ConversationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(formatter),
            Self::Store(error) => error.fmt(formatter),
            Self::BadId => formatter.write_str("invalid conversation id"),
            Self::NoConversation(id) => write!(formatter, "there is no conversation `{id}`"),
            Self::NoCompaction => {
                formatter.write_str("there is no such compaction, or it was ended or took too long")
            }
            Self::NoWorkspace(digest) => write!(formatter, "there is no workspace {digest}"),
            Self::OtherView => formatter
                .write_str("the prompt was built with files of the user, which this server does not read"),
            Self::Exists(id) => write!(formatter, "there is a conversation `{id}` already"),
            Self::TooManyChildren(id) => write!(
                formatter,
                "the conversation `{id}` has {} branches, and more are not allowed",
                proem_core::limit::CHILDREN_MAX
            ),
            Self::BadCall(why) => write!(formatter, "cannot read the call: {why}"),
            Self::NotAllowed { reason, profile } => {
                write!(
                    formatter,
                    "the profile `{profile}` does not rebuild its prompt for the reason `{reason}`"
                )
            }
        }
    }
}

impl std::error::Error for ConversationError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for ConversationError {
    fn from(error: Error) -> Self {
        Self::Build(error)
    }
}

impl From<StoreError> for ConversationError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
