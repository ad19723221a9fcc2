//! A server that is asked by HTTP.

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::failure::Failure;
use crate::input::reason;

const TIME_MAX: Duration = Duration::from_mins(1);

/// A server at an address.
pub(crate) struct Remote {
    host: String,
}

impl Remote {
    /// Takes an address such as `http://127.0.0.1:7717`.
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let host = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let host = host.filter(|host| !host.is_empty() && !host.contains('/'));
        let host = host.ok_or_else(|| Failure::Server {
            message: format!("`{url}` is no address of a server"),
            hint: "write it like `http://127.0.0.1:7717`; for TLS use a local proxy".into(),
        })?;
        Ok(Self { host: if host.contains(':') { host.to_owned() } else { format!("{host}:80") } })
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask("GET", path)
    }

    pub(crate) fn post(&self, path: &str) -> Result<Value, Failure> {
        self.ask("POST", path)
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.ask("DELETE", path)
    }

    fn ask(&self, method: &str, path: &str) -> Result<Value, Failure> {
        let unreachable = |error: std::io::Error| Failure::Server {
            message: format!("no answer from http://{}: {}", self.host, reason(&error)),
            hint: "start it with `proem serve`, or leave `--url` out".into(),
        };
        let text = self.exchange(method, path).map_err(unreachable)?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status: u16 = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let answer: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let said = |key: &str| answer[key].as_str().map(str::to_owned);
        Err(Failure::Server {
            message: said("message").unwrap_or_else(|| format!("http://{} answers {status}", self.host)),
            hint: said("hint").unwrap_or_else(|| "see the server's log".into()),
        })
    }

    fn exchange(&self, method: &str, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.host)?;
        stream.set_read_timeout(Some(TIME_MAX))?;
        let token = env::var("PROEM_TOKEN").ok().filter(|text| !text.trim().is_empty());
        let token =
            token.map_or_else(String::new, |token| format!("Authorization: Bearer {}\r\n", token.trim()));
        let host = &self.host;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{token}Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
