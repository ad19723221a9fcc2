//! Fifty credentials pass through the gateway on every path; none of them is in what the analysis keeps.

use std::io::Write;

use crate::base::{Provider, Running, text};

const HEADERS: [&str; 10] = [
    "Authorization: Bearer {}",
    "x-api-key: {}",
    "x-goog-api-key: {}",
    "api-key: {}",
    "Cookie: session={}",
    "Proxy-Authorization: Basic {}",
    "chatgpt-account-id: {}",
    "X-Amz-Security-Token: {}",
    "x-oai-attestation: {}",
    "x-my-gateway-key: {}",
];
const PATHS: [&str; 5] = [
    "/anthropic/v1/messages?key={}",
    "/openai/v1/responses",
    "/openai/v1/chat/completions",
    "/gemini/v1beta/models/gemini-x:generateContent?key={}",
    "/custom/up/v1/messages",
];

#[test]
fn no_credential_is_kept() {
    let body = "{\"model\":\"claude-opus-4-6\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}";
    let answer = "{\"id\":\"m\",\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":0,\"cache_creation_input_tokens\":0,\"output_tokens\":1}}";
    let provider = Provider::new(move |side| {
        while let Some(request) = side.request() {
            // A provider may send credentials, too.
            let canary = text(&request)
                .split("canary-")
                .nth(1)
                .map(|rest| rest.chars().take(8).collect::<String>())
                .unwrap_or_default();
            let head = format!(
                "HTTP/1.1 200 OK\r\nSet-Cookie: s=canary-{canary}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
                answer.len()
            );
            side.stream.write_all(head.as_bytes()).unwrap();
        }
    });
    let running = Running::new(provider.address);
    let mut number = 10_000_000;
    for path in PATHS {
        for header in HEADERS {
            number += 1;
            let canary = format!("canary-{number}");
            let (path, header) = (path.replace("{}", &canary), header.replace("{}", &canary));
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            running.ask(request);
            assert!(text(&provider.request()).contains(&canary), "control: it passes");
        }
    }
    let calls = running.observed();
    assert_eq!(calls.len(), 50);
    for call in &calls {
        let kept = format!("{call:?} {}", serde_json::to_string(&call.verdict).unwrap());
        assert!(!kept.contains("canary-"), "{kept}");
    }
    let accounts: std::collections::BTreeSet<_> =
        calls.iter().map(|call| call.call.route.account.clone()).collect();
    assert!(accounts.len() > 20, "accounts are told apart: {}", accounts.len());
}
