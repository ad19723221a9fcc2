//! The report as one HTML page without scripts and without external resources.

use std::fmt::Write as _;

use proem_core::text_safety::escape::escape_line;

use super::report::{ReportDay, TrafficReport};
use super::verdict::CallVerdict;

/// Misses that the page lists.
const ROWS: usize = 1_000;

/// Days that the chart shows, the newest ones.
const CHART_DAYS: usize = 60;

/// The size of the chart, in units of its drawing.
const CHART_WIDTH: f64 = 900.0;
const CHART_HEIGHT: f64 = 160.0;

/// The style of the page. The colours are those of the web pages.
const STYLE: &str = include_str!("report.css");

/// Writes text so that it cannot become markup.
fn escaped(text: &str) -> String {
    let mut shown = String::new();
    for letter in escape_line(text).chars() {
        match letter {
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

impl TrafficReport {
    /// Returns the page.
    #[must_use]
    pub fn to_html(&self, with_expected: bool) -> String {
        let mut page = String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">");
        page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
        page.push_str("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">");
        let _ = write!(page, "<title>proem report</title><style>{STYLE}</style><h1>Cache report</h1>");
        self.tiles(&mut page);
        self.days(&mut page);
        page.push_str("<h2>Why the cache missed</h2><div class=\"scrolled\"><table><tr><th>USD<th>tokens<th>verdict<th>place<th>owner<th>advice</tr>");
        let misses = self.misses(with_expected);
        misses.iter().take(ROWS).for_each(|call| row(&mut page, call));
        page.push_str("</table></div>");
        if misses.len() > ROWS {
            let _ = write!(page, "<p>{} more are in the JSON.</p>", misses.len() - ROWS);
        }
        if !self.notes.is_empty() {
            page.push_str("<h2>Notes</h2><ul>");
            for note in self.notes.iter().take(ROWS) {
                let _ = write!(page, "<li>{}", escaped(&note.message));
            }
            page.push_str("</ul>");
        }
        let (rules, prices) = (escaped(&self.rules_as_of), escaped(&self.prices_as_of));
        let _ = write!(page, "<p class=\"dim\">rules of {rules}, prices of {prices}</p></html>");
        page
    }

    /// Writes the sums.
    fn tiles(&self, page: &mut String) {
        let totals = &self.totals;
        let list = if totals.is_list_price { ", list price" } else { "" };
        let tiles = [
            ("Spent", format!("${:.4}", totals.usd), format!("{} calls{list}", totals.calls)),
            (
                "Read from the cache",
                totals.hit_share(),
                format!("{} tokens; {} written, {} uncached", totals.read, totals.written, totals.uncached),
            ),
            (
                "Lost",
                format!("${:.4}", totals.lost()),
                format!("${:.4} of it to our changes", totals.lost_usd.ours),
            ),
            (
                "Lost by the provider",
                format!("${:.4}", totals.lost_usd.provider),
                "nothing changed, and yet it missed".to_owned(),
            ),
        ];
        page.push_str("<dl class=\"tiles\">");
        for (name, figure, remark) in tiles {
            let _ =
                write!(page, "<div><dt>{name}<dd><b>{figure}</b><span class=\"dim\">{remark}</span></div>");
        }
        page.push_str("</dl>");
    }

    /// Writes the days, as a chart and as a table.
    fn days(&self, page: &mut String) {
        let days = &self.totals.by_day;
        page.push_str("<h2>Tokens per day</h2>");
        let shown: Vec<(&String, &ReportDay)> =
            days.iter().skip(days.len().saturating_sub(CHART_DAYS)).collect();
        let most = shown.iter().map(|(_, sum)| sum.input).max().unwrap_or(0);
        if most > 0 {
            chart(page, &shown, most);
        }
        page.push_str("<div class=\"scrolled\"><table><tr><th>day<th>calls<th>read<th>USD<th>lost</tr>");
        for (day, sum) in days {
            let (day, share) = (escaped(day), share(sum.read, sum.input));
            let _ = write!(
                page,
                "<tr><td>{day}<td>{}<td>{share}<td>{:.4}<td>{:.4}</tr>",
                sum.calls, sum.usd, sum.lost_usd
            );
        }
        page.push_str("</table></div>");
    }
}

/// Draws the days as bars: what was read from the cache below what was not.
fn chart(page: &mut String, days: &[(&String, &ReportDay)], most: u64) {
    let step = CHART_WIDTH / number(days.len() as u64).max(1.0);
    let width = (step * 0.7).min(36.0);
    let _ = write!(
        page,
        "<p class=\"legend dim\"><i class=\"read\"></i> read from the cache <i class=\"rest\"></i> written or uncached</p>\
         <svg viewBox=\"0 0 {CHART_WIDTH} {CHART_HEIGHT}\" role=\"img\" aria-label=\"Tokens per day; a table follows\">"
    );
    for (index, (day, sum)) in days.iter().enumerate() {
        let x = number(index as u64).mul_add(step, (step - width) / 2.0);
        let height = |tokens: u64| CHART_HEIGHT * number(tokens) / number(most);
        let (all, read) = (height(sum.input), height(sum.read));
        let _ = write!(
            page,
            "<g><title>{}: {} of {} tokens read</title>\
             <rect class=\"rest\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\
             <rect class=\"read\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{read:.1}\"/></g>",
            escaped(day),
            sum.read,
            sum.input,
            CHART_HEIGHT - all,
            all - read,
            CHART_HEIGHT - read,
        );
    }
    page.push_str("</svg>");
}

#[expect(clippy::cast_precision_loss, reason = "a chart needs no more than the first digits")]
const fn number(count: u64) -> f64 {
    count as f64
}

/// Returns a share in percent, rounded down.
pub(super) fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        whole => format!("{} %", u128::from(part) * 100 / u128::from(whole)),
    }
}

fn row(page: &mut String, call: &CallVerdict) {
    let usd = call.lost_usd.map_or_else(|| "?".to_owned(), |usd| format!("{usd:.4}"));
    let mut place = String::new();
    if let Some(at) = &call.place {
        let part = at.part_after.as_deref().or(at.part_before.as_deref()).unwrap_or_default();
        place = format!("<code>{}</code>", escaped(part));
        if let Some(byte) = at.byte {
            let _ = write!(place, " byte {byte}");
        }
        for (word, text) in [("before", &at.before), ("after", &at.after)] {
            if let Some(text) = text {
                let _ = write!(place, "<br>{word} <code class=\"{word}\">{}</code>", escaped(text));
            }
        }
    }
    let advice = escaped(call.advice.as_deref().unwrap_or_default());
    let _ = write!(
        page,
        "<tr><td>{usd}<td>{}<td>{}<br>{}<td>{place}<td>{}<td>{advice}</tr>",
        call.lost_tokens,
        call.verdict.word(),
        escaped(&call.why),
        escaped(&call.owner_words())
    );
}
