//! More connections than there are slots.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use proem_server::{ConnectionLimits, Options, Token};

use crate::client::{Call, Line};
use crate::routes::turn;
use crate::server::{Server, Site};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const PLACES: usize = 64;
const SILENT: usize = 200;

fn serve(site: &Site, makes_room: bool) -> Server {
    let connections = ConnectionLimits { most: PLACES, makes_room, ..ConnectionLimits::default() };
    let options = Options { token: Token::new(TOKEN), connections, ..site.options() };
    Server::start(site.store(), options)
}

fn with_token(call: Call) -> Call {
    call.header("authorization", &format!("Bearer {TOKEN}"))
}

/// Opens a connection that sends a part of a request.
fn silent(address: SocketAddr) -> Line {
    let mut line = Line::open(address);
    line.send(b"GET /healthz HTTP/1.1\r\nhost: loc");
    line
}

/// Row H11: many idle connections of one address do not make a client with the token wait until they time out.
#[test]
fn silent_connections_make_room_for_a_client_with_the_token() {
    let site = Site::new();
    let server = serve(&site, true);
    let mut lines: VecDeque<Line> = (0..SILENT).map(|_| silent(server.address)).collect();
    for round in 0..10 {
        for _ in 0..20 {
            lines.push_back(silent(server.address));
        }
        let answer = server.ask(&with_token(turn(&format!("c-{round}"), "x")));
        assert_eq!(answer.status, 200, "round {round}");
        // It was opened before the client's connection and has not timed out: its request is answered once complete.
        let mut last = lines.pop_back().unwrap();
        assert!(last.send(b"alhost\r\n\r\n"));
        assert_eq!(last.answer(false).map(|answer| answer.status), Some(200), "round {round}");
        assert!(lines.pop_front().unwrap().is_closed(), "the oldest one made room");
    }
}

/// The control: if the server does not make room, the same connections block all others until they close.
#[test]
fn without_making_room_a_client_waits_for_silent_connections() {
    let site = Site::new();
    let server = serve(&site, false);
    let lines: Vec<Line> = (0..SILENT).map(|_| silent(server.address)).collect();
    let mut client = TcpStream::connect(server.address).unwrap();
    client.write_all(&with_token(turn("c", "x")).bytes(server.address, "close")).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let waited = client.read(&mut [0; 1]).map_err(|error| error.kind());
    assert!(matches!(waited, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{waited:?}");
    drop(lines);
    client.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Row H11: any number of new connections closes those without a valid token, and never one with it.
#[test]
fn a_connection_that_has_shown_the_token_is_kept() {
    let site = Site::new();
    let server = serve(&site, true);
    let ask = |line: &mut Line, call: &Call| {
        line.send(&call.bytes(server.address, "keep-alive"));
        line.answer(false).map(|answer| answer.status)
    };
    let known = with_token(Call::get("/conversations"));
    let (mut client, mut stranger) = (Line::open(server.address), Line::open(server.address));
    let mut wrong = Line::open(server.address);
    assert_eq!(ask(&mut client, &known), Some(200));
    assert_eq!(ask(&mut stranger, &Call::get("/healthz")), Some(200), "it needs no token");
    assert_eq!(ask(&mut wrong, &Call::get("/conversations")), Some(401));
    let lines: Vec<Line> = (0..SILENT).map(|_| silent(server.address)).collect();
    // When this is answered, the connections before it have been accepted.
    assert_eq!(server.ask(&known).status, 200);
    assert_eq!(ask(&mut client, &known), Some(200));
    assert!(stranger.is_closed() && wrong.is_closed(), "control: these had the same place");
    drop(lines);
}

/// Row H11: several threads open and close connections all the time.
#[test]
fn a_flood_of_connections_does_not_keep_clients_out() {
    let site = Site::new();
    let server = serve(&site, true);
    let (is_over, opened) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut lines = VecDeque::new();
                while !is_over.load(Ordering::Relaxed) {
                    lines.push_back(TcpStream::connect(server.address));
                    opened.fetch_add(1, Ordering::Relaxed);
                    if lines.len() > SILENT {
                        lines.pop_front();
                    }
                }
            });
        }
        while opened.load(Ordering::Relaxed) < 2 * SILENT {
            std::thread::yield_now();
        }
        // 48 newer connections may take the client's slot before its request is read; it then retries, as clients do.
        let mut tries = 0;
        for round in 0..20 {
            let call = with_token(turn(&format!("c-{round}"), "x")).bytes(server.address, "close");
            let mut is_answered = false;
            while !is_answered && tries < 1_000 {
                tries += 1;
                let mut line = Line::open(server.address);
                line.send(&call);
                is_answered = line.answer(false).is_some_and(|answer| answer.status == 200);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(tries < 1_000, "too many tries beside {} connections", opened.load(Ordering::Relaxed));
    });
}
