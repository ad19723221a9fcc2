//! Prepared statements, because planning these takes longer than running them.
//!
//! A pooler may hand every call to another session, which may have prepared statements of other clients. So statements are
//! prepared by name in SQL, and the name is a hash of the statement: a name is never ambiguous. A session without the
//! statement gets it. No state of sessions is kept here.

use proem_core::digest::Digest;
use proem_core::text::clip;
use tokio_postgres::error::SqlState;
use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

use super::Failure;
use super::link::Link;

/// The most attempts to find or prepare a statement: each may reach another session.
const ATTEMPTS_MAX: usize = 4;

/// A prepared statement with one parameter, a text.
pub(super) struct Prepared {
    name: String,
    sql: &'static str,
}

impl Prepared {
    pub(super) fn new(sql: &'static str) -> Self {
        let digest = Digest::new(sql.as_bytes()).hex();
        Self { name: format!("proem_{}", clip(&digest, 32)), sql }
    }

    /// Returns the first row, if any, with all values as text.
    pub(super) fn row(&self, client: &mut Link, value: &str) -> Result<Option<SimpleQueryRow>, Failure> {
        let Self { name, sql } = self;
        let execute = format!("EXECUTE {name}({})", literal(value));
        let prepare_first = format!("PREPARE {name} (text) AS {sql}; {execute}");
        let mut attempt = client.simple_query(&execute);
        for _ in 1..ATTEMPTS_MAX {
            let code = attempt.as_ref().err().and_then(Failure::code);
            let next = match code {
                Some(&SqlState::INVALID_SQL_STATEMENT_NAME) => &prepare_first,
                Some(&SqlState::DUPLICATE_PSTATEMENT) => &execute,
                _ => break,
            };
            attempt = client.simple_query(next);
        }
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        };
        Ok(attempt?.into_iter().find_map(row))
    }
}

/// Quotes a text as a literal that does not depend on the server's setting for backslashes.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use tokio_postgres::NoTls;

    use super::*;
    use proem_core::limit::POSTGRES_ANSWER_TIME_MAX;

    #[test]
    fn a_literal_ends_where_its_text_does() {
        for (text, expected) in
            [("c-1", "E'c-1'"), ("'; --", "E'''; --'"), ("\\", "E'\\\\'"), ("\\'", "E'\\\\'''")]
        {
            assert_eq!(literal(text), expected);
        }
    }

    #[test]
    fn a_name_is_that_of_one_statement() {
        let (one, other) = (Prepared::new("SELECT 1"), Prepared::new("SELECT 2"));
        assert_ne!(one.name, other.name);
        assert!(one.name.len() < 63, "the server would cut it");
    }

    /// Row S7: behind a pooler every call may reach another session, with or without the statement.
    #[test]
    fn a_session_need_not_be_the_one_of_the_call_before() {
        let Some(server) = proem_testkit::PostgresServer::start() else { return };
        let config = server.database("prepared").parse().expect("it is a URL");
        let mut client = Link::new(&config, NoTls, POSTGRES_ANSWER_TIME_MAX).ok().expect("it answers");
        let statement = Prepared::new("SELECT $1 || '!', NULL::text");
        let row_of = |client: &mut Link, text: &str| {
            let row = statement.row(client, text).ok().flatten().expect("there is a row");
            (row.get(0).map(str::to_owned), row.get(1).map(str::to_owned))
        };
        for text in ["a", "it's", "\\", "\\'; DROP TABLE x; --", "🦀\n"] {
            assert_eq!(row_of(&mut client, text), (Some(format!("{text}!")), None));
        }
        client.batch_execute("DEALLOCATE ALL").ok().expect("it answers");
        assert_eq!(row_of(&mut client, "b").0.as_deref(), Some("b!"));
        let nothing = Prepared::new("SELECT 1 WHERE $1 = 'x'");
        assert!(nothing.row(&mut client, "y").ok().flatten().is_none());
        assert!(Prepared::new("SELECT 1 / length($1)").row(&mut client, "").is_err());
    }
}
