//! JSON in the bytes that `serde_json` writes, for answers that are long: it looks at texts byte by byte, and most of an
//! explanation is text of which nothing need be escaped.

#[cfg(test)]
mod tests;
mod text;
mod writer;

use std::io::{self, Write};

use serde::Serialize;

use writer::{Compact, Lines, Writer};

pub use text::write_text;

/// Serializes a value as compact JSON.
///
/// # Errors
///
/// Fails for a value that JSON cannot express, such as a map whose keys are not strings.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut writer = Writer::new(Compact);
    value.serialize(&mut writer)?;
    Ok(writer.into_bytes())
}

/// Prints a value as JSON for people: every part on a line of its own, indented by two spaces per level, with a line
/// break at the end. It is streamed to `sink`, so that only a piece of it is in memory.
///
/// # Errors
///
/// Fails with the error of `sink`, and as [`to_vec`]. Pieces that were written before stay written.
pub fn print<T: Serialize + ?Sized>(sink: &mut dyn Write, value: &T) -> io::Result<()> {
    Writer::new(Lines::new(sink)).print(value)
}
