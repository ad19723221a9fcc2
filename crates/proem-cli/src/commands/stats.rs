//! The table of `proem build --stats`.

use anstyle::Style;
use proem::simulate::Figures;
use proem::stats::Stats;
use proem::tokens::TokenBounds;

use crate::table::{Cell, layout};
use crate::terminal::visible_line;

const TITLE: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Tokens by section and carrier, and what a turn costs.
pub(super) fn page(stats: &Stats) -> String {
    let mut rows = vec![head(["section", "carrier", "stability", "bytes", "tokens", "cached"])];
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
    let mut page = layout(&rows);
    page.push_str(&format!("\ntokens   {}\n", stats.counted));
    page.push_str(&prefix(stats));
    page.push_str(&turns(stats));
    page
}

fn head<const N: usize>(titles: [&str; N]) -> Vec<Cell> {
    let cell = |title: &str| match title {
        "bytes" | "tokens" => Cell::new(title, TITLE).right(),
        _ => Cell::new(title, TITLE),
    };
    titles.into_iter().map(cell).collect()
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

fn turns(stats: &Stats) -> String {
    let Some((cold, warm)) = stats.cold.as_ref().zip(stats.warm.as_ref()) else {
        return format!("{DIM}{}{DIM:#}\n", no_turns(stats));
    };
    let mut rows = vec![figures_head("turn")];
    rows.push(figures_row("cold", cold));
    rows.push(figures_row("warm", warm));
    let provider = stats.provider.unwrap_or_default();
    let what = if cold.usd.is_some() { "rules and prices" } else { "rules" };
    let prices = format!("{DIM}{what} of {provider} as of {}{DIM:#}", stats.as_of);
    format!("\n{}{prices}\n", layout(&rows))
}

/// Why nothing is said about turns.
fn no_turns(stats: &Stats) -> String {
    match (&stats.model, stats.provider) {
        (_, Some(agent)) => format!("what a turn costs is up to {agent}, which makes the calls"),
        (Some(model), None) => {
            format!("`{}` is not in the table of models of {}: no prices", visible_line(model), stats.as_of)
        }
        (None, None) => "name a model with `--model` to see what a turn costs".to_owned(),
    }
}

/// The titles of a table of figures.
pub(super) fn figures_head(first: &str) -> Vec<Cell> {
    let titles = [first, "tokens", "read", "written", "uncached", "USD"];
    titles
        .into_iter()
        .enumerate()
        .map(|(index, title)| {
            let cell = Cell::new(title, TITLE);
            if index == 0 { cell } else { cell.right() }
        })
        .collect()
}

/// A row of figures.
pub(super) fn figures_row(name: &str, figures: &Figures) -> Vec<Cell> {
    let written = figures.written + figures.written_1h;
    let numbers = [figures.input_tokens, figures.read, written, figures.uncached];
    let numbers = numbers.into_iter().map(|number| Cell::plain(grouped(number)).right());
    let usd = figures.usd.map_or_else(|| "?".to_owned(), |usd| format!("{usd:.6}"));
    std::iter::once(Cell::plain(name)).chain(numbers).chain([Cell::plain(usd).right()]).collect()
}

/// A number with its thousands apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
