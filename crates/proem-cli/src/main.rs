//! The `proem` command.

mod annotated;
mod arguments;
mod colour;
mod commands;
mod failure;
mod input;
mod label;
mod notes;
mod remote;
mod table;
mod terminal;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use arguments::Arguments;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return unparsed(&error),
    };
    match commands::run(&arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints help, the version, or the reason for which the command line cannot be parsed, as clap itself would.
fn unparsed(error: &clap::Error) -> ExitCode {
    let rendered = error.render();
    let shown = failure::without_credentials(&rendered.ansi().to_string());
    // A reader that is gone cannot be told.
    let _ = if error.use_stderr() {
        anstream::stderr().write_all(shown.as_bytes())
    } else {
        anstream::stdout().write_all(shown.as_bytes())
    };
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}
