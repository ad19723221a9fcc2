//! Follows a render byte by byte: what comes from which template, and what from which `{{ … }}`.
//!
//! minijinja writes a template's own text as slices of the very source that it was given, so their
//! address tells where they stand. Inserted values are told apart by a filter that wraps every
//! expression ([`insertions`]) and leaves its number behind just before the value is written. Neither changes a
//! byte: builds with debug assertions render a second time without, and compare.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proem_core::limit::OUTPUT_BYTES_MAX;

use super::edit::Insertion;
use super::items::Touch;
use super::syntax::Site;

/// The filter that every expression is put into: filters are found without asking for names.
pub(super) const MARK: &str = "__proem_at";

/// The filter that is called before an expression is evaluated: what conditions looked up is not part of it.
pub(super) const BEGIN: &str = "__proem_from";

/// The insertions that wrap the expressions of a template; numbers count on from `first`.
pub(super) fn insertions(sites: &[Site], first: usize) -> Vec<Insertion> {
    let wrap = |(index, site): (usize, &Site)| {
        let open = format!("({}|{BEGIN})|{MARK}((", first + index);
        [
            Insertion { offset: site.start, rank: isize::MIN, text: open },
            Insertion { offset: site.end, rank: isize::MAX, text: "))".to_owned() },
        ]
    };
    sites.iter().enumerate().flat_map(wrap).collect()
}

/// The number of the expression whose value comes next, shared by the filter that is called, the
/// formatter that writes and the sink that receives.
#[derive(Debug, Clone, Default)]
pub(super) struct Mark {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    called: Option<Evaluated>,
    writing: Option<Evaluated>,
    /// The field that was looked up since the last expression, if all were of one item.
    touched: Touched,
    /// What was looked up before the expression that is evaluated now, by conditions and by `set`.
    earlier: Touched,
}

#[derive(Debug, Clone, Copy, Default)]
enum Touched {
    #[default]
    Nothing,
    One(Touch),
    Several,
}

/// An expression, and the field of an item that it looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Evaluated {
    pub(super) number: usize,
    pub(super) touch: Option<Touch>,
}

impl Mark {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins anew, for another render.
    pub(super) fn reset(&self) {
        *self.seen() = Seen::default();
    }

    /// A field of an item is looked up.
    pub(super) fn touch(&self, touch: Touch) {
        let mut seen = self.seen();
        seen.touched = match seen.touched {
            Touched::Nothing => Touched::One(touch),
            Touched::One(last) if (last.list, last.item) == (touch.list, touch.item) => Touched::One(touch),
            Touched::One(_) | Touched::Several => Touched::Several,
        };
    }

    /// A wrapped expression is about to be evaluated.
    pub(super) fn start(&self) {
        let mut seen = self.seen();
        seen.earlier = std::mem::take(&mut seen.touched);
    }

    /// The wrapped expression has been evaluated. One that looked nothing up itself has what was looked up before.
    pub(super) fn call(&self, number: usize) {
        let mut seen = self.seen();
        let (own, earlier) = (std::mem::take(&mut seen.touched), std::mem::take(&mut seen.earlier));
        let touched = if matches!(own, Touched::Nothing) { earlier } else { own };
        let touch = match touched {
            Touched::One(touch) => Some(touch),
            Touched::Nothing | Touched::Several => None,
        };
        seen.called = Some(Evaluated { number, touch });
    }

    /// A value is about to be written. One that no expression announced belongs to none.
    pub(super) fn begin(&self) {
        let mut seen = self.seen();
        seen.writing = seen.called.take();
    }

    /// The value is written.
    pub(super) fn end(&self) {
        self.seen().writing = None;
    }

    fn evaluated(&self) -> Option<Evaluated> {
        self.seen().writing
    }
}

/// A piece of output and what wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: usize,
    pub(super) from: From,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// A template's own text: which one, and the address.
    Text { address: usize },
    /// The value of an expression.
    Site(Evaluated),
    /// Something in between, such as a filter block.
    Elsewhere,
}

/// Receives the output.
pub(super) struct Sink {
    pub(super) text: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
    sources: Vec<(usize, usize)>,
    mark: Mark,
}

impl Sink {
    /// `sources` are the addresses of the templates' texts: first byte and byte behind the last.
    pub(super) const fn new(sources: Vec<(usize, usize)>, mark: Mark) -> Self {
        Self { text: Vec::new(), pieces: Vec::new(), sources, mark }
    }

    fn origin(&self, bytes: &[u8]) -> From {
        if let Some(site) = self.mark.evaluated() {
            return From::Site(site);
        }
        let address = bytes.as_ptr().addr();
        let is_source = self.sources.iter().any(|(start, end)| (*start..*end).contains(&address));
        if is_source { From::Text { address } } else { From::Elsewhere }
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.text.len() + bytes.len() > OUTPUT_BYTES_MAX {
            return Err(io::Error::other("the output is too large"));
        }
        let from = self.origin(bytes);
        match self.pieces.last_mut() {
            // One value may be written in several goes.
            Some(last) if last.from == from && matches!(from, From::Site(_) | From::Elsewhere) => {
                last.bytes += bytes.len();
            }
            _ => self.pieces.push(Piece { bytes: bytes.len(), from }),
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
