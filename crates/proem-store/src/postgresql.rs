//! A store in a PostgreSQL database, for any number of servers.
//!
//! Sessions have no state: statements are sent with their types, and settings hold for one transaction. So the store works
//! behind a pooler that assigns connections by transaction.

mod address;
mod calls;
mod check;
mod compactions;
mod link;
mod passfile;
mod prepared;
mod rows;
mod schema;
mod states;
mod templates;
mod tls;
mod traffic;
mod workspaces;

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use address::{Address, TlsMode};
use link::Link;
use prepared::Prepared;
use proem_core::limit::POSTGRES_ANSWER_SECONDS_MAX;
use rows::{CURRENT, CURRENT_HEAD, HISTORY, NUMBERED, insert_next};
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Maintenance;
use crate::columns::{ColumnReader as _, row_limit, signed, unsigned};
use crate::record::{ConversationHead, Epoch, EpochHead, EpochRow, History, Page, PageKey, Query};
use crate::texts::TextCache;
use crate::{Commit, Current, CurrentHead, Explanation, Store, StoreError};

/// The most connections that are kept open for the next callers.
const IDLE_MAX: usize = 16;

/// The most attempts to store an epoch whose texts a prune removes at the same time.
const OPEN_ATTEMPTS_MAX: usize = 4;

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    address: Address,
    tls: Option<MakeRustlsConnect>,
    idle: Mutex<Vec<Link>>,
    texts: TextCache,
    current: Prepared,
    current_head: Prepared,
    /// The tables of rows of calls that this process has created or found.
    partitions: Mutex<BTreeSet<String>>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PostgresStore").field("place", &self.address.place).finish_non_exhaustive()
    }
}

/// A parameter of a statement, with its type.
type Value<'v> = (&'v (dyn ToSql + Sync), Type);

impl PostgresStore {
    /// Connects to the database of a URL. Creates its tables, or migrates them to the newest version.
    ///
    /// Options that the URL leaves out come from libpq's environment variables: `PGHOST`, `PGPASSWORD`, `PGSSLMODE` and
    /// others.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        let mut address = Address::parse(url, &|name| std::env::var(name).ok())?;
        let tls = tls::connector(address.mode, address.roots.as_ref(), &address.place)?;
        address.config.ssl_mode(match address.mode {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Allow | TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        let (idle, texts) = (Mutex::default(), TextCache::default());
        let (current, current_head) = (Prepared::new(CURRENT), Prepared::new(CURRENT_HEAD));
        let partitions = Mutex::default();
        let store = Self { address, tls, idle, texts, current, current_head, partitions };
        let mut client = store.client().map_err(|failure| store.explain(failure))?;
        schema::migrate(&mut client, &store.address.place).map_err(|failure| store.explain(failure))?;
        store.give_back(client);
        Ok(store)
    }

    /// Returns an idle connection, or a new one.
    fn client(&self) -> Result<Link, Failure> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(client) if !client.is_closed() => Ok(client),
            _ => self.new_client(),
        }
    }

    /// Opens a connection, encrypted according to the address.
    fn new_client(&self) -> Result<Link, Failure> {
        let Address { config, mode, connect_time, .. } = &self.address;
        let plain = || Link::new(config, NoTls, *connect_time);
        let Some(tls) = &self.tls else { return plain() };
        let encrypted = || Link::new(config, tls.clone(), *connect_time);
        match mode {
            TlsMode::Disable => plain(),
            TlsMode::Allow => match plain() {
                Err(failure) if failure.may_depend_on_tls() => encrypted(),
                done => done,
            },
            TlsMode::Prefer => match encrypted() {
                Err(failure) if failure.may_depend_on_tls() => plain().map_err(|_| failure),
                done => done,
            },
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => encrypted(),
        }
    }

    /// Keeps a connection for the next caller.
    fn give_back(&self, client: Link) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !client.is_closed() {
            idle.push(client);
        }
    }

    /// Runs work in a transaction.
    fn run<T>(&self, work: impl Fn(&mut Link) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.with_client(|client| client.transact(&work))
    }

    /// Runs statements without a transaction: one round trip, where a transaction takes four.
    fn read<T>(&self, work: impl Fn(&mut Link) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.with_client(work)
    }

    /// Runs work with a connection. If the connection breaks, the work runs once more with a new one: all work may safely
    /// run twice. After a timeout it does not run again, because the caller has waited long enough.
    fn with_client<T>(&self, work: impl Fn(&mut Link) -> Result<T, Failure>) -> Result<T, StoreError> {
        let attempt = || -> Result<T, (Failure, bool)> {
            let mut client = self.client().map_err(|failure| (failure, false))?;
            let done = work(&mut client);
            let is_broken = client.is_closed();
            self.give_back(client);
            done.map_err(|failure| (failure, is_broken))
        };
        let done = match attempt() {
            Err((Failure::Silent, _)) => {
                self.close_idle();
                Err(Failure::Silent)
            }
            Err((_, true)) => {
                self.close_idle();
                attempt().map_err(|(failure, _)| failure)
            }
            done => done.map_err(|(failure, _)| failure),
        };
        done.map_err(|failure| self.explain(failure))
    }

    /// Closes the idle connections: when one breaks, the others have most likely broken, too.
    fn close_idle(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        drop(idle);
    }

    /// Converts an error of a transaction.
    fn explain(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Postgres(error) => self.store_error(error),
            Failure::Store(error) => error,
            Failure::Silent => StoreError::Unavailable {
                place: self.address.place.clone(),
                why: format!("no answer for {POSTGRES_ANSWER_SECONDS_MAX} seconds").into(),
            },
            Failure::System(error) => StoreError::Unavailable {
                place: self.address.place.clone(),
                why: Explanation::from_error(error),
            },
        }
    }

    /// Classifies an error of the driver.
    fn store_error(&self, error: tokio_postgres::Error) -> StoreError {
        let Some(code) = error.code() else { return self.driver_error(error) };
        let place = self.address.place.clone();
        let hint = match code {
            &SqlState::QUERY_CANCELED | &SqlState::LOCK_NOT_AVAILABLE => {
                return StoreError::TimedOut { place, why: explanation(error) };
            }
            &SqlState::INVALID_PASSWORD => {
                "check the user name and the password of the URL, PGPASSWORD or ~/.pgpass".into()
            }
            &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                "check the user name and `sslmode`, and the server's `pg_hba.conf`".into()
            }
            &SqlState::INVALID_CATALOG_NAME => {
                "create it with `createdb`, or name another database in the URL".into()
            }
            &SqlState::INSUFFICIENT_PRIVILEGE => {
                schema::grant(self.address.user.as_deref().unwrap_or("ROLE"), "public")
            }
            code if is_permanent(code) => {
                "check that it is the right database, and that you may write to it".into()
            }
            _ => return StoreError::Unavailable { place, why: explanation(error) },
        };
        StoreError::Unusable { place, why: explanation(error), hint }
    }

    /// Classifies an error that does not come from the server.
    fn driver_error(&self, error: tokio_postgres::Error) -> StoreError {
        let place = self.address.place.clone();
        if let Some(cause) = tls::cause(&error) {
            let (why, hint) = (format!("TLS failed: {cause}"), tls::hint(cause));
            return StoreError::Unusable { place, why: Explanation::new(why, error), hint };
        }
        let is_encrypted = self.address.config.get_ssl_mode() == SslMode::Require;
        match DriverErrorKind::new(&error) {
            DriverErrorKind::Tls if is_encrypted => StoreError::Unusable {
                place,
                why: Explanation::new("the server does not offer TLS", error),
                hint: "turn `ssl` on in the server's settings, or use `sslmode=prefer` or `sslmode=disable`"
                    .into(),
            },
            DriverErrorKind::Password => StoreError::Unusable {
                place,
                why: Explanation::new("the server asks for a password, and there is none", error),
                hint: "set PGPASSWORD, add a line to ~/.pgpass, or write it into the URL".into(),
            },
            DriverErrorKind::Tls | DriverErrorKind::Other => {
                StoreError::Unavailable { place, why: explanation(error) }
            }
        }
    }
}

/// The kinds of errors for which the driver has no public type.
enum DriverErrorKind {
    Tls,
    Password,
    Other,
}

impl DriverErrorKind {
    /// Recognises an error by its words, because the driver does not publish its kind. A test provokes each kind with a
    /// real server.
    fn new(error: &tokio_postgres::Error) -> Self {
        let source = || error.source().map(ToString::to_string).unwrap_or_default();
        match error.to_string().as_str() {
            "error performing TLS handshake" => Self::Tls,
            "invalid configuration" if source() == "password missing" => Self::Password,
            _ => Self::Other,
        }
    }
}

/// Explains an error in the words of the server, or of the driver and all causes.
fn explanation(error: tokio_postgres::Error) -> Explanation {
    Explanation::new(message(&error), error)
}

fn message(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

/// Tells whether an error will occur again next time.
fn is_permanent(code: &SqlState) -> bool {
    // Wrong password or database, missing tables or rights, a value that does not fit.
    ["28", "3D", "42", "22", "23"].iter().any(|class| code.code().starts_with(class))
}

/// Stores an epoch; does so again if a prune removed a text that existed when this began.
fn retry_pruned<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let mut done = attempt();
    for _ in 1..OPEN_ATTEMPTS_MAX {
        if done.as_ref().err().and_then(Failure::code) != Some(&SqlState::T_R_SERIALIZATION_FAILURE) {
            break;
        }
        done = attempt();
    }
    done
}

/// An error inside a transaction.
enum Failure {
    Postgres(tokio_postgres::Error),
    Store(StoreError),
    /// There was no answer in time.
    Silent,
    /// This machine cannot open a connection.
    System(std::io::Error),
}

impl Failure {
    /// Returns the code of the server.
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Postgres(error) => error.code(),
            Self::Store(_) | Self::Silent | Self::System(_) => None,
        }
    }

    /// Returns the message of the server; empty for other errors.
    fn message(&self) -> String {
        match self {
            Self::Postgres(error) => {
                error.as_db_error().map_or_else(String::new, |error| error.message().into())
            }
            Self::Store(_) | Self::Silent | Self::System(_) => String::new(),
        }
    }

    /// Explains the error in other words.
    fn explain_as(self, words: String) -> Explanation {
        match self {
            Self::Postgres(error) => Explanation::new(words, error),
            Self::Store(error) => Explanation::new(words, error),
            Self::System(error) => Explanation::new(words, error),
            Self::Silent => words.into(),
        }
    }

    /// Tells whether a connection may work with encryption if it failed without, or the other way round.
    fn may_depend_on_tls(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        let is_refused = error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
        is_refused || matches!(DriverErrorKind::new(error), DriverErrorKind::Tls)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Store for PostgresStore {
    fn current(&self, conversation: &str) -> Result<Option<Current>, StoreError> {
        let read = |client: &mut Link| {
            let Some(row) = self.current.row(client, conversation)? else { return Ok(None) };
            let columns = rows::TextColumns(&row);
            let state = states::from_columns(&columns, EpochRow::COLUMN_COUNT, conversation)?;
            let epoch = rows::with_texts(EpochRow::from_columns(&columns)?, client, &self.texts)?;
            Ok(Some(Current { epoch, state }))
        };
        let found = self.read(read)?;
        if found.is_some() {
            return Ok(found);
        }
        // Either there is none, or it is missing, or it was opened after the first look.
        if self.current_head(conversation)?.is_some() { self.read(read) } else { Ok(None) }
    }

    fn current_head(&self, conversation: &str) -> Result<Option<CurrentHead>, StoreError> {
        self.read(|client| {
            let Some(row) = self.current_head.row(client, conversation)? else { return Ok(None) };
            if row.get(1).is_some() {
                let columns = rows::TextColumns(&row);
                let state_version = unsigned(columns.integer(EpochHead::COLUMN_COUNT + 1)?);
                return Ok(Some(CurrentHead { head: EpochHead::from_columns(&columns)?, state_version }));
            }
            let number = row.get(EpochHead::COLUMN_COUNT).unwrap_or_default();
            Err(StoreError::damaged(format!("epoch {number} of `{conversation}`"), "it is missing").into())
        })
    }

    fn current_number(&self, conversation: &str) -> Result<u64, StoreError> {
        self.read(|client| rows::current_number(client, conversation))
    }

    fn epoch(&self, conversation: &str, number: u64) -> Result<Option<Epoch>, StoreError> {
        let number = signed(number);
        let values: [Value<'_>; 2] = [(&conversation, Type::TEXT), (&number, Type::INT8)];
        self.read(|client| rows::epoch(client, &self.texts, NUMBERED, &values))
    }

    fn history(&self, conversation: &str) -> Result<History, StoreError> {
        self.read(|client| {
            let rows = client.query_typed(HISTORY, &[(&conversation, Type::TEXT)])?;
            let current = rows.first().and_then(|row| row.get::<_, Option<i64>>(EpochHead::COLUMN_COUNT));
            let epochs = rows
                .iter()
                .map(|row| EpochHead::from_columns(&rows::Columns(row)))
                .collect::<Result<_, _>>()?;
            Ok(History { current: current.map_or(0, unsigned), epochs })
        })
    }

    fn open(&self, epoch: &Epoch) -> Result<Epoch, StoreError> {
        // A writer that was not first sees the row of the other one only in a later statement.
        self.with_client(|client| {
            retry_pruned(|| client.transact(|transaction| insert_next(transaction, epoch)))
        })?;
        let EpochHead { conversation, number: wanted, .. } = &epoch.head;
        match self.epoch(conversation, *wanted)? {
            Some(stored) => Ok(stored),
            None => Err(StoreError::Conflict { current: self.current_number(conversation)? }),
        }
    }

    fn commit(&self, change: &Commit<'_>) -> Result<bool, StoreError> {
        states::commit(self, change)
    }

    fn conversations(&self, query: &Query) -> Result<Page<ConversationHead>, StoreError> {
        let PageKey { opened_at, conversation } = PageKey::from_query(query);
        let search = query.search.clone().unwrap_or_default();
        let most = row_limit(query.most).saturating_add(1);
        let sql = "SELECT c.id, c.epoch, e.reason, e.profile, e.cwd, e.model, c.began_at, c.opened_at \
            FROM proem_conversation c JOIN proem_epoch e ON e.conversation = c.id AND e.number = c.epoch \
            WHERE (c.opened_at, c.id) < ($1, $2) \
            AND (strpos(c.id, $3) > 0 OR strpos(c.cwd, $3) > 0 OR $3 = '') \
            ORDER BY c.opened_at DESC, c.id DESC LIMIT $4";
        let values: [Value<'_>; 4] = [
            (&opened_at, Type::INT8),
            (&conversation, Type::TEXT),
            (&search, Type::TEXT),
            (&most, Type::INT8),
        ];
        self.run(|transaction| {
            let rows = transaction.query_typed(sql, &values)?;
            let items = rows
                .iter()
                .map(|row| ConversationHead::from_columns(&rows::Columns(row)))
                .collect::<Result<_, _>>()?;
            Ok(Page::new(items, query.most))
        })
    }

    fn remove(&self, conversation: &str) -> Result<bool, StoreError> {
        let values: [Value<'_>; 1] = [(&conversation, Type::TEXT)];
        self.run(|transaction| {
            // The conversation first: a writer that opens an epoch of it waits for this row, and then finds none. Its state
            // goes with it: see the table.
            let removed =
                transaction.execute_typed("DELETE FROM proem_conversation WHERE id = $1", &values)?;
            transaction.execute_typed("DELETE FROM proem_compaction WHERE conversation = $1", &values)?;
            transaction.execute_typed("DELETE FROM proem_call WHERE conversation = $1", &values)?;
            let is_observed = traffic::remove_conversation(transaction, conversation)?;
            transaction.execute_typed("DELETE FROM proem_epoch WHERE conversation = $1", &values)?;
            Ok(removed > 0 || is_observed)
        })
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        Some(self)
    }

    fn describe(&self) -> String {
        self.address.place.clone()
    }
}
