//! Removes texts that no epoch uses.
//!
//! A prune has four passes, each in batches. *Mark* adds the texts of all epochs to a filter. *Doom* puts every text that is
//! not in the filter on a list in the store. *Spare* reads all epochs once more and takes their texts off the list. *Remove*
//! removes the texts that are still on the list.
//!
//! The filter only chooses candidates: it may be out of date, and it may be wrong. The list makes the prune safe. An epoch
//! that was stored before the list was complete is read by the third pass, and one that is stored later takes its texts off
//! the list itself: see [`Maintenance`]. No lock is held between two batches.

use serde::{Deserialize, Serialize};

use super::filter::Filter;
use super::{OnProgress, Progress, within_time};
use crate::{EpochKey, Maintenance};
use crate::{Explanation, Store, StoreError, WorkspaceRecord};

/// The most rows of a batch: epochs that are read, texts that are read, texts that are removed.
const EPOCHS: usize = 5_000;
const TEXTS: usize = 5_000;
const REMOVED: usize = 500;

/// The names of stored values: the state of a prune, and, before a number, the parts of its filter.
const STATE: &str = "state";
const FILTER: &str = "filter";

/// The result of a prune.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The number of texts that were removed.
    pub texts: u64,
    /// The bytes of these texts.
    pub bytes: u64,
    /// True if the caller stopped it. The next prune continues from there.
    pub is_stopped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Pass {
    Mark,
    Doom,
    Spare,
    Remove,
}

/// The state of a prune, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct PruneState {
    version: u32,
    run: String,
    pass: Pass,
    /// The key after which it continues.
    after: String,
    /// The number of stored parts of the filter.
    filter_parts: usize,
    texts: u64,
    bytes: u64,
}

/// Removes texts that no epoch uses. Continues an earlier prune that was stopped.
pub fn prune(store: &dyn Store, on_progress: OnProgress<'_>) -> Result<PruneReport, StoreError> {
    let place = store.describe();
    store.expire_workspaces(WorkspaceRecord::expiry())?;
    let Some(store) = store.maintenance() else { return Ok(PruneReport::default()) };
    let (state, filter) = match resume(store)? {
        Some(found) => found,
        None => (PruneState::new(place)?, Filter::with_capacity(store.text_count_estimate()?)),
    };
    let mut run = PruneRun { store, state, filter, rows: 0, on_progress };
    if run.is_listed() {
        run.save()?;
    }
    let is_done = run.finish()?;
    if is_done {
        store.save_progress(&[])?;
    } else {
        run.save()?;
    }
    let PruneState { texts, bytes, .. } = run.state;
    Ok(PruneReport { texts, bytes, is_stopped: !is_done })
}

impl PruneState {
    fn new(place: String) -> Result<Self, StoreError> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| StoreError::Unavailable {
            place,
            why: Explanation::new(format!("the system has no random numbers: {error}"), error),
        })?;
        let run = random.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let (pass, after) = (Pass::Mark, String::new());
        Ok(Self { version: 1, run, pass, after, filter_parts: 0, texts: 0, bytes: 0 })
    }
}

/// Takes the state of an earlier prune that was stopped, if all of it was stored.
fn resume(store: &dyn Maintenance) -> Result<Option<(PruneState, Filter)>, StoreError> {
    // Only one prune may continue an incomplete list: another one could remove texts that the first has yet to spare.
    let Some(bytes) = store.take_progress(STATE)? else { return Ok(None) };
    let Ok(state) = serde_json::from_slice::<PruneState>(&bytes) else { return Ok(None) };
    if state.version != 1 {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    for index in 0..state.filter_parts {
        let Some(part) = store.take_progress(&part_name(index))? else { return Ok(None) };
        bytes.extend(part);
    }
    let needs_filter = matches!(state.pass, Pass::Mark | Pass::Doom);
    let filter = if needs_filter { Filter::from_bytes(bytes) } else { Some(Filter::with_capacity(0)) };
    Ok(filter.map(|filter| (state, filter)))
}

fn part_name(index: usize) -> String {
    format!("{FILTER}/{index}")
}

/// A prune that runs.
struct PruneRun<'w> {
    store: &'w dyn Maintenance,
    state: PruneState,
    filter: Filter,
    /// The rows that this pass has read.
    rows: u64,
    on_progress: OnProgress<'w>,
}

impl PruneRun<'_> {
    /// Runs the remaining passes; tells whether all of them ended.
    fn finish(&mut self) -> Result<bool, StoreError> {
        loop {
            let is_done = match self.state.pass {
                Pass::Mark => self.mark()?,
                Pass::Doom => self.doom()?,
                Pass::Spare => self.spare()?,
                Pass::Remove => self.remove()?,
            };
            if !is_done {
                return Ok(false);
            }
            let next = match self.state.pass {
                Pass::Mark => Pass::Doom,
                Pass::Doom if self.store.doomed(&self.state.run, "", 1)?.is_empty() => return Ok(true),
                Pass::Doom => Pass::Spare,
                Pass::Spare => Pass::Remove,
                Pass::Remove => return Ok(true),
            };
            (self.state.pass, self.state.after, self.rows) = (next, String::new(), 0);
            if self.is_listed() {
                // The state is small now. It is stored early, in case that it cannot be stored later.
                self.save()?;
            }
        }
    }

    /// Tells whether the list is complete. Several prunes may share a complete list: each spares before it removes.
    fn is_listed(&self) -> bool {
        matches!(self.state.pass, Pass::Spare | Pass::Remove)
    }

    /// Reports the progress; returns `false` when the caller wants to stop.
    fn report(&mut self, part: &'static str) -> bool {
        (self.on_progress)(&Progress { part, rows: self.rows, found: &[], cursor: "prune" }).is_continue()
    }

    fn mark(&mut self) -> Result<bool, StoreError> {
        let (store, mut most) = (self.store, EPOCHS);
        let mut after = EpochKey::parse(&self.state.after).unwrap_or_default();
        loop {
            let found = within_time(&mut most, EPOCHS, |most| store.references(&after, most))?;
            let Some(last) = found.last else { return Ok(true) };
            for digest in &found.digests {
                self.filter.add(digest);
            }
            self.rows += found.rows;
            (self.state.after, after) = (last.text(), last);
            if !self.report("mark") {
                return Ok(false);
            }
        }
    }

    fn doom(&mut self) -> Result<bool, StoreError> {
        let (store, mut most) = (self.store, TEXTS);
        loop {
            let after = &self.state.after;
            let found = within_time(&mut most, TEXTS, |most| store.texts(after, most))?;
            let Some(last) = found.last().cloned() else { return Ok(true) };
            self.rows += found.len() as u64;
            let unused: Vec<String> = found.into_iter().filter(|digest| !self.filter.has(digest)).collect();
            if !unused.is_empty() {
                store.doom(&self.state.run, &unused)?;
            }
            self.state.after = last;
            if !self.report("doom") {
                return Ok(false);
            }
        }
    }

    fn spare(&mut self) -> Result<bool, StoreError> {
        let store = self.store;
        store.settle()?;
        let listed = self.listed()?;
        let mut after = EpochKey::parse(&self.state.after).unwrap_or_default();
        let mut most = EPOCHS;
        loop {
            let found = within_time(&mut most, EPOCHS, |most| store.references(&after, most))?;
            let Some(last) = found.last else { return Ok(true) };
            let mut used: Vec<String> =
                found.digests.into_iter().filter(|digest| listed.has(digest)).collect();
            used.sort_unstable();
            used.dedup();
            if !used.is_empty() {
                store.spare(&used)?;
            }
            self.rows += found.rows;
            (self.state.after, after) = (last.text(), last);
            if !self.report("spare") {
                return Ok(false);
            }
        }
    }

    /// Reads the texts on the list.
    fn listed(&self) -> Result<Filter, StoreError> {
        let (mut after, mut listed) =
            (String::new(), Filter::with_capacity(self.store.text_count_estimate()?));
        loop {
            let found = self.store.doomed(&self.state.run, &after, TEXTS)?;
            let Some(last) = found.last().cloned() else { break };
            for digest in &found {
                listed.add(digest);
            }
            after = last;
        }
        Ok(listed)
    }

    fn remove(&mut self) -> Result<bool, StoreError> {
        let (store, mut most) = (self.store, REMOVED);
        loop {
            let run = &self.state.run;
            let (texts, bytes) = within_time(&mut most, REMOVED, |most| store.remove_doomed(run, most))?;
            if texts == 0 {
                return Ok(true);
            }
            self.state.texts += texts;
            self.state.bytes += bytes;
            self.rows += texts;
            if !self.report("remove") {
                return Ok(false);
            }
        }
    }

    /// Stores the state.
    fn save(&mut self) -> Result<(), StoreError> {
        let needs_filter = !self.is_listed();
        let parts = self.filter.chunks().filter(|_| needs_filter).enumerate();
        let mut values: Vec<(String, Vec<u8>)> =
            parts.map(|(index, part)| (part_name(index), part.to_vec())).collect();
        self.state.filter_parts = values.len();
        // Texts and numbers can always be serialised.
        values.push((STATE.to_owned(), serde_json::to_vec(&self.state).unwrap_or_default()));
        self.store.save_progress(&values)
    }
}
