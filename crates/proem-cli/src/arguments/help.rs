//! The help of the command as a whole: commands grouped by what they are for.

use std::ffi::OsString;

use anstyle::Style;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};

use super::Arguments;
use crate::table::{Cell, Column, Table};
use crate::terminal::output_columns;

const TITLE: Style = Style::new().bold().underline();
const BOLD: Style = Style::new().bold();

/// The widest that help becomes: longer lines are hard to read.
const COLUMNS_MAX: usize = 100;

/// The commands, by what people want.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Build", &["build", "turn"]),
    ("Understand", &["explain", "why", "diff", "drift", "compat", "vars", "simulate", "evidence"]),
    ("Check", &["check", "skills"]),
    ("Serve", &["serve", "conversation", "store"]),
    ("Manage", &["init", "config", "profile", "trust", "completions", "man", "help"]),
];

/// Words that people try, and the command that does it.
const MEANT: [(&str, &str); 10] = [
    ("lint", "check"),
    ("validate", "check"),
    ("print", "build"),
    ("render", "build"),
    ("show", "explain"),
    ("inspect", "explain"),
    ("blame", "why"),
    ("profiles", "profile"),
    ("completion", "completions"),
    ("server", "serve"),
];

/// Reads the command line.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(arguments).map_err(suggest)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Prints the help to standard output.
pub(crate) fn print_help() -> std::io::Result<()> {
    command().print_help()
}

/// The command with its own page of help.
fn command() -> clap::Command {
    let width = output_columns().unwrap_or(COLUMNS_MAX).min(COLUMNS_MAX);
    Arguments::command().help_template(template(width)).term_width(width)
}

fn template(width: usize) -> String {
    let plain = Arguments::command();
    let about = |name: &str| {
        let known = plain.find_subcommand(name).and_then(clap::Command::get_about);
        known.map_or_else(|| "Print help, also for one command".to_owned(), ToString::to_string)
    };
    let all = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let widest = all.map(|name| name.len()).max().unwrap_or(0);
    let mut text = format!("{{about-with-newline}}\n{TITLE}Usage:{TITLE:#} {{usage}}\n");
    for (title, names) in GROUPS {
        let row = |name: &&str| vec![Cell::new(format!("  {name:<widest$}"), BOLD), Cell::plain(about(name))];
        let table = Table::new([Column::word(""), Column::text("")]).untitled().with(names.iter().map(row));
        text.push_str(&format!("\n{TITLE}{title}:{TITLE:#}\n{}", table.print(Some(width))));
    }
    text + &format!("\n{TITLE}Options:{TITLE:#}\n{{options}}{{after-help}}\n")
}

/// Names the command that a word means which is none.
fn suggest(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((_, meant)) = MEANT.iter().find(|(tried, _)| tried == word)
    {
        let meant = ContextValue::Strings(vec![(*meant).to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, meant);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Arguments::command();
        let mut known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        known.push("help");
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn each_word_that_people_try_leads_to_a_command() {
        for (word, meant) in MEANT {
            let error = parse(["proem".into(), word.into()]).expect_err("it is no command").to_string();
            assert!(error.contains(&format!("a similar subcommand exists: '{meant}'")), "{error}");
        }
    }
}
