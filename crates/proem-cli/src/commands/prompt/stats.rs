//! The table of `proem build --stats`, parts of which other commands use.

use anstyle::Style;
use proem::simulate::Figures;
use proem::stats::Stats;
use proem::tokens::TokenBounds;

use crate::table::{Cell, Column, Table, grouped};
use crate::terminal::{output_columns, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();

/// Formats tokens by section and carrier, and the cost of a turn.
pub(crate) fn page(stats: &Stats) -> String {
    let mut rows = Vec::new();
    for section in &stats.sections {
        rows.push(row(
            [&section.id, section.carrier, section.stability],
            [section.bytes, section.tokens],
            section.cached.words(),
        ));
    }
    if stats.tools.count > 0 {
        let name = format!("({} tools)", stats.tools.count);
        rows.push(row([&name, "", ""], [stats.tools.bytes, stats.tools.tokens], "yes"));
    }
    for carrier in &stats.carriers {
        rows.push(row(["all of", carrier.carrier, ""], [carrier.bytes, carrier.tokens], ""));
    }
    let columns = [
        Column::text("section"),
        Column::word("carrier").dispensable(1),
        Column::word("stability"),
        Column::number("bytes").dispensable(2),
        Column::number("tokens"),
        Column::word("cached"),
    ];
    let width = output_columns();
    let mut page = Table::new(columns).with(rows).print(width);
    page.push_str(&flow(&format!("\ntokens   {}\n", stats.counted), width, "         "));
    page.push_str(&flow(&prefix(stats), width, "         "));
    page.push_str(&turns(stats, width));
    page
}

fn row(names: [&str; 3], numbers: [usize; 2], cached: &str) -> Vec<Cell> {
    let names = names.into_iter().map(Cell::plain);
    let numbers = numbers.into_iter().map(|number| Cell::plain(grouped(number)).right());
    names.chain(numbers).chain([Cell::plain(cached)]).collect()
}

fn prefix(stats: &Stats) -> String {
    let bounds = stats
        .prefix_bounds
        .map(|TokenBounds { min, max }| format!(" ({} to {})", grouped(min), grouped(max)));
    let tokens = grouped(stats.prefix_tokens);
    let bounds = bounds.unwrap_or_default();
    let line = match (&stats.model, stats.min_tokens) {
        (Some(model), Some(least)) => {
            format!("{tokens} tokens{bounds}; {model} caches from {} on", grouped(least))
        }
        _ => format!("{tokens} tokens{bounds}"),
    };
    format!("prefix   {line}\n")
}

/// Formats the costs of a first turn and of a later one, or the reason that they are unknown.
pub(crate) fn turns(stats: &Stats, width: Option<usize>) -> String {
    let Some((cold, warm)) = stats.cold.as_ref().zip(stats.warm.as_ref()) else {
        return flow(&format!("{DIM}{}{DIM:#}\n", no_turns(stats)), width, "");
    };
    let rows = [figures_row("cold", cold), figures_row("warm", warm)];
    let provider = stats.provider.unwrap_or_default();
    let rules = rules(provider, stats.prices_of.as_deref(), cold.usd);
    let prices = format!("{DIM}{rules} as of {}{DIM:#}", stats.as_of);
    format!("\n{}{}\n", Table::new(figures_columns("turn")).with(rows).print(width), flow(&prices, width, ""))
}

/// Names the rules and the prices that figures follow from: prices are those of the model, on every provider.
pub(crate) fn rules(provider: &str, prices_of: Option<&str>, usd: Option<f64>) -> String {
    match (usd, prices_of) {
        (None, _) => format!("rules of {provider}"),
        (Some(_), None) => format!("rules and prices of {provider}"),
        (Some(_), Some(model)) => format!("rules of {provider}, prices of {}", visible_line(model)),
    }
}

/// Returns the reason that the costs of turns are unknown.
fn no_turns(stats: &Stats) -> String {
    match (&stats.model, stats.provider) {
        (_, Some(agent)) => format!("what a turn costs is up to {agent}, which makes the calls"),
        (Some(model), None) => {
            format!("`{}` is not in the table of models of {}: no prices", visible_line(model), stats.as_of)
        }
        (None, None) => "name a model with `--model` to see what a turn costs".to_owned(),
    }
}

/// Returns the columns of a table of figures.
pub(crate) fn figures_columns(first: &str) -> Vec<Column> {
    let figures = ["tokens", "read", "written", "uncached", "USD"].map(Column::number);
    std::iter::once(Column::word(first)).chain(figures).collect()
}

/// Formats a row of figures.
pub(crate) fn figures_row(name: &str, figures: &Figures) -> Vec<Cell> {
    let written = figures.written + figures.written_1h;
    let numbers = [figures.input_tokens, figures.read, written, figures.uncached];
    let numbers = numbers.into_iter().map(|number| Cell::plain(grouped(number)).right());
    let usd = figures.usd.map_or_else(|| "?".to_owned(), |usd| format!("{usd:.6}"));
    std::iter::once(Cell::plain(name)).chain(numbers).chain([Cell::plain(usd).right()]).collect()
}
