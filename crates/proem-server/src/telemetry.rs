//! OpenTelemetry: one span per request, sent in batches to a collector as OTLP JSON over HTTP.
//!
//! Only one kind of span, one encoding and plain HTTP are needed: a collector on the same machine or network forwards
//! spans over TLS. `opentelemetry-otlp` 0.33 with HTTP and JSON alone would add 20 crates, `h2` and `prost` among them.

use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use proem::traffic::CallVerdict;
use serde_json::{Value, json};

use crate::log::{self, Level};

/// Maximum number of spans that wait to be sent. Further spans are dropped and counted.
const WAITING_MAX: usize = 4096;

/// Maximum number of spans in one request to the collector.
const BATCH_MAX: usize = 512;

/// The time for which a batch waits for the next span.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// Maximum time for the collector to connect, read and answer.
const SEND_TIME_MAX: Duration = Duration::from_secs(5);

/// The exporter of spans: a queue and a thread that sends it to the collector.
#[derive(Clone)]
pub struct Telemetry {
    spans: SyncSender<Value>,
    dropped: Arc<AtomicU64>,
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Telemetry")
    }
}

/// An environment variable with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TelemetryError {
    /// The name of the variable.
    pub variable: &'static str,
    /// The problem with its value, which may be secret and is not quoted.
    pub why: String,
}

impl fmt::Display for TelemetryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "invalid {}: {}", self.variable, self.why)
    }
}

impl std::error::Error for TelemetryError {}

/// The address of the collector, and the headers and service name to send.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Collector {
    host: String,
    path: String,
    headers: Vec<(String, String)>,
    service: String,
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

impl Collector {
    /// Reads the environment variables of OpenTelemetry; `None` if they configure no collector.
    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, TelemetryError> {
        let variable =
            |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let endpoint = variable(TRACES_ENDPOINT).map(|url| (TRACES_ENDPOINT, url));
        let endpoint = endpoint.or_else(|| {
            variable(ENDPOINT).map(|url| (ENDPOINT, format!("{}/v1/traces", url.trim_end_matches('/'))))
        });
        let Some((name, url)) = endpoint else { return Ok(None) };
        let invalid = |why: &str| TelemetryError { variable: name, why: why.to_owned() };
        let rest = url.strip_prefix("http://").ok_or_else(|| {
            invalid("it must begin with `http://`; for TLS, run a local collector that forwards the spans")
        })?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if host.is_empty() || host.contains('@') || url.contains(char::is_whitespace) {
            return Err(invalid("it is not the URL of a collector"));
        }
        let has_port = host.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok());
        let host = if has_port { host.to_owned() } else { format!("{host}:80") };
        Ok(Some(Self {
            host,
            path: if path.is_empty() { "/".into() } else { path.to_owned() },
            headers: headers(&variable(HEADERS).unwrap_or_default())?,
            service: variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "proem".into()),
        }))
    }

    /// Sends a batch. An answer with a status other than 2xx is an error.
    fn send(&self, spans: &[Value]) -> std::io::Result<()> {
        let body = json!({ "resourceSpans": [{
            "resource": { "attributes": [
                text("service.name", &self.service),
                text("service.version", env!("CARGO_PKG_VERSION")),
            ] },
            "scopeSpans": [{ "scope": { "name": "proem" }, "spans": spans }],
        }] })
        .to_string();
        let address = self.host.to_socket_addrs()?.next();
        let address =
            address.ok_or_else(|| std::io::Error::other("the host name of the collector has no address"))?;
        let mut stream = TcpStream::connect_timeout(&address, SEND_TIME_MAX)?;
        stream.set_read_timeout(Some(SEND_TIME_MAX))?;
        stream.set_write_timeout(Some(SEND_TIME_MAX))?;
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n",
            self.path,
            self.host,
            body.len()
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        // `HTTP/1.1 2..`
        if status.get(9) == Some(&b'2') {
            Ok(())
        } else {
            let status = String::from_utf8_lossy(&status);
            Err(std::io::Error::other(format!("the collector answered `{status}`")))
        }
    }
}

/// Parses `name=value` pairs, separated by commas. Values may be secret and are never part of a message.
fn headers(text: &str) -> Result<Vec<(String, String)>, TelemetryError> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let is_good =
            !name.is_empty() && name.bytes().all(is_name) && !value.contains(|c: char| c.is_control());
        let value = percent_decode(value.trim()).filter(|value| !value.contains(|c: char| c.is_control()))?;
        is_good.then(|| (name.to_owned(), value))
    };
    pairs
        .map(|text| {
            pair(text).ok_or_else(|| TelemetryError {
                variable: HEADERS,
                why: "it must be a list like `name=value,name=value`".into(),
            })
        })
        .collect()
}

/// Decodes percent-encoding; `None` if it is invalid or the result is not UTF-8.
fn percent_decode(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

impl Telemetry {
    /// Starts the exporter that the environment configures; `None` if it configures no collector.
    pub fn from_environment() -> Result<Option<Self>, TelemetryError> {
        Ok(Collector::from_variables(|name| std::env::var(name).ok())?.map(Self::start))
    }

    fn start(collector: Collector) -> Self {
        let (spans, waiting) = sync_channel(WAITING_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&dropped);
        std::thread::spawn(move || work(&collector, &waiting, &lost));
        Self { spans, dropped }
    }

    /// Queues a span, or drops it if the queue is full.
    pub(crate) fn take(&self, span: &Span) {
        if self.spans.try_send(span.json()).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Queues the span of a recorded call to a provider.
    pub(crate) fn take_call(&self, call: &CallVerdict) {
        if self.spans.try_send(call_span(call)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of dropped spans.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Sends queued spans in batches, until the queue is closed.
fn work(collector: &Collector, waiting: &Receiver<Value>, dropped: &AtomicU64) {
    let mut is_well = true;
    while let Ok(first) = waiting.recv() {
        let mut batch = vec![first];
        let is_end = loop {
            match waiting.recv_timeout(BATCH_TIME) {
                Ok(span) => batch.push(span),
                Err(RecvTimeoutError::Timeout) => break false,
                Err(RecvTimeoutError::Disconnected) => break true,
            }
            if batch.len() >= BATCH_MAX {
                break false;
            }
        };
        let sent = collector.send(&batch);
        if sent.is_err() {
            dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        match (sent, is_well) {
            (Ok(()), false) => {
                log::line(Level::Info, &[("event", "telemetry"), ("why", "the collector answers again")]);
            }
            // Logged for the first failed batch only.
            (Err(error), true) => {
                log::line(Level::Warning, &[("event", "telemetry"), ("why", &error.to_string())]);
                is_well = false;
                continue;
            }
            (Err(_), false) => continue,
            (Ok(()), true) => {}
        }
        is_well = true;
        if is_end {
            return;
        }
    }
}

/// Returns the span of a call, with the attributes that OpenTelemetry names for models, and the verdict on its cache.
fn call_span(call: &CallVerdict) -> Value {
    let number = |name: &str, value: u64| json!({ "key": name, "value": { "intValue": value.to_string() } });
    let model = call.model.as_deref().unwrap_or("model");
    let at = call.at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
    let nanos = at.map_or(0, Timestamp::as_nanosecond).to_string();
    let mut attributes = vec![
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.provider.name", &call.provider),
        text("gen_ai.request.model", model),
        text("gen_ai.conversation.id", &call.conversation),
        text("proem.call.id", &call.id),
        text("proem.cache.verdict", call.verdict.word()),
        number("proem.cache.lost_tokens", call.lost_tokens),
    ];
    let parts = [call.read, call.written, call.uncached];
    let input = parts.iter().any(Option::is_some);
    let input = input.then(|| parts.into_iter().flatten().fold(0, u64::saturating_add));
    let counts = [
        ("gen_ai.usage.input_tokens", input),
        ("gen_ai.usage.output_tokens", call.output),
        ("gen_ai.usage.cache_read.input_tokens", call.read),
        ("gen_ai.usage.cache_creation.input_tokens", call.written),
    ];
    attributes.extend(counts.into_iter().filter_map(|(name, count)| Some(number(name, count?))));
    json!({
        "traceId": format!("{}{}", log::random_id(), log::random_id()),
        "spanId": log::random_id(),
        "name": format!("chat {model}"),
        "kind": 3,
        "startTimeUnixNano": nanos,
        "endTimeUnixNano": nanos,
        "attributes": attributes,
    })
}

/// The span of an answered request.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) parent: Option<TraceParent>,
    pub(crate) method: String,
    /// The route, with parameter names instead of values.
    pub(crate) route: String,
    pub(crate) request: String,
    pub(crate) status: u16,
    pub(crate) begun: SystemTime,
    pub(crate) took: Duration,
}

/// The span of the client, from the `traceparent` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceParent {
    trace: String,
    span: String,
    pub(crate) is_sampled: bool,
}

impl TraceParent {
    /// Parses the header as W3C Trace Context defines it; `None` if it is invalid.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_set = |text: &str| text.bytes().any(|byte| byte != b'0');
        let is_good = is_hex(version, 2)
            && version != "ff"
            && (version != "00" || parts.next().is_none())
            && is_hex(trace, 32)
            && is_hex(span, 16)
            && is_hex(flags, 2)
            && is_set(trace)
            && is_set(span);
        let is_sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
        is_good.then(|| Self { trace: trace.to_owned(), span: span.to_owned(), is_sampled })
    }
}

impl Span {
    fn json(&self) -> Value {
        let begun = self.begun.duration_since(UNIX_EPOCH).unwrap_or_default();
        let trace = match &self.parent {
            Some(parent) => parent.trace.clone(),
            None => format!("{}{}", log::random_id(), log::random_id()),
        };
        let mut span = json!({
            "traceId": trace,
            "spanId": log::random_id(),
            "name": format!("{} {}", self.method, self.route),
            "kind": 2,
            "startTimeUnixNano": begun.as_nanos().to_string(),
            "endTimeUnixNano": (begun + self.took).as_nanos().to_string(),
            "attributes": [
                text("http.request.method", &self.method),
                text("http.route", &self.route),
                text("proem.request.id", &self.request),
                { "key": "http.response.status_code", "value": { "intValue": self.status.to_string() } },
            ],
            "status": { "code": if self.status >= 500 { 2 } else { 0 } },
        });
        if let Some(parent) = &self.parent {
            span["parentSpanId"] = parent.span.clone().into();
        }
        span
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    fn collector(pairs: &[(&str, &str)]) -> Result<Option<Collector>, TelemetryError> {
        Collector::from_variables(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_names_the_collector() {
        assert_eq!(collector(&[]), Ok(None));
        assert_eq!(collector(&[(ENDPOINT, "http://c:1"), ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        let found = collector(&[
            (ENDPOINT, "http://c:4318/"),
            (HEADERS, "a=b, key=x=y%20z"),
            ("OTEL_SERVICE_NAME", "mine"),
        ]);
        let found = found.expect("the variables are valid").expect("they name a collector");
        assert_eq!((found.host.as_str(), found.path.as_str()), ("c:4318", "/v1/traces"));
        assert_eq!(found.headers, [("a".into(), "b".into()), ("key".into(), "x=y z".into())]);
        assert_eq!(found.service, "mine");
        let whole = collector(&[(TRACES_ENDPOINT, "http://c/in")])
            .expect("the variable is valid")
            .expect("it names a collector");
        assert_eq!((whole.host.as_str(), whole.path.as_str()), ("c:80", "/in"));
        for wrong in ["https://c:4318", "c:4318", "http://", "http://user@c"] {
            assert!(collector(&[(ENDPOINT, wrong)]).is_err(), "{wrong}");
        }
        let secret = collector(&[(ENDPOINT, "http://c"), (HEADERS, "authorization: s3cret")]);
        assert!(!format!("{secret:?}").contains("s3cret"), "{secret:?}");
        let message = secret.expect_err("a header needs `=`").to_string();
        assert_eq!(message, format!("invalid {HEADERS}: it must be a list like `name=value,name=value`"));
    }

    #[test]
    fn trace_parents_are_parsed() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let parse = |text: String| TraceParent::parse(&text);
        let parent = parse(format!("00-{trace}-{span}-01")).expect("it is valid");
        assert_eq!(parent, TraceParent { trace: trace.into(), span: span.into(), is_sampled: true });
        assert!(!parse(format!("00-{trace}-{span}-00")).expect("it is valid").is_sampled);
        assert!(parse(format!("01-{trace}-{span}-01-more")).is_some());
        for wrong in [
            String::new(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{}-{span}-01", trace.to_uppercase()),
        ] {
            assert_eq!(TraceParent::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans_reach_a_collector() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let endpoint = format!("http://{address}");
        let found = collector(&[(ENDPOINT, &endpoint), (HEADERS, "x-key=v")]);
        let found = found.expect("the variables are valid").expect("they name a collector");
        let telemetry = Telemetry::start(found);
        telemetry.take(&Span {
            parent: TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            method: "POST".into(),
            route: "/conversations/{id}/turn".into(),
            request: "r1".into(),
            status: 503,
            begun: UNIX_EPOCH + Duration::from_secs(1),
            took: Duration::from_millis(2),
        });
        drop(telemetry);
        let (stream, _) = listener.accept().expect("the collector is called");
        let mut reader = BufReader::new(&stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("the head is text");
            match line.trim() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        assert_eq!(lines[0], "POST /v1/traces HTTP/1.1");
        assert!(lines.contains(&"x-key: v".to_owned()));
        let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
        let mut body = vec![0; length.expect("the length is sent")];
        reader.read_exact(&mut body).expect("the body is whole");
        (&stream)
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .expect("the exporter waits for the answer");
        let body: Value = serde_json::from_slice(&body).expect("it is JSON");
        let span = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!(span["name"], "POST /conversations/{id}/turn");
        assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(span["parentSpanId"], "00f067aa0ba902b7");
        assert_eq!(
            (span["startTimeUnixNano"].as_str(), span["endTimeUnixNano"].as_str()),
            (Some("1000000000"), Some("1002000000"))
        );
        assert_eq!(span["status"]["code"], 2);
    }
}
