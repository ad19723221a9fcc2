//! The commands that print a prompt, and the flags that say which one.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use proem::deliver::ProviderName;
use proem_core::note::Note;

use super::values::{Format, Output, PageFormat, Providers, Suggested};
use crate::notes::{Wanted, print_note, print_wanted};

/// A side of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// What stands before the boundary
    Prefix,
    /// What stands behind it
    Suffix,
}

#[derive(Debug, Args)]
pub(crate) struct Build {
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
    /// Print the text of every carrier, with the source of each line in a margin on the left
    #[arg(long)]
    pub(crate) annotate: bool,
    /// Print only what is cached, or only what belongs to this turn
    #[arg(long, value_enum, conflicts_with = "annotate")]
    pub(crate) part: Option<Part>,
    #[command(flatten)]
    pub(crate) delivery: DeliveryFlags,
    /// Print tokens by section and carrier, what is cached, and what a turn costs
    #[arg(long, conflicts_with_all = ["annotate", "part"])]
    pub(crate) stats: bool,
    #[command(flatten)]
    pub(crate) notes: NoteFlags,
}

// What goes to a provider.
#[derive(Debug, Args)]
pub(crate) struct DeliveryFlags {
    /// Print the parts of the request that this provider takes, as JSON
    #[arg(long = "for", value_name = "PROVIDER", value_parser = Providers, conflicts_with_all = ["annotate", "part"])]
    pub(crate) provider: Option<&'static ProviderName>,
    /// The conversation so far, the newest message last: a JSON list or JSON lines; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) messages: Option<PathBuf>,
    /// What the user says now
    #[arg(long, visible_alias = "prompt", value_name = "TEXT")]
    pub(crate) prompt_text: Option<String>,
    /// How long the provider keeps the frozen part [default: 5m]
    #[arg(long, value_enum)]
    pub(crate) ttl: Option<Ttl>,
    /// Name of a content that Gemini keeps, with the system prompt and the tools in it
    #[arg(long, value_name = "NAME")]
    pub(crate) cached_content: Option<String>,
}

/// How long a provider keeps the frozen part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ttl {
    /// Five minutes after its last use
    #[value(name = "5m")]
    Short,
    /// An hour
    #[value(name = "1h")]
    Hour,
}

// A text, a file, a byte or a line of a prompt.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Text of the prompt, or the path of a file: where the text comes from, or what became of the file
    #[arg(value_name = "TEXT|PATH", value_hint = ValueHint::AnyPath, required_unless_present_any = ["byte", "line"], conflicts_with_all = ["byte", "line"])]
    pub(crate) text: Option<String>,
    /// Take the argument as text, also where there is a file of that name
    #[arg(long = "text", requires = "text")]
    pub(crate) is_text: bool,
    /// Byte of the carrier, from 0
    #[arg(long, value_name = "N", conflicts_with = "line")]
    pub(crate) byte: Option<usize>,
    /// Line of the carrier, from 1
    #[arg(long, value_name = "N")]
    pub(crate) line: Option<usize>,
    /// Carrier that `--byte` and `--line` count in
    #[arg(long, value_name = "CARRIER", default_value = "system", value_parser = ["system", "developer", "first_user", "turn"])]
    pub(crate) carrier: String,
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    #[command(flatten)]
    pub(crate) output: Output<PageFormat>,
    /// Print everything: each run of bytes with its source, every file that was looked for, and all notes
    #[arg(long, conflicts_with = "files")]
    pub(crate) all: bool,
    /// Print only the files that were looked at
    #[arg(long)]
    pub(crate) files: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TurnCommand {
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    /// What the user says; without it the turn goes on by itself
    #[arg(long, visible_alias = "prompt", value_name = "TEXT")]
    pub(crate) prompt_text: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
    #[command(flatten)]
    pub(crate) notes: NoteFlags,
}

#[derive(Debug, Args)]
pub(crate) struct Vars {
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
}

// Which notes are printed to standard error: warnings, unless said otherwise.
#[derive(Debug, Args)]
pub(crate) struct NoteFlags {
    /// Do not print notes
    #[arg(long, short)]
    quiet: bool,
    /// Print every note, also what is only good to know
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
}

impl NoteFlags {
    /// Prints the notes that are wanted.
    pub(crate) fn print(&self, notes: &[Note]) {
        if !self.quiet {
            print_wanted(notes, if self.verbose { Wanted::All } else { Wanted::Warnings });
        }
    }

    /// Prints a note about the output itself, which only `--quiet` silences.
    pub(crate) fn print_always(&self, note: Option<&str>) {
        if let Some(note) = note.filter(|_| !self.quiet) {
            print_note(note);
        }
    }
}

// Where a command looks.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Working directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<String>,
}

// Which prompt: the request, and what only a prompt has.
#[derive(Debug, Args)]
pub(crate) struct PromptFlags {
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    /// Profile: the recipe of the prompt
    #[arg(long, short, value_name = "NAME", value_parser = Suggested::profiles(), hide_possible_values = true)]
    pub(crate) profile: Option<String>,
    /// Template file for the base, in the profile's syntax; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) template: Option<PathBuf>,
    /// Asset for the base, for example `$user/greet`
    #[arg(long, value_name = "REFERENCE", conflicts_with = "template")]
    pub(crate) instruction: Option<String>,
    /// Text that replaces the base, or a file that holds it
    #[arg(long, value_name = "TEXT|FILE", conflicts_with_all = ["template", "instruction"])]
    pub(crate) system: Option<String>,
    /// Text to add behind the base, or a file that holds it; may be given several times
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) append: Vec<String>,
    /// Active tools by name, separated by commas; `""` for none
    #[arg(long, value_name = "NAMES")]
    pub(crate) tools: Option<String>,
    /// Pack that replaces wording; later ones win
    #[arg(long = "pack", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) packs: Vec<String>,
}

// The request, field by field. A flag overrides the request file.
#[derive(Debug, Args)]
pub(crate) struct RequestFlags {
    /// Working directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<String>,
    /// Model of the conversation
    #[arg(long, value_name = "MODEL", value_parser = Suggested::models(), hide_possible_values = true)]
    pub(crate) model: Option<String>,
    /// Give or override a variable, for example `git:branch=main`
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) variables: Vec<(String, String)>,
    /// Say that a variable is absent
    #[arg(long = "absent", value_name = "KEY")]
    pub(crate) absent: Vec<String>,
    /// The moment of the build, in RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<String>,
    /// Request file in JSON; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) request: Option<PathBuf>,
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => {
            Err("write KEY=VALUE, for example `git:branch=main`; to make one absent use `--absent KEY`"
                .into())
        }
    }
}
