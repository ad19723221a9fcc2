//! Compact JSON in the bytes that `serde_json` writes, for answers that are long: it looks at texts byte by byte, and most
//! of an explanation is text of which nothing need be escaped.

#[cfg(test)]
mod tests;
mod text;
mod writer;

use serde::Serialize;

use writer::Writer;

pub use text::write_text;

/// A value as compact JSON.
///
/// # Errors
///
/// A value that JSON has no form for, such as a map whose keys are no texts.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut writer = Writer::default();
    value.serialize(&mut writer)?;
    Ok(writer.into_bytes())
}
