//! Calls over WebSocket: each request is a message that may continue an earlier response.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use proem::traffic::call::Call;
use proem::traffic::collect::live::{RequestMessage, ResponseMessage};
use proem::traffic::usage::UsageScanner;
use proem_core::limit::GATEWAY_RESPONSES_BYTES_MAX;
use proem_core::note::{Code, Note, Severity};

use super::websocket::Messages;
use crate::tap::{Begin, Direction};

/// The outcome of reading bytes.
pub(crate) struct Fed {
    /// The calls that end in them, with their routes.
    pub(crate) calls: Vec<(Call, String)>,
    /// True if the rest of the connection cannot be read.
    pub(crate) gave_up: bool,
}

/// The items of a conversation up to the end of a response.
type Items = Vec<Arc<str>>;

/// All connections, and the responses that requests may continue.
#[derive(Default)]
pub(crate) struct Sockets {
    open: HashMap<u64, Socket>,
    answered: VecDeque<(String, Items, usize)>,
    answered_bytes: usize,
}

struct Socket {
    begin: Begin,
    up: Messages,
    down: Messages,
    /// The request that is being answered.
    running: Option<Running>,
}

struct Running {
    call: Call,
    /// The input; `None` if the request continues a response that was not seen.
    items: Option<Items>,
    outputs: Items,
    scanner: UsageScanner,
}

impl Sockets {
    pub(crate) fn open(&mut self, id: u64, begin: &Begin) {
        let (up, down) = (Messages::default(), Messages::default());
        self.open.insert(id, Socket { begin: begin.clone(), up, down, running: None });
    }

    /// Forgets a connection; false if there is none.
    pub(crate) fn close(&mut self, id: u64) -> bool {
        self.open.remove(&id).is_some()
    }

    /// Reads bytes; `None` if the connection is not known.
    pub(crate) fn feed(&mut self, id: u64, direction: Direction, bytes: &[u8]) -> Option<Fed> {
        let mut socket = self.open.remove(&id)?;
        let (mut texts, mut calls) = (Vec::new(), Vec::new());
        let side = if direction == Direction::FromClient { &mut socket.up } else { &mut socket.down };
        let had_given_up = side.is_given_up();
        side.feed(bytes, &mut |text| texts.push(text.to_owned()));
        let gave_up = side.is_given_up() && !had_given_up;
        for text in texts {
            if direction == Direction::FromClient {
                self.begin(&mut socket, &text);
            } else if let Some(call) = self.answer(&mut socket, &text) {
                calls.push((call, socket.begin.route.clone()));
            }
        }
        self.open.insert(id, socket);
        Some(Fed { calls, gave_up })
    }

    fn begin(&self, socket: &mut Socket, text: &str) {
        let Some(request) = RequestMessage::read(text) else { return };
        let before = match &request.previous {
            None => Some(&[] as &[Arc<str>]),
            Some(id) => {
                self.answered.iter().find(|(known, _, _)| known == id).map(|(_, items, _)| items.as_slice())
            }
        };
        let mut call = socket.begin.call();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        call.at = now.and_then(|now| i64::try_from(now.as_millis()).ok());
        let items = before.map(|before| request.items(before));
        if let Some(items) = &items {
            request.complete(&mut call, items);
        } else {
            let message =
                "a request continues a response that did not pass here; it is counted, not compared";
            call.notes.push(Note::new(Code::IncompleteCall, Severity::Info, message.to_owned()));
        }
        socket.running = Some(Running { call, items, outputs: Vec::new(), scanner: UsageScanner::default() });
    }

    fn answer(&mut self, socket: &mut Socket, text: &str) -> Option<Call> {
        let running = socket.running.as_mut()?;
        match ResponseMessage::read(text) {
            ResponseMessage::Item(item) => running.outputs.push(item),
            ResponseMessage::End(id) => {
                running.scanner.event(text.as_bytes());
                let Running { mut call, items, outputs, scanner } = socket.running.take()?;
                let facts = scanner.finish();
                (call.usage, call.provider_reason) = (facts.usage, facts.reason);
                call.id = id.clone().or(facts.id).unwrap_or_default();
                call.model = call.model.or(facts.model);
                if let (Some(id), Some(mut items)) = (id, items) {
                    items.extend(outputs);
                    self.remember(id, items);
                }
                return Some(call);
            }
            ResponseMessage::Failed => socket.running = None,
            ResponseMessage::Other => {}
        }
        None
    }

    /// Keeps the items of a response. Items are shared between responses; the limit counts them as if they were not.
    fn remember(&mut self, id: String, items: Items) {
        let bytes: usize = items.iter().map(|item| item.len()).sum();
        self.answered_bytes += bytes;
        self.answered.push_back((id, items, bytes));
        while self.answered_bytes > GATEWAY_RESPONSES_BYTES_MAX && self.answered.len() > 1 {
            if let Some((_, _, bytes)) = self.answered.pop_front() {
                self.answered_bytes -= bytes;
            }
        }
    }
}
