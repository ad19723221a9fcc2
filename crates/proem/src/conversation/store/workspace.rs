//! The stored shape of the workspaces that requests bring.

use proem_core::digest::Digest;
use proem_core::limit::WORKSPACE_UNUSED_DAYS_MAX;
use serde::Deserialize;

use super::StoreError;
use super::record::{Epoch, now};
use crate::request::bundle::VirtualWorkspace;

/// A workspace that a request brought, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRecord {
    /// The SHA-256 of the text, in hexadecimal.
    pub digest: String,
    /// The workspace as JSON.
    pub text: String,
}

impl WorkspaceRecord {
    /// Fails unless the text has the digest.
    pub fn checked(self) -> Result<Self, StoreError> {
        if Digest::new(self.text.as_bytes()).hex() == self.digest {
            return Ok(self);
        }
        Err(StoreError::damaged(
            format!("the workspace {}", self.digest),
            "its text does not match its digest",
        ))
    }

    /// Returns the time before which a workspace must have been used last to be expired now.
    #[must_use]
    pub fn expiry() -> i64 {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        now() - DAY * i64::try_from(WORKSPACE_UNUSED_DAYS_MAX).unwrap_or(i64::MAX / DAY)
    }
}

/// The least time between two notes of the use of a workspace, in milliseconds.
pub const USE_STEP: i64 = 60 * 60 * 1000;

/// The most epochs without a workspace that a check lists.
pub const LISTED_MAX: usize = 1000;

/// Describes an epoch whose workspace is missing.
#[must_use]
pub fn missing_workspace(conversation: &str, number: i64, digest: &str) -> String {
    format!("epoch {number} of `{conversation}`: its workspace {digest} is missing")
}

impl Epoch {
    /// Returns the digest of the workspace that the prompt was built from, if its request brought one.
    #[must_use]
    pub fn workspace(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Fields {
            workspace: Option<VirtualWorkspace>,
        }
        let fields: Fields = serde_json::from_str(&self.request).ok()?;
        fields.workspace.map(|workspace| workspace.digest().to_owned())
    }
}
