//! The order of causes: the first one that explains a miss is its verdict.

mod advice;
mod difference;
pub(super) mod money;
mod owner;
mod place;

use crate::inspect::traffic::call::{Call, CallUsage, Purpose};
use crate::inspect::traffic::chain::{Area, Chain, LinkKind};
use crate::inspect::traffic::rules::{Breaks, CacheFacts, TrafficRules};
use crate::inspect::traffic::thread::{Past, Thread};
use crate::inspect::traffic::verdict::{CacheVerdict, ChangeOwner, ChangePlace};
use crate::settings::models::{CacheKind, CacheRules, Model};
pub(super) use advice::advice;
pub(super) use difference::Cause;
use difference::Difference;
use owner::Pair;

/// Calls that are closer may overlap: an entry can be read when the first answer has begun.
const CLOSE_MILLIS: i64 = 1_000;

/// The rules that a call is judged by.
#[derive(Clone, Copy)]
pub(super) struct JudgeRules<'r> {
    pub(super) cache: &'r CacheRules,
    pub(super) facts: &'r CacheFacts,
    pub(super) model: Option<&'r Model>,
}

impl JudgeRules<'_> {
    fn least(&self) -> u64 {
        let of_model =
            self.model.and_then(|model| model.min_tokens).filter(|_| !self.cache.is_chat_template());
        of_model.unwrap_or(self.cache.min_tokens) as u64
    }

    const fn is_marked(&self) -> bool {
        matches!(self.cache.kind, CacheKind::Breakpoints)
    }

    /// Returns the tokens that a call left in the cache; `None` if its numbers are not known.
    pub(super) fn left(&self, usage: &CallUsage) -> Option<u64> {
        let read = usage.read?;
        match (self.is_marked(), usage.written) {
            (true, Some(written)) => Some(read.saturating_add(written)),
            (true, None) if !self.cache.marks_last => Some(read),
            _ => {
                let step = self.cache.step.max(1) as u64;
                let whole = usage.input()?.saturating_sub(self.cache.leaves as u64) / step * step;
                Some(if whole < self.least() { read.min(whole) } else { whole })
            }
        }
    }
}

/// A call with its predecessor.
pub(super) struct Case<'c> {
    pub(super) call: &'c Call,
    pub(super) model: &'c str,
    pub(super) chain: &'c Chain,
    pub(super) past: &'c Past,
    pub(super) earlier: &'c Chain,
    pub(super) thread: &'c Thread,
    pub(super) rules: JudgeRules<'c>,
}

impl<'c> Case<'c> {
    fn common(&self) -> usize {
        self.chain.common(self.earlier)
    }

    fn pair(&self) -> Pair<'c> {
        let attributions = (self.earlier.attribution.as_deref(), self.chain.attribution.as_deref());
        Pair { earlier: &self.past.call, call: self.call, attributions }
    }

    /// Returns the tokens that should have been read: what was left, and not more than this request has.
    pub(super) fn expected(&self) -> Option<u64> {
        let left = self.rules.left(&self.past.call.usage)?;
        let input = self.call.usage.input()?.saturating_sub(self.rules.cache.leaves as u64);
        let step = if self.rules.is_marked() { 1 } else { self.rules.cache.step.max(1) as u64 };
        Some(left.min(input / step * step))
    }

    /// Returns the cause of the call's result.
    pub(super) fn cause(&self, expected: u64, read: u64) -> Cause {
        if expected == 0 && read == 0 {
            return self.nothing_kept();
        }
        if read.saturating_add(self.rules.facts.granularity) >= expected {
            return Cause::new(CacheVerdict::Hit, "all that was expected was read");
        }
        let causes: [&dyn Fn() -> Option<Cause>; 9] = [
            &|| self.compaction(),
            &|| self.all_expired(),
            &|| self.other_model(),
            &|| self.parameter(&[Breaks::Everything, Breaks::Messages]),
            &|| self.routing().filter(|_| read == 0),
            &|| self.difference(),
            &|| self.partly_expired(read),
            &|| self.out_of_reach(),
            &|| self.hidden(read),
        ];
        let found = causes.iter().find_map(|cause| cause());
        let mut cause = found.unwrap_or_else(|| self.nothing_changed());
        if cause.owner.is_none() {
            cause.owner = self.pair().of_verdict(cause.verdict);
        }
        cause
    }

    /// Judges a call for which nothing was in the cache.
    fn nothing_kept(&self) -> Cause {
        let (usage, before) = (&self.call.usage, &self.past.call.usage);
        let least = self.rules.least();
        let is_short = |usage: &CallUsage| usage.input().is_some_and(|input| input < least);
        let agent = self.pair().of_verdict(CacheVerdict::BelowMinimum);
        let mut cause = if is_short(usage) || is_short(before) && usage.written != Some(0) {
            Cause::new(CacheVerdict::BelowMinimum, format!("nothing below {least} tokens is cached"))
        } else if self.rules.is_marked() && !self.rules.cache.marks_last && self.chain.markers.is_empty() {
            Cause::new(CacheVerdict::MarkerMissing, "the request marks no block, and nothing else is cached")
        } else if self.rules.is_marked() && !self.rules.cache.marks_last && self.earlier.markers.is_empty() {
            Cause::new(CacheVerdict::MarkerMissing, "the request before marked no block, so nothing was kept")
        } else {
            return Cause::new(CacheVerdict::Hit, "nothing was in the cache");
        };
        cause.owner = agent;
        cause
    }

    fn compaction(&self) -> Option<Cause> {
        let is_after =
            |past: &&Past| past.index > self.past.index && past.call.purpose == Purpose::Compaction;
        let is_own = self.call.purpose == Purpose::Compaction;
        let systems = self.prefix_links();
        let is_compacted =
            !is_own && self.common() >= systems && self.thread.calls.iter().any(|past| is_after(&past));
        is_compacted.then(|| {
            let cause = Cause::new(CacheVerdict::Compaction, "the conversation was summarised");
            let part = self.chain.links.get(self.common()).map(|link| link.part.clone());
            Cause { place: Some(ChangePlace { part_after: part, ..ChangePlace::default() }), ..cause }
        })
    }

    /// Returns the number of links before the messages in the earlier request.
    fn prefix_links(&self) -> usize {
        self.earlier.links.iter().filter(|link| link.area != Area::Messages).count()
    }

    /// Returns the links of the earlier request whose prefix was put into the cache, with their lifetimes in seconds.
    fn entries(&self) -> Vec<(usize, Option<u64>)> {
        let last = self.earlier.links.len().saturating_sub(1);
        if !self.rules.is_marked() || self.rules.cache.marks_last {
            let is_extended = self
                .earlier
                .parameters
                .get("prompt_cache_retention")
                .is_some_and(|value| value.contains("24h"));
            let of_model = TrafficRules::built_in().lifetime(self.model, is_extended);
            let is_openai = self.rules.cache.name.starts_with("openai");
            return vec![(last, of_model.filter(|_| is_openai).or(self.rules.cache.seconds))];
        }
        let marked = |seconds: Option<u64>| seconds.or(self.rules.cache.seconds);
        self.earlier.markers.iter().map(|marker| (marker.link, marked(marker.seconds))).collect()
    }

    /// Returns the seconds since a prefix of the earlier request was last used; `None` without times.
    fn age(&self, link: usize) -> Option<u64> {
        let uses = self.thread.calls.iter().filter(|past| {
            past.model == self.past.model
                && past.chain.as_ref().is_some_and(|chain| chain.common(self.earlier) > link)
        });
        let last = uses.filter_map(|past| past.call.at).max()?;
        u64::try_from(self.call.at?.saturating_sub(last)).ok().map(|millis| millis / 1_000)
    }

    /// Returns the entries with their ages and whether they are alive; `None` where that is not known.
    fn lives(&self) -> Option<Vec<(usize, u64, bool)>> {
        let entries = self.entries();
        let lives = entries.into_iter().map(|(link, seconds)| {
            let age = self.age(link)?;
            Some((link, age, age <= seconds?))
        });
        lives.collect()
    }

    fn all_expired(&self) -> Option<Cause> {
        let lives = self.lives()?;
        let (link, age, _) = *lives.first()?;
        lives.iter().all(|(_, _, is_alive)| !is_alive).then(|| self.expired(link, age))
    }

    fn expired(&self, link: usize, age: u64) -> Cause {
        let part = self.earlier.links.get(link).map(|link| link.part.clone());
        let name = part.clone().unwrap_or_default();
        let seconds =
            self.entries().into_iter().find(|(entry, _)| *entry == link).and_then(|(_, seconds)| seconds);
        let kept = seconds.map_or_else(String::new, |seconds| {
            format!(", {} after its lifetime", age.saturating_sub(seconds).to_string() + " s")
        });
        let why = format!("{name} was last used {age} s ago{kept}");
        let place = Some(ChangePlace { part_before: part, ..ChangePlace::default() });
        Cause {
            verdict: CacheVerdict::Expired,
            why,
            place,
            owner: Some(ChangeOwner::new(crate::inspect::traffic::call::OwnerKind::Time)),
        }
    }

    fn other_model(&self) -> Option<Cause> {
        let (before, after) = (self.past.model.as_str(), self.model);
        let is_known = !before.is_empty() && !after.is_empty();
        (is_known && before != after).then(|| {
            Cause::new(
                CacheVerdict::ModelChanged,
                format!("the model was {before} and is {after}: each has its own cache"),
            )
        })
    }

    fn parameter(&self, kinds: &[Breaks]) -> Option<Cause> {
        let (old, new) = (&self.earlier.parameters, &self.chain.parameters);
        let rules = TrafficRules::built_in().parameters(self.chain.wire);
        let changed = rules.filter(|rule| kinds.contains(&rule.breaks)).find(|rule| {
            let is_other = old.get(&rule.name) != new.get(&rule.name);
            is_other && (rule.breaks != Breaks::Messages || self.can_break_messages(&rule.name))
        })?;
        let shown = |value: Option<&String>| {
            value.map_or_else(|| "not set".to_owned(), |value| value.chars().take(60).collect())
        };
        let (before, after) = (shown(old.get(&changed.name)), shown(new.get(&changed.name)));
        let verdict = if changed.breaks == Breaks::Routing {
            CacheVerdict::Routing
        } else {
            CacheVerdict::ParameterChanged
        };
        Some(Cause::new(verdict, format!("`{}` was {before} and is {after}", changed.name)))
    }

    /// Tells if a parameter that invalidates messages only can be the cause.
    fn can_break_messages(&self, name: &str) -> bool {
        let common = self.common();
        // An appended system message without content switches the effort, and breaks nothing.
        let is_appended = name.ends_with("effort")
            && self
                .chain
                .links
                .iter()
                .skip(common)
                .any(|link| link.role == "system" && link.kind == LinkKind::Empty);
        let is_prefix_marked = self.earlier.markers.iter().any(|marker| {
            self.earlier.links.get(marker.link).is_some_and(|link| link.area != Area::Messages)
        });
        let is_prefix_lost = self.call.usage.read == Some(0) && is_prefix_marked;
        common >= self.prefix_links() && !is_appended && !is_prefix_lost
    }

    fn routing(&self) -> Option<Cause> {
        let (old, new) = (&self.past.call.route, &self.call.route);
        let is_other = |before: &Option<String>, after: &Option<String>| {
            before.is_some() && after.is_some() && before != after
        };
        let changed = [
            ("host", is_other(&old.host, &new.host)),
            ("region", is_other(&old.region, &new.region)),
            ("account", is_other(&old.account, &new.account)),
        ];
        let named = changed.iter().find(|(_, is_other)| *is_other);
        let of_route = named.map(|(what, _)| {
            Cause::new(CacheVerdict::Routing, format!("the request went to another {what}"))
        });
        of_route.or_else(|| self.parameter(&[Breaks::Routing]))
    }

    /// Returns the first difference, if it stands inside of what was cached.
    fn difference(&self) -> Option<Cause> {
        let common = self.common();
        let is_partial = self.rules.is_marked() && !self.rules.cache.marks_last;
        let marked = self.earlier.markers.iter().map(|marker| marker.link + 1).max().filter(|_| is_partial);
        if common >= marked.unwrap_or(self.earlier.links.len()) {
            return None;
        }
        let (facts, earlier, chain) = (self.rules.facts, self.earlier, self.chain);
        Difference { pair: self.pair(), earlier, chain, common, facts }.cause()
    }

    /// Explains a loss by the entries that have expired, if what is alive was read.
    fn partly_expired(&self, read: u64) -> Option<Cause> {
        let lives = self.lives()?;
        let (link, age, _) = *lives.iter().find(|(_, _, is_alive)| !is_alive)?;
        let alive = lives.iter().filter(|(_, _, is_alive)| *is_alive).map(|(link, _, _)| link + 1).max()?;
        let all = self.earlier.tokens(self.earlier.links.len()).max(1) as u64;
        let input = self.past.call.usage.input()?;
        let wanted = (self.earlier.tokens(alive) as u64).saturating_mul(input) / all;
        // Tokens of a part are estimated.
        (read.saturating_mul(2) >= wanted).then(|| self.expired(link, age))
    }

    fn out_of_reach(&self) -> Option<Cause> {
        if !self.rules.is_marked() {
            return None;
        }
        let entry = self.entries().last().map(|(link, _)| *link)?;
        let mut marks: Vec<usize> = self.chain.markers.iter().map(|marker| marker.link).collect();
        if self.rules.cache.marks_last {
            marks.push(self.chain.links.len().saturating_sub(1));
        }
        if entry >= self.chain.links.len() {
            return None;
        }
        if marks.is_empty() {
            return Some(Cause::new(CacheVerdict::MarkerMissing, "the request marks no block"));
        }
        let nearest = marks.iter().filter(|mark| **mark >= entry).min();
        match nearest {
            None => Some(Cause::new(
                CacheVerdict::MarkerMoved,
                "the last marker stands before the end of what was cached",
            )),
            Some(mark) if mark - entry >= self.rules.cache.lookback => {
                let why = format!(
                    "the marker stands {} blocks after what was cached; {} are searched",
                    mark - entry,
                    self.rules.cache.lookback
                );
                Some(Cause::new(CacheVerdict::LookbackExceeded, why))
            }
            Some(_) => None,
        }
    }

    /// Looks for causes that the digests do not show.
    fn hidden(&self, read: u64) -> Option<Cause> {
        let forms = self.chain.forms.iter().zip(&self.earlier.forms).take(self.common());
        if self.rules.facts.forms_matter && forms.into_iter().any(|(own, theirs)| own != theirs) {
            return Some(Cause::new(
                CacheVerdict::MessageReformed,
                "an earlier message has the same text in another form",
            ));
        }
        let prefix = self.prefix_links();
        let is_all_lost = read.saturating_mul(4) < self.earlier.tokens(prefix) as u64;
        let (before, after) = (&self.earlier.attribution, &self.chain.attribution);
        if self.call.route.host.is_none() && before.is_some() && before != after && is_all_lost {
            let mut cause =
                Cause::new(CacheVerdict::SystemChanged, "the agent's attribution block is another one");
            let part = Some("system[0]".to_owned());
            let change = place::first_change(
                before.as_deref().unwrap_or_default(),
                after.as_deref().unwrap_or_default(),
            );
            let mut place =
                ChangePlace { part_before: part.clone(), part_after: part, ..ChangePlace::default() };
            if let Some(change) = change {
                (place.byte, place.line, place.column) =
                    (Some(change.byte), Some(change.line), Some(change.column));
                (place.before, place.after) = (Some(change.before), Some(change.after));
            }
            cause.place = Some(place);
            return Some(cause);
        }
        self.routing().or_else(|| self.parameter(&[Breaks::Weak]))
    }

    fn nothing_changed(&self) -> Cause {
        let (Some(before), Some(now)) = (self.past.call.at, self.call.at) else {
            return Cause::new(
                CacheVerdict::Unknown,
                "both requests begin with the same; their times are not known",
            );
        };
        if (now - before).abs() < CLOSE_MILLIS {
            return Cause::new(
                CacheVerdict::Unknown,
                "the calls were made at once: the first may not have been cached yet",
            );
        }
        match self.lives() {
            Some(_) => Cause::new(
                CacheVerdict::Provider,
                "both requests begin with the same, and the entry was alive",
            ),
            None => Cause::new(
                CacheVerdict::Unknown,
                "both requests begin with the same; how long the provider keeps an entry is not known",
            ),
        }
    }
}
