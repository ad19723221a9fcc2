//! Transcripts: one file per session, and one per sub-agent. Newer versions record whole requests in them.

use std::path::Path;

use proem_core::limit::COLLECT_HINTS_MAX;
use proem_core::note::Code;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::Sink;
use super::super::files::{Line, Lines};
use super::super::identity::read_body;
use super::super::json::{body, moment};
use super::super::merge::BodyOrigin;
use super::super::notebook::Problem;
use super::super::rules::CollectRules;
use super::rebuild::{Missing, Parts, RequestLine};
use super::{AGENT, NO_ANSWER, NO_BODY, attachments};
use crate::inspect::traffic::call::{Call, CallingAgent, OwnerHint, Purpose, Wire};
use crate::inspect::traffic::usage::ScannedAnswer;

const OTHER_DIGEST: Problem = Problem::warning(
    Code::IncompleteCall,
    "a rebuilt request differs from the digest in its line, and is left out",
);
const OVER_SESSION: Problem =
    Problem::warning(Code::OverLimit, "the texts of the session exceed `collect_session_bytes_max`");
const UNKNOWN_SHAPE: Problem =
    Problem::warning(Code::SkippedRecord, "a line about a request has an unknown shape");

/// The fields of all kinds of lines that are of use.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TranscriptLine<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    subtype: Option<String>,
    session_id: Option<String>,
    agent_id: Option<String>,
    timestamp: Option<String>,
    version: Option<String>,
    cwd: Option<String>,
    hash: Option<String>,
    shape_hash: Option<String>,
    request_id: Option<String>,
    request_ref: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    shape: Option<&'a RawValue>,
    #[serde(borrow)]
    attachment: Option<&'a RawValue>,
    #[serde(borrow)]
    rendered: Option<&'a RawValue>,
}

/// The message of an `assistant` line.
#[derive(Debug, Deserialize)]
struct Answer {
    id: Option<String>,
    content: Option<Vec<Box<RawValue>>>,
}

/// A request whose answer has not come yet.
struct Pending {
    id: String,
    call: Call,
}

/// The state of one file.
#[derive(Default)]
struct Session {
    parts: Parts,
    cwd: Option<String>,
    version: Option<String>,
    hints: Vec<OwnerHint>,
    pending: Vec<Pending>,
    /// The call whose answer is being read: its lines all have the same usage, which counts once.
    open: Option<(Call, usize)>,
}

/// Requests that wait for an answer: agents send one at a time, so that more of them have failed.
const PENDING_MAX: usize = 16;

pub(super) fn read(file: &Path, sink: &mut Sink<'_>) {
    let Some(mut lines) = Lines::open(file, &mut sink.notes) else { return };
    sink.begin();
    let mut session = Session::default();
    while let Some(line) = lines.next(&mut sink.notes) {
        let Some(parsed) = line.parse::<TranscriptLine<'_>>(file, &mut sink.notes) else { continue };
        session.add(&parsed, &line, file, sink);
        if session.parts.is_over() {
            sink.note(OVER_SESSION, file, Some(line.number));
        }
    }
    session.close(file, sink);
    for _ in &session.pending {
        sink.note(NO_ANSWER, file, None);
    }
}

impl Session {
    fn add(&mut self, line: &TranscriptLine<'_>, text: &Line<'_>, file: &Path, sink: &mut Sink<'_>) {
        self.cwd = line.cwd.clone().or(self.cwd.take());
        self.version = line.version.clone().or(self.version.take());
        let number = Some(text.number);
        match (line.kind.as_str(), line.message) {
            ("user", Some(message)) => self.parts.add_user(message),
            ("assistant", Some(message)) => self.add_answer(line, message, (file, text.number), sink),
            ("api-request-blob", Some(message)) if line.hash.is_some() => {
                self.parts.add_message(line.hash.clone().unwrap_or_default(), message);
            }
            ("api-request-shape", _) => {
                let is_read = line
                    .shape
                    .zip(line.shape_hash.clone())
                    .is_some_and(|(shape, hash)| self.parts.add_shape(hash, shape));
                if !is_read {
                    sink.note(UNKNOWN_SHAPE, file, number);
                }
            }
            ("api-request", _) => match serde_json::from_str::<RequestLine>(text.text) {
                Ok(request) => self.add_request(line, &request, (file, text.number), sink),
                Err(_) => sink.note(UNKNOWN_SHAPE, file, number),
            },
            ("api-request-blob", _) => sink.note(UNKNOWN_SHAPE, file, number),
            ("attachment", _) => self.add_attachment(line),
            ("system", _) if line.subtype.as_deref() == Some("compact_boundary") => self.parts.clear(),
            _ => {}
        }
    }

    fn add_attachment(&mut self, line: &TranscriptLine<'_>) {
        let value = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
        let Some(attachment) = line.attachment.and_then(value) else { return };
        for hint in attachments::hints(&attachment, line.rendered.and_then(value).as_ref()) {
            if self.hints.len() < COLLECT_HINTS_MAX && !self.hints.contains(&hint) {
                self.hints.push(hint);
            }
        }
    }

    /// Returns a call of this session.
    fn new_call(&self, line: &TranscriptLine<'_>) -> Call {
        let is_sub_agent = line.agent_id.is_some();
        Call {
            at: line.timestamp.as_deref().and_then(moment),
            agent: Some(CallingAgent { name: AGENT.to_owned(), version: self.version.clone() }),
            conversation: line.session_id.clone(),
            thread: line.agent_id.clone(),
            parent: line.session_id.clone().filter(|_| is_sub_agent),
            purpose: if is_sub_agent { Purpose::SubAgent } else { Purpose::Main },
            wire: Wire::Anthropic,
            cwd: self.cwd.clone(),
            hints: self.hints.clone(),
            ..Call::default()
        }
    }

    fn add_request(
        &mut self,
        line: &TranscriptLine<'_>,
        request: &RequestLine,
        (file, number): (&Path, usize),
        sink: &mut Sink<'_>,
    ) {
        let mut call = self.new_call(line);
        if let Some(source) = &request.query_source {
            call.purpose = CollectRules::built_in().purpose(AGENT, source);
        }
        if let Some(params) = &request.params
            && let Ok(params) = serde_json::from_str::<Value>(params.get())
        {
            read_body(&mut call, &params);
        }
        match self.parts.rebuild(request) {
            Ok(text) => call.body = body(text),
            Err(Missing::Part) => sink.note(NO_BODY, file, Some(number)),
            Err(Missing::Digest) => sink.note(OTHER_DIGEST, file, Some(number)),
        }
        if self.pending.len() >= PENDING_MAX {
            self.pending.remove(0);
            sink.note(NO_ANSWER, file, Some(number));
        }
        self.pending.push(Pending { id: request.id.clone(), call });
    }

    fn add_answer(
        &mut self,
        line: &TranscriptLine<'_>,
        message: &RawValue,
        (file, number): (&Path, usize),
        sink: &mut Sink<'_>,
    ) {
        let Ok(answer) = serde_json::from_str::<Answer>(message.get()) else {
            return sink.note(UNKNOWN_SHAPE, file, Some(number));
        };
        if let (Some(id), Some(blocks)) = (&answer.id, answer.content) {
            self.parts.add_answer(id, blocks);
        }
        // Messages that the agent makes itself, such as those about errors, have no request.
        let Some(id) = line.request_id.clone() else { return };
        if self.open.as_ref().is_none_or(|(open, _)| open.id != id) {
            self.close(file, sink);
            let pending = line.request_ref.as_ref().and_then(|wanted| {
                let place = self.pending.iter().position(|one| one.id == *wanted)?;
                Some(self.pending.remove(place).call)
            });
            let call = pending.unwrap_or_else(|| self.new_call(line));
            self.open = Some((Call { id, ..call }, number));
        }
        if let Some((call, _)) = &mut self.open
            && let Ok(value) = serde_json::from_str::<Value>(message.get())
        {
            let facts = ScannedAnswer::from_answer(&value);
            call.usage = facts.usage;
            call.model = call.model.take().or(facts.model);
            call.provider_reason = facts.reason.or(call.provider_reason.take());
        }
    }

    /// Hands on the call whose answer was read.
    fn close(&mut self, file: &Path, sink: &mut Sink<'_>) {
        if let Some((call, number)) = self.open.take() {
            sink.call(call, BodyOrigin::Rebuilt, file, Some(number));
        }
    }
}
