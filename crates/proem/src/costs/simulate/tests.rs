//! The vendors' own worked examples.

use super::*;
use serde_json::{Value, json};

/// A request that is sent when its turn comes.
fn sent(payload: &Value) -> SentRequest {
    Payload::from_json(&payload.to_string()).unwrap().into()
}

fn models() -> Models {
    Models::built_in().unwrap()
}

/// Returns a text of about `tokens` tokens, different for each name.
fn text(name: &str, tokens: usize) -> String {
    let mut text = format!("{name}:");
    while Tokenizer::Estimate.count(&text) < tokens {
        text.push_str(" word");
    }
    text
}

/// A request of numbered blocks, with markers at some of them.
fn blocks(count: usize, marks: &[usize]) -> SentRequest {
    let block = |number: usize| {
        let mut block = json!({ "type": "text", "text": text(&format!("block {number}"), 1000) });
        if marks.contains(&number) {
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
        block
    };
    let content: Vec<Value> = (1..=count).map(block).collect();
    sent(&json!({ "messages": [{ "role": "user", "content": content }] }))
}

/// About how many blocks of a thousand tokens that is.
fn thousands(tokens: usize) -> usize {
    (tokens + 500) / 1000
}

fn run(sent: &[SentRequest]) -> Vec<(usize, usize, usize)> {
    let simulation = simulate("anthropic", Some("claude-opus-5"), sent, &models()).unwrap();
    let figures = simulation.turns.iter().map(|turn| turn.figures);
    figures.map(|turn| (thousands(turn.read), thousands(turn.written), thousands(turn.uncached))).collect()
}

#[test]
fn a_marker_finds_what_stands_twenty_blocks_before_it_and_no_more() {
    let turns = run(&[blocks(10, &[10]), blocks(15, &[15]), blocks(35, &[35])]);
    assert_eq!(turns, [(0, 10, 0), (10, 5, 0), (0, 35, 0)]);
    let repaired = run(&[blocks(10, &[10]), blocks(15, &[15]), blocks(35, &[15, 35])]);
    assert_eq!(repaired[2], (15, 20, 0));
    let nearest = run(&[blocks(15, &[15]), blocks(34, &[34])]);
    assert_eq!(nearest[1], (15, 19, 0));
}

#[test]
fn of_two_lifetimes_each_pays_for_its_part() {
    let block = |name: &str, ttl: Option<&str>| {
        let mut block = json!({ "type": "text", "text": text(name, 1000) });
        if let Some(ttl) = ttl {
            block["cache_control"] = json!({ "type": "ephemeral", "ttl": ttl });
        }
        block
    };
    let of = |blocks: Vec<Value>| sent(&json!({ "system": blocks }));
    let first = of(vec![block("a", Some("1h"))]);
    let second =
        of(vec![block("a", Some("1h")), block("b", Some("1h")), block("c", Some("5m")), block("d", None)]);
    let simulation = simulate("anthropic", Some("claude-opus-5"), &[first, second], &models()).unwrap();
    let turn = simulation.turns[1].figures;
    let parts = [turn.read, turn.written_1h, turn.written, turn.uncached].map(thousands);
    assert_eq!(parts, [1, 1, 1, 1]);
    let wrong = of(vec![block("a", Some("5m")), block("b", Some("1h"))]);
    assert!(simulate("anthropic", None, &[wrong], &models()).is_err());
}

#[test]
fn five_markers_are_refused() {
    assert!(simulate("anthropic", None, &[blocks(5, &[1, 2, 3, 4, 5])], &models()).is_err());
    assert!(simulate("anthropic", None, &[blocks(5, &[1, 2, 3, 4])], &models()).is_ok());
}

#[test]
fn below_the_minimum_nothing_is_cached() {
    let small = |_: &[usize]| {
        let block =
            json!({ "type": "text", "text": text("small", 400), "cache_control": { "type": "ephemeral" } });
        sent(&json!({ "messages": [{ "role": "user", "content": [block] }] }))
    };
    let simulation =
        simulate("anthropic", Some("claude-opus-5"), &[small(&[1]), small(&[1])], &models()).unwrap();
    assert_eq!(simulation.turns[1].figures.read, 0);
    assert_eq!(simulation.turns[1].figures.written, 0);
    assert_eq!(simulation.turns[1].miss, Some("too_short"));
}

#[test]
fn entries_die_after_their_lifetime_and_live_longer_when_used() {
    let at = |seconds: f64| SentRequest { at: Some(seconds), ..blocks(3, &[3]) };
    let read = |sent: &[SentRequest]| run(sent).iter().map(|turn| turn.0).collect::<Vec<_>>();
    assert_eq!(read(&[at(0.0), at(300.0), at(600.0), at(901.0)]), [0, 3, 3, 0]);
}

#[test]
fn money_is_what_the_table_says() {
    let simulation =
        simulate("anthropic", Some("claude-opus-5"), &[blocks(10, &[10]), blocks(10, &[10])], &models())
            .unwrap();
    let turns = &simulation.turns;
    let expected = |tokens: usize, price: f64| as_number(tokens) * price / 1e6;
    assert_eq!(turns[0].figures.usd, Some(expected(turns[0].figures.written, 6.25)));
    assert_eq!(turns[1].figures.usd, Some(expected(turns[1].figures.read, 0.5)));
}

/// A request with the exact tokens of a server.
fn tokens(list: std::ops::Range<u32>, reply: &[u32]) -> SentRequest {
    SentRequest { tokens: Some(list.collect()), reply_tokens: Some(reply.to_vec()), ..sent(&json!({})) }
}

#[test]
fn llama_cpp_reuses_the_slot_of_the_last_request_and_its_reply() {
    let sent = [tokens(0..100, &[100, 101]), tokens(0..150, &[]), tokens(0..150, &[]), tokens(5..90, &[])];
    let read = |cache: &str| -> Vec<usize> {
        let simulation = simulate(cache, None, &sent, &models()).unwrap();
        simulation.turns.iter().map(|turn| turn.figures.read).collect()
    };
    assert_eq!(read("llama.cpp"), [0, 102, 149, 0]);
    assert_eq!(read("vllm"), [0, 96, 144, 0]);
    assert_eq!(read("sglang"), [0, 102, 149, 0]);
}

#[test]
fn openai_reads_in_steps_from_a_thousand_on() {
    let sent = |lengths: &[u32]| lengths.iter().map(|length| tokens(0..*length, &[])).collect::<Vec<_>>();
    let read = |lengths: &[u32]| -> Vec<usize> {
        let simulation = simulate("openai", Some("gpt-5"), &sent(lengths), &models()).unwrap();
        simulation.turns.iter().map(|turn| turn.figures.read).collect()
    };
    assert_eq!(read(&[1023, 2000]), [0, 0]);
    assert_eq!(read(&[1024, 2000]), [0, 1024]);
    assert_eq!(read(&[1151, 2000]), [0, 1024]);
    assert_eq!(read(&[1152, 2000]), [0, 1152]);
}

#[test]
fn deepseek_needs_the_whole_of_an_earlier_request() {
    let sent = [tokens(0..1000, &[5000]), tokens(0..900, &[]), tokens(0..2000, &[])];
    let simulation = simulate("deepseek", None, &sent, &models()).unwrap();
    let read: Vec<usize> = simulation.turns.iter().map(|turn| turn.figures.read).collect();
    assert_eq!(read, [0, 0, 960]);
}

/// OpenAI's rule for padding: it pays when the prefix is longer than a threshold, for a given number of requests.
#[test]
fn padding_to_the_minimum_pays_as_published() {
    let model = models().find("gpt-5.6-sol").unwrap().clone();
    let (input, read, write) = (model.input.unwrap(), model.cache_read.unwrap(), model.cache_write.unwrap());
    let (minimum, requests) = (1024, 10);
    let cost_padded = as_number(minimum) * (write + read * as_number(requests - 1));
    let cost_plain = |tokens: usize| as_number(tokens) * input * as_number(requests);
    let pays_from = (0..minimum).find(|tokens| cost_plain(*tokens) > cost_padded).unwrap();
    assert!((220..=222).contains(&pays_from), "{pays_from}");
}

#[test]
fn a_clock_on_the_first_line_is_named_as_the_reason() {
    let at = |clock: &str| {
        sent(
            &json!({ "system": [{ "type": "text", "text": format!("{clock}\n{}", text("prompt", 2000)), "cache_control": { "type": "ephemeral" } }] }),
        )
    };
    let simulation =
        simulate("anthropic", Some("claude-opus-5"), &[at("9:00"), at("9:01")], &models()).unwrap();
    assert_eq!(simulation.turns[1].miss, Some("system_changed"));
    assert_eq!(simulation.turns[1].figures.read, 0);
}

#[test]
fn another_model_has_a_cache_of_its_own() {
    for (cache, model) in [("anthropic", "claude-opus-5"), ("openai", "gpt-5")] {
        let of = |model: &str| {
            let mut payload: Value = serde_json::from_str(blocks(10, &[10]).payload.0.get()).unwrap();
            payload["model"] = json!(model);
            sent(&payload)
        };
        let all = [of(model), of("other"), of(model)];
        let simulation = simulate(cache, None, &all, &models()).unwrap();
        assert_eq!((simulation.turns[1].miss, simulation.turns[1].figures.read), (Some("model_changed"), 0));
        assert_eq!(simulation.model.as_deref(), Some(model), "the payload names it");
    }
}

#[test]
fn a_request_without_markers_and_one_that_came_too_late_are_told_apart() {
    let miss = |sent: &[SentRequest]| {
        simulate("anthropic", Some("claude-opus-5"), sent, &models()).unwrap().turns[1].miss
    };
    assert_eq!(miss(&[blocks(3, &[]), blocks(3, &[])]), Some("no_marker"));
    let late = SentRequest { at: Some(1e6), ..blocks(3, &[3]) };
    assert_eq!(miss(&[blocks(3, &[3]), late]), Some("expired"));
}

#[test]
fn what_stands_too_far_back_is_named() {
    let simulation =
        simulate("anthropic", Some("claude-opus-5"), &[blocks(10, &[10]), blocks(40, &[40])], &models())
            .unwrap();
    assert_eq!(simulation.turns[1].miss, Some("beyond_lookback"));
}

#[test]
fn calls_of_tools_count_and_their_change_is_seen() {
    let of = |argument: &str| {
        let call =
            json!({ "id": "1", "type": "function", "function": { "name": "x", "arguments": argument } });
        sent(
            &json!({ "messages": [{ "role": "assistant", "content": "ok", "tool_calls": [call] }, { "role": "user", "content": "go" }] }),
        )
    };
    let simulation =
        simulate("openai", Some("gpt-5"), &[of(&"x ".repeat(4000)), of("y")], &models()).unwrap();
    assert!(simulation.turns[0].figures.input_tokens > 4000);
    assert_eq!(simulation.turns[1].miss, Some("messages_changed"));
}

/// Below the minimum nothing was in the cache that a change could have lost.
#[test]
fn a_change_below_the_minimum_is_too_short() {
    for (cache, model) in
        [("openai", "gpt-5"), ("gemini", "gemini-3.8-flash"), ("anthropic", "claude-opus-5")]
    {
        let of = |system: &str, words: &str| {
            sent(&json!({ "messages": [
                { "role": "system", "content": format!("{system}{}", "x ".repeat(200)) },
                { "role": "user", "content": words },
            ] }))
        };
        for second in [of("a", "Hello."), of("b", "Good day."), of("b", "Hello.")] {
            let all = [of("a", "Good day."), second];
            let simulation = simulate(cache, Some(model), &all, &models()).unwrap();
            assert_eq!(simulation.turns[1].miss, Some("too_short"), "{cache}");
        }
        let same = simulate(cache, Some(model), &[of("a", "Hi."), of("a", "Hi.")], &models()).unwrap();
        assert_eq!(same.turns[1].miss, Some("too_short"), "{cache}");
    }
}

#[test]
fn every_name_of_a_provider_finds_its_cache() {
    let models = models();
    for name in ProviderName::all() {
        for word in std::iter::once(&name.word).chain(name.aliases) {
            let found = rules(word, None, &models).map(|rules| rules.name.clone());
            assert_eq!(found.ok().as_deref(), name.cache, "{word}");
        }
    }
    assert!(rules("openai-breakpoints", None, &models).is_ok());
}

#[test]
fn the_order_of_keys_and_the_choice_of_tools_are_compared() {
    let system = text("prompt", 2000);
    let of = |tool: &str, choice: &str| -> SentRequest {
        let mark = r#"{"type":"ephemeral"}"#;
        let payload = format!(
            r#"{{"tools":[{tool}],"system":[{{"type":"text","text":"{system}","cache_control":{mark}}}],"tool_choice":{choice},"messages":[{{"role":"user","content":[{{"type":"text","text":"{system}","cache_control":{mark}}}]}}]}}"#
        );
        Payload::from_json(&payload).unwrap().into()
    };
    let (one, other) = (r#"{"name":"a","description":"b"}"#, r#"{"description":"b","name":"a"}"#);
    let miss = |second: SentRequest| {
        let simulation =
            simulate("anthropic", Some("claude-opus-5"), &[of(one, "{}"), second], &models()).unwrap();
        (simulation.turns[1].miss, thousands(simulation.turns[1].figures.read))
    };
    assert_eq!(miss(of(one, "{}")), (None, 4));
    assert_eq!(miss(of(other, "{}")), (Some("tools_changed"), 0));
    assert_eq!(miss(of(one, r#"{"type":"any"}"#)), (Some("messages_changed"), 2));
}

#[test]
fn a_request_that_lacks_the_last_byte_of_an_earlier_one_is_no_whole() {
    let words = "word ".repeat(1000);
    let of =
        |end: &str| sent(&json!({ "messages": [{ "role": "user", "content": format!("{words}{end}") }] }));
    let simulation = simulate("deepseek", None, &[of("ab"), of("ac and more")], &models()).unwrap();
    assert_eq!(simulation.turns[1].figures.read, 0);
}

#[test]
fn time_does_not_go_back() {
    let late = SentRequest { at: Some(10.0), ..blocks(1, &[1]) };
    let early = SentRequest { at: Some(5.0), ..blocks(1, &[1]) };
    assert!(simulate("anthropic", None, &[late, early], &models()).is_err());
}
