//! Simulates a provider's cache for a conversation: how much of each request is read from it, written to it, or paid
//! in full. The rules are published ones, kept as data with a date.

mod breakpoints;
mod form;
mod pieces;
mod prefix;

use std::time::Duration;

use proem_core::text::Places;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::deliver::{Provider, ProviderName, UnknownProvider};
use crate::error::Error;
use crate::request::raw_json::{Fields, Json, Readable, field};
use crate::request::strict_json::without_place;
use crate::settings::models::{CacheKind, CacheRules, Model, Models};
use crate::settings::tokens::Tokenizer;

pub(crate) use pieces::{CacheMark, Part, Pieces};

/// The time between two turns when the requests have none.
const SECONDS_BETWEEN_TURNS: f64 = 30.0;

/// A request as the provider took it, keys in their order.
#[derive(Debug, Clone)]
pub struct Payload(Box<RawValue>);

impl Payload {
    /// Takes the text of a payload, which must be an object.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let raw: Box<RawValue> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Self::checked(raw)
    }

    fn checked(raw: Box<RawValue>) -> Result<Self, String> {
        if !raw.get().starts_with('{') {
            return Err("a request is an object".into());
        }
        let Readable = serde_json::from_str(raw.get()).map_err(|error| without_place(&error))?;
        Ok(Self(raw))
    }

    fn fields(&self) -> Result<Fields, serde_json::Error> {
        match Json::open(&self.0)? {
            Json::Object(fields) => Ok(fields),
            _ => Ok(Fields::new()),
        }
    }

    /// The model that it names.
    fn model(&self) -> Option<String> {
        let fields = self.fields().ok()?;
        field(&fields, "model").or_else(|| field(&fields, "modelId")).and_then(Json::text)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::checked(Box::<RawValue>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// One request of a conversation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentRequest {
    /// The request.
    pub payload: Payload,
    /// The time at which it was sent, in seconds.
    pub at: Option<f64>,
    /// The model's answer.
    pub reply: Option<String>,
    /// The tokens of the request, where they are known exactly.
    pub tokens: Option<Vec<u32>>,
    /// The tokens of the answer.
    pub reply_tokens: Option<Vec<u32>>,
}

impl From<Payload> for SentRequest {
    fn from(payload: Payload) -> Self {
        Self { payload, at: None, reply: None, tokens: None, reply_tokens: None }
    }
}

impl SentRequest {
    /// Parses a file of consecutive requests, usually one on each line: the payload itself, or an object with
    /// `payload`.
    pub fn lines(text: &str) -> Result<Vec<Self>, Error> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Box<RawValue>>();
        let (mut sent, mut places) = (Vec::new(), Places::new(text));
        loop {
            // White space before a value is not the value.
            let rest = text.get(values.byte_offset()..).unwrap_or_default();
            let line = places.at(text.len() - rest.trim_start().len()).line;
            let Some(value) = values.next() else { return Ok(sent) };
            let request = value.map_err(|error| without_place(&error)).and_then(Self::of_value);
            sent.push(request.map_err(|why| bad_request(sent.len(), line, &why))?);
        }
    }

    fn of_value(raw: Box<RawValue>) -> Result<Self, String> {
        let payload = Payload::checked(raw)?;
        let is_wrapped = payload.fields().is_ok_and(|fields| field(&fields, "payload").is_some());
        if !is_wrapped {
            return Ok(payload.into());
        }
        let sent: Self = serde_json::from_str(payload.0.get()).map_err(|error| without_place(&error))?;
        match sent.at {
            Some(at) if !at.is_finite() => Err("`at` is not a time".into()),
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

/// The result of a simulation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "proem simulate")]
pub struct Simulation {
    /// The version of this shape.
    pub version: u32,
    /// The cache whose rules are simulated.
    pub cache: String,
    /// The model, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model and the vendor whose prices are taken, where the cache is not that vendor's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices_of: Option<String>,
    /// Problems of the requests: those that do not have the form of the provider.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The day of rules and prices.
    pub as_of: String,
    /// The way tokens were counted.
    pub counted: String,
    /// The requests, in order.
    pub turns: Vec<SimulatedRequest>,
    /// All of them together.
    pub total: Figures,
}

/// The result for one request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SimulatedRequest {
    /// The number of the request, from 1.
    pub turn: usize,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// The reason for not reading the bytes that the previous request left in the cache, in the providers' terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss: Option<&'static str>,
}

/// Tokens by price class.
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
    /// The cost of the input in USD, if prices are known.
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
    /// Counts the tokens of a request by price class, and returns the reason if less is read than the previous
    /// request left.
    fn take(
        &mut self,
        sent: &SentRequest,
        pieces: &Pieces,
        now: f64,
    ) -> Result<(Figures, Option<Miss>), String>;
}

/// The lifetime in seconds; without a number, forever.
fn lifetime(seconds: Option<u64>) -> f64 {
    seconds.map_or(f64::INFINITY, |seconds| Duration::from_secs(seconds).as_secs_f64())
}

/// The reason for a miss although nothing changed.
#[derive(Debug, Clone, Copy)]
enum Miss {
    NoMarker,
    TooShort,
    Expired,
    /// A marker follows the cached part by too many blocks.
    BeyondLookback,
}

impl Miss {
    const fn word(self) -> &'static str {
        match self {
            Self::NoMarker => "no_marker",
            Self::TooShort => "too_short",
            Self::Expired => "expired",
            Self::BeyondLookback => "beyond_lookback",
        }
    }
}

/// Follows the requests of one conversation through a cache.
///
/// `cache` is the name of a cache or of a provider; which of OpenAI's caches it is depends on the model.
pub fn simulate(
    cache: &str,
    model: Option<&str>,
    sent: &[SentRequest],
    models: &Models,
) -> Result<Simulation, Error> {
    let named = sent.first().and_then(|first| first.payload.model());
    let model = model.map(str::to_owned).or(named);
    let known = model.as_deref().and_then(|name| models.find(name));
    let rules = rules(cache, known, models)?;
    let (tokenizer, least) = (known.map_or(Tokenizer::Estimate, Model::tokenizer), least(rules, known));
    let mut engine: Box<dyn Cache> = match rules.kind {
        CacheKind::Breakpoints => Box::new(breakpoints::Breakpoints::new(rules, known)),
        CacheKind::Prefix | CacheKind::Units => Box::new(prefix::Prefix::new(rules, known, tokenizer)),
    };
    let usd = known.and_then(|model| model.input).map(|_| 0.0);
    let (mut turns, mut total) = (Vec::new(), Figures { usd, ..Figures::default() });
    let (mut now, mut before): (f64, Option<Pieces>) = (f64::NEG_INFINITY, None);
    for (index, request) in sent.iter().enumerate() {
        now = time(request, index, now).map_err(|why| bad_turn(index, &why))?;
        let pieces = Pieces::from_payload(&request.payload, tokenizer, rules.is_chat_template())
            .map_err(|error| bad_turn(index, &error.to_string()))?;
        let (figures, silent) = engine.take(request, &pieces, now).map_err(|why| bad_turn(index, &why))?;
        let figures = figures.priced(known);
        let miss = before.as_ref().and_then(|before| {
            // A prefix below the minimum was never in the cache, whatever has changed since.
            let is_too_short = figures.read == 0 && before.tokens() < least;
            let change = pieces.first_change(before).filter(|_| !is_too_short);
            change.or_else(|| is_too_short.then_some(Miss::TooShort).or(silent).map(Miss::word))
        });
        total.add(&figures);
        turns.push(SimulatedRequest { turn: index + 1, figures, miss });
        before = Some(pieces);
    }
    Ok(Simulation {
        version: crate::SHAPE_VERSION,
        cache: rules.name.clone(),
        prices_of: foreign_prices(&rules.name, known),
        warnings: form::warnings(cache, sent),
        as_of: models.as_of.clone(),
        counted: counted(sent, rules, tokenizer, before.as_ref()),
        model,
        turns,
        total,
    })
}

/// The model and the vendor whose prices count in a cache that is not the vendor's own; `None` where it is, and without
/// prices.
pub(crate) fn foreign_prices(cache: &str, model: Option<&Model>) -> Option<String> {
    let model = model.filter(|model| model.input.is_some())?;
    let own = Provider::of_vendor(&model.vendor).name().cache?;
    let is_own = own == cache || own == OPENAI && cache == OPENAI_BREAKPOINTS;
    (!is_own).then(|| format!("{} ({})", model.name, model.vendor))
}

/// Returns the time at which a request is sent.
fn time(request: &SentRequest, index: usize, before: f64) -> Result<f64, String> {
    match request.at {
        Some(at) if at < before => Err(format!("it is sent at {at}, before the one before it")),
        Some(at) => Ok(at),
        None if index == 0 => Ok(0.0),
        None => Ok(before + SECONDS_BETWEEN_TURNS),
    }
}

fn counted(sent: &[SentRequest], rules: &CacheRules, tokenizer: Tokenizer, last: Option<&Pieces>) -> String {
    let is_given =
        rules.kind != CacheKind::Breakpoints && sent.first().is_some_and(|first| first.tokens.is_some());
    let texts = last.into_iter().flat_map(|pieces| &pieces.list).map(|piece| piece.text.as_str());
    if is_given { "given with the requests".into() } else { tokenizer.describe_requests(texts) }
}

fn bad_turn(index: usize, why: &str) -> Error {
    Error::usage(
        format!("request {} cannot be simulated: {why}", index + 1),
        "take what `proem build --for` prints, in the order in which it is sent",
    )
}

impl CacheRules {
    /// Tells whether the cache belongs to a server of open models, which renders tools after the system prompt.
    pub(crate) fn is_chat_template(&self) -> bool {
        matches!(self.name.as_str(), "llama.cpp" | "vllm" | "sglang")
    }
}

/// The smallest prefix that a cache holds, in tokens. A server of an open model has no minimum, whatever its model
/// is called.
fn least(rules: &CacheRules, model: Option<&Model>) -> usize {
    let of_model = model.and_then(|model| model.min_tokens).filter(|_| !rules.is_chat_template());
    of_model.unwrap_or(rules.min_tokens)
}

/// The rules of a cache, or of the cache that a provider has for a model.
pub(crate) fn rules<'m>(
    cache: &str,
    model: Option<&Model>,
    models: &'m Models,
) -> Result<&'m CacheRules, Error> {
    let has_breakpoints = model.is_some_and(|model| model.breakpoints == Some(true));
    let Some(name) = ProviderName::find(cache).map_or(Some(cache), |name| name.cache) else {
        return Err(Error::usage(
            format!("{cache} has no cache that proem knows: it is an agent, which makes the calls itself"),
            "name the provider that the agent calls",
        ));
    };
    let name = if name == OPENAI && has_breakpoints { OPENAI_BREAKPOINTS } else { name };
    models.cache(name).ok_or_else(|| {
        let is_own = |name: &&str| *name != OPENAI_BREAKPOINTS && ProviderName::find(name).is_err();
        let own: Vec<&str> = models.cache_names().into_iter().filter(is_own).collect();
        let unknown = UnknownProvider::new(cache, &own);
        Error::usage(
            unknown.to_string(),
            unknown.hint().unwrap_or_else(|| {
                "a `[[cache]]` row of models.toml in the configuration directory adds one".into()
            }),
        )
    })
}

/// The rows of OpenAI's caches: which one counts depends on the model.
const OPENAI: &str = "openai";
const OPENAI_BREAKPOINTS: &str = "openai-breakpoints";

#[cfg(test)]
mod tests;
