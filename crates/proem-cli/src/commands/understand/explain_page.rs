//! `proem explain --format html`: shows the prompt as a self-contained page, without scripts and requests.

use proem::deliver::DeliverOptions;
use proem::models::Models;
use proem::stats::{CacheUse, Stats, stats};
use proem::{Build, Caller, Request};
use proem_core::file_outcome::FileOutcome;
use proem_core::note::Note;
use proem_core::rendered::Span;

use crate::failure::Failure;
use crate::terminal::visible;

const STYLE: &str = "
:root { color-scheme: light dark; --line: light-dark(#d5d7da, #3b3e43); --dim: light-dark(#5a5e63, #a2a6ad); }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; } h2 { margin-top: 2rem; font-size: 1.05rem; } small, .dim { color: var(--dim); }
pre { padding: 1rem; border: 1px solid var(--line); border-radius: 6px; overflow-wrap: anywhere; white-space: pre-wrap;
      font: 13px/1.5 ui-monospace, monospace; unicode-bidi: plaintext; }
table { width: 100%; border-collapse: collapse; font-size: 13px; }
th, td { padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre span, .key { border-radius: 2px; }
.release { background: light-dark(#eef1f5, #23272d); } .machine { background: light-dark(#dff1f5, #14313a); }
.user { background: light-dark(#e0f3e6, #15331f); } .project { background: light-dark(#eef3d6, #2c3113); }
.session { background: light-dark(#eeeafb, #2a2442); } .day { background: light-dark(#fdeccf, #3a2a10); }
.turn { background: light-dark(#fde2e2, #431c1f); }
.key { margin-right: .5rem; padding: .1rem .4rem; }
";

/// Formats the page.
pub(crate) fn page(build: &Build, request: &Request) -> Result<String, Failure> {
    let models = Models::load(request, Caller::User)?;
    let (figures, more) = stats(build, request, None, &models, &DeliverOptions::default())?;
    let notes: Vec<&Note> = build.notes().iter().chain(&more).collect();
    let parts = [
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>proem: {}</title>\n<style>{STYLE}</style>\n",
            escaped(build.frozen().profile())
        ),
        head(build, &figures),
        sections(&figures),
        carriers(build),
        files(build.frozen().considered()),
        note_rows(&notes),
        "</html>\n".to_owned(),
    ];
    Ok(parts.concat())
}

fn head(build: &Build, figures: &Stats) -> String {
    let keys: String = ["release", "machine", "user", "project", "session", "day", "turn"]
        .map(|word| format!("<span class=\"key {word}\">{word}</span>"))
        .concat();
    let model =
        figures.model.as_deref().map_or_else(String::new, |model| format!(", model {}", escaped(model)));
    let cached = build.frozen().body().carriers().filter(|(carrier, _)| carrier.is_cached());
    let frozen_bytes: usize = cached.map(|(_, text)| text.len()).sum();
    format!(
        "<h1>Where this prompt comes from</h1>\n<p>Profile <b>{}</b>{model}. {} bytes are frozen, {} tokens with the \
         tools ({}). Digest <code>{}</code>.</p>\n<p>{keys}<small>how long bytes stay the same; point at text for its \
         source</small></p>\n",
        escaped(build.frozen().profile()),
        frozen_bytes,
        figures.prefix_tokens,
        escaped(&figures.counted),
        build.frozen().digest().hex(),
    )
}

fn sections(figures: &Stats) -> String {
    let row = |section: &proem::stats::SectionStats| {
        let cached = match section.cached {
            CacheUse::Yes => "from the second turn on",
            CacheUse::AsHistory => "as a part of the history",
            CacheUse::No => "no",
            CacheUse::TooShort => "not yet: too short",
        };
        format!(
            "<tr><td>{}<td>{}<td class=\"number\">{}<td class=\"number\">{}<td><span class=\"key {word}\">{word}</span>\
             <td>{cached}\n",
            escaped(&section.id),
            section.carrier,
            section.bytes,
            section.tokens,
            word = section.stability,
        )
    };
    let rows: String = figures.sections.iter().map(row).collect();
    format!(
        "<h2>Sections</h2>\n<table>\n<tr><th>section<th>carrier<th class=\"number\">bytes<th class=\"number\">tokens\
         <th>stability<th>cached\n{rows}</table>\n"
    )
}

fn carriers(build: &Build) -> String {
    let mut shown = String::new();
    for (carrier, text) in build.whole().carriers() {
        let spans = build.whole().spans(carrier).iter().filter(|span| !span.bytes.is_empty());
        let pieces: String = spans.map(|span| piece(text, span)).collect();
        shown.push_str(&format!("<h2>{} carrier</h2>\n<pre>{pieces}</pre>\n", carrier.word()));
    }
    shown
}

fn piece(text: &str, span: &Span) -> String {
    let by = span.template.iter().map(|source| format!(", put there by {source}"));
    let from = span.included_from.iter().map(|source| format!(", included from {source}"));
    let way: String = by.chain(from).collect();
    let title = format!("{}{way}; changes {}", span.source, span.stability.rhythm());
    let content = text.get(span.bytes.clone()).unwrap_or_default();
    format!(
        "<span class=\"{}\" title=\"{}\">{}</span>",
        span.stability.word(),
        escaped(&title),
        escaped(content)
    )
}

fn files(considered: &[FileOutcome]) -> String {
    if considered.is_empty() {
        return String::new();
    }
    let row = |file: &FileOutcome| {
        let why = file.why.as_deref().unwrap_or_default();
        format!(
            "<tr><td>{}<td>{}<td class=\"dim\">{}\n",
            file.outcome.word(),
            escaped(&file.path),
            escaped(why)
        )
    };
    let rows: String = considered.iter().map(row).collect();
    format!("<h2>Files that were looked at</h2>\n<table>\n<tr><th>outcome<th>file<th>why\n{rows}</table>\n")
}

fn note_rows(notes: &[&Note]) -> String {
    let row = |note: &&Note| {
        let hint = note.hint.as_deref().unwrap_or_default();
        format!(
            "<tr><td>{}<td>{}<td>{}<td class=\"dim\">{}\n",
            note.severity.word(),
            note.code.word(),
            escaped(&note.message),
            escaped(hint)
        )
    };
    let rows: String = notes.iter().map(row).collect();
    if rows.is_empty() { String::new() } else { format!("<h2>Notes</h2>\n<table>\n{rows}</table>\n") }
}

/// Escapes a text for HTML, and spells out control characters.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in visible(text).chars() {
        match character {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            other => shown.push(other),
        }
    }
    shown
}
