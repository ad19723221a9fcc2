//! A client that sends exactly the bytes that it is given.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The timeout of a test that hangs. No test asserts it.
const PATIENCE: Duration = Duration::from_mins(1);

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Call {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        Self { method: method.into(), target: target.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub(crate) fn json(method: &str, target: &str, body: &Value) -> Self {
        Self::new(method, target).text("application/json", body.to_string())
    }

    pub(crate) fn text(self, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut call = self.header("content-type", kind);
        call.body = body.into();
        call
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Returns the bytes of the request. A `host` is added unless it has one.
    pub(crate) fn bytes(&self, address: SocketAddr, connection: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nconnection: {connection}\r\n", self.method, self.target);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            head.push_str(&format!("host: {address}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT") {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        [head.as_bytes(), &self.body].concat()
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| Value::from(format!("{error}: {}", self.body)))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the text of the system carrier.
    pub(crate) fn system(&self) -> String {
        self.json()["carriers"]["system"].as_str().unwrap_or_default().to_owned()
    }
}

/// A connection.
pub(crate) struct Line {
    stream: BufReader<TcpStream>,
}

impl Line {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Sends bytes, and tells whether the server accepted them.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    /// Returns the next answer, or `None` if the server closed the connection.
    pub(crate) fn answer(&mut self, is_head: bool) -> Option<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: String::new() };
        assert_eq!(answer.header("transfer-encoding"), None, "answers have a length");
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; if is_head { 0 } else { length }];
        self.stream.read_exact(&mut body).unwrap();
        answer.body = String::from_utf8(body).unwrap();
        Some(answer)
    }

    /// Tells whether the server closed the connection without sending anything.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.stream.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end().to_owned())
    }
}
