//! PostgreSQL: one database for as many servers as like.
//!
//! Nothing is kept in a session: statements are sent with their types, settings hold for one transaction, and so
//! it works behind a pooler that hands out connections by transaction.

mod address;
mod calls;
mod check;
mod compactions;
mod link;
mod passfile;
mod prepared;
mod rows;
mod schema;
mod templates;
mod tls;

use std::sync::{Mutex, PoisonError};

use address::{Address, Mode};
use link::Link;
use prepared::Prepared;
use rows::{
    CURRENT, CURRENT_HEAD, EpochRow, HEAD, NUMBERED, head, head_of_text, insert, number, signed, unsigned,
    whole,
};
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Maintenance;
use crate::record::{
    self, Compaction, ConversationHead, Epoch, EpochHead, History, Page, Query, TemplateHead, TemplateVersion,
};
use crate::texts::Texts;
use crate::{Store, StoreError};
use proem::store::page;

/// Most connections that wait for the next caller.
const IDLE_MAX: usize = 16;

/// Most attempts to store an epoch whose texts a prune removes at the same moment.
const OPEN_ATTEMPTS_MAX: usize = 4;

/// A store in a database server.
pub struct PostgresStore {
    address: Address,
    tls: Option<MakeRustlsConnect>,
    idle: Mutex<Vec<Link>>,
    texts: Texts,
    current: Prepared,
    current_head: Prepared,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PostgresStore").field("place", &self.address.place).finish_non_exhaustive()
    }
}

type Value<'v> = (&'v (dyn ToSql + Sync), Type);

impl PostgresStore {
    /// Connects to the database that a URL names. Makes its tables, or brings them to the newest version, if they are not.
    ///
    /// Options that the URL leaves out come from libpq's variables: `PGHOST`, `PGPASSWORD`, `PGSSLMODE` and others.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        let mut address = Address::parse(url, &|name| std::env::var(name).ok())?;
        let tls = tls::connector(address.mode, address.roots.as_ref(), &address.place)?;
        address.config.ssl_mode(match address.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Allow | Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        let (idle, texts) = (Mutex::default(), Texts::default());
        let (current, current_head) = (Prepared::new(CURRENT), Prepared::new(CURRENT_HEAD));
        let store = Self { address, tls, idle, texts, current, current_head };
        let mut client = store.client().map_err(|failure| store.explain(failure))?;
        schema::migrate(&mut client, &store.address.place).map_err(|failure| store.explain(failure))?;
        store.give_back(client);
        Ok(store)
    }

    /// A connection: one that waits, or a new one.
    fn client(&self) -> Result<Link, Failure> {
        let waiting = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match waiting {
            Some(client) if !client.is_closed() => Ok(client),
            _ => self.new_client(),
        }
    }

    /// Makes a connection, encrypted as the address says.
    fn new_client(&self) -> Result<Link, Failure> {
        let Address { config, mode, connect_time, .. } = &self.address;
        let plain = || Link::new(config, NoTls, *connect_time);
        let Some(tls) = &self.tls else { return plain() };
        let encrypted = || Link::new(config, tls.clone(), *connect_time);
        match mode {
            Mode::Disable => plain(),
            Mode::Allow => match plain() {
                Err(failure) if failure.is_of_encryption() => encrypted(),
                done => done,
            },
            Mode::Prefer => match encrypted() {
                Err(failure) if failure.is_of_encryption() => plain().map_err(|_| failure),
                done => done,
            },
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => encrypted(),
        }
    }

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

    /// Reads, each statement by itself: one way there and back, where a transaction takes four.
    fn read<T>(&self, work: impl Fn(&mut Link) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.with_client(work)
    }

    /// Does work with a connection. All work may be done twice without harm, and so it is tried once more with a new one if
    /// that broke; but not if the server said nothing, because whoever waits has waited long enough.
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
                self.forget_idle();
                Err(Failure::Silent)
            }
            Err((_, true)) => {
                self.forget_idle();
                attempt().map_err(|(failure, _)| failure)
            }
            done => done.map_err(|(failure, _)| failure),
        };
        done.map_err(|failure| self.explain(failure))
    }

    /// Lets go of the connections that wait: when one broke, the others most likely did, too.
    fn forget_idle(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        drop(idle);
    }

    fn explain(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Postgres(error) => self.fail(&error),
            Failure::Store(error) => error,
            Failure::Silent => StoreError::Unavailable {
                place: self.address.place.clone(),
                why: format!("it gave no answer for {} seconds", link::TIME_MAX.as_secs()),
            },
            Failure::System(error) => {
                StoreError::Unavailable { place: self.address.place.clone(), why: error.to_string() }
            }
        }
    }

    fn fail(&self, error: &tokio_postgres::Error) -> StoreError {
        let why = error.as_db_error().map_or_else(|| chain(error), |error| error.message().to_owned());
        let place = self.address.place.clone();
        let Some(code) = error.code() else { return self.fail_unsaid(error, why) };
        let hint = match code {
            &SqlState::QUERY_CANCELED | &SqlState::LOCK_NOT_AVAILABLE => {
                return StoreError::TimedOut { place, why };
            }
            &SqlState::INVALID_PASSWORD => {
                "check the user name and the password of the URL, PGPASSWORD or ~/.pgpass"
            }
            &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                "check the user name and `sslmode`, and the server's `pg_hba.conf`"
            }
            &SqlState::INVALID_CATALOG_NAME => "make it with `createdb`, or name another database in the URL",
            &SqlState::INSUFFICIENT_PRIVILEGE => {
                let hint = schema::grant(self.address.user.as_deref().unwrap_or("ROLE"), "public");
                return StoreError::Unusable { place, why, hint };
            }
            code if is_lasting(code) => "see whether the database is the right one, and may be written to",
            _ => return StoreError::Unavailable { place, why },
        };
        StoreError::Unusable { place, why, hint: hint.into() }
    }

    /// Explains an error that the server itself did not name.
    fn fail_unsaid(&self, error: &tokio_postgres::Error, why: String) -> StoreError {
        let place = self.address.place.clone();
        if let Some(cause) = tls::cause(error) {
            return StoreError::Unusable {
                place,
                why: format!("TLS failed: {cause}"),
                hint: tls::hint(cause),
            };
        }
        let is_encrypted = self.address.config.get_ssl_mode() == SslMode::Require;
        match Unsaid::of(error) {
            Unsaid::Tls if is_encrypted => StoreError::Unusable {
                place,
                why: "the server does not offer TLS".into(),
                hint: "turn `ssl` on in the server's settings, or use `sslmode=prefer` or `sslmode=disable`"
                    .into(),
            },
            Unsaid::Password => StoreError::Unusable {
                place,
                why: "the server asks for a password, and there is none".into(),
                hint: "set PGPASSWORD, add a line to ~/.pgpass, or write it into the URL".into(),
            },
            Unsaid::Tls | Unsaid::Other => StoreError::Unavailable { place, why },
        }
    }
}

/// Kinds of errors that the driver does not tell by type.
enum Unsaid {
    Tls,
    Password,
    Other,
}

impl Unsaid {
    /// The driver keeps the kind to itself; its words are compared here, and a test asks a real server for each.
    fn of(error: &tokio_postgres::Error) -> Self {
        match error.to_string().as_str() {
            "error performing TLS handshake" => Self::Tls,
            "invalid configuration" if source(error) == "password missing" => Self::Password,
            _ => Self::Other,
        }
    }
}

fn source(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

/// An error with what caused it.
fn chain(error: &tokio_postgres::Error) -> String {
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

/// What went wrong inside of a transaction.
enum Failure {
    Postgres(tokio_postgres::Error),
    Store(StoreError),
    /// There was no answer in time.
    Silent,
    /// This machine has not what it takes to ask.
    System(std::io::Error),
}

impl Failure {
    /// What the server calls it.
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Postgres(error) => error.code(),
            Self::Store(_) | Self::Silent | Self::System(_) => None,
        }
    }

    /// Tells whether a connection may work with encryption if it did not without, or the other way round.
    fn is_of_encryption(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        let is_refused = error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
        is_refused || matches!(Unsaid::of(error), Unsaid::Tls)
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
    fn current(&self, conversation: &str) -> Result<Option<Epoch>, StoreError> {
        let found = self.read(|client| {
            let Some(row) = self.current.row(client, conversation)? else { return Ok(None) };
            EpochRow::of_text(&row)?.whole(client, Some(&self.texts)).map(Some)
        })?;
        if found.is_some() {
            return Ok(found);
        }
        // There is none, or there should be one.
        let Some(head) = self.current_head(conversation)? else { return Ok(None) };
        self.epoch(conversation, head.number)
    }

    fn current_head(&self, conversation: &str) -> Result<Option<EpochHead>, StoreError> {
        self.read(|client| {
            let Some(row) = self.current_head.row(client, conversation)? else { return Ok(None) };
            if row.get(1).is_some() {
                return Ok(Some(head_of_text(&row)?));
            }
            let what = format!("epoch {} of `{conversation}`", row.get(11).unwrap_or_default());
            Err(StoreError::Damaged { what, why: "it is gone".into() }.into())
        })
    }

    fn current_number(&self, conversation: &str) -> Result<u64, StoreError> {
        self.read(|client| number(client, conversation))
    }

    fn epoch(&self, conversation: &str, number: u64) -> Result<Option<Epoch>, StoreError> {
        let number = signed(number);
        let values: [Value<'_>; 2] = [(&conversation, Type::TEXT), (&number, Type::INT8)];
        self.read(|client| whole(client, Some(&self.texts), NUMBERED, &values))
    }

    fn epochs(&self, conversation: &str) -> Result<Vec<EpochHead>, StoreError> {
        let sql = format!("SELECT {HEAD} FROM proem_epoch WHERE conversation = $1 ORDER BY number");
        self.read(|client| {
            let rows = client.query_typed(&sql, &[(&conversation, Type::TEXT)])?;
            Ok(rows.iter().map(head).collect())
        })
    }

    fn history(&self, conversation: &str) -> Result<History, StoreError> {
        let sql = format!(
            "SELECT {HEAD}, (SELECT epoch FROM proem_conversation WHERE id = $1) \
             FROM proem_epoch WHERE conversation = $1 ORDER BY number"
        );
        self.read(|client| {
            let rows = client.query_typed(&sql, &[(&conversation, Type::TEXT)])?;
            let current = rows.first().and_then(|row| row.get::<_, Option<i64>>(11)).map_or(0, unsigned);
            Ok(History { current, epochs: rows.iter().map(head).collect() })
        })
    }

    fn open(&self, epoch: &Epoch) -> Result<Epoch, StoreError> {
        // Whoever was not first sees the other one's row only in a statement of its own.
        self.with_client(|client| {
            let mut attempt = client.transact(|transaction| insert(transaction, epoch).map(drop));
            for _ in 1..OPEN_ATTEMPTS_MAX {
                // A prune removed a text that was there when this began: now it is stored again.
                if attempt.as_ref().err().and_then(Failure::code)
                    != Some(&SqlState::T_R_SERIALIZATION_FAILURE)
                {
                    break;
                }
                attempt = client.transact(|transaction| insert(transaction, epoch).map(drop));
            }
            attempt
        })?;
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
            // The conversation first: whoever opens an epoch of it waits for this row, and then finds none.
            let removed =
                transaction.execute_typed("DELETE FROM proem_conversation WHERE id = $1", &values)?;
            transaction.execute_typed("DELETE FROM proem_compaction WHERE conversation = $1", &values)?;
            transaction.execute_typed("DELETE FROM proem_call WHERE conversation = $1", &values)?;
            transaction.execute_typed("DELETE FROM proem_epoch WHERE conversation = $1", &values)?;
            Ok(removed > 0)
        })
    }

    fn begin_compaction(&self, compaction: &Compaction) -> Result<(), StoreError> {
        compactions::begin(self, compaction)
    }

    fn compaction(&self, token: &str) -> Result<Option<Compaction>, StoreError> {
        compactions::find(self, token)
    }

    fn end_compaction(&self, token: &str, opened: Option<u64>) -> Result<bool, StoreError> {
        compactions::end(self, token, opened)
    }

    fn add_call(&self, conversation: &str, record: &str) -> Result<Option<u64>, StoreError> {
        calls::add(self, conversation, record)
    }

    fn calls(&self, conversation: &str) -> Result<Vec<String>, StoreError> {
        calls::list(self, conversation)
    }

    fn last_call(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        calls::last(self, conversation)
    }

    fn template(&self) -> Result<Option<TemplateVersion>, StoreError> {
        Ok(self.template_versions(None, 1)?.into_iter().next())
    }

    fn template_version(&self, version: u64) -> Result<Option<TemplateVersion>, StoreError> {
        let newest = self.template_versions(version.checked_add(1), 1)?.into_iter().next();
        Ok(newest.filter(|template| template.version == version))
    }

    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError> {
        templates::list(self, below, most)
    }

    fn put_template(
        &self,
        text: &str,
        author: Option<&str>,
        expected: Option<u64>,
    ) -> Result<TemplateVersion, StoreError> {
        templates::put(self, text, author, expected)
    }

    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError> {
        templates::restore(self, template)
    }

    fn template_heads(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateHead>, StoreError> {
        templates::heads(self, below, most)
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        Some(self)
    }

    fn describe(&self) -> String {
        self.address.place.clone()
    }
}
