//! Requests that the gateway refuses itself, and the traffic that goes on beside them.

use std::io::{Read, Write};
use std::net::TcpListener;

use proem_gateway::GatewayToken;

use crate::base::{Provider, Running, read_all, read_message, text};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn first_line(answer: &[u8]) -> String {
    text(answer).lines().next().unwrap_or_default().to_owned()
}

/// Row H4.
#[test]
fn foreign_hosts_are_refused_before_routing() {
    let provider = Provider::answering(OK);
    let running = Running::new(provider.address);
    for host in [
        "Host: evil.example",
        "Host: localhost.",
        "Host: ",
        "Host: localhost\r\nHost: localhost",
        "Host: 2130706433",
        "X: y",
    ] {
        for path in ["/custom/up/x", "/nowhere"] {
            let answer = running.ask(format!("POST {path} HTTP/1.1\r\n{host}\r\nContent-Length: 0\r\n\r\n"));
            assert_eq!(first_line(&answer), "HTTP/1.1 421 Misdirected Request", "{host} {path}");
        }
    }
    assert!(provider.is_untouched());
    let answer = running.ask("GET /custom/up/x HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://x\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n");
    assert_eq!(first_line(&answer), "HTTP/1.1 200 OK", "control");
}

#[test]
fn the_token_is_checked_and_not_passed_on() {
    let provider = Provider::answering(OK);
    let token = "0123456789abcdef";
    let running = Running::with(provider.address, |options| options.token = GatewayToken::new(token));
    for (path, header) in [
        ("/custom/up/x", ""),
        ("/custom/up/x", "x-proem-token: 0123456789abcdee\r\n"),
        ("/x/custom/up/x", ""),
    ] {
        let answer = running.ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n"));
        assert_eq!(first_line(&answer), "HTTP/1.1 401 Unauthorized", "{path} {header}");
    }
    assert!(provider.is_untouched());
    for (path, header) in [
        ("/custom/up/x", format!("X-Proem-Token: {token}\r\n")),
        (&*format!("/{token}/custom/up/x"), String::new()),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}Connection: close\r\n\r\n");
        assert_eq!(first_line(&running.ask(request)), "HTTP/1.1 200 OK");
        let seen = text(&provider.request());
        assert_eq!(seen, format!("GET /x HTTP/1.1\r\nHost: {}\r\n\r\n", provider.address));
    }
}

/// Row H12: a request that has two ends reaches no provider.
#[test]
fn ambiguous_requests_never_reach_the_provider() {
    let provider = Provider::answering(OK);
    let running = Running::new(provider.address);
    let smuggled = "GET /custom/up/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for lines in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 0\r\nContent-Length: 44\r\n",
        "Content-Length: 0, 44\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: y\nContent-Length: 4\r\n",
        "X: y\r\n\tContent-Length: 4\r\n",
    ] {
        let answer = running
            .ask(format!("POST /custom/up/x HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n0\r\n\r\n{smuggled}"));
        assert_eq!(first_line(&answer), "HTTP/1.1 400 Bad Request", "{lines:?}");
        assert_eq!(text(&answer).matches("HTTP/1.1 ").count(), 1, "{lines:?}");
    }
    assert!(provider.is_untouched());
}

#[test]
fn a_body_with_wrong_chunks_ends_the_exchange() {
    let provider = Provider::new(|side| {
        side.request();
    });
    let running = Running::new(provider.address);
    for body in ["5\r\nhelloX\r\n0\r\n\r\n", "zz\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "0\r\nx: 1\n\r\n"] {
        let answer = running.ask(format!(
            "POST /custom/up/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{body}GET /x HTTP/1.1\r\n\r\n"
        ));
        assert!(
            answer.is_empty() || first_line(&answer) == "HTTP/1.1 400 Bad Request",
            "{body:?}: {}",
            text(&answer)
        );
    }
    assert!(provider.is_untouched(), "no request was complete");
}

#[test]
fn unknown_routes_name_the_known_ones() {
    let provider = Provider::answering(OK);
    let running = Running::new(provider.address);
    for path in ["/", "/v1/messages", "/custom/other/x", "/up/x"] {
        let answer = running.ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(first_line(&answer), "HTTP/1.1 404 Not Found", "{path}");
        assert!(
            text(&answer)
                .contains("/anthropic/, /deepseek/, /gemini/, /openai/, /openrouter/, /custom/NAME/")
        );
    }
    let answer = running.ask("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(text(&answer).ends_with("\r\n\r\n"), "HEAD has no body");
}

#[test]
fn a_provider_that_cannot_be_reached_is_a_502() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = Running::new(address);
    let answer = running.ask("POST /custom/up/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
    assert_eq!(first_line(&answer), "HTTP/1.1 502 Bad Gateway");
    assert!(text(&answer).contains("\"code\":\"unreachable\""), "{}", text(&answer));
}

#[test]
fn large_heads_are_refused() {
    let provider = Provider::answering(OK);
    let running = Running::new(provider.address);
    let answer = running
        .ask(format!("GET /custom/up/x HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "y".repeat(200 << 10)));
    assert_eq!(first_line(&answer), "HTTP/1.1 431 Request Header Fields Too Large");
    assert!(provider.is_untouched());
}

#[test]
fn requests_follow_each_other_on_one_connection_at_both_sides() {
    let provider = Provider::new(|side| {
        while side.request().is_some() {
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{}", side.number);
            side.stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let running = Running::new(provider.address);
    let mut stream = running.connect();
    // Two of them at once.
    let one = "POST /custom/up/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc";
    stream.write_all(format!("{one}{one}").as_bytes()).unwrap();
    for _ in 0..2 {
        assert!(
            read_message(&mut stream).unwrap().ends_with(b"\r\n\r\n0"),
            "the first connection serves both"
        );
    }
    stream.write_all(one.as_bytes()).unwrap();
    assert!(read_message(&mut stream).unwrap().ends_with(b"\r\n\r\n0"));
    drop(stream);
}

#[test]
fn the_end_lets_running_exchanges_finish() {
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let may_go = std::sync::Mutex::new(may_go);
    let provider = Provider::new(move |side| {
        side.request();
        side.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").unwrap();
        may_go.lock().unwrap().recv().unwrap();
        side.stream.write_all(b"cd").unwrap();
    });
    let mut running = Running::new(provider.address);
    let mut idle = running.connect();
    let mut stream = running.connect();
    stream.write_all(b"GET /custom/up/x HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut head = [0; 40];
    stream.read_exact(&mut head).unwrap();
    running.end();
    assert_eq!(read_all(&mut idle), b"", "an idle connection ends");
    go.send(()).unwrap();
    assert!(read_all(&mut stream).ends_with(b"cd"));
    running.join();
}
