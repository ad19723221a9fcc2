//! The commands, grouped as in the help: one module for each command, with its arguments.

mod lint;
mod manage;
mod prompt;
mod server;
mod understand;

use lint::{check, skills};
use manage::{config, init, pages, profile, trust};
use prompt::{build, turn};
use server::{conversation, serve, store};
use understand::{compat, diff, drift, evidence, explain, simulate, vars, why};

use crate::arguments::Command;
use crate::failure::Failure;

/// Runs a command.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Build(arguments) => build::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
        Command::Drift(arguments) => drift::run(arguments),
        Command::Why(arguments) => why::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Evidence(arguments) => evidence::run(arguments),
        Command::Compat(arguments) => compat::run(arguments),
        Command::Turn(arguments) => turn::run(arguments),
        Command::Simulate(arguments) => simulate::run(arguments),
        Command::Skills(group) => skills::run(&group.command),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Conversation(group) => conversation::run(&group.command),
        Command::Store(group) => store::run(&group.command),
        Command::Vars(arguments) => vars::run(arguments),
        Command::Profile(group) => profile::run(&group.command),
        Command::Config(arguments) => config::run(arguments),
        Command::Trust(group) => trust::run(&group.command),
        Command::Init(arguments) => init::run(arguments),
        Command::Completions { shell } => pages::completions(*shell),
        Command::Man { dir } => pages::manual(dir.as_deref()),
    }
}
