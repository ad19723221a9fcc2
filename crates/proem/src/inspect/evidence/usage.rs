//! The usage that a provider reported for one call, in any of the providers' shapes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Input tokens of one call, by where they came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedUsage {
    /// All input tokens, cached ones included.
    pub input: u64,
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to it, if the provider reports them.
    pub written: Option<u64>,
}

/// In which shape usage came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageShape {
    Anthropic,
    Bedrock,
    OpenAi,
    DeepSeek,
    Gemini,
    LlamaCpp,
}

impl UsageShape {
    /// The provider that the shape implies, if none is given.
    pub(super) const fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Bedrock => "bedrock",
            Self::OpenAi => "openai",
            Self::DeepSeek => "deepseek",
            Self::Gemini => "gemini",
            Self::LlamaCpp => "llama.cpp",
        }
    }
}

/// Finds the usage in a response, or in the part of it that has the numbers. Numbers whose sum exceeds 64 bits are
/// refused.
pub(super) fn find(response: &Value) -> Result<(ReportedUsage, UsageShape), &'static str> {
    let places = [
        response.get("usage"),
        response.get("usageMetadata"),
        response.get("message").and_then(|message| message.get("usage")),
        response.get("response").and_then(|inner| inner.get("usage")),
        Some(response),
    ];
    let timings = response.get("timings").and_then(of_timings);
    let found = timings.or_else(|| places.into_iter().flatten().find_map(of_numbers));
    let (counted, shape) = found.ok_or("it has no numbers about a cache in any of the providers' shapes")?;
    Ok((counted.ok_or("its numbers of tokens add up to more than 18446744073709551615")?, shape))
}

/// Usage whose input is the sum of its parts; `None` if that is too large.
type UsageSum = Option<ReportedUsage>;

fn counted(parts: &[u64], read: u64, written: Option<u64>) -> UsageSum {
    let input = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part))?;
    Some(ReportedUsage { input, read, written })
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

/// Reads the timings of llama.cpp: the tokens that it kept, and those that it computed.
fn of_timings(timings: &Value) -> Option<(UsageSum, UsageShape)> {
    let (read, computed) = (number(timings, "cache_n")?, number(timings, "prompt_n")?);
    Some((counted(&[read, computed], read, None), UsageShape::LlamaCpp))
}

fn of_numbers(numbers: &Value) -> Option<(UsageSum, UsageShape)> {
    let get = |key: &str| number(numbers, key);
    let detail = |list: &str, key: &str| numbers.get(list).and_then(|details| number(details, key));
    if let (Some(hit), Some(miss)) = (get("prompt_cache_hit_tokens"), get("prompt_cache_miss_tokens")) {
        return Some((counted(&[hit, miss], hit, None), UsageShape::DeepSeek));
    }
    // Cached tokens come on top of the others here, and are among them everywhere else.
    if let (Some(read), written) = (get("cache_read_input_tokens"), get("cache_creation_input_tokens")) {
        let written = written.unwrap_or(0);
        let input = get("input_tokens")?;
        return Some((counted(&[input, read, written], read, Some(written)), UsageShape::Anthropic));
    }
    if let Some(plain) = get("inputTokens") {
        let (read, written) =
            (get("cacheReadInputTokens").unwrap_or(0), get("cacheWriteInputTokens").unwrap_or(0));
        return Some((counted(&[plain, read, written], read, Some(written)), UsageShape::Bedrock));
    }
    if let Some(input) = get("promptTokenCount") {
        let read = get("cachedContentTokenCount").unwrap_or(0);
        return Some((counted(&[input], read, None), UsageShape::Gemini));
    }
    for (total, details) in
        [("input_tokens", "input_tokens_details"), ("prompt_tokens", "prompt_tokens_details")]
    {
        if let (Some(input), Some(read)) = (get(total), detail(details, "cached_tokens")) {
            let written = detail(details, "cache_write_tokens");
            return Some((counted(&[input], read, written), UsageShape::OpenAi));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_provider_counts_in_its_own_way() {
        for (response, provider, expected) in [
            (
                json!({"usage": {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100}}),
                "anthropic",
                (115, 100, Some(5)),
            ),
            (
                json!({"usage": {"input_tokens": 115, "input_tokens_details": {"cached_tokens": 100}}}),
                "openai",
                (115, 100, None),
            ),
            (
                json!({"usage": {"prompt_tokens": 115, "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 7}}}),
                "openai",
                (115, 0, Some(7)),
            ),
            (
                json!({"usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 3, "prompt_cache_miss_tokens": 6}}),
                "deepseek",
                (9, 3, None),
            ),
            (
                json!({"usageMetadata": {"promptTokenCount": 50, "cachedContentTokenCount": 40}}),
                "gemini",
                (50, 40, None),
            ),
            (
                json!({"usage": {"inputTokens": 1, "cacheReadInputTokens": 2, "cacheWriteInputTokens": 3}}),
                "bedrock",
                (6, 2, Some(3)),
            ),
            (
                json!({"timings": {"cache_n": 30, "prompt_n": 4}, "usage": {"prompt_tokens": 34}}),
                "llama.cpp",
                (34, 30, None),
            ),
        ] {
            let (usage, shape) = find(&response).expect("the shape is known");
            assert_eq!((usage.input, usage.read, usage.written), expected, "{response}");
            assert_eq!(shape.provider(), provider);
        }
        let silent = find(&json!({"usage": {"prompt_tokens": 34}}));
        assert_eq!(silent, Err("it has no numbers about a cache in any of the providers' shapes"));
    }

    #[test]
    fn numbers_that_add_up_to_too_much_are_refused() {
        const MOST: u64 = u64::MAX;
        let too_much = Err("its numbers of tokens add up to more than 18446744073709551615");
        for response in [
            json!({"usage": {"input_tokens": MOST, "cache_creation_input_tokens": MOST, "cache_read_input_tokens": MOST}}),
            json!({"usage": {"prompt_cache_hit_tokens": MOST, "prompt_cache_miss_tokens": 1}}),
            json!({"usage": {"inputTokens": 1, "cacheReadInputTokens": MOST}}),
            json!({"timings": {"cache_n": 1, "prompt_n": MOST}}),
        ] {
            assert_eq!(find(&response), too_much, "{response}");
        }
        let largest = json!({"usage": {"input_tokens": MOST, "cache_read_input_tokens": 0}});
        assert_eq!(find(&largest).expect("it is a number").0.input, MOST, "control");
    }
}
