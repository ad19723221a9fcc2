//! Payloads for providers, byte for byte: every case of `corpus/payloads` for every provider.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use proem::build_shape::NoteShape;
use proem::deliver::{DeliverOptions, Delivery, Lifetime, Provider, deliver};
use proem::models::Models;
use proem::{Build, Caller, Error, RawMessage, Request};
use proem_testkit::{Case, CaseFolder, for_each_case_of, payload_model};
use serde_json::{Value, json};

/// The options of a case, and whether its model stays unnamed.
fn options(case: &Case) -> (DeliverOptions, bool) {
    let said: Value =
        case.file("options.json").map_or(json!({}), |text| serde_json::from_str(&text).unwrap());
    let lifetime = if said["lifetime"] == json!("1h") { Lifetime::Hour } else { Lifetime::Short };
    let cached_content = said["cached_content"].as_str().map(str::to_owned);
    let is_unnamed = said.as_object().unwrap().get("model") == Some(&Value::Null);
    (DeliverOptions { lifetime, cached_content }, is_unnamed)
}

fn request(case: &Case, laid: &CaseFolder, provider: Provider) -> Result<Request, Error> {
    let mut request = Request::from_json(&laid.request)?;
    if request.model.is_none() && !options(case).1 {
        request.model = Some(payload_model(provider.word()).to_owned());
    }
    if let Some(messages) = case.file(&format!("messages_{provider}.json")) {
        request.messages = Some(RawMessage::list(&messages)?);
    }
    Ok(request)
}

fn run(case: &Case, laid: &CaseFolder, provider: Provider) -> Result<(Request, Build, Delivery), Error> {
    let request = request(case, laid, provider)?;
    let build = proem::build(&request, Caller::User)?;
    let models = Models::load(&request, Caller::User)?;
    let delivered = deliver(provider, &build, &request, &models, &options(case).0)?;
    Ok((request, build, delivered))
}

#[test]
fn every_payload_is_the_golden_one() {
    for_each_case_of("payloads", |case| {
        let laid = case.lay_out();
        let mut all_notes = serde_json::Map::new();
        for provider in Provider::ALL {
            let (payload, error, notes) = match run(case, &laid, provider) {
                Ok((_, _, delivered)) => (Some(format!("{}\n", delivered.payload)), None, delivered.notes),
                Err(error) => (None, Some(format!("error: {error}\n")), Vec::new()),
            };
            case.check_file(&laid, &format!("{provider}.json"), payload.as_deref());
            case.check_file(&laid, &format!("{provider}.error.txt"), error.as_deref());
            let brief = |note: &NoteShape<'_>| json!({ "code": note.code, "message": note.message });
            let notes: Vec<Value> = notes.iter().map(NoteShape::new).map(|note| brief(&note)).collect();
            if !notes.is_empty() {
                all_notes.insert(provider.word().to_owned(), notes.into());
            }
        }
        let notes = serde_json::to_string_pretty(&all_notes).unwrap() + "\n";
        case.check_file(
            &laid,
            "delivery.notes.json",
            Some(&notes).filter(|_| !all_notes.is_empty()).map(String::as_str),
        );
    });
}

/// Returns the pieces of a payload that a provider reads before a new message: everything but markers.
fn said(payload: &str) -> Vec<Value> {
    let mut payload: Value = serde_json::from_str(payload).unwrap();
    remove_markers(&mut payload);
    let list = |key: &str| payload.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let first = ["toolConfig", "systemInstruction"].into_iter().filter_map(|key| payload.get(key).cloned());
    let lists = ["tools", "system", "messages", "input", "contents"].into_iter().flat_map(list);
    first.chain(lists).collect()
}

fn remove_markers(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| key != "cache_control" && key != "prompt_cache_breakpoint");
            fields.values_mut().for_each(remove_markers);
        }
        Value::Array(items) => {
            items.retain(|item| item.get("cachePoint").is_none());
            items.iter_mut().for_each(remove_markers);
        }
        _ => {}
    }
    // Anthropic reads a text as a list of one block, so a marker may make one of the other.
    if let Some(Value::String(text)) = value.get("content") {
        let block = json!({ "type": "text", "text": text });
        value["content"] = json!([block]);
    }
}

/// A caller sends again exactly the text that was sent before: the next request begins with all of the last one.
#[test]
fn the_next_request_begins_with_the_last_one() {
    let mut compared = 0;
    for provider in
        Provider::ALL.into_iter().filter(|provider| !matches!(provider, Provider::Acp | Provider::Codex))
    {
        for_each_case_of("payloads/", |case| {
            // Only the frozen part stays: a suffix in the system prompt changes with each turn.
            if case.name().contains("boundary") || case.name().contains("suffix") {
                return;
            }
            let laid = case.lay_out();
            let Ok((request, build, first)) = run(case, &laid, provider) else { return };
            if first.history.is_empty() {
                return;
            }
            let mut messages = first.history.clone();
            messages.push(RawMessage::plain("assistant", "Well."));
            let next = Request { messages: Some(messages), prompt: Some("And then?".into()), ..request };
            let models = Models::built_in().unwrap();
            let second = deliver(provider, &build, &next, &models, &options(case).0).unwrap();
            let (before, after) = (said(first.payload.get()), said(second.payload.get()));
            assert!(after.len() >= before.len() + 2 || provider == Provider::Gemini, "{provider}");
            assert_eq!(after.get(..before.len()), Some(before.as_slice()), "{provider}");
            for message in &first.history {
                assert!(
                    second.payload.get().contains(message.get()) || is_marked(&second, message),
                    "{provider}"
                );
            }
        });
        compared += 1;
    }
    assert_eq!(compared, 6);
}

/// A message whose end is marked is spelt with the marker in it.
fn is_marked(delivered: &Delivery, message: &RawMessage) -> bool {
    let has_marker = ["cache_control", "cachePoint"].iter().any(|key| delivered.payload.get().contains(key));
    has_marker && delivered.history.iter().any(|kept| kept == message)
}
