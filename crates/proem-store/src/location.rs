//! The name of a store: a path, `sqlite:PATH`, `memory:`, or the URL of a PostgreSQL database.
//!
//! A name may hold a password, so it is never printed as it is: messages show what [`redacted`] returns.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::url::Url;
use crate::{Explanation, MemoryStore, SqliteStore, Store, StoreError};

/// The location of a store, parsed from the name in a flag, a variable or a setting.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreLocation {
    /// Memory of this process.
    Memory,
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, by its URL. The URL may hold a password.
    Postgres(String),
}

/// The forms of a name, for hints.
const FORMS: &str = "use a path, `sqlite:PATH`, `memory:`, `postgres://USER@HOST:PORT/DATABASE` or \
                     `postgresql://…`; write a path that contains a colon as `./a:b` or `sqlite:a:b`";

/// Keywords of PostgreSQL's other connection format, which could hold a password.
const KEYWORDS: [&str; 7] = ["host", "hostaddr", "port", "user", "password", "dbname", "service"];

impl StoreLocation {
    /// Parses the name of a store.
    ///
    /// A name with an unknown scheme is refused: it is a misspelt URL far more often than a path, and as a path it would
    /// create a file whose name contains the password.
    ///
    /// ```
    /// use proem_store::StoreLocation;
    /// assert_eq!(StoreLocation::parse("sqlite:a:b").unwrap(), StoreLocation::Sqlite("a:b".into()));
    /// let refused = StoreLocation::parse("postgress://me:secret@db/x").unwrap_err().to_string();
    /// assert_eq!(refused, "invalid store `postgress://…`: unknown scheme `postgress`");
    /// ```
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let invalid =
            |why: Explanation, hint: String| StoreError::Invalid { place: redacted(text), why, hint };
        if text.is_empty() {
            return Err(invalid("the name is empty".into(), FORMS.into()));
        }
        if has_keyword(text) {
            let why = "this is a connection string of PostgreSQL, not the name of a store";
            return Err(invalid(why.into(), FORMS.into()));
        }
        if lacks_scheme(text) {
            return Err(invalid("this is a URL without a scheme".into(), FORMS.into()));
        }
        if path_holds_url(text) {
            return Err(invalid("the path contains a URL".into(), FORMS.into()));
        }
        let Some((scheme, rest)) = scheme(text) else { return Ok(Self::Sqlite(text.into())) };
        match scheme.to_ascii_lowercase().as_str() {
            "sqlite" if rest.is_empty() => Err(invalid("the path is missing".into(), FORMS.into())),
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
                None => Err(invalid(format!("`{scheme}:` must be followed by `//`").into(), FORMS.into())),
            },
            _ => Err(invalid(format!("unknown scheme `{scheme}`").into(), FORMS.into())),
        }
    }

    /// Opens the store. Creates a SQLite file that does not exist.
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

    /// Tells whether opening this store would create a file.
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
impl fmt::Display for StoreLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => formatter.write_str("memory:"),
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(url) => formatter.write_str(&redacted(url)),
        }
    }
}

/// Writes the name without credentials.
impl fmt::Debug for StoreLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StoreLocation({self})")
    }
}

/// Returns a name or URL without user name, password and options, so that it may be shown.
///
/// Keeps host, port and database of a URL that can be parsed, and the scheme of any other URL. A path is kept whole.
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
    if has_keyword(text) || lacks_scheme(text) || path_holds_url(text) {
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

/// Splits a text at the colon after its scheme; `None` for a path, which has no scheme.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = !scheme.is_empty() && !scheme.contains(['/', '\\']) && !scheme.starts_with('.');
    is_scheme.then_some((scheme, rest))
}

/// Tells whether a text is a URL without a scheme, which could hold credentials.
fn lacks_scheme(text: &str) -> bool {
    let is_marked = text.starts_with("//") && text.contains('@');
    // Unless it has the form of a scheme, the text before the first colon may be a part of a password.
    let before = text.split_once(':').map(|(before, _)| before);
    let is_word = |text: &str| {
        let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        text.bytes().all(is_of_scheme)
    };
    is_marked || before.is_some_and(|before| !before.contains(['/', '\\']) && !is_word(before))
}

/// Tells whether the path of a name contains a URL, such as `sqlite:postgres://me:secret@db/x`. Its colon may be encoded.
fn path_holds_url(text: &str) -> bool {
    let path = match scheme(text) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("sqlite") => rest,
        Some(_) => return false,
        None => text,
    };
    let path = path.to_ascii_lowercase();
    path.contains("://") || path.contains("%3a//")
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
