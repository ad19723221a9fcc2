//! Values of columns, for code that both databases share.

use serde::Serialize;

/// A value as it is written to a column.
///
/// Its JSON is part of the seals of stored rows, and must not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ColumnValue<'v> {
    Text(&'v str),
    OptionalText(Option<&'v str>),
    Integer(i64),
    OptionalInteger(Option<i64>),
    Flag(bool),
}

/// Reads the columns of a row by their position.
pub trait ColumnReader {
    /// The error of a column that is missing or has another type.
    type Error;

    /// Reads a text.
    fn text(&self, column: usize) -> Result<String, Self::Error>;

    /// Reads a text that may be NULL.
    fn optional_text(&self, column: usize) -> Result<Option<String>, Self::Error>;

    /// Reads an integer.
    fn integer(&self, column: usize) -> Result<i64, Self::Error>;

    /// Reads an integer that may be NULL.
    fn optional_integer(&self, column: usize) -> Result<Option<i64>, Self::Error>;

    /// Reads a truth value.
    fn flag(&self, column: usize) -> Result<bool, Self::Error>;
}

/// Converts a number to the type of databases; one that is too large becomes the largest.
#[must_use]
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number from the type of databases; a negative one becomes 0.
#[must_use]
pub fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Converts a number of rows to the type of databases.
#[must_use]
pub fn row_limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
