//! The `proem` command.

mod annotated;
mod arguments;
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

use std::process::ExitCode;

use failure::Failure;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    // Without a command, the question is which ones there are.
    let run = if words.len() <= 1 {
        arguments::print_help().map_err(Failure::Output)
    } else {
        match arguments::parse(&mut words) {
            Ok(arguments) => commands::run(&arguments.command),
            Err(error) => error.exit(),
        }
    };
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
