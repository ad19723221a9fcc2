//! Versions of the template as they are stored.

use proem_core::digest::Digest;
use proem_core::limit::{AUTHOR_BYTES_MAX, VERSION_MESSAGE_BYTES_MAX};
use proem_core::text::clip;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::StoreError;
use super::record::check_text;

/// One version of the template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateVersion {
    /// The version, from 1.
    pub version: u64,
    /// The text.
    pub text: String,
    /// The author, as the client named them.
    pub author: Option<String>,
    /// The time at which it was written, in milliseconds since 1970.
    pub written_at: i64,
    /// The author's words about the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// True for a draft: new conversations do not begin with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_draft: bool,
}

/// A version of the template that is to be stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NewTemplate<'t> {
    /// The text.
    pub text: &'t str,
    /// The author, as the client names them.
    pub author: Option<&'t str>,
    /// The author's words about the change.
    pub message: Option<&'t str>,
    /// True for a draft.
    pub is_draft: bool,
    /// The newest version that the author knows; 0 for none. `None` to store it whatever the newest version is.
    pub expected: Option<u64>,
}

impl NewTemplate<'_> {
    /// Refuses a version that not every store can hold, or whose author or message is too long.
    pub fn check(&self) -> Result<(), String> {
        TemplateVersion::check(self.text, self.author)?;
        check_bounded("message", self.message, VERSION_MESSAGE_BYTES_MAX)
    }

    /// Returns the version as it is stored.
    #[must_use]
    pub fn version(&self, version: u64, written_at: i64) -> TemplateVersion {
        TemplateVersion {
            version,
            text: self.text.to_owned(),
            author: self.author.map(str::to_owned),
            written_at,
            message: self.message.map(str::to_owned),
            is_draft: self.is_draft,
        }
    }
}

fn check_bounded(name: &str, text: Option<&str>, most: usize) -> Result<(), String> {
    let Some(text) = text else { return Ok(()) };
    check_text(name, text)?;
    let length = text.len();
    if length > most {
        return Err(format!("`{name}` has {length} bytes, and {most} are allowed"));
    }
    Ok(())
}

impl TemplateVersion {
    /// Refuses a template and its author if not every store can hold them, or if the author is too long.
    pub fn check(text: &str, author: Option<&str>) -> Result<(), String> {
        check_text("template", text)?;
        check_bounded("author", author, AUTHOR_BYTES_MAX)
    }

    /// Computes the digest of the row. A version without a message has that of earlier releases; a draft can become live.
    #[must_use]
    pub fn seal(&self) -> String {
        let Self { version, text, author, written_at, message, .. } = self;
        let sealed = match message {
            None => json!([version, text, author, written_at]),
            Some(message) => json!([version, text, author, written_at, message]),
        };
        Digest::new(sealed.to_string().as_bytes()).hex()
    }

    /// Fails unless the version is the one that was sealed.
    pub fn checked(self, seal: Option<&str>) -> Result<Self, StoreError> {
        if seal.is_none_or(|seal| seal == self.seal()) {
            return Ok(self);
        }
        let what = format!("version {} of the template", self.version);
        Err(StoreError::damaged(what, "its row does not match its seal"))
    }
}

/// A version of the template without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateHead {
    /// The version, from 1.
    pub version: u64,
    /// The length of its text.
    pub bytes: u64,
    /// The author as given; the beginning of it, and an ellipsis, if an older proem took more than is allowed.
    pub author: Option<String>,
    /// The time at which it was written, in milliseconds since 1970.
    pub written_at: i64,
    /// The author's words about the change.
    pub message: Option<String>,
    /// True for a draft.
    pub is_draft: bool,
}

impl TemplateHead {
    /// The most characters of an author that are read: one more than may be shown.
    pub const AUTHOR_READ: usize = AUTHOR_BYTES_MAX + 1;

    /// Returns an author as it is shown.
    #[must_use]
    pub fn author(read: String) -> String {
        if read.len() <= AUTHOR_BYTES_MAX { read } else { format!("{}…", clip(&read, AUTHOR_BYTES_MAX)) }
    }
}
