//! The workspaces that requests bring: each is stored once, and requests refer to it by its digest.

use std::borrow::Cow;
use std::sync::PoisonError;

use super::Conversations;
use crate::conversation::error::ConversationError;
use crate::conversation::store::{StoreError, WorkspaceRecord};
use crate::request::bundle::{Bundle, VirtualWorkspace};
use crate::request::{Request, RequestUpdate};

/// The most workspaces that are kept in memory.
const RECENT_MAX: usize = 4;

impl Conversations {
    /// Stores the workspace that a request brings, or finds the one that it refers to. Returns the reference.
    pub fn keep_workspace(
        &self,
        workspace: &VirtualWorkspace,
    ) -> Result<VirtualWorkspace, ConversationError> {
        let Some(bundle) = workspace.bundle() else { return Ok(self.found(workspace)?.reference()) };
        let (digest, text) = (workspace.digest().to_owned(), bundle.to_json());
        self.store.put_workspace(&WorkspaceRecord { digest, text })?;
        self.remember_workspace(workspace);
        Ok(workspace.reference())
    }

    /// Returns an update whose workspace is a reference to a stored one.
    pub(in crate::conversation) fn with_workspace_kept(
        &self,
        update: RequestUpdate,
    ) -> Result<RequestUpdate, ConversationError> {
        let Some(workspace) = &update.given().workspace else { return Ok(update) };
        let kept = self.keep_workspace(workspace)?;
        Ok(update.with_workspace(kept))
    }

    /// Returns a request with the files of the workspace that it refers to.
    pub fn resolved<'r>(&self, request: &'r Request) -> Result<Cow<'r, Request>, ConversationError> {
        match &request.workspace {
            Some(workspace) if workspace.bundle().is_none() => {
                let workspace = Some(self.found(workspace)?);
                Ok(Cow::Owned(Request { workspace, ..request.clone() }))
            }
            _ => Ok(Cow::Borrowed(request)),
        }
    }

    fn found(&self, workspace: &VirtualWorkspace) -> Result<VirtualWorkspace, ConversationError> {
        let known = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner).iter().find_map(|known| {
            let bundle = known.bundle().filter(|_| known.digest() == workspace.digest());
            bundle.cloned()
        });
        // The store is asked even then, so that it knows that the workspace is used.
        let record = self.store.workspace(workspace.digest())?;
        let record = record.ok_or_else(|| ConversationError::NoWorkspace(workspace.digest().to_owned()))?;
        let bundle = match known {
            Some(known) => known,
            None => Bundle::from_json(&record.text).map_err(|error| StoreError::Damaged {
                what: format!("the workspace {}", workspace.digest()),
                why: error.to_string().into(),
            })?,
        };
        let found = workspace.with_bundle(bundle)?;
        self.remember_workspace(&found);
        Ok(found)
    }

    fn remember_workspace(&self, workspace: &VirtualWorkspace) {
        let mut known = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|one| one.digest() != workspace.digest());
        known.push_front(workspace.clone());
        known.truncate(RECENT_MAX);
    }
}
