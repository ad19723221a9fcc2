//! A conversation simulated as it is and with something changed: another model, template or layout.
//!
//! The store holds no messages. The simulation therefore takes the times and sizes of the recorded calls and fills the
//! history with text of the same number of tokens; the answer says so.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use proem::deliver::{DeliverOptions, Provider, ProviderName, RawMessage, deliver};
use proem::models::{Model, Models};
use proem::simulate::{Payload, SentRequest, Simulation, simulate as run};
use proem::stats::stats;
use proem::tokens::Tokenizer;
use proem::{Build, Caller, Request};
use proem_core::limit::{SIMULATED_BYTES_MAX, SIMULATED_CALLS_MAX};
use proem_store::LoadedEpoch;

use crate::app::App;
use crate::error::ApiError;
use crate::routes::Shared;
use crate::routes::body::{BodyText, PathParams, provider};
use crate::shapes::insight::{WhatIfAnswer, WhatIfBody, WhatIfLayout, WhatIfSide};

/// Calls that are assumed where none is recorded, with the seconds between them and the tokens that each adds.
const ASSUMED_CALLS: u32 = 20;
const ASSUMED_SECONDS: f64 = 60.0;
const ASSUMED_TOKENS: usize = 400;

/// Characters before a volatile value that are compared when it is replaced.
const CONTEXT_CHARACTERS: usize = 40;

/// Text that fills the history.
const FILLER: &str = "the build reads each file of the list and writes one line for it; ";

/// Simulates a conversation as it is, and with a change.
pub(in crate::routes) async fn simulate(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    text: BodyText,
) -> Result<Json<WhatIfAnswer>, ApiError> {
    let change: WhatIfBody = if text.is_empty() { WhatIfBody::default() } else { text.json()? };
    let answer = app.work(move |app| app.what_if(&id, &change)).await?;
    Ok(Json(answer))
}

/// One call to simulate.
struct PlannedCall {
    /// The time in seconds.
    at: f64,
    epoch: u64,
    /// All input tokens; `None` where they are assumed.
    input: Option<u64>,
}

/// The prompt of an epoch, with its request.
#[derive(Clone)]
struct Prompt {
    epoch: u64,
    build: Arc<Build>,
    request: Request,
}

/// One side: the prompts of its calls, and their delivery.
struct Side {
    prompts: Vec<Prompt>,
    provider: Option<&'static ProviderName>,
    has_moving_value: bool,
}

impl App {
    fn what_if(&self, id: &str, change: &WhatIfBody) -> Result<WhatIfAnswer, ApiError> {
        let current = self.known(id)?;
        let models = Models::load(&Request::default(), Caller::REMOTE)?;
        let (calls, recorded) = self.planned_calls(id, &current, &models)?;
        let mut assumptions = vec![if recorded {
            "messages are not stored: text of the recorded number of tokens stands for them".to_owned()
        } else {
            format!(
                "no call is recorded: {ASSUMED_CALLS} calls are assumed, one a minute, each adds {ASSUMED_TOKENS} tokens"
            )
        }];
        let prompts = self.prompts(id, &calls)?;
        let mut now = Side { prompts, provider: None, has_moving_value: false };
        let mut then = Side { prompts: now.prompts.clone(), provider: None, has_moving_value: false };
        if let Some(version) = change.version {
            assumptions.push("both sides are built from the files of now".to_owned());
            now.prompts = vec![self.prompt_now(&current, None)?];
            then.prompts = vec![self.prompt_now(&current, Some(version))?];
        }
        if let Some(model) = &change.model {
            check_model(model, &models)?;
            then.prompts.iter_mut().for_each(|prompt| prompt.request.model = Some(model.clone()));
        }
        then.provider = change.provider.as_deref().map(provider_name).transpose()?;
        match change.layout {
            Some(WhatIfLayout::OneEpoch) => then.prompts.truncate(1),
            Some(WhatIfLayout::EveryTurn) => {
                then.has_moving_value = true;
                assumptions.push(
                    "the first value that changes by day or turn is another one at each call".to_owned(),
                );
            }
            None => {}
        }
        let history = history(&calls, &now, &models)?;
        let (now, then) = (now.run(&calls, &history, &models)?, then.run(&calls, &history, &models)?);
        let difference_usd = then.total.usd.zip(now.total.usd).map(|(then, now)| then - now);
        Ok(WhatIfAnswer { difference_usd, calls: calls.len(), recorded, assumptions, now, then })
    }

    /// Returns the newest recorded calls, or assumed ones.
    fn planned_calls(
        &self,
        id: &str,
        current: &LoadedEpoch,
        models: &Models,
    ) -> Result<(Vec<PlannedCall>, bool), ApiError> {
        let mut judged = self.conversations.calls(id, models)?;
        let dropped = judged.len().saturating_sub(SIMULATED_CALLS_MAX);
        judged.drain(..dropped);
        let epoch = current.head.number;
        if judged.is_empty() {
            let assumed =
                |index: u32| PlannedCall { at: f64::from(index) * ASSUMED_SECONDS, epoch, input: None };
            return Ok(((0..ASSUMED_CALLS).map(assumed).collect(), false));
        }
        let mut calls: Vec<PlannedCall> = Vec::new();
        for call in judged {
            let before = calls.last().map_or(0.0, |call| call.at);
            let at = call.at.map_or(before + ASSUMED_SECONDS, seconds);
            let epoch = call.epoch.unwrap_or(epoch);
            calls.push(PlannedCall { at: at.max(before), epoch, input: Some(call.input) });
        }
        Ok((calls, true))
    }

    /// Returns the prompts of the epochs of some calls.
    fn prompts(&self, id: &str, calls: &[PlannedCall]) -> Result<Vec<Prompt>, ApiError> {
        let mut numbers: Vec<u64> = calls.iter().map(|call| call.epoch).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut prompts = Vec::new();
        for epoch in numbers {
            let kept = self.conversations.epoch(id, epoch)?;
            let kept = kept.ok_or_else(|| ApiError::not_found(format!("there is no epoch {epoch}")))?;
            prompts.push(Prompt { epoch, build: Arc::new(kept.build()), request: with_model(&kept) });
        }
        Ok(prompts)
    }

    /// Builds the prompt of a conversation from the files of now, with a version of the template or the current one.
    fn prompt_now(&self, current: &LoadedEpoch, version: Option<u64>) -> Result<Prompt, ApiError> {
        let mut request = with_model(current);
        let Request { cwd, workspace, .. } = &request;
        self.admit(Request { cwd: cwd.clone(), workspace: workspace.clone(), ..Request::default() })?;
        if let Some(version) = version {
            let found = self.store().template_version(version)?;
            let found = found.ok_or_else(|| ApiError::not_found(format!("there is no version {version}")))?;
            request.template = Some(found.text);
        }
        let request = self.conversations.resolved(&request)?.into_owned();
        let build = self.conversations.prompt(&request, self.caller())?;
        Ok(Prompt { epoch: current.head.number, build: Arc::new(build), request })
    }
}

fn with_model(kept: &LoadedEpoch) -> Request {
    let model = kept.head.model.clone().or_else(|| kept.request.model.clone());
    Request { model, ..kept.request.clone() }
}

fn check_model(name: &str, models: &Models) -> Result<(), ApiError> {
    if models.find(name).is_some() {
        return Ok(());
    }
    let error = ApiError::bad_request(format!("unknown model `{name}`"));
    Err(error.with_hint("`GET /health` lists the models whose prices are known"))
}

fn provider_name(word: &str) -> Result<&'static ProviderName, ApiError> {
    provider(word).map(Provider::name)
}

/// Converts milliseconds to seconds.
#[expect(clippy::cast_precision_loss, reason = "times of calls are far below 2^52 milliseconds")]
fn seconds(milliseconds: i64) -> f64 {
    milliseconds as f64 / 1e3
}

/// Makes the messages of each call: text of as many tokens as the call had beside its prompt.
///
/// A call that is longer than the one before it continues its history; a shorter one begins another history.
fn history(calls: &[PlannedCall], side: &Side, models: &Models) -> Result<Vec<Vec<RawMessage>>, ApiError> {
    let (mut all, mut messages, mut before, mut bytes) = (Vec::new(), Vec::new(), 0, 0);
    for (index, call) in calls.iter().enumerate() {
        let prompt = side.prompt(call)?;
        let (figures, _) = stats(&prompt.build, &prompt.request, None, models, &DeliverOptions::default())?;
        let now = call.input.map_or(before + ASSUMED_TOKENS, |input| {
            usize::try_from(input).unwrap_or(usize::MAX).saturating_sub(figures.prefix_tokens)
        });
        if now < before {
            messages.clear();
            before = 0;
        }
        let known = prompt.request.model.as_deref().and_then(|name| models.find(name));
        let text = filler(now - before, index, known.map_or(Tokenizer::Estimate, Model::tokenizer));
        // A question and an answer to the one before it alternate.
        let role = if messages.len() % 2 == 0 { "user" } else { "assistant" };
        messages.push(RawMessage::plain(role, &text));
        if role == "assistant" {
            messages.push(RawMessage::from_user("Go on."));
        }
        before = now;
        bytes += messages.iter().map(|message| message.get().len()).sum::<usize>();
        if bytes > SIMULATED_BYTES_MAX {
            return Err(ApiError::bad_request(format!(
                "the calls of this conversation are too large to simulate: more than {SIMULATED_BYTES_MAX} bytes"
            )));
        }
        all.push(messages.clone());
    }
    Ok(all)
}

/// Makes a text of about as many tokens, which begins with a number.
fn filler(tokens: usize, index: usize, tokenizer: Tokenizer) -> String {
    let sample = FILLER.repeat(16);
    let per_thousand = sample.len() * 1000 / tokenizer.count(&sample).max(1);
    let bytes = tokens.min(SIMULATED_BYTES_MAX).saturating_mul(per_thousand) / 1000;
    let mut text = format!("{index}: ");
    while text.len() < bytes.min(SIMULATED_BYTES_MAX) {
        text.push_str(FILLER);
    }
    text.truncate(bytes.max(4));
    text
}

impl Side {
    /// Returns the prompt of a call: that of its epoch, or the newest one before it.
    fn prompt(&self, call: &PlannedCall) -> Result<&Prompt, ApiError> {
        let earlier = self.prompts.iter().rev().find(|prompt| prompt.epoch <= call.epoch);
        earlier.or_else(|| self.prompts.first()).ok_or_else(ApiError::internal)
    }

    /// Simulates the calls.
    fn run(
        &self,
        calls: &[PlannedCall],
        history: &[Vec<RawMessage>],
        models: &Models,
    ) -> Result<WhatIfSide, ApiError> {
        let (mut sent, mut cache) = (Vec::new(), "anthropic");
        for (index, (call, messages)) in calls.iter().zip(history).enumerate() {
            let prompt = self.prompt(call)?;
            let request =
                Request { messages: Some(messages.clone()), prompt: None, ..prompt.request.clone() };
            let known = request.model.as_deref().and_then(|name| models.find(name));
            let own = known.map_or(Provider::Anthropic, |model| Provider::of_vendor(&model.vendor));
            let provider = self.provider.map_or(own, |name| name.provider);
            cache = provider.word();
            let delivered = deliver(provider, &prompt.build, &request, models, &DeliverOptions::default())?;
            let mut payload = delivered.payload.get().to_owned();
            if self.has_moving_value {
                payload = moved(&payload, &prompt.build, index);
            }
            let payload = Payload::from_json(&payload).map_err(|_| ApiError::internal())?;
            sent.push(SentRequest { at: Some(call.at), ..SentRequest::from(payload) });
        }
        let model = self.prompts.first().and_then(|prompt| prompt.request.model.as_deref());
        let Simulation { model, cache, as_of, counted, total, turns, .. } = run(cache, model, &sent, models)?;
        Ok(WhatIfSide { model, cache, as_of, counted, total, turns })
    }
}

/// Replaces the first volatile value in a request by a number.
fn moved(payload: &str, build: &Build, index: usize) -> String {
    let Some((carrier, span)) = build.frozen().body().volatile().next() else { return payload.to_owned() };
    let text = build.text(carrier).unwrap_or_default();
    let value = text.get(span.bytes.clone()).unwrap_or_default();
    let ahead = text.get(..span.bytes.start).unwrap_or_default();
    // The text before the value tells it from others that are spelt alike.
    let context = ahead.char_indices().rev().nth(CONTEXT_CHARACTERS).map_or(0, |(at, _)| at);
    let context = ahead.get(context..).unwrap_or_default();
    let (old, new) = (escaped(&format!("{context}{value}")), escaped(&format!("{context}{index}")));
    payload.replacen(&old, &new, 1)
}

/// Writes a text as the inside of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}
