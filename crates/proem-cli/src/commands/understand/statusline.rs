//! `proem statusline`: one line about the cache of a conversation, for the status line of an agent.

use std::io::{self, Read};
use std::path::Path;

use clap::Args;
use jiff::Timestamp;
use proem::conversation::RecordedCall;
use proem::models::Models;
use proem::store::traffic::{CallQuery, ListQuery};
use proem::traffic::collect::{ReadOptions, TrafficSource, read};
use proem::traffic::{CacheVerdict, CallVerdict, ReportFilter, TrafficReport};
use proem::{Caller, Request};
use proem_core::limit::STATUS_BYTES_MAX;
use proem_store::Store;
use serde::Deserialize;
use serde_json::json;

use crate::arguments::store::open_known;
use crate::arguments::{Format, Output, StoreFlags};
use crate::failure::Failure;
use crate::input::reason;
use crate::table::grouped;
use crate::terminal::{print, print_json, visible_line};

/// Calls of a conversation that are searched for the last miss.
const CALLS_SEARCHED: usize = 200;

/// Bytes of a transcript that is read for every line.
const TRANSCRIPT_BYTES_MAX: u64 = 16 << 20;

/// Print one line about the cache of a conversation, for the status line of an agent
///
/// Reads the status of Claude Code, as JSON, from standard input, or takes the id of a conversation. The last miss comes from the
/// store, else from the transcript that the status names, else from the status itself.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatuslineArguments {
    /// Conversation: an id in the store, or a session of an agent [default: the status on standard input]
    #[arg(value_name = "CONVERSATION")]
    conversation: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    output: Output<Format>,
}

const EXAMPLES: &str = "\
Examples:
  proem statusline < status.json        cache 97 % · last miss: tools reordered,
                                        $0.41 · expires 3:12
  proem statusline claude-code:4f9e1623 The same for a conversation of the store

In ~/.claude/settings.json:
  {\"statusLine\": {\"type\": \"command\", \"command\": \"proem statusline\"}}";

/// The status of an agent. Fields that are not listed are ignored.
#[derive(Debug, Default, Deserialize)]
struct Status {
    session_id: Option<String>,
    transcript_path: Option<String>,
    prompt_cache: Option<AgentCache>,
}

/// The agent's own numbers.
#[derive(Debug, Default, Deserialize)]
struct AgentCache {
    expires_at: Option<f64>,
    hit_ratio: Option<f64>,
    misses: Option<u64>,
    last_miss_cause: Option<AgentCause>,
}

#[derive(Debug, Default, Deserialize)]
struct AgentCause {
    #[serde(default)]
    causes: Vec<String>,
}

/// The parts of the line.
#[derive(Debug, Default)]
struct Line {
    /// The share of the input that was read, in percent.
    percent: Option<u64>,
    miss: Option<Miss>,
    /// True if all calls are known, so that no miss means that there was none.
    is_complete: bool,
    /// The seconds for which the entry is alive.
    expires: Option<i64>,
}

#[derive(Debug)]
struct Miss {
    cause: String,
    usd: Option<f64>,
    tokens: u64,
}

pub(crate) fn run(arguments: &StatuslineArguments) -> Result<(), Failure> {
    let status = match &arguments.conversation {
        Some(id) => Status { session_id: Some(id.clone()), ..Status::default() },
        None => status()?,
    };
    let store = open_known(&arguments.store)?;
    let mut line = Line::default();
    let is_found = match (&store, &status.session_id) {
        (Some(store), Some(id)) => line.of_store(&**store, id)?,
        _ => false,
    };
    if let (Some(id), false) = (&arguments.conversation, is_found) {
        return Err(Failure::Server {
            message: format!("the store has no calls of `{}`", visible_line(id)),
            hint: "record calls with `POST /calls`, or pass the status of the agent on standard input".into(),
        });
    }
    if let (Some(path), false) = (&status.transcript_path, is_found) {
        line.of_transcript(Path::new(path))?;
    }
    line.of_agent(status.prompt_cache.unwrap_or_default());
    match arguments.output.format() {
        Format::Text => print(&format!("{}\n", line.words())),
        Format::Json => {
            let miss = line.miss.as_ref();
            print_json(&json!({
                "version": 1,
                "read_percent": line.percent,
                "last_miss": miss.map(|miss| json!({
                    "cause": miss.cause, "lost_usd": miss.usd, "lost_tokens": miss.tokens,
                })),
                "expires_seconds": line.expires,
                "line": line.words(),
            }))
        }
    }
}

/// Reads the status from standard input.
fn status() -> Result<Status, Failure> {
    let refuse = |why: String| Failure::Input { what: "status", path: "standard input".into(), why };
    let mut text = String::new();
    let most = STATUS_BYTES_MAX as u64 + 1;
    io::stdin().lock().take(most).read_to_string(&mut text).map_err(|error| refuse(reason(&error)))?;
    if text.len() > STATUS_BYTES_MAX {
        return Err(refuse(format!("it is longer than {STATUS_BYTES_MAX} bytes")));
    }
    serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))
}

impl Line {
    /// Takes the calls of the store; tells if there are any.
    fn of_store(&mut self, store: &dyn Store, id: &str) -> Result<bool, Failure> {
        let query =
            CallQuery { conversation: Some(id.to_owned()), most: CALLS_SEARCHED, ..CallQuery::default() };
        let page = store.list_calls(&query)?;
        let calls: Vec<RecordedCall> = page.items.iter().map(RecordedCall::read).collect::<Result<_, _>>()?;
        let Some(newest) = calls.first() else { return Ok(false) };
        let name = newest.call.conversation.clone();
        let wanted = ListQuery { search: Some(name.clone()), most: CALLS_SEARCHED, ..ListQuery::default() };
        let list = store.list_conversations(&wanted)?;
        let sums = list.items.into_iter().find(|one| one.conversation == name).unwrap_or_default();
        self.percent = sums.read.saturating_mul(100).checked_div(sums.input);
        self.miss = calls.iter().find_map(|call| Miss::new(&call.call));
        self.is_complete = page.next.is_none();
        Ok(true)
    }

    /// Takes the calls of a transcript, unless it is large.
    fn of_transcript(&mut self, path: &Path) -> Result<(), Failure> {
        if std::fs::metadata(path)
            .map_or(true, |found| found.len() > TRANSCRIPT_BYTES_MAX || !found.is_file())
        {
            return Ok(());
        }
        let models = Models::load(&Request::default(), Caller::User)?;
        let mut calls = Vec::new();
        read(TrafficSource::ClaudeCode, path, &ReadOptions::default(), &mut |call| calls.push(call));
        let report = TrafficReport::new(calls, &models, &ReportFilter::default());
        let totals = &report.totals;
        let input = totals.read.saturating_add(totals.written).saturating_add(totals.uncached);
        self.percent = totals.read.saturating_mul(100).checked_div(input);
        self.miss = report.calls.iter().rev().find_map(Miss::new);
        Ok(())
    }

    /// Adds what the agent says itself.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "percent, and seconds since 1970"
    )]
    fn of_agent(&mut self, cache: AgentCache) {
        let percent = cache.hit_ratio.filter(|ratio| (0.0..=1.0).contains(ratio));
        self.percent = self.percent.or_else(|| percent.map(|ratio| (ratio * 100.0) as u64));
        let now = Timestamp::now().as_second();
        self.expires = cache.expires_at.map(|at| (at as i64).saturating_sub(now));
        self.is_complete |= cache.misses == Some(0);
        let causes = cache.last_miss_cause.unwrap_or_default().causes;
        if self.miss.is_none() && !causes.is_empty() {
            let cause = causes.join(" and ").replace('_', " ");
            self.miss = Some(Miss { cause, usd: None, tokens: 0 });
        }
    }

    fn words(&self) -> String {
        let percent = self.percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent} %"));
        let mut parts = vec![format!("cache {percent}")];
        match &self.miss {
            Some(miss) => parts.push(format!("last miss: {}", miss.words())),
            None if self.is_complete => parts.push("no miss".to_owned()),
            None => {}
        }
        match self.expires {
            Some(seconds @ 1..) => parts.push(format!("expires {}:{:02}", seconds / 60, seconds % 60)),
            Some(_) => parts.push("expired".to_owned()),
            None => {}
        }
        parts.join(" · ")
    }
}

impl Miss {
    fn new(call: &CallVerdict) -> Option<Self> {
        use CacheVerdict as V;
        let is_miss = !matches!(call.verdict, V::Hit | V::ColdStart | V::Fork | V::Unknown);
        is_miss.then(|| Self {
            cause: call.verdict.word().replace('_', " "),
            usd: call.lost_usd,
            tokens: call.lost_tokens,
        })
    }

    fn words(&self) -> String {
        let cause = visible_line(&self.cause);
        match self.usd {
            Some(usd) if usd >= 0.01 => format!("{cause}, ${usd:.2}"),
            Some(usd) if usd > 0.0 => format!("{cause}, ${usd:.4}"),
            None if self.tokens > 0 => {
                format!("{cause}, {} tokens", grouped(usize::try_from(self.tokens).unwrap_or(usize::MAX)))
            }
            _ => cause,
        }
    }
}
