//! Follows a render byte by byte: what comes from which template, and what from which `{{ … }}`.
//!
//! minijinja writes a template's own text as slices of the very source that it was given, so their
//! address tells where they stand. Inserted values are told apart by a filter that wraps every
//! expression ([`insertions`]) and leaves its number behind just before the value is written. Neither changes a
//! byte: builds with debug assertions render a second time without, and compare.

pub(super) mod copied_lines;
pub(super) mod last_lookup;
pub(super) mod spans;

use std::io;

use proem_core::limit::OUTPUT_BYTES_MAX;

use crate::jinja::edit::Insertion;
use crate::jinja::syntax::Site;
use last_lookup::Evaluated;

/// The filter that every expression is put into: filters are found without asking for names.
pub(crate) const MARK: &str = "__proem_at";

/// The filter that is called before an expression is evaluated: what conditions looked up is not part of it.
pub(crate) const BEGIN: &str = "__proem_from";

/// The insertions that wrap the expressions of a template; numbers count on from `first`.
pub(crate) fn insertions(sites: &[Site], first: usize) -> Vec<Insertion> {
    let wrap = |(index, site): (usize, &Site)| {
        let number = first + index;
        // A bare name looks up no field that would have to be told apart from those looked up before it.
        let open =
            if site.is_bare { format!("{number}|{MARK}((") } else { format!("({number}|{BEGIN})|{MARK}((") };
        [
            Insertion { offset: site.start, rank: isize::MIN, text: open },
            Insertion { offset: site.end, rank: isize::MAX, text: "))".to_owned() },
        ]
    };
    sites.iter().enumerate().flat_map(wrap).collect()
}

/// A piece of output and what wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) bytes: usize,
    pub(crate) from: From,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// A template's own text: which one, and the address.
    Text { address: usize },
    /// The value of an expression.
    Site(Evaluated),
    /// Something in between, such as a filter block.
    Elsewhere,
}

/// Receives the output.
pub(crate) struct Sink {
    pub(crate) text: Vec<u8>,
    pub(crate) pieces: Vec<Piece>,
    sources: Vec<(usize, usize)>,
}

impl Sink {
    /// `sources` are the addresses of the templates' texts: first byte and byte behind the last. There is room for so many
    /// bytes and pieces to begin with.
    pub(crate) fn new(sources: Vec<(usize, usize)>, (bytes, pieces): (usize, usize)) -> Self {
        Self { text: Vec::with_capacity(bytes), pieces: Vec::with_capacity(pieces), sources }
    }

    fn origin(&self, bytes: &[u8]) -> From {
        if let Some(site) = last_lookup::evaluated() {
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
