//! Lines of calls: `{at, conversation?, request, response}`, under the names that vendors and tools use.

use std::sync::Arc;

use jiff::Timestamp;
use proem_core::limit::CALL_BYTES_MAX;
use serde_json::Value;

use super::answer::AnswerFacts;
use super::call::{Call, CallPlace, CallingAgent, Purpose, Wire};
use super::chain::json::{field, fields, text_field, without};

/// Values for all lines that do not have their own.
#[derive(Debug, Clone, Default)]
pub struct LineDefaults {
    /// The file, for places and ids.
    pub path: String,
    /// The conversation.
    pub conversation: Option<String>,
    /// The provider.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
}

/// Reads one line; the error says why it is not a call.
///
/// The request may be called `request`, `payload` or `body`, be an object, the text of one, or an object with `headers` and
/// `body`. The response may be called `response` or `answer`, and be an object, the text of one, or a stream of events.
pub fn call_of_line(line: &str, number: usize, defaults: &LineDefaults) -> Result<Call, String> {
    if line.len() > CALL_BYTES_MAX {
        return Err(format!("it has {} bytes; at most {CALL_BYTES_MAX} are read", line.len()));
    }
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if !value.is_object() {
        return Err("a call is an object".into());
    }
    let raw = fields(line);
    let answer = ["response", "answer", "output"]
        .iter()
        .find_map(|key| value.get(*key))
        .filter(|found| !found.is_null());
    let facts = AnswerFacts::of_value(answer.unwrap_or(&value));
    let mut call = Call {
        place: Some(CallPlace { path: defaults.path.clone(), line: Some(number) }),
        usage: facts.usage,
        provider_reason: facts.reason,
        wire: Wire::Unknown,
        ..Call::default()
    };
    for key in ["request", "payload", "body"] {
        if let Some(request) = field(&raw, key) {
            take_request(&mut call, request);
            break;
        }
    }
    if let Some(headers) = value.get("headers") {
        take_headers(&mut call, headers);
    }
    if call.body.is_none() && answer.is_none() && call.usage.input().is_none() {
        return Err("it has neither a request nor numbers about a cache in any provider's shape".into());
    }
    if call.body.is_none() {
        call.wire = facts.wire;
    }
    let word = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let id = word("id").or_else(|| word("request_id")).or(facts.id);
    call.id = id.unwrap_or_else(|| format!("{}:{number}", defaults.path));
    let at = ["at", "timestamp", "time", "created_at", "created"].iter().find_map(|key| value.get(*key));
    call.at = at.or(facts.at.as_ref()).map(moment).transpose()?;
    call.conversation =
        word("conversation").or_else(|| word("session_id")).or_else(|| defaults.conversation.clone());
    call.thread = word("thread");
    call.parent = word("parent");
    call.provider =
        word("provider").or_else(|| defaults.provider.clone()).or_else(|| facts.provider.map(str::to_owned));
    call.model = word("model").or(facts.model).or_else(|| defaults.model.clone());
    // The model of the request is the one that has the cache: an answer may name a dated version of it.
    let asked = call
        .body
        .as_deref()
        .and_then(|body| text_field(&fields(body), "model").map(std::borrow::Cow::into_owned));
    call.model = asked.or(call.model);
    call.cwd = word("cwd");
    call.epoch = value.get("epoch").and_then(Value::as_u64);
    call.purpose = purpose_of(word("purpose").as_deref());
    let told = || {
        let (name, version) = super::collect::agent_of(call.headers.get("user-agent")?)?;
        Some(CallingAgent { name, version: Some(version) })
    };
    let named = word("agent").map(|name| CallingAgent { name, version: word("agent_version") });
    call.agent = named.or_else(told);
    call.conversation = call.conversation.take().or_else(|| session_of_body(call.body.as_deref()?));
    let route = value.get("route");
    let of_route = |key: &str| route?.get(key)?.as_str().map(str::to_owned);
    call.route.host = word("host").or_else(|| of_route("host"));
    call.route.region = of_route("region");
    call.route.account = of_route("account");
    call.hints = super::hints::of_line(&value);
    Ok(call)
}

/// Returns the purpose of a word; calls without one belong to the main thread.
fn purpose_of(word: Option<&str>) -> Purpose {
    match word {
        Some("compaction") => Purpose::Compaction,
        Some("title") => Purpose::Title,
        Some("sub_agent") => Purpose::SubAgent,
        Some("probe") => Purpose::Probe,
        _ => Purpose::Main,
    }
}

/// Returns the session that a body names: Claude Code writes it into the id of the user.
fn session_of_body(body: &str) -> Option<String> {
    let body = fields(body);
    let metadata = fields(field(&body, "metadata")?);
    let user: Value = serde_json::from_str(&text_field(&metadata, "user_id")?).ok()?;
    user.get("session_id")?.as_str().map(str::to_owned)
}

/// Takes a request: the body, its text, or an object with headers and a body.
fn take_request(call: &mut Call, request: &str) {
    if let Some(text) = super::chain::json::text(request) {
        call.body = Some(Arc::from(text.as_ref()));
        return;
    }
    let inner = fields(request);
    let body = field(&inner, "body");
    let is_wrapped =
        body.is_some() && field(&inner, "messages").is_none() && field(&inner, "input").is_none();
    if let Some(body) = body.filter(|_| is_wrapped) {
        if let Some(headers) = field(&inner, "headers").and_then(|text| serde_json::from_str(text).ok()) {
            take_headers(call, &headers);
        }
        take_request(call, body);
        return;
    }
    // The betas of a recorded body are its header.
    if let Some(betas) =
        field(&inner, "betas").and_then(|text| serde_json::from_str::<Vec<String>>(text).ok())
    {
        call.headers.keep("anthropic-beta", &betas.join(","));
        call.body = Some(Arc::from(without(&inner, &["betas"]).as_str()));
        return;
    }
    call.body = Some(Arc::from(request));
}

/// Keeps the relevant headers, from an object or from a list of names and values.
fn take_headers(call: &mut Call, headers: &Value) {
    let mut keep = |name: &str, value: &Value| {
        let text = value.as_str().or_else(|| value.get(0).and_then(Value::as_str));
        if let Some(text) = text {
            if name.eq_ignore_ascii_case("host") {
                call.route.host = Some(text.to_owned());
            }
            call.headers.keep(name, text);
        }
    };
    match headers {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| keep(name, value)),
        Value::Array(list) => {
            for header in list {
                let pair = header.get("name").and_then(Value::as_str).zip(header.get("value"));
                let pair = pair.or_else(|| header.get(0).and_then(Value::as_str).zip(header.get(1)));
                if let Some((name, value)) = pair {
                    keep(name, value);
                }
            }
        }
        _ => {}
    }
}

/// Reads a time: RFC 3339, seconds or milliseconds since 1970.
fn moment(value: &Value) -> Result<i64, String> {
    const MILLIS_FROM: f64 = 1e11;
    let wrong = || format!("`at` is {value}: write RFC 3339, or seconds since 1970");
    match value {
        Value::String(text) => text.parse::<Timestamp>().map(Timestamp::as_millisecond).map_err(|_| wrong()),
        Value::Number(_) => {
            let number = value.as_f64().filter(|number| number.is_finite()).ok_or_else(wrong)?;
            let seconds = if number.abs() >= MILLIS_FROM { number / 1e3 } else { number };
            let time = jiff::SignedDuration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
            i64::try_from(time.as_millis()).map_err(|_| wrong())
        }
        _ => Err(wrong()),
    }
}
