//! The text output of a comparison of two prompts, made locally or by a server.

use anstyle::{AnsiColor, Style};
use proem::compare::{ChangedLine, Side, changed_lines};
use serde_json::Value;

use crate::arguments::Format;
use crate::failure::Failure;
use crate::terminal::{output_columns, print, print_json, visible, visible_line};
use crate::wrap::flow;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The start of a continuation line. A space there would look like a line of both prompts.
const CONTINUED: &str = "  … ";

/// A comparison for people.
pub(crate) struct Page<'p> {
    /// The comparison in the format of `proem diff --format json`.
    pub(crate) comparison: &'p Value,
    /// The carriers that differ.
    pub(crate) texts: Vec<Texts<'p>>,
    /// Lines of text around differences; 0 hides the text.
    pub(crate) context: usize,
    /// The text after the lost tokens if no model is known.
    pub(crate) without_model: &'static str,
}

/// Both texts of a carrier.
pub(crate) struct Texts<'p> {
    pub(crate) carrier: &'p str,
    pub(crate) before: &'p str,
    pub(crate) after: &'p str,
}

/// Prints the response of a server: the comparison, and the `carriers` that differ. Returns `true` if there is a
/// difference.
pub(crate) fn show_answer(
    (comparison, carriers, of_notice): (&Value, &Value, Option<(Value, Value)>),
    context: usize,
    format: Format,
) -> Result<bool, Failure> {
    let texts = carriers.as_array().into_iter().flatten().map(|one| Texts {
        carrier: one["carrier"].as_str().unwrap_or_default(),
        before: one["before"].as_str().unwrap_or_default(),
        after: one["after"].as_str().unwrap_or_default(),
    });
    match format {
        Format::Json => {
            let mut comparison = comparison.clone();
            if let Some((notice, rebuild)) = of_notice {
                comparison["notice"] = notice;
                comparison["rebuild"] = rebuild;
            }
            print_json(&comparison)?;
        }
        Format::Text => {
            let page = Page { comparison, texts: texts.collect(), context, without_model: "" };
            let prices = of_notice.map_or_else(String::new, |(notice, rebuild)| prices(&notice, &rebuild));
            print(&(page.text() + &prices))?;
        }
    }
    Ok(!comparison["first_difference"].is_null())
}

/// Formats the price of a notice against that of a rebuild; nothing where neither is due.
pub(crate) fn prices(notice: &Value, rebuild: &Value) -> String {
    let tokens = |price: &Value| {
        let about = if price["exact"] == Value::Bool(true) { "" } else { "about " };
        format!("{about}{} tokens", price["tokens"])
    };
    let mut text = String::new();
    if notice.is_object() {
        let sections = notice["sections"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let sections = visible_line(&sections.collect::<Vec<_>>().join(", "));
        text.push_str(&format!(
            "notice: the next turn announces changes of {sections}; {} for the rest of the conversation\n",
            tokens(notice)
        ));
    }
    if rebuild.is_object() {
        text.push_str(&format!(
            "rebuild: {} of the prompt are read again once, and all messages after it\n",
            tokens(rebuild)
        ));
    }
    match (notice.is_object() && rebuild.is_object(), rebuild["cheaper_after_turns"].as_u64()) {
        (false, _) => {}
        (true, Some(0)) => text.push_str("cheaper: the rebuild, at once\n"),
        (true, Some(turns)) => {
            let by = rebuild["compared_by"].as_str().unwrap_or_default();
            text.push_str(&format!(
                "cheaper: the notice, for fewer than {turns} turns (compared by {by}, without the messages)\n"
            ));
        }
        (true, None) => text.push_str("cheaper: the notice\n"),
    }
    text
}

impl Page<'_> {
    pub(crate) fn text(&self) -> String {
        let (a, b) = (word(&self.comparison["a"]), word(&self.comparison["b"]));
        let (common, first) = (&self.comparison["common_prefix"], &self.comparison["first_difference"]);
        if first.is_null() {
            return format!("{a} and {b} are the same: {} bytes that a cache can hold\n", common["bytes"]);
        }
        let width = output_columns();
        let cause = capitalised(&word(&first["message"]));
        let mut text = flow(&format!("{BOLD}{cause}{BOLD:#}\n\n"), width, "");
        let mut row = |title: &str, value: &str| {
            text.push_str(&flow(&format!("{DIM}{title:<14}{DIM:#}  {value}\n"), width, "                "));
        };
        row("common prefix", &format!("{} bytes, {} tokens", common["bytes"], common["tokens"]));
        row("diverges at", &format!("byte {} of the {}", first["byte"], place(first)));
        row("in A", &owner(&first["a"], &a));
        row("in B", &owner(&first["b"], &b));
        if let Some(time) = first["edited_at"].as_str() {
            row("written at", &visible_line(time));
        }
        row("reason", &word(&first["reason"]));
        let lost = &self.comparison["lost"];
        let lacks_tools = lost["lacks_tools"] == Value::Bool(true);
        row("lost per call", &self.lost(lost, lacks_tools));
        // Older servers do not send it.
        if let Some(counted) = self.comparison["counted"].as_str() {
            row("counted", &visible_line(counted));
        }
        if lacks_tools {
            row("", "without the tools, of which a saved build of an older proem has only the digest");
        }
        text + &self.further() + &self.changes()
    }

    fn lost(&self, lost: &Value, lacks_tools: bool) -> String {
        let money = match (lost["usd"].as_f64(), lost["model"].as_str()) {
            (Some(usd), Some(model)) => {
                format!(
                    ", ${usd:.6} with {} (prices of {})",
                    visible_line(model),
                    word(&lost["prices_as_of"])
                )
            }
            (None, Some(model)) => format!(", no price is known for {}", visible_line(model)),
            (_, None) => self.without_model.to_owned(),
        };
        let cache = lost["provider"]
            .as_str()
            .map_or_else(String::new, |name| format!(" of {}'s cache", visible_line(name)));
        let least = if lacks_tools { "at least " } else { "" };
        format!("{least}{} tokens{cache}{money}", lost["tokens"])
    }

    /// Formats the other differences, one line each.
    fn further(&self) -> String {
        let further: Vec<&Value> = self.comparison["further"].as_array().into_iter().flatten().collect();
        if further.is_empty() {
            return String::new();
        }
        let mut text = format!("\n{DIM}further{DIM:#}\n");
        for one in further {
            let (kind, byte) = (word(&one["kind"]), &one["byte"]);
            let line = format!("  {kind:<8}  {} at byte {byte}: {}\n", place(one), word(&one["message"]));
            text.push_str(&flow(&line, output_columns(), "            "));
        }
        text
    }

    /// Formats the texts that differ, line by line.
    fn changes(&self) -> String {
        let mut shown = String::new();
        for Texts { carrier, before, after } in self.texts.iter().filter(|_| self.context > 0) {
            shown.push_str(&format!("\n{DIM}--- {}{DIM:#}\n", visible_line(carrier)));
            shown.push_str(&hunks(before, after, self.context));
        }
        shown
    }
}

fn word(value: &Value) -> String {
    visible_line(value.as_str().unwrap_or_default())
}

fn place(difference: &Value) -> String {
    match difference["place"].as_str() {
        Some("tools") | None => "tools".into(),
        Some(carrier) => format!("{} carrier", visible_line(carrier)),
    }
}

/// Describes the source of a byte with its line, as notes do.
fn owner(owner: &Value, side: &str) -> String {
    if owner.is_null() {
        return format!("nothing ({side})");
    }
    let source = &owner["source"];
    let text = |key: &str| source[key].as_str().unwrap_or_default();
    let is_end = owner["end"] == Value::Bool(true);
    let line = owner["line"].as_u64().filter(|_| !is_end).map_or_else(String::new, |line| format!(":{line}"));
    let described = match text("kind") {
        "built_in" => format!("built-in {}", text("name")),
        "variable" if !text("path").is_empty() && !line.is_empty() => {
            format!("[{}] from {}", text("key"), text("path"))
        }
        "variable" => format!("[{}]", text("key")),
        "request" => format!("request field `{}`", text("field")),
        "pack" => format!("{}, `{}`", text("path"), text("key")),
        "profile" => format!("profile {}, {}", text("profile"), text("key")),
        "hook" => format!("hook {}", text("name")),
        _ => text("path").to_owned(),
    };
    let described = match owner["line"].as_u64() {
        Some(line) if is_end => format!("end of {described} (after line {line})"),
        None if is_end => format!("end of {described}"),
        _ => described,
    };
    let section = owner["section"].as_str().map_or_else(String::new, |id| format!(", section {id}"));
    visible_line(&format!("{described}{line}{section}"))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().filter(char::is_ascii_lowercase);
    first
        .map_or_else(|| text.to_owned(), |first| first.to_ascii_uppercase().to_string() + characters.as_str())
}

fn hunks(before: &str, after: &str, context: usize) -> String {
    let mut shown = String::new();
    for (index, group) in changed_lines(before, after, context).iter().enumerate() {
        if index > 0 {
            shown.push_str(&format!("{DIM}…{DIM:#}\n"));
        }
        for ChangedLine { side, text } in group {
            let (sign, style) = match side {
                Side::Before => ("-", AnsiColor::Red.on_default()),
                Side::After => ("+", AnsiColor::Green.on_default()),
                Side::Both => (" ", Style::new()),
            };
            let end = if text.ends_with('\n') { "" } else { " (no line break)" };
            let line = format!("{style}{sign}{}{end}{style:#}\n", visible(text.trim_end_matches('\n')));
            shown.push_str(&flow(&line, output_columns(), CONTINUED));
        }
    }
    shown
}
