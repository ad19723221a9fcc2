//! The analysis: it reads copies of calls on a thread of its own, judges them, and hands the verdicts on.
//!
//! Whatever fails here, the traffic goes on. A call that cannot be read is counted.

mod decode;
mod sockets;
mod websocket;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};

use proem::models::Models;
use proem::traffic::call::{Call, Route};
use proem::traffic::collect::live::{add_body, identify};
use proem::traffic::usage::UsageScanner;
use proem::traffic::{Analyser, CallVerdict};

use self::decode::decoded;
use self::sockets::Sockets;
use crate::tap::{AnswerHead, Begin, Counters, Direction, Event, Held, Observer};

/// A call with its verdict.
#[derive(Debug, Clone)]
pub struct ObservedCall {
    /// The call, with the body that was sent.
    pub call: Call,
    /// The verdict.
    pub verdict: CallVerdict,
    /// The route on which it came.
    pub route: String,
}

/// Judges a call. It runs on the thread of the analysis.
pub type CallJudge = Box<dyn FnMut(Call) -> CallVerdict + Send>;

/// The receiver of judged calls. It runs on the thread of the analysis.
pub type CallReceiver = Box<dyn FnMut(ObservedCall) + Send>;

/// A running analysis. It ends when the last gateway that uses it is dropped.
#[derive(Debug)]
pub struct Analysis {
    observer: Observer,
}

impl Analysis {
    /// Returns a judge that keeps what it knows in memory.
    #[must_use]
    pub fn in_memory(models: Models) -> CallJudge {
        let mut analyser = Analyser::new(models);
        Box::new(move |call| analyser.take(call))
    }

    /// Starts the thread.
    pub fn start(judge: CallJudge, receiver: CallReceiver) -> std::io::Result<Self> {
        let (sender, events) = channel();
        let counters = Arc::new(Counters::default());
        let observer = Observer::new(sender, Arc::clone(&counters));
        let worker = Worker { judge, receiver, counters, open: HashMap::new(), sockets: Sockets::default() };
        std::thread::Builder::new().name("analysis".to_owned()).spawn(move || worker.run(&events))?;
        Ok(Self { observer })
    }

    /// Waits until every call that ended so far was handed on.
    pub fn flush(&self) {
        self.observer.flush();
    }

    pub(crate) fn observer(&self) -> Observer {
        self.observer.clone()
    }

    pub(crate) fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.observer.counters)
    }
}

/// A call that has not ended.
struct Open {
    begin: Begin,
    /// Counts the call against the budget.
    _held: Held,
    body: Option<Held>,
    answer: Option<AnswerHead>,
    scanner: UsageScanner,
    /// The answer, if it can only be read as a whole.
    whole: Vec<Held>,
}

struct Worker {
    judge: CallJudge,
    receiver: CallReceiver,
    counters: Arc<Counters>,
    open: HashMap<u64, Open>,
    sockets: Sockets,
}

impl Worker {
    fn run(mut self, events: &Receiver<Event>) {
        while let Ok(event) = events.recv() {
            if catch_unwind(AssertUnwindSafe(|| self.take(event))).is_err() {
                self.counters.unread.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Begin(id, begin, held) => {
                let scanner = UsageScanner::default();
                let open =
                    Open { begin: *begin, _held: held, body: None, answer: None, scanner, whole: Vec::new() };
                self.open.insert(id, open);
            }
            Event::Request(id, body) => {
                if let Some(open) = self.open.get_mut(&id) {
                    open.body = Some(body);
                }
            }
            Event::Head(id, head) => {
                if let Some(open) = self.open.get_mut(&id) {
                    if head.status == 101 {
                        self.sockets.open(id, &open.begin);
                    }
                    open.answer = Some(*head);
                }
            }
            Event::Bytes(id, direction, held) => self.bytes(id, direction, held),
            Event::End { id, is_complete, is_lost } => self.end(id, is_complete, is_lost),
            Event::Flush(done) => {
                // The one who waits may have given up.
                let _ = done.send(());
            }
        }
    }

    fn bytes(&mut self, id: u64, direction: Direction, held: Held) {
        if let Some(fed) = self.sockets.feed(id, direction, &held.bytes) {
            if fed.gave_up {
                self.counters.unread.fetch_add(1, Ordering::Relaxed);
            }
            for (call, route) in fed.calls {
                self.judge(call, route);
            }
            return;
        }
        let Some(open) = self.open.get_mut(&id) else { return };
        let is_stream = open.answer.as_ref().is_some_and(|head| head.is_stream && head.encoding.is_none());
        if is_stream {
            open.scanner.feed(&held.bytes);
        } else {
            open.whole.push(held);
        }
    }

    fn end(&mut self, id: u64, _is_complete: bool, is_lost: bool) {
        let Some(open) = self.open.remove(&id) else { return };
        if self.sockets.close(id) {
            return;
        }
        let Some(head) = open.answer.as_ref() else { return };
        if !(200..300).contains(&head.status) {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if is_lost {
            return;
        }
        let route = open.begin.route.clone();
        match open.call() {
            Some(call) => self.judge(call, route),
            None => {
                self.counters.unread.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn judge(&mut self, call: Call, route: String) {
        let verdict = (self.judge)(call.clone());
        (self.receiver)(ObservedCall { call, verdict, route });
    }
}

impl Begin {
    /// Returns a call with what the head says.
    pub(crate) fn call(&self) -> Call {
        let mut call = Call {
            at: Some(self.at),
            wire: self.wire,
            route: Route { host: Some(self.host.clone()), region: None, account: self.account.clone() },
            ..Call::default()
        };
        identify(&mut call, &self.headers);
        call
    }
}

impl Open {
    /// Builds the call from its parts; `None` if they cannot be read.
    fn call(mut self) -> Option<Call> {
        let head = self.answer.take()?;
        if !self.whole.is_empty() {
            let mut whole = Vec::new();
            for held in std::mem::take(&mut self.whole) {
                whole.extend_from_slice(&held.bytes);
            }
            self.scanner.feed(&decoded(head.encoding.as_deref(), whole)?);
        }
        let facts = self.scanner.finish();
        let mut call = self.begin.call();
        (call.usage, call.provider_reason) = (facts.usage, facts.reason);
        call.id = head.request_id.or(facts.id).unwrap_or_else(|| format!("call-{:x}", self.begin.at));
        let mut body = self.body.take()?;
        let bytes = decoded(self.begin.encoding.as_deref(), std::mem::take(&mut body.bytes))?;
        let body = String::from_utf8(bytes).ok()?;
        if !add_body(&mut call, &self.begin.path, Arc::from(body)) {
            return None;
        }
        call.model = call.model.or(facts.model);
        Some(call)
    }
}
