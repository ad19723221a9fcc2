//! SQL about calls, for both databases.

use std::collections::BTreeMap;

use proem::store::traffic::{
    CallInsert, CallKey, CallQuery, CallRow, CallSums, ListKey, ListQuery, ListSort, ListedConversation,
    UsageBy,
};

use crate::columns::{ColumnReader, unsigned};

/// A value of a condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bind {
    Text(String),
    Integer(i64),
    Real(f64),
}

/// The differences between the databases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    /// The beginning of the names of tables.
    pub(crate) tables: &'static str,
    /// The sign of a parameter.
    pub(crate) sign: char,
    /// The function that finds a text in another.
    pub(crate) find: &'static str,
}

/// A statement that is put together.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    dialect: Dialect,
    pub(crate) sql: String,
    pub(crate) binds: Vec<Bind>,
    has_condition: bool,
}

impl Statement {
    fn new(dialect: Dialect, sql: String) -> Self {
        Self { dialect, sql, binds: Vec::new(), has_condition: false }
    }

    /// Adds a parameter, and returns its name.
    fn bind(&mut self, bind: Bind) -> String {
        self.binds.push(bind);
        format!("{}{}", self.dialect.sign, self.binds.len())
    }

    /// Adds a condition.
    fn and(&mut self, condition: &str) {
        self.sql.push_str(if self.has_condition { " AND " } else { " WHERE " });
        self.sql.push_str(condition);
        self.has_condition = true;
    }

    /// Adds a condition about one value; `{}` stands for the value.
    fn and_value(&mut self, condition: &str, value: Option<Bind>) {
        if let Some(value) = value {
            let name = self.bind(value);
            self.and(&condition.replace("{}", &name));
        }
    }
}

fn text(text: Option<&str>) -> Option<Bind> {
    text.map(|text| Bind::Text(text.to_owned()))
}

/// Returns the statement that lists calls: number, time, record.
pub(crate) fn list_calls(dialect: Dialect, query: &CallQuery) -> Statement {
    let tables = dialect.tables;
    let sql = format!("SELECT number, at, record FROM {tables}traffic_call");
    let mut statement = Statement::new(dialect, sql);
    let of_conversation = format!(
        "conversation IN (SELECT id FROM {tables}traffic_conversation WHERE id = {{}} OR session = {{}})"
    );
    statement.and_value(&of_conversation, text(query.conversation.as_deref()));
    statement.and_value("at >= {}", query.since.map(Bind::Integer));
    statement.and_value("at < {}", query.until.map(Bind::Integer));
    statement.and_value("model = {}", text(query.model.as_deref()));
    statement.and_value("cwd = {}", text(query.cwd.as_deref()));
    statement.and_value("owner = {}", text(query.owner.as_deref()));
    let alarming = query.is_alarming.map(|is_alarming| Bind::Integer(i64::from(is_alarming)));
    statement.and_value("is_alarming = {}", alarming);
    if !query.verdicts.is_empty() {
        let names: Vec<String> =
            query.verdicts.iter().map(|word| statement.bind(Bind::Text(word.clone()))).collect();
        statement.and(&format!("verdict IN ({})", names.join(", ")));
    }
    if let Some(after) = query.after.as_deref().and_then(CallKey::parse) {
        let (at, number) =
            (statement.bind(Bind::Integer(after.at)), statement.bind(Bind::Integer(after.number)));
        statement.and(&format!("(at, number) < ({at}, {number})"));
    }
    let most = statement.bind(Bind::Integer(crate::columns::row_limit(query.most).saturating_add(1)));
    statement.sql.push_str(&format!(" ORDER BY at DESC, number DESC LIMIT {most}"));
    statement
}

/// The columns of a conversation in the list.
const LISTED: &str = "conversation, is_observed, epoch, reason, profile, cwd, agent, model, began_at, opened_at, \
    active_at, calls, read, input, usd, lost_usd, last_miss";

/// Returns the statements that list conversations, and that count them.
pub(crate) fn list_conversations(dialect: Dialect, query: &ListQuery) -> (Statement, Statement) {
    let tables = dialect.tables;
    let all = format!(
        "(SELECT c.id AS conversation, CAST(0 AS bigint) AS is_observed, c.epoch AS epoch, e.reason AS reason, e.profile AS profile, \
          e.cwd AS cwd, t.agent AS agent, coalesce(t.model, e.model) AS model, c.began_at AS began_at, \
          c.opened_at AS opened_at, \
          CASE WHEN t.active_at > c.opened_at THEN t.active_at ELSE c.opened_at END AS active_at, \
          coalesce(t.calls, 0) AS calls, coalesce(t.read, 0) AS read, coalesce(t.input, 0) AS input, \
          coalesce(t.usd, 0.0) AS usd, coalesce(t.lost_usd, 0.0) AS lost_usd, t.last_miss AS last_miss \
          FROM {tables}conversation c JOIN {tables}epoch e ON e.conversation = c.id AND e.number = c.epoch \
          LEFT JOIN {tables}traffic_conversation t ON t.id = c.id \
          UNION ALL \
          SELECT t.id, 1, 0, '', coalesce(t.profile, ''), coalesce(t.cwd, ''), t.agent, t.model, t.began_at, \
          t.active_at, t.active_at, t.calls, t.read, t.input, t.usd, t.lost_usd, t.last_miss \
          FROM {tables}traffic_conversation t \
          WHERE NOT EXISTS (SELECT 1 FROM {tables}conversation c WHERE c.id = t.id)) AS listed"
    );
    let mut statement = Statement::new(dialect, format!("SELECT {LISTED} FROM {all}"));
    let has_filter = filter(&mut statement, query);
    let count = if has_filter {
        let (_, rest) = statement.sql.split_once(" FROM ").unwrap_or_default();
        Statement { sql: format!("SELECT count(*) FROM {rest}"), ..statement.clone() }
    } else {
        // Without the joins: every conversation has its current epoch.
        let sql = format!(
            "SELECT (SELECT count(*) FROM {tables}conversation) + (SELECT count(*) FROM {tables}traffic_conversation t \
             WHERE NOT EXISTS (SELECT 1 FROM {tables}conversation c WHERE c.id = t.id))"
        );
        Statement::new(dialect, sql)
    };
    let value = query.sort.sql();
    if let Some(after) = query.after.as_deref().and_then(ListKey::parse) {
        let bound =
            if query.sort.is_integer() { Bind::Integer(after.integer()) } else { Bind::Real(after.value) };
        let sign = if query.is_ascending { '>' } else { '<' };
        let (bound, id) = (statement.bind(bound), statement.bind(Bind::Text(after.conversation)));
        let condition = if query.sort == ListSort::Id {
            // The value is the same for all of them; the parameter has to occur.
            format!("conversation {sign} {id} AND 0 = {bound}")
        } else {
            format!("({value}, conversation) {sign} ({bound}, {id})")
        };
        statement.and(&condition);
    }
    let most = statement.bind(Bind::Integer(crate::columns::row_limit(query.most).saturating_add(1)));
    let order = if query.is_ascending { "ASC" } else { "DESC" };
    let by_value = if query.sort == ListSort::Id { String::new() } else { format!("{value} {order}, ") };
    statement.sql.push_str(&format!(" ORDER BY {by_value}conversation {order} LIMIT {most}"));
    (statement, count)
}

/// Adds the filters of a list; tells if there is one.
fn filter(statement: &mut Statement, query: &ListQuery) -> bool {
    let find = statement.dialect.find;
    let has = format!("({find}(conversation, {{}}) > 0 OR {find}(cwd, {{}}) > 0)");
    statement.and_value(&has, query.search.clone().filter(|part| !part.is_empty()).map(Bind::Text));
    let is_observed = query.kind.as_ref().map(|kind| match kind.as_str() {
        "observed" => 1,
        "proem" => 0,
        _ => 2,
    });
    statement.and_value("is_observed = {}", is_observed.map(Bind::Integer));
    statement.and_value("agent = {}", text(query.agent.as_deref()));
    statement.and_value("model = {}", text(query.model.as_deref()));
    statement.and_value("cwd = {}", text(query.cwd.as_deref()));
    statement.and_value("active_at >= {}", query.since.map(Bind::Integer));
    if query.has_miss {
        statement.and("last_miss IS NOT NULL");
    }
    statement.has_condition
}

/// Reads a row of the list.
pub(crate) fn listed<R: ColumnReader>(
    row: &R,
    real: impl Fn(usize) -> Result<f64, R::Error>,
) -> Result<ListedConversation, R::Error> {
    Ok(ListedConversation {
        conversation: row.text(0)?,
        is_observed: row.integer(1)? != 0,
        epoch: unsigned(row.integer(2)?),
        reason: row.text(3)?,
        profile: row.text(4)?,
        cwd: row.text(5)?,
        agent: row.optional_text(6)?,
        model: row.optional_text(7)?,
        began_at: row.integer(8)?,
        opened_at: row.integer(9)?,
        active_at: row.integer(10)?,
        calls: unsigned(row.integer(11)?),
        read: unsigned(row.integer(12)?),
        input: unsigned(row.integer(13)?),
        usd: real(14)?,
        lost_usd: real(15)?,
        last_miss: row.optional_text(16)?,
    })
}

/// The group of daily sums: dimension, day, key, verdict, owner.
pub(crate) type SumKey = (&'static str, i64, String, String, String);

/// A change of a conversation's sums.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeadChange {
    pub(crate) sums: CallSums,
    /// The newest call that was added; `None` if calls were only taken away.
    pub(crate) newest: Option<CallRow>,
    pub(crate) began_at: i64,
    pub(crate) miss: Option<String>,
}

/// The additions of a transaction to sums, in one order, so that concurrent transactions do not deadlock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    pub(crate) sums: BTreeMap<SumKey, CallSums>,
    pub(crate) heads: BTreeMap<String, HeadChange>,
}

impl Changes {
    /// Adds a stored call.
    pub(crate) fn add(&mut self, row: &CallRow) {
        self.count(row, &row.sums);
        let head = self.heads.entry(row.conversation.clone()).or_default();
        let is_first = head.newest.is_none();
        head.began_at = if is_first { row.at } else { head.began_at.min(row.at) };
        if head.newest.as_ref().is_none_or(|newest| row.at >= newest.at) {
            head.miss = row.miss().or(head.miss.take());
            head.newest = Some(row.clone());
        }
    }

    /// Takes a call away.
    pub(crate) fn take(&mut self, row: &CallRow) {
        self.count(row, &row.sums.negated());
    }

    fn count(&mut self, row: &CallRow, sums: &CallSums) {
        for (by, key) in row.groups() {
            let key = (by.word(), row.day(), key.to_owned(), row.verdict.clone(), row.owner.clone());
            self.sums.entry(key).or_default().add(sums);
        }
        self.heads.entry(row.conversation.clone()).or_default().sums.add(sums);
    }
}

/// Returns the session of a conversation's id.
pub(crate) fn session(conversation: &str) -> &str {
    conversation.split_once(':').map_or(conversation, |(_, session)| session)
}

/// Returns the conversations of calls, each once.
pub(crate) fn conversations(calls: &[CallInsert]) -> Vec<&str> {
    let mut all: Vec<&str> = calls.iter().map(|call| call.row.conversation.as_str()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the column of rows by which sums are grouped.
pub(crate) const fn group_column(by: UsageBy) -> &'static str {
    match by {
        UsageBy::Day | UsageBy::Owner => "''",
        UsageBy::Model => "model",
        UsageBy::Cwd => "cwd",
        UsageBy::Profile => "profile",
        UsageBy::Version => "version",
    }
}

/// The day of the column `at`, counted from 1970, also before it.
pub(crate) const DAY: &str = "((at - ((at % 86400000) + 86400000) % 86400000) / 86400000)";
