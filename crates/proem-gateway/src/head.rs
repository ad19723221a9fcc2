//! Heads of HTTP/1.1 messages: parsed to find the end of the body, and forwarded line by line as they came.
//!
//! Requests are read strictly, so that the provider cannot find another end of a request than the gateway. A response that
//! cannot be read is passed on as it is.

use std::ops::Range;

use bytes::{Buf, BytesMut};
use proem_core::limit::{GATEWAY_HEAD_BYTES_MAX, GATEWAY_HEADERS_MAX};

use crate::framing::Framing;

/// A line of a head: name and value, with the place of the whole line.
#[derive(Debug, Clone)]
struct Field {
    line: Range<usize>,
    name: Range<usize>,
    value: Range<usize>,
}

/// A head of either direction.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    raw: Vec<u8>,
    /// The first line, with its end.
    start: Range<usize>,
    fields: Vec<Field>,
}

/// The head of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestHead {
    pub(crate) head: Head,
    pub(crate) method: String,
    pub(crate) target: String,
    /// The version, as it is written.
    version: &'static str,
    pub(crate) framing: Framing,
    /// True if the client wants to send another request.
    pub(crate) keeps_alive: bool,
    /// True if the client wants another protocol.
    pub(crate) upgrades: bool,
}

/// The head of a response.
#[derive(Debug, Clone)]
pub(crate) struct ResponseHead {
    pub(crate) head: Head,
    pub(crate) status: u16,
    /// True if the provider keeps the connection.
    pub(crate) keeps_alive: bool,
    is_11: bool,
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadHead {
    /// Not HTTP, or ambiguous.
    Malformed(&'static str),
    /// Too many bytes or lines.
    TooLarge,
}

/// Headers of one connection. They are not passed on.
pub(crate) const HOP_BY_HOP: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "upgrade"];

/// Headers that a `Connection` header cannot remove, because the message would mean something else without them.
const KEPT: [&str; 6] = ["content-length", "transfer-encoding", "te", "trailer", "host", "authorization"];

impl Head {
    /// Iterates over all headers.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|field| {
            let name = std::str::from_utf8(self.raw.get(field.name.clone()).unwrap_or_default());
            (name.unwrap_or_default(), self.raw.get(field.value.clone()).unwrap_or_default())
        })
    }

    /// Returns the values of a header.
    pub(crate) fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.fields().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns the only value of a header that is text.
    pub(crate) fn text<'h>(&'h self, name: &str) -> Option<&'h str> {
        let mut values = self.values(name);
        let (value, None) = (values.next()?, values.next()) else { return None };
        std::str::from_utf8(value).ok()
    }

    /// Tells if a header has a word in its list of values.
    pub(crate) fn has_word(&self, name: &str, word: &str) -> bool {
        let words = self.values(name).flat_map(|value| value.split(|byte| *byte == b','));
        words.map(<[u8]>::trim_ascii).any(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Writes the headers that belong to the message and not to the connection.
    fn write_fields(
        &self,
        out: &mut Vec<u8>,
        is_upgrade: bool,
        mut replace: impl FnMut(&str) -> Option<String>,
    ) {
        let nominated: Vec<&[u8]> = self
            .values("connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|word| !KEPT.iter().any(|kept| word.eq_ignore_ascii_case(kept.as_bytes())))
            .collect();
        for (field, (name, _)) in self.fields.iter().zip(self.fields()) {
            let is_own = HOP_BY_HOP.iter().any(|hop| name.eq_ignore_ascii_case(hop))
                || nominated.iter().any(|word| name.as_bytes().eq_ignore_ascii_case(word));
            let passes = is_upgrade
                && (name.eq_ignore_ascii_case("connection") || name.eq_ignore_ascii_case("upgrade"));
            if is_own && !passes {
                continue;
            }
            match replace(name) {
                Some(value) if value.is_empty() => {}
                Some(value) => {
                    out.extend_from_slice(name.as_bytes());
                    out.extend_from_slice(format!(": {value}\r\n").as_bytes());
                }
                None => out.extend_from_slice(self.raw.get(field.line.clone()).unwrap_or_default()),
            }
        }
    }

    fn new(raw: Vec<u8>, fields: &[httparse::Header<'_>], base: usize) -> Self {
        let place = |part: &[u8]| {
            let start = part.as_ptr().addr().saturating_sub(base);
            start..start + part.len()
        };
        let names: Vec<Range<usize>> = fields.iter().map(|field| place(field.name.as_bytes())).collect();
        let end = raw.len().saturating_sub(2);
        let first = names.first().map_or(end, |name| name.start);
        let field = |(index, header): (usize, &httparse::Header<'_>)| {
            let name = names.get(index).cloned().unwrap_or_default();
            let next = names.get(index + 1).map_or(end, |next| next.start);
            Field { line: name.start..next, value: place(header.value), name }
        };
        let fields = fields.iter().enumerate().map(field).collect();
        Self { raw, start: 0..first, fields }
    }
}

impl RequestHead {
    /// Takes a head off the buffer; `None` if it is not complete.
    pub(crate) fn take(buffer: &mut BytesMut) -> Result<Option<Self>, BadHead> {
        // Empty lines before a request are allowed.
        while buffer.starts_with(b"\r\n") {
            buffer.advance(2);
        }
        let mut space = [httparse::EMPTY_HEADER; GATEWAY_HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut space);
        let length = match parsed.parse(buffer) {
            Ok(httparse::Status::Complete(length)) if length <= GATEWAY_HEAD_BYTES_MAX => length,
            Ok(httparse::Status::Partial) if buffer.len() <= GATEWAY_HEAD_BYTES_MAX => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(BadHead::TooLarge),
            Err(_) => return Err(BadHead::Malformed("the head is not HTTP/1.1")),
        };
        let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
        let (method, target) = (method.to_owned(), target.to_owned());
        let is_11 = parsed.version == Some(1);
        let base = buffer.as_ptr().addr();
        let raw = buffer.get(..length).unwrap_or_default().to_vec();
        check_line_ends(&raw)?;
        let head = Head::new(raw, parsed.headers, base);
        buffer.advance(length);
        let framing = request_framing(&head, is_11)?;
        let closes = head.has_word("connection", "close");
        let upgrades =
            is_11 && head.has_word("connection", "upgrade") && head.values("upgrade").next().is_some();
        let version = if is_11 { "HTTP/1.1" } else { "HTTP/1.0" };
        Ok(Some(Self { head, method, target, version, framing, keeps_alive: is_11 && !closes, upgrades }))
    }

    /// Returns the bytes for the provider: another target and `Host`, and no headers of this connection.
    pub(crate) fn forwarded(&self, target: &str, host: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.head.raw.len() + target.len() + host.len());
        out.extend_from_slice(format!("{} {target} {}\r\n", self.method, self.version).as_bytes());
        self.head.write_fields(&mut out, self.upgrades, |name| {
            if name.eq_ignore_ascii_case("host") {
                Some(host.to_owned())
            } else {
                name.eq_ignore_ascii_case(crate::guard::TOKEN_HEADER).then(String::new)
            }
        });
        out.extend_from_slice(b"\r\n");
        out
    }
}

impl ResponseHead {
    /// Takes a head off the buffer; `None` if it is not complete. After an error the buffer is as it was.
    pub(crate) fn take(buffer: &mut BytesMut) -> Result<Option<Self>, BadHead> {
        let mut space = [httparse::EMPTY_HEADER; GATEWAY_HEADERS_MAX];
        let mut parsed = httparse::Response::new(&mut space);
        let mut config = httparse::ParserConfig::default();
        config
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_multiple_spaces_in_response_status_delimiters(true);
        let length = match config.parse_response(&mut parsed, buffer) {
            Ok(httparse::Status::Complete(length)) if length <= GATEWAY_HEAD_BYTES_MAX => length,
            Ok(httparse::Status::Partial) if buffer.len() <= GATEWAY_HEAD_BYTES_MAX => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(BadHead::TooLarge),
            Err(_) => return Err(BadHead::Malformed("the head is not HTTP/1.1")),
        };
        let (status, is_11) = (parsed.code.unwrap_or_default(), parsed.version == Some(1));
        let base = buffer.as_ptr().addr();
        let raw = buffer.get(..length).unwrap_or_default().to_vec();
        // The place of the last line counts on its usual end.
        if !raw.ends_with(b"\r\n\r\n") {
            return Err(BadHead::Malformed("the head ends in another way"));
        }
        let head = Head::new(raw, parsed.headers, base);
        buffer.advance(length);
        let closes = head.has_word("connection", "close");
        Ok(Some(Self { head, status, is_11, keeps_alive: is_11 && !closes }))
    }

    /// Returns the framing of the body; the second value is false if the connection cannot be used after it.
    pub(crate) fn framing(&self, method: &str) -> (Framing, bool) {
        if method == "HEAD" || matches!(self.status, 100..=199 | 204 | 304) {
            return (Framing::NONE, true);
        }
        let mut lengths = self.head.values("content-length");
        let length = lengths.next();
        let codings: Vec<&[u8]> = self.head.values("transfer-encoding").collect();
        if let Some(last) = codings.last() {
            let last = last.rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
            return if last.eq_ignore_ascii_case(b"chunked") && self.is_11 {
                (Framing::chunked(), length.is_none())
            } else {
                (Framing::UntilClose, false)
            };
        }
        let Some(length) = length else { return (Framing::UntilClose, false) };
        let is_single = lengths.all(|other| other == length);
        match digits(length).filter(|_| is_single) {
            Some(length) => (Framing::Length(length), true),
            None => (Framing::UntilClose, false),
        }
    }

    /// Returns the bytes for the client, without headers of the provider's connection.
    pub(crate) fn forwarded(&self, is_upgrade: bool, closes: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.head.raw.len() + 24);
        out.extend_from_slice(self.head.raw.get(self.head.start.clone()).unwrap_or_default());
        self.head.write_fields(&mut out, is_upgrade, |_| None);
        if closes && !is_upgrade {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    /// Tells if another head follows on the same request.
    pub(crate) const fn is_interim(&self) -> bool {
        matches!(self.status, 100..=199) && self.status != 101
    }
}

/// Refuses lines that do not end in CR LF: programs disagree about them.
fn check_line_ends(raw: &[u8]) -> Result<(), BadHead> {
    let mut before = 0;
    for (index, byte) in raw.iter().enumerate() {
        let is_wrong = (*byte == b'\n' && before != b'\r')
            || (before == b'\r' && *byte != b'\n')
            || *byte == 0
            || (*byte == b'\r' && index + 1 == raw.len());
        if is_wrong {
            return Err(BadHead::Malformed("a line does not end in CR LF"));
        }
        before = *byte;
    }
    Ok(())
}

fn request_framing(head: &Head, is_11: bool) -> Result<Framing, BadHead> {
    let lengths: Vec<&[u8]> = head.values("content-length").collect();
    let codings: Vec<&[u8]> = head.values("transfer-encoding").collect();
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Ok(Framing::NONE),
        ([length], []) => {
            let length = digits(length).ok_or(BadHead::Malformed("`Content-Length` is not a number"))?;
            Ok(Framing::Length(length))
        }
        ([], [coding]) if is_11 && coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::chunked()),
        ([], _) => Err(BadHead::Malformed("`Transfer-Encoding` is not `chunked`")),
        (_, []) => Err(BadHead::Malformed("`Content-Length` occurs twice")),
        _ => Err(BadHead::Malformed("`Content-Length` and `Transfer-Encoding` contradict each other")),
    }
}

fn digits(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Result<Option<RequestHead>, BadHead> {
        RequestHead::take(&mut BytesMut::from(text))
    }

    #[test]
    fn only_headers_of_the_connection_and_the_host_change() {
        let text = "POST /anthropic/v1/messages?beta=true HTTP/1.1\r\nX-CamelCase:  two  spaces \r\nhOST: localhost:1\r\n\
                    a: 1\r\nConnection: keep-alive, X-Mine, content-length\r\nB: 2\r\nA: 3\r\nx-mine: 4\r\nKeep-Alive: timeout=5\r\n\
                    x-proem-token: secret\r\nContent-Length: 3\r\nTE: trailers\r\n\r\nabc";
        let head = request(text).expect("it is HTTP").expect("it is complete");
        let expected = "POST /v1/messages?beta=true HTTP/1.1\r\nX-CamelCase:  two  spaces \r\nhOST: api.example.com\r\n\
                        a: 1\r\nB: 2\r\nA: 3\r\nContent-Length: 3\r\nTE: trailers\r\n\r\n";
        let forwarded = head.forwarded("/v1/messages?beta=true", "api.example.com");
        assert_eq!(String::from_utf8(forwarded).expect("text"), expected);
        assert_eq!((head.framing, head.keeps_alive, head.upgrades), (Framing::Length(3), true, false));
    }

    #[test]
    fn an_upgrade_keeps_its_headers() {
        let text = "GET /openai/v1/responses HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let head = request(text).expect("it is HTTP").expect("it is complete");
        let forwarded = String::from_utf8(head.forwarded("/v1/responses", "x:8")).expect("text");
        assert_eq!(forwarded, text.replace("/openai", "").replace("Host: h", "Host: x:8"));
        assert!(head.upgrades);
    }

    /// Row H12: no request has two ends.
    #[test]
    fn ambiguous_requests_are_refused() {
        for lines in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            "Content-Length: 3\r\nContent-Length: 3\r\n",
            "Content-Length: 3, 3\r\n",
            "Content-Length: +3\r\n",
            "Content-Length: 0x3\r\n",
            "Content-Length: \r\n",
            "Content-Length : 3\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding:\u{b}chunked\r\n",
            " Transfer-Encoding: chunked\r\n",
            "X: 1\r\n folded\r\n",
            "X: 1\nY: 2\r\n",
            "X: 1\rY: 2\r\n",
            "X: \0\r\n",
            "X y: 1\r\n",
            "no colon\r\n",
        ] {
            let text = format!("POST / HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
            assert!(matches!(request(&text), Err(BadHead::Malformed(_))), "{lines:?}");
        }
        let old = request("POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert!(matches!(old, Err(BadHead::Malformed(_))));
        assert!(matches!(request("GET  / HTTP/1.1\r\n\r\n"), Err(BadHead::Malformed(_))));
        assert!(matches!(request("GET / HTTP/2.0\r\n\r\n"), Err(BadHead::Malformed(_))));
    }

    #[test]
    fn large_heads_are_refused_and_partial_ones_awaited() {
        let many = "x: 1\r\n".repeat(GATEWAY_HEADERS_MAX + 1);
        assert!(matches!(request(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Err(BadHead::TooLarge)));
        let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(GATEWAY_HEAD_BYTES_MAX));
        assert!(matches!(request(&long), Err(BadHead::TooLarge)));
        assert!(matches!(request("GET / HTTP/1.1\r\nx: y"), Ok(None)));
    }

    #[test]
    fn responses_keep_their_lines() {
        let text = "HTTP/1.1 299 Very  Special\r\nserver:  x\r\nConnection: keep-alive\r\nSet-Cookie: a\r\nDate: d\r\nset-cookie: b\r\n\
                    Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
        let mut buffer = BytesMut::from(text);
        let head = ResponseHead::take(&mut buffer).expect("it is HTTP").expect("it is complete");
        let forwarded = String::from_utf8(head.forwarded(false, false)).expect("text");
        assert_eq!(forwarded, text.replace("Connection: keep-alive\r\n", ""));
        assert_eq!(head.framing("POST"), (Framing::chunked(), true));
        assert_eq!(head.framing("HEAD"), (Framing::NONE, true));
    }

    #[test]
    fn a_response_ends_where_its_head_says() {
        for (lines, expected) in [
            ("200 OK\r\nContent-Length: 5\r\n", (Framing::Length(5), true)),
            ("200 OK\r\n", (Framing::UntilClose, false)),
            ("204 No Content\r\n", (Framing::NONE, true)),
            ("304 Not Modified\r\nContent-Length: 5\r\n", (Framing::NONE, true)),
            ("200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n", (Framing::UntilClose, false)),
            ("200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", (Framing::chunked(), false)),
            ("200 OK\r\nTransfer-Encoding: gzip\r\n", (Framing::UntilClose, false)),
        ] {
            let mut buffer = BytesMut::from(format!("HTTP/1.1 {lines}\r\n").as_str());
            let head = ResponseHead::take(&mut buffer).expect("it is HTTP").expect("it is complete");
            assert_eq!(head.framing("GET"), expected, "{lines}");
        }
    }
}
