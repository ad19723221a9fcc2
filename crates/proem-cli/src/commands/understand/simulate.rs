//! `proem simulate`: simulates a provider's cache over a conversation.

use std::path::PathBuf;

use anstyle::Style;
use clap::{Args, ValueHint};
use proem::models::Models;
use proem::simulate::{SentRequest, Simulation, simulate};
use proem::{Caller, Request};
use proem_core::limit::TURNS_BYTES_MAX;

use crate::arguments::{Format, NameParser, Output};
use crate::commands::prompt::stats::{figures_columns, figures_row, rules};
use crate::failure::Failure;
use crate::input;
use crate::notes::print_warning;
use crate::table::{Cell, Column, Table};
use crate::terminal::{output_columns, print, print_json, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();

/// Simulate a provider's cache over a conversation
///
/// Prints the tokens read from the cache, written to it and not cached, with their prices.
#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    /// Requests, one payload per line, in the order of sending; `-` reads standard input
    #[arg(value_name = "TURNS.jsonl", value_hint = ValueHint::FilePath)]
    turns: PathBuf,
    /// Provider whose cache to simulate
    #[arg(long, visible_alias = "for", value_name = "PROVIDER", value_parser = NameParser::caches())]
    provider: String,
    /// Model, for its prices, minimum prefix and tokenizer
    #[arg(long, value_name = "MODEL", value_parser = NameParser::models(), hide_possible_values = true)]
    model: Option<String>,
    #[command(flatten)]
    output: Output<Format>,
}

pub(crate) fn run(arguments: &SimulateArguments) -> Result<(), Failure> {
    let models = Models::load(&Request::default(), Caller::User)?;
    let sent = SentRequest::lines(&input::read(&arguments.turns, "turns", TURNS_BYTES_MAX)?)?;
    let simulation = simulate(&arguments.provider, arguments.model.as_deref(), &sent, &models)?;
    if arguments.output.format() == Format::Json {
        return print_json(&simulation);
    }
    if let Some(name) = arguments.model.as_deref().filter(|name| models.find(name).is_none()) {
        let name = visible_line(name);
        print_warning(&format!("the model `{name}` is not in the table: no prices, no minimum"));
    }
    if sent.is_empty() {
        print_warning("the file has no request");
    }
    simulation.warnings.iter().for_each(|warning| print_warning(warning));
    print(&page(&simulation))
}

fn page(simulation: &Simulation) -> String {
    let mut rows = Vec::new();
    for turn in &simulation.turns {
        let mut row = figures_row(&turn.turn.to_string(), &turn.figures);
        row.extend(turn.miss.map(Cell::plain));
        rows.push(row);
    }
    rows.push(figures_row("all", &simulation.total));
    let counted = &simulation.counted;
    let rules = rules(&simulation.cache, simulation.prices_of.as_deref(), simulation.total.usd);
    let rules = format!("{rules} as of {}", simulation.as_of);
    let width = output_columns();
    let columns = figures_columns("turn").into_iter().chain([Column::text("miss")]);
    let table = Table::new(columns).with(rows).print(width);
    table + &flow(&format!("{DIM}tokens {counted}; {rules}{DIM:#}\n"), width, "")
}
