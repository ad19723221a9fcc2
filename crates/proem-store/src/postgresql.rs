//! PostgreSQL: one database for as many servers as like.
//!
//! Nothing is kept in a session: statements are sent with their types, settings hold for one transaction, and so
//! it works behind a pooler that hands out connections by transaction.

mod schema;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, NoTls, Row, Transaction};
use proem::stored::StoredPrompt;
use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::memory::page;
use crate::record::{self, Compaction, ConversationHead, Epoch, EpochHead, Page, Query, TemplateVersion};
use crate::{Store, StoreError};

/// How long a connection may take to be made, and how long the server may be silent.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Most connections that wait for the next caller.
const IDLE_MAX: usize = 16;

/// Settings of one transaction: it must be durable when it is acknowledged, and must not hang.
const SETTINGS: &str = "SET LOCAL synchronous_commit = on; SET LOCAL statement_timeout = '10s'; \
    SET LOCAL lock_timeout = '8s'; SET LOCAL idle_in_transaction_session_timeout = '20s'";

const HEAD: &str =
    "conversation, number, reason, digest, fingerprint, profile, engine, cwd, model, has_turn, opened_at";

/// A store in a database server.
pub struct PostgresStore {
    config: Config,
    place: String,
    idle: Mutex<Vec<Client>>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PostgresStore").field("place", &self.place).finish_non_exhaustive()
    }
}

type Value<'v> = (&'v (dyn ToSql + Sync), Type);

impl PostgresStore {
    /// Connects to the database that a URL names, and brings its tables to the newest version.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        let mut config: Config = url.parse().map_err(|error: postgres::Error| StoreError::Unusable {
            place: "postgres".into(),
            why: format!("its address is no URL of PostgreSQL: {error}"),
            hint: "write postgres://USER@HOST:PORT/DATABASE".into(),
        })?;
        config.connect_timeout(TIME_MAX).tcp_user_timeout(TIME_MAX).keepalives_idle(TIME_MAX);
        config.application_name("proem");
        let place = place(&config);
        let store = Self { config, place, idle: Mutex::new(Vec::new()) };
        let mut client = store.client()?;
        schema::migrate(&mut client).map_err(|failure| store.explain(failure))?;
        store.give_back(client);
        Ok(store)
    }

    /// A connection: one that waits, or a new one.
    fn client(&self) -> Result<Client, StoreError> {
        let waiting = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match waiting {
            Some(client) if !client.is_closed() => Ok(client),
            _ => self.new_client(),
        }
    }

    /// A new connection: encrypted where the URL wants that, or where the server is another machine and offers it.
    fn new_client(&self) -> Result<Client, StoreError> {
        let is_plain = match self.config.get_ssl_mode() {
            SslMode::Disable => true,
            SslMode::Require => false,
            _ => is_of_this_machine(&self.config),
        };
        if is_plain {
            return self.config.connect(NoTls).map_err(|error| self.fail(&error));
        }
        let (tls, _) = MakeRustlsConnect::with_native_certs().map_err(|_| StoreError::Unusable {
            place: self.place.clone(),
            why: "the system has no certificates to check the server's with".into(),
            hint: "install the package `ca-certificates`, or add `sslmode=disable` to the URL".into(),
        })?;
        self.config.connect(tls).map_err(|error| self.fail(&error))
    }

    fn give_back(&self, client: Client) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !client.is_closed() {
            idle.push(client);
        }
    }

    /// Runs work in a transaction. A connection that broke is not used again, and since all work may be done
    /// twice without harm, it is tried once more with a new one.
    fn run<T>(&self, work: impl Fn(&mut Transaction<'_>) -> Result<T, Failure>) -> Result<T, StoreError> {
        let attempt = || -> Result<T, (Failure, bool)> {
            let mut client = self.client().map_err(|error| (Failure::Store(error), false))?;
            let done = transact(&mut client, &work);
            let is_broken = client.is_closed();
            match done {
                Ok(done) => {
                    self.give_back(client);
                    Ok(done)
                }
                Err(failure) => {
                    if !is_broken {
                        self.give_back(client);
                    }
                    Err((failure, is_broken))
                }
            }
        };
        match attempt() {
            Ok(done) => Ok(done),
            Err((_, true)) => {
                // The others are most likely broken, too.
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
                attempt().map_err(|(failure, _)| self.explain(failure))
            }
            Err((failure, false)) => Err(self.explain(failure)),
        }
    }

    fn explain(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Postgres(error) => self.fail(&error),
            Failure::Store(error) => error,
        }
    }

    fn fail(&self, error: &postgres::Error) -> StoreError {
        let why = error.as_db_error().map_or_else(|| chain(error), |error| error.message().to_owned());
        let place = self.place.clone();
        match error.code() {
            Some(code) if is_lasting(code) => {
                let hint = "see whether the database is the right one, and may be written to".into();
                StoreError::Unusable { place, why, hint }
            }
            _ => StoreError::Unavailable { place, why },
        }
    }
}

/// An error with what caused it.
fn chain(error: &postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

/// Tells whether an error will be there again next time.
fn is_lasting(code: &SqlState) -> bool {
    // Wrong password or database, missing tables or rights, a value that does not fit.
    ["28", "3D", "42", "22", "23"].iter().any(|class| code.code().starts_with(class))
}

/// Tells whether the server runs on this very machine, where nobody can listen in.
fn is_of_this_machine(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        postgres::config::Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        postgres::config::Host::Unix(_) => true,
    })
}

/// The server's address without a password.
fn place(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            postgres::config::Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            postgres::config::Host::Unix(path) => path.display().to_string(),
        })
        .collect();
    let ports: Vec<String> = config.get_ports().iter().map(ToString::to_string).collect();
    format!("postgres://{}:{}/{}", hosts.join(","), ports.join(","), config.get_dbname().unwrap_or_default())
}

/// What went wrong inside of a transaction.
enum Failure {
    Postgres(postgres::Error),
    Store(StoreError),
}

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn transact<T>(
    client: &mut Client,
    work: &impl Fn(&mut Transaction<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut transaction = client.transaction()?;
    transaction.batch_execute(SETTINGS)?;
    let done = work(&mut transaction)?;
    transaction.commit()?;
    Ok(done)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn head(row: &Row) -> EpochHead {
    EpochHead {
        conversation: row.get(0),
        number: unsigned(row.get(1)),
        reason: row.get(2),
        digest: row.get(3),
        fingerprint: row.get(4),
        profile: row.get(5),
        engine: row.get(6),
        cwd: row.get(7),
        model: row.get(8),
        has_turn: row.get(9),
        opened_at: row.get(10),
    }
}

/// Reads texts that are kept once, and makes sure that they are the ones.
fn blobs(transaction: &mut Transaction<'_>, digests: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let sql = "SELECT digest, bytes FROM proem_blob WHERE digest = ANY($1)";
    let rows = transaction.query_typed(sql, &[(&digests, Type::TEXT_ARRAY)])?;
    let mut found = BTreeMap::new();
    for row in rows {
        let (digest, bytes): (String, Vec<u8>) = (row.get(0), row.get(1));
        if Digest::of(&bytes).hex() != digest {
            return Err(damaged(&digest, "its bytes are not those of its digest").into());
        }
        let text = String::from_utf8(bytes).map_err(|_| damaged(&digest, "it is no text"))?;
        found.insert(digest, text);
    }
    Ok(found)
}

fn damaged(digest: &str, why: &str) -> StoreError {
    StoreError::Damaged { what: format!("the text {digest}"), why: why.to_owned() }
}

fn whole(
    transaction: &mut Transaction<'_>,
    condition: &str,
    values: &[Value<'_>],
) -> Result<Option<Epoch>, Failure> {
    let sql = format!("SELECT {HEAD}, texts, description, request FROM proem_epoch WHERE {condition}");
    let Some(row) = transaction.query_typed_opt(&sql, values)? else { return Ok(None) };
    let (texts, description, request): (String, String, String) = (row.get(11), row.get(12), row.get(13));
    let carriers: BTreeMap<Carrier, String> = serde_json::from_str(&texts).map_err(|error| {
        StoreError::Damaged { what: "the list of an epoch's texts".into(), why: error.to_string() }
    })?;
    let digests: Vec<String> = carriers.values().chain([&description, &request]).cloned().collect();
    let found = blobs(transaction, &digests)?;
    let find = |digest: &String| found.get(digest).cloned().ok_or_else(|| damaged(digest, "it is gone"));
    let texts = carriers.iter().map(|(carrier, digest)| Ok((*carrier, find(digest)?)));
    let prompt =
        StoredPrompt { texts: texts.collect::<Result<_, StoreError>>()?, description: find(&description)? };
    Ok(Some(Epoch { head: head(&row), prompt, request: find(&request)? }))
}

/// Stores an epoch if its number is the next one; tells whether it did.
fn insert(transaction: &mut Transaction<'_>, epoch: &Epoch) -> Result<bool, Failure> {
    let own = epoch.blobs();
    // In one order, so that two who store the same texts wait for each other instead of for ever.
    let all: BTreeMap<String, &[u8]> = own.all().map(|bytes| (Digest::of(bytes).hex(), bytes)).collect();
    for (digest, bytes) in &all {
        transaction.execute_typed(
            "INSERT INTO proem_blob (digest, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            &[(digest, Type::TEXT), (bytes, Type::BYTEA)],
        )?;
    }
    let EpochHead {
        conversation,
        number,
        reason,
        digest,
        fingerprint,
        profile,
        engine,
        cwd,
        model,
        has_turn,
        opened_at,
    } = &epoch.head;
    let (number, texts) = (signed(*number), own.texts_json());
    let (description, request) = (Digest::of(own.description).hex(), Digest::of(own.request).hex());
    let sql = format!(
        "INSERT INTO proem_epoch ({HEAD}, texts, description, request) \
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14 \
         WHERE $2 = 1 OR EXISTS (SELECT 1 FROM proem_epoch WHERE conversation = $1 AND number = $2 - 1) \
         ON CONFLICT DO NOTHING"
    );
    let values: [Value<'_>; 14] = [
        (conversation, Type::TEXT),
        (&number, Type::INT8),
        (reason, Type::TEXT),
        (digest, Type::TEXT),
        (fingerprint, Type::TEXT),
        (profile, Type::TEXT),
        (engine, Type::TEXT),
        (cwd, Type::TEXT),
        (model, Type::TEXT),
        (has_turn, Type::BOOL),
        (opened_at, Type::INT8),
        (&texts, Type::TEXT),
        (&description, Type::TEXT),
        (&request, Type::TEXT),
    ];
    if transaction.execute_typed(&sql, &values)? == 0 {
        return Ok(false);
    }
    transaction.execute_typed(
        "INSERT INTO proem_conversation (id, epoch, began_at, opened_at, cwd) VALUES ($1, $2, $3, $3, $4) \
         ON CONFLICT (id) DO UPDATE SET epoch = $2, opened_at = $3, cwd = $4",
        &[(conversation, Type::TEXT), (&number, Type::INT8), (opened_at, Type::INT8), (cwd, Type::TEXT)],
    )?;
    transaction.execute_typed("SELECT pg_notify('proem_epoch', $1)", &[(conversation, Type::TEXT)])?;
    Ok(true)
}

fn number(transaction: &mut Transaction<'_>, conversation: &str) -> Result<u64, Failure> {
    let sql = "SELECT epoch FROM proem_conversation WHERE id = $1";
    let row = transaction.query_typed_opt(sql, &[(&conversation, Type::TEXT)])?;
    Ok(row.map_or(0, |row| unsigned(row.get(0))))
}

fn newest_template(transaction: &mut Transaction<'_>) -> Result<u64, Failure> {
    // One writer at a time: versions have no gaps.
    transaction.batch_execute("LOCK TABLE proem_template IN EXCLUSIVE MODE")?;
    let row = transaction.query_typed_one("SELECT coalesce(max(version), 0) FROM proem_template", &[])?;
    Ok(unsigned(row.get(0)))
}

fn insert_template(transaction: &mut Transaction<'_>, template: &TemplateVersion) -> Result<(), Failure> {
    let TemplateVersion { version, text, author, written_at } = template;
    transaction.execute_typed(
        "INSERT INTO proem_template (version, text, author, written_at) VALUES ($1, $2, $3, $4)",
        &[
            (&signed(*version), Type::INT8),
            (text, Type::TEXT),
            (author, Type::TEXT),
            (written_at, Type::INT8),
        ],
    )?;
    Ok(())
}

/// The digests that epochs refer to.
const USED: &str = "SELECT description AS digest FROM proem_epoch UNION SELECT request FROM proem_epoch \
    UNION SELECT (jsonb_each_text(texts::jsonb)).value FROM proem_epoch";

impl Store for PostgresStore {
    fn current(&self, conversation: &str) -> Result<Option<Epoch>, StoreError> {
        let condition = "conversation = $1 AND number = (SELECT epoch FROM proem_conversation WHERE id = $1)";
        self.run(|transaction| whole(transaction, condition, &[(&conversation, Type::TEXT)]))
    }

    fn current_head(&self, conversation: &str) -> Result<Option<EpochHead>, StoreError> {
        let sql = format!(
            "SELECT {HEAD}, c.epoch FROM proem_conversation c \
             LEFT JOIN (SELECT * FROM proem_epoch WHERE conversation = $1) e ON e.number = c.epoch WHERE c.id = $1"
        )
        .replace("cwd, model", "e.cwd, model")
        .replace("opened_at, c.epoch", "e.opened_at, c.epoch");
        self.run(|transaction| {
            let Some(row) = transaction.query_typed_opt(&sql, &[(&conversation, Type::TEXT)])? else {
                return Ok(None);
            };
            if row.get::<_, Option<i64>>(1).is_some() {
                return Ok(Some(head(&row)));
            }
            let what = format!("epoch {} of `{conversation}`", row.get::<_, i64>(11));
            Err(StoreError::Damaged { what, why: "it is gone".into() }.into())
        })
    }

    fn current_number(&self, conversation: &str) -> Result<u64, StoreError> {
        self.run(|transaction| number(transaction, conversation))
    }

    fn epoch(&self, conversation: &str, number: u64) -> Result<Option<Epoch>, StoreError> {
        let number = signed(number);
        let values: [Value<'_>; 2] = [(&conversation, Type::TEXT), (&number, Type::INT8)];
        self.run(|transaction| whole(transaction, "conversation = $1 AND number = $2", &values))
    }

    fn epochs(&self, conversation: &str) -> Result<Vec<EpochHead>, StoreError> {
        let sql = format!("SELECT {HEAD} FROM proem_epoch WHERE conversation = $1 ORDER BY number");
        self.run(|transaction| {
            let rows = transaction.query_typed(&sql, &[(&conversation, Type::TEXT)])?;
            Ok(rows.iter().map(head).collect())
        })
    }

    fn open(&self, epoch: &Epoch) -> Result<Epoch, StoreError> {
        // Whoever was not first sees the other one's row only in a statement of its own.
        self.run(|transaction| insert(transaction, epoch).map(drop))?;
        let EpochHead { conversation, number: wanted, .. } = &epoch.head;
        match self.epoch(conversation, *wanted)? {
            Some(stored) => Ok(stored),
            None => Err(StoreError::Conflict { current: self.current_number(conversation)? }),
        }
    }

    fn conversations(&self, query: &Query) -> Result<Page<ConversationHead>, StoreError> {
        let (time, name) =
            query.after.as_deref().and_then(record::read_place).unwrap_or((i64::MAX, String::new()));
        let search = query.search.clone().unwrap_or_default();
        let most = i64::try_from(query.most).unwrap_or(i64::MAX - 1) + 1;
        let sql = "SELECT c.id, c.epoch, e.reason, e.profile, e.cwd, e.model, c.began_at, c.opened_at \
            FROM proem_conversation c JOIN proem_epoch e ON e.conversation = c.id AND e.number = c.epoch \
            WHERE (c.opened_at, c.id) < ($1, $2) \
            AND (strpos(c.id, $3) > 0 OR strpos(c.cwd, $3) > 0 OR $3 = '') \
            ORDER BY c.opened_at DESC, c.id DESC LIMIT $4";
        let values: [Value<'_>; 4] =
            [(&time, Type::INT8), (&name, Type::TEXT), (&search, Type::TEXT), (&most, Type::INT8)];
        self.run(|transaction| {
            let rows = transaction.query_typed(sql, &values)?;
            let mut items: Vec<ConversationHead> = rows
                .iter()
                .map(|row| ConversationHead {
                    conversation: row.get(0),
                    epoch: unsigned(row.get(1)),
                    reason: row.get(2),
                    profile: row.get(3),
                    cwd: row.get(4),
                    model: row.get(5),
                    began_at: row.get(6),
                    opened_at: row.get(7),
                })
                .collect();
            Ok(page(&mut items, query.most))
        })
    }

    fn remove(&self, conversation: &str) -> Result<bool, StoreError> {
        let values: [Value<'_>; 1] = [(&conversation, Type::TEXT)];
        self.run(|transaction| {
            transaction.execute_typed("DELETE FROM proem_compaction WHERE conversation = $1", &values)?;
            transaction.execute_typed("DELETE FROM proem_epoch WHERE conversation = $1", &values)?;
            let removed =
                transaction.execute_typed("DELETE FROM proem_conversation WHERE id = $1", &values)?;
            Ok(removed > 0)
        })
    }

    fn begin_compaction(&self, compaction: &Compaction) -> Result<(), StoreError> {
        let Compaction { token, conversation, from, rebuilt, request, expires_at } = compaction;
        let (from, rebuilt) = (signed(*from), rebuilt.as_ref().map(crate::transfer::epoch_json).transpose()?);
        let now = record::now();
        self.run(|transaction| {
            transaction
                .execute_typed("DELETE FROM proem_compaction WHERE expires_at < $1", &[(&now, Type::INT8)])?;
            transaction.execute_typed(
                "INSERT INTO proem_compaction (token, conversation, epoch, rebuilt, request, expires_at) \
                 VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
                &[
                    (token, Type::TEXT),
                    (conversation, Type::TEXT),
                    (&from, Type::INT8),
                    (&rebuilt, Type::TEXT),
                    (request, Type::TEXT),
                    (expires_at, Type::INT8),
                ],
            )?;
            Ok(())
        })
    }

    fn compaction(&self, token: &str) -> Result<Option<Compaction>, StoreError> {
        let sql = "SELECT token, conversation, epoch, rebuilt, request, expires_at FROM proem_compaction WHERE token = $1";
        let found = self.run(|transaction| Ok(transaction.query_typed_opt(sql, &[(&token, Type::TEXT)])?))?;
        let Some(row) = found else { return Ok(None) };
        let rebuilt: Option<String> = row.get(3);
        Ok(Some(Compaction {
            token: row.get(0),
            conversation: row.get(1),
            from: unsigned(row.get(2)),
            rebuilt: rebuilt.as_deref().map(crate::transfer::epoch_of_json).transpose()?,
            request: row.get(4),
            expires_at: row.get(5),
        }))
    }

    fn end_compaction(&self, token: &str) -> Result<bool, StoreError> {
        let sql = "DELETE FROM proem_compaction WHERE token = $1";
        self.run(|transaction| Ok(transaction.execute_typed(sql, &[(&token, Type::TEXT)])? > 0))
    }

    fn template(&self) -> Result<Option<TemplateVersion>, StoreError> {
        Ok(self.template_versions(None, 1)?.into_iter().next())
    }

    fn template_version(&self, version: u64) -> Result<Option<TemplateVersion>, StoreError> {
        let newest = self.template_versions(version.checked_add(1), 1)?.into_iter().next();
        Ok(newest.filter(|template| template.version == version))
    }

    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError> {
        let below = below.map_or(i64::MAX, signed);
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let sql = "SELECT version, text, author, written_at FROM proem_template WHERE version < $1 \
            ORDER BY version DESC LIMIT $2";
        self.run(|transaction| {
            let rows = transaction.query_typed(sql, &[(&below, Type::INT8), (&most, Type::INT8)])?;
            let version = |row: &Row| TemplateVersion {
                version: unsigned(row.get(0)),
                text: row.get(1),
                author: row.get(2),
                written_at: row.get(3),
            };
            Ok(rows.iter().map(version).collect())
        })
    }

    fn put_template(
        &self,
        text: &str,
        author: Option<&str>,
        expected: Option<u64>,
    ) -> Result<TemplateVersion, StoreError> {
        let written_at = record::now();
        self.run(|transaction| {
            let current = newest_template(transaction)?;
            if expected.is_some_and(|expected| expected != current) {
                return Err(StoreError::Conflict { current }.into());
            }
            let (text, author) = (text.to_owned(), author.map(str::to_owned));
            let template = TemplateVersion { version: current + 1, text, author, written_at };
            insert_template(transaction, &template)?;
            Ok(template)
        })
    }

    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError> {
        self.run(|transaction| {
            let current = newest_template(transaction)?;
            if template.version != current + 1 {
                return Err(StoreError::Conflict { current }.into());
            }
            insert_template(transaction, template)
        })
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.run(|transaction| {
            let mut found = Vec::new();
            let wrong = "SELECT digest FROM proem_blob WHERE encode(sha256(bytes), 'hex') <> digest";
            for row in transaction.query_typed(wrong, &[])? {
                let digest: String = row.get(0);
                found.push(format!("the text {digest}: its bytes are not those of its digest"));
            }
            let missing = format!(
                "SELECT digest FROM ({USED}) used WHERE digest NOT IN (SELECT digest FROM proem_blob)"
            );
            for row in transaction.query_typed(&missing, &[])? {
                let digest: String = row.get(0);
                found.push(format!("the text {digest}: it is gone"));
            }
            Ok(found)
        })
    }

    fn prune(&self) -> Result<u64, StoreError> {
        let sql = format!(
            "WITH gone AS (DELETE FROM proem_blob WHERE digest NOT IN (SELECT digest FROM ({USED}) used) \
             RETURNING octet_length(bytes) AS size) SELECT coalesce(sum(size), 0)::bigint FROM gone"
        );
        self.run(|transaction| {
            // Nobody may store an epoch whose texts are about to go.
            transaction.batch_execute("LOCK TABLE proem_blob, proem_epoch IN EXCLUSIVE MODE")?;
            Ok(unsigned(transaction.query_typed_one(&sql, &[])?.get(0)))
        })
    }

    fn describe(&self) -> String {
        self.place.clone()
    }
}
