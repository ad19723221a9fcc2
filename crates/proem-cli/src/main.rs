//! The `proem` command.

mod annotated;
mod arguments;
mod call_line;
mod colour;
mod commands;
mod failure;
mod input;
mod label;
mod notes;
mod paths;
mod remote;
mod table;
mod terminal;
mod wrap;

use std::io::Write;
use std::process::ExitCode;

use failure::Failure;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let run = if words.len() <= 1 {
        arguments::print_help().map_err(Failure::Output)
    } else {
        match arguments::parse(&mut words) {
            Ok(arguments) => commands::run(&arguments.command),
            Err(error) => return print_clap(&error),
        }
    };
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints help, the version, or a parse error, as clap itself would, but without credentials.
fn print_clap(error: &clap::Error) -> ExitCode {
    let rendered = error.render();
    let shown = failure::without_credentials(&rendered.ansi().to_string());
    // A closed stream leaves no place to report the error.
    let _ = if error.use_stderr() {
        anstream::stderr().write_all(shown.as_bytes())
    } else {
        anstream::stdout().write_all(shown.as_bytes())
    };
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}
