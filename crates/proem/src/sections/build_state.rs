//! State that a build starts from and leaves behind.

use proem_core::bracket::outline::Outline;
use proem_core::note::Note;

use crate::discover::DiscoveredFiles;
use crate::hooks::{DiscoverReason, HookFailure, Resources};

/// The files, skills and hook results of a build. A rebuild that is not a reload starts from them, so that no file
/// is read again.
#[derive(Debug, Clone, Default)]
pub(crate) struct BuildState {
    pub(crate) discovered: DiscoveredFiles,
    /// The resources that hooks bring; hooks run when there are none here.
    pub(crate) resources: Option<Resources>,
    /// The hooks that failed when they ran.
    pub(crate) hook_failures: Vec<HookFailure>,
    /// Leaves the output of failed hooks out of notes, for every caller.
    pub(crate) withholds_hook_output: bool,
    /// The reason that hooks are given.
    pub(crate) reason: DiscoverReason,
    /// The structure of the request's template, if a caller wants it.
    pub(crate) outline: Option<Outline>,
    /// Improvements of bracket templates, if a caller wants them.
    pub(crate) lints: Option<Vec<Note>>,
}
