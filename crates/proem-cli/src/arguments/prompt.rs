//! Flags shared by commands that build a prompt.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use proem_core::note::Note;

use super::values::NameParser;
use crate::notes::{NoteFilter, print_filtered, print_note};

/// Flags that choose the notes on standard error: warnings by default.
#[derive(Debug, Args)]
pub(crate) struct NoteFlags {
    /// Print no notes
    #[arg(long, short)]
    quiet: bool,
    /// Print all notes, including informational ones
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
}

impl NoteFlags {
    /// Prints the notes that the flags choose.
    pub(crate) fn print(&self, notes: &[Note]) {
        if !self.quiet {
            print_filtered(notes, if self.verbose { NoteFilter::All } else { NoteFilter::Warnings });
        }
    }

    /// Prints a note about the output itself, which only `--quiet` silences.
    pub(crate) fn print_always(&self, note: Option<&str>) {
        if let Some(note) = note.filter(|_| !self.quiet) {
            print_note(note);
        }
    }
}

/// Flags for the directory that a command works in.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Working directory [default: the current directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<String>,
}

/// Flags of a prompt: those of a request, and those of its base, tools and wording.
#[derive(Debug, Args)]
pub(crate) struct PromptFlags {
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    /// Profile that defines the prompt
    #[arg(long, short, value_name = "NAME", value_parser = NameParser::profiles(), hide_possible_values = true)]
    pub(crate) profile: Option<String>,
    /// Template file for the base, in the syntax of the profile; `-` reads standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) template: Option<PathBuf>,
    /// Asset for the base, for example `$user/greet`
    #[arg(long, value_name = "REFERENCE", conflicts_with = "template")]
    pub(crate) instruction: Option<String>,
    /// Text that replaces the base, or a file with that text
    #[arg(long, value_name = "TEXT|FILE", conflicts_with_all = ["template", "instruction"])]
    pub(crate) system: Option<String>,
    /// Text to add after the base, or a file with that text (repeatable)
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) append: Vec<String>,
    /// Names of the active tools, separated by commas; `""` for none
    #[arg(long, value_name = "NAMES")]
    pub(crate) tools: Option<String>,
    /// Pack that replaces wording (repeatable); later packs win
    #[arg(long = "pack", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) packs: Vec<String>,
}

/// Flags for the fields of a request. A flag overrides the request file.
#[derive(Debug, Args)]
pub(crate) struct RequestFlags {
    /// Working directory [default: the current directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<String>,
    /// Model of the conversation
    #[arg(long, value_name = "MODEL", value_parser = NameParser::models(), hide_possible_values = true)]
    pub(crate) model: Option<String>,
    /// Set a variable, for example `git:branch=main` (repeatable)
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) variables: Vec<(String, String)>,
    /// Make a variable absent (repeatable)
    #[arg(long = "absent", value_name = "KEY")]
    pub(crate) absent: Vec<String>,
    /// Time of the build, in RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<String>,
    /// Request file in JSON; `-` reads standard input
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
