//! `proem vars`: lists every variable with its value, or why it is absent.

use anstyle::Style;
use clap::Args;
use proem::VariableReport;
use proem::build_shape::NoteShape;
use serde::Serialize;

use crate::arguments::request::request;
use crate::arguments::{Format, Output, RequestFlags};
use crate::colour;
use crate::failure::Failure;
use crate::notes::print_notes;
use crate::table::{Cell, Column, Table, one_line, shortened};
use crate::terminal::{output_columns, print, print_json, visible};

const VALUE_CHARACTERS_MAX: usize = 48;

/// List every variable with its value, or why it is absent
#[derive(Debug, Args)]
pub(crate) struct VarsArguments {
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    output: Output<Format>,
}

pub(crate) fn run(arguments: &VarsArguments) -> Result<(), Failure> {
    let (reports, notes) = proem::variables(&request(&arguments.request)?, proem::Caller::User)?;
    match arguments.output.format() {
        Format::Json => print_json(&Shape {
            variables: reports.iter().map(shape).collect(),
            notes: notes.iter().map(NoteShape::new).collect(),
        }),
        Format::Text => {
            print_notes(&notes);
            let columns = [
                Column::word("variable"),
                Column::word("stability"),
                Column::text("value").least(26),
                Column::text("description").least(18).dispensable(1),
            ];
            let width = output_columns();
            let rows = reports.iter().map(|report| row(report, width));
            print(&Table::new(columns).with(rows).print(width))
        }
    }
}

fn row(report: &VariableReport, width: Option<usize>) -> Vec<Cell> {
    let dim = Style::new().dimmed();
    let value = match report.fact.as_ref().map(|fact| &fact.value) {
        None => Cell::new("any name", dim),
        Some(Err(why)) => Cell::new(format!("absent: {}", visible(&why.to_string())), dim),
        Some(Ok(value)) if value.is_empty() => Cell::new("empty", dim),
        Some(Ok(value)) => Cell::plain(one_line(&visible(value), shortened(VALUE_CHARACTERS_MAX, width))),
    };
    let stability = Cell::new(report.stability.word(), colour::style(report.stability));
    vec![Cell::plain(visible(&report.key)), stability, value, Cell::new(&report.description, dim)]
}

#[derive(Serialize)]
struct Shape<'r> {
    variables: Vec<VariableShape<'r>>,
    notes: Vec<NoteShape<'r>>,
}

#[derive(Serialize)]
struct VariableShape<'r> {
    r#type: &'r str,
    name: &'r str,
    description: &'r str,
    stability: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dynamic: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<String>,
}

fn shape(report: &VariableReport) -> VariableShape<'_> {
    let (kind, name) = proem_core::variable::split(&report.key);
    let value = report.fact.as_ref().map(|fact| fact.value.as_ref());
    VariableShape {
        r#type: kind,
        name,
        description: &report.description,
        stability: report.stability.word(),
        dynamic: report.dynamic,
        value: value.and_then(Result::ok).map(String::as_str),
        absent: value.and_then(Result::err).map(ToString::to_string),
    }
}
