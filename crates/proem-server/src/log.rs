//! Structured lines on standard error. Prompts are never among them: a digest and a length say enough.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use axum::http::Method;
use jiff::Timestamp;
use proem_store::is_conversation_id;
use serde_json::Value;

use crate::routes;

/// Writes one line of the log to standard error: the time, the level (`info`, `warning` or `error`), and these fields, in
/// this order. A reader that is gone does not stop the server.
pub fn line(level: &str, fields: &[(&str, &str)]) {
    let mut line = format!("{{\"time\":\"{}\",\"level\":\"{level}\"", time());
    for (key, value) in fields {
        line.push_str(&format!(",\"{key}\":{}", Value::from(*value)));
    }
    write(&(line + "}\n"));
}

/// The time in UTC, with milliseconds, as RFC 3339 writes it.
fn time() -> String {
    format!("{:.3}", Timestamp::now())
}

/// Writes the line of an answered request, which may wait for others. Status and microseconds are numbers.
pub(crate) fn access(id: &str, method: &Method, target: &str, status: u16, micros: u64) {
    let path = path(target);
    let is_plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    let is_plain = path.bytes().all(is_plain);
    let escaped = if is_plain { String::new() } else { Value::from(path.as_ref()).to_string() };
    let (quote, path) = if is_plain { ("\"", path.as_ref()) } else { ("", escaped.as_str()) };
    let (time, micros, status) = (time(), micros.to_string(), status.to_string());
    // Joined, not formatted: that takes a third of the time.
    gather(
        &[
            "{\"time\":\"",
            time.as_str(),
            "\",\"level\":\"info\",\"event\":\"request\",\"method\":\"",
            method.as_str(),
            "\",\"path\":",
            quote,
            path,
            quote,
            ",\"status\":",
            status.as_str(),
            ",\"micros\":",
            micros.as_str(),
            ",\"request\":\"",
            id,
            "\"}\n",
        ]
        .concat(),
    );
}

/// How long the line of an answered request may wait for others. A system call for each of them, one thread at a time,
/// would take longer than most answers.
const GATHER_TIME: Duration = Duration::from_millis(20);

/// How much may wait.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// Lines that are still to be written.
static WAITING: Mutex<String> = Mutex::new(String::new());

/// Tells that there are some.
static GATHERED: Condvar = Condvar::new();

/// Adds a line that may wait.
fn gather(line: &str) {
    static WRITER: Once = Once::new();
    WRITER.call_once(|| drop(std::thread::spawn(write_gathered)));
    let mut waiting = waiting();
    let is_first = waiting.is_empty();
    waiting.push_str(line);
    let is_much = waiting.len() > WAITING_BYTES_MAX;
    drop(waiting);
    if is_first {
        GATHERED.notify_one();
    }
    if is_much {
        write("");
    }
}

/// Writes lines whenever some have gathered.
fn write_gathered() {
    loop {
        drop(GATHERED.wait_while(waiting(), |waiting| waiting.is_empty()));
        std::thread::sleep(GATHER_TIME);
        write("");
    }
}

/// Writes everything that waits: the server ends.
pub(crate) fn flush() {
    write("");
}

/// Writes what waits, and a line behind it. In one go: standard error is not buffered, and other processes may write to
/// it, too.
#[expect(clippy::let_underscore_must_use, reason = "there is nobody left to tell")]
fn write(line: &str) {
    // Held while it is written: lines stay in their order.
    let mut out = std::io::stderr().lock();
    let mut text = std::mem::take(&mut *waiting());
    text.push_str(line);
    let _ = out.write_all(text.as_bytes());
}

fn waiting() -> MutexGuard<'static, String> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A path as it may be logged: the words of routes, conversation ids in their place and numbers. Everything else could be
/// the token of a compaction, also in a path that leads nowhere, and is left out.
pub(crate) fn path(path: &str) -> Cow<'_, str> {
    let names_conversation = path.starts_with("/conversations/");
    let is_shown = |(index, part): (usize, &str)| {
        let is_id = names_conversation && index == 2 && is_conversation_id(part);
        is_id || is_number(part) || routes::is_word(part)
    };
    if path.split('/').enumerate().all(is_shown) {
        return path.into();
    }
    let shown =
        path.split('/').enumerate().map(|(index, part)| if is_shown((index, part)) { part } else { "…" });
    shown.collect::<Vec<_>>().join("/").into()
}

/// Tells whether a part of a path is empty, or a number as versions and epochs have; a token has more digits.
fn is_number(part: &str) -> bool {
    part.len() <= 20 && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// 64 bits that nobody can foresee, in hexadecimal: a count under a key that the system's random numbers gave. To ask
/// the system each time would cost as much as looking up a prompt.
pub(crate) fn random_id() -> String {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{:016x}", KEY.hash_one(COUNT.fetch_add(1, Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_of_routes_ids_and_numbers_are_logged() {
        const TOKEN: &str = "0123456789abcdef0123456789abcdef";
        for (path_of, shown) in [
            ("/conversations/c-1/turn", "/conversations/c-1/turn"),
            ("/conversations/c-1/epochs/12", "/conversations/c-1/epochs/12"),
            ("/system-prompt/versions/3/restore", "/system-prompt/versions/3/restore"),
            ("/assets/app.js", "/assets/app.js"),
            ("/", "/"),
            ("/conversations/c-1/compaction", "/conversations/c-1/compaction"),
            ("/conversations/c-1/compaction/TOKEN", "/conversations/c-1/compaction/…"),
            ("/conversations/c-1/compaction/TOKEN/commit", "/conversations/c-1/compaction/…/commit"),
            ("/conversations/compaction/compaction/TOKEN", "/conversations/compaction/compaction/…"),
            ("/conversations/compaction/TOKEN", "/conversations/compaction/…"),
            ("/conversations/c/Compaction/TOKEN", "/conversations/c/…/…"),
            ("/conversations/c/%63ompaction/TOKEN", "/conversations/c/…/…"),
            ("/conversations/c/compaction//TOKEN", "/conversations/c/compaction//…"),
            ("//conversations/TOKEN", "//conversations/…"),
            ("/compaction/TOKEN", "/compaction/…"),
            ("/TOKEN", "/…"),
            ("/conversations/c d/turn", "/conversations/…/turn"),
            ("/conversations/c/epochs/012345678901234567890123456789", "/conversations/c/epochs/…"),
        ] {
            assert_eq!(path(&path_of.replace("TOKEN", TOKEN)), shown, "{path_of}");
        }
    }
}
