//! Verdicts about calls that pass, in every form in which agents and providers send them.

use std::io::Write;
use std::sync::atomic::Ordering;

use crate::base::{Provider, Running, text};

/// A request of about 6,000 tokens, whose first tool has this description.
fn body(description: &str, turns: usize) -> String {
    let tools = format!(
        "{{\"name\":\"search\",\"description\":\"{description}{}\",\"input_schema\":{{\"type\":\"object\"}}}}",
        " words of a tool".repeat(900)
    );
    let messages: Vec<String> = (0..turns)
        .map(|turn| {
            let role = if turn % 2 == 0 { "user" } else { "assistant" };
            let marker = if turn + 1 == turns { ",\"cache_control\":{\"type\":\"ephemeral\"}" } else { "" };
            format!(
                "{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"turn {turn}\"{marker}}}]}}"
            )
        })
        .collect();
    format!(
        "{{\"model\":\"claude-opus-4-6\",\"stream\":true,\"tools\":[{tools}],\"system\":[{{\"type\":\"text\",\"text\":\"Be brief.\"}}],\"messages\":[{}]}}",
        messages.join(",")
    )
}

fn answer(number: usize, read: usize, written: usize) -> String {
    format!(
        "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{\"id\":\"msg_{number}\",\"model\":\"claude-opus-4-6\",\"usage\":\
         {{\"input_tokens\":3,\"cache_read_input_tokens\":{read},\"cache_creation_input_tokens\":{written},\"output_tokens\":1}}}}}}\n\n\
         event: message_delta\ndata: {{\"type\":\"message_delta\",\"usage\":{{\"output_tokens\":44}}}}\n\n"
    )
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Sends three calls of a conversation; the tool of the last is another one.
fn verdicts(encode: fn(&[u8]) -> Vec<u8>, encoding: &str) -> Vec<(String, Option<String>)> {
    let header =
        if encoding.is_empty() { String::new() } else { format!("Content-Encoding: {encoding}\r\n") };
    let answers =
        [answer(1, 0, 6_000), answer(2, 6_000, 20), answer(3, 0, 6_040)].map(|text| encode(text.as_bytes()));
    let head = header.clone();
    let provider = Provider::new(move |side| {
        let number = side.number;
        side.request();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nrequest-id: req_{number}\r\n{head}Content-Length: {}\r\n\r\n",
            answers[number].len()
        );
        side.stream.write_all(&[head.as_bytes(), &answers[number]].concat()).unwrap();
        side.shut_down();
    });
    let running = Running::new(provider.address);
    for (description, turns) in [("Searches", 1), ("Searches", 3), ("Finds", 5)] {
        let sent = encode(body(description, turns).as_bytes());
        let head = format!(
            "POST /anthropic/v1/messages?beta=true HTTP/1.1\r\nHost: localhost\r\nX-Claude-Code-Session-Id: s-9\r\n\
             User-Agent: claude-cli/2.1.326 (external, cli)\r\n{header}Content-Length: {}\r\nConnection: close\r\n\r\n",
            sent.len()
        );
        running.ask([head.as_bytes(), &sent].concat());
    }
    let calls = running.observed();
    let counters = running.gateway.counters();
    assert_eq!((counters.calls.load(Ordering::Relaxed), counters.unread.load(Ordering::Relaxed)), (3, 0));
    assert!(calls.iter().all(|call| call.verdict.conversation == "s-9" && call.route == "anthropic"));
    assert_eq!(
        calls.iter().map(|call| call.verdict.id.clone()).collect::<Vec<_>>(),
        ["req_0", "req_1", "req_2"]
    );
    let facts = |call: &proem_gateway::ObservedCall| {
        let place = call.verdict.place.as_ref();
        let place =
            place.and_then(|place| Some(format!("{} byte {}", place.part_after.as_ref()?, place.byte?)));
        (call.verdict.verdict.word().to_owned(), place)
    };
    calls.iter().map(facts).collect()
}

#[test]
fn a_changed_tool_is_found_in_every_encoding() {
    let expected = [("cold_start", None), ("hit", None), ("tools_redefined", Some("tools[0] byte 32"))];
    for (encode, encoding) in [(<[u8]>::to_vec as fn(&[u8]) -> Vec<u8>, ""), (gzip, "gzip"), (zstd, "zstd")] {
        let found = verdicts(encode, encoding);
        let found: Vec<_> = found.iter().map(|(word, place)| (word.as_str(), place.as_deref())).collect();
        assert_eq!(found, expected, "{encoding}");
    }
}

#[test]
fn what_is_no_call_is_not_analysed() {
    let provider = Provider::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let running = Running::new(provider.address);
    for (method, path) in [
        ("HEAD", "/anthropic/v1/messages"),
        ("POST", "/anthropic/v1/messages/count_tokens"),
        ("GET", "/anthropic/v1/models"),
    ] {
        running.ask(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    }
    assert!(running.observed().is_empty());
    let counters = running.gateway.counters();
    assert_eq!((counters.requests.load(Ordering::Relaxed), counters.calls.load(Ordering::Relaxed)), (3, 0));
}

/// Whatever a request or an answer holds, it passes, and the analysis goes on.
#[test]
fn what_cannot_be_read_passes_and_is_counted() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: 5\r\n\r\n\x01garb";
    let provider = Provider::answering(answer);
    let running = Running::new(provider.address);
    let bodies = ["", "not JSON", "[1]", "{\"messages\": 5}"];
    for body in bodies {
        let request = format!(
            "POST /anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: br\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(text(&running.ask(request)).replace("Connection: close\r\n", ""), answer);
    }
    assert!(running.observed().is_empty());
    assert_eq!(running.gateway.counters().unread.load(Ordering::Relaxed), bodies.len() as u64);
}
