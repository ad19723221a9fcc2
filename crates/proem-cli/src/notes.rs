//! Messages on standard error: notes, errors, hints.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use proem_core::note::{Note, Severity};

use crate::terminal::{error_columns, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();

/// Which notes are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those that probably need doing something about.
    Warnings,
    /// Also those that are only good to know.
    All,
}

/// Prints notes, a line each, with their hints below.
pub(crate) fn print_notes(notes: &[Note]) {
    print_wanted(notes, Wanted::All);
}

/// Prints those notes that are wanted.
pub(crate) fn print_wanted(notes: &[Note], wanted: Wanted) {
    for note in notes.iter().filter(|note| wanted == Wanted::All || note.severity > Severity::Info) {
        write(&flow(&shown(note), error_columns(), "  "));
    }
}

/// A note as people read it: a line, and one for the hint where there is something to do.
pub(crate) fn shown(note: &Note) -> String {
    let (word, style) = match note.severity {
        Severity::Info => ("note", DIM),
        Severity::Warning => ("warning", AnsiColor::Yellow.on_default().bold()),
        Severity::Error => ("error", AnsiColor::Red.on_default().bold()),
    };
    let place = note.source.as_ref().map_or_else(String::new, |source| format!(" ({source})"));
    let (message, place) = (visible_line(&note.message), visible_line(&place));
    let hint = note.hint.as_ref().filter(|_| note.severity > Severity::Info);
    let hint = hint.map_or_else(String::new, |hint| format!("{DIM}hint: {}{DIM:#}\n", visible_line(hint)));
    format!("{style}{word}{style:#}: {message}{DIM}{place}{DIM:#}\n{hint}")
}

/// Prints how far the work is.
pub(crate) fn print_status(message: &str) {
    write(&flow(&format!("{message}\n"), error_columns(), "  "));
}

/// Prints what a reader of the output should know.
pub(crate) fn print_note(message: &str) {
    write(&flow(&format!("{DIM}note{DIM:#}: {message}\n"), error_columns(), "  "));
}

/// Prints a doubt about the command line.
pub(crate) fn print_warning(message: &str) {
    let style = AnsiColor::Yellow.on_default().bold();
    write(&flow(&format!("{style}warning{style:#}: {message}\n"), error_columns(), "  "));
}

/// Prints what went wrong.
pub(crate) fn print_error(message: &str) {
    let style = AnsiColor::Red.on_default().bold();
    write(&flow(&format!("{style}error{style:#}: {message}\n"), error_columns(), "  "));
}

/// Prints what to do about it.
pub(crate) fn print_hint(text: &str) {
    write(&flow(&format!("{text}\n"), error_columns(), "  "));
}

/// Writes to standard error. If even that is closed, there is nobody left to tell.
fn write(text: &str) {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}
