//! Verdicts on sequences of calls: the cases of `corpus/traffic`, and properties.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::collections::BTreeSet;
use std::fs;

use proem::models::Models;
use proem::traffic::call::OwnerKind;
use proem::traffic::lines::{LineDefaults, call_of_line};
use proem::traffic::{Analyser, CacheVerdict, CallVerdict, ReportFilter, TrafficReport};
use proem_testkit::project_root;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A sequence of calls with the expected verdicts. Calls keep their spelling: the order of keys counts.
#[derive(serde::Deserialize)]
struct Sequence {
    case: String,
    calls: Vec<Box<RawValue>>,
    expected: Vec<Value>,
}

impl Sequence {
    fn lines(&self) -> Vec<String> {
        self.calls.iter().map(|call| call.get().to_owned()).collect()
    }
}

fn cases() -> Vec<Sequence> {
    let mut files: Vec<_> = fs::read_dir(project_root().join("corpus/traffic"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| -> Vec<Sequence> {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    files.iter().flat_map(read).collect()
}

fn judge(lines: &[String]) -> Vec<CallVerdict> {
    let defaults = LineDefaults { path: "calls.jsonl".into(), ..LineDefaults::default() };
    let mut analyser = Analyser::new(Models::built_in().unwrap());
    let calls =
        lines.iter().enumerate().map(|(index, line)| call_of_line(line, index + 1, &defaults).unwrap());
    calls.map(|call| analyser.take(call)).collect()
}

/// Tells if a value has everything that is expected, at any depth.
fn has(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(own), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| own.get(key).is_some_and(|own| has(own, wanted)))
        }
        (own, wanted) => own == wanted,
    }
}

#[test]
fn every_case_has_its_verdicts() {
    let mut wrong = Vec::new();
    for case in cases() {
        let judged = judge(&case.lines());
        assert_eq!(judged.len(), case.expected.len(), "{}", case.case);
        for (judged, expected) in judged.iter().zip(&case.expected) {
            let judged = serde_json::to_value(judged).unwrap();
            if !has(&judged, expected) {
                wrong.push(format!("{}: expected {expected}\n  got {judged}", case.case));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_cases_cover_every_verdict_and_owner() {
    let all = cases();
    assert!(all.len() >= 80, "{} cases", all.len());
    let (mut verdicts, mut owners) = (BTreeSet::new(), BTreeSet::new());
    for case in &all {
        for judged in judge(&case.lines()) {
            verdicts.insert(judged.verdict);
            owners.extend(judged.owner.map(|owner| owner.kind));
        }
    }
    let words: BTreeSet<&str> = verdicts.iter().map(|verdict| verdict.word()).collect();
    assert_eq!(verdicts.len(), 22, "{words:?}");
    assert_eq!(owners.len(), 17, "{owners:?}");
    assert!(owners.contains(&OwnerKind::GitStatus) && verdicts.contains(&CacheVerdict::LookbackExceeded));
}

#[test]
fn no_output_shows_a_secret() {
    let key = format!("sk-ant-api03-{}", "aB3dE5gH7jK9".repeat(8));
    for case in cases() {
        for judged in judge(&case.lines()) {
            let text = serde_json::to_string(&judged).unwrap();
            assert!(!text.contains(key.get(..40).unwrap()), "{text}");
        }
    }
}

#[test]
fn a_page_escapes_what_comes_from_outside() {
    let call = |at: u64, system: &str| {
        json!({"id": "<b>", "at": at, "conversation": "<script>", "request": {"model": "claude-opus-5", "system":
            [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}], "messages": [{"role": "user", "content": "x"}]},
            "response": {"usage": {"input_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 2000}}})
    };
    let defaults = LineDefaults::default();
    let lines =
        [call(1_794_900_000, "<script>alert(1)</script>"), call(1_794_900_060, "<script>alert(2)</script>")];
    let calls = lines.iter().map(|line| call_of_line(&line.to_string(), 1, &defaults).unwrap());
    let report = TrafficReport::new(calls, &Models::built_in().unwrap(), &ReportFilter::default());
    let page = report.to_html(true);
    assert!(page.contains("&lt;script&gt;alert(2)"), "{page}");
    assert!(!page.contains("<script"), "{page}");
    assert_eq!(report.totals.calls, 2);
    assert!(report.totals.alarming_usd > 0.0);
}

fn message_call(at: u64, texts: &[String]) -> Value {
    let messages: Vec<Value> = texts
        .iter()
        .map(|text| json!({"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}))
        .collect();
    json!({"id": at.to_string(), "at": 1_794_900_000 + at, "conversation": "c",
        "request": {"model": "claude-opus-5", "system": "S", "messages": messages},
        "response": {"usage": {"input_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 5000}}})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_random_edit_is_found_at_its_byte(
        texts in prop::collection::vec("[a-zé\n]{1,40}", 1..6),
        at in any::<prop::sample::Index>(),
        edit in any::<prop::sample::Index>(),
    ) {
        let at = at.index(texts.len());
        let mut edited = texts.clone();
        let chars: Vec<char> = texts[at].chars().collect();
        let position = edit.index(chars.len());
        edited[at] = chars.iter().enumerate().map(|(index, letter)| if index == position { 'Z' } else { *letter }).collect();
        let judged = judge(&[message_call(0, &texts), message_call(60, &edited)].map(|call| call.to_string()));
        let place = judged[1].place.clone().unwrap();
        let byte: usize = chars[..position].iter().map(|letter| letter.len_utf8()).sum();
        prop_assert_eq!(place.byte, Some(byte), "{:?}", judged[1]);
        prop_assert_eq!(place.part_after.unwrap(), format!("messages[{at}].content[0]"));
        let line = chars[..position].iter().filter(|letter| **letter == '\n').count() + 1;
        prop_assert_eq!(place.line, Some(line));
    }

    #[test]
    fn equal_chains_that_were_read_are_hits(texts in prop::collection::vec("[a-z\n]{1,40}", 1..6)) {
        let mut second = message_call(60, &texts);
        second["response"]["usage"]["cache_read_input_tokens"] = json!(5000);
        let judged = judge(&[message_call(0, &texts), second].map(|call| call.to_string()));
        prop_assert_eq!(judged[1].verdict, CacheVerdict::Hit);
    }

    #[test]
    fn random_json_never_panics(texts in prop::collection::vec(random_json(), 1..5)) {
        let lines: Vec<Value> = texts.into_iter().enumerate().map(|(index, value)| {
            json!({"at": 1_794_900_000 + index * 60, "conversation": "c", "request": value,
                "response": {"usage": {"input_tokens": 9000, "cache_read_input_tokens": index, "cache_creation_input_tokens": 9000}}})
        }).collect();
        prop_assert_eq!(judge(&lines.iter().map(ToString::to_string).collect::<Vec<_>>()).len(), lines.len());
    }
}

fn random_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "messages",
        "content",
        "system",
        "tools",
        "text",
        "type",
        "role",
        "input",
        "contents",
        "parts",
        "user",
        "tool_calls",
        "function",
        "name",
        "cache_control",
        "ttl",
        "thinking",
        "additional_tools",
        "systemInstruction",
        "instructions",
        "tool_result",
        "assistant",
        "defer_loading",
        "cachePoint",
        "model",
        "output_config",
        "é",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((words.clone(), inner), 0..6).prop_map(|fields| fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Value>()),
        ]
    })
}
