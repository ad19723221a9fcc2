//! `proem watch`: prints a line for each call as it happens.

use std::collections::VecDeque;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use proem::conversation::RecordedCall;
use proem::store::Store;
use proem::store::traffic::CallQuery;
use serde_json::Value;

use crate::arguments::{ServerFlags, StoreFlags, store};
use crate::call_line::call_line;
use crate::failure::Failure;
use crate::remote::Remote;
use crate::terminal::{print, visible};

/// Time between two looks at the store.
const PAUSE: Duration = Duration::from_millis(500);

/// Calls that one look takes.
const CALLS_MAX: usize = 500;

/// Calls that are remembered, so that none is printed twice.
const PRINTED_MAX: usize = 10_000;

/// Print a line for each call to a provider, as it happens
///
/// Calls come from `proem gateway`, `proem run`, `proem serve --gateway`, and programs that send theirs to a server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArguments {
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    server: ServerFlags,
    /// Begin with the calls of the last days, hours or minutes, such as `2h` [default: only new calls]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    since: Option<i64>,
    /// Only calls of this conversation
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Only misses that need attention
    #[arg(long)]
    misses: bool,
    /// Print JSON, one object on each line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  proem watch                               Print new calls of this machine
  proem watch --since 1h --misses           Begin with the misses of an hour
  proem watch --url http://127.0.0.1:7717   Watch a server";

/// The place that is watched.
enum Source {
    Store(Box<dyn Store>),
    Server(Remote),
}

pub(crate) fn run(arguments: &WatchArguments) -> Result<(), Failure> {
    let source = match &arguments.server.url {
        Some(url) => Source::Server(Remote::new(url)?),
        None => Source::Store(store::open(&arguments.store)?),
    };
    let begin = Timestamp::now().as_millisecond() - arguments.since.unwrap_or(0).saturating_mul(1_000);
    let (mut printed, mut is_first, zone) = (VecDeque::new(), true, TimeZone::system());
    loop {
        for call in source.calls(arguments, begin, is_first && arguments.since.is_none())? {
            if printed.contains(&call.call.id) {
                continue;
            }
            printed.push_back(call.call.id.clone());
            if printed.len() > PRINTED_MAX {
                printed.pop_front();
            }
            let is_old = is_first && arguments.since.is_none();
            if !is_old && (call.call.alarming || !arguments.misses) {
                print(&line(&call, arguments, &zone))?;
            }
        }
        is_first = false;
        std::thread::sleep(PAUSE);
    }
}

fn line(call: &RecordedCall, arguments: &WatchArguments, zone: &TimeZone) -> String {
    if arguments.json {
        let json = serde_json::to_string(call).unwrap_or_default();
        return visible(&json) + "\n";
    }
    call_line(&call.call, zone) + "\n"
}

impl Source {
    /// Returns the newest calls, the oldest first. A long call is stored when it ends, with the time of its beginning.
    fn calls(
        &self,
        arguments: &WatchArguments,
        begin: i64,
        is_last: bool,
    ) -> Result<Vec<RecordedCall>, Failure> {
        const LONGEST_CALL: i64 = 3_600_000;
        let since = begin - if is_last || arguments.since.is_none() { LONGEST_CALL } else { 0 };
        let mut calls = match self {
            Self::Store(store) => {
                let query = CallQuery {
                    conversation: arguments.conversation.clone(),
                    since: Some(since),
                    most: CALLS_MAX,
                    ..CallQuery::default()
                };
                let page = store.list_calls(&query)?;
                page.items.iter().map(RecordedCall::read).collect::<Result<Vec<_>, _>>()?
            }
            Self::Server(server) => {
                let conversation = arguments
                    .conversation
                    .as_deref()
                    .map_or_else(String::new, |id| format!("&conversation={}", encoded(id)));
                let mut answer =
                    server.get(&format!("/calls?limit={CALLS_MAX}&since={since}{conversation}"))?;
                let calls = answer.get_mut("calls").map_or(Value::Array(Vec::new()), Value::take);
                serde_json::from_value(calls).map_err(|error| Failure::Server {
                    message: format!("the server sent another shape of calls: {error}"),
                    hint: "use the same version of proem on both sides".into(),
                })?
            }
        };
        calls.reverse();
        Ok(calls)
    }
}

/// Escapes a value for a query.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

/// Parses `7d`, `12h` or `30m` into seconds.
fn seconds(text: &str) -> Result<i64, String> {
    let wrong = || "write it like `30m`, `12h` or `7d`".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let unit = match unit {
        "d" => 86_400,
        "h" => 3_600,
        "m" => 60,
        _ => return Err(wrong()),
    };
    let number: i64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|seconds| *seconds >= 0).ok_or_else(wrong)
}
