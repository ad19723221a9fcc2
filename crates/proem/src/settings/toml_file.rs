//! Parses TOML files of settings, with the wrong line in the error.

use serde::de::DeserializeOwned;

use proem_core::text::Places;

use crate::error::{Error, ErrorCause, Excerpt, FileRole};

/// Parses a settings file; the error names the line.
pub(crate) fn parse_toml<T: DeserializeOwned>(text: &str, role: FileRole, path: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| {
        let place = error.span().map(|span| Places::new(text).at(span.start));
        let line = place.and_then(|place| text.lines().nth(place.line - 1));
        let excerpt = place.zip(line).map(|(place, line)| Box::new(Excerpt { place, line: line.to_owned() }));
        let at =
            place.map_or_else(String::new, |place| format!("line {}, column {}: ", place.line, place.column));
        let message = format!("{at}{}", error.message());
        Error::Config {
            role,
            path: path.to_owned(),
            message,
            hint: None,
            excerpt,
            cause: ErrorCause::new(error),
        }
    })
}
