//! Joins records of one call from several files, and hands calls on in the order of time.

use std::collections::{BTreeMap, BTreeSet};

use proem_core::limit::{COLLECT_CALLS_MAX, COLLECT_HELD_BYTES_MAX};

use crate::inspect::traffic::call::{Call, CallUsage};

/// The origin of a body. Of two bodies of one call, that of the higher origin is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BodyOrigin {
    /// Put together from parts of another shape.
    Approximate,
    /// Put together from its own parts.
    Rebuilt,
    /// As it was sent.
    Sent,
}

/// Calls that wait for further records.
///
/// They are held up to a number of bytes; then all are handed on, and a later record of the same call is dropped. So
/// memory is bounded, and small inputs are joined completely.
pub(super) struct Merge<'a> {
    visit: &'a mut dyn FnMut(Call),
    held: Vec<Held>,
    by_id: BTreeMap<String, usize>,
    given: BTreeSet<String>,
    bytes: usize,
    latest: i64,
    pub(super) calls: usize,
    pub(super) dropped: usize,
}

struct Held {
    /// The time that orders it: never before that of the call before it in its file.
    order: i64,
    origin: BodyOrigin,
    call: Call,
}

impl<'a> Merge<'a> {
    pub(super) fn new(visit: &'a mut dyn FnMut(Call)) -> Self {
        Self {
            visit,
            held: Vec::new(),
            by_id: BTreeMap::new(),
            given: BTreeSet::new(),
            bytes: 0,
            latest: i64::MIN,
            calls: 0,
            dropped: 0,
        }
    }

    /// Begins a new sequence of calls, whose times need not follow those of the one before.
    pub(super) fn begin(&mut self) {
        self.latest = i64::MIN;
    }

    /// Adds a record. Returns true if its time lies before that of the record before it.
    pub(super) fn add(&mut self, call: Call, origin: BodyOrigin) -> bool {
        let is_back = call.at.is_some_and(|at| at < self.latest);
        self.latest = self.latest.max(call.at.unwrap_or(self.latest));
        if let Some(held) = self.by_id.get(&call.id).and_then(|place| self.held.get_mut(*place)) {
            self.bytes = self.bytes.saturating_sub(size(&held.call));
            held.order = held.order.min(self.latest);
            join(held, call, origin);
            self.bytes += size(&held.call);
        } else if self.given.contains(&call.id) || self.calls >= COLLECT_CALLS_MAX {
            self.dropped += 1;
        } else {
            self.calls += 1;
            self.bytes += size(&call);
            self.by_id.insert(call.id.clone(), self.held.len());
            self.held.push(Held { order: self.latest, origin, call });
        }
        if self.bytes > COLLECT_HELD_BYTES_MAX {
            self.give();
        }
        is_back
    }

    /// Hands all calls on, in the order of time; calls of one moment keep their order.
    pub(super) fn give(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        held.sort_by_key(|one| one.order);
        self.given.extend(std::mem::take(&mut self.by_id).into_keys());
        self.bytes = 0;
        for one in held {
            (self.visit)(one.call);
        }
    }
}

/// Estimates the memory of a call.
fn size(call: &Call) -> usize {
    1024 + call.body.as_deref().map_or(0, str::len) + 256 * call.hints.len()
}

/// Adds what another record of the same call knows.
fn join(held: &mut Held, other: Call, origin: BodyOrigin) {
    let is_richer = match (&held.call.body, &other.body) {
        (None, Some(_)) => true,
        (Some(one), Some(two)) => (origin, two.len()) > (held.origin, one.len()),
        _ => false,
    };
    let call = &mut held.call;
    if is_richer {
        held.origin = origin;
        call.body = other.body;
        call.wire = other.wire;
        call.place = other.place;
    } else if call.body.is_none() {
        call.place = call.place.take().or(other.place);
    }
    // A record at the answer is later than one at the request.
    call.at = match (call.at, other.at) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    };
    call.agent = match (call.agent.take(), other.agent) {
        (Some(one), Some(two)) if one.version.is_none() => Some(two),
        (one, two) => one.or(two),
    };
    call.conversation = call.conversation.take().or(other.conversation);
    // The name of a kind of agent is less than the id of one.
    call.thread = match (call.thread.take(), other.thread) {
        (Some(one), Some(two)) if one.starts_with("agent:") => Some(two),
        (one, two) => one.or(two),
    };
    call.parent = call.parent.take().or(other.parent);
    call.provider = call.provider.take().or(other.provider);
    call.model = call.model.take().or(other.model);
    call.cwd = call.cwd.take().or(other.cwd);
    call.provider_reason = call.provider_reason.take().or(other.provider_reason);
    call.usage = usage(call.usage, other.usage);
    call.is_subscription |= other.is_subscription;
    if call.purpose == crate::inspect::traffic::call::Purpose::Main {
        call.purpose = other.purpose;
    }
    if call.headers.iter().next().is_none() {
        call.headers = other.headers;
    }
    if call.route.host.is_none() {
        call.route = other.route;
    }
    if call.hints.len() < other.hints.len() {
        call.hints = other.hints;
    }
    call.notes.extend(other.notes);
}

/// Fills the numbers that are missing.
fn usage(one: CallUsage, two: CallUsage) -> CallUsage {
    CallUsage {
        read: one.read.or(two.read),
        written: one.written.or(two.written),
        written_1h: one.written_1h.or(two.written_1h),
        uncached: one.uncached.or(two.uncached),
        output: one.output.or(two.output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_one_call_are_joined_and_ordered_by_time() {
        let mut seen = Vec::new();
        let mut visit = |call: Call| seen.push((call.id, call.at, call.body, call.cwd));
        let mut merge = Merge::new(&mut visit);
        let call = |id: &str, at: i64| Call { id: id.to_owned(), at: Some(at), ..Call::default() };
        merge.add(call("b", 20), BodyOrigin::Sent);
        merge.begin();
        merge.add(Call { body: Some("{}".into()), ..call("a", 9) }, BodyOrigin::Rebuilt);
        merge.begin();
        merge.add(
            Call { cwd: Some("/p".into()), body: Some("{ }".into()), ..call("a", 10) },
            BodyOrigin::Sent,
        );
        merge.give();
        merge.add(call("a", 11), BodyOrigin::Sent);
        assert_eq!((merge.calls, merge.dropped), (2, 1));
        assert_eq!(
            seen,
            [
                ("a".to_owned(), Some(9), Some("{ }".into()), Some("/p".to_owned())),
                ("b".to_owned(), Some(20), None, None)
            ]
        );
    }

    #[test]
    fn a_clock_that_goes_back_does_not_change_the_order_of_a_file() {
        let mut seen = Vec::new();
        let mut visit = |call: Call| seen.push(call.id);
        let mut merge = Merge::new(&mut visit);
        for (id, at, is_back) in [("a", 50, false), ("b", 40, true), ("c", 60, false)] {
            let call = Call { id: id.to_owned(), at: Some(at), ..Call::default() };
            assert_eq!(merge.add(call, BodyOrigin::Sent), is_back);
        }
        merge.give();
        assert_eq!(seen, ["a", "b", "c"]);
    }
}
