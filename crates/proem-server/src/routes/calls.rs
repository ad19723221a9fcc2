//! Calls to providers: recorded, judged, listed and summed up.

use axum::Json;
use axum::extract::State;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proem::conversation::{Recorded, RecordedCall, UsageReport};
use proem::evidence::JudgedCall;
use proem::store::traffic::{CallKey, CallQuery, DAY_MILLIS, UsageBy, UsageQuery};
use proem::traffic::Call;
use proem::traffic::lines::{LineDefaults, call_of_line};
use proem::traffic::report::ReportNote;
use proem_core::digest::Digest;
use proem_store::{ConversationError, is_conversation_id};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Shared;
use super::body::{BodyText, PathParams, QueryParams};
use crate::app::App;
use crate::error::ApiError;
use crate::shapes::{CallsAnswer, CallsPage, RecordedAnswer};

/// The largest and the default number of calls on one page.
const PAGE_MAX: usize = 1_000;
const PAGE: usize = 100;

/// Days that sums take into account by default.
const USAGE_DAYS: i64 = 30;

/// Notes about lines that are returned one by one.
const NOTES_MAX: usize = 100;

/// Stores the usage that a provider reported for a call, and returns a verdict on its cache.
pub(super) async fn add(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    text: BodyText,
) -> Result<Json<JudgedCall>, ApiError> {
    if !is_conversation_id(&id) {
        return Err(ConversationError::BadId.into());
    }
    let judged = app.work(move |app| Ok(app.conversations.add_call(&id, &text.0, &app.recorder)?)).await?;
    app.metrics.judged(judged.verdict, judged.owner.as_ref().map(|owner| owner.kind), judged.lost_usd);
    Ok(Json(judged))
}

/// Returns all calls of a conversation, with verdicts.
pub(super) async fn list(
    State(app): Shared,
    PathParams(id): PathParams<String>,
) -> Result<Json<CallsAnswer>, ApiError> {
    let calls = app
        .work(move |app| {
            app.known(&id)?;
            Ok(app.conversations.calls(&id, &app.recorder.models())?)
        })
        .await?;
    Ok(Json(CallsAnswer { calls }))
}

/// Stores calls of any agent: one, a list, or JSON lines, as `proem report` reads them.
pub(super) async fn record(State(app): Shared, text: BodyText) -> Result<Json<RecordedAnswer>, ApiError> {
    let answer = app
        .work(move |app| {
            let (calls, notes) = calls_of(&text.0)?;
            app.record(calls, notes)
        })
        .await?;
    Ok(Json(answer))
}

/// Stores the calls of telemetry events: logs of OTLP, as JSON.
pub(super) async fn logs(State(app): Shared, text: BodyText) -> Result<Json<Value>, ApiError> {
    app.work(move |app| {
        let logs: Value = text.json()?;
        if !logs.get("resourceLogs").is_some_and(Value::is_array) {
            let error = ApiError::bad_request("the body has no list `resourceLogs`");
            return Err(
                error.with_hint("send logs of OTLP as JSON: set OTEL_EXPORTER_OTLP_PROTOCOL=http/json")
            );
        }
        let calls = app.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take(&logs);
        app.record(calls, Vec::new()).map(drop)
    })
    .await?;
    // The answer of the protocol to logs that were all accepted.
    Ok(Json(json!({})))
}

impl App {
    fn record(&self, calls: Vec<Call>, notes: Vec<ReportNote>) -> Result<RecordedAnswer, ApiError> {
        let recorded = self.recorder.record_all(calls)?;
        let fresh = recorded.iter().filter(|one| one.is_new);
        for Recorded { call, .. } in fresh.clone() {
            let owner = call.call.owner.as_ref().map(|owner| owner.kind);
            self.metrics.judged(call.call.verdict, owner, call.call.lost_usd);
            self.options.telemetry.iter().for_each(|telemetry| telemetry.take_call(&call.call));
        }
        let added = fresh.count();
        let calls = recorded.into_iter().map(|one| one.call).collect();
        Ok(RecordedAnswer { version: 1, added, calls, notes })
    }
}

/// Reads the calls of a body. A line that is none leaves a note; a body without any call is an error.
fn calls_of(body: &str) -> Result<(Vec<Call>, Vec<ReportNote>), ApiError> {
    let whole: Result<&RawValue, _> = serde_json::from_str(body);
    let list: Option<Vec<&RawValue>> = serde_json::from_str(body).ok();
    let lines: Vec<&str> = match (whole, list) {
        (_, Some(list)) => list.into_iter().map(RawValue::get).collect(),
        (Ok(one), None) => vec![one.get()],
        (Err(_), None) => body.lines().collect(),
    };
    let (mut calls, mut notes, mut skipped) = (Vec::new(), Vec::new(), 0_usize);
    let mut first = None;
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match call_of(line, index + 1) {
            Ok(call) => calls.push(call),
            Err(why) => {
                skipped += 1;
                first.get_or_insert_with(|| format!("call {} is invalid: {why}", index + 1));
                if notes.len() < NOTES_MAX {
                    notes.push(note(format!("call {} is left out: {why}", index + 1)));
                }
            }
        }
    }
    if skipped > NOTES_MAX {
        notes.push(note(format!("{} more are left out", skipped - NOTES_MAX)));
    }
    match first {
        Some(first) if calls.is_empty() => Err(ApiError::bad_request(first).with_hint(
            "send `{\"at\": …, \"conversation\": …, \"request\": …, \"response\": …}`, a list of them, or one per line",
        )),
        None if calls.is_empty() && lines.iter().all(|line| line.trim().is_empty()) && !body.contains('[') => {
            Err(ApiError::bad_request("the body has no call"))
        }
        _ => Ok((calls, notes)),
    }
}

fn note(message: String) -> ReportNote {
    ReportNote { code: "unreadable".into(), severity: "warning".into(), message }
}

/// Reads one call. Without an id, the digest of a line with a time is its id, so that a repeated one is the same call.
fn call_of(line: &str, number: usize) -> Result<Call, String> {
    let mut call = call_of_line(line, number, &LineDefaults::default())?;
    call.place = None;
    if call.id == format!(":{number}") {
        let digest = Digest::new(line.as_bytes()).hex();
        let id = format!("call_{}", digest.get(..24).unwrap_or_default());
        call.id = if call.at.is_some() { id } else { String::new() };
    }
    Ok(call)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallsQuery {
    conversation: Option<String>,
    since: Option<String>,
    until: Option<String>,
    verdict: Option<String>,
    model: Option<String>,
    cwd: Option<String>,
    owner: Option<String>,
    alarming: Option<bool>,
    after: Option<String>,
    limit: Option<usize>,
}

/// Lists calls, the newest first.
pub(super) async fn page(
    State(app): Shared,
    QueryParams(query): QueryParams<CallsQuery>,
) -> Result<Json<CallsPage>, ApiError> {
    if query.after.as_deref().is_some_and(|after| CallKey::parse(after).is_none()) {
        let error = ApiError::bad_request("`after` is not a place in the list");
        return Err(error.with_hint("take it from `next` of the page before"));
    }
    let verdicts = query.verdict.as_deref().unwrap_or_default().split(',').map(str::trim);
    let verdicts: Vec<String> = verdicts.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let is_known = |word: &String| proem::traffic::CacheVerdict::ALL.iter().any(|known| known.word() == word);
    if let Some(unknown) = verdicts.iter().find(|word| !is_known(word)) {
        let words: Vec<&str> = proem::traffic::CacheVerdict::ALL.iter().map(|known| known.word()).collect();
        let error = ApiError::bad_request(format!("unknown verdict `{}`", printable(unknown)));
        return Err(error.with_hint(format!("expected one of: {}", words.join(", "))));
    }
    let wanted = CallQuery {
        conversation: plain("conversation", query.conversation)?,
        since: query.since.as_deref().map(|text| moment("since", text)).transpose()?,
        until: query.until.as_deref().map(|text| moment("until", text)).transpose()?,
        verdicts,
        model: plain("model", query.model)?,
        cwd: plain("cwd", query.cwd)?,
        owner: plain("owner", query.owner)?,
        is_alarming: query.alarming,
        after: query.after,
        most: query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX),
    };
    let answer = app
        .work(move |app| {
            let page = app.store().list_calls(&wanted)?;
            let calls = page.items.iter().map(RecordedCall::read).collect::<Result<_, _>>()?;
            Ok(CallsPage { version: 1, calls, next: page.next })
        })
        .await?;
    Ok(Json(answer))
}

/// Returns one call.
pub(super) async fn show(
    State(app): Shared,
    PathParams(id): PathParams<String>,
) -> Result<Json<RecordedCall>, ApiError> {
    let call = app
        .work(move |app| {
            let found = if id.contains('\0') { None } else { app.store().stored_call(&id)? };
            let found = found.ok_or_else(|| ApiError::not_found("there is no such call"))?;
            Ok(RecordedCall::read(&found)?)
        })
        .await?;
    Ok(Json(call))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageParameters {
    since: Option<String>,
    until: Option<String>,
    by: Option<String>,
}

/// Sums up calls over a time.
pub(super) async fn usage(
    State(app): Shared,
    QueryParams(query): QueryParams<UsageParameters>,
) -> Result<Json<UsageReport>, ApiError> {
    let word = query.by.as_deref().unwrap_or(UsageBy::Day.word());
    let Some(by) = UsageBy::parse(word) else {
        let words: Vec<&str> = UsageBy::ALL.iter().map(|by| by.word()).collect();
        let error = ApiError::bad_request(format!("calls cannot be summed up by `{}`", printable(word)));
        return Err(error.with_hint(format!("expected one of: {}", words.join(", "))));
    };
    // Whole days: today and those before it.
    let today = Timestamp::now().as_millisecond().div_euclid(DAY_MILLIS);
    let since = query.since.as_deref().map(|text| moment("since", text)).transpose()?;
    let until = query.until.as_deref().map(|text| moment("until", text)).transpose()?;
    let wanted = UsageQuery {
        since: since.unwrap_or((today - USAGE_DAYS + 1) * DAY_MILLIS),
        until: until.unwrap_or(i64::MAX),
        by,
    };
    let usage = app.work(move |app| Ok(UsageReport::read(app.store().as_ref(), &wanted)?)).await?;
    Ok(Json(usage))
}

fn printable(word: &str) -> String {
    proem_core::text_safety::escape::escape_line(proem_core::text::clip(word, 80)).into_owned()
}

/// Refuses a filter that no stored text can have.
fn plain(name: &str, text: Option<String>) -> Result<Option<String>, ApiError> {
    if text.as_deref().is_some_and(|text| text.contains('\0')) {
        return Err(ApiError::bad_request(format!("`{name}` has a NUL (U+0000), which no stored text has")));
    }
    Ok(text)
}

/// Reads a time: RFC 3339, a day, milliseconds since 1970, or a duration before now, such as `7d` or `12h`.
pub(super) fn moment(name: &str, text: &str) -> Result<i64, ApiError> {
    let wrong = || {
        let error = ApiError::bad_request(format!("`{name}` is not a time"));
        error.with_hint("write `2026-11-01T12:00:00Z`, `2026-11-01`, milliseconds since 1970, or `7d`")
    };
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_millisecond());
    }
    if let Ok(millis) = text.parse::<i64>() {
        return Timestamp::from_millisecond(millis).map(|_| millis).map_err(|_| wrong());
    }
    if let Ok(day) = text.parse::<Date>() {
        let at = TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).map_err(|_| wrong())?;
        return Ok(at.as_millisecond());
    }
    let unit = match text.chars().last() {
        Some('d') => 24 * 3_600,
        Some('h') => 3_600,
        Some('m') => 60,
        _ => return Err(wrong()),
    };
    let count: i64 = text.get(..text.len() - 1).and_then(|count| count.parse().ok()).ok_or_else(wrong)?;
    let seconds = count.checked_mul(unit).filter(|seconds| *seconds >= 0).ok_or_else(wrong)?;
    let then = Timestamp::now().checked_sub(SignedDuration::from_secs(seconds)).map_err(|_| wrong())?;
    Ok(then.as_millisecond())
}
