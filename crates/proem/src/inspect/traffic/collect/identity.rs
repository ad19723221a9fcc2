//! Conversation, thread, agent and purpose of a call, by its headers and body.

use std::sync::Arc;

use serde_json::Value;

use super::rules::CollectRules;
use crate::inspect::traffic::call::{Call, CallHeaders, CallingAgent};

/// Keeps the relevant headers of a request in a call, and reads from them what they say.
///
/// Every other header is dropped at once: it may be a credential.
pub(super) fn read_headers<'a>(call: &mut Call, headers: impl Iterator<Item = (&'a str, &'a str)>) {
    let rules = CollectRules::built_in();
    for (name, value) in headers {
        call.headers.keep(name, value);
    }
    let kept = std::mem::take(&mut call.headers);
    let first = |names: &[String]| names.iter().find_map(|name| kept.get(name)).map(str::to_owned);
    call.conversation = call.conversation.take().or_else(|| first(&rules.headers.conversation));
    call.thread = call.thread.take().or_else(|| first(&rules.headers.thread));
    call.parent = call.parent.take().or_else(|| first(&rules.headers.parent));
    if call.thread.is_some() && call.thread == call.conversation {
        call.thread = None;
    }
    if let Some((name, version)) = kept.get("user-agent").and_then(|value| rules.agent(value)) {
        call.agent = Some(CallingAgent { name: name.to_owned(), version: Some(version.to_owned()) });
    }
    if let (Some(agent), Some(word)) = (&call.agent, first(&rules.headers.purpose)) {
        call.purpose = rules.purpose(&agent.name, &word);
    }
    call.is_subscription |= is_subscription(&kept);
    call.headers = kept;
}

fn is_subscription(headers: &CallHeaders) -> bool {
    let betas = headers.get("anthropic-beta").unwrap_or_default();
    CollectRules::built_in().is_subscription(betas.split(','))
}

/// Reads the fields of a body that name its model and conversation.
pub(super) fn read_body(call: &mut Call, body: &Value) {
    let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
    call.model = call.model.take().or_else(|| text("model"));
    let session = || {
        let user = body.get("metadata")?.get("user_id")?.as_str()?;
        let user: Value = serde_json::from_str(user).ok()?;
        user.get("session_id")?.as_str().map(str::to_owned)
    };
    call.conversation = call.conversation.take().or_else(session).or_else(|| text("prompt_cache_key"));
    if let Some(Value::Array(betas)) = body.get("betas") {
        let betas = betas.iter().filter_map(Value::as_str);
        call.is_subscription |= CollectRules::built_in().is_subscription(betas);
    }
}

/// Adds a body that was sent, with what its fields say.
pub(super) fn add_body(call: &mut Call, body: Arc<str>) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(&body) else { return false };
    if !value.is_object() {
        return false;
    }
    read_body(call, &value);
    call.body = Some(body);
    true
}

/// Returns the host of a URL, without credentials, path and query.
pub(super) fn host(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::traffic::call::Purpose;

    #[test]
    fn headers_name_the_conversation_and_never_leave_a_credential() {
        let mut call = Call::default();
        let headers = [
            ("Authorization", "Bearer sk-ant-oat01-secret"),
            ("X-Claude-Code-Session-Id", "s-1"),
            ("x-claude-code-agent-id", "a-1"),
            ("x-claude-code-request-class", "compaction"),
            ("User-Agent", "claude-cli/2.1.326 (external, cli)"),
            ("anthropic-beta", "a,oauth-2025-04-20"),
        ];
        read_headers(&mut call, headers.into_iter());
        assert_eq!((call.conversation.as_deref(), call.thread.as_deref()), (Some("s-1"), Some("a-1")));
        assert_eq!((call.purpose, call.is_subscription), (Purpose::Compaction, true));
        assert_eq!(call.agent.as_ref().and_then(|agent| agent.version.as_deref()), Some("2.1.326"));
        assert!(!format!("{call:?}").contains("secret"));
    }

    #[test]
    fn hosts_have_no_credentials() {
        assert_eq!(host("https://me:key@API.example.com:8080/v1?k=1"), Some("api.example.com:8080".into()));
        assert_eq!(host("no url"), None);
    }
}
