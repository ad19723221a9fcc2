//! The commands, grouped as in the help: one module for each command, with its arguments.

mod lint;
mod manage;
mod prompt;
mod server;
mod understand;

use clap::Subcommand;
use lint::{check, skills};
use manage::{config, init, pages, profile, trust};
use prompt::{build, bundle, turn};
use server::{conversation, gateway, run as run_agent, serve, store, watch};
use understand::{compat, diff, drift, evidence, explain, report, simulate, statusline, vars, why};

use crate::failure::Failure;

/// A command with its arguments, which hold its help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Build(build::BuildArguments),
    Turn(turn::TurnArguments),
    Bundle(bundle::BundleArguments),
    Explain(explain::ExplainArguments),
    Why(why::WhyArguments),
    Diff(diff::DiffArguments),
    Drift(drift::DriftArguments),
    Compat(compat::CompatArguments),
    Vars(vars::VarsArguments),
    Simulate(simulate::SimulateArguments),
    Evidence(evidence::EvidenceArguments),
    Report(report::ReportArguments),
    Statusline(statusline::StatuslineArguments),
    Run(run_agent::RunArguments),
    Check(check::CheckArguments),
    #[command(subcommand)]
    Skills(skills::SkillsCommand),
    Serve(serve::ServeArguments),
    Gateway(gateway::GatewayArguments),
    Watch(watch::WatchArguments),
    #[command(subcommand)]
    Conversation(conversation::ConversationCommand),
    #[command(subcommand)]
    Store(store::StoreCommand),
    Init(init::InitArguments),
    Config(config::ConfigArguments),
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    #[command(subcommand)]
    Trust(trust::TrustCommand),
    Completions(pages::CompletionsArguments),
    Man(pages::ManArguments),
}

/// Runs a command.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Build(arguments) => build::run(arguments),
        Command::Turn(arguments) => turn::run(arguments),
        Command::Bundle(arguments) => bundle::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Why(arguments) => why::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
        Command::Drift(arguments) => drift::run(arguments),
        Command::Compat(arguments) => compat::run(arguments),
        Command::Vars(arguments) => vars::run(arguments),
        Command::Simulate(arguments) => simulate::run(arguments),
        Command::Evidence(arguments) => evidence::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Statusline(arguments) => statusline::run(arguments),
        Command::Run(arguments) => run_agent::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Skills(command) => skills::run(command),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Gateway(arguments) => gateway::run(arguments),
        Command::Watch(arguments) => watch::run(arguments),
        Command::Conversation(command) => conversation::run(command),
        Command::Store(command) => store::run(command),
        Command::Init(arguments) => init::run(arguments),
        Command::Config(arguments) => config::run(arguments),
        Command::Profile(command) => profile::run(command),
        Command::Trust(command) => trust::run(command),
        Command::Completions(arguments) => pages::completions(arguments),
        Command::Man(arguments) => pages::manual(arguments),
    }
}
