//! Verdicts, each from the least that proves it.

use serde_json::{Value, json};

use super::*;

fn models() -> Models {
    Models::load(&crate::Request::default(), crate::Caller::User).expect("the built-in table is well-formed")
}

fn anthropic(seconds: i64, read: u64, written: u64, request: Option<Value>) -> Value {
    let mut line = json!({
        "at": seconds, "model": "claude-opus-5",
        "response": { "usage": {
            "input_tokens": 10, "cache_read_input_tokens": read, "cache_creation_input_tokens": written } },
    });
    if let Some(request) = request {
        line["request"] = request;
    }
    line
}

fn request(system: &str, messages: &[&str]) -> Value {
    let last = messages.len() - 1;
    let message = |(index, text): (usize, &&str)| {
        let mut block = json!({ "type": "text", "text": text });
        if index == last {
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
        json!({ "role": "user", "content": [block] })
    };
    json!({
        "model": "claude-opus-5",
        "system": [{ "type": "text", "text": system, "cache_control": { "type": "ephemeral" } }],
        "messages": messages.iter().enumerate().map(message).collect::<Vec<_>>(),
    })
}

fn judged(lines: &[Value], epochs: &[EpochFact]) -> Vec<JudgedCall> {
    let models = models();
    let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let fresh =
        KeptCall::read_lines(&text, &Defaults::default(), &models).expect("the lines are well-formed");
    let mut calls: Vec<KeptCall> = Vec::new();
    for mut one in fresh {
        one.follow(calls.last(), &models);
        calls.push(one.call);
    }
    judge(&calls, epochs, &models)
}

fn last(lines: &[Value], epochs: &[EpochFact]) -> (Option<Blame>, Option<String>) {
    let judged = judged(lines, epochs).pop().expect("there is a call");
    (judged.blame, judged.reason)
}

fn epoch(number: u64, opened_at: i64, digest: &str, fingerprint: &str) -> EpochFact {
    EpochFact { number, opened_at, digest: digest.to_owned(), fingerprint: fingerprint.to_owned() }
}

#[test]
fn what_was_left_is_expected_and_a_hit_needs_no_verdict() {
    let all = judged(&[anthropic(0, 0, 5000, None), anthropic(20, 5000, 300, None)], &[]);
    assert_eq!((all[1].expected, all[1].reported, all[1].blame), (5000, 5000, None));
}

#[test]
fn a_new_prompt_or_new_tools_are_ours() {
    let lines = [anthropic(0, 0, 5000, None), anthropic(20, 0, 5300, None)];
    let epochs =
        |digest: &str, fingerprint: &str| [epoch(1, -1, "a", "x"), epoch(2, 10_000, digest, fingerprint)];
    assert_eq!(last(&lines, &epochs("b", "y")), (Some(Blame::Ours), Some("system_changed".into())));
    assert_eq!(last(&lines, &epochs("a", "y")), (Some(Blame::Ours), Some("tools_changed".into())));
    assert_eq!(last(&lines, &epochs("a", "x")).0, Some(Blame::Unknown));
    let mut other = lines.clone();
    other[1]["model"] = json!("claude-sonnet-5");
    assert_eq!(last(&other, &[]).1.as_deref(), Some("model_changed"));
}

#[test]
fn with_both_requests_the_verdict_is_certain() {
    let first = anthropic(0, 0, 5000, Some(request("frozen", &["one"])));
    let pair = |seconds: i64, system: &str, messages: &[&str]| {
        [first.clone(), anthropic(seconds, 0, 5300, Some(request(system, messages)))]
    };
    let said = |lines: &[Value]| {
        let (verdict, reason) = last(lines, &[]);
        (verdict, reason.unwrap_or_default())
    };
    assert_eq!(said(&pair(20, "frozen", &["one", "two"])), (Some(Blame::Provider), String::new()));
    assert_eq!(said(&pair(400, "frozen", &["one", "two"])), (Some(Blame::Ours), "expired".into()));
    assert_eq!(said(&pair(20, "thawed", &["one", "two"])), (Some(Blame::Ours), "system_changed".into()));
    assert_eq!(said(&pair(20, "frozen", &["eins", "two"])), (Some(Blame::Ours), "messages_changed".into()));
    let many: Vec<String> = (0..30).map(|number| format!("message {number}")).collect();
    let many: Vec<&str> = std::iter::once("one").chain(many.iter().map(String::as_str)).collect();
    assert_eq!(said(&pair(20, "frozen", &many)), (Some(Blame::Ours), "beyond_lookback".into()));
    assert_eq!(said(&pair(0, "frozen", &["one", "two"])).0, Some(Blame::Unknown), "at the same moment");
    let mut mixed = pair(400, "frozen", &["one", "two"]);
    mixed[0]["request"]["system"][0]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" });
    mixed[1]["request"]["system"][0]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" });
    assert_eq!(said(&mixed).0, Some(Blame::Unknown), "one of two markers has expired");
    let mut timeless = pair(20, "frozen", &["one", "two"]);
    for line in &mut timeless {
        line.as_object_mut().expect("a line is an object").remove("at");
    }
    assert_eq!(said(&timeless), (Some(Blame::Unknown), String::new()));
}

#[test]
fn a_cache_that_never_fills_is_explained() {
    let mut plain = request("frozen", &["one"]);
    plain["system"] = json!("frozen");
    plain["messages"][0]["content"] = json!("one");
    let line = |request: Option<Value>| {
        let mut line = anthropic(0, 0, 0, request);
        line["response"]["usage"]["input_tokens"] = json!(9000);
        line
    };
    assert_eq!(last(&[line(Some(plain))], &[]).1.as_deref(), Some("no_marker"));
    assert_eq!(last(&[line(None)], &[]).0, Some(Blame::Unknown));
    assert_eq!(last(&[anthropic(0, 0, 0, None)], &[]).1.as_deref(), Some("too_short"));
}

#[test]
fn bad_lines_are_named() {
    let read = |text: &str| KeptCall::read_lines(text, &Defaults::default(), &models()).map(|_| ());
    for (text, part) in [
        ("{\"usage\": {}}", "no numbers about a cache"),
        ("\n{", "from line 2 on"),
        (
            "{\"at\": \"noon\", \"usage\": {\"prompt_cache_hit_tokens\": 1, \"prompt_cache_miss_tokens\": 1}}",
            "`at` is",
        ),
        ("{\"provider\": \"other\", \"usage\": {\"inputTokens\": 1}}", "unknown provider \"other\""),
    ] {
        let message = read(text).expect_err("the line is wrong").to_string();
        assert!(message.contains(part), "{message}");
    }
}
