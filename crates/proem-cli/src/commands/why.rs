//! `proem why`: where a text of the prompt comes from, or why a file's text is not in it.

use std::path::PathBuf;

use anstyle::Style;
use proem::doctor::why::{Elsewhere, Place, Question, elsewhere, places};
use proem::wire::SourceShape;
use proem::{Build, Caller, Workspace};
use proem_core::carrier::Carrier;
use proem_core::rendered::Span;
use serde_json::{Value, json};

use super::request::prompt_request;
use crate::arguments::{Format, Why};
use crate::failure::Failure;
use crate::label::{first_line, name, with_line};
use crate::notes::print_status;
use crate::table::one_line;
use crate::terminal::{print, print_json, visible, visible_line};

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// How much of a found text is shown.
const SHOWN_CHARACTERS_MAX: usize = 72;

pub(super) fn run(arguments: &Why) -> Result<(), Failure> {
    let request = prompt_request(&arguments.prompt)?;
    let build = proem::build(&request, Caller::User)?;
    let carrier = Carrier::ALL.into_iter().find(|carrier| carrier.word() == arguments.carrier);
    let carrier = carrier.unwrap_or(Carrier::System);
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
    if arguments.format == Format::Json {
        print_json(&json!({
            "places": found.iter().map(place_json).collect::<Vec<_>>(),
            "elsewhere": others.iter().map(elsewhere_json).collect::<Vec<_>>(),
        }))?;
    } else if !found.is_empty() {
        print(&found.iter().map(|place| described(&build, place)).collect::<Vec<_>>().join("\n"))?;
    } else {
        print(&others.iter().map(other).collect::<String>())?;
    }
    if found.is_empty() {
        match question {
            Question::Text(_) if others.is_empty() => {
                print_status("that is neither in the prompt nor in a file that was looked at");
            }
            Question::Text(_) => {}
            Question::Byte(carrier, _) | Question::Line(carrier, _) => {
                print_status(&format!("the {} carrier is not so long", carrier.word()));
            }
        }
        return Err(Failure::Found);
    }
    Ok(())
}

fn described(build: &Build, place: &Place<'_>) -> String {
    let text = build.whole.text(place.carrier).unwrap_or_default();
    let shown = text.get(place.bytes.clone()).unwrap_or_default();
    let section = place.section.map_or_else(String::new, |id| format!(", section {id}"));
    let frozen = if place.is_frozen { "frozen" } else { "of this turn" };
    let mut told = format!(
        "{BOLD}{}{BOLD:#}\n{DIM}{} carrier, line {}, bytes {}..{}{}, {frozen}{DIM:#}\n",
        one_line(&visible(shown), SHOWN_CHARACTERS_MAX),
        place.carrier.word(),
        place.line,
        place.bytes.start,
        place.bytes.end,
        visible_line(&section),
    );
    for span in &place.spans {
        told.push_str(&chain(text, span, place));
    }
    told
}

/// A source, and the way from it into the prompt.
fn chain(text: &str, span: &Span, place: &Place<'_>) -> String {
    let passed = text.get(span.bytes.start..place.bytes.start.max(span.bytes.start)).unwrap_or_default();
    let line = first_line(&span.source).map(|line| line + passed.matches('\n').count());
    let mut told =
        format!("  {}, {}\n", visible_line(&with_line(&name(&span.source), line)), span.stability.word());
    let way = span.template.iter().map(|source| ("put there by", source));
    let way = way.chain(span.included_from.iter().map(|source| ("included from", source)));
    for (how, source) in way {
        told.push_str(&format!("    {DIM}{how}{DIM:#} {}\n", visible_line(&source.to_string())));
    }
    told
}

fn other(found: &Elsewhere) -> String {
    format!("{}:{}\n  {}\n", visible_line(&found.path), found.line, visible_line(&found.why))
}

fn place_json(place: &Place<'_>) -> Value {
    let spans = place.spans.iter().map(|span| {
        json!({
            "start": span.bytes.start,
            "end": span.bytes.end,
            "stability": span.stability.word(),
            "source": SourceShape::of(&span.source),
            "template": span.template.as_ref().map(SourceShape::of),
            "included_from": span.included_from.iter().map(SourceShape::of).collect::<Vec<_>>(),
        })
    });
    json!({
        "carrier": place.carrier.word(),
        "start": place.bytes.start,
        "end": place.bytes.end,
        "line": place.line,
        "section": place.section,
        "frozen": place.is_frozen,
        "spans": spans.collect::<Vec<_>>(),
    })
}

fn elsewhere_json(found: &Elsewhere) -> Value {
    json!({ "path": found.path, "line": found.line, "why": found.why })
}
