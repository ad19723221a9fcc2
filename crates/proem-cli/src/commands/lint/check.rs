//! `proem check`: finds what wastes tokens, misleads the model or leaks secrets.

use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use proem::check::{self, AllowedFinding, Axis, MovedSource, Repairs, Report, Subject, is_mendable};
use proem::{Caller, Request, Workspace};
use proem_api::{CheckCounts, check_json};
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use serde_json::Value;

use crate::arguments::request::prompt_request;
use crate::arguments::{NameParser, Output, PromptFlags};
use crate::failure::Failure;
use crate::notes::{print_status, print_warning};
use crate::table::{Cell, Column, Table};
use crate::terminal::{output_columns, print, print_json, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// Find what wastes tokens, misleads the model or leaks secrets
///
/// Exits with code 1 if there are findings.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    prompt: PromptFlags,
    /// Report informational findings too, and every finding as an error (for CI)
    #[arg(long)]
    strict: bool,
    /// Fix files of the project where that is safe, then report what is left
    #[arg(long)]
    fix: bool,
    /// Also build with another clock, time zone, locale, directory order, home and environment, and report what changes
    #[arg(long)]
    determinism: bool,
    /// Also check what these agents would read, separated by commas; `all` for every agent
    #[arg(long = "as", value_name = "NAMES", value_parser = NameParser::agents_or_all(), hide_possible_values = true)]
    agents: Option<String>,
    /// Check every instruction file and skill of the repository, for all agents, instead of one prompt
    #[arg(
        long,
        conflicts_with_all = ["profile", "template", "instruction", "system", "append", "tools", "packs", "model", "determinism"]
    )]
    all: bool,
    /// List all codes with their meaning
    #[arg(long, exclusive = true)]
    codes: bool,
    #[command(flatten)]
    output: Output<CheckFormat>,
}

const EXAMPLES: &str = "\
Examples:
  proem check                       Check the prompt of this directory
  proem check --all                 Check the files of every agent
  proem check --fix                 Fix what can be fixed safely
  proem check --strict --format sarif > proem.sarif
                                    Write findings for a code host";

/// Output formats of `proem check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    /// Findings for a terminal
    Text,
    /// JSON for programs
    Json,
    /// SARIF 2.1.0 for code hosts
    Sarif,
}

pub(crate) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    if arguments.codes {
        return codes();
    }
    let request = prompt_request(&arguments.prompt)?;
    let agents = arguments.agents.as_deref().map(names);
    let look = |request: &Request| match (&agents, arguments.all) {
        (agents, true) => check::check_all(request, agents.as_deref().unwrap_or_default()),
        (Some(agents), false) => check::check_as(request, agents),
        (None, false) => check::check(request, Caller::User),
    };
    let (fixed, mut report) =
        if arguments.fix { check::fix(&request, look)? } else { (Repairs::default(), look(&request)?) };
    let moved = if arguments.determinism { check::determinism(&request, Caller::User)? } else { Vec::new() };
    report.add(moved.iter().filter_map(MovedSource::note).collect(), &request, Caller::User)?;
    let counts = CheckCounts::new(&report);
    if arguments.strict {
        report.make_strict();
    } else if arguments.output.format() == CheckFormat::Text {
        report.findings.retain(|note| note.severity > Severity::Info);
    }
    let moved = arguments.determinism.then_some(&moved);
    let page =
        Page { report: &report, fixed: &fixed, moved, notes: counts.notes, around: Around::new(&request)? };
    page.print(arguments, &request)?;
    let is_found = report.findings.iter().any(|note| note.severity > Severity::Info);
    if is_found { Err(Failure::Findings) } else { Ok(()) }
}

/// Parses the agents of a flag; an empty list means all agents.
fn names(list: &str) -> Vec<String> {
    let all = list == "all";
    list.split(',').filter(|_| !all).map(|name| name.trim().to_owned()).collect()
}

fn codes() -> Result<(), Failure> {
    let row = |code: Code| vec![Cell::new(code.word(), BOLD), Cell::plain(code.about())];
    let columns = [Column::word("code"), Column::text("about")];
    print(&Table::new(columns).untitled().with(Code::ALL.into_iter().map(row)).print(output_columns()))
}

/// Findings for people or programs.
struct Page<'s> {
    report: &'s Report,
    fixed: &'s Repairs,
    moved: Option<&'s Vec<MovedSource>>,
    /// The number of informational findings.
    notes: usize,
    around: Around,
}

impl Page<'_> {
    fn print(&self, arguments: &CheckArguments, request: &Request) -> Result<(), Failure> {
        for (path, why) in &self.fixed.refused {
            print_warning(&visible_line(&format!("{} is not fixed: {why}", path.display())));
        }
        if arguments.fix {
            let files = counted(self.fixed.files.len(), "file");
            print_status(&format!("fixed {} in {files}", counted(self.fixed.findings, "finding")));
        }
        match arguments.output.format() {
            CheckFormat::Json => print_json(&self.json()),
            CheckFormat::Sarif => {
                print_json(&check::sarif(self.report, &check::project(request, Caller::User)?.real))
            }
            CheckFormat::Text => print(&self.text(arguments, request)?),
        }
    }

    fn json(&self) -> Value {
        check_json(self.report, self.moved.map(Vec::as_slice), self.fixed.findings)
    }

    fn text(&self, arguments: &CheckArguments, request: &Request) -> Result<String, Failure> {
        let around = &self.around;
        let mut text: String = self.report.findings.iter().map(|note| around.finding(note)).collect();
        for allowed in &self.report.allowed {
            let AllowedFinding { note, reason, .. } = allowed;
            if allowed.is_shown() {
                text.push_str(&around.finding(&Note {
                    severity: Severity::Info,
                    hint: None,
                    ..note.clone()
                }));
            }
            let place =
                note.source.as_ref().map_or_else(|| "prompt".to_owned(), |source| around.place(source));
            let line = visible_line(&format!("{place}: allowed[{}]: {reason}", note.code));
            text.push_str(&flow(&format!("{DIM}{line}{DIM:#}\n"), output_columns(), "    "));
        }
        if let Some(moved) = self.moved {
            text.push_str(&movements(moved));
        }
        if self.report.files.is_empty() && text.is_empty() {
            return self.nothing_read(request);
        }
        text.push_str(&self.summary(arguments));
        Ok(text)
    }

    fn summary(&self, arguments: &CheckArguments) -> String {
        let report = self.report;
        let silenced = match report.silenced_by_repository() {
            0 => String::new(),
            some => format!("the repository's own rules silence {}\n", counted(some, "finding")),
        };
        let files = counted(report.files.len(), "file");
        let about = match &report.subject {
            Subject::Prompt { profile, bytes } => {
                format!("{DIM}profile {profile}, {files}, {bytes} bytes frozen{DIM:#}\n")
            }
            Subject::Project { directories, .. } => {
                format!("{DIM}{files} of agents; looked in {}{DIM:#}\n", counted(*directories, "folder"))
            }
        };
        let allowed = match report.allowed.len() {
            0 => String::new(),
            some => format!(", {some} allowed"),
        };
        let notes = match self.notes {
            some if some > 0 && !arguments.strict => {
                format!("; `--strict` has {} more", counted(some, "finding"))
            }
            _ => String::new(),
        };
        let CheckCounts { errors, warnings, .. } = CheckCounts::new(report);
        if errors + warnings == 0 {
            return format!("nothing to complain about{allowed}{notes}\n{silenced}{about}");
        }
        let mendable = report.findings.iter().filter(|note| is_mendable(note)).count();
        let mend = if mendable > 0 && !arguments.fix {
            format!("; `--fix` fixes {mendable}")
        } else {
            String::new()
        };
        let counts = format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
        format!("{counts}{allowed}{mend}{notes}\n{silenced}{about}")
    }

    /// Reports that there is no file to check, and the files of other agents.
    fn nothing_read(&self, request: &Request) -> Result<String, Failure> {
        const LISTED_MAX: usize = 3;
        const NO_FILE: &str = "nothing to check: no agent has an instruction file or a skill here\n";
        let Subject::Prompt { profile, .. } = &self.report.subject else { return Ok(NO_FILE.to_owned()) };
        let others = check::other_files(request)?;
        if others.is_empty() {
            return Ok(format!(
                "{NO_FILE}most agents read AGENTS.md; `proem init` makes files of proem's own\n"
            ));
        }
        let near = |path: &PathBuf| self.around.near(&path.to_string_lossy());
        let listed: Vec<String> = others.iter().take(LISTED_MAX).map(near).collect();
        let more = match others.len().saturating_sub(LISTED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let line = format!(
            "nothing to check: profile {profile} reads no file here, and other agents read {}{more}",
            listed.join(", ")
        );
        let line = flow(&visible_line(&line), output_columns(), "  ");
        Ok(format!("{line}\n`proem check --all` checks what every agent reads\n"))
    }
}

/// The directories that paths are shortened by: the one that the command was started in, whatever `--cwd` says.
struct Around {
    cwd: PathBuf,
    project: PathBuf,
}

impl Around {
    fn new(request: &Request) -> Result<Self, Failure> {
        let cwd = Workspace::open(None)?.path().to_owned();
        Ok(Self { cwd, project: check::project(request, Caller::User)?.path })
    }

    /// Formats a finding: place, severity, code, message and hint.
    fn finding(&self, note: &Note) -> String {
        let (word, style) = match note.severity {
            Severity::Info => ("note", DIM),
            Severity::Warning => ("warning", AnsiColor::Yellow.on_default().bold()),
            Severity::Error => ("error", AnsiColor::Red.on_default().bold()),
        };
        let place = note.source.as_ref().map_or_else(|| "prompt".to_owned(), |source| self.place(source));
        let (place, code) = (visible_line(&place), note.code.word());
        let message = visible_line(&self.near(&note.message));
        let found = format!("{BOLD}{place}{BOLD:#}: {style}{word}{style:#}[{code}]: {message}\n");
        let hint = |hint: &String| {
            let hint = format!("  {DIM}{}{DIM:#}\n", visible_line(&self.near(hint)));
            flow(&hint, output_columns(), "  ")
        };
        flow(&found, output_columns(), "    ") + &note.hint.as_ref().map_or_else(String::new, hint)
    }

    fn place(&self, source: &Source) -> String {
        match source {
            Source::File { .. } => self.near(&source.to_string()),
            _ => source.to_string(),
        }
    }

    /// Makes the paths of the project in a text relative to the directory of the process.
    fn near(&self, text: &str) -> String {
        let text = text.replace(&format!("{}/", self.cwd.display()), "");
        let Ok(below) = self.cwd.strip_prefix(&self.project) else { return text };
        text.replace(&format!("{}/", self.project.display()), &"../".repeat(below.components().count()))
    }
}

/// Formats the sources that changed between builds, one row each, and the cause.
fn movements(moved: &[MovedSource]) -> String {
    if moved.is_empty() {
        let all: Vec<&str> = Axis::ALL.into_iter().map(Axis::word).collect();
        return format!("nothing moved: {}\n", all.join(", "));
    }
    let columns = [
        Column::text("moved"),
        Column::text("with"),
        Column::word("stability"),
        Column::word("frozen"),
        Column::word("allowed"),
    ];
    let row = |moved: &MovedSource| {
        let (word, style) =
            if moved.is_allowed { ("yes", Style::new()) } else { ("no", AnsiColor::Red.on_default().bold()) };
        vec![
            Cell::plain(visible_line(&moved.source.to_string())),
            Cell::plain(moved.axis.word()),
            Cell::plain(moved.stability.word()),
            Cell::plain(if moved.is_frozen { "yes" } else { "no" }),
            Cell::new(word, style),
        ]
    };
    Table::new(columns).with(moved.iter().map(row)).print(output_columns()) + "\n"
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
