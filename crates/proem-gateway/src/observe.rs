//! The facts of a call that its head holds. Credentials become a digest here, and go nowhere else.

use hmac::{Hmac, KeyInit, Mac};
use proem::traffic::call::CallHeaders;
use proem::traffic::call::Wire;
use proem::traffic::collect::live::wire_of_path;
use sha2::Sha256;

use crate::head::RequestHead;
use crate::routes::Destination;
use crate::tap::Begin;

/// Headers that name an account, in the order in which they count: a login's token changes within the hour, its id does not.
const ACCOUNTS: [&str; 5] = ["chatgpt-account-id", "x-api-key", "x-goog-api-key", "api-key", "authorization"];

/// Returns the facts of a request; `None` if it is not a call to a model.
pub(crate) fn begin(
    head: &RequestHead,
    destination: &Destination,
    at: i64,
    account_key: &[u8; 32],
) -> Option<Begin> {
    let is_socket = head.upgrades && head.head.has_word("upgrade", "websocket");
    let wire = wire_of_path(&destination.target)?;
    // Over WebSocket, only the Responses API is spoken.
    if head.method != "POST" && !(is_socket && wire == Wire::Responses) {
        return None;
    }
    let mut headers = CallHeaders::default();
    for (name, value) in head.head.fields() {
        if let Ok(value) = std::str::from_utf8(value) {
            headers.keep(name, value);
        }
    }
    let encoding =
        head.head.text("content-encoding").filter(|coding| !coding.eq_ignore_ascii_case("identity"));
    Some(Begin {
        at,
        route: destination.route.clone(),
        host: destination.upstream.host.clone(),
        account: account(head, account_key),
        path: destination.target.clone(),
        wire,
        headers,
        encoding: encoding.map(str::to_owned),
    })
}

/// Returns a keyed digest of the account: it tells accounts apart, and no table of keys leads back to one.
fn account(head: &RequestHead, key: &[u8; 32]) -> Option<String> {
    let value = ACCOUNTS.iter().find_map(|name| head.head.values(name).next())?;
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(value);
    let digest = mac.finalize().into_bytes();
    Some(digest.iter().take(16).fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::routes::Routes;

    fn facts(lines: &str, key: u8) -> Option<Begin> {
        let text = format!("POST /anthropic/v1/messages?beta=true HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
        let head = RequestHead::take(&mut BytesMut::from(text.as_str())).expect("HTTP").expect("complete");
        let destination = Routes::built_in().find(&head.target, &head.head).expect("a route");
        begin(&head, &destination, 1, &[key; 32])
    }

    #[test]
    fn an_account_is_a_digest() {
        let key = "x-api-key: sk-ant-secret\r\nCookie: secret\r\nx-session-id: s\r\n";
        let found = facts(key, 1).expect("a call");
        assert!(!format!("{found:?}").contains("secret"), "{found:?}");
        assert_eq!(found.headers.get("x-session-id"), Some("s"));
        let account = |lines: &str, key| facts(lines, key).and_then(|found| found.account);
        assert!(account(key, 1) == found.account && account(key, 2) != found.account);
        assert!(account("x-api-key: sk-ant-other\r\n", 1) != found.account);
        assert_eq!(account("", 1), None);
    }
}
