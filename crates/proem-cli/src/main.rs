//! The `proem` command.

mod annotated;
mod arguments;
mod colour;
mod commands;
mod failure;
mod fold;
mod input;
mod label;
mod notes;
mod remote;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match commands::run(&arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
