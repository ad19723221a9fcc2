//! Aligned columns for people.

use anstyle::Style;

/// A cell: its text, how it looks and where it stands in its column.
pub(crate) struct Cell {
    text: String,
    style: Style,
    side: Side,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style, side: Side::Left }
    }

    /// Moves it to the right side of its column, where numbers stand.
    pub(crate) fn right(self) -> Self {
        Self { side: Side::Right, ..self }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::new())
    }
}

/// Lays rows out in columns, two spaces apart, without trailing spaces.
pub(crate) fn layout(rows: &[Vec<Cell>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[Cell], widths: &[usize]) -> String {
    let mut line = String::new();
    let last = row.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or(0);
    for (column, cell) in row.iter().enumerate().take(last + 1) {
        let Cell { text, style, side } = cell;
        let room = widths[column] - text.chars().count();
        let (before, after) = if *side == Side::Right { (room, 0) } else { (0, room) };
        let after = if column == last { 0 } else { after + 2 };
        line.push_str(&format!("{:before$}{style}{text}{style:#}{:after$}", "", ""));
    }
    line.push('\n');
    line
}

/// Shortens a text to one line of at most `characters_max` characters, saying what is missing.
pub(crate) fn one_line(text: &str, characters_max: usize) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let more = lines.count();
    let mut shown: String = first.chars().take(characters_max).collect();
    if first.chars().count() > characters_max {
        shown.pop();
        shown.push('…');
    }
    if more > 0 {
        shown.push_str(&format!(" (+{more} lines)"));
    }
    shown
}
