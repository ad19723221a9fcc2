//! One line about a call, as `proem watch` prints it, and the summary of several.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proem::traffic::report::{ReportTotals, TrafficReport};
use proem::traffic::{CacheVerdict, CallVerdict};

use crate::terminal::visible_line;

/// Misses that a summary names.
const MISSES_SHOWN: usize = 3;

/// Formats a call: `14:02:11 main hit 97 % 18.2k read 0.6k new $0.012`.
pub(crate) fn call_line(call: &CallVerdict, zone: &TimeZone) -> String {
    let at = call.at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
    let at = at.map_or_else(
        || "--:--:--".to_owned(),
        |at| at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string(),
    );
    let thread = call.thread.as_deref().map_or("main", |thread| thread);
    let thread: String = thread.chars().take(12).collect();
    visible_line(&format!("{at} {thread} {}", outcome(call)))
}

fn outcome(call: &CallVerdict) -> String {
    let usd = |usd: Option<f64>| usd.map_or_else(|| "no price".to_owned(), money);
    if call.alarming {
        let lost = thousands(call.lost_tokens);
        return format!("MISS {}, {lost} tokens, {}", miss(call), usd(call.lost_usd));
    }
    let new = call.written.unwrap_or(0).saturating_add(call.uncached.unwrap_or(0));
    let read = call.read.unwrap_or(0);
    let word = call.verdict.word().replace('_', " ");
    if call.read.is_none() && call.written.is_none() && call.uncached.is_none() {
        return format!("{word}: {}", call.why);
    }
    let share = share(read, read.saturating_add(new));
    let word = if call.verdict == CacheVerdict::Hit { format!("hit {share}") } else { word };
    format!("{word} {} read {} new {}", thousands(read), thousands(new), usd(call.usd))
}

/// Formats a miss: `tools reordered: mcp__github__search moved`.
pub(crate) fn miss(call: &CallVerdict) -> String {
    let verb = match call.verdict {
        CacheVerdict::ToolsReordered => "moved",
        CacheVerdict::ToolsAdded => "added",
        CacheVerdict::ToolsRemoved | CacheVerdict::MessageRemoved => "removed",
        CacheVerdict::ToolsRedefined | CacheVerdict::SystemChanged | CacheVerdict::MessageEdited => "changed",
        _ => "",
    };
    let place = call.place.as_ref();
    let part = place.and_then(|place| place.part_after.as_ref().or(place.part_before.as_ref()));
    let owner = call.owner.as_ref();
    let file = owner.and_then(|owner| {
        let line = owner.line.map_or_else(String::new, |line| format!(":{line}"));
        Some(owner.path.clone()? + &line)
    });
    // A part such as `tools[3] "search"` names the tool itself.
    let quoted = part.and_then(|part| part.split('"').nth(1)).map(str::to_owned);
    let name =
        file.or(quoted).or_else(|| owner.and_then(|owner| owner.name.clone())).or_else(|| part.cloned());
    let word = call.verdict.word().replace('_', " ");
    match name.filter(|_| !verb.is_empty()) {
        Some(name) => format!("{word}: {name} {verb}"),
        None => format!("{word}: {}", call.why),
    }
}

/// Formats the sums of calls, and the misses that cost most.
pub(crate) fn summary(report: &TrafficReport) -> Vec<String> {
    let totals = &report.totals;
    let list = if totals.is_list_price { " (list price)" } else { "" };
    let unpriced = match totals.unpriced {
        0 => String::new(),
        count => format!(", {count} without a price"),
    };
    let mut lines = vec![format!(
        "{}: {} of the input read from the cache, {} spent{list}{unpriced}, {} lost",
        count(totals.calls, "call"),
        totals.hit_share(),
        money(totals.usd),
        money(totals.lost())
    )];
    let misses = report.misses(false);
    for call in misses.iter().take(MISSES_SHOWN) {
        let usd = call.lost_usd.map_or_else(|| "no price".to_owned(), money);
        let owner = call.owner_words();
        let owner = if owner.is_empty() { owner } else { format!(" ({owner})") };
        lines.push(visible_line(&format!(
            "lost {usd}, {} tokens: {}{owner}",
            thousands(call.lost_tokens),
            miss(call)
        )));
    }
    if misses.len() > MISSES_SHOWN {
        lines.push(format!("and {}", count(misses.len() - MISSES_SHOWN, "more miss")));
    }
    lines.extend(expected(totals));
    lines
}

/// Names the misses that are expected, in one line.
fn expected(totals: &ReportTotals) -> Option<String> {
    let expected = ["expired", "compaction", "fork", "model_changed", "parameter_changed"];
    let sums = expected.iter().filter_map(|word| Some((word, totals.by_verdict.get(*word)?)));
    let named: Vec<String> = sums
        .map(|(word, sum)| format!("{} {} ({})", sum.calls, word.replace('_', " "), money(sum.lost_usd)))
        .collect();
    (!named.is_empty()).then(|| format!("expected: {}", named.join(", ")))
}

fn count(number: usize, what: &str) -> String {
    let plural = match (number, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {what}{plural}")
}

/// Formats money: cents from ten cents on, else three digits.
fn money(usd: f64) -> String {
    if usd == 0.0 || usd >= 0.1 { format!("${usd:.2}") } else { format!("${usd:.3}") }
}

/// Formats tokens: `18.2k`.
fn thousands(tokens: u64) -> String {
    format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100)
}

fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        whole => format!("{} %", u128::from(part) * 100 / u128::from(whole)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(json: &str) -> CallVerdict {
        let common = r#""id":"r","conversation":"c","purpose":"main","provider":"anthropic","why":"w","at":"2026-11-17T14:02:11Z""#;
        serde_json::from_str(&format!("{{{common},{json}}}")).expect("it is a call")
    }

    #[test]
    fn a_call_is_one_line() {
        for (json, expected) in [
            (
                r#""verdict":"hit","alarming":false,"lost_tokens":0,"read":18200,"written":500,"uncached":62,"usd":0.0121"#,
                "14:02:11 main hit 97 % 18.2k read 0.5k new $0.012",
            ),
            (
                r#""verdict":"tools_reordered","alarming":true,"lost_tokens":41200,"lost_usd":0.2111,"where":{"part_after":"tools[3] \"mcp__github__search\""},
                   "owner":{"kind":"mcp_server","name":"github"}"#,
                "14:02:11 main MISS tools reordered: mcp__github__search moved, 41.2k tokens, $0.21",
            ),
            (
                r#""verdict":"system_changed","alarming":true,"lost_tokens":900,"thread":"agent-1234567890","where":{"part_after":"system[2]"},
                   "owner":{"kind":"instruction_file","path":"/p/CLAUDE.md","line":3}"#,
                "14:02:11 agent-123456 MISS system changed: /p/CLAUDE.md:3 changed, 0.9k tokens, no price",
            ),
            (
                r#""verdict":"provider","alarming":true,"lost_tokens":900,"lost_usd":0.02"#,
                "14:02:11 main MISS provider: w, 0.9k tokens, $0.020",
            ),
            (
                r#""verdict":"cold_start","alarming":false,"lost_tokens":0,"read":0,"written":5000,"uncached":3,"usd":0.5"#,
                "14:02:11 main cold start 0.0k read 5.0k new $0.50",
            ),
            (r#""verdict":"unknown","alarming":false,"lost_tokens":0"#, "14:02:11 main unknown: w"),
        ] {
            assert_eq!(call_line(&call(json), &TimeZone::UTC), expected);
        }
    }
}
