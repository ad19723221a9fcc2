//! `proem skills`: lists skills, or checks them for problems.

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use proem::build_shape::NoteShape;
use proem::{Caller, SkillReport};
use proem_core::file_outcome::Outcome;
use proem_core::note::Note;
use serde_json::json;

use crate::arguments::request::request;
use crate::arguments::{Format, NameParser, Output, RequestFlags};
use crate::failure::Failure;
use crate::notes::{print_notes, shown};
use crate::paths::Paths;
use crate::table::{Cell, Column, Table, one_line, shortened};
use crate::terminal::{output_columns, print, print_json, visible, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();
const DESCRIPTION_CHARACTERS_MAX: usize = 100;

/// List skills, or check them for problems
#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List all skills found, and why a skill is not in the prompt
    List(SkillsArguments),
    /// Check skills for problems; exits with code 1 if there are any
    Check(SkillsArguments),
}

/// Arguments of every command about skills.
#[derive(Debug, Args)]
pub(crate) struct SkillsArguments {
    #[command(flatten)]
    request: RequestFlags,
    /// Profile that defines where skills are
    #[arg(long, short, value_name = "NAME", value_parser = NameParser::profiles(), hide_possible_values = true)]
    profile: Option<String>,
    #[command(flatten)]
    output: Output<Format>,
}

pub(crate) fn run(command: &SkillsCommand) -> Result<(), Failure> {
    match command {
        SkillsCommand::List(arguments) => list(arguments),
        SkillsCommand::Check(arguments) => check(arguments),
    }
}

fn found(arguments: &SkillsArguments) -> Result<(Vec<SkillReport>, Vec<Note>), Failure> {
    let mut request = request(&arguments.request)?;
    if arguments.profile.is_some() {
        request.profile.clone_from(&arguments.profile);
    }
    Ok(proem::skills(&request, Caller::User)?)
}

fn list(arguments: &SkillsArguments) -> Result<(), Failure> {
    let (skills, notes) = found(arguments)?;
    if arguments.output.format() == Format::Json {
        return print_json(&shapes(&skills, &notes));
    }
    print_notes(&notes);
    if skills.is_empty() {
        let text =
            "No skill was found.\n`proem explain --files` lists the directories that were looked at.\n";
        return print(&flow(text, output_columns(), ""));
    }
    let paths = Paths::at(arguments.request.cwd.as_deref())?;
    let columns = [
        Column::word("outcome"),
        Column::text("name"),
        Column::text("description"),
        Column::text("file"),
        Column::text("why"),
    ];
    let width = output_columns();
    let rows = skills.iter().map(|skill| row(skill, &paths, width));
    print(&Table::new(columns).with(rows).print(width))
}

fn row(skill: &SkillReport, paths: &Paths, width: Option<usize>) -> Vec<Cell> {
    let (word, style) = match skill.outcome {
        Outcome::Used => ("listed", AnsiColor::Green.on_default()),
        other => (other.word(), AnsiColor::Yellow.on_default()),
    };
    let text = |text: &Option<String>| visible(text.as_deref().unwrap_or("-"));
    let most = shortened(DESCRIPTION_CHARACTERS_MAX, width);
    vec![
        Cell::new(word, style),
        Cell::plain(one_line(&text(&skill.name), most)),
        Cell::plain(one_line(&text(&skill.description), most)),
        Cell::plain(paths.shown(&skill.location)),
        Cell::new(visible_line(skill.why.as_deref().unwrap_or_default()), DIM),
    ]
}

fn check(arguments: &SkillsArguments) -> Result<(), Failure> {
    let (skills, notes) = found(arguments)?;
    let problems: Vec<&Note> = notes.iter().chain(skills.iter().flat_map(|skill| &skill.problems)).collect();
    match arguments.output.format() {
        Format::Json => print_json(&shapes(&skills, &notes))?,
        Format::Text => {
            let listed = skills.iter().filter(|skill| skill.outcome == Outcome::Used).count();
            let summary = format!(
                "{} found, {listed} listed, {} to look at\n",
                counted(skills.iter().filter(|skill| is_skill(skill)).count(), "skill"),
                counted(problems.len(), "problem")
            );
            let page = problems.iter().map(|note| shown(note)).collect::<String>() + &summary;
            print(&flow(&page, output_columns(), "  "))?;
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::Findings) }
}

/// Returns `true` if a file was read as a skill, used or not.
fn is_skill(report: &SkillReport) -> bool {
    report.name.is_some() || report.outcome == Outcome::Malformed
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn shapes(skills: &[SkillReport], notes: &[Note]) -> serde_json::Value {
    let skill = |skill: &SkillReport| {
        json!({
            "name": skill.name,
            "description": skill.description,
            "location": skill.location,
            "outcome": skill.outcome.word(),
            "why": skill.why,
            "problems": skill.problems.iter().map(NoteShape::new).collect::<Vec<_>>(),
        })
    };
    json!({
        "skills": skills.iter().map(skill).collect::<Vec<_>>(),
        "notes": notes.iter().map(NoteShape::new).collect::<Vec<_>>(),
    })
}
