//! Random exchanges, directly and through the gateway, compared byte for byte.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::base::{Provider, Random, Running, connect, read_all, text};

/// A message of lines and a body as it goes over the wire. Lines that belong to one connection are marked.
#[derive(Debug, Clone)]
struct Message {
    start: String,
    lines: Vec<(String, bool)>,
    body: Vec<u8>,
}

impl Message {
    fn bytes(&self, with_hops: bool) -> Vec<u8> {
        let lines =
            self.lines.iter().filter(|(_, is_hop)| with_hops || !is_hop).map(|(line, _)| line.as_str());
        let head = lines.fold(String::new(), |head, line| head + line + "\r\n");
        [format!("{}\r\n{head}\r\n", self.start).into_bytes(), self.body.clone()].concat()
    }
}

/// A response, and the sizes of the pieces in which it is written.
type Answer = (Vec<u8>, Vec<usize>);

const METHODS: [&str; 9] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "PROPFIND", "X-Any"];
const TARGETS: [&str; 8] = [
    "/v1/messages?beta=true",
    "/",
    "//v1/%2e%2e/&",
    "/v1/responses",
    "/v1beta/models/gemini-x:streamGenerateContent?alt=sse&key=K",
    "/%E2%98%83/;p=1/?q=%20&q=",
    "/v1/chat/completions",
    "/a/../b/./c?x=http://y/",
];
const NAMES: [&str; 12] = [
    "X-Custom",
    "x-lower",
    "X-UPPER",
    "anthropic-beta",
    "Anthropic-Version",
    "authorization",
    "COOKIE",
    "X-Custom",
    "Accept-Encoding",
    "user-Agent",
    "x-claude-code-session-id",
    "sec-ch-ua",
];
const VALUES: [&str; 9] = [
    "",
    "1",
    "a, b;q=0.5",
    "\u{e9}t\u{e9} \u{2603}",
    "\"quoted, \\\" text\"",
    "tab\there",
    "Bearer sk-test",
    "   padded",
    "x",
];
const STATUSES: [&str; 14] = [
    "200 OK",
    "200",
    "200 Sehr gut, \u{fc}berhaupt",
    "201 Created",
    "204 No Content",
    "304 Not Modified",
    "301 Moved",
    "400 Bad",
    "401 Unauthorized",
    "404 ",
    "429 Too Many",
    "500 Oops",
    "529 Site is overloaded",
    "299 x",
];
const ENCODINGS: [&str; 5] = ["gzip", "zstd", "br", "identity", "unknown-coding"];

fn lines(random: &mut Random) -> Vec<(String, bool)> {
    let mut lines: Vec<(String, bool)> = (0..random.below(9))
        .map(|_| {
            let space = *random.pick(&["", " ", "  ", "\t"]);
            (format!("{}:{space}{}", random.pick(&NAMES), random.pick(&VALUES)), false)
        })
        .collect();
    if random.below(4) == 0 {
        lines.push((format!("Content-Encoding: {}", random.pick(&ENCODINGS)), false));
    }
    if random.below(4) == 0 {
        lines.push(("keep-alive: timeout=5".to_owned(), true));
    }
    if random.below(4) == 0 {
        lines.push(("X-Nominated: 1".to_owned(), true));
        lines.push(("CONNECTION: x-nominated".to_owned(), true));
    }
    lines
}

/// Adds a body, and the header that says where it ends.
fn body(random: &mut Random, message: &mut Message) {
    let size = *random.pick(&[0, 1, 5, 200, 5_000, 70_000]);
    let content = match random.below(3) {
        0 => random.bytes(size),
        1 => "data: {\"x\": \"\u{2603}\"}\n\n".repeat(size / 20).into_bytes(),
        _ => vec![b'a'; size],
    };
    if random.below(2) == 0 {
        message.lines.push((format!("Content-Length: {}", content.len()), false));
        message.body = content;
    } else {
        message.lines.push(("Transfer-Encoding: chunked".to_owned(), false));
        let mut rest = content.as_slice();
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at((1 + random.below(9_000)).min(rest.len()));
            let size = if random.below(2) == 0 {
                format!("{:x}", chunk.len())
            } else {
                format!("{:04X}", chunk.len())
            };
            let extension = *random.pick(&["", ";a=b", " ; c=\"d\""]);
            message.body.extend(format!("{size}{extension}\r\n").bytes());
            message.body.extend(chunk);
            message.body.extend(b"\r\n");
            rest = after;
        }
        message.body.extend(b"0\r\n");
        if random.below(2) == 0 {
            message.body.extend(b"X-Checksum: 99\r\nx-other:1\r\n");
        }
        message.body.extend(b"\r\n");
    }
    let place = random.below(message.lines.len());
    let last = message.lines.len() - 1;
    message.lines.swap(place, last);
}

fn request(random: &mut Random) -> Message {
    let start = format!("{} {{}}{} HTTP/1.1", random.pick(&METHODS), random.pick(&TARGETS));
    let mut message = Message { start, lines: lines(random), body: Vec::new() };
    if random.below(3) > 0 {
        body(random, &mut message);
    }
    let place = random.below(message.lines.len() + 1);
    message.lines.insert(place, ("HoSt: {}".to_owned(), false));
    message.lines.push(("Connection: close".to_owned(), true));
    message
}

fn response(random: &mut Random, method: &str) -> Message {
    let status = *random.pick(&STATUSES);
    let mut message = Message { start: format!("HTTP/1.1 {status}"), lines: lines(random), body: Vec::new() };
    if method == "HEAD" || status.starts_with("204") || status.starts_with("304") {
        if random.below(2) == 0 {
            message.lines.push(("Content-Length: 77".to_owned(), false));
        }
    } else if random.below(6) == 0 {
        // The end of the connection is the end of the body.
        message.body = random.bytes(3_000);
    } else {
        body(random, &mut message);
    }
    message
}

/// Returns how many exchanges are compared: more with `PROEM_GATEWAY_EXCHANGES`.
fn exchanges() -> u64 {
    std::env::var("PROEM_GATEWAY_EXCHANGES").ok().and_then(|count| count.parse().ok()).unwrap_or(300)
}

#[test]
fn exchanges_are_equal_with_and_without_the_gateway() {
    let answers: Arc<Mutex<VecDeque<Answer>>> = Arc::default();
    let own = Arc::clone(&answers);
    let provider = Provider::new(move |side| {
        if side.request().is_some() {
            let (answer, cuts) = own.lock().unwrap().pop_front().unwrap();
            let mut rest = answer.as_slice();
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                side.stream.write_all(piece).unwrap();
                rest = after;
            }
            side.stream.write_all(rest).unwrap();
            side.shut_down();
        }
    });
    let running = Running::new(provider.address);
    for seed in 0..exchanges() {
        let mut random = Random(seed);
        let sent = request(&mut random);
        let answer = response(&mut random, sent.start.split(' ').next().unwrap());
        let cuts: Vec<usize> = (0..random.below(4)).map(|_| 1 + random.below(2_000)).collect();
        let mut exchange = |is_direct: bool| {
            answers.lock().unwrap().push_back((answer.bytes(true), cuts.clone()));
            let (address, prefix) =
                if is_direct { (provider.address, "") } else { (running.address, "/custom/up") };
            let mut message = sent.clone();
            message.start = message.start.replace("{}", prefix);
            for (line, _) in &mut message.lines {
                *line = line.replace("HoSt: {}", &format!("HoSt: {address}"));
            }
            let mut stream = connect(address);
            // A provider that has answered may close before it has read all; it does not here.
            let bytes = message.bytes(true);
            let (first, second) = bytes.split_at(random.below(bytes.len()));
            stream.write_all(first).unwrap();
            stream.write_all(second).unwrap();
            (provider.request(), read_all(&mut stream))
        };
        let (direct, through) = (exchange(true), exchange(false));
        let mut expected = sent.clone();
        expected.start = expected.start.replace("{}", "");
        for (line, _) in &mut expected.lines {
            *line = line.replace("HoSt: {}", &format!("HoSt: {}", provider.address));
        }
        assert_eq!(text(&direct.0), text(&expected.bytes(true)), "control, seed {seed}");
        assert!(
            through.0 == expected.bytes(false),
            "seed {seed}: {}\n{}",
            text(&through.0),
            text(&expected.bytes(false))
        );
        assert!(direct.1 == answer.bytes(true), "control, seed {seed}");
        // The gateway says that it closes.
        let mut closing = answer.clone();
        closing.lines.push(("Connection: close".to_owned(), false));
        assert!(through.1 == closing.bytes(false), "seed {seed}: {}", text(&through.1));
    }
}
