//! The stored form of the files that a build could see.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::request::caller::{Caller, Workspaces};

/// The files that a build may read, by the side of the connection that its request came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "of")]
pub(crate) enum StoredView {
    /// Everything that the user may read.
    User,
    /// The workspaces of a server, and the files of its user if it reads them.
    Server {
        /// The workspaces, as real paths.
        workspaces: Vec<PathBuf>,
        /// True if it reads files of its user.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        user_files: bool,
    },
}

impl From<Caller> for StoredView {
    fn from(caller: Caller) -> Self {
        match caller {
            Caller::User => Self::User,
            Caller::Remote(workspaces) => Self::Server {
                workspaces: workspaces.roots().to_vec(),
                user_files: workspaces.has_user_files(),
            },
        }
    }
}

impl StoredView {
    /// Returns the caller that sees the files as this view does; `None` if that would show `caller` more than it may see.
    pub(crate) fn seen_by(&self, caller: Caller) -> Option<Caller> {
        match (self, caller) {
            (Self::User, Caller::User) => Some(caller),
            (Self::User, Caller::Remote(workspaces)) => workspaces.has_user_files().then_some(caller),
            (Self::Server { workspaces, user_files }, Caller::User) => {
                let workspaces = Workspaces::from_real(workspaces.clone());
                Some(Caller::Remote(workspaces.with_user_files(*user_files)))
            }
            (Self::Server { user_files, .. }, Caller::Remote(workspaces)) => {
                let may_see = !user_files || workspaces.has_user_files();
                may_see.then(|| Caller::Remote(workspaces.with_user_files(*user_files)))
            }
        }
    }
}
