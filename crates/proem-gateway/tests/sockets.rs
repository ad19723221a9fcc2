//! WebSocket: frames pass unchanged, and a copy of them is read.

use std::io::{Read, Write};

use flate2::{Compress, Compression, FlushCompress};

use crate::base::{Provider, Random, Running, connect, read_all, read_until, text};

const UPGRADE: &str = "GET {}/v1/responses HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: ebR/ew3xSM2ejsPseftGZw==\r\nsession-id: s-1\r\nAuthorization: Bearer sk-secret\r\n\
                       Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n";
const ACCEPTED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                        Sec-WebSocket-Accept: x\r\nsec-websocket-extensions: permessage-deflate\r\nx-codex-turn-state: t\r\n\r\n";

/// Builds a compressed text frame.
fn frame(compress: &mut Compress, message: &str, mask: u8) -> Vec<u8> {
    let mut content = Vec::with_capacity(message.len() + 1024);
    compress.compress_vec(message.as_bytes(), &mut content, FlushCompress::Sync).unwrap();
    content.truncate(content.len() - 4);
    let masked = u8::from(mask != 0) << 7;
    let mut out = vec![0xC1];
    match u16::try_from(content.len()).unwrap() {
        short @ 0..126 => out.push(masked | u8::try_from(short).unwrap()),
        middle => {
            out.push(masked | 0x7E);
            out.extend(middle.to_be_bytes());
        }
    }
    if mask != 0 {
        out.extend([mask; 4]);
    }
    out.extend(content.iter().map(|byte| byte ^ mask));
    out
}

fn of_gateway(running: &Running) -> String {
    UPGRADE.replace("{}", "/openai").replace("{host}", &running.address.to_string())
}

#[test]
fn bytes_pass_both_ways_unchanged() {
    let provider = Provider::new(|side| {
        side.request();
        side.stream.write_all(ACCEPTED.as_bytes()).unwrap();
        // An echo of everything, until the client ends.
        let mut buffer = [0; 10_000];
        while let Ok(read @ 1..) = side.stream.read(&mut buffer) {
            side.stream.write_all(&buffer[..read]).unwrap();
        }
    });
    let running = Running::new(provider.address);
    let mut stream = running.connect();
    // The client does not wait for the answer.
    let first = Random(1).bytes(3_000);
    stream.write_all(&[of_gateway(&running).as_bytes(), &first].concat()).unwrap();
    let head = text(&read_until(&mut stream, b"\r\n\r\n"));
    assert_eq!(head, ACCEPTED);
    let expected = UPGRADE.replace("{}", "").replace("{host}", &provider.address.to_string());
    assert_eq!(text(&provider.request()), expected);
    let more = Random(2).bytes(200_000);
    let mut writer = stream.try_clone().unwrap();
    let sent = more.clone();
    let thread = std::thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    assert!(read_all(&mut stream) == [first, more].concat());
    thread.join().unwrap();
}

#[test]
fn a_refused_upgrade_is_an_ordinary_response() {
    let answer = "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno";
    let provider = Provider::answering(answer);
    let running = Running::new(provider.address);
    let mut stream = running.connect();
    for _ in 0..2 {
        stream.write_all(of_gateway(&running).as_bytes()).unwrap();
        assert_eq!(text(&read_until(&mut stream, b"\r\n\r\nno")), answer);
    }
}

/// Returns the events of a response.
fn events(id: &str, cached: usize) -> [String; 3] {
    [
        format!("{{\"type\":\"response.created\",\"response\":{{\"id\":\"{id}\"}}}}"),
        format!(
            "{{\"type\":\"response.output_item.done\",\"item\":{{\"type\":\"message\",\"role\":\"assistant\",\"id\":\"m-{id}\",\"content\":[{{\"type\":\"output_text\",\"text\":\"{id}\"}}]}}}}"
        ),
        format!(
            "{{\"type\":\"response.completed\",\"response\":{{\"id\":\"{id}\",\"model\":\"gpt-5.2\",\"usage\":{{\"input_tokens\":4000,\"input_tokens_details\":{{\"cached_tokens\":{cached}}},\"output_tokens\":3}}}}}}"
        ),
    ]
}

/// The items of a conversation: the second request continues the first response, and only sends what is new.
#[test]
fn requests_that_continue_a_response_are_put_together() {
    let item = |number: usize| {
        format!(
            "{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{}\"}}]}}",
            "long text ".repeat(600 + number)
        )
    };
    let provider = Provider::new(move |side| {
        side.request();
        side.stream.write_all(ACCEPTED.as_bytes()).unwrap();
        let mut compress = Compress::new(Compression::fast(), false);
        for (id, cached) in [("r-1", 0), ("r-2", 3_840)] {
            // One frame of the client, of which only the length is read.
            let mut head = [0; 4];
            side.stream.read_exact(&mut head).unwrap();
            let length = if head[1] & 0x7F == 126 {
                usize::from(u16::from_be_bytes([head[2], head[3]])) + 4
            } else {
                usize::from(head[1] & 0x7F) + 2
            };
            side.stream.read_exact(&mut vec![0; length]).unwrap();
            for event in events(id, cached) {
                side.stream.write_all(&frame(&mut compress, &event, 0)).unwrap();
            }
        }
        let _ = side.stream.read(&mut [0; 1]);
    });
    let running = Running::new(provider.address);
    let mut stream = connect(running.address);
    stream.write_all(of_gateway(&running).as_bytes()).unwrap();
    read_until(&mut stream, b"\r\n\r\n");
    let mut compress = Compress::new(Compression::fast(), false);
    let create = |previous: &str, input: &str| {
        format!("{{\"type\":\"response.create\",\"model\":\"gpt-5.2\"{previous},\"input\":[{input}]}}")
    };
    for (previous, input) in [("", item(0)), (",\"previous_response_id\":\"r-1\"", item(1))] {
        stream.write_all(&frame(&mut compress, &create(previous, &input), 0x5A)).unwrap();
        // The end of the response is the third frame.
        for _ in 0..3 {
            let mut head = [0; 2];
            stream.read_exact(&mut head).unwrap();
            let mut length = usize::from(head[1] & 0x7F);
            if length == 126 {
                let mut long = [0; 2];
                stream.read_exact(&mut long).unwrap();
                length = usize::from(u16::from_be_bytes(long));
            }
            stream.read_exact(&mut vec![0; length]).unwrap();
        }
    }
    drop(stream);
    let calls = running.observed();
    let seen: Vec<_> = calls
        .iter()
        .map(|call| (call.verdict.id.as_str(), call.verdict.verdict.word(), call.verdict.read))
        .collect();
    assert_eq!(seen, [("r-1", "cold_start", Some(0)), ("r-2", "hit", Some(3_840))]);
    assert!(calls.iter().all(|call| call.verdict.conversation == "s-1"));
    let body: serde_json::Value = serde_json::from_str(calls[1].call.body.as_deref().unwrap()).unwrap();
    assert_eq!(
        body["input"].as_array().map(Vec::len),
        Some(3),
        "the first request, its response, and the new item"
    );
    assert_eq!(calls[1].verdict.predecessor.as_deref(), Some("r-1"));
}
