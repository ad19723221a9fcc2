//! The list of conversations: own ones, and those of which only the calls are known.

use std::fmt;

/// The order of a list of conversations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListSort {
    /// The newest epoch, or for observed conversations the last call, first.
    #[default]
    Opened,
    /// The last activity first.
    Active,
    /// The most calls first.
    Calls,
    /// The lowest share of the input that was read from the cache first.
    Ratio,
    /// The most money first.
    Usd,
    /// The most lost money first.
    LostUsd,
    /// The most epochs first.
    Epoch,
    /// By id.
    Id,
}

impl ListSort {
    /// All orders with their words.
    pub const ALL: [(&'static str, Self); 8] = [
        ("opened_at", Self::Opened),
        ("active_at", Self::Active),
        ("calls", Self::Calls),
        ("read_ratio", Self::Ratio),
        ("usd", Self::Usd),
        ("lost_usd", Self::LostUsd),
        ("epoch", Self::Epoch),
        ("conversation", Self::Id),
    ];

    /// Returns the order of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == word).map(|(_, sort)| sort)
    }

    /// Tells if the values ascend unless a query says otherwise.
    #[must_use]
    pub const fn ascends(self) -> bool {
        matches!(self, Self::Ratio | Self::Id)
    }

    /// Tells if the values are integers.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !matches!(self, Self::Ratio | Self::Usd | Self::LostUsd)
    }

    /// Returns the value of the order as an expression of SQL, for the columns of the list.
    #[must_use]
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Opened => "opened_at",
            Self::Active => "active_at",
            Self::Calls => "calls",
            Self::Ratio => "(CASE WHEN input > 0 THEN CAST(read AS double precision) / input ELSE 2.0 END)",
            Self::Usd => "usd",
            Self::LostUsd => "lost_usd",
            Self::Epoch => "epoch",
            Self::Id => "0",
        }
    }
}

/// The position of a conversation in a list: `VALUE~ID`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListKey {
    /// The value by which the list is sorted.
    pub value: f64,
    /// The conversation.
    pub conversation: String,
}

impl ListKey {
    /// Reads a key; `None` for another text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (value, conversation) = text.split_once('~')?;
        let value: f64 = value.parse().ok()?;
        value.is_finite().then(|| Self { value, conversation: conversation.to_owned() })
    }

    /// Returns the value as an integer.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "it saturates, and every key of ours is exact")]
    pub const fn integer(&self) -> i64 {
        self.value as i64
    }
}

impl fmt::Display for ListKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}~{}", self.value, self.conversation)
    }
}

/// A query for a list of conversations, own and observed ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// A part of the id or of the working directory.
    pub search: Option<String>,
    /// `proem` or `observed`.
    pub kind: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The earliest activity.
    pub since: Option<i64>,
    /// True for those with a miss.
    pub has_miss: bool,
    /// The order.
    pub sort: ListSort,
    /// True for ascending values.
    pub is_ascending: bool,
    /// The `next` of the page before.
    pub after: Option<String>,
    /// The most conversations of the page.
    pub most: usize,
}

/// A conversation in the list, with the sums of its calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListedConversation {
    /// The id.
    pub conversation: String,
    /// True if only its calls are known.
    pub is_observed: bool,
    /// The number of its current epoch; 0 for an observed one.
    pub epoch: u64,
    /// The reason for which the epoch was opened, or empty.
    pub reason: String,
    /// The profile, or empty.
    pub profile: String,
    /// The working directory, or empty.
    pub cwd: String,
    /// The agent, if it is observed.
    pub agent: Option<String>,
    /// The model of the last call, or of the epoch.
    pub model: Option<String>,
    /// The time of its beginning, in milliseconds since 1970.
    pub began_at: i64,
    /// The time of the current epoch, or of the last call of an observed one.
    pub opened_at: i64,
    /// The time of the last activity.
    pub active_at: i64,
    /// The number of calls.
    pub calls: u64,
    /// Tokens read from the cache.
    pub read: u64,
    /// All input tokens.
    pub input: u64,
    /// The price of the calls.
    pub usd: f64,
    /// The price of what was lost.
    pub lost_usd: f64,
    /// The last miss, as JSON.
    pub last_miss: Option<String>,
}

impl ListedConversation {
    /// Returns the position in an order.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of calls and milliseconds are below 2^52")]
    pub fn key(&self, sort: ListSort) -> ListKey {
        let value = match sort {
            ListSort::Opened => self.opened_at as f64,
            ListSort::Active => self.active_at as f64,
            ListSort::Calls => self.calls as f64,
            ListSort::Ratio if self.input > 0 => self.read as f64 / self.input as f64,
            ListSort::Ratio => 2.0,
            ListSort::Usd => self.usd,
            ListSort::LostUsd => self.lost_usd,
            ListSort::Epoch => self.epoch as f64,
            ListSort::Id => 0.0,
        };
        ListKey { value, conversation: self.conversation.clone() }
    }

    /// Tells if a query finds it, whatever its page.
    #[must_use]
    pub fn is_found(&self, query: &ListQuery) -> bool {
        let is = |wanted: &Option<String>, own: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| own == Some(wanted))
        };
        let kind = if self.is_observed { "observed" } else { "proem" };
        let has = |part: &String| self.conversation.contains(part) || self.cwd.contains(part);
        query.search.as_ref().is_none_or(has)
            && is(&query.kind, Some(kind))
            && is(&query.agent, self.agent.as_deref())
            && is(&query.model, self.model.as_deref())
            && is(&query.cwd, Some(&self.cwd))
            && query.since.is_none_or(|since| self.active_at >= since)
            && (!query.has_miss || self.last_miss.is_some())
    }
}

/// A page of the list, and the number of all conversations that the query finds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListPage {
    /// The conversations.
    pub items: Vec<ListedConversation>,
    /// The key of the next page, if there is one.
    pub next: Option<String>,
    /// The number of conversations that the query finds.
    pub total: u64,
}

impl ListPage {
    /// Creates a page of at most `most` items. One item more says that there is another page.
    #[must_use]
    pub fn new(mut items: Vec<ListedConversation>, query: &ListQuery, total: u64) -> Self {
        let has_more = items.len() > query.most;
        items.truncate(query.most);
        let next = items.last().filter(|_| has_more).map(|last| last.key(query.sort).to_string());
        Self { items, next, total }
    }
}
