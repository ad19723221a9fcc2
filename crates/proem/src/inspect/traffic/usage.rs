//! Reads the usage out of a provider's answer while it arrives: server-sent events, JSON, or lines of JSON.
//!
//! The scanner keeps one line of a stream, or one answer that is not a stream. It never keeps the text of the model.

use memchr::memmem;
use proem_core::limit::{TRAFFIC_ANSWER_BYTES_MAX, TRAFFIC_EVENT_BYTES_MAX};
use serde_json::Value;

use super::call::{CallUsage, ProviderReason};

/// The facts about a call that its answer holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScannedAnswer {
    /// The tokens, as far as the provider reported them.
    pub usage: CallUsage,
    /// The provider's id of the answer.
    pub id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The reason that the provider gave for a miss.
    pub reason: Option<ProviderReason>,
    /// The events or parts that were over a limit, and so were not read.
    pub over_limit: usize,
}

/// Reads an answer in pieces of any size.
///
/// ```
/// use proem::traffic::usage::UsageScanner;
///
/// let mut scanner = UsageScanner::default();
/// scanner.feed(b"data: {\"usage\": {\"prompt_tokens\": 9, \"prompt_tokens_de");
/// scanner.feed(b"tails\": {\"cached_tokens\": 4}}}\n\ndata: [DONE]\n\n");
/// let facts = scanner.finish();
/// assert_eq!((facts.usage.read, facts.usage.uncached), (Some(4), Some(5)));
/// ```
#[derive(Debug, Clone, Default)]
pub struct UsageScanner {
    facts: ScannedAnswer,
    form: Form,
    /// The begun line, or all of an answer that is not a stream.
    held: Vec<u8>,
    /// True while the rest of a line or answer that is too long passes.
    is_skipping: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    /// Nothing but white space was seen.
    #[default]
    Open,
    /// Server-sent events.
    Events,
    /// JSON: one value, or one per line.
    Json,
}

impl UsageScanner {
    /// Reads the next bytes of the answer, without any compression.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        if self.form == Form::Open {
            bytes =
                bytes.trim_ascii_start().strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes.trim_ascii_start());
            self.form = match bytes.first() {
                None => return,
                Some(b'{' | b'[') => Form::Json,
                Some(_) => Form::Events,
            };
        }
        if self.form == Form::Json {
            return self.hold(bytes, TRAFFIC_ANSWER_BYTES_MAX);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            self.hold(line, TRAFFIC_EVENT_BYTES_MAX);
            self.end_line();
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.hold(bytes, TRAFFIC_EVENT_BYTES_MAX);
    }

    /// Reads one event that arrived as a message of its own, as over a WebSocket.
    pub fn event(&mut self, json: &[u8]) {
        if json.len() > TRAFFIC_EVENT_BYTES_MAX {
            self.facts.over_limit += 1;
        } else if memmem::find(json, b"usage").is_some() {
            self.read(json);
        }
    }

    /// Returns what was found so far.
    #[must_use]
    pub fn facts(&self) -> &ScannedAnswer {
        &self.facts
    }

    /// Returns what was found in the whole answer.
    #[must_use]
    pub fn finish(mut self) -> ScannedAnswer {
        if self.form == Form::Json {
            let held = std::mem::take(&mut self.held);
            if !self.read(&held) {
                held.split(|byte| *byte == b'\n').for_each(|line| self.event(line));
            }
        } else {
            self.end_line();
        }
        self.facts
    }

    fn hold(&mut self, bytes: &[u8], bytes_max: usize) {
        if self.is_skipping {
            return;
        }
        if self.held.len() + bytes.len() > bytes_max {
            self.held = Vec::new();
            self.is_skipping = true;
            self.facts.over_limit += 1;
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        self.is_skipping = false;
        let mut line = std::mem::take(&mut self.held);
        if let Some(data) = line.strip_prefix(b"data:") {
            self.event(data.trim_ascii());
        }
        line.clear();
        self.held = line;
    }

    /// Reads a JSON value; returns false if it is not one.
    fn read(&mut self, json: &[u8]) -> bool {
        let Ok(value) = serde_json::from_slice::<Value>(json) else { return false };
        match value {
            // A stream of Gemini without server-sent events is a list.
            Value::Array(events) => events.iter().for_each(|event| self.facts.add(event)),
            event => self.facts.add(&event),
        }
        true
    }
}

impl ScannedAnswer {
    /// Reads an answer, or one event of it.
    #[must_use]
    pub fn from_answer(answer: &Value) -> Self {
        let mut facts = Self::default();
        facts.add(answer);
        facts
    }

    fn add(&mut self, event: &Value) {
        let inner =
            ["message", "response"].into_iter().find_map(|key| event.get(key).filter(|it| it.is_object()));
        for place in [Some(event), inner].into_iter().flatten() {
            self.add_usage(place);
            let text = |key: &str| place.get(key).and_then(Value::as_str).map(str::to_owned);
            // An event may have an id of its own; that of the answer stands in the inner object.
            let is_answer = inner.is_none_or(|inner| std::ptr::eq(inner, place));
            if is_answer {
                self.id = text("id")
                    .or_else(|| text("responseId"))
                    .or_else(|| text("response_id"))
                    .or(self.id.take());
                self.model = text("model").or_else(|| text("modelVersion")).or(self.model.take());
            }
            self.reason = reason(place).or(self.reason.take());
        }
    }

    fn add_usage(&mut self, place: &Value) {
        let found = ["usage", "usageMetadata", "token_usage", "timings"];
        for numbers in found.into_iter().filter_map(|key| place.get(key)) {
            let usage = usage_of(numbers);
            let merge = |old: &mut Option<u64>, new: Option<u64>| *old = new.or(*old);
            merge(&mut self.usage.read, usage.read);
            merge(&mut self.usage.written, usage.written);
            merge(&mut self.usage.written_1h, usage.written_1h);
            merge(&mut self.usage.uncached, usage.uncached);
            merge(&mut self.usage.output, usage.output);
        }
    }
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

fn reason(place: &Value) -> Option<ProviderReason> {
    let anthropic = place.get("diagnostics").and_then(|found| found.get("cache_miss_reason"));
    let openai = || {
        let direct = place.get("prompt_cache_diagnostics");
        direct.or_else(|| place.get("usage")?.get("prompt_cache_diagnostics"))
    };
    let found = anthropic.or_else(openai)?;
    let word = ["type", "reason"].into_iter().find_map(|key| found.get(key)?.as_str());
    let word = word.or_else(|| found.as_str())?;
    let tokens = number(found, "cache_missed_input_tokens").or_else(|| number(found, "missed_tokens"));
    Some(ProviderReason { reason: word.chars().take(100).collect(), tokens })
}

/// Reads numbers of tokens in any provider's shape.
#[must_use]
pub fn usage_of(numbers: &Value) -> CallUsage {
    let get = |key: &str| number(numbers, key);
    let detail = |list: &str, key: &str| numbers.get(list).and_then(|details| number(details, key));
    if let (Some(read), Some(computed)) = (get("cache_n"), get("prompt_n")) {
        // Timings of llama.cpp.
        return CallUsage {
            read: Some(read),
            uncached: Some(computed),
            output: get("predicted_n"),
            ..CallUsage::default()
        };
    }
    if let (Some(hit), Some(miss)) = (get("prompt_cache_hit_tokens"), get("prompt_cache_miss_tokens")) {
        let output = get("completion_tokens");
        return CallUsage { read: Some(hit), uncached: Some(miss), output, ..CallUsage::default() };
    }
    if let Some(plain) = get("inputTokens") {
        let (read, written) = (get("cacheReadInputTokens"), get("cacheWriteInputTokens"));
        return CallUsage {
            read,
            written,
            uncached: Some(plain),
            output: get("outputTokens"),
            written_1h: None,
        };
    }
    if let Some(total) = get("promptTokenCount") {
        // Gemini leaves the number out if it is zero.
        let read = get("cachedContentTokenCount").unwrap_or(0);
        let thoughts = get("thoughtsTokenCount").unwrap_or(0);
        let output = get("candidatesTokenCount").map(|answer| answer.saturating_add(thoughts));
        return among(total, Some(read), None, output);
    }
    if let Some(total) = get("prompt_tokens") {
        let of = |key: &str| detail("prompt_tokens_details", key);
        return among(total, of("cached_tokens"), of("cache_write_tokens"), get("completion_tokens"));
    }
    let read = detail("input_tokens_details", "cached_tokens").or_else(|| get("cached_input_tokens"));
    if let (Some(total), Some(read)) = (get("input_tokens"), read) {
        let written =
            detail("input_tokens_details", "cache_write_tokens").or_else(|| get("cache_write_input_tokens"));
        return among(total, Some(read), written, get("output_tokens"));
    }
    // Anthropic: cached tokens come on top of the others. Later events of a stream hold some of the numbers.
    CallUsage {
        read: get("cache_read_input_tokens"),
        written: get("cache_creation_input_tokens"),
        written_1h: detail("cache_creation", "ephemeral_1h_input_tokens"),
        uncached: get("input_tokens"),
        output: get("output_tokens"),
    }
}

/// Usage whose cached tokens are among the total.
fn among(total: u64, read: Option<u64>, written: Option<u64>, output: Option<u64>) -> CallUsage {
    let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    CallUsage { read, written, written_1h: None, uncached: Some(total.saturating_sub(cached)), output }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANTHROPIC: &str = concat!(
        "event: message_start\r\n",
        "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-x\",\"usage\":{\"input_tokens\":3,",
        "\"cache_creation_input_tokens\":20,\"cache_read_input_tokens\":100,\"output_tokens\":1,",
        "\"cache_creation\":{\"ephemeral_1h_input_tokens\":20,\"ephemeral_5m_input_tokens\":0}},",
        "\"diagnostics\":{\"cache_miss_reason\":{\"type\":\"tools_changed\",\"cache_missed_input_tokens\":7}}}}\r\n\r\n",
        "event: ping\r\ndata: {\"type\":\"ping\"}\r\n\r\n",
        "data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":44}}\r\n\r\n",
    );

    fn scan(text: &[u8], step: usize) -> ScannedAnswer {
        let mut scanner = UsageScanner::default();
        text.chunks(step).for_each(|chunk| scanner.feed(chunk));
        scanner.finish()
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let whole = scan(ANTHROPIC.as_bytes(), usize::MAX);
        let usage = CallUsage {
            read: Some(100),
            written: Some(20),
            written_1h: Some(20),
            uncached: Some(3),
            output: Some(44),
        };
        assert_eq!(
            (whole.usage, whole.id.as_deref(), whole.model.as_deref()),
            (usage, Some("msg_1"), Some("claude-x"))
        );
        assert_eq!(whole.reason, Some(ProviderReason { reason: "tools_changed".into(), tokens: Some(7) }));
        for step in [1, 2, 3, 7, 64] {
            assert_eq!(scan(ANTHROPIC.as_bytes(), step), whole, "{step}");
        }
    }

    #[test]
    fn every_shape_of_usage_is_read() {
        // The numbers: read, written, uncached, output.
        for (answer, expected) in [
            (
                r#"{"type":"response.completed","id":"evt","response":{"id":"resp_1","usage":{"input_tokens":90,
                    "input_tokens_details":{"cached_tokens":64},"output_tokens":5}}}"#,
                [Some(64), None, Some(26), Some(5)],
            ),
            (
                r#"{"token_usage":{"input_tokens":90,"cached_input_tokens":64,"cache_write_input_tokens":20,"output_tokens":5}}"#,
                [Some(64), Some(20), Some(6), Some(5)],
            ),
            (r#"{"usage":{"prompt_tokens":90,"completion_tokens":5}}"#, [None, None, Some(90), Some(5)]),
            (
                r#"{"usage":{"prompt_tokens":9,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5}}"#,
                [Some(4), None, Some(5), None],
            ),
            (
                r#"[{"candidates":[]},{"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":4,
                    "candidatesTokenCount":2,"thoughtsTokenCount":3}}]"#,
                [Some(4), None, Some(5), Some(5)],
            ),
            (
                r#"{"usage":{"inputTokens":5,"cacheReadInputTokens":4,"cacheWriteInputTokens":3,"outputTokens":2}}"#,
                [Some(4), Some(3), Some(5), Some(2)],
            ),
            (r#"{"timings":{"cache_n":4,"prompt_n":5,"predicted_n":1}}"#, [Some(4), None, Some(5), Some(1)]),
            (r#"{"usage":null}"#, [None; 4]),
            ("not an answer", [None; 4]),
        ] {
            let CallUsage { read, written, uncached, output, .. } = scan(answer.as_bytes(), 5).usage;
            assert_eq!([read, written, uncached, output], expected, "{answer}");
        }
        let facts =
            scan(b"{\"type\":\"response.completed\",\"id\":\"evt\",\"response\":{\"id\":\"resp_1\"}}", 9);
        assert_eq!(facts.id.as_deref(), Some("resp_1"));
    }

    #[test]
    fn lines_of_json_are_events() {
        let text = "{\"type\":\"a\"}\n{\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":9,\
                    \"input_tokens_details\":{\"cached_tokens\":4}}}}\n";
        assert_eq!(scan(text.as_bytes(), 10).usage.read, Some(4));
    }

    #[test]
    fn a_line_over_the_limit_is_counted_and_passed() {
        let long = format!("data: {{\"usage\": \"{}\"}}\n", "x".repeat(TRAFFIC_EVENT_BYTES_MAX));
        let facts = scan((long + ANTHROPIC).as_bytes(), 4096);
        assert_eq!((facts.over_limit, facts.usage.read), (1, Some(100)));
    }
}
