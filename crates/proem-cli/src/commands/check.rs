//! `proem check`: what will cost, mislead or leak.

use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use proem::check::{self, Allowed, Axis, Fixed, Moved, Report, file_of, is_mendable};
use proem::compat::{findings, look};
use proem::wire::{NoteShape, SourceShape};
use proem::{Caller, Request, Workspace};
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use serde_json::{Value, json};

use super::request::prompt_request;
use crate::arguments::{Check, CheckFormat};
use crate::failure::Failure;
use crate::notes::{print_status, print_warning};
use crate::table::{Cell, Column, Table};
use crate::terminal::{output_columns, print, print_json, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

pub(super) fn run(arguments: &Check) -> Result<(), Failure> {
    if arguments.codes {
        return codes();
    }
    let request = prompt_request(&arguments.prompt)?;
    let (fixed, mut report) = if arguments.fix {
        check::fix(&request)?
    } else {
        (Fixed::default(), check::check(&request, Caller::User)?)
    };
    let moved = if arguments.determinism { check::determinism(&request, Caller::User)? } else { Vec::new() };
    let mut notes: Vec<Note> = moved.iter().filter_map(Moved::note).collect();
    if let Some(names) = &arguments.agents {
        let all = names == "all";
        let names: Vec<String> =
            names.split(',').filter(|_| !all).map(|name| name.trim().to_owned()).collect();
        notes.extend(findings(&look(&request, &names, Caller::User)?));
    }
    report.add(notes, &request, Caller::User)?;
    if arguments.strict {
        report.make_strict();
    } else if arguments.output.format() == CheckFormat::Text {
        report.findings.retain(|note| note.severity > Severity::Info);
    }
    let shown = Shown { report: &report, fixed: &fixed, moved: arguments.determinism.then_some(&moved) };
    shown.print(arguments, &request)?;
    let counts = |note: &&Note| note.severity > Severity::Info;
    if report.findings.iter().any(|note| counts(&note)) { Err(Failure::Found) } else { Ok(()) }
}

fn codes() -> Result<(), Failure> {
    let row = |code: Code| vec![Cell::new(code.word(), BOLD), Cell::plain(code.about())];
    let columns = [Column::word("code"), Column::text("about")];
    print(&Table::new(columns).untitled().with(Code::ALL.into_iter().map(row)).print(output_columns()))
}

struct Shown<'s> {
    report: &'s Report,
    fixed: &'s Fixed,
    moved: Option<&'s Vec<Moved>>,
}

impl Shown<'_> {
    fn print(&self, arguments: &Check, request: &Request) -> Result<(), Failure> {
        let root = root(request)?;
        for (path, why) in &self.fixed.refused {
            print_warning(&visible_line(&format!("{} is not mended: {why}", path.display())));
        }
        if arguments.fix {
            let files = counted(self.fixed.files.len(), "file");
            print_status(&format!("mended {} in {files}", counted(self.fixed.findings, "finding")));
        }
        match arguments.output.format() {
            CheckFormat::Json => print_json(&self.json()),
            CheckFormat::Sarif => {
                print_json(&check::sarif(self.report, &check::project(request, Caller::User)?))
            }
            CheckFormat::Text => print(&self.text(&root, arguments)),
        }
    }

    fn json(&self) -> Value {
        let moved = |moved: &Moved| {
            json!({
                "source": SourceShape::of(&moved.source),
                "with": moved.axis.word(),
                "stability": moved.stability.word(),
                "allowed": moved.is_allowed,
                "frozen": moved.is_frozen,
            })
        };
        let mut value = json!({
            "profile": self.report.profile,
            "files": self.report.files,
            "bytes": self.report.bytes,
            "findings": self.report.findings.iter().map(finding).collect::<Vec<_>>(),
            "allowed": self.report.allowed.iter().map(|allowed| {
                let mut value = finding(&allowed.note);
                value["reason"] = json!(allowed.reason);
                value["by"] = json!(if allowed.is_of_repository { "repository" } else { "user" });
                value
            }).collect::<Vec<_>>(),
            "silenced_by_repository": self.report.silenced_by_repository(),
            "mended": self.fixed.findings,
        });
        if let Some(all) = self.moved {
            value["moved"] = all.iter().map(moved).collect();
        }
        value
    }

    fn text(&self, root: &Path, arguments: &Check) -> String {
        let mut text: String = self.report.findings.iter().map(|note| line(note, root)).collect();
        for allowed in &self.report.allowed {
            let Allowed { note, reason, .. } = allowed;
            if allowed.is_shown() {
                text.push_str(&line(&Note { severity: Severity::Info, hint: None, ..note.clone() }, root));
            }
            let place =
                note.source.as_ref().map_or_else(|| "prompt".to_owned(), |source| place(source, root));
            let told = format!("{}: allowed[{}]: {reason}", visible_line(&place), note.code);
            let told = format!("{DIM}{}{DIM:#}\n", visible_line(&told));
            text.push_str(&flow(&told, output_columns(), "  "));
        }
        if let Some(moved) = self.moved {
            text.push_str(&movements(moved));
        }
        text.push_str(&self.summary(arguments));
        text
    }

    fn summary(&self, arguments: &Check) -> String {
        let report = self.report;
        let silenced = match report.silenced_by_repository() {
            0 => String::new(),
            some => format!("the repository's own rules silence {}\n", counted(some, "finding")),
        };
        let about = format!(
            "{silenced}{DIM}profile {}, {}, {} bytes frozen{DIM:#}\n",
            report.profile,
            counted(report.files, "file"),
            report.bytes
        );
        let allowed = match report.allowed.len() {
            0 => String::new(),
            some => format!(", {some} allowed"),
        };
        let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
        if errors + warnings == 0 {
            return format!("nothing to complain about{allowed}\n{about}");
        }
        let mendable = report.findings.iter().filter(|note| is_mendable(note)).count();
        let mend = if mendable > 0 && !arguments.fix {
            format!("; `--fix` mends {mendable}")
        } else {
            String::new()
        };
        format!("{}, {}{allowed}{mend}\n{about}", counted(errors, "error"), counted(warnings, "warning"))
    }
}

fn finding(note: &Note) -> Value {
    let mut value = serde_json::to_value(NoteShape::of(note)).unwrap_or_default();
    value["fixable"] = json!(is_mendable(note));
    value
}

/// The directory that paths are shown relative to.
fn root(request: &Request) -> Result<PathBuf, Failure> {
    Ok(Workspace::open(request.cwd.as_deref())?.path().to_owned())
}

/// A finding: where, how grave, which code, what, and what to do.
fn line(note: &Note, root: &Path) -> String {
    let (word, style) = match note.severity {
        Severity::Info => ("note", DIM),
        Severity::Warning => ("warning", AnsiColor::Yellow.on_default().bold()),
        Severity::Error => ("error", AnsiColor::Red.on_default().bold()),
    };
    let place = note.source.as_ref().map_or_else(|| "prompt".to_owned(), |source| place(source, root));
    let hint = note.hint.as_ref();
    let hint = hint.map_or_else(String::new, |hint| format!("  {DIM}{}{DIM:#}\n", visible_line(hint)));
    let found = format!(
        "{BOLD}{}{BOLD:#}: {style}{word}{style:#}[{}]: {}\n{hint}",
        visible_line(&place),
        note.code,
        visible_line(&note.message.replace(&format!("{}/", root.display()), ""))
    );
    flow(&found, output_columns(), "  ")
}

fn place(source: &Source, root: &Path) -> String {
    let whole = source.to_string();
    let inside =
        file_of(source).and_then(|path| Path::new(path).strip_prefix(root).ok().map(|inside| (path, inside)));
    match (source, inside) {
        (Source::File { .. }, Some((path, inside))) => whole.replacen(path, &inside.to_string_lossy(), 1),
        _ => whole,
    }
}

/// What moved, as a table: a row for each source, with what it moved.
fn movements(moved: &[Moved]) -> String {
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
    let row = |moved: &Moved| {
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
