//! The commands that compare, check and judge prompts.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::keep::{ServerFlags, StoreFlags};
use super::prompt::{PromptFlags, RequestFlags};
use super::values::{CheckFormat, Format, Output, Suggested};

// A prompt, and what is wrong with it.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    /// Also count what is only good to know, and call everything an error: for CI
    #[arg(long)]
    pub(crate) strict: bool,
    /// Mend files of the project where that is safe, then say what is left
    #[arg(long)]
    pub(crate) fix: bool,
    /// Also build under another clock, zone, locale, order of folders, home and environment, and name what moved
    #[arg(long)]
    pub(crate) determinism: bool,
    /// Also look as these agents would, separated by commas; `all` for every one
    #[arg(long = "as", value_name = "NAMES", value_parser = Suggested::agents_or_all(), hide_possible_values = true)]
    pub(crate) agents: Option<String>,
    /// Look at every instruction file and skill of the repository instead of one prompt: in all folders, for all agents
    #[arg(
        long,
        conflicts_with_all = ["profile", "template", "instruction", "system", "append", "tools", "packs", "model", "determinism"]
    )]
    pub(crate) all: bool,
    /// List the codes, and what each is about
    #[arg(long, exclusive = true)]
    pub(crate) codes: bool,
    #[command(flatten)]
    pub(crate) output: Output<CheckFormat>,
}

// Two prompts.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// First prompt: `now`, a file with a request or with a saved build (`build --format json`), `CONVERSATION@EPOCH`,
    /// `CONVERSATION`, or a revision of git. `git:REVISION` and `conversation:NAME` mean one of them alone
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// Second prompt, named in the same way
    #[arg(value_name = "B", default_value = "now")]
    pub(crate) b: String,
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    #[command(flatten)]
    pub(crate) layout: LayoutFlags,
    /// How much text to show around differences; `0` leaves the text out
    #[arg(long, value_name = "LINES", default_value_t = 3)]
    pub(crate) context: usize,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
}

// Whose cache it is.
#[derive(Debug, Args)]
pub(crate) struct LayoutFlags {
    /// Provider whose cache counts [default: a cache that keeps every beginning]
    #[arg(long = "for", value_name = "PROVIDER", value_parser = Suggested::caches())]
    pub(crate) provider: Option<String>,
}

// A conversation against the present.
#[derive(Debug, Args)]
pub(crate) struct Drift {
    /// Conversation
    #[arg(value_name = "CONVERSATION")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    /// Model whose prices count [default: the conversation's]
    #[arg(long, value_name = "MODEL", conflicts_with = "url", value_parser = Suggested::models(), hide_possible_values = true)]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) layout: LayoutFlags,
    /// How much text to show around differences; `0` leaves the text out
    #[arg(long, value_name = "LINES", default_value_t = 3)]
    pub(crate) context: usize,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
}

// What agents would see.
#[derive(Debug, Args)]
pub(crate) struct Compat {
    /// File: which agents read it, and which never will
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "diff")]
    pub(crate) file: Option<PathBuf>,
    /// Agents, separated by commas [default: all that there are profiles of]
    #[arg(long = "as", value_name = "NAMES", conflicts_with = "diff", value_parser = Suggested::agents(), hide_possible_values = true)]
    pub(crate) agents: Vec<String>,
    /// Two agents whose texts are compared, file by file
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_parser = Suggested::agents(), hide_possible_values = true)]
    pub(crate) diff: Option<Vec<String>>,
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
}

// What providers said about calls.
#[derive(Debug, Args)]
pub(crate) struct Evidence {
    /// Calls, one on each line: the provider's response, or `{"response": …, "at": …, "request": …}`; `-` is
    /// standard input [default: the calls that a server was told about]
    #[arg(value_name = "CALLS.jsonl", value_hint = ValueHint::FilePath, conflicts_with = "url")]
    pub(crate) file: Option<PathBuf>,
    /// Conversation of the lines that name none
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) conversation: Option<String>,
    /// Provider of the lines that name none [default: by the shape of the numbers]
    #[arg(long, visible_alias = "for", value_name = "PROVIDER", value_parser = Suggested::caches())]
    pub(crate) provider: Option<String>,
    /// Model of the lines that name none
    #[arg(long, value_name = "MODEL", value_parser = Suggested::models(), hide_possible_values = true)]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// Requests, one payload on each line, in the order in which they are sent; `-` is standard input
    #[arg(value_name = "TURNS.jsonl", value_hint = ValueHint::FilePath)]
    pub(crate) turns: PathBuf,
    /// Provider whose cache is simulated
    #[arg(long, visible_alias = "for", value_name = "PROVIDER", value_parser = Suggested::caches())]
    pub(crate) provider: String,
    /// Model, for its prices, its minimum and its vocabulary
    #[arg(long, value_name = "MODEL", value_parser = Suggested::models(), hide_possible_values = true)]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Skills {
    /// List every skill that was found, and why one is not in the prompt
    List(SkillsCommand),
    /// Print what is wrong with skills; exit code 1 if there is anything
    Check(SkillsCommand),
}

#[derive(Debug, Args)]
pub(crate) struct SkillsCommand {
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    /// Profile that says where skills lie
    #[arg(long, short, value_name = "NAME", value_parser = Suggested::profiles(), hide_possible_values = true)]
    pub(crate) profile: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
}
