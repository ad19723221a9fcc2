//! What a provider's cache does with a conversation: how much of each request is read from it, written to
//! it, or paid in full. By published rules, which are data with a date.

mod breakpoints;
mod pieces;
mod prefix;

use proem_core::text::Places;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::models::{CacheKind, CacheRules, Model, Models};
use crate::tokens::Tokenizer;

use pieces::Pieces;

/// How long a turn takes when nobody says when it came.
const SECONDS_BETWEEN_TURNS: f64 = 30.0;

/// One request of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    /// The request, as the provider took it.
    pub payload: Value,
    /// When it was sent, in seconds.
    pub at: Option<f64>,
    /// What the model answered.
    #[serde(default)]
    pub reply: Option<String>,
    /// The tokens of the request, where they are known exactly.
    #[serde(default)]
    pub tokens: Option<Vec<u32>>,
    /// The tokens of the answer.
    #[serde(default)]
    pub reply_tokens: Option<Vec<u32>>,
}

impl Sent {
    /// Reads a file of requests, one behind the other, usually one on each line: the payload itself, or an
    /// object with `payload`.
    pub fn lines(text: &str) -> Result<Vec<Self>, Error> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let (mut sent, mut places) = (Vec::new(), Places::new(text));
        loop {
            let line = places.at(values.byte_offset()).line;
            let Some(value) = values.next() else { return Ok(sent) };
            let request = value.map_err(|error| error.to_string()).and_then(Self::of_value);
            sent.push(request.map_err(|why| bad_request(sent.len(), line, &why))?);
        }
    }

    fn of_value(value: Value) -> Result<Self, String> {
        let sent = match &value {
            Value::Object(fields) if fields.contains_key("payload") => {
                serde_json::from_value(value).map_err(|error| error.to_string())?
            }
            Value::Object(_) => Self { payload: value, ..Self::default() },
            _ => return Err("a request is an object".into()),
        };
        match sent.at {
            Some(at) if !at.is_finite() => Err("`at` is no time".into()),
            _ => Ok(sent),
        }
    }
}

fn bad_request(index: usize, line: usize, why: &str) -> Error {
    Error::usage(
        format!("cannot read request {}, from line {line} on: {why}", index + 1),
        "write payloads as `proem build --for` prints them, or {\"payload\": …, \"at\": SECONDS}",
    )
}

/// What a cache does with a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "proem simulate")]
pub struct Simulation {
    /// The version of this shape.
    pub version: u32,
    /// The cache whose rules are followed.
    pub cache: String,
    /// The model, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The day of rules and prices.
    pub as_of: String,
    /// How tokens were counted.
    pub counted: String,
    /// The requests, in order.
    pub turns: Vec<Simulated>,
    /// All of them together.
    pub total: Figures,
}

/// What a cache does with one request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Simulated {
    /// The number of the request, from 1.
    pub turn: usize,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Why what the request before had in the cache is not read, in the providers' words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss: Option<&'static str>,
}

/// Tokens by what is paid for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// All tokens of the request.
    pub input_tokens: usize,
    /// Read from the cache.
    pub read: usize,
    /// Written to the cache.
    pub written: usize,
    /// Written to the cache for an hour.
    pub written_1h: usize,
    /// Neither.
    pub uncached: usize,
    /// What the input costs, in USD, where prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.input_tokens += other.input_tokens;
        self.read += other.read;
        self.written += other.written;
        self.written_1h += other.written_1h;
        self.uncached += other.uncached;
        self.usd = self.usd.zip(other.usd).map(|(own, more)| own + more);
    }

    /// Puts a price on the tokens.
    fn priced(mut self, model: Option<&Model>) -> Self {
        self.usd = model.and_then(|model| {
            let input = model.input?;
            let read = model.cache_read.unwrap_or(input);
            let write = model.cache_write.unwrap_or(input);
            let hour = model.cache_write_1h.unwrap_or(write);
            let cost = |tokens: usize, price: f64| as_number(tokens) * price / 1e6;
            Some(
                cost(self.uncached, input)
                    + cost(self.read, read)
                    + cost(self.written, write)
                    + cost(self.written_1h, hour),
            )
        });
        self
    }
}

/// Token counts are far below the numbers that a float cannot hold.
#[expect(clippy::cast_precision_loss, reason = "a request has less than 2^52 tokens")]
const fn as_number(tokens: usize) -> f64 {
    tokens as f64
}

/// A cache as it fills, turn by turn.
trait Cache {
    fn take(&mut self, sent: &Sent, pieces: &Pieces, now: f64) -> Result<Figures, String>;
}

/// Follows the requests of one conversation through a cache.
///
/// `cache` is the name of a cache or of a provider; which of OpenAI's caches it is depends on the model.
pub fn simulate(
    cache: &str,
    model: Option<&str>,
    sent: &[Sent],
    models: &Models,
) -> Result<Simulation, Error> {
    let known = model.and_then(|name| models.find(name));
    let rules = rules(cache, known, models)?;
    let tokenizer = known.map_or(Tokenizer::Estimate, Model::tokenizer);
    let mut engine: Box<dyn Cache> = match rules.kind {
        CacheKind::Breakpoints => Box::new(breakpoints::Breakpoints::new(rules, known)),
        CacheKind::Prefix | CacheKind::Units => Box::new(prefix::Prefix::new(rules, known, tokenizer)),
    };
    let (mut turns, mut total) = (Vec::new(), Figures { usd: Some(0.0), ..Figures::default() });
    let (mut now, mut before): (f64, Option<Pieces>) = (0.0, None);
    for (index, request) in sent.iter().enumerate() {
        now = request.at.unwrap_or(if index == 0 { 0.0 } else { now + SECONDS_BETWEEN_TURNS });
        let pieces = Pieces::of(&request.payload, tokenizer, rules.is_chat_template());
        let figures = engine.take(request, &pieces, now).map_err(|why| bad_turn(index, &why))?.priced(known);
        let miss = before.as_ref().and_then(|before| pieces.first_change(before));
        let miss = miss.or((index > 0 && figures.read == 0).then_some("expired_or_too_short"));
        total.add(&figures);
        turns.push(Simulated { turn: index + 1, figures, miss });
        before = Some(pieces);
    }
    Ok(Simulation {
        version: crate::wire::VERSION,
        cache: rules.name.clone(),
        model: model.map(str::to_owned),
        as_of: models.as_of.clone(),
        counted: counted(sent, tokenizer),
        turns,
        total,
    })
}

fn counted(sent: &[Sent], tokenizer: Tokenizer) -> String {
    match sent.first() {
        Some(first) if first.tokens.is_some() => "given with the requests".into(),
        _ => tokenizer.describe(),
    }
}

fn bad_turn(index: usize, why: &str) -> Error {
    Error::usage(
        format!("request {} would be refused: {why}", index + 1),
        "send what `proem build --for` prints",
    )
}

impl CacheRules {
    /// Servers of open models print tools behind the system prompt.
    fn is_chat_template(&self) -> bool {
        matches!(self.name.as_str(), "llama.cpp" | "vllm" | "sglang")
    }
}

/// The rules of a cache, or of the cache that a provider has for a model.
fn rules<'m>(cache: &str, model: Option<&Model>, models: &'m Models) -> Result<&'m CacheRules, Error> {
    let has_breakpoints = model.is_some_and(|model| model.breakpoints == Some(true));
    let name = match cache {
        "openai" | "openai-chat" | "openai-responses" if has_breakpoints => "openai-breakpoints",
        "openai-chat" | "openai-responses" => "openai",
        other => other,
    };
    models.cache(name).ok_or_else(|| {
        Error::usage(
            format!("no cache is called `{cache}`"),
            format!("the caches are: {}", models.cache_names().join(", ")),
        )
    })
}

#[cfg(test)]
mod tests;
