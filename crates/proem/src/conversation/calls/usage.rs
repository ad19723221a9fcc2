//! The sums of calls over a time: tokens, money, and the misses by verdict and owner.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::store::traffic::{DAY_MILLIS, UsageBy, UsageQuery, UsageRow};
use crate::conversation::store::{Store, StoreError};
use crate::inspect::traffic::call::OwnerKind;
use crate::inspect::traffic::report::{ReportDay, ReportSum, ReportTotals};
use crate::inspect::traffic::verdict::{CacheVerdict, LossSide};

/// The version of the shape.
const VERSION: u32 = 1;

/// The sums of calls over a time, as the API returns them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// The version of this shape.
    pub version: u32,
    /// The time from which calls count, in RFC 3339.
    pub since: String,
    /// The time before which calls count, in RFC 3339; absent if all later ones count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The property by which `groups` are formed: `day`, `model`, `cwd`, `profile`, `version` or `owner`.
    pub by: String,
    /// The sums of all calls.
    pub totals: ReportTotals,
    /// The sums by group, the most expensive first; days in their order.
    pub groups: Vec<UsageGroup>,
}

/// The sums of one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageGroup {
    /// The day, model, directory, profile, version or kind of owner; empty if it is not known.
    pub key: String,
    /// The sums.
    #[serde(flatten)]
    pub totals: ReportTotals,
}

impl UsageReport {
    /// Sums up the calls of a store.
    pub fn read(store: &dyn Store, query: &UsageQuery) -> Result<Self, StoreError> {
        let days = store.usage(&UsageQuery { by: UsageBy::Day, ..*query })?;
        let mut totals = ReportTotals::default();
        for row in &days {
            add(&mut totals, row);
            add_day(&mut totals, row);
        }
        let rows = if query.by.stored() == UsageBy::Day { days } else { store.usage(query)? };
        let time = |at: i64| Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default();
        Ok(Self {
            version: VERSION,
            since: time(query.since),
            until: (query.until != i64::MAX).then(|| time(query.until)),
            by: query.by.word().to_owned(),
            totals,
            groups: groups(&rows, query.by),
        })
    }
}

fn groups(rows: &[UsageRow], by: UsageBy) -> Vec<UsageGroup> {
    let mut groups: BTreeMap<String, ReportTotals> = BTreeMap::new();
    for row in rows {
        let key = match by {
            UsageBy::Day => day(row.day),
            UsageBy::Owner => row.owner.clone(),
            _ => row.key.clone(),
        };
        add(groups.entry(key).or_default(), row);
    }
    let mut groups: Vec<UsageGroup> =
        groups.into_iter().map(|(key, totals)| UsageGroup { key, totals }).collect();
    if by != UsageBy::Day {
        groups.sort_by(|a, b| b.totals.usd.total_cmp(&a.totals.usd).then(a.key.cmp(&b.key)));
    }
    groups
}

fn day(number: i64) -> String {
    let at = number.saturating_mul(DAY_MILLIS);
    let day = Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default();
    day.get(..10).unwrap_or("unknown").to_owned()
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn calls(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn add(totals: &mut ReportTotals, row: &UsageRow) {
    let sums = &row.sums;
    totals.calls += calls(sums.calls);
    totals.read += count(sums.read);
    totals.written += count(sums.written);
    totals.uncached += count(sums.uncached);
    totals.output += count(sums.output);
    totals.usd += sums.usd;
    totals.saved_usd += sums.saved_usd;
    totals.unpriced += calls(sums.unpriced);
    totals.is_list_price |= sums.list_price > 0;
    let word = |word: &str| serde_json::Value::from(word);
    let verdict: Option<CacheVerdict> = serde_json::from_value(word(&row.verdict)).ok();
    if verdict.is_some_and(CacheVerdict::is_alarming) {
        totals.alarming_usd += sums.lost_usd;
    }
    let add = |sum: &mut ReportSum| {
        sum.calls += calls(sums.calls);
        sum.lost_tokens += count(sums.lost_tokens);
        sum.lost_usd += sums.lost_usd;
    };
    add(totals.by_verdict.entry(row.verdict.clone()).or_default());
    let owner: Option<OwnerKind> = serde_json::from_value(word(&row.owner)).ok();
    if let Some(owner) = owner {
        add(totals.by_owner.entry(row.owner.clone()).or_default());
        *totals.lost_usd.side(LossSide::of(owner)) += sums.lost_usd;
    }
}

fn add_day(totals: &mut ReportTotals, row: &UsageRow) {
    let sums = &row.sums;
    let sum: &mut ReportDay = totals.by_day.entry(day(row.day)).or_default();
    sum.calls += calls(sums.calls);
    sum.read += count(sums.read);
    sum.input += count(sums.read) + count(sums.written) + count(sums.uncached);
    sum.usd += sums.usd;
    sum.lost_usd += sums.lost_usd;
}
