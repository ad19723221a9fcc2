//! The stored trace of a request: enough to tell whether the next one begins with the same bytes, without any of its
//! text.

use serde::{Deserialize, Serialize};

use crate::costs::simulate::{CacheMark, Part, Payload, Pieces};
use crate::settings::models::{CacheKind, CacheRules};
use crate::settings::tokens::Tokenizer;

/// A request, by digests of its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    model: String,
    /// The end of the tools.
    tools: End,
    /// The end of the system prompt.
    system: End,
    /// The end of it all.
    whole: End,
    /// The blocks that carry a marker, and whether it is for an hour.
    marks: Vec<(usize, bool)>,
}

/// The number of blocks up to here, and the digest of them all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    blocks: usize,
    digest: String,
}

/// A request that is being examined: its trace, and the digest up to each block.
#[derive(Debug)]
pub(super) struct TracedRequest {
    pub(super) trace: Trace,
    ends: Vec<String>,
    /// The system prompt, as it was sent.
    pub(super) system: String,
}

impl TracedRequest {
    pub(super) fn from_payload(payload: &Payload, is_chat_template: bool) -> Option<Self> {
        let pieces = Pieces::from_payload(payload, Tokenizer::Estimate, is_chat_template).ok()?;
        let ends: Vec<String> = pieces.ends().into_iter().map(|(digest, _)| digest.hex()).collect();
        let end = |blocks: usize| End {
            blocks,
            digest: blocks.checked_sub(1).and_then(|last| ends.get(last)).cloned().unwrap_or_default(),
        };
        let last_of = |part: Part| {
            let found = pieces.list.iter().rposition(|piece| piece.part == part);
            end(found.map_or(0, |index| index + 1))
        };
        let marks = pieces.list.iter().enumerate();
        let marks =
            marks.filter_map(|(index, piece)| Some((index, piece.mark? == CacheMark::Hour))).collect();
        let system = pieces.list.iter().filter(|piece| piece.part == Part::System);
        let system = system.map(|piece| piece.text.as_str()).collect();
        let trace = Trace {
            model: pieces.model.clone(),
            tools: last_of(Part::Tools),
            system: last_of(Part::System),
            whole: end(pieces.list.len()),
            marks,
        };
        Some(Self { trace, ends, system })
    }

    fn begins_with(&self, end: &End) -> bool {
        match end.blocks.checked_sub(1) {
            None => true,
            Some(last) => self.ends.get(last) == Some(&end.digest),
        }
    }

    /// Returns the part that changed, in the providers' terms.
    pub(super) fn change(&self, before: &Trace) -> Option<&'static str> {
        let Trace { model, tools, system, whole, .. } = before;
        if *model != self.trace.model {
            Some("model_changed")
        } else if !self.begins_with(tools) {
            Some("tools_changed")
        } else if !self.begins_with(system) {
            Some("system_changed")
        } else if !self.begins_with(whole) {
            Some("messages_changed")
        } else {
            None
        }
    }

    /// Returns the reason why a cache with markers cannot find the previous request's entry although nothing changed.
    pub(super) fn out_of_reach(&self, before: &Trace, rules: &CacheRules) -> Option<&'static str> {
        if rules.kind != CacheKind::Breakpoints {
            return None;
        }
        let ends = |trace: &Trace| {
            let own = trace.marks.iter().map(|(index, _)| *index);
            own.chain(rules.marks_last.then(|| trace.whole.blocks.saturating_sub(1))).max()
        };
        let (Some(left), Some(_)) = (ends(before), ends(&self.trace)) else { return Some("no_marker") };
        let marks = self.trace.marks.iter().map(|(index, _)| *index);
        let mut marks = marks.chain(rules.marks_last.then(|| self.trace.whole.blocks.saturating_sub(1)));
        let finds = |mark: usize| mark >= left && mark - left < rules.lookback.max(1);
        if marks.any(finds) { None } else { Some("beyond_lookback") }
    }
}

impl Trace {
    /// Returns the shortest and the longest lifetime of its entries, in seconds; `None` if the rules have none.
    pub(super) fn lifetimes(&self, rules: &CacheRules) -> Option<(u64, u64)> {
        let of = |is_hour: bool| if is_hour { rules.seconds_1h.or(rules.seconds) } else { rules.seconds };
        let all = self.marks.iter().map(|(_, is_hour)| of(*is_hour));
        let all: Option<Vec<u64>> = all.chain(self.marks.is_empty().then(|| of(false))).collect();
        let all = all?;
        Some((*all.iter().min()?, *all.iter().max()?))
    }

    /// Tells whether it marks anything for caching.
    pub(super) fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }
}
