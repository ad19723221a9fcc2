//! The tables, and the way from one version of them to the next.

use super::link::Link;
use super::{Failure, StoreError};

/// One step for each version; a step is never changed once it was released.
const STEPS: [&str; 4] = [
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
    // The epoch that a compaction opened: whoever commits it again gets the same answer. The digest of a row.
    "ALTER TABLE proem_compaction ADD COLUMN opened bigint;
     ALTER TABLE proem_epoch ADD COLUMN seal text;
     ALTER TABLE proem_template ADD COLUMN seal text;",
    // What providers said about calls.
    "CREATE TABLE proem_call (
        conversation text NOT NULL,
        number bigint NOT NULL,
        record text NOT NULL,
        PRIMARY KEY (conversation, number)
    );",
    // Texts that a prune is about to remove, and the place of one that was interrupted. An epoch takes its texts off that
    // list in its own transaction, and is refused if one of them is gone. A trigger, so that it holds for writers of every
    // version.
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
];

/// What two servers that start at once agree on to go one after the other.
const LOCK: i64 = 0x0070_726F_656D;

/// Brings the tables to the newest version.
pub(super) fn migrate(client: &mut Link, place: &str) -> Result<(), Failure> {
    client.transact(|transaction| {
        transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})"))?;
        transaction.batch_execute("CREATE TABLE IF NOT EXISTS proem_schema (version int NOT NULL)")?;
        let row = transaction.query_typed_one("SELECT coalesce(max(version), 0) FROM proem_schema", &[])?;
        let from: i32 = row.get(0);
        let (from, newest) = (usize::try_from(from).unwrap_or(0), STEPS.len());
        if from > newest {
            return Err(StoreError::Unusable {
                place: place.to_owned(),
                why: format!(
                    "its tables are those of a later proem (version {from}, this one knows {newest})"
                ),
                hint: "use the later proem, or restore a backup".into(),
            }
            .into());
        }
        for (index, step) in STEPS.iter().enumerate().skip(from) {
            transaction.batch_execute(step)?;
            transaction
                .batch_execute(&format!("INSERT INTO proem_schema (version) VALUES ({})", index + 1))?;
        }
        Ok(())
    })
}
