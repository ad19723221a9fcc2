//! Streams: every piece passes at once.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::base::{Provider, Running, read_until, text};

const REQUEST: &str =
    "POST /custom/up/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";

/// The provider writes the next piece only after the client has read the last one.
#[test]
fn every_piece_of_a_stream_passes_at_once() {
    let pieces: [&[u8]; 6] = [
        b"data: {\"a\"",
        b": 1}\n",
        b"\n",
        "data: \u{2603}".as_bytes().split_at(7).0,
        b"\x98\x83",
        b": ping\n\n",
    ];
    let (read, was_read) = channel::<()>();
    let was_read = Mutex::new(was_read);
    let provider = Provider::new(move |side| {
        side.request();
        side.stream
            .write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
            )
            .unwrap();
        let was_read = was_read.lock().unwrap();
        was_read.recv().unwrap();
        for piece in pieces {
            side.stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).unwrap();
            side.stream.write_all(piece).unwrap();
            side.stream.write_all(b"\r\n").unwrap();
            was_read.recv().unwrap();
        }
        side.stream.write_all(b"0\r\nx-trailer: 1\r\n\r\n").unwrap();
        side.request();
    });
    let running = Running::new(provider.address);
    let mut stream = running.connect();
    stream.write_all(REQUEST.as_bytes()).unwrap();
    read_until(&mut stream, b"\r\n\r\n");
    read.send(()).unwrap();
    for piece in pieces {
        let expected = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        assert_eq!(read_until(&mut stream, &expected), expected);
        read.send(()).unwrap();
    }
    assert_eq!(text(&read_until(&mut stream, b"\r\n\r\n")), "0\r\nx-trailer: 1\r\n\r\n");
}

#[test]
fn a_line_of_10_mb_passes_and_the_usage_after_it_is_read() {
    let usage = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"claude-opus-4-6\",\"usage\":{\"input_tokens\":3,\
                 \"cache_read_input_tokens\":5,\"cache_creation_input_tokens\":0,\"output_tokens\":1}}}\n\n";
    let body = format!("data: {{\"usage\": \"{}\"}}\n\n{usage}", "x".repeat(10_000_000));
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let provider = Provider::answering(answer.clone());
    let running = Running::new(provider.address);
    let body = "{\"model\":\"claude-opus-4-6\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}";
    let request = format!(
        "POST /anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let through = running.ask(request);
    assert!(text(&through) == answer.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1));
    let observed = running.observed();
    assert_eq!(observed.iter().map(|call| call.verdict.read).collect::<Vec<_>>(), [Some(5)]);
}
