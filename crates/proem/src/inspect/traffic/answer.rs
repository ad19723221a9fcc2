//! The numbers of an answer, in any provider's shape: an object, or a stream of server-sent events.

use serde_json::Value;

use super::call::{CallUsage, ProviderReason, Wire};

/// The facts that are read from an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerFacts {
    /// The id of the answer.
    pub id: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The tokens.
    pub usage: CallUsage,
    /// The format that the shape of the numbers implies.
    pub wire: Wire,
    /// The provider that it implies, where a format has several.
    pub provider: Option<&'static str>,
    /// The provider's reason for a miss.
    pub reason: Option<ProviderReason>,
    /// The time of the answer, as it is written there.
    pub at: Option<Value>,
}

impl AnswerFacts {
    /// Reads an answer: a JSON object, a string with an object or a stream, or a list of events.
    #[must_use]
    pub fn of_value(answer: &Value) -> Self {
        match answer {
            Value::String(text) => Self::of_text(text),
            Value::Array(events) => Self::of_events(events.iter().cloned()),
            other => Self::of_events([other.clone()]),
        }
    }

    /// Reads the text of an answer: JSON, or server-sent events.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
            return Self::of_value(&value);
        }
        let data = text.lines().filter_map(|line| {
            let line = line.strip_prefix("data:").unwrap_or(line).trim();
            line.starts_with('{').then(|| serde_json::from_str(line).ok()).flatten()
        });
        Self::of_events(data)
    }

    fn of_events(events: impl IntoIterator<Item = Value>) -> Self {
        let mut facts = Self::default();
        for event in events {
            facts.add(&event, 0);
        }
        facts
    }

    /// Adds an event: later numbers replace earlier ones.
    fn add(&mut self, event: &Value, depth: usize) {
        const DEPTH: usize = 4;
        let word = |key: &str| event.get(key).and_then(Value::as_str).map(str::to_owned);
        self.id = self.id.take().or_else(|| word("id").or_else(|| word("responseId")));
        self.model = self.model.take().or_else(|| word("model").or_else(|| word("modelVersion")));
        let at = event.get("created_at").or_else(|| event.get("created"));
        self.at = self.at.take().or_else(|| at.filter(|at| !at.is_null()).cloned());
        self.numbers(event);
        for key in ["usage", "usageMetadata"] {
            if let Some(numbers) = event.get(key) {
                self.numbers(numbers);
            }
        }
        self.timings(event.get("timings"));
        for (list, key) in [("diagnostics", "cache_miss_reason"), ("diagnostics", "prompt_cache_diagnostics")]
        {
            let inner = event.get(list).and_then(|found| found.get(key));
            self.take_reason(inner);
        }
        self.take_reason(event.get("prompt_cache_diagnostics"));
        for key in ["message", "response", "body", "metadata"] {
            if let Some(inner) = event.get(key).filter(|inner| inner.is_object())
                && depth < DEPTH
            {
                self.add(inner, depth + 1);
            }
        }
    }

    fn take_reason(&mut self, found: Option<&Value>) {
        let Some(found) = found.filter(|found| !found.is_null()) else { return };
        let get = |key: &str| found.get(key).and_then(Value::as_str);
        let reason = found.as_str().or_else(|| get("type")).or_else(|| get("reason"));
        let tokens = found.get("cache_missed_input_tokens").and_then(Value::as_u64);
        if let Some(reason) = reason {
            self.reason = Some(ProviderReason { reason: reason.to_owned(), tokens });
        }
    }

    /// Reads llama.cpp's timings: the tokens that it kept, and those that it computed.
    fn timings(&mut self, timings: Option<&Value>) {
        let number = |key: &str| timings?.get(key)?.as_u64();
        if let (Some(read), Some(computed)) = (number("cache_n"), number("prompt_n")) {
            let output = number("predicted_n").or(self.usage.output);
            self.usage =
                CallUsage { read: Some(read), uncached: Some(computed), output, ..CallUsage::default() };
            (self.wire, self.provider) = (Wire::Chat, Some("llama.cpp"));
        }
    }

    fn numbers(&mut self, numbers: &Value) {
        if self.provider == Some("llama.cpp") {
            return;
        }
        let get = |key: &str| numbers.get(key).and_then(Value::as_u64);
        let detail = |list: &str, key: &str| numbers.get(list)?.get(key)?.as_u64();
        let usage = &mut self.usage;
        if let (Some(hit), Some(miss)) = (get("prompt_cache_hit_tokens"), get("prompt_cache_miss_tokens")) {
            (usage.read, usage.uncached, usage.output) = (Some(hit), Some(miss), get("completion_tokens"));
            (self.wire, self.provider) = (Wire::Chat, Some("deepseek"));
        } else if get("cache_read_input_tokens").is_some() || get("cache_creation_input_tokens").is_some() {
            // Cached tokens come on top of the others here, and are among them everywhere else.
            usage.read = get("cache_read_input_tokens").or(usage.read).or(Some(0));
            usage.written = get("cache_creation_input_tokens").or(usage.written);
            usage.uncached = get("input_tokens").or(usage.uncached);
            usage.written_1h = detail("cache_creation", "ephemeral_1h_input_tokens").or(usage.written_1h);
            usage.output = get("output_tokens").or(usage.output);
            self.wire = Wire::Anthropic;
        } else if get("inputTokens").is_some() {
            usage.uncached = get("inputTokens");
            usage.read = get("cacheReadInputTokens").or(Some(0));
            usage.written = get("cacheWriteInputTokens").or(Some(0));
            usage.output = get("outputTokens");
            self.wire = Wire::Bedrock;
        } else if let Some(input) = get("promptTokenCount") {
            let read = get("cachedContentTokenCount").unwrap_or(0);
            (usage.read, usage.uncached) = (Some(read), Some(input.saturating_sub(read)));
            usage.output = get("candidatesTokenCount").or(usage.output);
            self.wire = Wire::Gemini;
        } else {
            self.openai(numbers);
        }
    }

    fn openai(&mut self, numbers: &Value) {
        let get = |key: &str| numbers.get(key).and_then(Value::as_u64);
        let detail = |list: &str, key: &str| numbers.get(list)?.get(key)?.as_u64();
        for (total, details, output, wire) in [
            ("input_tokens", "input_tokens_details", "output_tokens", Wire::Responses),
            ("prompt_tokens", "prompt_tokens_details", "completion_tokens", Wire::Chat),
        ] {
            // Codex writes the numbers of its records without a list of details.
            let read = detail(details, "cached_tokens").or_else(|| get("cached_input_tokens"));
            if let (Some(input), Some(read)) = (get(total), read) {
                let written =
                    detail(details, "cache_write_tokens").or_else(|| get("cache_write_input_tokens"));
                let rest = input.saturating_sub(read).saturating_sub(written.unwrap_or(0));
                let output = get(output);
                self.usage =
                    CallUsage { read: Some(read), written, written_1h: None, uncached: Some(rest), output };
                self.wire = wire;
                return;
            }
        }
        if let (Some(output), true) = (get("output_tokens"), self.wire == Wire::Anthropic) {
            self.usage.output = Some(output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn numbers(answer: &Value) -> (Option<u64>, Option<u64>, Option<u64>, Wire) {
        let facts = AnswerFacts::of_value(answer);
        (facts.usage.read, facts.usage.written, facts.usage.uncached, facts.wire)
    }

    #[test]
    fn every_provider_counts_in_its_own_way() {
        for (answer, expected) in [
            (
                json!({"usage": {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100}}),
                (Some(100), Some(5), Some(10), Wire::Anthropic),
            ),
            (
                json!({"usage": {"input_tokens": 115, "input_tokens_details": {"cached_tokens": 100}}}),
                (Some(100), None, Some(15), Wire::Responses),
            ),
            (
                json!({"usage": {"prompt_tokens": 115, "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 7}}}),
                (Some(0), Some(7), Some(108), Wire::Chat),
            ),
            (
                json!({"usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 3, "prompt_cache_miss_tokens": 6}}),
                (Some(3), None, Some(6), Wire::Chat),
            ),
            (
                json!({"usageMetadata": {"promptTokenCount": 50, "cachedContentTokenCount": 40}}),
                (Some(40), None, Some(10), Wire::Gemini),
            ),
            (
                json!({"usage": {"inputTokens": 1, "cacheReadInputTokens": 2, "cacheWriteInputTokens": 3}}),
                (Some(2), Some(3), Some(1), Wire::Bedrock),
            ),
            (
                json!({"timings": {"cache_n": 30, "prompt_n": 4}, "usage": {"prompt_tokens": 34}}),
                (Some(30), None, Some(4), Wire::Chat),
            ),
            (json!({"usage": {"prompt_tokens": 34}}), (None, None, None, Wire::Unknown)),
        ] {
            assert_eq!(numbers(&answer), expected, "{answer}");
        }
    }

    #[test]
    fn a_stream_is_read() {
        let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"model\":\"claude-opus-5\",\"usage\":{\"input_tokens\":1,\"cache_creation_input_tokens\":292,\"cache_read_input_tokens\":3064,\"output_tokens\":1},\"diagnostics\":{\"cache_miss_reason\":{\"type\":\"tools_changed\",\"cache_missed_input_tokens\":9}}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":30}}\n";
        let facts = AnswerFacts::of_text(anthropic);
        assert_eq!(
            facts.usage,
            CallUsage {
                read: Some(3064),
                written: Some(292),
                written_1h: None,
                uncached: Some(1),
                output: Some(30)
            }
        );
        assert_eq!((facts.id.as_deref(), facts.model.as_deref()), (Some("m1"), Some("claude-opus-5")));
        assert_eq!(facts.reason, Some(ProviderReason { reason: "tools_changed".into(), tokens: Some(9) }));
        let responses = "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"usage\":{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":4},\"output_tokens\":2}}}\n\ndata: [DONE]\n";
        let facts = AnswerFacts::of_text(responses);
        assert_eq!((facts.usage.read, facts.usage.uncached, facts.wire), (Some(4), Some(6), Wire::Responses));
        assert_eq!(facts.id.as_deref(), Some("r1"));
    }
}
