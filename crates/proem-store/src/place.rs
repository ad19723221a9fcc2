//! The name of a store: a path, `sqlite:PATH`, `memory:`, or the URL of a PostgreSQL database.
//!
//! A name may hold a password. It is never printed as it was written: [`redacted`] is the one form for people.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::url::Url;
use crate::{MemoryStore, SqliteStore, Store, StoreError};

/// A store, by the name that a flag, a variable or a setting gives it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Memory of this process.
    Memory,
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, by its URL. The URL may hold a password.
    Postgres(String),
}

/// Forms that a name may have, for hints.
const FORMS: &str = "use a path, `sqlite:PATH`, `memory:`, `postgres://USER@HOST:PORT/DATABASE` or \
                     `postgresql://…`; write a path that contains a colon as `./a:b` or `sqlite:a:b`";

/// Keywords of PostgreSQL's other connection format, which could hold a password.
const KEYWORDS: [&str; 7] = ["host", "hostaddr", "port", "user", "password", "dbname", "service"];

impl Place {
    /// Parses the name of a store.
    ///
    /// A name that begins with a scheme which is not listed here is refused: it is a misspelt URL far more often than a
    /// file, and would become a file whose name is the password.
    ///
    /// ```
    /// use proem_store::Place;
    /// assert_eq!(Place::parse("sqlite:a:b").unwrap(), Place::Sqlite("a:b".into()));
    /// let refused = Place::parse("postgress://me:secret@db/x").unwrap_err().to_string();
    /// assert_eq!(refused, "invalid store `postgress://…`: the scheme `postgress` is not known");
    /// ```
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let invalid = |why: String, hint: String| StoreError::Invalid { place: redacted(text), why, hint };
        if text.is_empty() {
            return Err(invalid("the name is empty".into(), FORMS.into()));
        }
        if has_keyword(text) {
            let why = "this is a list of keywords and values of PostgreSQL, not the name of a store";
            return Err(invalid(why.into(), FORMS.into()));
        }
        if lacks_scheme(text) {
            return Err(invalid("this is a URL without a scheme".into(), FORMS.into()));
        }
        let Some((scheme, rest)) = scheme(text) else { return Ok(Self::Sqlite(text.into())) };
        match scheme.to_ascii_lowercase().as_str() {
            "sqlite" if rest.is_empty() => Err(invalid("it names no file".into(), FORMS.into())),
            "sqlite" if rest.starts_with("//") => Err(invalid(
                "`sqlite:` takes a path, not a URL".into(),
                "write `sqlite:PATH`, such as `sqlite:/var/lib/proem/proem.db`".into(),
            )),
            "sqlite" => Ok(Self::Sqlite(rest.into())),
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "memory" => Err(invalid("`memory:` takes no name".into(), "write `memory:`".into())),
            "postgres" | "postgresql" => match rest.strip_prefix("//") {
                Some(rest) => match Url::parse(rest) {
                    Ok(_) => Ok(Self::Postgres(text.to_owned())),
                    Err(fault) => Err(invalid(fault.why, fault.hint)),
                },
                None => Err(invalid(format!("`{scheme}:` must be followed by `//`"), FORMS.into())),
            },
            _ => Err(invalid(format!("the scheme `{scheme}` is not known"), FORMS.into())),
        }
    }

    /// Opens the store. A file that is not there is made.
    pub fn open(&self) -> Result<Box<dyn Store>, StoreError> {
        match self {
            Self::Memory => Ok(Box::new(MemoryStore::new())),
            Self::Sqlite(path) => Ok(Box::new(SqliteStore::open(path)?)),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Ok(Box::new(crate::PostgresStore::connect(url)?)),
            #[cfg(not(feature = "postgres"))]
            Self::Postgres(url) => Err(StoreError::Invalid {
                place: redacted(url),
                why: "this proem was built without PostgreSQL".into(),
                hint: "build it with the feature `postgres`".into(),
            }),
        }
    }

    /// Tells whether opening this store would make a new file.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.path().is_some_and(|path| !path.exists())
    }

    /// Returns the file of the store; `None` for one that is not a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Memory | Self::Postgres(_) => None,
        }
    }
}

/// Writes the name without credentials.
impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => formatter.write_str("memory:"),
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(url) => formatter.write_str(&redacted(url)),
        }
    }
}

/// Writes the name without credentials.
impl fmt::Debug for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Place({self})")
    }
}

/// Returns a name or URL as it may be shown: without user name, password and options.
///
/// Of a URL that can be parsed, host, port and database are left; of any other one, its scheme. A path is shown whole.
///
/// ```
/// use proem_store::redacted;
/// assert_eq!(redacted("postgres://me:p@ss@db:5433/x?password=y"), "postgres://db:5433/x");
/// assert_eq!(redacted("mysql://me:secret@db/x"), "mysql://…");
/// assert_eq!(redacted("host=db password=secret"), "…");
/// assert_eq!(redacted("/var/lib/proem.db"), "/var/lib/proem.db");
/// ```
#[must_use]
pub fn redacted(text: &str) -> String {
    if has_keyword(text) || lacks_scheme(text) {
        return "…".into();
    }
    let Some((scheme, rest)) = scheme(text) else { return text.to_owned() };
    let is_postgres = ["postgres", "postgresql"].iter().any(|known| known.eq_ignore_ascii_case(scheme));
    if is_postgres && let Some(Ok(url)) = rest.strip_prefix("//").map(Url::parse) {
        return url.shown();
    }
    if scheme.eq_ignore_ascii_case("sqlite") && !rest.starts_with("//") {
        return text.to_owned();
    }
    format!("{scheme}:{}…", if rest.starts_with("//") { "//" } else { "" })
}

/// Splits a text into its scheme and what follows the colon; `None` when it has none, and is a path.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = !scheme.is_empty() && !scheme.contains(['/', '\\']) && !scheme.starts_with('.');
    is_scheme.then_some((scheme, rest))
}

/// Tells whether a text is a URL without a scheme, which could hold credentials.
fn lacks_scheme(text: &str) -> bool {
    let is_marked = text.starts_with("//") && text.contains('@');
    // What stands before the first colon may be a part of a password unless it is a word as schemes are.
    let before = text.split_once(':').map(|(before, _)| before);
    let is_word = |text: &str| {
        let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        text.bytes().all(is_of_scheme)
    };
    is_marked || before.is_some_and(|before| !before.contains(['/', '\\']) && !is_word(before))
}

/// Tells whether a text is a list such as `host=db password=secret`.
fn has_keyword(text: &str) -> bool {
    let is_path = text.starts_with(['/', '.', '~']) || scheme(text).is_some_and(|(word, _)| word == "sqlite");
    let is_url = scheme(text).is_some_and(|(word, rest)| rest.starts_with("//") && !word.contains('='));
    let names = |word: &str| {
        let name = word.split('=').next().filter(|name| name.len() < word.len());
        name.is_some_and(|name| KEYWORDS.iter().any(|known| known.eq_ignore_ascii_case(name.trim())))
    };
    !is_path && !is_url && text.split([' ', '\t', '\n', '?', '&', ';']).any(names)
}
