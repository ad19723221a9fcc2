//! Providers that fail, and clients that vanish: both sides see what they would see without the gateway.

use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use crate::base::{Provider, Running, connect, read_all, read_until, text};

const REQUEST: &str =
    "POST /custom/up/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";

/// The bytes that arrived, and if the connection was reset.
fn outcome(mut stream: std::net::TcpStream) -> (String, bool) {
    let mut all = Vec::new();
    let is_reset = match stream.read_to_end(&mut all) {
        Ok(_) => false,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => true,
        Err(error) => panic!("{error}"),
    };
    (text(&all), is_reset)
}

/// Compares what a client sees directly and through the gateway, for a provider that writes `answer` and then ends.
fn same(answer: &'static [u8], resets: bool) {
    let provider = Provider::new(move |side| {
        side.request();
        side.stream.write_all(answer).unwrap();
        if resets {
            side.reset();
        }
    });
    let running = Running::new(provider.address);
    let seen = |is_direct: bool| {
        let mut stream = if is_direct { connect(provider.address) } else { running.connect() };
        stream
            .write_all(REQUEST.replace("/custom/up", if is_direct { "" } else { "/custom/up" }).as_bytes())
            .unwrap();
        outcome(stream)
    };
    let (direct, through) = (seen(true), seen(false));
    let without_note = through.0.replace("Connection: close\r\n", "");
    if resets {
        // A reset may overtake the bytes before it.
        assert!(direct.1 && through.1, "{direct:?} {through:?}");
        assert!(text(answer).starts_with(&without_note), "{through:?}");
    } else {
        assert_eq!((without_note, through.1), direct);
    }
}

#[test]
fn early_ends_are_passed_on() {
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\nContent-",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
    ] {
        same(answer.as_bytes(), false);
        same(answer.as_bytes(), true);
    }
}

#[test]
fn garbage_is_passed_on() {
    for answer in [
        "garbage\r\n\r\nmore",
        "\0\u{1}\u{2}",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        "HTTP/1.0 200 OK\r\n\r\nuntil the end",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ] {
        same(answer.as_bytes(), false);
    }
}

#[test]
fn a_wrong_length_ends_as_without_the_gateway() {
    // More than the length says is not part of the response.
    let provider = Provider::new(|side| {
        side.request();
        side.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more").unwrap();
        while side.request().is_some() {}
    });
    let running = Running::new(provider.address);
    let mut stream = running.connect();
    for _ in 0..2 {
        stream.write_all(REQUEST.as_bytes()).unwrap();
        assert_eq!(
            text(&read_until(&mut stream, b"\r\n\r\nok")),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        );
    }
}

#[test]
fn errors_of_the_provider_are_shown_as_they_are() {
    let body = "x".repeat(1_000_000);
    for status in ["401 Unauthorized", "429 Too Many Requests", "500 Internal Server Error", "529 Overloaded"]
    {
        let answer = format!(
            "HTTP/1.1 {status}\r\nretry-after: 7\r\nx-should-retry: true\r\nContent-Length: 1000000\r\n\r\n{body}"
        );
        let provider = Provider::answering(answer.clone());
        let running = Running::new(provider.address);
        let through = running.ask(REQUEST.replace("\r\nHost", "\r\nConnection: close\r\nHost"));
        assert!(text(&through) == answer.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"), "{status}");
        assert!(running.observed().is_empty());
    }
}

#[test]
fn an_answer_before_the_end_of_the_request_arrives() {
    let provider = Provider::new(|side| {
        read_until(&mut side.stream, b"\r\n\r\n");
        side.stream
            .write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
            .unwrap();
        side.shut_down();
        // The rest of the request is not read.
        let _ = side.stream.read(&mut [0; 100]);
    });
    let running = Running::new(provider.address);
    let mut stream = running.connect();
    let head = "POST /custom/up/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let answer = text(&read_all(&mut stream));
    assert_eq!(answer, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
}

#[test]
fn interim_responses_pass() {
    let provider = Provider::new(|side| {
        let head = read_until(&mut side.stream, b"\r\n\r\n");
        assert!(text(&head).contains("Expect: 100-continue"));
        side.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        read_until(&mut side.stream, b"abc");
        side.stream
            .write_all(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
            .unwrap();
        side.shut_down();
    });
    let running = Running::new(provider.address);
    let mut stream = running.connect();
    let head = "POST /custom/up/x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(text(&read_until(&mut stream, b"\r\n\r\n")), "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"abc").unwrap();
    let rest = text(&read_all(&mut stream));
    assert_eq!(
        rest,
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
    );
}

#[test]
fn a_client_that_vanishes_cancels_the_request() {
    // Before the response has begun, and while it streams.
    for begins in [false, true] {
        let (gone, is_gone) = channel();
        let gone = Mutex::new(gone);
        let provider = Provider::new(move |side| {
            side.request();
            if begins {
                side.stream
                    .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
                    .unwrap();
            }
            let read = side.stream.read(&mut [0; 1]);
            gone.lock().unwrap().send(read.map_or(0, |read| read)).unwrap();
        });
        let running = Running::new(provider.address);
        let mut stream = running.connect();
        stream.write_all(REQUEST.as_bytes()).unwrap();
        if begins {
            read_until(&mut stream, b"ab\r\n");
        }
        drop(stream);
        assert_eq!(is_gone.recv_timeout(std::time::Duration::from_secs(30)), Ok(0), "begins: {begins}");
    }
}

#[test]
fn a_client_that_sends_no_more_still_gets_its_response() {
    let provider = Provider::new(|side| {
        side.request();
        assert_eq!(side.stream.read(&mut [0; 1]).unwrap(), 0, "the end of the client is passed on");
        side.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    });
    let running = Running::new(provider.address);
    let mut stream = running.connect();
    stream.write_all(REQUEST.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(text(&read_all(&mut stream)), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

#[test]
fn a_slow_reader_slows_the_provider_down() {
    const BYTES: usize = 64 << 20;
    let (done, is_done) = channel();
    let done = Mutex::new(done);
    let written = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let provider = Provider::new(move |side| {
        side.request();
        side.stream
            .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n").as_bytes())
            .unwrap();
        let piece = vec![b'x'; 1 << 16];
        for _ in 0..BYTES / piece.len() {
            side.stream.write_all(&piece).unwrap();
            count.fetch_add(piece.len(), std::sync::atomic::Ordering::Relaxed);
        }
        done.lock().unwrap().send(()).unwrap();
    });
    let running = Running::new(provider.address);
    let mut stream = running.connect();
    stream.write_all(REQUEST.as_bytes()).unwrap();
    read_until(&mut stream, b"\r\n\r\n");
    // The provider stops by itself while nothing is read: buffers of sockets are all that fills up.
    let mut before = usize::MAX;
    while before != written.load(std::sync::atomic::Ordering::Relaxed) {
        before = written.load(std::sync::atomic::Ordering::Relaxed);
        assert!(
            is_done.recv_timeout(std::time::Duration::from_millis(300)).is_err(),
            "nothing is buffered without a limit"
        );
    }
    assert!(before < BYTES / 2, "{before} bytes were taken from the provider");
    let mut all = vec![0; BYTES];
    stream.read_exact(&mut all).unwrap();
    assert!(all.iter().all(|byte| *byte == b'x'));
}

#[test]
fn bodies_of_64_mib_pass_both_ways() {
    let provider = Provider::new(|side| {
        while let Some(request) = side.request() {
            let body = &request[request.len() - (64 << 20)..];
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            side.stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        }
    });
    let running = Running::new(provider.address);
    let body = vec![b' '; 64 << 20];
    let head = format!(
        "POST /anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = running.connect();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body).unwrap();
    let answer = read_all(&mut stream);
    assert!(answer.ends_with(&body));
    running.observed();
    let counters = running.gateway.counters();
    assert_eq!(counters.unread.load(std::sync::atomic::Ordering::Relaxed), 1, "it is not JSON, and counted");
}
