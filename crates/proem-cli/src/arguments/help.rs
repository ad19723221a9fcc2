//! Parses the command line, and prints the help of the whole program with its commands in groups.

use std::ffi::OsString;

use anstyle::Style;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};

use super::Arguments;
use crate::table::{Cell, Column, Table};
use crate::terminal::output_columns;

const TITLE: Style = Style::new().bold().underline();
const BOLD: Style = Style::new().bold();

/// The maximum width of help.
const COLUMNS_MAX: usize = 80;

/// The commands, grouped by purpose. The modules of `commands` have the same groups.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Build", &["build", "turn", "bundle"]),
    (
        "Understand",
        &[
            "explain",
            "why",
            "diff",
            "drift",
            "compat",
            "vars",
            "simulate",
            "evidence",
            "report",
            "statusline",
            "run",
            "watch",
        ],
    ),
    ("Check", &["check", "skills"]),
    ("Serve", &["serve", "gateway", "conversation", "store"]),
    ("Manage", &["init", "config", "profile", "trust", "completions", "man", "help"]),
];

/// Names that other tools use, and the command for the same purpose.
const SYNONYMS: [(&str, &str); 11] = [
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
    ("proxy", "gateway"),
];

/// Parses the command line.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(arguments).map_err(suggest)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Prints the help to standard output.
pub(crate) fn print_help() -> std::io::Result<()> {
    command().print_help()
}

/// Describes the command line, with the grouped help.
fn command() -> clap::Command {
    let width = output_columns().unwrap_or(COLUMNS_MAX).min(COLUMNS_MAX);
    let plain = Arguments::command();
    let template = template(&plain, width);
    plain.help_template(template).term_width(width)
}

fn template(plain: &clap::Command, width: usize) -> String {
    let about = |name: &str| {
        let about = plain.find_subcommand(name).and_then(clap::Command::get_about);
        about.map_or_else(|| "Print help for proem or for one command".to_owned(), ToString::to_string)
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

/// Suggests the command for a synonym.
fn suggest(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((_, name)) = SYNONYMS.iter().find(|(synonym, _)| synonym == word)
    {
        let suggestion = ContextValue::Strings(vec![(*name).to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, suggestion);
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
    fn every_synonym_suggests_a_command() {
        for (synonym, name) in SYNONYMS {
            let error = parse(["proem".into(), synonym.into()]).expect_err("not a command").to_string();
            assert!(error.contains(&format!("a similar subcommand exists: '{name}'")), "{error}");
        }
    }

    #[test]
    fn every_help_text_fits_80_columns() {
        let mut command = Arguments::command().term_width(COLUMNS_MAX);
        command.build();
        check_help(&mut command);
    }

    fn check_help(command: &mut clap::Command) {
        let name = command.get_name().to_owned();
        assert!(command.get_about().is_some(), "{name} has no help");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{name}: {} has no help", argument.get_id());
        }
        for help in [command.render_help(), command.render_long_help()] {
            for line in help.to_string().lines() {
                assert!(line.chars().count() <= COLUMNS_MAX, "{name}: {line}");
            }
        }
        command.get_subcommands_mut().for_each(check_help);
    }
}
