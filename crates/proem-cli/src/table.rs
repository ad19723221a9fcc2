//! Tables with aligned columns that fit the terminal.
//!
//! On a terminal, columns of text wrap. If that is not enough, the least important columns are left out, and a line below
//! the table names them. In a pipe, every row is one line and no column is left out.

use anstyle::Style;

use crate::wrap::{cell_lines, columns};

const DIM: Style = Style::new().dimmed();

/// The space between two columns.
const GAP: usize = 2;

/// The minimum width of a column of text, unless it sets its own.
const TEXT_MIN: usize = 14;

/// A cell: its text, style and alignment.
pub(crate) struct Cell {
    text: String,
    style: Style,
    side: Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style, side: Side::Left }
    }

    /// Aligns the cell to the right, as for numbers.
    pub(crate) fn right(self) -> Self {
        Self { side: Side::Right, ..self }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::new())
    }
}

/// A column: its title, and its behaviour in a narrow terminal.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    title: String,
    side: Side,
    does_wrap: bool,
    /// The minimum width of a column of text before other columns are left out.
    least: usize,
    /// The order in which columns are left out, lowest first; `None` keeps the column.
    rank: Option<u8>,
}

impl Column {
    /// Makes a column of words that do not wrap.
    pub(crate) fn word(title: impl Into<String>) -> Self {
        Self { title: title.into(), side: Side::Left, does_wrap: false, least: TEXT_MIN, rank: None }
    }

    /// Makes a column of numbers.
    pub(crate) fn number(title: impl Into<String>) -> Self {
        Self { side: Side::Right, ..Self::word(title) }
    }

    /// Makes a column of text or paths, which wraps.
    pub(crate) fn text(title: impl Into<String>) -> Self {
        Self { does_wrap: true, ..Self::word(title) }
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Sets the minimum width of a column of text, as long as other columns can be left out.
    pub(crate) fn least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// Allows the column to be left out; the lowest rank goes first.
    pub(crate) fn dispensable(self, rank: u8) -> Self {
        Self { rank: Some(rank), ..self }
    }
}

/// Rows in columns.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    has_titles: bool,
    does_continue: bool,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        let columns = columns.into_iter().collect();
        Self { columns, rows: Vec::new(), has_titles: true, does_continue: false }
    }

    /// Omits the line of titles.
    pub(crate) fn untitled(self) -> Self {
        Self { has_titles: false, ..self }
    }

    /// Continues columns that do not fit in further tables below, each with the first column.
    pub(crate) fn continued(self) -> Self {
        Self { does_continue: true, ..self }
    }

    pub(crate) fn with(mut self, rows: impl IntoIterator<Item = Vec<Cell>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Formats the rows with two spaces between columns and none at the end of a line.
    pub(crate) fn print(&self, width: Option<usize>) -> String {
        let natural: Vec<usize> = (0..self.columns.len()).map(|column| self.natural(column)).collect();
        if self.does_continue
            && let Some(width) = width
        {
            let parts = bands(&natural, width);
            let band = |band: &Vec<usize>| self.lines(band, &self.fitted(band, &natural, Some(width)));
            return parts.iter().map(band).collect::<Vec<_>>().join("\n");
        }
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let mut dropped = Vec::new();
        while let Some(width) = width
            && self.least(&kept, &natural) > width
        {
            let ranked = kept.iter().filter_map(|column| Some((self.columns[*column].rank?, *column)));
            let Some((_, column)) = ranked.min() else { break };
            kept.retain(|other| *other != column);
            dropped.push(column);
        }
        let mut text = self.lines(&kept, &self.fitted(&kept, &natural, width));
        if !dropped.is_empty() {
            dropped.sort_unstable();
            let names: Vec<&str> =
                dropped.iter().map(|column| self.columns[*column].title.as_str()).collect();
            let columns = if names.len() == 1 { "column" } else { "columns" };
            let names = names.join(", ");
            text.push_str(&format!("{DIM}{columns} left out, for lack of room: {names}{DIM:#}\n"));
        }
        text
    }

    /// Returns the width of the widest cell of a column, including its title.
    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| columns(&cell.text)).max().unwrap_or(0);
        if self.has_titles { widest.max(columns(&self.columns[column].title)) } else { widest }
    }

    /// Returns the minimum width of the columns together.
    fn least(&self, kept: &[usize], natural: &[usize]) -> usize {
        let least = |column: &usize| {
            let Column { does_wrap, least, .. } = self.columns[*column];
            if does_wrap { natural[*column].min(least) } else { natural[*column] }
        };
        kept.iter().map(least).sum::<usize>() + GAP * kept.len().saturating_sub(1)
    }

    /// Returns the widths of the columns. In a narrow terminal, columns of text share the space that the others leave.
    fn fitted(&self, kept: &[usize], natural: &[usize], width: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = kept.iter().map(|column| natural[*column]).collect();
        let all = widths.iter().sum::<usize>() + GAP * kept.len().saturating_sub(1);
        let Some(width) = width.filter(|width| all > *width) else { return widths };
        let mut wrapping: Vec<usize> =
            (0..kept.len()).filter(|index| self.columns[kept[*index]].does_wrap).collect();
        let fixed: usize = all - wrapping.iter().map(|index| widths[*index]).sum::<usize>();
        let mut room = width.saturating_sub(fixed);
        // Narrow columns keep their width; the others share the rest.
        wrapping.sort_by_key(|index| widths[*index]);
        let count = wrapping.len();
        for (place, index) in wrapping.iter().enumerate() {
            // Reserve the minimum widths of the wider columns.
            let theirs: usize = wrapping
                .iter()
                .skip(place + 1)
                .map(|other| self.columns[kept[*other]].least.min(widths[*other]))
                .sum();
            let least = self.columns[kept[*index]].least.min(widths[*index]);
            let share = (room / (count - place)).min(room.saturating_sub(theirs)).max(least.min(room));
            let own = widths[*index].min(share.max(TEXT_MIN.min(widths[*index])));
            widths[*index] = own;
            room = room.saturating_sub(own);
        }
        widths
    }

    fn lines(&self, kept: &[usize], widths: &[usize]) -> String {
        let mut text = String::new();
        if self.has_titles {
            let titles: Vec<Cell> = kept
                .iter()
                .map(|column| &self.columns[*column])
                .map(|column| Cell { text: column.title.clone(), style: DIM, side: column.side })
                .collect();
            text.push_str(&row_lines(&titles.iter().collect::<Vec<_>>(), widths));
        }
        let empty = Cell::plain("");
        for row in &self.rows {
            let cells: Vec<&Cell> = kept.iter().map(|column| row.get(*column).unwrap_or(&empty)).collect();
            text.push_str(&row_lines(&cells, widths));
        }
        text
    }
}

/// Groups columns so that each group fits, with the first column in every one.
fn bands(natural: &[usize], width: usize) -> Vec<Vec<usize>> {
    // The first column wraps, so it does not need its full width.
    let first = natural.first().copied().unwrap_or(0).min((width / 3).max(TEXT_MIN));
    let mut bands = vec![vec![0]];
    let mut taken = first;
    for (column, own) in natural.iter().enumerate().skip(1) {
        if taken + GAP + own > width && bands.last().is_some_and(|band| band.len() > 1) {
            bands.push(vec![0]);
            taken = first;
        }
        taken += GAP + own;
        if let Some(band) = bands.last_mut() {
            band.push(column);
        }
    }
    bands
}

/// Formats a row, with as many lines as its tallest cell.
fn row_lines(row: &[&Cell], widths: &[usize]) -> String {
    let cells: Vec<Vec<String>> =
        row.iter().zip(widths).map(|(cell, width)| cell_lines(&cell.text, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    (0..height).map(|index| line(row, &cells, widths, index)).collect()
}

fn line(row: &[&Cell], cells: &[Vec<String>], widths: &[usize], index: usize) -> String {
    let text = |column: usize| cells[column].get(index).map_or("", String::as_str);
    let mut line = String::new();
    let last = (0..row.len()).rfind(|column| !text(*column).is_empty());
    for column in 0..last.map_or(0, |last| last + 1) {
        let (text, style) = (text(column), row[column].style);
        let room = widths[column].saturating_sub(columns(text));
        let (before, after) = if row[column].side == Side::Right { (room, 0) } else { (0, room) };
        let after = if Some(column) == last { 0 } else { after + GAP };
        line.push_str(&format!("{:before$}{style}{text}{style:#}{:after$}", "", ""));
    }
    line.push('\n');
    line
}

/// Shortens a text to one line of at most `characters_max` characters, and appends the number of lines left out.
pub(crate) fn one_line(text: &str, characters_max: usize) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let more = lines.count();
    let mut shown: String = first.chars().take(characters_max).collect();
    if first.chars().count() > characters_max {
        shown.pop();
        // Cut between two words, unless the last word is very long.
        let end = shown.rfind(' ').filter(|end| *end > shown.len() / 2).unwrap_or(shown.len());
        shown.truncate(end);
        shown.push('…');
    }
    if more > 0 {
        shown.push_str(&format!(" (+{more} lines)"));
    }
    shown
}

/// Returns the maximum number of characters of a value: `characters_max` on a terminal, and no limit in a pipe.
pub(crate) const fn shortened(characters_max: usize, width: Option<usize>) -> usize {
    match width {
        Some(_) => characters_max,
        None => usize::MAX,
    }
}

/// Formats a number with commas between thousands.
pub(crate) fn grouped(number: usize) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |cells: [&str; 4]| {
            let [bytes, name, file, why] = cells.map(Cell::plain);
            vec![bytes.right(), name, file, why]
        };
        Table::new([
            Column::number("bytes"),
            Column::word("name"),
            Column::text("file"),
            Column::text("why").dispensable(1),
        ])
        .with([
            row(["7", "a", "src/parser/AGENTS.md", "a file of the same folder comes first"]),
            row(["1234", "beta", "AGENTS.md", ""]),
        ])
    }

    fn print(width: Option<usize>) -> String {
        anstream::adapter::strip_str(&table().print(width)).to_string()
    }

    #[test]
    fn without_a_width_every_row_is_one_line() {
        let expected = "\
bytes  name  file                  why
    7  a     src/parser/AGENTS.md  a file of the same folder comes first
 1234  beta  AGENTS.md
";
        assert_eq!(print(None), expected);
        assert_eq!(print(Some(80)), expected);
    }

    #[test]
    fn text_wraps_where_there_is_little_room() {
        let expected = "\
bytes  name  file            why
    7  a     src/parser/     a file of the
             AGENTS.md       same folder
                             comes first
 1234  beta  AGENTS.md
";
        assert_eq!(print(Some(43)), expected);
    }

    #[test]
    fn columns_that_are_left_out_are_named() {
        let expected = "\
bytes  name  file
    7  a     src/parser/
             AGENTS.md
 1234  beta  AGENTS.md
column left out, for lack of room: why
";
        assert_eq!(print(Some(32)), expected);
    }

    #[test]
    fn further_tables_take_the_columns_that_do_not_fit() {
        let row = |cells: [&str; 4]| cells.map(Cell::plain).into();
        let table = Table::new([
            Column::text("file"),
            Column::word("claude-code"),
            Column::word("codex"),
            Column::word("gemini-cli"),
        ])
        .continued()
        .with([row(["AGENTS.md", "used", "used", "-"])]);
        let expected = "\
file       claude-code  codex
AGENTS.md  used         used

file       gemini-cli
AGENTS.md  -
";
        assert_eq!(anstream::adapter::strip_str(&table.print(Some(32))).to_string(), expected);
        let expected = "file       claude-code  codex  gemini-cli\nAGENTS.md  used         used   -\n";
        assert_eq!(anstream::adapter::strip_str(&table.print(None)).to_string(), expected);
    }
}
