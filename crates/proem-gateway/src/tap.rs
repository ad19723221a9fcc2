//! The copy of what passes, for the analysis: a queue that is bounded by bytes.
//!
//! Nothing here waits. What has no room in the queue is dropped, and the call is counted as not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use proem::traffic::call::{CallHeaders, Wire};
use proem_core::limit::{GATEWAY_BODY_BYTES_MAX, GATEWAY_QUEUE_BYTES_MAX};

use crate::head::ResponseHead;

/// Bytes of a response that are collected before they are handed over.
const BATCH_BYTES: usize = 16 << 10;

/// Bytes that are counted for a call besides its texts.
const CALL_BYTES: usize = 2 << 10;

/// The facts of a call that are known at its beginning.
#[derive(Debug, Clone, Default)]
pub(crate) struct Begin {
    /// The time in milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) route: String,
    pub(crate) host: String,
    /// A digest of the account.
    pub(crate) account: Option<String>,
    pub(crate) path: String,
    pub(crate) wire: Wire,
    pub(crate) headers: CallHeaders,
    /// The compression of the request.
    pub(crate) encoding: Option<String>,
}

/// The facts of a response that are known at its beginning.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerHead {
    pub(crate) status: u16,
    pub(crate) encoding: Option<String>,
    pub(crate) is_stream: bool,
    /// The provider's name of the request.
    pub(crate) request_id: Option<String>,
}

/// The side from which bytes come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    FromClient,
    FromProvider,
}

/// One message to the analysis.
#[derive(Debug)]
pub(crate) enum Event {
    Begin(u64, Box<Begin>, Held),
    Request(u64, Held),
    Head(u64, Box<AnswerHead>),
    Bytes(u64, Direction, Held),
    /// The end: true if the response was complete, and if something is missing in the copy.
    End {
        id: u64,
        is_complete: bool,
        is_lost: bool,
    },
    /// Everything before it has been read.
    Flush(Sender<()>),
}

/// The bytes that the queue and the analysis hold.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: AtomicUsize,
}

impl Budget {
    fn reserve(&self, bytes: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let has_room = before.saturating_add(bytes) <= GATEWAY_QUEUE_BYTES_MAX;
        if !has_room {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        has_room
    }
}

/// Bytes that count against the budget until they are dropped.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    reserved: usize,
    budget: Arc<Budget>,
}

impl Held {
    const fn new(budget: Arc<Budget>) -> Self {
        Self { bytes: Vec::new(), reserved: 0, budget }
    }

    fn push(&mut self, bytes: &[u8]) -> bool {
        let has_room = self.budget.reserve(bytes.len());
        if has_room {
            self.reserved += bytes.len();
            self.bytes.extend_from_slice(bytes);
        }
        has_room
    }

    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(Arc::clone(&self.budget)))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.reserved, Ordering::Relaxed);
    }
}

/// Counters of a gateway, for its summary.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests that were passed on.
    pub requests: AtomicU64,
    /// Requests that are calls to a model.
    pub calls: AtomicU64,
    /// Calls that a provider refused.
    pub failed: AtomicU64,
    /// Calls of which the analysis has no complete copy.
    pub unread: AtomicU64,
    /// Requests whose provider could not be reached.
    pub unreachable: AtomicU64,
}

/// Hands copies to the analysis.
#[derive(Debug, Clone)]
pub(crate) struct Observer {
    sender: Sender<Event>,
    budget: Arc<Budget>,
    next: Arc<AtomicU64>,
    pub(crate) counters: Arc<Counters>,
}

impl Observer {
    pub(crate) fn new(sender: Sender<Event>, counters: Arc<Counters>) -> Self {
        Self { sender, budget: Arc::default(), next: Arc::default(), counters }
    }

    /// Begins a call; `None` if there is no room for it.
    pub(crate) fn begin(&self, begin: Begin) -> Option<Tap> {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        let mut held = Held::new(Arc::clone(&self.budget));
        if !self.budget.reserve(CALL_BYTES) {
            self.counters.unread.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        held.reserved = CALL_BYTES;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        // Without an analysis the traffic goes on.
        self.sender.send(Event::Begin(id, Box::new(begin), held)).ok()?;
        let link = TapLink { id, observer: self.clone(), is_lost: Arc::default() };
        let pending = Held::new(Arc::clone(&self.budget));
        Some(Tap { link, pending, is_complete: false, is_upgraded: false })
    }

    /// Waits until everything that was sent so far has been read.
    pub(crate) fn flush(&self) {
        let (sender, receiver) = std::sync::mpsc::channel();
        if self.sender.send(Event::Flush(sender)).is_ok() {
            let _ = receiver.recv_timeout(std::time::Duration::from_secs(10));
        }
    }
}

#[derive(Debug, Clone)]
struct TapLink {
    id: u64,
    observer: Observer,
    is_lost: Arc<AtomicBool>,
}

impl TapLink {
    fn push(&self, pending: &mut Held, bytes: &[u8]) {
        let is_lost = self.is_lost.load(Ordering::Relaxed);
        if is_lost || pending.bytes.len() + bytes.len() > GATEWAY_BODY_BYTES_MAX || !pending.push(bytes) {
            self.is_lost.store(true, Ordering::Relaxed);
            drop(pending.take());
        }
    }

    fn send(&self, event: Event) {
        // The analysis may have failed; the traffic goes on.
        let _ = self.observer.sender.send(event);
    }
}

/// The copy of one call.
#[derive(Debug)]
pub(crate) struct Tap {
    link: TapLink,
    pending: Held,
    is_complete: bool,
    is_upgraded: bool,
}

impl Tap {
    /// Returns the part that takes the body of the request.
    pub(crate) fn request(&self) -> RequestTap {
        RequestTap { link: self.link.clone(), pending: Held::new(Arc::clone(&self.link.observer.budget)) }
    }

    /// Takes the head of the response.
    pub(crate) fn head(&mut self, head: &ResponseHead) {
        let text = |name: &str| head.head.text(name).map(str::to_ascii_lowercase);
        let ids = ["request-id", "x-request-id"].into_iter().find_map(|name| head.head.text(name));
        let answer = AnswerHead {
            status: head.status,
            encoding: text("content-encoding").filter(|coding| coding != "identity"),
            is_stream: text("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")),
            request_id: ids.map(str::to_owned),
        };
        self.link.send(Event::Head(self.link.id, Box::new(answer)));
    }

    /// Takes bytes.
    pub(crate) fn push(&mut self, direction: Direction, bytes: &[u8]) {
        self.link.push(&mut self.pending, bytes);
        if self.pending.bytes.len() >= BATCH_BYTES {
            self.hand_over(direction);
        }
    }

    fn hand_over(&mut self, direction: Direction) {
        if !self.pending.bytes.is_empty() {
            let held = self.pending.take();
            self.link.send(Event::Bytes(self.link.id, direction, held));
        }
    }

    /// Takes the end of a complete response.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Returns the parts that take both directions of another protocol.
    pub(crate) fn upgraded(&mut self) -> (TunnelTap, TunnelTap) {
        self.is_upgraded = true;
        let tap = || TunnelTap {
            link: self.link.clone(),
            pending: Held::new(Arc::clone(&self.link.observer.budget)),
        };
        (tap(), tap())
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.hand_over(Direction::FromProvider);
        let is_lost = self.link.is_lost.load(Ordering::Relaxed);
        if is_lost {
            self.link.observer.counters.unread.fetch_add(1, Ordering::Relaxed);
        }
        let (id, is_complete) = (self.link.id, self.is_complete || self.is_upgraded);
        self.link.send(Event::End { id, is_complete, is_lost });
    }
}

/// The copy of a request's body.
#[derive(Debug)]
pub(crate) struct RequestTap {
    link: TapLink,
    pending: Held,
}

impl RequestTap {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.link.push(&mut self.pending, bytes);
    }

    /// Hands over the complete body.
    pub(crate) fn end(&mut self) {
        let held = self.pending.take();
        self.link.send(Event::Request(self.link.id, held));
    }
}

/// The copy of one direction of another protocol.
#[derive(Debug)]
pub(crate) struct TunnelTap {
    link: TapLink,
    pending: Held,
}

impl TunnelTap {
    /// Takes bytes, and hands them over at once: messages are small and rare.
    pub(crate) fn push(&mut self, direction: Direction, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.link.push(&mut self.pending, bytes);
        if !self.pending.bytes.is_empty() {
            let held = self.pending.take();
            self.link.send(Event::Bytes(self.link.id, direction, held));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Sends a request of `mib` MiB whose copy waits in the queue.
    fn request(observer: &Observer, mib: usize) {
        let tap = observer.begin(Begin::default()).expect("there is room for a call");
        let mut body = tap.request();
        let piece = vec![b'x'; 1 << 20];
        (0..mib).for_each(|_| body.push(&piece));
        body.end();
    }

    #[test]
    fn what_has_no_room_is_dropped_and_counted() {
        let (sender, events) = channel();
        let observer = Observer::new(sender, Arc::default());
        let unread = || observer.counters.unread.load(Ordering::Relaxed);
        request(&observer, 60);
        request(&observer, 60);
        assert_eq!(unread(), 0, "control: two of them have room");
        request(&observer, 60);
        assert_eq!(unread(), 1);
        assert!(observer.budget.used.load(Ordering::Relaxed) <= GATEWAY_QUEUE_BYTES_MAX);
        // What has been read makes room.
        let lost =
            events.try_iter().filter(|event| matches!(event, Event::End { is_lost: true, .. })).count();
        assert_eq!((lost, observer.budget.used.load(Ordering::Relaxed)), (1, 0));
        request(&observer, 60);
        request(&observer, 65);
        assert_eq!(unread(), 2, "a body over the limit is not kept");
    }
}
