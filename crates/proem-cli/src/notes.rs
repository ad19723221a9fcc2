//! Messages on standard error: notes, errors, hints.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use proem_core::note::{Note, Severity};

use crate::terminal::visible;

const DIM: Style = Style::new().dimmed();

/// Prints notes, a line each, with their hints below.
pub(crate) fn print_notes(notes: &[Note]) {
    for note in notes {
        let (word, style) = match note.severity {
            Severity::Info => ("note", DIM),
            Severity::Warning => ("warning", AnsiColor::Yellow.on_default().bold()),
            Severity::Error => ("error", AnsiColor::Red.on_default().bold()),
        };
        let place = note.source.as_ref().map_or_else(String::new, |source| format!(" ({source})"));
        line(&format!("{style}{word}{style:#}: {}{DIM}{}{DIM:#}", visible(&note.message), visible(&place)));
        if let Some(hint) = note.hint.as_ref().filter(|_| note.severity > Severity::Info) {
            line(&format!("{DIM}hint: {}{DIM:#}", visible(hint)));
        }
    }
}

/// Prints what went wrong.
pub(crate) fn print_error(message: &str) {
    let style = AnsiColor::Red.on_default().bold();
    line(&format!("{style}error{style:#}: {message}"));
}

/// Prints what to do about it.
pub(crate) fn print_hint(text: &str) {
    line(text);
}

/// Writes a line to standard error. If even that is closed, there is nobody left to tell.
fn line(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}
