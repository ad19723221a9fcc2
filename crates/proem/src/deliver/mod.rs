//! Turns a prompt into the parts of a provider's request, with cache markers where its rules want them.
//!
//! Caches compare from the first byte on, so earlier messages are never rendered again: they keep their spelling, and
//! the text for one turn accompanies the newest message and stays there.

mod claude;
mod conversation;
mod gemini;
mod launch;
mod notice;
mod openai;
mod provider;
mod shape;
mod tools;
pub mod turn;

use proem_core::carrier::Carrier;
use proem_core::note::{Code, Note, Severity};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::build::Build;
use crate::build::fingerprint::Fingerprint;
use crate::error::{Error, ErrorCause};
use crate::request::{Request, Tool};
use crate::settings::models::{Model, Models};

pub use crate::request::message::RawMessage;
use crate::request::message::unreadable;
use crate::request::raw_json::{Json, object};
use conversation::Conversation;
pub use notice::Notice;
pub(crate) use notice::NoticePlace;
pub use provider::{Provider, ProviderName, UnknownProvider};
use shape::MessageShape;

/// The time for which a provider caches the frozen part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// Five minutes after the last use, which is the providers' default.
    #[default]
    Short,
    /// An hour.
    Hour,
}

/// Options of a delivery.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeliverOptions {
    /// The time for which the frozen part is cached.
    pub lifetime: Lifetime,
    /// The name of a content that Gemini keeps: the system prompt and the tools are in it.
    pub cached_content: Option<String>,
}

/// The parts of a request to a provider.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The parts of the request, as JSON.
    pub payload: Box<RawValue>,
    /// The messages to keep for the next call: as they were sent, without markers.
    pub history: Vec<RawMessage>,
    /// Notes about the delivery.
    pub notes: Vec<Note>,
}

/// The texts of a prompt, by where they go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptTexts<'t> {
    pub(crate) prefix: &'t str,
    /// The boundary and the text after it.
    pub(crate) suffix: &'t str,
    /// True if text follows the boundary: the boundary line itself never changes.
    has_suffix: bool,
    pub(crate) developer: Option<&'t str>,
    pub(crate) first_user: Option<&'t str>,
    pub(crate) turn: Option<&'t str>,
}

impl<'t> PromptTexts<'t> {
    fn from_build(build: &'t Build) -> Self {
        let whole = build.text(Carrier::System).unwrap_or_default();
        let prefix = build.frozen().prefix();
        Self {
            prefix,
            suffix: whole.strip_prefix(prefix).unwrap_or_default(),
            has_suffix: !is_blank(&build.suffix().text(Carrier::System)),
            developer: build.text(Carrier::Developer),
            first_user: build.text(Carrier::FirstUser),
            turn: build.text(Carrier::Turn),
        }
    }

    /// Uses the system prompt of a hook. One that still begins with the frozen prefix keeps it as a part of its own.
    fn hooked(self, system_prompt: Option<&'t str>) -> Self {
        let Some(prompt) = system_prompt else { return self };
        match prompt.strip_prefix(self.prefix) {
            Some(rest) => Self { suffix: rest, ..self },
            None => Self { prefix: prompt, suffix: "", has_suffix: false, ..self },
        }
    }

    /// Moves the text for the turn into the user's message, for agents that take the system prompt once for all
    /// calls.
    fn launched(self, of_turn: &'t str) -> Self {
        let turn = Some(of_turn).filter(|text| !text.is_empty());
        Self { suffix: "", has_suffix: false, turn, ..self }
    }

    /// The texts that do not change, one after the other.
    fn frozen(&self) -> impl Iterator<Item = &'t str> {
        [Some(self.prefix), self.developer].into_iter().flatten().filter(|text| !is_blank(text))
    }
}

/// Everything that belongs to the turn, in one text.
fn text_of_turn(build: &Build) -> String {
    let suffix = build.suffix().text(Carrier::System);
    let texts = [Some(suffix.trim_matches('\n')), build.text(Carrier::Turn)];
    texts.into_iter().flatten().filter(|text| !is_blank(text)).collect::<Vec<_>>().join("\n\n")
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Everything that a payload is made of.
pub(crate) struct PayloadInput<'p> {
    pub(crate) texts: PromptTexts<'p>,
    pub(crate) tools: Vec<&'p Tool>,
    pub(crate) model: Option<&'p str>,
    /// The model's row in the table of models.
    pub(crate) known: Option<&'p Model>,
    pub(crate) options: &'p DeliverOptions,
    pub(crate) cache_key: String,
    pub(crate) lookback: usize,
}

impl PayloadInput<'_> {
    /// Tells whether messages must have the form that every server takes: not all of those that speak OpenAI's
    /// language take lists of parts, and some join them with line breaks of their own.
    fn is_plain(&self) -> bool {
        self.known.is_none_or(|model| model.vendor != "openai")
    }

    /// The field `model`, where one is named.
    fn model_field(&self, key: &str) -> Option<(String, Json)> {
        self.model.map(|name| (key.to_owned(), name.into()))
    }
}

/// Converts a prompt and its conversation to the parts of a request to a provider.
///
/// ```
/// use proem::deliver::{DeliverOptions, Provider, deliver};
/// use proem::settings::models::Models;
/// use proem::{Caller, Request};
///
/// let request = Request::from_json(
///     r#"{"profile": "template", "system": "Be brief.", "model": "claude-opus-5", "prompt": "Hello"}"#,
/// )?;
/// let build = proem::build(&request, Caller::User)?;
/// let models = Models::built_in()?;
/// let delivery = deliver(Provider::Anthropic, &build, &request, &models, &DeliverOptions::default())?;
/// assert!(delivery.payload.get().contains("cache_control"));
/// # Ok::<(), proem::Error>(())
/// ```
pub fn deliver(
    provider: Provider,
    build: &Build,
    request: &Request,
    models: &Models,
    options: &DeliverOptions,
) -> Result<Delivery, Error> {
    let (delivery, _) = deliver_hooked(provider, build, request, (models, options), HookedCall::default())?;
    Ok(delivery)
}

/// The changes that hooks make to one call.
#[derive(Default)]
pub(crate) struct HookedCall<'h, 'c> {
    /// The system prompt of this call, if a hook changed it.
    pub(crate) system_prompt: Option<&'h str>,
    /// Messages after the user's.
    pub(crate) injected: &'h [RawMessage],
    /// Notices, and their place.
    pub(crate) notices: (&'h [&'h str], Option<NoticePlace>),
    /// The conversation whose cache serves this one.
    pub(crate) cache_of: Option<&'h str>,
    /// The hooks that rewrite the messages of this call.
    pub(crate) context: Option<&'h mut turn::Context<'c>>,
}

/// Converts a prompt and its conversation to the parts of a request to a provider, with the changes of hooks. Returns the
/// messages of the call, too, if hooks changed them.
pub(crate) fn deliver_hooked(
    provider: Provider,
    build: &Build,
    request: &Request,
    (models, options): (&Models, &DeliverOptions),
    hooked: HookedCall<'_, '_>,
) -> Result<(Delivery, Option<Vec<RawMessage>>), Error> {
    let mut notes = Vec::new();
    let model = request.model.as_deref();
    let known = model.and_then(|name| models.find(name));
    let known = known.filter(|model| provider.runs(&model.vendor));
    notes.extend(model_note(provider, model, known, models));
    let lookback = models.cache(provider.word()).map_or(0, |rules| rules.lookback);
    let tools = tools::sorted(request.tools.as_deref().unwrap_or_default());
    notes.extend(tools::notes(&tools, provider));
    let of_turn = text_of_turn(build);
    let texts = PromptTexts::from_build(build).hooked(hooked.system_prompt);
    let texts = if provider.is_launched()
        || options.cached_content.is_some() && provider.rules().takes_cached_content
    {
        texts.launched(&of_turn)
    } else {
        texts
    };
    let cache_key = cache_key(hooked.cache_of.or(request.conversation.as_deref()), build.fingerprint());
    let input = PayloadInput { texts, tools, model, known, options, cache_key, lookback };
    let takes_system = known.is_some_and(|model| model.system_messages == Some(true));
    let shape = provider.rules().shape.for_model(input.is_plain(), takes_system);
    let mut messages = messages(request, shape)?;
    let words = messages.len().saturating_sub(1);
    messages.extend(hooked.injected.iter().cloned());
    let mut conversation = Conversation::new(provider, shape, &messages, &texts)?;
    let (notices, place) = hooked.notices;
    if let Some(place) = place {
        let added = conversation.add_notices(notices, place, words);
        added.map_err(|error| unreadable(&error.to_string()))?;
    }
    notes.extend(notes_of_texts(&texts, &conversation, &messages));
    notes.extend(options_notes(provider, options, known));
    notes.extend(images_note(request));
    let history = raw(&conversation.history());
    let unsent = |error: serde_json::Error| Error::Message {
        index: messages.len().saturating_sub(1),
        provider: provider.word(),
        why: error.to_string(),
        cause: ErrorCause::new(error),
    };
    let history = history.map_err(unsent)?;
    let rewritten = hooked.context.map(|context| context.apply(history.clone()));
    let rewritten = rewritten.filter(|messages| *messages != history);
    if let Some(messages) = &rewritten {
        // The text of the carriers is in the messages already.
        let texts = PromptTexts { first_user: None, turn: None, ..texts };
        conversation = Conversation::new(provider, shape, messages, &texts)?;
    }
    let payload = (provider.rules().payload)(&input, conversation, &mut notes);
    let payload = payload.and_then(|payload| serde_json::value::to_raw_value(&payload)).map_err(unsent)?;
    Ok((Delivery { payload, history, notes }, rewritten))
}

/// Writes messages as text.
fn raw(messages: &[Json]) -> Result<Vec<RawMessage>, serde_json::Error> {
    let spelt = |message: &Json| serde_json::to_string(message).and_then(|text| serde_json::from_str(&text));
    messages.iter().map(spelt).collect()
}

/// Returns the conversation of a request followed by the user's new text and images.
fn messages(request: &Request, shape: MessageShape) -> Result<Vec<RawMessage>, Error> {
    let mut messages = request.messages.clone().unwrap_or_default();
    if shape.is_of_claude && !shape.roles.contains(&"system") {
        for message in &mut messages {
            if let Some(renamed) = notice::as_user(message) {
                *message = renamed;
            }
        }
    }
    let images = request.images.as_deref().unwrap_or_default();
    match &request.prompt {
        Some(text) if images.is_empty() => messages.push(RawMessage::from_user(text)),
        Some(text) => messages.push(with_blocks(shape, text, images)?),
        None => {}
    }
    Ok(messages)
}

/// Makes a message of the user's with blocks after its text, in a provider's shape.
fn with_blocks(shape: MessageShape, text: &str, blocks: &[Value]) -> Result<RawMessage, Error> {
    let own = std::iter::once(shape.text_block(text));
    let blocks = own.chain(blocks.iter().map(Json::canonical)).collect();
    let message = object([("role", "user".into()), (shape.content, Json::List(blocks))]);
    let raw = serde_json::value::to_raw_value(&message).map_err(|error| unreadable(&error.to_string()))?;
    RawMessage::checked(raw).map_err(|why| unreadable(&why))
}

/// Returns the key by which servers group conversations with one prefix; providers take at most 64 characters.
fn cache_key(conversation: Option<&str>, fingerprint: &Fingerprint) -> String {
    let conversation = conversation.unwrap_or_default();
    let key = format!("{}:{conversation}", fingerprint.whole.hex());
    proem_core::digest::Digest::new(key.as_bytes()).hex().chars().take(32).collect()
}

/// Notes a model that the table does not have: it gets the form that every model takes.
fn model_note(
    provider: Provider,
    model: Option<&str>,
    known: Option<&Model>,
    models: &Models,
) -> Option<Note> {
    if known.is_some() || provider.is_launched() {
        return None;
    }
    let (severity, message) = match model {
        Some(name) => (
            Severity::Warning,
            format!(
                "the model `{name}` is not among those of {provider} in the table of {}: it gets the form that every model takes",
                models.as_of
            ),
        ),
        None => (Severity::Info, "no model is named: the form is one that every model takes".to_owned()),
    };
    let hint = match model.and_then(|name| models.find(name)) {
        Some(other) => format!("it is a model of {}: name one of {provider}'s", other.vendor),
        None if model.is_none() => "name the model with `--model`, or `model` in the request".to_owned(),
        None => "add a row to models.toml in the configuration directory".to_owned(),
    };
    Some(Note::new(Code::UnknownModel, severity, message).with_hint(hint))
}

fn notes_of_texts(
    texts: &PromptTexts<'_>,
    conversation: &Conversation,
    messages: &[RawMessage],
) -> Vec<Note> {
    let mut notes = Vec::new();
    if texts.has_suffix {
        let message = "the part of this turn stands in the system prompt, before the messages: when it changes, none of them is read from the cache";
        notes.push(
            Note::new(Code::SuffixBeforeHistory, Severity::Warning, message)
                .with_hint("move its sections to the `turn` carrier: `carrier = \"turn\"` in a profile that extends this one"),
        );
    }
    let whole = format!("{}{}", texts.prefix, texts.suffix);
    if !whole.is_empty() && is_blank(&whole) {
        let message = "the system prompt is white space alone, which providers refuse: it is left out";
        notes.push(Note::new(Code::LeftOut, Severity::Warning, message));
    }
    let waiting: Vec<&str> = [("first_user", texts.first_user), ("turn", texts.turn)]
        .into_iter()
        .filter(|(_, text)| text.is_some())
        .map(|(carrier, _)| carrier)
        .collect();
    if !messages.is_empty() && texts.turn.is_some() && conversation.ends_with_model() {
        let message = "the model spoke last, so nothing of `turn` is in the request";
        notes.push(Note::new(Code::LeftOut, Severity::Info, message));
    }
    if messages.is_empty() && !waiting.is_empty() {
        let message = format!(
            "there is no user message yet, so nothing of {} is in the request",
            waiting.join(" and ")
        );
        notes.push(
            Note::new(Code::LeftOut, Severity::Info, message)
                .with_hint("give the conversation with `--messages`, or `prompt` in the request"),
        );
    }
    notes
}

/// Notes images that are sent without a text of the user.
fn images_note(request: &Request) -> Option<Note> {
    let images = request.images.as_deref().unwrap_or_default();
    (request.prompt.is_none() && !images.is_empty()).then(|| {
        Note::new(
            Code::UnusedField,
            Severity::Warning,
            "the request's `images` are left out: it has no `prompt`",
        )
        .with_hint("put them into the newest of `messages`")
    })
}

/// Notes options that a provider has no use for.
fn options_notes(provider: Provider, options: &DeliverOptions, known: Option<&Model>) -> Vec<Note> {
    let has_lifetimes = provider.rules().has_lifetimes;
    let is_long = options.lifetime == Lifetime::Hour;
    let unused = [
        (is_long && !has_lifetimes, format!("{provider} has no use for the longer lifetime")),
        (
            is_long && has_lifetimes && known.is_none(),
            "the longer lifetime is left out: not every model takes it".to_owned(),
        ),
        (
            options.cached_content.is_some() && !provider.rules().takes_cached_content,
            format!("{provider} has no use for the name of a cached content"),
        ),
    ];
    let unused = unused.into_iter().filter(|(is_unused, _)| *is_unused);
    unused.map(|(_, message)| Note::new(Code::UnusedField, Severity::Warning, message)).collect()
}
