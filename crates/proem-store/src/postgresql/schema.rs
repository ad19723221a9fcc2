//! The tables, and the migrations from each version to the next.

use tokio_postgres::error::SqlState;

use super::link::Link;
use super::{Failure, StoreError};

/// The migrations, one for each version. A released migration never changes.
const STEPS: [&str; 8] = [
    "
CREATE TABLE proem_blob (
    digest text PRIMARY KEY,
    bytes bytea NOT NULL
);
CREATE TABLE proem_conversation (
    id text PRIMARY KEY,
    epoch bigint NOT NULL,
    began_at bigint NOT NULL,
    opened_at bigint NOT NULL,
    cwd text NOT NULL
);
CREATE INDEX proem_conversation_by_time ON proem_conversation (opened_at, id);
CREATE TABLE proem_epoch (
    conversation text NOT NULL,
    number bigint NOT NULL,
    reason text NOT NULL,
    digest text NOT NULL,
    fingerprint text NOT NULL,
    profile text NOT NULL,
    engine text NOT NULL,
    cwd text NOT NULL,
    model text,
    has_turn boolean NOT NULL,
    opened_at bigint NOT NULL,
    texts text NOT NULL,
    description text NOT NULL,
    request text NOT NULL,
    PRIMARY KEY (conversation, number)
);
CREATE TABLE proem_compaction (
    token text PRIMARY KEY,
    conversation text NOT NULL,
    epoch bigint NOT NULL,
    rebuilt text,
    request text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE proem_template (
    version bigint PRIMARY KEY,
    text text NOT NULL,
    author text,
    written_at bigint NOT NULL
);
",
    // The epoch that a compaction opened, for a client that commits it again, and the digests of rows.
    "ALTER TABLE proem_compaction ADD COLUMN opened bigint;
     ALTER TABLE proem_epoch ADD COLUMN seal text;
     ALTER TABLE proem_template ADD COLUMN seal text;",
    // The records of calls to providers.
    "CREATE TABLE proem_call (
        conversation text NOT NULL,
        number bigint NOT NULL,
        record text NOT NULL,
        PRIMARY KEY (conversation, number)
    );",
    // The texts that a prune is about to remove, and the state of an interrupted prune. An epoch takes its texts off that
    // list in its own transaction, and is refused if one of them is missing. A trigger does this, so that it holds for
    // writers of every version.
    "CREATE TABLE proem_doomed (
        digest text PRIMARY KEY,
        run text NOT NULL
    );
    CREATE TABLE proem_prune (
        name text PRIMARY KEY,
        bytes bytea NOT NULL
    );
    CREATE FUNCTION proem_epoch_uses() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    DECLARE
        used text[];
    BEGIN
        SELECT array_agg(DISTINCT digest) INTO used FROM (
            SELECT NEW.description AS digest UNION ALL SELECT NEW.request UNION ALL
            SELECT part[1] FROM regexp_matches(NEW.texts, '[0-9a-f]{64}', 'g') AS part
        ) AS every;
        PERFORM 1 FROM proem_doomed WHERE digest = ANY (used) ORDER BY digest FOR UPDATE;
        IF FOUND THEN
            DELETE FROM proem_doomed WHERE digest = ANY (used);
        END IF;
        IF (SELECT count(*) FROM proem_blob WHERE digest = ANY (used)) < cardinality(used) THEN
            RAISE EXCEPTION 'a text of the epoch was removed a moment ago'
                USING ERRCODE = 'serialization_failure';
        END IF;
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER proem_epoch_uses AFTER INSERT ON proem_epoch
        FOR EACH ROW EXECUTE FUNCTION proem_epoch_uses();",
    // The states of conversations. A server of an earlier version that still runs would write epochs without changing the
    // state, so a trigger refuses its epochs: they have no form. Such a server may remove a conversation, and the state
    // goes with it. Locks are taken in the order of a writer of epochs, because another order could deadlock with one.
    "ALTER TABLE proem_epoch ADD COLUMN form integer;
    CREATE FUNCTION proem_epoch_form() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        IF NEW.form IS NULL THEN
            RAISE EXCEPTION 'its tables have version %, and this proem supports versions up to 4: use a newer proem',
                (SELECT max(version) FROM proem_schema) USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END
    $$;
    CREATE TRIGGER proem_epoch_form BEFORE INSERT ON proem_epoch
        FOR EACH ROW EXECUTE FUNCTION proem_epoch_form();
    CREATE TABLE proem_state (
        conversation text PRIMARY KEY REFERENCES proem_conversation (id) ON DELETE CASCADE,
        version bigint NOT NULL,
        text text NOT NULL,
        seal text NOT NULL
    );",
    // The workspaces that requests brought, and the epochs that refer to them. The reference to the workspace has no foreign
    // key: an epoch of an export may come without it.
    "CREATE TABLE proem_workspace (
        digest text PRIMARY KEY,
        text text NOT NULL,
        used_at bigint NOT NULL
    );
    CREATE INDEX proem_workspace_by_use ON proem_workspace (used_at);
    CREATE TABLE proem_workspace_use (
        conversation text NOT NULL REFERENCES proem_conversation (id) ON DELETE CASCADE,
        number bigint NOT NULL,
        digest text NOT NULL,
        PRIMARY KEY (conversation, number)
    );
    CREATE INDEX proem_workspace_use_by_digest ON proem_workspace_use (digest);",
    // The version of the template that an epoch begins with, and what its author says about a version.
    "ALTER TABLE proem_epoch ADD COLUMN template_version bigint;
    CREATE INDEX proem_epoch_by_template ON proem_epoch (template_version, conversation)
        WHERE template_version IS NOT NULL;
    ALTER TABLE proem_template ADD COLUMN message text;
    ALTER TABLE proem_template ADD COLUMN is_draft boolean NOT NULL DEFAULT false;",
    // The calls of agents to providers: rows for some weeks, daily sums for ever, and chains of digests of live threads.
    // Rows are divided by time, so that old ones go with their table. A table of ids keeps ids unique.
    "CREATE TABLE proem_traffic_call (
        number bigint NOT NULL,
        id text NOT NULL,
        at bigint NOT NULL,
        conversation text NOT NULL,
        agent text NOT NULL,
        model text NOT NULL,
        cwd text NOT NULL,
        profile text NOT NULL,
        version text NOT NULL,
        verdict text NOT NULL,
        owner text NOT NULL,
        is_alarming bigint NOT NULL,
        calls bigint NOT NULL,
        read bigint NOT NULL,
        written bigint NOT NULL,
        uncached bigint NOT NULL,
        output bigint NOT NULL,
        unpriced bigint NOT NULL,
        list_price bigint NOT NULL,
        lost_tokens bigint NOT NULL,
        usd double precision NOT NULL,
        saved_usd double precision NOT NULL,
        lost_usd double precision NOT NULL,
        record text NOT NULL
    ) PARTITION BY RANGE (at);
    CREATE TABLE proem_traffic_call_default PARTITION OF proem_traffic_call DEFAULT;
    CREATE TABLE proem_traffic_id (
        id text PRIMARY KEY,
        number bigint GENERATED ALWAYS AS IDENTITY,
        at bigint NOT NULL
    );
    CREATE INDEX proem_traffic_id_by_time ON proem_traffic_id (at);
    CREATE INDEX proem_traffic_call_by_number ON proem_traffic_call (number);
    CREATE INDEX proem_traffic_call_by_time ON proem_traffic_call (at, number);
    CREATE INDEX proem_traffic_call_by_conversation ON proem_traffic_call (conversation, at, number);
    CREATE INDEX proem_traffic_call_by_verdict ON proem_traffic_call (verdict, at, number);
    CREATE INDEX proem_traffic_call_by_model ON proem_traffic_call (model, at, number);
    CREATE INDEX proem_traffic_call_by_cwd ON proem_traffic_call (cwd, at, number);
    CREATE TABLE proem_traffic_usage (
        dimension text NOT NULL,
        day bigint NOT NULL,
        key text NOT NULL,
        verdict text NOT NULL,
        owner text NOT NULL,
        calls bigint NOT NULL,
        read bigint NOT NULL,
        written bigint NOT NULL,
        uncached bigint NOT NULL,
        output bigint NOT NULL,
        unpriced bigint NOT NULL,
        list_price bigint NOT NULL,
        lost_tokens bigint NOT NULL,
        usd double precision NOT NULL,
        saved_usd double precision NOT NULL,
        lost_usd double precision NOT NULL,
        PRIMARY KEY (dimension, day, key, verdict, owner)
    );
    CREATE TABLE proem_traffic_conversation (
        id text PRIMARY KEY,
        session text NOT NULL,
        agent text,
        model text,
        cwd text,
        profile text,
        calls bigint NOT NULL,
        read bigint NOT NULL,
        input bigint NOT NULL,
        usd double precision NOT NULL,
        lost_usd double precision NOT NULL,
        began_at bigint NOT NULL,
        active_at bigint NOT NULL,
        last_miss text
    );
    CREATE INDEX proem_traffic_conversation_by_time ON proem_traffic_conversation (active_at, id);
    CREATE INDEX proem_traffic_conversation_by_session ON proem_traffic_conversation (session);
    CREATE TABLE proem_traffic_chain (
        number bigint PRIMARY KEY,
        conversation text NOT NULL,
        thread text NOT NULL,
        first text NOT NULL,
        at bigint NOT NULL,
        is_full boolean NOT NULL,
        link text NOT NULL
    );
    CREATE INDEX proem_traffic_chain_by_conversation ON proem_traffic_chain (conversation, number);
    CREATE INDEX proem_traffic_chain_by_thread ON proem_traffic_chain (conversation, thread, at);
    CREATE INDEX proem_traffic_chain_by_first ON proem_traffic_chain (first);
    CREATE INDEX proem_traffic_chain_by_time ON proem_traffic_chain (at);
    CREATE TABLE proem_store_key (
        name text PRIMARY KEY,
        bytes bytea NOT NULL
    );",
];

/// The form of the epochs that this proem writes: the version of the tables that brought it.
pub(super) const FORM: i32 = 5;

/// The advisory lock that serialises the migrations of servers that start together.
const LOCK: i64 = 0x0070_726F_656D;

/// Migrates the tables to the newest version. A role that may not create tables can use tables of that version.
pub(super) fn migrate(client: &mut Link, place: &str) -> Result<(), Failure> {
    let from = match version(client) {
        Err(failure) if failure.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            let Role { role, schema } = Role::current(client)?;
            let why = format!("the role `{role}` may not read its tables: {}", failure.message());
            let (place, why) = (place.into(), failure.explain_as(why));
            return Err(StoreError::Unusable { place, why, hint: grant(&role, &schema) }.into());
        }
        found => found?,
    };
    if from == Some(STEPS.len()) {
        return Ok(());
    }
    match client.transact(|transaction| upgrade(transaction, place)) {
        Err(failure) if failure.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            Err(refused(client, place, from, failure)?.into())
        }
        done => done,
    }
}

/// Reads the version of the tables; `None` when there are none.
fn version(client: &mut Link) -> Result<Option<usize>, Failure> {
    let row = client.query_typed_one("SELECT to_regclass('proem_schema') IS NOT NULL", &[])?;
    if !row.get::<_, bool>(0) {
        return Ok(None);
    }
    newest_step(client).map(Some)
}

/// Reads the newest migration that was done.
fn newest_step(client: &mut Link) -> Result<usize, Failure> {
    let row = client.query_typed_one("SELECT coalesce(max(version), 0) FROM proem_schema", &[])?;
    Ok(usize::try_from(row.get::<_, i32>(0)).unwrap_or(0))
}

fn upgrade(transaction: &mut Link, place: &str) -> Result<(), Failure> {
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})"))?;
    // Another server may have been first. This statement locks the table, so it sees commits during its wait; `to_regclass`
    // would answer from the cache of the session.
    transaction.batch_execute("CREATE TABLE IF NOT EXISTS proem_schema (version int NOT NULL)")?;
    let (from, newest) = (newest_step(transaction)?, STEPS.len());
    if from > newest {
        return Err(StoreError::Unusable {
            place: place.to_owned(),
            why: format!("its tables have version {from}, and this proem supports versions up to {newest}")
                .into(),
            hint: "use a newer proem, or restore a backup".into(),
        }
        .into());
    }
    for (index, step) in STEPS.iter().enumerate().skip(from) {
        transaction.batch_execute(step)?;
        transaction.batch_execute(&format!("INSERT INTO proem_schema (version) VALUES ({})", index + 1))?;
    }
    Ok(())
}

/// Returns the error about a role that may not migrate the tables, with the commands that fix it.
fn refused(
    client: &mut Link,
    place: &str,
    from: Option<usize>,
    failure: Failure,
) -> Result<StoreError, Failure> {
    let message = failure.message();
    let Role { role, schema } = Role::current(client)?;
    let newest = STEPS.len();
    let as_owner = place.replacen("postgres://", "postgres://OWNER@", 1);
    let (why, who) = match from {
        None => (
            format!("it has no tables of proem, and the role `{role}` may not create them: {message}"),
            format!("a role that has CREATE on the schema `{schema}`"),
        ),
        Some(from) => (
            format!(
                "its tables have version {from}, this proem needs {newest}, and the role `{role}` may not change \
                 them: {message}"
            ),
            "the role that owns the tables".to_owned(),
        ),
    };
    let then = grant(&role, &schema);
    let hint = format!("run `proem store migrate --store '{as_owner}'` as {who}; then {then}");
    Ok(StoreError::Unusable { place: place.into(), why: failure.explain_as(why), hint })
}

/// Returns the statement that grants a role the rights to use the tables.
pub(super) fn grant(role: &str, schema: &str) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let (role, schema) = (quoted(role), quoted(schema));
    format!(
        "run `GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \
         {schema} TO {role}` as their owner"
    )
}

/// The role of a connection, and the schema in which it creates tables.
struct Role {
    role: String,
    schema: String,
}

impl Role {
    fn current(client: &mut Link) -> Result<Self, Failure> {
        let sql = "SELECT current_user::text, coalesce(current_schema(), 'public')::text";
        let row = client.query_typed_one(sql, &[])?;
        Ok(Self { role: row.get(0), schema: row.get(1) })
    }
}
