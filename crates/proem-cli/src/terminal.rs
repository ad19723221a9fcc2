//! The terminal: its width, and output that cannot control it.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;

use anstream::{AutoStream, ColorChoice};
use proem_core::text_safety::escape::escape_with;

use crate::failure::Failure;
use crate::wrap::parse_columns;

/// Spells out hidden and control characters, except line breaks and tabs.
///
/// A file must not be able to move the cursor, change the title or hide text.
pub(crate) fn visible(text: &str) -> String {
    escape_with(text, |character| format!("<U+{:04X}>", u32::from(character))).into_owned()
}

/// Spells out line breaks and tabs too, for text on one line, such as a path.
pub(crate) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "<U+000A>").replace('\t', "<U+0009>")
}

/// The width of a terminal that does not report one.
const COLUMNS_USUAL: usize = 80;

/// Returns the width of standard output, from `COLUMNS` or the terminal. A pipe or a file has none: output for programs is
/// neither wrapped nor shortened.
pub(crate) fn output_columns() -> Option<usize> {
    columns(&io::stdout())
}

/// Returns the width of standard error, in the same way.
pub(crate) fn error_columns() -> Option<usize> {
    columns(&io::stderr())
}

fn columns(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let variable = std::env::var("COLUMNS").ok();
    parse_columns(variable.as_deref()).or_else(|| {
        let size = || rustix::termios::tcgetwinsize(stream.as_fd()).ok().map(|size| usize::from(size.ws_col));
        let detected = || size().filter(|columns| *columns > 0).unwrap_or(COLUMNS_USUAL);
        stream.is_terminal().then(detected)
    })
}

/// The reader of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A person at a terminal, or at the end of a pipe for which colours are forced.
    Person,
    /// A pipe or a file, whose bytes must not be changed.
    Program,
}

impl Reader {
    pub(crate) fn from_stdout() -> Self {
        let output = io::stdout();
        let is_coloured = AutoStream::choice(&output) != ColorChoice::Never;
        if is_coloured || output.is_terminal() { Self::Person } else { Self::Program }
    }
}

/// Prints text of files: unchanged into pipes and files, with control characters spelled out on a terminal.
pub(crate) fn print_raw(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    let written = if output.is_terminal() {
        output.write_all(visible(text).as_bytes())
    } else {
        output.write_all(text.as_bytes())
    };
    written.and_then(|()| output.flush()).map_err(Failure::Output)
}

/// Prints text of proem itself, with colours if the terminal supports them.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut output = anstream::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(Failure::Output)
}

/// Prints a value as indented JSON. On a terminal, control characters are escaped, which leaves the value the same.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let stdout = io::stdout().lock();
    let is_terminal = stdout.is_terminal();
    let mut output = BufWriter::new(stdout);
    let printed = if is_terminal {
        let json = serde_json::to_string_pretty(value).map_err(|error| Failure::Output(error.into()))?;
        output.write_all(harmless_json(&json).as_bytes())
    } else {
        serde_json::to_writer_pretty(&mut output, value).map_err(io::Error::from)
    };
    printed.and_then(|()| output.write_all(b"\n")).and_then(|()| output.flush()).map_err(Failure::Output)
}

/// Escapes control characters in JSON, where they occur in strings only.
fn harmless_json(text: &str) -> String {
    escape_with(text, escaped).into_owned()
}

/// Escapes a character for JSON, as a surrogate pair if necessary.
fn escaped(character: char) -> String {
    let mut text = String::new();
    for half in character.encode_utf16(&mut [0; 2]) {
        text.push_str(&format!("\\u{half:04x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidi_characters_become_visible() {
        assert_eq!(
            visible("a\tb\n\u{1b}[2J\u{9b}x\r\u{202e}é"),
            "a\tb\n<U+001B>[2J<U+009B>x<U+000D><U+202E>é"
        );
        assert_eq!(visible("a\u{200b}b\u{e0041}👩‍🚀"), "a<U+200B>b<U+E0041>👩‍🚀");
        assert_eq!(visible_line("a\tb\n\u{1b}"), "a<U+0009>b<U+000A><U+001B>");
    }

    #[test]
    fn json_for_a_terminal_says_the_same_and_does_nothing() {
        let value = serde_json::json!({"a\u{9b}": "b\u{7f}\u{202e}\u{e0041}\u{200b}\u{1b}[2J\n\té"});
        let text = serde_json::to_string_pretty(&value).expect("it is JSON");
        let shown = harmless_json(&text);
        assert!(visible(&text) != text && visible(&shown) == shown, "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("it is JSON"), value);
    }
}
