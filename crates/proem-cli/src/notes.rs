//! Messages on standard error: notes, errors, hints.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use proem::hooks::HookFailure;
use proem_core::note::{Note, Severity};

use crate::terminal::{error_columns, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();

/// A selection of notes by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoteFilter {
    /// Warnings and errors.
    Warnings,
    /// Informational notes, too.
    All,
}

/// Prints all notes, one line each, followed by its hint.
pub(crate) fn print_notes(notes: &[Note]) {
    print_filtered(notes, NoteFilter::All);
}

/// Prints the notes that pass the filter.
pub(crate) fn print_filtered(notes: &[Note], filter: NoteFilter) {
    for note in notes.iter().filter(|note| filter == NoteFilter::All || note.severity > Severity::Info) {
        write(&flow(&shown(note), error_columns(), "  "));
    }
}

/// Formats a note for people: one line, and one for the hint of a warning or an error.
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

/// Prints a status message.
pub(crate) fn print_status(message: &str) {
    write(&flow(&format!("{message}\n"), error_columns(), "  "));
}

/// Prints a line for programs, which is never wrapped.
pub(crate) fn print_line(line: &str) {
    write(&format!("{line}\n"));
}

/// Prints a text over the current line of a terminal; an empty one clears the line.
pub(crate) fn print_over(text: &str) {
    write(&format!("\r\u{1b}[K{text}"));
}

/// Prints a note about the output.
pub(crate) fn print_note(message: &str) {
    write(&flow(&format!("{DIM}note{DIM:#}: {message}\n"), error_columns(), "  "));
}

/// Prints a warning about the command line.
pub(crate) fn print_warning(message: &str) {
    let style = AnsiColor::Yellow.on_default().bold();
    write(&flow(&format!("{style}warning{style:#}: {message}\n"), error_columns(), "  "));
}

/// Prints why a hook failed. The notes of a stored prompt leave that out, because other clients of the store read them.
pub(crate) fn print_hook_failure(failure: &HookFailure) {
    let (hook, event, why) = (failure.hook(), failure.event().word(), failure.why());
    print_warning(&visible_line(&format!("the hook `{hook}` failed at `{event}`: {why}")));
}

/// Prints an error.
pub(crate) fn print_error(message: &str) {
    let style = AnsiColor::Red.on_default().bold();
    write(&flow(&format!("{style}error{style:#}: {message}\n"), error_columns(), "  "));
}

/// Prints a hint.
pub(crate) fn print_hint(text: &str) {
    write(&flow(&format!("{text}\n"), error_columns(), "  "));
}

/// Writes to standard error. Ignores a closed stream: no other place is left for messages.
fn write(text: &str) {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}
