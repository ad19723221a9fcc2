//! Reads the files and the standard input that the command line names, up to a size limit.

use std::io::{self, Read};
use std::path::Path;

use crate::failure::Failure;

/// Reads a UTF-8 file named by the user, or standard input for `-`.
///
/// The file may be a pipe, so only size and encoding are checked.
pub(crate) fn read(path: &Path, what: &'static str, bytes_max: usize) -> Result<String, Failure> {
    let refuse = |why: String| Failure::Input { what, path: path.display().to_string(), why };
    let limit = bytes_max as u64 + 1;
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        proem::open_named(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.map_err(|error| refuse(reason(&error)))?;
    if bytes.len() > bytes_max {
        return Err(refuse(format!("it is larger than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        refuse(format!("it is not UTF-8: bad byte at offset {}", error.utf8_error().valid_up_to()))
    })
}

/// Returns the message of a system error in lower case, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
