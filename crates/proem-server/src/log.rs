//! The log: one JSON object per line, on standard error. It never contains prompts.

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

/// The importance of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A usual event.
    Info,
    /// A problem that does not stop the server.
    Warning,
    /// A failure of the server or its store.
    Error,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Writes one line of the log to standard error: the time, the level and these fields, in this order. Errors of writing
/// are ignored: a closed standard error does not stop the server.
pub fn line(level: Level, fields: &[(&str, &str)]) {
    let mut line = format!("{{\"time\":\"{}\",\"level\":\"{}\"", time(), level.word());
    for (key, value) in fields {
        line.push_str(&format!(",\"{key}\":{}", Value::from(*value)));
    }
    write(&(line + "}\n"));
}

/// Returns the time in UTC with milliseconds, in the form of RFC 3339.
fn time() -> String {
    format!("{:.3}", Timestamp::now())
}

/// Queues the line of an answered request. Status and microseconds are numbers.
pub(crate) fn access(id: &str, method: &Method, target: &str, status: u16, micros: u64) {
    let path = path(target);
    let is_plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    let is_plain = path.bytes().all(is_plain);
    let escaped = if is_plain { String::new() } else { Value::from(path.as_ref()).to_string() };
    let (quote, path) = if is_plain { ("\"", path.as_ref()) } else { ("", escaped.as_str()) };
    let (time, micros, status) = (time(), micros.to_string(), status.to_string());
    // Joining takes a third of the time of formatting.
    enqueue(
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

/// The time for which the line of an answered request may wait for others. One system call per line, by one thread at a
/// time, would take longer than most answers.
const QUEUE_TIME_MAX: Duration = Duration::from_millis(20);

/// Maximum size of the queue.
const QUEUE_BYTES_MAX: usize = 64 << 10;

/// Lines that are not written yet.
static QUEUE: Mutex<String> = Mutex::new(String::new());

/// Signals that the queue is not empty.
static QUEUE_FILLED: Condvar = Condvar::new();

/// Adds a line to the queue.
fn enqueue(line: &str) {
    static WRITER: Once = Once::new();
    WRITER.call_once(|| drop(std::thread::spawn(write_queued)));
    let mut queue = queue();
    let is_first = queue.is_empty();
    queue.push_str(line);
    let is_full = queue.len() > QUEUE_BYTES_MAX;
    drop(queue);
    if is_first {
        QUEUE_FILLED.notify_one();
    }
    if is_full {
        write("");
    }
}

/// Writes queued lines, in batches.
fn write_queued() {
    loop {
        drop(QUEUE_FILLED.wait_while(queue(), |queue| queue.is_empty()));
        std::thread::sleep(QUEUE_TIME_MAX);
        write("");
    }
}

/// Writes all queued lines, at the end of the server.
pub(crate) fn flush() {
    write("");
}

/// Writes the queue and then a line, with one call: standard error is not buffered, and other processes may write to it.
#[expect(clippy::let_underscore_must_use, reason = "there is no other place to report a failure of the log")]
fn write(line: &str) {
    // Locked until all is written, so that lines stay in their order.
    let mut out = std::io::stderr().lock();
    let mut text = std::mem::take(&mut *queue());
    text.push_str(line);
    let _ = out.write_all(text.as_bytes());
}

fn queue() -> MutexGuard<'static, String> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the parts of a path that may be logged: words of routes, conversation ids in their position, and numbers.
/// Everything else could be the token of a compaction, even if the path has no route, and is replaced by `…`.
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

/// Tells whether a part of a path is empty or a number of a version or epoch. A token has more digits.
fn is_number(part: &str) -> bool {
    part.len() <= 20 && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns 64 unpredictable bits in hexadecimal: the hash of a counter, with a random key. Reading random numbers of the
/// system each time would take as long as the lookup of a prompt.
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
            ("/assets/app.js", "/assets/…"),
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
