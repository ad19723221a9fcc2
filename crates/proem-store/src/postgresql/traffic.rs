//! Calls, their daily sums, and the chains of live threads.

use proem::store::traffic::{
    CallInsert, CallQuery, CallRow, CallSums, ChainRow, DAY_MILLIS, ListPage, ListQuery, StoredCall,
    TrafficStore, UsageBy, UsageQuery, UsageRow, new_key, oldest_row,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::link::Link;
use super::rows::Columns;
use super::{Failure, PostgresStore, Value};
use crate::StoreError;
use crate::call_sql::{self, Bind, Changes, DAY, Dialect, HeadChange, Statement};
use crate::columns::{row_limit, signed, unsigned};
use crate::record::Page;

const DIALECT: Dialect = Dialect { tables: "proem_", sign: '$', find: "strpos" };

/// The columns of the sums.
const SUMS: &str =
    "calls, read, written, uncached, output, unpriced, list_price, lost_tokens, usd, saved_usd, lost_usd";

/// The columns of a row that its sums and its conversation are made of.
const ROW: &str =
    "id, at, conversation, agent, model, cwd, profile, version, verdict, owner, is_alarming, record";

/// The time of one table of rows.
const PARTITION_MILLIS: i64 = 7 * DAY_MILLIS;

/// Returns a value as a parameter of a statement.
fn parameter(bind: &Bind) -> Value<'_> {
    match bind {
        Bind::Text(text) => (text, Type::TEXT),
        Bind::Integer(number) => (number, Type::INT8),
        Bind::Real(number) => (number, Type::FLOAT8),
    }
}

fn query(client: &mut Link, statement: &Statement) -> Result<Vec<Row>, Failure> {
    let values: Vec<Value<'_>> = statement.binds.iter().map(parameter).collect();
    client.query_typed(&statement.sql, &values)
}

fn run(client: &mut Link, sql: &str, binds: &[Bind]) -> Result<u64, Failure> {
    let values: Vec<Value<'_>> = binds.iter().map(parameter).collect();
    client.execute_typed(sql, &values)
}

/// Reads sums that begin at a column.
fn sums(row: &Row, from: usize) -> Result<CallSums, Failure> {
    let (mut integers, mut money) = ([0; 8], [0.0; 3]);
    for (index, number) in integers.iter_mut().enumerate() {
        *number = row.try_get(from + index)?;
    }
    for (index, number) in money.iter_mut().enumerate() {
        *number = row.try_get(from + integers.len() + index)?;
    }
    Ok(CallSums::from_columns(integers, money))
}

fn sum_binds(sums: &CallSums) -> impl Iterator<Item = Bind> {
    sums.integers().map(Bind::Integer).into_iter().chain(sums.money().map(Bind::Real))
}

fn call_row(row: &Row) -> Result<CallRow, Failure> {
    Ok(CallRow {
        id: row.try_get(0)?,
        at: row.try_get(1)?,
        conversation: row.try_get(2)?,
        agent: row.try_get(3)?,
        model: row.try_get(4)?,
        cwd: row.try_get(5)?,
        profile: row.try_get(6)?,
        version: row.try_get(7)?,
        verdict: row.try_get(8)?,
        owner: row.try_get(9)?,
        is_alarming: row.try_get::<_, i64>(10)? != 0,
        record: row.try_get(11)?,
        sums: sums(row, 12)?,
    })
}

fn stored(row: &Row) -> Result<StoredCall, Failure> {
    Ok(StoredCall { number: unsigned(row.try_get(0)?), at: row.try_get(1)?, record: row.try_get(2)? })
}

fn usage_row(row: &Row) -> Result<UsageRow, Failure> {
    Ok(UsageRow {
        day: row.try_get(0)?,
        key: row.try_get(1)?,
        verdict: row.try_get(2)?,
        owner: row.try_get(3)?,
        sums: sums(row, 4)?,
    })
}

/// Returns the numbers `$1, $2, …` of parameters.
fn places(count: usize) -> String {
    (1..=count).map(|place| format!("${place}")).collect::<Vec<_>>().join(", ")
}

/// Returns the sums of all columns; PostgreSQL sums up integers as decimal numbers.
fn totals() -> String {
    let integer = |name: &str| !name.ends_with("usd");
    let total =
        |name: &str| format!("sum({name})::{}", if integer(name) { "bigint" } else { "double precision" });
    SUMS.split(", ").map(total).collect::<Vec<_>>().join(", ")
}

fn text(text: &str) -> Bind {
    Bind::Text(text.to_owned())
}

fn insert_row(transaction: &mut Link, row: &CallRow, number: i64) -> Result<(), Failure> {
    let mut values = vec![text(&row.id), Bind::Integer(row.at)];
    let names =
        [&row.conversation, &row.agent, &row.model, &row.cwd, &row.profile, &row.version, &row.verdict];
    values.extend(names.into_iter().map(|name| text(name)));
    values.extend([text(&row.owner), Bind::Integer(i64::from(row.is_alarming)), text(&row.record)]);
    values.extend(sum_binds(&row.sums));
    values.push(Bind::Integer(number));
    let sql =
        format!("INSERT INTO proem_traffic_call ({ROW}, {SUMS}, number) VALUES ({})", places(values.len()));
    run(transaction, &sql, &values).map(drop)
}

/// Removes a row, and returns it.
fn take_row(transaction: &mut Link, id: &str) -> Result<Option<CallRow>, Failure> {
    let sql = "DELETE FROM proem_traffic_id WHERE id = $1 RETURNING number, at";
    let Some(found) = transaction.query_typed_opt(sql, &[(&id, Type::TEXT)])? else { return Ok(None) };
    let (number, at): (i64, i64) = (found.try_get(0)?, found.try_get(1)?);
    run(transaction, "DELETE FROM proem_traffic_chain WHERE number = $1", &[Bind::Integer(number)])?;
    let sql = format!("DELETE FROM proem_traffic_call WHERE number = $1 AND at = $2 RETURNING {ROW}, {SUMS}");
    let row = transaction.query_typed_opt(&sql, &[(&number, Type::INT8), (&at, Type::INT8)])?;
    row.as_ref().map(call_row).transpose()
}

fn insert_chain(transaction: &mut Link, call: &CallInsert, number: i64) -> Result<(), Failure> {
    let Some(chain) = &call.chain else { return Ok(()) };
    let sql = "INSERT INTO proem_traffic_chain (conversation, thread, first, link, at, number, is_full) \
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let conversation = &call.row.conversation;
    let values: [Value<'_>; 7] = [
        (conversation, Type::TEXT),
        (&chain.thread, Type::TEXT),
        (&chain.first, Type::TEXT),
        (&chain.link, Type::TEXT),
        (&call.row.at, Type::INT8),
        (&number, Type::INT8),
        (&chain.is_full, Type::BOOL),
    ];
    transaction.execute_typed(sql, &values)?;
    if chain.is_full {
        // Later chains never refer to one before the last that was written in full.
        let sql = "DELETE FROM proem_traffic_chain WHERE conversation = $1 AND thread = $2 AND number < \
            (SELECT number FROM proem_traffic_chain WHERE conversation = $1 AND thread = $2 AND is_full \
             ORDER BY number DESC LIMIT 1 OFFSET 4)";
        run(transaction, sql, &[text(conversation), text(&chain.thread)])?;
    }
    Ok(())
}

fn add_changes(transaction: &mut Link, changes: &Changes) -> Result<(), Failure> {
    let more: Vec<String> =
        SUMS.split(", ").map(|name| format!("{name} = u.{name} + excluded.{name}")).collect();
    for ((dimension, day, key, verdict, owner), sums) in &changes.sums {
        let mut values = vec![text(dimension), Bind::Integer(*day), text(key), text(verdict), text(owner)];
        values.extend(sum_binds(sums));
        let sql = format!(
            "INSERT INTO proem_traffic_usage AS u (dimension, day, key, verdict, owner, {SUMS}) VALUES ({}) \
             ON CONFLICT (dimension, day, key, verdict, owner) DO UPDATE SET {}",
            places(values.len()),
            more.join(", ")
        );
        run(transaction, &sql, &values)?;
    }
    for (id, change) in &changes.heads {
        add_head(transaction, id, change)?;
    }
    Ok(())
}

fn add_head(transaction: &mut Link, id: &str, change: &HeadChange) -> Result<(), Failure> {
    let sums = &change.sums;
    let input = sums.read + sums.written + sums.uncached;
    let mut values = vec![text(id)];
    values.extend([sums.calls, sums.read, input].map(Bind::Integer));
    values.extend([sums.usd, sums.lost_usd].map(Bind::Real));
    let Some(newest) = &change.newest else {
        let sql = "UPDATE proem_traffic_conversation SET calls = calls + $2, read = read + $3, input = input + $4, \
            usd = usd + $5, lost_usd = lost_usd + $6 WHERE id = $1";
        return run(transaction, sql, &values).map(drop);
    };
    let newer = |name: &str| {
        format!(
            "{name} = CASE WHEN excluded.active_at >= t.active_at THEN coalesce(excluded.{name}, t.{name}) ELSE t.{name} END"
        )
    };
    let named: Vec<String> =
        ["agent", "model", "cwd", "profile", "last_miss"].into_iter().map(newer).collect();
    values.extend([change.began_at, newest.at].map(Bind::Integer));
    let words = [&newest.agent, &newest.model, &newest.cwd, &newest.profile];
    values.extend(words.into_iter().map(|word| text(word)));
    values.extend([text(change.miss.as_deref().unwrap_or_default()), text(call_sql::session(id))]);
    let sql = format!(
        "INSERT INTO proem_traffic_conversation AS t (id, calls, read, input, usd, lost_usd, began_at, active_at, agent, \
         model, cwd, profile, last_miss, session) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''), \
         nullif($10, ''), nullif($11, ''), nullif($12, ''), nullif($13, ''), $14) ON CONFLICT (id) DO UPDATE SET {}, \
         calls = t.calls + excluded.calls, read = t.read + excluded.read, input = t.input + excluded.input, \
         usd = t.usd + excluded.usd, lost_usd = t.lost_usd + excluded.lost_usd, \
         began_at = least(t.began_at, excluded.began_at), active_at = greatest(t.active_at, excluded.active_at)",
        named.join(", ")
    );
    run(transaction, &sql, &values).map(drop)
}

/// Removes the calls of a conversation; tells if there were any.
pub(super) fn remove_conversation(transaction: &mut Link, conversation: &str) -> Result<bool, Failure> {
    let id = [text(conversation)];
    let sql = "DELETE FROM proem_traffic_id WHERE number IN \
        (SELECT number FROM proem_traffic_call WHERE conversation = $1)";
    run(transaction, sql, &id)?;
    run(transaction, "DELETE FROM proem_traffic_call WHERE conversation = $1", &id)?;
    run(transaction, "DELETE FROM proem_traffic_chain WHERE conversation = $1", &id)?;
    Ok(run(transaction, "DELETE FROM proem_traffic_conversation WHERE id = $1", &id)? > 0)
}

/// Returns the name of the table for a time, and its range.
fn partition(at: i64) -> (String, i64, i64) {
    let number = at.div_euclid(PARTITION_MILLIS);
    let name = format!("proem_traffic_call_w{number}").replace('-', "m");
    (name, number * PARTITION_MILLIS, (number + 1) * PARTITION_MILLIS)
}

impl PostgresStore {
    /// Creates the tables of rows for some times. A role that may not do so stores rows in the default one, as does a table
    /// that is too late for its time.
    fn make_partitions(&self, calls: &[CallInsert]) {
        let mut known = self.partitions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for call in calls {
            let (name, from, to) = partition(call.row.at);
            if !known.insert(name.clone()) {
                continue;
            }
            let sql = format!(
                "SET LOCAL lock_timeout = '2s'; CREATE TABLE IF NOT EXISTS {name} PARTITION OF proem_traffic_call \
                 FOR VALUES FROM ({from}) TO ({to})"
            );
            // Without it, the default table takes the rows.
            drop(self.run(|transaction| transaction.batch_execute(&sql)));
        }
    }

    /// Removes the tables whose rows have all expired.
    fn drop_partitions(&self, before: i64) {
        let sql = "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
            WHERE i.inhparent = 'proem_traffic_call'::regclass";
        let Ok(rows) = self.run(|transaction| transaction.query_typed(sql, &[])) else { return };
        for row in rows {
            let name: String = row.get(0);
            let number = name.strip_prefix("proem_traffic_call_w").map(|number| number.replace('m', "-"));
            let Some(number) = number.and_then(|number| number.parse::<i64>().ok()) else { continue };
            if number.saturating_add(1).saturating_mul(PARTITION_MILLIS) <= before {
                let sql = format!("SET LOCAL lock_timeout = '2s'; DROP TABLE {name}");
                // A role that may not do so removes the rows.
                drop(self.run(|transaction| transaction.batch_execute(&sql)));
            }
        }
    }
}

impl TrafficStore for PostgresStore {
    fn put_calls(&self, calls: &[CallInsert]) -> Result<Vec<Option<u64>>, StoreError> {
        self.make_partitions(calls);
        let conversations = call_sql::conversations(calls);
        self.run(|transaction| {
            // Writers of one conversation come one after the other, so that their numbers are in the order of commits.
            let sql = "SELECT pg_advisory_xact_lock(key) FROM (SELECT DISTINCT hashtextextended(id, 32) AS key \
                FROM unnest($1::text[]) AS id ORDER BY key) AS keys";
            transaction.query_typed(sql, &[(&conversations, Type::TEXT_ARRAY)])?;
            let (mut numbers, mut changes) = (Vec::new(), Changes::default());
            for call in calls {
                if call.replaces
                    && let Some(old) = take_row(transaction, &call.row.id)?
                {
                    changes.take(&old);
                }
                let sql = "INSERT INTO proem_traffic_id (id, at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING number";
                let values: [Value<'_>; 2] = [(&call.row.id, Type::TEXT), (&call.row.at, Type::INT8)];
                let Some(row) = transaction.query_typed_opt(sql, &values)? else {
                    numbers.push(None);
                    continue;
                };
                let number: i64 = row.try_get(0)?;
                insert_row(transaction, &call.row, number)?;
                insert_chain(transaction, call, number)?;
                changes.add(&call.row);
                numbers.push(Some(unsigned(number)));
            }
            add_changes(transaction, &changes)?;
            Ok(numbers)
        })
    }

    fn stored_call(&self, id: &str) -> Result<Option<StoredCall>, StoreError> {
        let sql = "SELECT c.number, c.at, c.record FROM proem_traffic_id i \
            JOIN proem_traffic_call c ON c.number = i.number AND c.at = i.at WHERE i.id = $1";
        self.read(|client| {
            let row = client.query_typed_opt(sql, &[(&id, Type::TEXT)])?;
            row.as_ref().map(stored).transpose()
        })
    }

    fn list_calls(&self, wanted: &CallQuery) -> Result<Page<StoredCall>, StoreError> {
        let statement = call_sql::list_calls(DIALECT, wanted);
        self.run(|client| {
            let rows = query(client, &statement)?;
            let calls = rows.iter().map(stored).collect::<Result<_, _>>()?;
            Ok(Page::of_calls(calls, wanted.most))
        })
    }

    fn chains(&self, conversation: &str, after: u64) -> Result<Vec<ChainRow>, StoreError> {
        let sql = "SELECT number, link FROM proem_traffic_chain WHERE conversation = $1 AND number > $2 ORDER BY number";
        let after = signed(after);
        self.read(|client| {
            let rows = client.query_typed(sql, &[(&conversation, Type::TEXT), (&after, Type::INT8)])?;
            let row = |row: &Row| Ok(ChainRow { number: unsigned(row.try_get(0)?), link: row.try_get(1)? });
            rows.iter().map(row).collect()
        })
    }

    fn conversations_of_first(&self, first: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT conversation FROM proem_traffic_chain WHERE first = $1 GROUP BY conversation \
            ORDER BY max(number) DESC LIMIT $2";
        let most = row_limit(most);
        self.read(|client| {
            let rows = client.query_typed(sql, &[(&first, Type::TEXT), (&most, Type::INT8)])?;
            rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
        })
    }

    fn usage(&self, wanted: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        let spans = wanted.spans(oldest_row());
        let by = wanted.by.stored();
        let day = if by == UsageBy::Day { "day" } else { "0::bigint" };
        let days = format!(
            "SELECT {day}, key, verdict, owner, {} FROM proem_traffic_usage \
             WHERE dimension = $1 AND day >= $2 AND day < $3 GROUP BY 1, 2, 3, 4 HAVING sum(calls) > 0",
            totals()
        );
        let part = format!(
            "SELECT {DAY}, {}::text, verdict, owner, {} FROM proem_traffic_call WHERE at >= $1 AND at < $2 \
             GROUP BY 1, 2, 3, 4",
            call_sql::group_column(by),
            totals()
        );
        self.run(|client| {
            let mut found = Vec::new();
            if spans.days.0 < spans.days.1 {
                let word = by.word();
                let values: [Value<'_>; 3] =
                    [(&word, Type::TEXT), (&spans.days.0, Type::INT8), (&spans.days.1, Type::INT8)];
                found.extend(client.query_typed(&days, &values)?);
            }
            for (from, to) in &spans.parts {
                found.extend(client.query_typed(&part, &[(from, Type::INT8), (to, Type::INT8)])?);
            }
            found.iter().map(usage_row).collect()
        })
    }

    fn list_conversations(&self, wanted: &ListQuery) -> Result<ListPage, StoreError> {
        let (list, count) = call_sql::list_conversations(DIALECT, wanted);
        self.run(|client| {
            let rows = query(client, &list)?;
            let item = |row: &Row| {
                let real = |column: usize| {
                    row.try_get(column).map_err(|error| StoreError::damaged("a row", error.to_string()))
                };
                call_sql::listed(&Columns(row), real)
            };
            let items = rows.iter().map(item).collect::<Result<_, _>>()?;
            let total = query(client, &count)?;
            let total = total.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
            Ok(ListPage::new(items, wanted, unsigned(total)))
        })
    }

    fn expire_calls(&self, rows_before: i64, chains_before: i64, most: usize) -> Result<u64, StoreError> {
        self.drop_partitions(rows_before);
        let most = row_limit(most);
        self.run(|transaction| {
            let before = [Bind::Integer(rows_before), Bind::Integer(most)];
            let sql = "DELETE FROM proem_traffic_call WHERE number IN \
                (SELECT number FROM proem_traffic_call WHERE at < $1 ORDER BY at LIMIT $2) AND at < $1";
            let rows = run(transaction, sql, &before)?;
            let sql = "DELETE FROM proem_traffic_id WHERE id IN \
                (SELECT id FROM proem_traffic_id WHERE at < $1 ORDER BY at LIMIT $2)";
            let ids = run(transaction, sql, &before)?;
            let sql = "DELETE FROM proem_traffic_chain WHERE number IN (SELECT c.number FROM proem_traffic_chain c \
                WHERE c.at < $1 AND NOT EXISTS (SELECT 1 FROM proem_traffic_chain n \
                WHERE n.conversation = c.conversation AND n.thread = c.thread AND n.at >= $1) LIMIT $2)";
            let chains = run(transaction, sql, &[Bind::Integer(chains_before), Bind::Integer(most)])?;
            Ok(rows.max(ids) + chains)
        })
    }

    fn forget_calls(&self, before: i64) -> Result<u64, StoreError> {
        let time = [Bind::Integer(before)];
        let day = before.div_euclid(DAY_MILLIS);
        self.run(|transaction| {
            let sql = format!("DELETE FROM proem_traffic_call WHERE at < $1 RETURNING {ROW}, {SUMS}");
            let rows = transaction.query_typed(&sql, &[(&before, Type::INT8)])?;
            let mut changes = Changes::default();
            for row in &rows {
                changes.take(&call_row(row)?);
            }
            run(transaction, "DELETE FROM proem_traffic_id WHERE at < $1", &time)?;
            run(transaction, "DELETE FROM proem_traffic_chain WHERE at < $1", &time)?;
            run(transaction, "DELETE FROM proem_traffic_conversation WHERE active_at < $1", &time)?;
            run(transaction, "DELETE FROM proem_traffic_usage WHERE day < $1", &[Bind::Integer(day)])?;
            changes.sums.retain(|(_, of, ..), _| *of >= day);
            add_changes(transaction, &changes)?;
            run(transaction, "DELETE FROM proem_traffic_usage WHERE calls <= 0", &[])?;
            Ok(rows.len() as u64)
        })
    }

    fn account_key(&self) -> Result<Vec<u8>, StoreError> {
        let fresh = new_key()?;
        self.run(|transaction| {
            let sql =
                "INSERT INTO proem_store_key (name, bytes) VALUES ('account', $1) ON CONFLICT DO NOTHING";
            transaction.execute_typed(sql, &[(&fresh, Type::BYTEA)])?;
            let sql = "SELECT bytes FROM proem_store_key WHERE name = 'account'";
            Ok(transaction.query_typed_one(sql, &[])?.try_get(0)?)
        })
    }
}
