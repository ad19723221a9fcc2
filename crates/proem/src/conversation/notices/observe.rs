//! Looks at the sources of a conversation. Stamps are compared first: while all of them are the same, nothing is read.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proem_core::note::Note;

use super::changes::{self, Differences};
use super::{NoticeTurn, not_looked_at, watches};
use crate::conversation::conversations::{Conversations, Loaded, viewer_of};
use crate::conversation::error::ConversationError;
use crate::conversation::store::EpochHead;
use crate::deliver::NoticePlace;
use crate::engine::{BuildInput, observe_sources, within_limits};
use crate::error::Error;
use crate::observe::file::{Look, Stamps, with_looks};
use crate::output::stored_sources::EpochDetails;
use crate::request::Request;
use crate::request::bundle::ROOT;
use crate::request::caller::Caller;
use crate::request::update::without_call;
use crate::sections::build_state::BuildState;
use crate::sections::snapshot::Snapshot;
use crate::sections::snapshot::touched::{self, TouchedPaths, TouchedSources};
use crate::settings::world::World;

/// The day begins at a quarter of an hour of universal time in every time zone.
const QUARTER: u64 = 15 * 60;

/// The sources of a conversation as one process saw them last, and as they were announced.
pub(crate) struct Watch {
    head: EpochHead,
    request: Request,
    /// Dates may change after it, in seconds since 1970.
    until: u64,
    stamps: Stamps,
    /// The notes about these sources.
    notes: Vec<Note>,
}

/// Sources that were just read.
pub(super) struct Observation {
    pub(super) now: Snapshot,
    pub(super) touched: TouchedSources,
    pub(super) notes: Vec<Note>,
    request: Request,
    until: u64,
    stamps: Option<Stamps>,
}

/// The changes of a turn.
#[derive(Default)]
pub(super) struct Observed {
    /// The sources, if they were read.
    pub(super) observation: Option<Observation>,
    pub(super) differences: Differences,
    pub(super) notes: Vec<Note>,
}

impl Observation {
    /// Returns what shows that these sources are the same in a later turn.
    pub(super) fn watch(self, loaded: &Loaded, notes: Vec<Note>) -> Option<Watch> {
        let Self { request, until, stamps, .. } = self;
        Some(Watch { head: loaded.epoch.head.clone(), request, until, stamps: stamps?, notes })
    }
}

impl Watch {
    fn is_current(&self, loaded: &Loaded, request: &Request) -> bool {
        self.head == loaded.epoch.head
            && seconds() < self.until
            && self.request == *request
            && self.stamps.are_current()
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Conversations {
    /// Finds what changed since the last notice, if a turn can announce it.
    pub(super) fn observed_changes(
        &self,
        loaded: &Loaded,
        request: &Request,
        turn: &NoticeTurn<'_>,
        (place, is_new): (NoticePlace, bool),
    ) -> Result<Observed, ConversationError> {
        let NoticeTurn { update, caller, memory, .. } = turn;
        let touched = update.given().touched.as_deref().unwrap_or_default();
        let mut observed = Observed::default();
        if !watches(loaded) {
            observed.notes.extend((!touched.is_empty()).then(touched::without_use));
            return Ok(observed);
        }
        // A prompt that was just built has the sources as they are.
        let is_due = !is_new || !touched.is_empty();
        if !is_due || (place == NoticePlace::Nowhere && !super::thaws(loaded)) {
            return Ok(observed);
        }
        let request = without_call(request);
        if touched.is_empty() {
            let watch = memory.watch.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(watch) = watch.as_ref().filter(|watch| watch.is_current(loaded, &request)) {
                observed.notes.clone_from(&watch.notes);
                return Ok(observed);
            }
        }
        match self.observe(loaded, &request, *caller, touched) {
            Ok(found) => {
                observed.differences = found.differences(loaded);
                if place == NoticePlace::Nowhere {
                    observed.differences.changes.clear();
                } else {
                    observed.observation = Some(found);
                }
                observed.notes.append(&mut observed.differences.notes);
                if let Some(found) = &observed.observation {
                    observed.notes.extend(found.touched.notes.iter().cloned());
                    // The reader knows the findings about texts that the prompt has.
                    let is_new = |note: &&Note| !loaded.epoch.frozen.notes().contains(note);
                    let said = if observed.differences.changes.is_empty() { 0 } else { found.notes.len() };
                    observed.notes.extend(found.notes.iter().take(said).filter(is_new).cloned());
                }
                Ok(observed)
            }
            Err(ConversationError::Store(error)) => Err(error.into()),
            // The conversation outlives its files.
            Err(error) => {
                observed.notes.push(not_looked_at(&error.to_string()));
                Ok(observed)
            }
        }
    }

    /// Reads the sources of a conversation.
    pub(super) fn observe(
        &self,
        loaded: &Loaded,
        request: &Request,
        caller: Caller,
        touched: &[String],
    ) -> Result<Observation, ConversationError> {
        let Some(viewer) = viewer_of(&loaded.epoch, caller) else {
            return Err(ConversationError::OtherView);
        };
        let details = loaded.epoch.details.as_ref();
        let mut state = BuildState {
            resources: details.map(EpochDetails::found),
            added: loaded.state.resources.clone(),
            ..BuildState::default()
        };
        let known = known_documents(loaded);
        let touched = TouchedPaths { paths: touched, known: &known };
        let resolved = self.resolved(request)?;
        let began = SystemTime::now();
        let observed = within_limits(|| {
            let world = World::read(&resolved, viewer)?;
            let (read, looks) = with_looks(|| -> Result<_, Error> {
                let input = BuildInput { request: &resolved, hooks: &self.engine.hooks };
                observe_sources(&world, input, &mut state, touched)
            });
            let (notes, touched) = read?;
            Ok((notes, touched, looks))
        });
        let (notes, touched, looks) = observed?;
        let now = std::mem::take(&mut state.snapshot);
        let is_on_disk = |path: &Path| resolved.workspace.is_none() || !path.starts_with(ROOT);
        let looks: Vec<(PathBuf, Look)> = looks.into_iter().filter(|(path, _)| is_on_disk(path)).collect();
        Ok(Observation {
            now,
            touched,
            notes,
            request: request.clone(),
            until: (began.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs() / QUARTER + 1)
                * QUARTER,
            stamps: Stamps::take(looks, began),
        })
    }
}

impl Observation {
    /// Compares the sources with those that the model knows.
    pub(super) fn differences(&self, loaded: &Loaded) -> Differences {
        let Some(details) = &loaded.epoch.details else { return Differences::default() };
        changes::find(&details.snapshot, &loaded.state.notices, &self.now, &self.touched.found)
    }
}

/// Returns the documents that were announced because a path was touched, by section.
fn known_documents(loaded: &Loaded) -> Vec<(String, String)> {
    let sections = loaded.epoch.details.iter().flat_map(|details| &details.snapshot.sections);
    let of_section = |id: &str| -> Vec<(String, String)> {
        let paths = loaded.state.notices.touched(id);
        paths.map(|path| (id.to_owned(), path.to_owned())).collect()
    };
    sections.flat_map(|section| of_section(&section.id)).collect()
}
