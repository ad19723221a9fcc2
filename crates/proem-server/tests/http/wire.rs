//! Malformed requests: ambiguous, endless, slow or too large.

use std::sync::Arc;
use std::time::Duration;

use proem_server::Options;
use proem_store::MemoryStore;
use serde_json::json;

use crate::client::{Call, Line};
use crate::server::{Server, Site, check_decent};

/// Row H12, the control.
#[test]
fn pipelined_requests_are_answered_in_order() {
    let site = Site::new();
    let server = site.serve();
    let mut line = Line::open(server.address);
    let calls = [Call::get("/healthz"), Call::get("/nothing"), Call::get("/system-prompt/versions")];
    let bytes: Vec<u8> = calls.iter().flat_map(|call| call.bytes(server.address, "keep-alive")).collect();
    assert!(line.send(&bytes));
    for status in [200, 404, 200] {
        let answer = line.answer(false).unwrap();
        check_decent(&answer, false);
        assert_eq!(answer.status, status);
    }
}

/// Row H12.
#[test]
fn a_body_with_two_lengths_ends_the_connection() {
    let site = Site::new();
    let server = site.serve();
    for lengths in [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: 5, 6\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: identity\r\n",
        "content-length: -5\r\n",
        "content-length: +5\r\n",
        "content-length: 0x5\r\n",
        "content-length: 99999999999999999999999\r\n",
    ] {
        let mut line = Line::open(server.address);
        let head = format!(
            "POST /preview HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{lengths}\r\n"
        );
        line.send(format!("{head}0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes());
        let first = line.answer(false).unwrap();
        assert!(matches!(first.status, 200 | 400 | 501), "{lengths:?} {first:?}");
        assert_eq!(line.answer(false), None, "what follows is not to be trusted: {lengths:?}");
    }
    assert!(server.is_well());
}

/// Row H12.
#[test]
fn what_is_no_request_is_refused() {
    let site = Site::new();
    let server = site.serve();
    for bytes in [
        b"GET /a b HTTP/1.1\r\nhost: localhost\r\n\r\n".as_slice(),
        b"GET /a\0b HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\nhost: localhost\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx : y\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\n folded: x\r\n\r\n",
    ] {
        let mut line = Line::open(server.address);
        line.send(bytes);
        let answer = line.answer(false);
        let shown = String::from_utf8_lossy(bytes);
        assert!(answer.as_ref().is_none_or(|answer| answer.status == 400), "{shown:?} {answer:?}");
        assert!(answer.is_none_or(|answer| answer.body.is_empty()), "{shown:?}");
    }
    assert!(server.is_well());
}

/// Row H12.
#[test]
fn oversized_heads_are_refused() {
    let site = Site::new();
    let server = site.serve();
    let long = "x".repeat(256 << 10);
    let many = "x: y\r\n".repeat(200);
    for head in [
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"),
        format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        format!("GET /{long}"),
    ] {
        let mut line = Line::open(server.address);
        line.send(head.as_bytes());
        let answer = line.answer(false);
        assert!(answer.as_ref().is_none_or(|answer| matches!(answer.status, 414 | 431)), "{answer:?}");
    }
    assert!(server.is_well());
}

/// Row H11.
#[test]
fn endless_bodies_are_cut_at_the_limit() {
    let site = Site::new();
    let options = Options { body_bytes_max: 1 << 20, ..site.options() };
    let server = Server::start(site.store(), options);
    let mut line = Line::open(server.address);
    line.send(b"POST /preview HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
    let chunk = [b"10000\r\n".as_slice(), " ".repeat(0x10000).as_bytes(), b"\r\n"].concat();
    // Far more than the limit and the buffers of the system together.
    let sent = (0..4096).take_while(|_| line.send(&chunk)).count();
    assert!(sent < 4096, "the server continues to read");
    assert!(server.is_well());
}

#[test]
fn a_body_over_the_limit_is_refused_by_its_length_alone() {
    let site = Site::new();
    let server = site.serve();
    let mut line = Line::open(server.address);
    line.send(b"POST /preview HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n");
    let answer = line.answer(false).unwrap();
    check_decent(&answer, false);
    assert_eq!((answer.status, answer.code()), (413, "too_large".into()));
}

/// Row H11: all bodies that are being received share a limit, which usual bodies do not reach.
#[test]
fn large_bodies_have_only_so_much_room_together() {
    const LARGE: usize = 16 << 20;
    let site = Site::new();
    let server = site.serve();
    let head = format!(
        "POST /preview HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {LARGE}\r\n\r\n"
    );
    let mut lines: Vec<Line> = (0..12).map(|_| Line::open(server.address)).collect();
    let body = " ".repeat(LARGE - 1);
    let taken: Vec<bool> =
        lines.iter_mut().map(|line| line.send(head.as_bytes()) && line.send(body.as_bytes())).collect();
    let answer = server.ask(&Call::json("POST", "/preview", &json!({})));
    assert_eq!(answer.status, 200, "a usual body is refused");
    let ends = lines.iter_mut().zip(taken).map(|(line, is_taken)| is_taken && line.send(b" "));
    let sent: Vec<bool> = ends.collect();
    let answers: Vec<Option<u16>> =
        lines.iter_mut().map(|line| line.answer(false).map(|answer| answer.status)).collect();
    let read = answers.iter().filter(|status| matches!(status, Some(200))).count();
    assert!((1..=8).contains(&read), "{read} of {} were read to their end: {answers:?}", sent.len());
    // A client that sends on after the answer may lose the answer.
    assert!(answers.iter().all(|status| matches!(status, Some(200 | 503) | None)), "{answers:?}");
    assert!(server.is_well());
}

/// Row H11.
#[test]
fn a_body_that_does_not_come_is_not_awaited_for_ever() {
    let site = Site::new();
    let options = Options { time_max: Duration::from_millis(200), ..site.options() };
    let server = Server::start(site.store(), options);
    let mut line = Line::open(server.address);
    line.send(b"POST /preview HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{");
    let answer = line.answer(false).unwrap();
    assert_eq!((answer.status, answer.code()), (408, "too_slow".into()));
    check_decent(&answer, false);
    assert!(line.is_closed(), "the rest of the body would be parsed as a request");
}

/// Row H11.
#[test]
fn a_head_that_does_not_come_is_not_awaited_for_ever() {
    let options = Options { time_max: Duration::from_mins(10), ..Options::default() };
    let server = Server::start_without_waiting(Arc::new(MemoryStore::default()), options);
    for head in ["", "G", "GET /healthz HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: "] {
        let mut line = Line::open(server.address);
        line.send(head.as_bytes());
        assert!(line.answer(false).is_none_or(|answer| answer.status == 408), "{head:?}");
    }
}

/// Row H11.
#[test]
fn slow_clients_do_not_harm_others() {
    let site = Site::new();
    let server = site.serve();
    let mut slow: Vec<Line> = (0..300).map(|_| Line::open(server.address)).collect();
    for line in &mut slow {
        assert!(line.send(b"GET /healthz HTTP/1.1\r\nhost: loc"));
    }
    assert!(server.is_well());
    for line in &mut slow {
        assert!(line.send(b"alhost\r\n\r\n"));
        assert_eq!(line.answer(false).unwrap().status, 200);
    }
}

#[test]
fn clients_that_leave_in_the_middle_do_no_harm() {
    let site = Site::new();
    let server = site.serve();
    let call =
        Call::new("POST", "/conversations/c/turn").text("application/json", "{\"profile\":\"template\"}");
    let bytes = call.bytes(server.address, "close");
    for end in (0..bytes.len()).step_by(7).chain([bytes.len()]) {
        Line::open(server.address).send(bytes.get(..end).unwrap());
    }
    assert!(server.is_well());
    assert_eq!(server.ask(&call).status, 200);
}
