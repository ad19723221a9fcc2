//! The report as one HTML page without scripts and without external resources.

use std::fmt::Write as _;

use proem_core::text_safety::escape::escape_line;

use super::report::TrafficReport;
use super::verdict::CallVerdict;

/// Misses that the page lists.
const ROWS: usize = 1_000;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222;\
background:#fff}table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;\
border-bottom:1px solid #ddd}code{background:#f3f3f3;padding:0 .2rem;overflow-wrap:anywhere}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}code{background:#2a2a2a}td,th{border-color:#444}}";

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
        let totals = &self.totals;
        let mut page = String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">");
        page.push_str("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">");
        let _ = write!(page, "<title>proem report</title><style>{STYLE}</style><h1>Cache report</h1>");
        let _ = write!(
            page,
            "<p>{} calls; {} tokens read, {} written, {} uncached; ${:.4}, of which ${:.4} lost.</p>",
            totals.calls,
            totals.read,
            totals.written,
            totals.uncached,
            totals.usd,
            totals.lost()
        );
        page.push_str("<h2>Days</h2><table><tr><th>day<th>calls<th>read<th>USD<th>lost</tr>");
        for (day, sum) in &totals.by_day {
            let (day, share) = (escaped(day), share(sum.read, sum.input));
            let _ = write!(
                page,
                "<tr><td>{day}<td>{}<td>{share}<td>{:.4}<td>{:.4}</tr>",
                sum.calls, sum.usd, sum.lost_usd
            );
        }
        page.push_str(
            "</table><h2>Misses</h2><table><tr><th>USD<th>tokens<th>verdict<th>place<th>owner<th>advice</tr>",
        );
        let misses = self.misses(with_expected);
        misses.iter().take(ROWS).for_each(|call| row(&mut page, call));
        page.push_str("</table>");
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
        let _ = write!(page, "<p>rules of {rules}, prices of {prices}</p></html>");
        page
    }
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
                let _ = write!(place, "<br>{word} <code>{}</code>", escaped(text));
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
