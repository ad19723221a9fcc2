//! The records of calls to providers: rows, daily sums, and chains of live threads.

use std::fmt;

use jiff::Timestamp;
use proem_core::text::clip;

use super::StoreError;
pub use super::listed::{ListKey, ListPage, ListQuery, ListSort, ListedConversation};
use super::record::Page;
use crate::inspect::traffic::CallVerdict;
use crate::inspect::traffic::call::OwnerKind;

/// Milliseconds of a day.
pub const DAY_MILLIS: i64 = 86_400_000;

/// Days for which rows of calls are kept.
pub const CALL_DAYS: i64 = 90;

/// Milliseconds for which the chains of a thread are kept after its last call.
pub const CHAIN_MILLIS: i64 = 25 * 3_600_000;

/// Bytes of a name in a row: a model, a directory, an agent.
const NAME_BYTES_MAX: usize = 1_024;

/// Tokens of one call that sums take: a larger number is an error of its source, and sums must not overflow.
const TOKENS_MAX: u64 = 1_000_000_000_000;

/// The numbers of calls, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CallSums {
    /// The number of calls.
    pub calls: i64,
    /// Tokens read from the cache.
    pub read: i64,
    /// Tokens written to it.
    pub written: i64,
    /// Tokens neither read nor written.
    pub uncached: i64,
    /// Tokens of answers.
    pub output: i64,
    /// Calls without a price.
    pub unpriced: i64,
    /// Calls that a subscription paid.
    pub list_price: i64,
    /// Tokens that were expected and not read.
    pub lost_tokens: i64,
    /// The price.
    pub usd: f64,
    /// The price without a cache, less the price.
    pub saved_usd: f64,
    /// The price of lost tokens.
    pub lost_usd: f64,
}

impl CallSums {
    /// Returns the numbers of one call.
    #[must_use]
    pub fn of_call(call: &CallVerdict, is_list_price: bool) -> Self {
        let tokens =
            |count: Option<u64>| i64::try_from(count.unwrap_or(0).min(TOKENS_MAX)).unwrap_or(i64::MAX);
        let money = |usd: Option<f64>| usd.filter(|usd| usd.is_finite()).unwrap_or(0.0);
        Self {
            calls: 1,
            read: tokens(call.read),
            written: tokens(call.written),
            uncached: tokens(call.uncached),
            output: tokens(call.output),
            unpriced: i64::from(call.usd.is_none()),
            list_price: i64::from(is_list_price),
            lost_tokens: tokens(Some(call.lost_tokens)),
            usd: money(call.usd),
            saved_usd: money(call.saved_usd),
            lost_usd: money(call.lost_usd),
        }
    }

    /// Adds other numbers.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.read += other.read;
        self.written += other.written;
        self.uncached += other.uncached;
        self.output += other.output;
        self.unpriced += other.unpriced;
        self.list_price += other.list_price;
        self.lost_tokens += other.lost_tokens;
        self.usd += other.usd;
        self.saved_usd += other.saved_usd;
        self.lost_usd += other.lost_usd;
    }

    /// Returns the numbers that take these away.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self {
            calls: -self.calls,
            read: -self.read,
            written: -self.written,
            uncached: -self.uncached,
            output: -self.output,
            unpriced: -self.unpriced,
            list_price: -self.list_price,
            lost_tokens: -self.lost_tokens,
            usd: -self.usd,
            saved_usd: -self.saved_usd,
            lost_usd: -self.lost_usd,
        }
    }

    /// Returns the integers in the order of the columns.
    #[must_use]
    pub const fn integers(&self) -> [i64; 8] {
        [
            self.calls,
            self.read,
            self.written,
            self.uncached,
            self.output,
            self.unpriced,
            self.list_price,
            self.lost_tokens,
        ]
    }

    /// Returns the sums of money in the order of the columns.
    #[must_use]
    pub const fn money(&self) -> [f64; 3] {
        [self.usd, self.saved_usd, self.lost_usd]
    }

    /// Creates sums from columns.
    #[must_use]
    pub const fn from_columns(integers: [i64; 8], money: [f64; 3]) -> Self {
        let [calls, read, written, uncached, output, unpriced, list_price, lost_tokens] = integers;
        let [usd, saved_usd, lost_usd] = money;
        Self {
            calls,
            read,
            written,
            uncached,
            output,
            unpriced,
            list_price,
            lost_tokens,
            usd,
            saved_usd,
            lost_usd,
        }
    }
}

/// A judged call as a row.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRow {
    /// The id, unique in the store.
    pub id: String,
    /// The time of sending, in milliseconds since 1970.
    pub at: i64,
    /// The id of the conversation in the list.
    pub conversation: String,
    /// The agent, or empty.
    pub agent: String,
    /// The model, or empty.
    pub model: String,
    /// The working directory, or empty.
    pub cwd: String,
    /// The profile, or empty.
    pub profile: String,
    /// The version of the template, or empty.
    pub version: String,
    /// The word of the verdict.
    pub verdict: String,
    /// The word of the owner's kind, or empty.
    pub owner: String,
    /// True if a report shows the miss unasked.
    pub is_alarming: bool,
    /// Its numbers.
    pub sums: CallSums,
    /// The call as JSON, in the stored shape.
    pub record: String,
}

impl CallRow {
    /// Clips the names, so that a row has a bounded size.
    #[must_use]
    pub fn clipped(mut self) -> Self {
        for name in [&mut self.agent, &mut self.model, &mut self.cwd, &mut self.profile, &mut self.version] {
            // PostgreSQL has no NUL.
            *name = clip(name, NAME_BYTES_MAX).replace('\0', "");
        }
        self
    }

    /// Returns the day, counted from 1970 in UTC.
    #[must_use]
    pub const fn day(&self) -> i64 {
        self.at.div_euclid(DAY_MILLIS)
    }

    /// Returns the groups of the daily sums that the call belongs to.
    #[must_use]
    pub fn groups(&self) -> Vec<(UsageBy, &str)> {
        let keys = [
            (UsageBy::Day, ""),
            (UsageBy::Model, self.model.as_str()),
            (UsageBy::Cwd, self.cwd.as_str()),
            (UsageBy::Profile, self.profile.as_str()),
            (UsageBy::Version, self.version.as_str()),
        ];
        keys.into_iter().collect()
    }

    /// Returns the miss that the list of conversations shows; `None` for a call without one.
    #[must_use]
    pub fn miss(&self) -> Option<String> {
        let is_none = matches!(self.verdict.as_str(), "hit" | "cold_start" | "unknown" | "fork");
        (!is_none).then(|| {
            serde_json::json!({
                "id": self.id,
                "at": Timestamp::from_millisecond(self.at).map(|at| at.to_string()).unwrap_or_default(),
                "verdict": self.verdict,
                "owner": (!self.owner.is_empty()).then_some(&self.owner),
                "lost_usd": self.sums.lost_usd,
            })
            .to_string()
        })
    }
}

/// A call and its chain, before they are stored.
#[derive(Debug, Clone, PartialEq)]
pub struct CallInsert {
    /// The row.
    pub row: CallRow,
    /// The chain.
    pub chain: Option<ChainInsert>,
    /// True to replace a stored call of this id, which had no request.
    pub replaces: bool,
}

/// The chain of a call, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainInsert {
    /// The thread.
    pub thread: String,
    /// The digest of the first message, in hexadecimal digits.
    pub first: String,
    /// True if it can be read without an earlier one.
    pub is_full: bool,
    /// The chain as JSON: its difference from an earlier one.
    pub link: String,
}

/// A stored chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainRow {
    /// The number of its call.
    pub number: u64,
    /// The chain as JSON.
    pub link: String,
}

/// A stored call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCall {
    /// The number, which grows with every stored call.
    pub number: u64,
    /// The time, in milliseconds since 1970.
    pub at: i64,
    /// The call as JSON.
    pub record: String,
}

/// A query for calls. A filter without a value takes all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallQuery {
    /// The id of the conversation, or the session in it.
    pub conversation: Option<String>,
    /// The earliest time.
    pub since: Option<i64>,
    /// The time before which calls were made.
    pub until: Option<i64>,
    /// The verdicts.
    pub verdicts: Vec<String>,
    /// The model.
    pub model: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The kind of the owner.
    pub owner: Option<String>,
    /// True for the misses that a report shows unasked, false for the others.
    pub is_alarming: Option<bool>,
    /// The [`Page::next`] of the page before.
    pub after: Option<String>,
    /// The most calls of the page.
    pub most: usize,
}

/// The position of a call in a list: `AT~NUMBER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// The time.
    pub at: i64,
    /// The number.
    pub number: i64,
}

impl CallKey {
    /// The key before the newest call.
    pub const NEWEST: Self = Self { at: i64::MAX, number: i64::MAX };

    /// Reads a key; `None` for another text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (at, number) = text.split_once('~')?;
        Some(Self { at: at.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for CallKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}~{}", self.at, self.number)
    }
}

impl Page<StoredCall> {
    /// Creates a page of at most `most` calls. One call more says that there is another page.
    #[must_use]
    pub fn of_calls(mut items: Vec<StoredCall>, most: usize) -> Self {
        let has_more = items.len() > most;
        items.truncate(most);
        let key = |call: &StoredCall| CallKey { at: call.at, number: super::columns::signed(call.number) };
        let next = items.last().filter(|_| has_more).map(|call| key(call).to_string());
        Self { items, next }
    }
}

/// The property by which sums are grouped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageBy {
    /// The day, in UTC.
    #[default]
    Day,
    /// The model.
    Model,
    /// The working directory.
    Cwd,
    /// The profile.
    Profile,
    /// The version of the template.
    Version,
    /// The kind of the owner.
    Owner,
}

impl UsageBy {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Day, Self::Model, Self::Cwd, Self::Profile, Self::Version, Self::Owner];

    /// Returns the word of the API.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Cwd => "cwd",
            Self::Profile => "profile",
            Self::Version => "version",
            Self::Owner => "owner",
        }
    }

    /// Returns the dimension under which stored sums have the group: those of owners are in those of days.
    #[must_use]
    pub const fn stored(self) -> Self {
        match self {
            Self::Owner => Self::Day,
            other => other,
        }
    }

    /// Returns the property of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.word() == word)
    }
}

/// A query for sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// The earliest time.
    pub since: i64,
    /// The time before which calls were made.
    pub until: i64,
    /// The grouping.
    pub by: UsageBy,
}

/// A range of time for sums: whole days from the daily sums, and the rest from rows of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSpans {
    /// The first whole day, and the day after the last one.
    pub days: (i64, i64),
    /// Parts of days, in milliseconds since 1970.
    pub parts: Vec<(i64, i64)>,
}

impl UsageQuery {
    /// Divides the range. A part of a day whose rows may be gone counts as the whole day.
    #[must_use]
    pub fn spans(&self, oldest_row: i64) -> UsageSpans {
        let (since, until) = (self.since, self.until.max(self.since));
        let since = if since < oldest_row { since.div_euclid(DAY_MILLIS) * DAY_MILLIS } else { since };
        let first = since.div_euclid(DAY_MILLIS) + i64::from(since.rem_euclid(DAY_MILLIS) > 0);
        let end = until.div_euclid(DAY_MILLIS);
        if end < first {
            return UsageSpans { days: (first, first), parts: vec![(since, until)] };
        }
        let edges = [(since, first * DAY_MILLIS), (end * DAY_MILLIS, until)];
        let parts = edges.into_iter().filter(|(from, to)| from < to).collect();
        UsageSpans { days: (first, end), parts }
    }
}

/// Sums of one day and group, by verdict and owner.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageRow {
    /// The day, counted from 1970.
    pub day: i64,
    /// The key of the group.
    pub key: String,
    /// The word of the verdict.
    pub verdict: String,
    /// The word of the owner's kind, or empty.
    pub owner: String,
    /// The sums.
    pub sums: CallSums,
}

/// The calls in a store.
pub trait TrafficStore {
    /// Stores calls with their chains, and adds them to the daily sums, all or nothing.
    ///
    /// Returns the number of each call; `None` for one whose id is stored already and that replaces nothing.
    fn put_calls(&self, calls: &[CallInsert]) -> Result<Vec<Option<u64>>, StoreError>;

    /// Reads a call by its id.
    fn stored_call(&self, id: &str) -> Result<Option<StoredCall>, StoreError>;

    /// Lists calls, the newest first.
    fn list_calls(&self, query: &CallQuery) -> Result<Page<StoredCall>, StoreError>;

    /// Reads the chains of a conversation whose numbers are above `after`, in their order.
    fn chains(&self, conversation: &str, after: u64) -> Result<Vec<ChainRow>, StoreError>;

    /// Lists conversations with a call whose first message has this digest, the newest first.
    fn conversations_of_first(&self, first: &str, most: usize) -> Result<Vec<String>, StoreError>;

    /// Sums up calls by day, group, verdict and owner.
    fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError>;

    /// Lists conversations, own and observed ones.
    fn list_conversations(&self, query: &ListQuery) -> Result<ListPage, StoreError>;

    /// Removes some rows of calls that are older than `rows_before`, and the chains of threads without a call since
    /// `chains_before`. Daily sums stay. Returns the number of what was removed; `most` or more means that there may be more.
    fn expire_calls(&self, rows_before: i64, chains_before: i64, most: usize) -> Result<u64, StoreError>;

    /// Removes all calls before a time: rows, chains and sums. Returns the number of rows.
    fn forget_calls(&self, before: i64) -> Result<u64, StoreError>;

    /// Returns the key of the store for digests of accounts; the first caller creates it.
    fn account_key(&self) -> Result<Vec<u8>, StoreError>;
}

/// Returns the word of an owner's kind.
#[must_use]
pub fn owner_word(kind: OwnerKind) -> String {
    let word = serde_json::to_value(kind).ok();
    word.and_then(|word| Some(word.as_str()?.to_owned())).unwrap_or_default()
}

/// Returns the oldest time of which rows are certainly kept.
#[must_use]
pub fn oldest_row() -> i64 {
    super::record::now() - CALL_DAYS * DAY_MILLIS
}

/// Creates a random key.
pub fn new_key() -> Result<Vec<u8>, StoreError> {
    let mut key = vec![0; 32];
    getrandom::fill(&mut key).map_err(|error| StoreError::Unavailable {
        place: "the random numbers of the system".into(),
        why: error.to_string().into(),
    })?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_whole_days_and_parts_of_days() {
        let day = DAY_MILLIS;
        let spans = |since, until, oldest| UsageQuery { since, until, by: UsageBy::Day }.spans(oldest);
        assert_eq!(spans(0, 3 * day, 0), UsageSpans { days: (0, 3), parts: vec![] });
        assert_eq!(spans(5, 3 * day, 0), UsageSpans { days: (1, 3), parts: vec![(5, day)] });
        assert_eq!(spans(5, 3 * day, 9), UsageSpans { days: (0, 3), parts: vec![] });
        let both = vec![(day - 1, day), (3 * day, 3 * day + 2)];
        assert_eq!(spans(day - 1, 3 * day + 2, 0), UsageSpans { days: (1, 3), parts: both });
        assert_eq!(spans(5, 9, 0), UsageSpans { days: (1, 1), parts: vec![(5, 9)] });
        assert_eq!(spans(9, 5, 0).parts, [(9, 9)]);
    }
}
