//! Calls, their daily sums, and the chains of live threads.

use proem::store::traffic::{
    CallInsert, CallQuery, CallRow, CallSums, ChainRow, DAY_MILLIS, ListPage, ListQuery, StoredCall,
    TrafficStore, UsageBy, UsageQuery, UsageRow, new_key, oldest_row,
};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, Transaction, params, params_from_iter};

use super::rows::Columns;
use super::{Failure, SqliteStore};
use crate::StoreError;
use crate::call_sql::{self, Bind, Changes, DAY, Dialect, HeadChange, SumKey};
use crate::columns::{row_limit, signed, unsigned};
use crate::record::Page;

const DIALECT: Dialect = Dialect { tables: "", sign: '?', find: "instr" };

/// The columns of the sums.
const SUMS: &str =
    "calls, read, written, uncached, output, unpriced, list_price, lost_tokens, usd, saved_usd, lost_usd";

/// The columns of a row that its sums and its conversation are made of.
const ROW: &str =
    "id, at, conversation, agent, model, cwd, profile, version, verdict, owner, is_alarming, record";

impl ToSql for Bind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::Integer(number) => number.to_sql(),
            Self::Real(number) => number.to_sql(),
        }
    }
}

/// Reads sums that begin at a column.
fn sums(row: &Row<'_>, from: usize) -> rusqlite::Result<CallSums> {
    let (mut integers, mut money) = ([0; 8], [0.0; 3]);
    for (index, number) in integers.iter_mut().enumerate() {
        *number = row.get(from + index)?;
    }
    for (index, number) in money.iter_mut().enumerate() {
        *number = row.get(from + integers.len() + index)?;
    }
    Ok(CallSums::from_columns(integers, money))
}

/// Returns sums as parameters.
fn sum_binds(sums: &CallSums) -> impl Iterator<Item = Bind> {
    sums.integers().map(Bind::Integer).into_iter().chain(sums.money().map(Bind::Real))
}

fn call_row(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    Ok(CallRow {
        id: row.get(0)?,
        at: row.get(1)?,
        conversation: row.get(2)?,
        agent: row.get(3)?,
        model: row.get(4)?,
        cwd: row.get(5)?,
        profile: row.get(6)?,
        version: row.get(7)?,
        verdict: row.get(8)?,
        owner: row.get(9)?,
        is_alarming: row.get(10)?,
        record: row.get(11)?,
        sums: sums(row, 12)?,
    })
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredCall> {
    Ok(StoredCall { number: unsigned(row.get(0)?), at: row.get(1)?, record: row.get(2)? })
}

/// Returns the numbers `?1, ?2, …` of parameters.
fn places(count: usize) -> String {
    (1..=count).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ")
}

fn insert_row(transaction: &Transaction<'_>, row: &CallRow) -> Result<i64, Failure> {
    let text = |text: &str| Bind::Text(text.to_owned());
    let mut values = vec![text(&row.id), Bind::Integer(row.at)];
    let names =
        [&row.conversation, &row.agent, &row.model, &row.cwd, &row.profile, &row.version, &row.verdict];
    values.extend(names.into_iter().map(|name| text(name)));
    values.extend([text(&row.owner), Bind::Integer(i64::from(row.is_alarming)), text(&row.record)]);
    values.extend(sum_binds(&row.sums));
    let sql = format!("INSERT INTO traffic_call ({ROW}, {SUMS}) VALUES ({})", places(values.len()));
    transaction.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    Ok(transaction.last_insert_rowid())
}

/// Removes a row, and returns it.
fn take_row(transaction: &Transaction<'_>, number: i64) -> Result<Option<CallRow>, Failure> {
    let sql = format!("DELETE FROM traffic_call WHERE number = ?1 RETURNING {ROW}, {SUMS}");
    let row = transaction.prepare_cached(&sql)?.query_row([number], call_row).optional()?;
    transaction.prepare_cached("DELETE FROM traffic_chain WHERE number = ?1")?.execute([number])?;
    Ok(row)
}

fn add_sums(transaction: &Transaction<'_>, key: &SumKey, sums: &CallSums) -> Result<(), Failure> {
    let (dimension, day, group, verdict, owner) = key;
    let mut values = vec![Bind::Text((*dimension).to_owned()), Bind::Integer(*day)];
    values.extend([group, verdict, owner].map(|text| Bind::Text(text.clone())));
    values.extend(sum_binds(sums));
    let more: Vec<String> =
        SUMS.split(", ").map(|name| format!("{name} = {name} + excluded.{name}")).collect();
    let sql = format!(
        "INSERT INTO traffic_usage (dimension, day, key, verdict, owner, {SUMS}) VALUES ({}) \
         ON CONFLICT (dimension, day, key, verdict, owner) DO UPDATE SET {}",
        places(values.len()),
        more.join(", ")
    );
    transaction.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    Ok(())
}

fn add_head(transaction: &Transaction<'_>, id: &str, change: &HeadChange) -> Result<(), Failure> {
    let sums = &change.sums;
    let input = sums.read + sums.written + sums.uncached;
    let Some(newest) = &change.newest else {
        let sql = "UPDATE traffic_conversation SET calls = calls + ?2, read = read + ?3, input = input + ?4, \
            usd = usd + ?5, lost_usd = lost_usd + ?6 WHERE id = ?1";
        let values = params![id, sums.calls, sums.read, input, sums.usd, sums.lost_usd];
        transaction.prepare_cached(sql)?.execute(values)?;
        return Ok(());
    };
    let newer = |name: &str| {
        format!(
            "{name} = CASE WHEN excluded.active_at >= traffic_conversation.active_at \
             THEN coalesce(excluded.{name}, traffic_conversation.{name}) ELSE traffic_conversation.{name} END"
        )
    };
    let named: Vec<String> =
        ["agent", "model", "cwd", "profile", "last_miss"].into_iter().map(newer).collect();
    let sql = format!(
        "INSERT INTO traffic_conversation (id, session, calls, read, input, usd, lost_usd, began_at, active_at, \
         last_miss, agent, model, cwd, profile) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}, \
         calls = calls + excluded.calls, read = read + excluded.read, input = input + excluded.input, \
         usd = usd + excluded.usd, lost_usd = lost_usd + excluded.lost_usd, \
         began_at = min(began_at, excluded.began_at), active_at = max(active_at, excluded.active_at)",
        places(14),
        named.join(", ")
    );
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    transaction.prepare_cached(&sql)?.execute(params![
        id,
        call_sql::session(id),
        sums.calls,
        sums.read,
        input,
        sums.usd,
        sums.lost_usd,
        change.began_at,
        newest.at,
        change.miss,
        text(&newest.agent),
        text(&newest.model),
        text(&newest.cwd),
        text(&newest.profile),
    ])?;
    Ok(())
}

fn add_changes(transaction: &Transaction<'_>, changes: &Changes) -> Result<(), Failure> {
    for (key, sums) in &changes.sums {
        add_sums(transaction, key, sums)?;
    }
    for (id, change) in &changes.heads {
        add_head(transaction, id, change)?;
    }
    Ok(())
}

fn insert_chain(transaction: &Transaction<'_>, call: &CallInsert, number: i64) -> Result<(), Failure> {
    let Some(chain) = &call.chain else { return Ok(()) };
    let conversation = &call.row.conversation;
    let sql = "INSERT INTO traffic_chain (number, conversation, thread, first, at, is_full, link) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    transaction.prepare_cached(sql)?.execute(params![
        number,
        conversation,
        chain.thread,
        chain.first,
        call.row.at,
        chain.is_full,
        chain.link
    ])?;
    if chain.is_full {
        // Later chains never refer to one before the last that was written in full.
        let sql = "DELETE FROM traffic_chain WHERE conversation = ?1 AND thread = ?2 AND number < \
            (SELECT number FROM traffic_chain WHERE conversation = ?1 AND thread = ?2 AND is_full \
             ORDER BY number DESC LIMIT 1 OFFSET 4)";
        transaction.prepare_cached(sql)?.execute(params![conversation, chain.thread])?;
    }
    Ok(())
}

/// Sums up rows of calls of a part of a day.
fn part_of_day(
    connection: &Connection,
    by: UsageBy,
    (from, to): (i64, i64),
) -> Result<Vec<UsageRow>, Failure> {
    let column = call_sql::group_column(by);
    let totals: Vec<String> = SUMS.split(", ").map(|name| format!("sum({name})")).collect();
    let sql = format!(
        "SELECT {DAY}, {column}, verdict, owner, {} FROM traffic_call WHERE at >= ?1 AND at < ?2 GROUP BY 1, 2, 3, 4",
        totals.join(", ").replace("sum(calls)", "count(*)")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([from, to], usage_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn usage_row(row: &Row<'_>) -> rusqlite::Result<UsageRow> {
    Ok(UsageRow {
        day: row.get(0)?,
        key: row.get(1)?,
        verdict: row.get(2)?,
        owner: row.get(3)?,
        sums: sums(row, 4)?,
    })
}

impl TrafficStore for SqliteStore {
    fn put_calls(&self, calls: &[CallInsert]) -> Result<Vec<Option<u64>>, StoreError> {
        self.write(|transaction| {
            let (mut numbers, mut changes) = (Vec::new(), Changes::default());
            for call in calls {
                let known: Option<i64> = transaction
                    .prepare_cached("SELECT number FROM traffic_call WHERE id = ?1")?
                    .query_row([&call.row.id], |row| row.get(0))
                    .optional()?;
                if known.is_some() && !call.replaces {
                    numbers.push(None);
                    continue;
                }
                if let Some(known) = known
                    && let Some(old) = take_row(transaction, known)?
                {
                    changes.take(&old);
                }
                let number = insert_row(transaction, &call.row)?;
                insert_chain(transaction, call, number)?;
                changes.add(&call.row);
                numbers.push(Some(unsigned(number)));
            }
            add_changes(transaction, &changes)?;
            Ok(numbers)
        })
    }

    fn stored_call(&self, id: &str) -> Result<Option<StoredCall>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT number, at, record FROM traffic_call WHERE id = ?1";
            Ok(connection.prepare_cached(sql)?.query_row([id], stored).optional()?)
        })
    }

    fn list_calls(&self, query: &CallQuery) -> Result<Page<StoredCall>, StoreError> {
        let statement = call_sql::list_calls(DIALECT, query);
        self.read(|connection| {
            let mut prepared = connection.prepare_cached(&statement.sql)?;
            let rows = prepared.query_map(params_from_iter(&statement.binds), stored)?;
            Ok(Page::of_calls(rows.collect::<rusqlite::Result<_>>()?, query.most))
        })
    }

    fn chains(&self, conversation: &str, after: u64) -> Result<Vec<ChainRow>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT number, link FROM traffic_chain WHERE conversation = ?1 AND number > ?2 ORDER BY number";
            let mut statement = connection.prepare_cached(sql)?;
            let row = |row: &Row<'_>| Ok(ChainRow { number: unsigned(row.get(0)?), link: row.get(1)? });
            let rows = statement.query_map(params![conversation, signed(after)], row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn conversations_of_first(&self, first: &str, most: usize) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT conversation FROM traffic_chain WHERE first = ?1 GROUP BY conversation \
                ORDER BY max(number) DESC LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![first, row_limit(most)], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        let spans = query.spans(oldest_row());
        let by = query.by.stored();
        self.read(|connection| {
            let mut found = Vec::new();
            if spans.days.0 < spans.days.1 {
                let totals: Vec<String> = SUMS.split(", ").map(|name| format!("sum({name})")).collect();
                let day = if by == UsageBy::Day { "day" } else { "0" };
                let sql = format!(
                    "SELECT {day}, key, verdict, owner, {} FROM traffic_usage \
                     WHERE dimension = ?1 AND day >= ?2 AND day < ?3 GROUP BY 1, 2, 3, 4 HAVING sum(calls) > 0",
                    totals.join(", ")
                );
                let mut statement = connection.prepare_cached(&sql)?;
                let values = params![by.word(), spans.days.0, spans.days.1];
                let rows = statement.query_map(values, usage_row)?;
                found.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
            }
            for part in &spans.parts {
                found.extend(part_of_day(connection, by, *part)?);
            }
            Ok(found)
        })
    }

    fn list_conversations(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        let (list, count) = call_sql::list_conversations(DIALECT, query);
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&list.sql)?;
            let item = |row: &Row<'_>| call_sql::listed(&Columns(row), |column| row.get(column));
            let rows = statement.query_map(params_from_iter(&list.binds), item)?;
            let items = rows.collect::<rusqlite::Result<_>>()?;
            let mut statement = connection.prepare_cached(&count.sql)?;
            let total: i64 = statement.query_row(params_from_iter(&count.binds), |row| row.get(0))?;
            Ok(ListPage::new(items, query, unsigned(total)))
        })
    }

    fn expire_calls(&self, rows_before: i64, chains_before: i64, most: usize) -> Result<u64, StoreError> {
        let most = row_limit(most);
        self.write(|transaction| {
            let sql = "DELETE FROM traffic_call WHERE number IN \
                (SELECT number FROM traffic_call WHERE at < ?1 ORDER BY at LIMIT ?2)";
            let rows = transaction.execute(sql, [rows_before, most])?;
            let sql = "DELETE FROM traffic_chain WHERE number IN (SELECT c.number FROM traffic_chain c \
                WHERE c.at < ?1 AND NOT EXISTS (SELECT 1 FROM traffic_chain n \
                WHERE n.conversation = c.conversation AND n.thread = c.thread AND n.at >= ?1) LIMIT ?2)";
            let chains = transaction.execute(sql, [chains_before, most])?;
            Ok((rows + chains) as u64)
        })
    }

    fn forget_calls(&self, before: i64) -> Result<u64, StoreError> {
        self.write(|transaction| {
            let mut changes = Changes::default();
            let sql = format!("SELECT {ROW}, {SUMS} FROM traffic_call WHERE at < ?1");
            let mut statement = transaction.prepare(&sql)?;
            let mut rows = statement.query([before])?;
            while let Some(row) = rows.next()? {
                changes.take(&call_row(row)?);
            }
            drop(rows);
            let removed = transaction.execute("DELETE FROM traffic_call WHERE at < ?1", [before])?;
            transaction.execute("DELETE FROM traffic_chain WHERE at < ?1", [before])?;
            transaction.execute("DELETE FROM traffic_conversation WHERE active_at < ?1", [before])?;
            let day = before.div_euclid(DAY_MILLIS);
            transaction.execute("DELETE FROM traffic_usage WHERE day < ?1", [day])?;
            changes.sums.retain(|(_, of, ..), _| *of >= day);
            add_changes(transaction, &changes)?;
            transaction.execute("DELETE FROM traffic_usage WHERE calls <= 0", [])?;
            Ok(removed as u64)
        })
    }

    fn account_key(&self) -> Result<Vec<u8>, StoreError> {
        let fresh = new_key()?;
        let read = "SELECT bytes FROM store_key WHERE name = 'account'";
        let known =
            self.read(|connection| Ok(connection.query_row(read, [], |row| row.get(0)).optional()?))?;
        if let Some(known) = known {
            return Ok(known);
        }
        self.write(|transaction| {
            transaction
                .execute("INSERT OR IGNORE INTO store_key (name, bytes) VALUES ('account', ?1)", [&fresh])?;
            Ok(transaction.query_row(read, [], |row| row.get(0))?)
        })
    }
}
