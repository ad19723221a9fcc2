//! `proem why`: finds the source of a text in the prompt, and the place of a file in it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::{Args, ValueHint};
use proem::compare::why::{Elsewhere, FileAnswer, PromptPlace, Question, elsewhere, file, places};
use proem::{Build, Caller, Workspace};
use proem_api::{place_json, why_json};
use proem_core::carrier::Carrier;
use proem_core::file_outcome::Outcome;
use proem_core::rendered::Span;
use proem_core::source::Source;
use serde_json::json;

use crate::arguments::request::prompt_request;
use crate::arguments::{Format, Output, PromptFlags};
use crate::failure::Failure;
use crate::label::{first_line, with_line};
use crate::notes::print_status;
use crate::paths::Paths;
use crate::table::one_line;
use crate::terminal::{output_columns, print, print_json, visible, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// Maximum number of characters of a text that are shown.
const SHOWN_CHARACTERS_MAX: usize = 72;

/// Find the source of a text, or why a file is not in the prompt
///
/// Exits with code 1 if the text or the file is not in the prompt.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhyArguments {
    /// Text to find in the prompt, or a file to look for in it
    #[arg(value_name = "TEXT|PATH", value_hint = ValueHint::AnyPath, required_unless_present_any = ["byte", "line"], conflicts_with_all = ["byte", "line"])]
    text: Option<String>,
    /// Search for the argument as text, even if a file has that name
    #[arg(long = "text", requires = "text")]
    is_text: bool,
    /// Byte of the carrier, counted from 0
    #[arg(long, value_name = "N", conflicts_with = "line")]
    byte: Option<usize>,
    /// Line of the carrier, counted from 1
    #[arg(long, value_name = "N")]
    line: Option<usize>,
    /// Carrier for `--byte` and `--line`
    #[arg(long, value_name = "CARRIER", default_value = "system", value_parser = ["system", "developer", "first_user", "turn"])]
    carrier: String,
    #[command(flatten)]
    prompt: PromptFlags,
    #[command(flatten)]
    output: Output<Format>,
}

const EXAMPLES: &str = "\
Examples:
  proem why 'Run the tests'     Find the file that this text comes from
  proem why docs/AGENTS.md      Show what became of a file
  proem why --line 12           Find the source of a line of the prompt";

pub(crate) fn run(arguments: &WhyArguments) -> Result<(), Failure> {
    let request = prompt_request(&arguments.prompt)?;
    let build = proem::build(&request, Caller::User)?;
    let carrier = Carrier::ALL.into_iter().find(|carrier| carrier.word() == arguments.carrier);
    let carrier = carrier.unwrap_or(Carrier::System);
    let paths = Paths::from_request(&request)?;
    if let Some(path) =
        arguments.text.as_deref().filter(|_| !arguments.is_text).and_then(|text| named(text, &paths))
    {
        return about_file(&build, &path, &paths, arguments.output.format());
    }
    let question = match (&arguments.text, arguments.byte, arguments.line) {
        (Some(text), ..) => Question::Text(text),
        (None, Some(byte), _) => Question::Byte(carrier, byte),
        (None, None, line) => Question::Line(carrier, line.unwrap_or(1)),
    };
    let found = places(&build, &question);
    let others = match (&question, found.is_empty()) {
        (Question::Text(text), true) => {
            let cwd = PathBuf::from(Workspace::open(request.cwd.as_deref())?.cwd());
            elsewhere(&build, &cwd, std::env::home_dir().as_deref(), text)
        }
        _ => Vec::new(),
    };
    if arguments.output.format() == Format::Json {
        print_json(&why_json(&found, &others))?;
    } else if !found.is_empty() {
        let described = found.iter().map(|place| described(&build, place, &paths));
        print(&described.collect::<Vec<_>>().join("\n"))?;
    } else {
        print(&others.iter().map(|found| other(found, &paths)).collect::<String>())?;
    }
    if found.is_empty() {
        match question {
            Question::Text(_) if others.is_empty() => {
                print_status("this text is neither in the prompt nor in a file that was considered");
                print_status(USAGE_HINT);
            }
            Question::Text(_) => {}
            Question::Byte(carrier, _) | Question::Line(carrier, _) => {
                print_status(&format!("the {} carrier is shorter than that", carrier.word()));
            }
        }
        return Err(Failure::Findings);
    }
    Ok(())
}

/// The hint for a text that is not found.
const USAGE_HINT: &str = "hint: search for words of the prompt that are on one line, or for the path of a file; \
                      `proem build --annotate` shows the whole prompt with its sources";

/// Returns the file that an argument names: one that exists, or a path that could be a file.
fn named(text: &str, paths: &Paths) -> Option<PathBuf> {
    let typed = std::env::current_dir().unwrap_or_default().join(text);
    let there = paths.real_cwd().join(text);
    let whole = if typed.exists() || !there.exists() { typed } else { there };
    let is_path = text.contains('/') && !text.contains(char::is_whitespace);
    (whole.is_file() || is_path && !whole.is_dir()).then_some(whole)
}

/// Prints where a file is in the prompt, or why it is not.
fn about_file(build: &Build, path: &Path, paths: &Paths, format: Format) -> Result<(), Failure> {
    let FileAnswer { places, considered } = file(build, path);
    let shown = paths.shown(&path.display().to_string());
    let is_found = !places.is_empty();
    if format == Format::Json {
        print_json(&json!({
            "file": path.display().to_string(),
            "outcome": considered.map(|file| file.outcome.word()),
            "why": considered.and_then(|file| file.why.as_deref()),
            "places": places.iter().map(place_json).collect::<Vec<_>>(),
        }))?;
    } else if is_found {
        let lines = places.iter().map(|place| file_place(build, place)).collect::<String>();
        print(&format!("{BOLD}{shown}{BOLD:#} is in the prompt\n{lines}"))?;
    } else {
        let profile = visible_line(build.frozen().profile());
        let why = match considered {
            Some(file) => {
                let why =
                    file.why.as_deref().map_or_else(String::new, |why| format!(": {}", paths.in_text(why)));
                match file.outcome {
                    Outcome::Used => "is read, but adds no text".to_owned(),
                    Outcome::Missing => format!("would be read, but does not exist{why}"),
                    outcome => format!("is not in the prompt ({}){why}", outcome.word()),
                }
            }
            None if !path.exists() => "is not in the prompt: the file does not exist".to_owned(),
            None => format!("is not in the prompt: the profile `{profile}` does not look for it"),
        };
        print(&flow(&format!("{BOLD}{shown}{BOLD:#} {why}\n"), output_columns(), "  "))?;
        if considered.is_none() {
            print_status(
                "hint: `proem explain --files` lists the files that the profile looks for; `--text` searches \
                 for the words themselves",
            );
        }
    }
    if is_found { Ok(()) } else { Err(Failure::Findings) }
}

/// Formats a run of bytes that comes from a file.
fn file_place(build: &Build, place: &PromptPlace<'_>) -> String {
    let text = build.whole().text(place.carrier).unwrap_or_default();
    let own = text.get(place.bytes.clone()).unwrap_or_default();
    let last = place.line + own.trim_end_matches('\n').matches('\n').count();
    let lines =
        if last > place.line { format!("lines {}-{last}", place.line) } else { format!("line {last}") };
    let section = place.section.map_or_else(String::new, |id| format!(", section {}", visible_line(id)));
    let frozen = if place.is_frozen { "frozen" } else { "of this turn" };
    let Range { start, end } = place.bytes;
    let from = place.spans.first().and_then(|span| first_line(&span.source));
    let from = from.map_or_else(String::new, |line| format!("; from line {line} of the file"));
    let carrier = place.carrier.word();
    let line = format!("  {carrier} carrier, {lines}, bytes {start}..{end}{section}, {frozen}{from}\n");
    flow(&line, output_columns(), "    ")
}

fn described(build: &Build, place: &PromptPlace<'_>, paths: &Paths) -> String {
    let text = build.whole().text(place.carrier).unwrap_or_default();
    let shown = text.get(place.bytes.clone()).unwrap_or_default();
    let section = place.section.map_or_else(String::new, |id| format!(", section {id}"));
    let frozen = if place.is_frozen { "frozen" } else { "of this turn" };
    let text_line = one_line(&visible(shown), SHOWN_CHARACTERS_MAX);
    let Range { start, end } = place.bytes;
    let (carrier, line, section) = (place.carrier.word(), place.line, visible_line(&section));
    let where_it_is =
        format!("{DIM}{carrier} carrier, line {line}, bytes {start}..{end}{section}, {frozen}{DIM:#}\n");
    let mut shown_text = format!("{BOLD}{text_line}{BOLD:#}\n{}", flow(&where_it_is, output_columns(), "  "));
    for span in &place.spans {
        shown_text.push_str(&chain(text, span, place, paths));
    }
    shown_text
}

/// Formats a source, and the templates that inserted it.
fn chain(text: &str, span: &Span, place: &PromptPlace<'_>, paths: &Paths) -> String {
    let passed = text.get(span.bytes.start..place.bytes.start.max(span.bytes.start)).unwrap_or_default();
    let line = first_line(&span.source).map(|line| line + passed.matches('\n').count());
    // A variable with the content of a file has the name of that file.
    let name = match &span.source {
        Source::Variable { path: Some(path), .. } => paths.shown(path),
        source => paths.source(&source.without_place()),
    };
    let mut shown_text = format!("  {}, {}\n", with_line(&name, line), span.stability.word());
    let way = span.template.iter().map(|source| ("put there by", source));
    let way = way.chain(span.included_from.iter().map(|source| ("included from", source)));
    for (verb, source) in way {
        shown_text.push_str(&format!("    {DIM}{verb}{DIM:#} {}\n", paths.source(source)));
    }
    shown_text
}

fn other(found: &Elsewhere, paths: &Paths) -> String {
    let why = flow(&format!("  {}\n", paths.in_text(&found.why)), output_columns(), "  ");
    format!("{}:{}\n{why}", paths.shown(&found.path), found.line)
}
