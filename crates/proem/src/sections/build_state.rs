//! State that a build starts from and leaves behind.

use std::collections::{BTreeMap, BTreeSet};

use proem_core::bracket::outline::Outline;
use proem_core::fact::Absence;
use proem_core::note::Note;

use crate::discover::DiscoveredFiles;
use crate::hooks::{DiscoverReason, HookFailure, ResourcePaths, Resources};
use crate::observe::file::SourceTexts;
use crate::sections::snapshot::Snapshot;

/// The files, skills and hook results of a build. A rebuild that is not a reload starts from them, so that no file
/// is read again.
#[derive(Debug, Clone, Default)]
pub(crate) struct BuildState {
    pub(crate) discovered: DiscoveredFiles,
    /// The other texts that were read: templates, packs, assets and values of variables.
    pub(crate) texts: SourceTexts,
    /// The keys of the variables that the frozen part depends on.
    pub(crate) frozen_facts: BTreeSet<String>,
    /// The observed values of variables in the part for one turn.
    pub(crate) turn_facts: BTreeMap<String, Result<String, Absence>>,
    /// The sources of sections that do not hold changes back.
    pub(crate) snapshot: Snapshot,
    /// Resources that the conversation has besides those of hooks.
    pub(crate) added: ResourcePaths,
    /// The resources that hooks bring; hooks run when there are none here.
    pub(crate) resources: Option<Resources>,
    /// The hooks that failed when they ran.
    pub(crate) hook_failures: Vec<HookFailure>,
    /// The notes about them.
    pub(crate) hook_notes: Vec<Note>,
    /// Leaves the output of failed hooks out of notes, for every caller.
    pub(crate) withholds_hook_output: bool,
    /// The reason that hooks are given.
    pub(crate) reason: DiscoverReason,
    /// True if the request's template is the one of the store.
    pub(crate) has_stored_template: bool,
    /// The structure of the request's template, if a caller wants it.
    pub(crate) outline: Option<Outline>,
    /// Improvements of bracket templates, if a caller wants them.
    pub(crate) lints: Option<Vec<Note>>,
}
