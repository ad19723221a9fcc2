//! The cost of a prompt: tokens by section and carrier, the cached part, and the price of a turn cold and warm.

use proem_core::carrier::Carrier;
use proem_core::frozen::PlacedSection;
use proem_core::note::{Code, Note, Severity};
use schemars::JsonSchema;
use serde::Serialize;

use crate::build::Build;
use crate::build::fingerprint::canonical_tools;
use crate::costs::simulate::{Figures, Payload, SentRequest, foreign_prices, simulate};
use crate::deliver::{DeliverOptions, Delivery, Provider, ProviderName, RawMessage, deliver};
use crate::error::Error;
use crate::request::Request;
use crate::settings::models::{Model, Models};
use crate::settings::tokens::{TokenBounds, Tokenizer};

/// The figures of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Stats {
    /// The model, if one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider whose rules apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<&'static str>,
    /// The model and the vendor whose prices are taken, where the provider is not that vendor's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices_of: Option<String>,
    /// The day of rules and prices.
    pub as_of: String,
    /// The way tokens were counted.
    pub counted: String,
    /// True if the counts are exact.
    pub exact: bool,
    /// The sections, in order.
    pub sections: Vec<SectionStats>,
    /// The carriers that have text.
    pub carriers: Vec<CarrierStats>,
    /// The definitions of the tools.
    pub tools: ToolStats,
    /// Tools and everything that is frozen, on every carrier: the part that a cache must hold to be of use.
    pub prefix_tokens: usize,
    /// The least and the most tokens that the prefix can have, where they are estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_bounds: Option<TokenBounds>,
    /// The smallest prefix that the model caches, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tokens: Option<usize>,
    /// The first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cold: Option<Figures>,
    /// The turn after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm: Option<Figures>,
}

/// One section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SectionStats {
    /// The section's name in the profile.
    pub id: String,
    /// The carrier.
    pub carrier: &'static str,
    /// The stability of its least stable byte.
    pub stability: &'static str,
    /// Its length in bytes.
    pub bytes: usize,
    /// Its length in tokens.
    pub tokens: usize,
    /// The part that the cache plays in the next turn.
    pub cached: CacheUse,
}

/// The part of the cache in delivering a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheUse {
    /// From the second turn on.
    Yes,
    /// It is sent once with its turn, and is read from the cache later as part of the history.
    AsHistory,
    /// It is rendered for each turn, before the history.
    No,
    /// Not yet: the request is too short for the model's cache.
    TooShort,
}

impl CacheUse {
    /// The wording for tables.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::AsHistory => "as history",
            Self::No => "no",
            Self::TooShort => "too short",
        }
    }
}

/// One carrier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CarrierStats {
    /// The carrier.
    pub carrier: &'static str,
    /// The length of its text in bytes.
    pub bytes: usize,
    /// The length of its text in tokens.
    pub tokens: usize,
}

/// The definitions of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolStats {
    /// The number of tools.
    pub count: usize,
    /// Their length in bytes, in canonical form.
    pub bytes: usize,
    /// Their length in tokens.
    pub tokens: usize,
}

/// Counts a prompt. Without a provider, the one that runs the model is meant.
pub fn stats(
    build: &Build,
    request: &Request,
    provider: Option<&'static ProviderName>,
    models: &Models,
    options: &DeliverOptions,
) -> Result<(Stats, Vec<Note>), Error> {
    let known = request.model.as_deref().and_then(|name| models.find(name));
    let tokenizer = known.map_or(Tokenizer::Estimate, Model::tokenizer);
    let provider = provider.or_else(|| known.map(|model| Provider::of_vendor(&model.vendor).name()));
    let canonical = canonical_tools(request.tools.as_deref().unwrap_or_default());
    let tools = ToolStats {
        count: request.tools.as_ref().map_or(0, Vec::len),
        bytes: canonical.len(),
        tokens: tokenizer.count(&canonical),
    };
    let turns = match provider {
        Some(provider) => two_turns(provider, build, request, models, options)?,
        None => None,
    };
    let frozen = frozen_texts(build);
    let prefix_tokens = tools.tokens + frozen.iter().map(|text| tokenizer.count(text)).sum::<usize>();
    let counted_texts = || std::iter::once(canonical.as_str()).chain(frozen);
    let min_tokens = known.and_then(|model| model.min_tokens);
    let mut sections: Vec<SectionStats> =
        build.whole().sections().iter().map(|placed| section(placed, build, tokenizer)).collect();
    if turns.as_ref().is_some_and(|(_, warm, _)| warm.read == 0)
        && min_tokens.is_some_and(|least| prefix_tokens < least)
    {
        for section in sections.iter_mut().filter(|section| section.cached != CacheUse::No) {
            section.cached = CacheUse::TooShort;
        }
    }
    let stats = Stats {
        model: request.model.clone(),
        provider: provider.map(|name| name.word),
        prices_of: provider.and_then(|name| foreign_prices(name.cache?, known)),
        as_of: models.as_of.clone(),
        counted: counted(tokenizer, counted_texts(), request, known.is_some()),
        exact: tokenizer.is_exact(),
        sections,
        carriers: carriers(build, tokenizer),
        tools,
        prefix_tokens,
        prefix_bounds: tokenizer.bounds(counted_texts()),
        min_tokens,
        cold: turns.as_ref().map(|(cold, _, _)| *cold),
        warm: turns.as_ref().map(|(_, warm, _)| *warm),
    };
    let of_delivery = turns.into_iter().flat_map(|(_, _, notes)| notes);
    let of_delivery = of_delivery.filter(|note| note.code == Code::SuffixBeforeHistory);
    let notes = below_minimum(&stats).into_iter().chain(of_delivery).collect();
    Ok((stats, notes))
}

/// The frozen text of each carrier that is cached, in the order in which a provider reads them.
fn frozen_texts(build: &Build) -> [&str; 3] {
    let of = |carrier: Carrier| build.frozen().body().text(carrier).unwrap_or_default();
    [build.frozen().prefix(), of(Carrier::Developer), of(Carrier::FirstUser)]
}

/// Describes the way tokens were counted, the error of an estimate, and the reason for estimating.
fn counted<'t>(
    tokenizer: Tokenizer,
    prefix: impl Iterator<Item = &'t str>,
    request: &Request,
    is_known: bool,
) -> String {
    let counted = tokenizer.describe(prefix);
    match &request.model {
        _ if tokenizer.is_exact() => counted,
        None => format!("{counted}: no model is named"),
        Some(model) if is_known => format!("{counted}: {model} has no public tokenizer"),
        Some(model) => format!("{counted}: the tokenizer of {model} is not known"),
    }
}

fn section(placed: &PlacedSection, build: &Build, tokenizer: Tokenizer) -> SectionStats {
    let text = build.whole().text(placed.carrier).and_then(|text| text.get(placed.bytes.clone()));
    let frozen_bytes = build.frozen().body().text(placed.carrier).map_or(0, str::len);
    let cached = match placed.carrier {
        Carrier::Turn => CacheUse::AsHistory,
        _ if placed.bytes.end <= frozen_bytes => CacheUse::Yes,
        _ => CacheUse::No,
    };
    SectionStats {
        id: placed.id.clone(),
        carrier: placed.carrier.word(),
        stability: placed.stability.word(),
        bytes: placed.bytes.len(),
        tokens: tokenizer.count(text.unwrap_or_default()),
        cached,
    }
}

fn carriers(build: &Build, tokenizer: Tokenizer) -> Vec<CarrierStats> {
    let count = |(carrier, text): (Carrier, &str)| CarrierStats {
        carrier: carrier.word(),
        bytes: text.len(),
        tokens: tokenizer.count(text),
    };
    build.whole().carriers().map(count).collect()
}

/// The first turn and the one after it, through the provider's cache. A conversation that has not begun
/// begins with one word.
fn two_turns(
    name: &ProviderName,
    build: &Build,
    request: &Request,
    models: &Models,
    options: &DeliverOptions,
) -> Result<Option<(Figures, Figures, Vec<Note>)>, Error> {
    if name.cache.is_none() {
        return Ok(None);
    }
    let provider = name.provider;
    // The content that Gemini keeps under a name is paid for, too.
    let options = &DeliverOptions { cached_content: None, ..options.clone() };
    let mut first = request.clone();
    if first.messages.as_ref().is_none_or(Vec::is_empty) && first.prompt.is_none() {
        first.prompt = Some("Hello".into());
    }
    let cold = deliver(provider, build, &first, models, options)?;
    let mut messages = cold.history.clone();
    messages.push(RawMessage::plain("assistant", "Hello."));
    let second = Request { messages: Some(messages), prompt: Some("Hello".into()), ..request.clone() };
    // The text for the turn is another one by then: that is its purpose.
    let later = build.with_other_suffix();
    let warm = deliver(provider, &later, &second, models, options)?;
    let sent = [sent(&cold)?, sent(&warm)?];
    let simulation = simulate(name.word, request.model.as_deref(), &sent, models)?;
    Ok(match simulation.turns.as_slice() {
        [first, next] => Some((first.figures, next.figures, cold.notes)),
        _ => None,
    })
}

fn sent(delivered: &Delivery) -> Result<SentRequest, Error> {
    let payload = Payload::from_json(delivered.payload.get());
    payload.map(SentRequest::from).map_err(|why| Error::request(format!("its payload cannot be read: {why}")))
}

/// Notes a prefix below the minimum: nothing is cached then, and no provider reports it.
fn below_minimum(stats: &Stats) -> Option<Note> {
    let (model, min_tokens) = stats.model.as_ref().zip(stats.min_tokens)?;
    let is_read = stats.warm.is_none_or(|warm| warm.read > 0);
    if stats.prefix_tokens >= min_tokens || is_read {
        return None;
    }
    let about = if stats.exact { "" } else { "about " };
    let message = format!(
        "tools and frozen prompt have {about}{} tokens, and {model} caches nothing below {min_tokens}: until the conversation is longer, every call is paid in full",
        stats.prefix_tokens,
    );
    Some(Note::new(Code::BelowCacheMinimum, Severity::Warning, message))
}
