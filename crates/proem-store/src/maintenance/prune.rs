//! Removing texts that no epoch has any more.
//!
//! Four passes, each in batches. *Mark* notes in a filter what epochs refer to. *Doom* puts every text that is not in
//! the filter on a list in the store. *Spare* reads all epochs once more, and takes what they refer to off that list.
//! *Remove* removes what is left on it.
//!
//! The filter only chooses candidates: it may be old, and it may be wrong. That nothing is removed which an epoch refers
//! to rests on the list. An epoch that was stored before the list was complete is read by the third pass, and one that is
//! stored later takes its texts off the list itself: see [`Maintenance`]. Nothing here holds a lock between two batches.

use serde::{Deserialize, Serialize};

use super::filter::Filter;
use super::{Progress, Tell, within_time};
use crate::{EpochKey, Maintenance};
use crate::{Store, StoreError};

/// Most rows in a batch: epochs, texts that are looked at, texts that are removed.
const EPOCHS: usize = 5_000;
const TEXTS: usize = 5_000;
const REMOVED: usize = 500;

/// The name under which the place of a prune is kept; parts of the filter have this before their number.
const STATE: &str = "state";
const FILTER: &str = "filter";

/// The end of a prune.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Texts that were removed.
    pub texts: u64,
    /// Their bytes.
    pub bytes: u64,
    /// True if the caller has stopped it; the next prune goes on from there.
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

/// The place of a prune, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    version: u32,
    run: String,
    pass: Pass,
    /// The key behind which it goes on.
    after: String,
    /// The number of parts of the filter that are kept beside it.
    filter_parts: usize,
    texts: u64,
    bytes: u64,
}

/// Removes texts that no epoch has any more. Goes on where an earlier one was stopped.
pub fn prune(store: &dyn Store, tell: Tell<'_>) -> Result<Pruned, StoreError> {
    let Some(store) = store.maintenance() else { return Ok(Pruned::default()) };
    let (state, filter) = match resumed(store)? {
        Some(found) => found,
        None => (State::new()?, Filter::with_room(store.texts_about()?)),
    };
    let mut work = Work { store, state, filter, rows: 0, tell };
    if work.is_listed() {
        work.keep()?;
    }
    let is_done = work.run()?;
    if is_done {
        store.keep_progress(&[])?;
    } else {
        work.keep()?;
    }
    let State { texts, bytes, .. } = work.state;
    Ok(Pruned { texts, bytes, is_stopped: !is_done })
}

impl State {
    fn new() -> Result<Self, StoreError> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| StoreError::Unavailable {
            place: "of random numbers".into(),
            why: error.to_string(),
        })?;
        let run = random.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let (pass, after) = (Pass::Mark, String::new());
        Ok(Self { version: 1, run, pass, after, filter_parts: 0, texts: 0, bytes: 0 })
    }
}

/// An earlier prune, if one was stopped and all of it was kept.
fn resumed(store: &dyn Maintenance) -> Result<Option<(State, Filter)>, StoreError> {
    // Only one prune may go on with a list that is not complete: another could remove what the first has yet to spare.
    let Some(bytes) = store.take_progress(STATE)? else { return Ok(None) };
    let Ok(state) = serde_json::from_slice::<State>(&bytes) else { return Ok(None) };
    if state.version != 1 {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    for index in 0..state.filter_parts {
        let Some(part) = store.take_progress(&part_name(index))? else { return Ok(None) };
        bytes.extend(part);
    }
    let needs_filter = matches!(state.pass, Pass::Mark | Pass::Doom);
    let filter = if needs_filter { Filter::of_bytes(bytes) } else { Some(Filter::with_room(0)) };
    Ok(filter.map(|filter| (state, filter)))
}

fn part_name(index: usize) -> String {
    format!("{FILTER}/{index}")
}

struct Work<'w> {
    store: &'w dyn Maintenance,
    state: State,
    filter: Filter,
    /// Rows of this pass that were looked at.
    rows: u64,
    tell: Tell<'w>,
}

impl Work<'_> {
    /// Does all passes that are left; tells whether it came to the end.
    fn run(&mut self) -> Result<bool, StoreError> {
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
                // The place is small now: it is kept in case that nothing can be kept later.
                self.keep()?;
            }
        }
    }

    /// Tells whether the list is complete. From then on several prunes may share it: each spares before it removes.
    fn is_listed(&self) -> bool {
        matches!(self.state.pass, Pass::Spare | Pass::Remove)
    }

    /// Tells the progress; `false` when the caller wants to stop.
    fn goes_on(&mut self, part: &'static str) -> bool {
        (self.tell)(&Progress { part, rows: self.rows, found: &[], cursor: "prune" }).is_continue()
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
            if !self.goes_on("mark") {
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
            if !self.goes_on("doom") {
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
            if !self.goes_on("spare") {
                return Ok(false);
            }
        }
    }

    /// The texts on the list.
    fn listed(&self) -> Result<Filter, StoreError> {
        let (mut after, mut listed) = (String::new(), Filter::with_room(self.store.texts_about()?));
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
            if !self.goes_on("remove") {
                return Ok(false);
            }
        }
    }

    /// Keeps the place in the store.
    fn keep(&mut self) -> Result<(), StoreError> {
        let needs_filter = !self.is_listed();
        let parts = self.filter.chunks().filter(|_| needs_filter).enumerate();
        let mut values: Vec<(String, Vec<u8>)> =
            parts.map(|(index, part)| (part_name(index), part.to_vec())).collect();
        self.state.filter_parts = values.len();
        // Texts, numbers and truths are always written.
        values.push((STATE.to_owned(), serde_json::to_vec(&self.state).unwrap_or_default()));
        self.store.keep_progress(&values)
    }
}
