//! Traces a render byte by byte: the template or the `{{ … }}` that each byte comes from.
//!
//! minijinja writes a template's own text as slices of its source, so their addresses give their places. Inserted
//! values are recognised by a filter that wraps every expression ([`insertions`]) and records its number just before
//! the value is written. Neither changes a byte: builds with debug assertions render a second time without tracing, and
//! compare.

pub(super) mod copied_lines;
pub(super) mod last_lookup;
pub(super) mod spans;

use std::io;

use proem_core::limit::OUTPUT_BYTES_MAX;

use crate::jinja::edit::Insertion;
use crate::jinja::syntax::Site;
use last_lookup::Evaluation;

/// The filter around every expression: filters are found without a lookup of names.
pub(crate) const MARK: &str = "__proem_at";

/// The filter that runs before an expression is evaluated, to separate its lookups from those of conditions.
pub(crate) const BEGIN: &str = "__proem_from";

/// Returns the insertions that wrap the expressions of a template; their numbers start at `first`.
pub(crate) fn insertions(sites: &[Site], first: usize) -> Vec<Insertion> {
    let wrap = |(index, site): (usize, &Site)| {
        let number = first + index;
        // A bare name looks up no field, so nothing has to be separated from earlier lookups.
        let open =
            if site.is_bare { format!("{number}|{MARK}((") } else { format!("({number}|{BEGIN})|{MARK}((") };
        [
            Insertion { offset: site.start, rank: isize::MIN, text: open },
            Insertion { offset: site.end, rank: isize::MAX, text: "))".to_owned() },
        ]
    };
    sites.iter().enumerate().flat_map(wrap).collect()
}

/// A piece of output and its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) bytes: usize,
    pub(crate) from: From,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// A template's own text, by its address.
    Text { address: usize },
    /// The value of an expression.
    Site(Evaluation),
    /// Other output, such as that of a filter block.
    Elsewhere,
}

/// Receives the output.
pub(crate) struct Sink {
    pub(crate) text: Vec<u8>,
    pub(crate) pieces: Vec<Piece>,
    sources: Vec<(usize, usize)>,
}

impl Sink {
    /// Makes a sink with room for `bytes` and `pieces`. `sources` are the addresses of the templates' texts: first byte
    /// and byte after the last.
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
            // One value may be written in several parts.
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
