//! A comparison that a server made, for people.

use anstyle::Style;
use serde_json::Value;

use crate::arguments::Format;
use crate::failure::Failure;
use crate::terminal::{print, print_json, visible_line};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Prints a comparison as a server sends it. Tells whether there is a difference.
pub(super) fn show(comparison: &Value, format: Format) -> Result<bool, Failure> {
    match format {
        Format::Json => print_json(comparison)?,
        Format::Text => print(&text(comparison))?,
    }
    Ok(!comparison["first_difference"].is_null())
}

fn text(comparison: &Value) -> String {
    let word = |value: &Value| visible_line(value.as_str().unwrap_or_default());
    let (a, b) = (word(&comparison["a"]), word(&comparison["b"]));
    let (common, first) = (&comparison["common_prefix"], &comparison["first_difference"]);
    if first.is_null() {
        return format!("{a} and {b} are the same: {} bytes that a cache can hold\n", common["bytes"]);
    }
    let message = word(&first["message"]);
    let mut text = format!("{BOLD}{message}{BOLD:#}\n\n");
    let mut row = |title: &str, value: &str| text.push_str(&format!("{DIM}{title:<14}{DIM:#}  {value}\n"));
    row("common prefix", &format!("{} bytes, {} tokens", common["bytes"], common["tokens"]));
    row("parts at", &format!("byte {} of the {}", first["byte"], place(first)));
    row("in A", &owner(&first["a"], &a));
    row("in B", &owner(&first["b"], &b));
    if let Some(time) = first["edited_at"].as_str() {
        row("written at", &visible_line(time));
    }
    row("reason", &word(&first["reason"]));
    let lost = &comparison["lost"];
    let money = match (lost["usd"].as_f64(), lost["model"].as_str()) {
        (Some(usd), Some(model)) => {
            format!(", ${usd:.6} with {} (prices of {})", visible_line(model), word(&lost["prices_as_of"]))
        }
        (None, Some(model)) => format!(", no price is known for {}", visible_line(model)),
        (_, None) => String::new(),
    };
    row("lost per call", &format!("{} tokens{money}", lost["tokens"]));
    let further: Vec<&Value> = comparison["further"].as_array().into_iter().flatten().collect();
    if !further.is_empty() {
        text.push_str(&format!("\n{DIM}further{DIM:#}\n"));
    }
    for one in further {
        let (kind, byte) = (word(&one["kind"]), &one["byte"]);
        text.push_str(&format!("  {kind:<8}  {} at byte {byte}: {}\n", place(one), word(&one["message"])));
    }
    text
}

fn place(difference: &Value) -> String {
    match difference["place"].as_str() {
        Some("tools") | None => "tools".into(),
        Some(carrier) => format!("{} carrier", visible_line(carrier)),
    }
}

/// Describes the source of a byte: a file with its line, a variable, a field of the request, or a name.
fn owner(owner: &Value, side: &str) -> String {
    if owner.is_null() {
        return format!("nothing of it ({side})");
    }
    let source = &owner["source"];
    let text = |key: &str| source[key].as_str();
    let is_end = owner["end"] == Value::Bool(true);
    let line = owner["line"].as_u64().filter(|_| !is_end).map_or_else(String::new, |line| format!(":{line}"));
    let described = match (text("key"), text("path"), text("name").or(text("field")).or(text("kind"))) {
        (Some(key), Some(path), _) => format!("[{key}] from {path}{line}"),
        (Some(key), None, _) => format!("[{key}]"),
        (None, Some(path), _) => format!("{path}{line}"),
        (None, None, name) => format!("{}{line}", name.unwrap_or_default()),
    };
    let described = match owner["line"].as_u64() {
        Some(line) if is_end => format!("end of {described} (after line {line})"),
        None if is_end => format!("end of {described}"),
        _ => described,
    };
    let section = owner["section"].as_str().map_or_else(String::new, |id| format!(", section {id}"));
    visible_line(&format!("{described}{section}"))
}
