//! `proem compat`: shows which files each agent would read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueHint};
use proem::compare::{ChangedLine, Side, changed_lines};
use proem::compat::{
    AgentView, CompatShape, FileView, Installed, agents, all_files, file_in, installed, is_newer, look,
};
use proem::{Caller, Request};
use proem_core::file_outcome::Outcome;
use proem_core::profile::{AgentRecipe, KnownBy};
use serde_json::{Value, json};

use crate::arguments::request::request;
use crate::arguments::{Format, NameParser, Output, RequestFlags};
use crate::failure::Failure;
use crate::paths::Paths;
use crate::table::{Cell, Column, Table};
use crate::terminal::{output_columns, print, print_json, visible, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// Most folders on the way to a file that are tried as the starting folder of an agent.
const FOLDERS_MAX: usize = 16;

/// Show which files each agent (Codex, Claude Code, …) would read
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompatArguments {
    /// File to look up: which agents read it, and which never do
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "diff")]
    file: Option<PathBuf>,
    /// Show for each agent the version that its rules were verified with, when and how, and the installed version
    #[arg(long = "agents", conflicts_with_all = ["file", "diff", "as_names"])]
    versions: bool,
    /// Agents to show, separated by commas [default: every agent with a profile]
    #[arg(id = "as_names", long = "as", value_name = "NAMES", conflicts_with = "diff", value_parser = NameParser::agents(), hide_possible_values = true)]
    agents: Vec<String>,
    /// Compare the texts that two agents read, file by file
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_parser = NameParser::agents(), hide_possible_values = true)]
    diff: Option<Vec<String>>,
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    output: Output<Format>,
}

const EXAMPLES: &str = "\
Examples:
  proem compat                              Show files and agents as a table
  proem compat CLAUDE.md                    Show which agents read a file
  proem compat --diff codex claude-code     Compare what two agents read
  proem compat --agents                     Show the versions of agents whose rules were verified";

pub(crate) fn run(arguments: &CompatArguments) -> Result<(), Failure> {
    let request = request(&arguments.request)?;
    if arguments.versions {
        return versions(&request, arguments.output.format());
    }
    let names: Vec<String> = match &arguments.diff {
        Some(pair) => pair.clone(),
        None => arguments
            .agents
            .iter()
            .flat_map(|names| names.split(','))
            .map(|name| name.trim().to_owned())
            .collect(),
    };
    let mut seen = look(&request, &names, Caller::User)?;
    if !names.is_empty() {
        seen.sort_by_key(|one| names.iter().position(|name| *name == one.profile));
    }
    let places = Paths::from_request(&request)?;
    if let Some(path) = &arguments.file {
        let asked = FileQuery { seen: &seen, request: &request, places: &places };
        return asked.file(path, arguments.output.format());
    }
    if arguments.output.format() == Format::Json {
        return print_json(&CompatShape::new(&seen));
    }
    match seen.as_slice() {
        [a, b] if arguments.diff.is_some() => print(&difference(a, b, &places)),
        _ => print(&page(&seen, &places)),
    }
}

/// Formats a table of files and agents, then the details of each agent.
fn page(seen: &[AgentView], places: &Paths) -> String {
    let files = all_files(seen);
    if files.is_empty() {
        return format!("No agent would read a file here.\n{}", ages(seen));
    }
    let width = output_columns();
    let agents = seen.iter().map(|one| Column::word(&one.profile));
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for path in files {
        let cells = seen.iter().map(|one| one.files.get(path).map_or_else(|| Cell::new("-", DIM), cell));
        rows.push(std::iter::once(Cell::plain(places.shown(path))).chain(cells).collect());
    }
    let table = Table::new(std::iter::once(Column::text("file")).chain(agents)).continued().with(rows);
    let mut text = table.print(width) + "\n";
    for one in seen {
        text.push_str(&agent(one, places));
    }
    text + &ages(seen)
}

fn cell(file: &FileView) -> Cell {
    let style = match file.outcome {
        Outcome::Used if file.is_cut => AnsiColor::Yellow.on_default(),
        Outcome::Used => AnsiColor::Green.on_default(),
        Outcome::Hidden => Style::new(),
        _ => AnsiColor::Yellow.on_default(),
    };
    Cell::new(file.word(), style)
}

/// Formats the details of an agent: its size by carrier, and the files that it does not read.
fn agent(seen: &AgentView, places: &Paths) -> String {
    let used = seen.files.values().filter(|file| file.outcome == Outcome::Used).count();
    let carriers: Vec<String> = seen
        .carriers()
        .map(|(carrier, bytes, tokens)| format!("{bytes} bytes, about {tokens} tokens on {}", carrier.word()))
        .collect();
    let what = if carriers.is_empty() { "nothing".to_owned() } else { carriers.join("; ") };
    let files = counted(used);
    let width = output_columns();
    let mut text = flow(&format!("{BOLD}{}{BOLD:#}: {files}, {what}\n", seen.agent.title), width, "  ");
    for (path, file) in seen.files.iter().filter(|(_, file)| file.outcome != Outcome::Used) {
        let why = file.why.as_deref().map_or_else(String::new, |why| format!(": {}", places.in_text(why)));
        let line = format!("  {DIM}{} {}{why}{DIM:#}\n", places.shown(path), file.word());
        text.push_str(&flow(&line, width, "    "));
    }
    for note in seen.warnings() {
        text.push_str(&flow(&format!("  {}\n", visible_line(&note.message)), width, "    "));
    }
    text
}

fn counted(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

/// Formats the version and date of the rules of each agent, and their origin.
fn ages(seen: &[AgentView]) -> String {
    let one = |seen: &AgentView| {
        let agent = &seen.agent;
        format!("{} {} ({}, {})", agent.title, agent.version, agent.known_by.word(), agent.as_of)
    };
    let all: Vec<String> = seen.iter().map(one).collect();
    let mut text = flow(&format!("\n{DIM}rules of: {}{DIM:#}\n", all.join("; ")), output_columns(), "  ");
    for agent in seen.iter().map(|one| &one.agent) {
        if let Some(warning) = newer(agent, on_path(agent).as_ref()) {
            text.push_str(&flow(&format!("{WARNING}{warning}{WARNING:#}\n"), output_columns(), "  "));
        }
    }
    text
}

const WARNING: Style = AnsiColor::Yellow.on_default();

/// Finds the program of an agent on the search path; nothing is run.
fn on_path(agent: &AgentRecipe) -> Option<Installed> {
    installed(agent, &std::env::var("PATH").unwrap_or_default())
}

/// Returns the warning that a later version is installed than the rules were verified with.
fn newer(agent: &AgentRecipe, installed: Option<&Installed>) -> Option<String> {
    let version = installed?.version.as_deref()?;
    let is_newer = is_newer(version, &agent.version)?;
    is_newer.then(|| {
        let (title, version) = (&agent.title, visible_line(version));
        format!("{title} {version} is installed; its rules were verified with {}", agent.version)
    })
}

/// Prints the versions that the rules of each agent were verified with, and the installed ones.
fn versions(request: &Request, format: Format) -> Result<(), Failure> {
    let all = agents(request, Caller::User)?;
    let found: Vec<(&String, &AgentRecipe, Option<Installed>)> =
        all.iter().map(|(profile, agent)| (profile, agent, on_path(agent))).collect();
    if format == Format::Json {
        let shape = |(profile, agent, found): &(&String, &AgentRecipe, Option<Installed>)| -> Value {
            let version = found.as_ref().and_then(|found| found.version.clone());
            json!({
                "profile": profile, "title": agent.title, "version": agent.version, "as_of": agent.as_of,
                "known_by": agent.known_by.word(), "seen": agent.seen.word(),
                "program": found.as_ref().map(|found| &found.path), "installed": version,
                "is_newer": version.as_ref().and_then(|version| is_newer(version, &agent.version)),
            })
        };
        return print_json(&json!({ "agents": found.iter().map(shape).collect::<Vec<_>>() }));
    }
    let row = |(profile, agent, found): &(&String, &AgentRecipe, Option<Installed>)| {
        let here = match found {
            None => Cell::new("not found", DIM),
            Some(Installed { version: Some(version), .. }) => {
                let style = newer(agent, found.as_ref()).map_or_else(Style::new, |_| WARNING);
                Cell::new(visible_line(version), style)
            }
            Some(_) => Cell::new("unknown", DIM),
        };
        let seen = if agent.known_by == KnownBy::Run { agent.seen.word() } else { "-" };
        let cells = [profile.as_str(), &agent.version, &agent.as_of].map(Cell::plain);
        cells.into_iter().chain([agent.known_by.word(), seen].map(Cell::plain)).chain([here]).collect()
    };
    let columns = ["agent", "verified with", "on", "by", "seen", "installed"].map(Column::word);
    let table = Table::new(columns).with(found.iter().map(row));
    let warnings = found.iter().filter_map(|(_, agent, found)| newer(agent, found.as_ref()));
    let warnings: Vec<String> = warnings.map(|warning| format!("{WARNING}{warning}{WARNING:#}\n")).collect();
    print(&(table.print(output_columns()) + &warnings.concat()))
}

/// A query about one file.
struct FileQuery<'a> {
    seen: &'a [AgentView],
    request: &'a Request,
    places: &'a Paths,
}

impl FileQuery<'_> {
    /// Prints which agents read a file.
    fn file(&self, path: &Path, format: Format) -> Result<(), Failure> {
        // Relative to the directory of the shell, else to `--cwd`.
        let typed = std::env::current_dir().unwrap_or_default().join(path);
        let whole = if typed.exists() { typed } else { self.places.real_cwd().join(path) };
        if !whole.exists() {
            return Err(Failure::Usage {
                message: format!("there is no file {}", visible_line(&path.display().to_string())),
                hint: "name a file that exists; `proem compat` without one lists the files that agents read here"
                    .into(),
            });
        }
        let found: Vec<(&AgentView, Option<&FileView>)> =
            self.seen.iter().map(|one| (one, file_in(one, &whole))).collect();
        let never = found.iter().filter(|(_, file)| file.is_none()).map(|(one, _)| one.profile.clone());
        let elsewhere = self.started_below(&whole, never.collect())?;
        if format == Format::Json {
            let shapes = found.iter().map(|(one, file)| {
                let below = elsewhere.get(&one.profile);
                json!({
                    "profile": one.profile,
                    "outcome": file.map(|file| file.outcome.word()),
                    "why": file.and_then(|file| file.why.clone()),
                    "bytes": file.map_or(0, |file| file.bytes),
                    "started_in": below.map(|(folder, file)| json!({
                        "cwd": folder, "outcome": file.outcome.word(), "why": file.why, "bytes": file.bytes,
                    })),
                })
            });
            return print_json(&json!({ "file": whole, "agents": shapes.collect::<Vec<_>>() }));
        }
        let row = |(one, file): &(&AgentView, Option<&FileView>)| {
            let (word, why) = match (file, elsewhere.get(&one.profile)) {
                (Some(file), _) => (cell(file), file.why.clone().unwrap_or_default()),
                (None, Some((folder, file))) => {
                    let folder = self.places.shown(&folder.display().to_string());
                    (Cell::new("not here", DIM), format!("{} when started in {folder}", file.word()))
                }
                (None, None) => (Cell::new("never", DIM), "it does not look for such a file".to_owned()),
            };
            vec![Cell::plain(&one.agent.title), word, Cell::new(self.places.in_text(&why), DIM)]
        };
        let columns = [Column::word("agent"), Column::word("outcome"), Column::text("why")];
        let table = Table::new(columns).untitled().with(found.iter().map(row));
        print(&(table.print(output_columns()) + &ages(self.seen)))
    }

    /// Returns the outcome of a file for agents that read it only when they start in a folder on the way to it:
    /// the first one, from the working directory on, in which they look for it.
    fn started_below(
        &self,
        file: &Path,
        mut names: Vec<String>,
    ) -> Result<BTreeMap<String, (PathBuf, FileView)>, Failure> {
        let mut found = BTreeMap::new();
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let below = |folder: &&Path| folder.starts_with(self.places.real_cwd());
        let mut folders: Vec<&Path> = real.ancestors().skip(1).take_while(below).collect();
        folders.pop();
        for folder in folders.into_iter().rev().take(FOLDERS_MAX) {
            if names.is_empty() {
                break;
            }
            let request = Request { cwd: Some(folder.display().to_string()), ..self.request.clone() };
            for one in look(&request, &names, Caller::User)? {
                if let Some(seen) = file_in(&one, &real) {
                    names.retain(|name| *name != one.profile);
                    found.insert(one.profile.clone(), (folder.to_owned(), seen.clone()));
                }
            }
        }
        Ok(found)
    }
}

/// Compares two agents, file by file.
fn difference(a: &AgentView, b: &AgentView, places: &Paths) -> String {
    let mut text = String::new();
    for path in all_files(std::slice::from_ref(a)).union(&all_files(std::slice::from_ref(b))) {
        let word = |seen: &AgentView| seen.files.get(*path).map_or("-", FileView::word);
        let (before, after) = (a.text_of(path), b.text_of(path));
        let same = if before == after && !before.is_empty() { ", the same text" } else { "" };
        text.push_str(&format!(
            "{BOLD}{}{BOLD:#}  {} {}, {} {}{same}\n",
            places.shown(path),
            a.profile,
            word(a),
            b.profile,
            word(b)
        ));
        if before != after && !before.is_empty() && !after.is_empty() {
            text.push_str(&changes(&before, &after));
        }
    }
    if text.is_empty() {
        text.push_str("Neither of them reads a file here.\n");
    }
    let order = |seen: &AgentView| {
        let used = seen.files.values().filter(|file| file.outcome == Outcome::Used).count();
        format!(
            "{}: {}, {}",
            seen.profile,
            counted(used),
            seen.carriers().map(|(carrier, ..)| carrier.word()).collect::<Vec<_>>().join(" and ")
        )
    };
    format!("{text}\n{}\n{}\n", order(a), order(b))
}

fn changes(before: &str, after: &str) -> String {
    let mut text = String::new();
    for ChangedLine { side, text: line } in changed_lines(before, after, 1).into_iter().flatten() {
        let (sign, style) = match side {
            Side::Before => ("-", AnsiColor::Red.on_default()),
            Side::After => ("+", AnsiColor::Green.on_default()),
            Side::Both => (" ", DIM),
        };
        let end = if line.ends_with('\n') { "" } else { " (no line break)" };
        text.push_str(&format!("  {style}{sign}{}{end}{style:#}\n", visible(line.trim_end_matches('\n'))));
    }
    text
}
