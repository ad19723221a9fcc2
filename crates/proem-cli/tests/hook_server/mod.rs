//! A server of hooks on the loopback interface, whose answers are those of a script.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde::Deserialize;
use serde_json::{Value, json};

/// The behaviour of one path. Without any key, the answer is empty.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Behaviour {
    /// Answers with this JSON.
    pub(crate) answer: Option<Value>,
    /// Adds this text to the system prompt.
    pub(crate) append: Option<String>,
    /// Adds the event, as JSON, as a message.
    pub(crate) echo: bool,
    /// Leaves out the messages that contain this text.
    pub(crate) drop: Option<String>,
    /// Replaces the first text by the second in all messages.
    pub(crate) replace: Option<(String, String)>,
    /// Answers with this text, which need not be JSON.
    pub(crate) body: Option<String>,
    /// Answers with this status.
    pub(crate) status: Option<u16>,
    /// Sends the caller to this path.
    pub(crate) redirect: Option<String>,
    /// Answers with this number of bytes.
    pub(crate) bytes: Option<usize>,
    /// Never answers.
    pub(crate) hang: bool,
    /// Answers 401 unless the request has this bearer token.
    pub(crate) token: Option<String>,
}

/// Starts a server, and returns its address. Its thread lives as long as the test.
pub(crate) fn start(paths: BTreeMap<String, Behaviour>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let own = url.clone();
    std::thread::spawn(move || {
        let mut hanging = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            // A client that has enough closes the connection.
            if let Ok(Some(stream)) = answer(stream, &paths, &own) {
                hanging.push(stream);
            }
        }
    });
    url
}

/// Answers one request. Returns the connection if it is left open.
fn answer(
    stream: TcpStream,
    paths: &BTreeMap<String, Behaviour>,
    own: &str,
) -> std::io::Result<Option<TcpStream>> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let header = |name: &str| {
        lines.iter().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut stream = reader.into_inner();
    let path = lines[0].split(' ').nth(1).unwrap();
    let Some(behaviour) = paths.get(path) else { return write(&mut stream, 404, "", "no such path") };
    if behaviour.hang {
        return Ok(Some(stream));
    }
    if let Some(token) = &behaviour.token
        && header("authorization") != Some(format!("Bearer {token}"))
    {
        return write(&mut stream, 401, "", "");
    }
    if let Some(to) = &behaviour.redirect {
        return write(&mut stream, 307, &format!("location: {own}{to}\r\n"), "");
    }
    if let Some(bytes) = behaviour.bytes {
        return write(&mut stream, 200, "", &"a".repeat(bytes));
    }
    let text = match &behaviour.body {
        Some(text) => text.clone(),
        None => behaviour.answer(&serde_json::from_slice(&body).unwrap()),
    };
    write(&mut stream, behaviour.status.unwrap_or(200), "", &text)
}

fn write(
    stream: &mut TcpStream,
    status: u16,
    headers: &str,
    body: &str,
) -> std::io::Result<Option<TcpStream>> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    stream.write_all(body.as_bytes())?;
    Ok(None)
}

impl Behaviour {
    fn answer(&self, event: &Value) -> String {
        let mut answer = self.answer.clone().unwrap_or(Value::Null);
        if let Some(text) = &self.append {
            answer =
                json!({ "system_prompt": format!("{}{text}", event["system_prompt"].as_str().unwrap()) });
        }
        if self.echo {
            answer = json!({ "message": event.to_string() });
        }
        if let Some(text) = &self.drop {
            let kept = event["messages"].as_array().unwrap().iter();
            let kept: Vec<&Value> = kept.filter(|message| !message.to_string().contains(text)).collect();
            answer = json!({ "messages": kept });
        }
        if let Some((from, to)) = &self.replace {
            let text = event["messages"].to_string().replace(from, to);
            answer = json!({ "messages": serde_json::from_str::<Value>(&text).unwrap() });
        }
        if answer.is_null() { String::new() } else { answer.to_string() }
    }
}
