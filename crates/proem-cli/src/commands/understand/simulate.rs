//! `proem simulate`: a conversation through a provider's cache.

use anstyle::Style;
use proem::models::Models;
use proem::simulate::{Sent, Simulation, simulate};
use proem::{Caller, Request};
use proem_core::limit::TURNS_BYTES_MAX;

use crate::arguments::{Format, Simulate};
use crate::commands::prompt::stats::{figures_columns, figures_row};
use crate::failure::Failure;
use crate::input;
use crate::notes::print_warning;
use crate::table::{Cell, Column, Table};
use crate::terminal::{output_columns, print, print_json, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();

pub(crate) fn run(arguments: &Simulate) -> Result<(), Failure> {
    let models = Models::load(&Request::default(), Caller::User)?;
    let sent = Sent::lines(&input::read(&arguments.turns, "turns", TURNS_BYTES_MAX)?)?;
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
    let what = if simulation.total.usd.is_some() { "rules and prices" } else { "rules" };
    let rules = format!("{what} of {} as of {}", simulation.cache, simulation.as_of);
    let width = output_columns();
    let columns = figures_columns("turn").into_iter().chain([Column::text("miss")]);
    let table = Table::new(columns).with(rows).print(width);
    table + &flow(&format!("{DIM}tokens {counted}; {rules}{DIM:#}\n"), width, "")
}
