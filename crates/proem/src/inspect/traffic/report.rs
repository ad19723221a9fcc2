//! The report: verdicts of a sequence of calls, and their sums.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proem_core::note::Note;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::analyser::Analyser;
use super::call::Call;
use super::verdict::{CacheVerdict, CallVerdict, LossSide};
use crate::settings::models::Models;

/// The version of the printed shape.
const VERSION: u32 = 1;

/// A place from which calls were read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportSource {
    /// The kind: `claude-code`, `codex`, `jsonl`, …
    pub kind: String,
    /// The file or folder.
    pub path: String,
    /// The calls that were read from it.
    pub calls: usize,
}

/// A note of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportNote {
    /// The subject, as a stable word.
    pub code: String,
    /// `info`, `warning` or `error`.
    pub severity: String,
    /// The finding.
    pub message: String,
}

impl From<&Note> for ReportNote {
    fn from(note: &Note) -> Self {
        Self {
            code: note.code.word().to_owned(),
            severity: note.severity.word().to_owned(),
            message: note.message.clone(),
        }
    }
}

/// The misses of one verdict or owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportSum {
    /// The number of calls.
    pub calls: usize,
    /// Tokens that were expected and not read.
    pub lost_tokens: u64,
    /// Their price.
    pub lost_usd: f64,
}

impl ReportSum {
    fn add(&mut self, call: &CallVerdict) {
        self.calls += 1;
        self.lost_tokens = self.lost_tokens.saturating_add(call.lost_tokens);
        self.lost_usd += call.lost_usd.unwrap_or(0.0);
    }
}

/// The calls of one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportDay {
    /// The number of calls.
    pub calls: usize,
    /// Tokens read from the cache.
    pub read: u64,
    /// All input tokens.
    pub input: u64,
    /// The price.
    pub usd: f64,
    /// The price of what was lost.
    pub lost_usd: f64,
}

/// Losses by the side that caused them, in USD.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportLoss {
    /// Files, skills, servers, plugins and hooks that the user configured.
    pub ours: f64,
    /// The user.
    pub user: f64,
    /// The agent.
    pub agent: f64,
    /// The provider.
    pub provider: f64,
    /// Not known.
    pub unknown: f64,
}

impl ReportLoss {
    /// Returns the losses of a side.
    pub const fn side(&mut self, side: LossSide) -> &mut f64 {
        match side {
            LossSide::Ours => &mut self.ours,
            LossSide::User => &mut self.user,
            LossSide::Agent => &mut self.agent,
            LossSide::Provider => &mut self.provider,
            LossSide::Unknown => &mut self.unknown,
        }
    }
}

/// The sums of a report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportTotals {
    /// The number of calls.
    pub calls: usize,
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to it.
    pub written: u64,
    /// Tokens neither read nor written.
    pub uncached: u64,
    /// Tokens of answers.
    pub output: u64,
    /// The price of all calls whose model has one.
    pub usd: f64,
    /// The price of the same calls without a cache, less that.
    #[serde(default)]
    pub saved_usd: f64,
    /// The calls whose model has no price, or whose tokens are not known.
    pub unpriced: usize,
    /// True if some of the money is list price, because a subscription paid.
    pub is_list_price: bool,
    /// The price of what was lost, by side.
    pub lost_usd: ReportLoss,
    /// The price of what was lost by alarming misses.
    pub alarming_usd: f64,
    /// The calls by verdict.
    pub by_verdict: BTreeMap<String, ReportSum>,
    /// The misses by kind of owner.
    pub by_owner: BTreeMap<String, ReportSum>,
    /// The calls by day, in UTC.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_day: BTreeMap<String, ReportDay>,
}

/// A report, as it is printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "proem report")]
pub struct TrafficReport {
    /// The version of this shape.
    pub version: u32,
    /// The day of the facts about agents and providers.
    pub rules_as_of: String,
    /// The day of the prices.
    pub prices_as_of: String,
    /// The places from which calls were read.
    pub sources: Vec<ReportSource>,
    /// Everything that was skipped or not understood.
    pub notes: Vec<ReportNote>,
    /// The calls, in the order of time.
    pub calls: Vec<CallVerdict>,
    /// Their sums.
    pub totals: ReportTotals,
}

/// The calls that a report shows. All calls are analysed: a verdict needs those before it.
#[derive(Debug, Clone, Default)]
pub struct ReportFilter {
    /// The earliest time, in milliseconds since 1970.
    pub since: Option<i64>,
    /// The conversation.
    pub conversation: Option<String>,
}

impl TrafficReport {
    /// Creates a report without calls.
    #[must_use]
    pub fn empty(models: &Models) -> Self {
        Self {
            version: VERSION,
            rules_as_of: super::rules_as_of().to_owned(),
            prices_as_of: models.as_of.clone(),
            sources: Vec::new(),
            notes: Vec::new(),
            calls: Vec::new(),
            totals: ReportTotals::default(),
        }
    }

    /// Adds a judged call. A subscription's money is list price.
    pub fn push(&mut self, call: CallVerdict, is_list_price: bool) {
        self.totals.is_list_price |= is_list_price;
        self.totals.add(&call);
        self.calls.push(call);
    }

    /// Analyses calls in the order in which they come, and sums them up.
    #[must_use]
    pub fn new(calls: impl IntoIterator<Item = Call>, models: &Models, filter: &ReportFilter) -> Self {
        let mut builder = ReportBuilder::new(models, filter.clone());
        calls.into_iter().for_each(|call| builder.take(call));
        builder.finish()
    }

    /// Sums up calls that were judged before, each with a flag for list prices.
    #[must_use]
    pub fn of_verdicts(calls: impl IntoIterator<Item = (CallVerdict, bool)>, models: &Models) -> Self {
        let mut report = Self::empty(models);
        for (call, is_list_price) in calls {
            report.push(call, is_list_price);
        }
        report
    }

    /// Returns the misses, the most expensive first; the expected ones only on request.
    #[must_use]
    pub fn misses(&self, with_expected: bool) -> Vec<&CallVerdict> {
        let is_shown = |call: &&CallVerdict| {
            call.alarming
                || with_expected && !matches!(call.verdict, CacheVerdict::Hit | CacheVerdict::ColdStart)
        };
        let mut misses: Vec<&CallVerdict> = self.calls.iter().filter(is_shown).collect();
        misses.sort_by(|a, b| {
            let money = |call: &CallVerdict| call.lost_usd.unwrap_or(0.0);
            money(b).total_cmp(&money(a)).then(b.lost_tokens.cmp(&a.lost_tokens))
        });
        misses
    }
}

/// Builds a report while calls are read, so that only some of their requests are in memory.
#[derive(Debug)]
pub struct ReportBuilder {
    report: TrafficReport,
    analyser: Analyser,
    filter: ReportFilter,
}

impl ReportBuilder {
    /// Starts without calls.
    #[must_use]
    pub fn new(models: &Models, filter: ReportFilter) -> Self {
        Self { report: TrafficReport::empty(models), analyser: Analyser::new(models.clone()), filter }
    }

    /// Judges a call. The calls of one conversation come in the order in which they were sent.
    pub fn take(&mut self, mut call: Call) {
        let Self { report, analyser, filter } = self;
        report.notes.extend(std::mem::take(&mut call.notes).iter().map(ReportNote::from));
        let (at, is_list_price) = (call.at, call.is_subscription);
        let judged = analyser.take(call);
        let is_late = filter.since.is_none_or(|since| at.is_none_or(|at| at >= since));
        let is_wanted = filter.conversation.as_ref().is_none_or(|wanted| *wanted == judged.conversation);
        if is_late && is_wanted {
            report.push(judged, is_list_price);
        }
    }

    /// Adds a note about something that was skipped.
    pub fn note(&mut self, note: &Note) {
        self.report.notes.push(ReportNote::from(note));
    }

    /// Adds a place from which calls were read.
    pub fn source(&mut self, source: ReportSource) {
        self.report.sources.push(source);
    }

    /// Returns the report, with its calls in the order of time where every call has one.
    #[must_use]
    pub fn finish(self) -> TrafficReport {
        let mut report = self.report;
        if report.calls.iter().all(|call| call.at.is_some()) {
            // RFC 3339 leaves out digits of a second that are zero, so that texts do not sort by time.
            let time = |call: &CallVerdict| call.at.as_deref()?.parse::<Timestamp>().ok();
            report.calls.sort_by_cached_key(time);
        }
        report
    }
}

impl CallVerdict {
    /// Returns the owner in words: its kind, and its name or file with the line.
    #[must_use]
    pub fn owner_words(&self) -> String {
        let Some(owner) = &self.owner else { return String::new() };
        let kind =
            serde_json::to_value(owner.kind).ok().and_then(|word| Some(word.as_str()?.replace('_', " ")));
        let mut words = vec![kind.unwrap_or_default()];
        words.extend([&owner.name, &owner.path].into_iter().flatten().cloned());
        let line = owner.line.map_or_else(String::new, |line| format!(":{line}"));
        words.join(" ") + &line
    }
}

impl ReportTotals {
    /// Returns the price of everything that was lost.
    #[must_use]
    pub fn lost(&self) -> f64 {
        let ReportLoss { ours, user, agent, provider, unknown } = self.lost_usd;
        ours + user + agent + provider + unknown
    }

    /// Returns the share of the input that was read from the cache, in words.
    #[must_use]
    pub fn hit_share(&self) -> String {
        let input = self.read.saturating_add(self.written).saturating_add(self.uncached);
        super::html::share(self.read, input)
    }

    fn add(&mut self, call: &CallVerdict) {
        self.calls += 1;
        let sum = |total: &mut u64, more: Option<u64>| *total = total.saturating_add(more.unwrap_or(0));
        sum(&mut self.read, call.read);
        sum(&mut self.written, call.written);
        sum(&mut self.uncached, call.uncached);
        sum(&mut self.output, call.output);
        self.usd += call.usd.unwrap_or(0.0);
        self.saved_usd += call.saved_usd.unwrap_or(0.0);
        self.unpriced += usize::from(call.usd.is_none());
        let lost = call.lost_usd.unwrap_or(0.0);
        if call.alarming {
            self.alarming_usd += lost;
        }
        self.by_verdict.entry(call.verdict.word().to_owned()).or_default().add(call);
        if let Some(owner) = &call.owner {
            let word = serde_json::to_value(owner.kind).ok().and_then(|word| Some(word.as_str()?.to_owned()));
            self.by_owner.entry(word.unwrap_or_default()).or_default().add(call);
            *self.lost_usd.side(LossSide::of(owner.kind)) += lost;
        }
        let day = call.at.as_deref().and_then(|at| at.get(..10)).unwrap_or("unknown");
        let day = self.by_day.entry(day.to_owned()).or_default();
        day.calls += 1;
        for part in [call.read, call.written, call.uncached] {
            sum(&mut day.input, part);
        }
        sum(&mut day.read, call.read);
        day.usd += call.usd.unwrap_or(0.0);
        day.lost_usd += lost;
    }
}
