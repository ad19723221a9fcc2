//! The command line: its parser, its help, and the flags that several commands share.

mod help;
mod prompt;
pub(crate) mod request;
pub(crate) mod store;
mod values;

use clap::Parser;

use crate::commands::Command;

pub(crate) use help::{parse, print_help};
pub(crate) use prompt::{NoteFlags, Place, PromptFlags, RequestFlags};
pub(crate) use store::{ServerFlags, StoreFlags};
pub(crate) use values::{Format, NameParser, Output, Providers};

const AFTER_HELP: &str = "\
Examples:
  proem init                  Write a first configuration and template
  proem build                 Print the prompt of this directory
  proem explain               Show where it comes from, and what it costs
  proem why 'Run the tests'   Find the source of a text
  proem check --all           Check the instruction files of every agent

Exit codes:
  0  success
  1  a finding, a difference, a cache miss, or no answer to `why`
  2  invalid command line, request, profile or configuration
  3  valid input, but the operation failed";

/// Build the system prompt of an LLM agent, and know where every byte came from.
#[derive(Debug, Parser)]
#[command(name = "proem", version, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}
