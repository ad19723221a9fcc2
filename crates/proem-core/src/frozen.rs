//! A prompt that can no longer change.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use crate::carrier::Carrier;
use crate::digest::Digest;
use crate::draft::{Draft, Section};
use crate::file_outcome::FileOutcome;
use crate::note::{Code, Note, Severity};
use crate::profile::Part;
use crate::rendered::{Rendered, Span};
use crate::source::Source;
use crate::stability::Stability;

/// A prompt with fixed bytes.
///
/// The fields are private and no method takes `&mut self`: the frozen bytes are the bytes that are stored, sent and
/// compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frozen {
    profile: String,
    body: Body,
    digest: Digest,
    notes: Vec<Note>,
    considered: Vec<FileOutcome>,
}

/// The part of a prompt that belongs to one turn and follows everything cached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suffix {
    boundary: Option<Section>,
    sections: Vec<Section>,
}

/// Text by carrier, with the sections and spans that make it up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    carriers: BTreeMap<Carrier, Arc<Rendered>>,
    sections: Vec<PlacedSection>,
}

/// A section at its place in a carrier's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedSection {
    /// The section's name in the profile.
    pub id: String,
    /// The carrier.
    pub carrier: Carrier,
    /// Its bytes in the carrier's text.
    pub bytes: Range<usize>,
    /// The stability of its least stable byte.
    pub stability: Stability,
    /// The source of its content as a whole.
    pub source: Source,
    /// The most frequent change of a value that needs no note.
    pub accepts: Stability,
}

impl Body {
    /// Iterates over the values that change more often than a frozen prompt should: the first of each source.
    pub fn volatile(&self) -> impl Iterator<Item = (Carrier, &Span)> {
        self.carriers.iter().flat_map(|(carrier, rendered)| {
            let mut seen: Vec<&Source> = Vec::new();
            // The section of a span is looked up only for these few spans.
            let spans = rendered.spans().iter().filter(|span| span.stability > Stability::Session);
            let first =
                spans.filter(|span| span.stability > self.accepted(*carrier, span)).filter(move |span| {
                    let is_first = !seen.iter().any(|source| source.is_same(&span.source));
                    seen.extend(is_first.then_some(&span.source));
                    is_first
                });
            first.map(|span| (*carrier, span))
        })
    }

    fn add(&mut self, section: Section) {
        let is_empty = section.rendered.is_empty();
        let text = Arc::make_mut(self.carriers.entry(section.carrier).or_default());
        let start = text.len();
        let stability = section.rendered.stability();
        text.append(section.rendered);
        if is_empty {
            return;
        }
        self.sections.push(PlacedSection {
            id: section.id,
            carrier: section.carrier,
            bytes: start..text.len(),
            stability,
            source: section.source,
            accepts: section.accepts,
        });
    }

    /// Returns the stability that the section of a span accepts.
    fn accepted(&self, carrier: Carrier, span: &Span) -> Stability {
        let holds = |section: &&PlacedSection| {
            section.carrier == carrier
                && section.bytes.start <= span.bytes.start
                && span.bytes.end <= section.bytes.end
        };
        self.sections.iter().find(holds).map_or(Stability::Release, |section| section.accepts)
    }

    /// Iterates over the carriers that have text, in the order in which a provider reads them.
    pub fn carriers(&self) -> impl Iterator<Item = (Carrier, &str)> {
        self.filled().map(|(carrier, rendered)| (carrier, rendered.text()))
    }

    /// Skips carriers without text: all of their values may be empty.
    fn filled(&self) -> impl Iterator<Item = (Carrier, &Rendered)> {
        let all = self.carriers.iter().map(|(carrier, rendered)| (*carrier, rendered.as_ref()));
        all.filter(|(_, rendered)| !rendered.is_empty())
    }

    /// Returns the sections that have text, in order.
    #[must_use]
    pub fn sections(&self) -> &[PlacedSection] {
        &self.sections
    }

    /// Returns the spans of a carrier's text.
    #[must_use]
    pub fn spans(&self, carrier: Carrier) -> &[Span] {
        self.carriers.get(&carrier).map_or(&[], |rendered| rendered.spans())
    }

    /// Returns the text of a carrier; `None` if it has none.
    #[must_use]
    pub fn text(&self, carrier: Carrier) -> Option<&str> {
        self.carriers.get(&carrier).map(|rendered| rendered.text()).filter(|text| !text.is_empty())
    }
}

/// The parts of a frozen prompt, as a store keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// The profile that built it.
    pub profile: String,
    /// The text of each carrier.
    pub carriers: BTreeMap<Carrier, Arc<Rendered>>,
    /// The sections that have text, in order.
    pub sections: Vec<PlacedSection>,
    /// Findings about the prompt.
    pub notes: Vec<Note>,
    /// The files that were considered.
    pub considered: Vec<FileOutcome>,
}

impl Frozen {
    /// Returns the parts of a frozen prompt.
    #[must_use]
    pub fn pieces(&self) -> Pieces {
        Pieces {
            profile: self.profile.clone(),
            carriers: self.body.carriers.clone(),
            sections: self.body.sections.clone(),
            notes: self.notes.clone(),
            considered: self.considered.clone(),
        }
    }

    /// Restores a frozen prompt from its parts; `None` if a section lies outside its carrier.
    ///
    /// A caller that knows the digest of the system carrier's text passes it; otherwise it is computed here.
    #[must_use]
    pub fn restore(pieces: Pieces, digest: Option<Digest>) -> Option<Self> {
        let Pieces { profile, carriers, sections, notes, considered } = pieces;
        let is_inside = |placed: &PlacedSection| {
            carriers.get(&placed.carrier).is_some_and(|text| text.text().get(placed.bytes.clone()).is_some())
        };
        if !sections.iter().all(is_inside) {
            return None;
        }
        let body = Body { carriers, sections };
        let hash = || Digest::new(body.text(Carrier::System).unwrap_or_default().as_bytes());
        let digest = digest.unwrap_or_else(hash);
        debug_assert_eq!(digest, hash(), "it is that of the text");
        Some(Self { profile, body, digest, notes, considered })
    }

    /// Returns the name of the profile that built it.
    #[must_use]
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// Returns everything that stays fixed for the epoch.
    #[must_use]
    pub const fn body(&self) -> &Body {
        &self.body
    }

    /// Returns the bytes that must not change: the system carrier's text.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.body.text(Carrier::System).unwrap_or_default()
    }

    /// Returns the digest of the prefix.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns findings about the prompt.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the files that were considered.
    #[must_use]
    pub fn considered(&self) -> &[FileOutcome] {
        &self.considered
    }
}

/// Makes a section of the system carrier from a text that was rendered before.
fn fixed_section(id: &str, part: Part, text: &str) -> Section {
    let source = Source::Profile { profile: "".into(), key: format!("section.{id}").into() };
    let mut rendered = Rendered::new();
    rendered.push(text, source.clone(), None, Stability::Turn);
    Section {
        id: id.into(),
        carrier: Carrier::System,
        rendered,
        source,
        fresh_line: false,
        accepts: Stability::Turn,
        part,
    }
}

impl Suffix {
    /// Creates a suffix that has the boundary and nothing after it; no text is none.
    #[must_use]
    pub fn from_boundary(text: &str) -> Self {
        let boundary = (!text.is_empty()).then(|| fixed_section("boundary", Part::Boundary, text));
        Self { boundary, sections: Vec::new() }
    }

    /// Creates a suffix that adds a text to the system carrier.
    #[must_use]
    pub fn from_system_text(text: &str) -> Self {
        Self { boundary: None, sections: alloc::vec![fixed_section("suffix", Part::Suffix, text)] }
    }

    /// Returns the text between the cached part and this one; empty if the profile has no boundary.
    #[must_use]
    pub fn boundary(&self) -> &str {
        self.boundary.as_ref().map_or("", |section| section.rendered.text())
    }

    /// Tells whether the turn has no text of its own.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Returns the text after the boundary on a carrier.
    #[must_use]
    pub fn text(&self, carrier: Carrier) -> String {
        let own = self.sections.iter().filter(|section| section.carrier == carrier);
        own.map(|section| section.rendered.text()).collect()
    }

    /// Returns a copy with one more character at the start of each section, as a stand-in for the next turn's text.
    #[must_use]
    pub fn changed(&self) -> Self {
        let mut changed = self.clone();
        for section in &mut changed.sections {
            let (source, stability) = (section.source.clone(), section.rendered.stability());
            section.rendered.insert(0, "*", &source, stability);
        }
        changed
    }

    /// Returns the whole prompt of this turn: the frozen text, the boundary, and this suffix.
    #[must_use]
    pub fn behind(&self, frozen: &Frozen) -> Body {
        let mut whole = frozen.body.clone();
        for section in self.boundary.iter().chain(&self.sections) {
            whole.add(section.clone());
        }
        whole
    }
}

/// Freezes a draft: splits it into the cached part and the part of one turn.
#[must_use]
pub fn freeze(draft: Draft) -> (Frozen, Suffix) {
    let Draft { profile, sections, mut notes, considered } = draft;
    let (mut body, mut suffix) = (Body::default(), Suffix { boundary: None, sections: Vec::new() });
    for section in sections {
        match section.part {
            Part::Prefix => body.add(section),
            Part::Boundary => suffix.boundary = Some(section),
            Part::Suffix => suffix.sections.push(section),
        }
    }
    notes.extend(
        body.volatile()
            .map(|(carrier, span)| volatile_note(carrier, span, body.text(carrier).map_or(0, str::len))),
    );
    let digest = Digest::new(body.text(Carrier::System).unwrap_or_default().as_bytes());
    (Frozen { profile, body, digest, notes, considered }, suffix)
}

fn volatile_note(carrier: Carrier, span: &Span, carrier_bytes: usize) -> Note {
    let severity = if span.stability == Stability::Turn { Severity::Warning } else { Severity::Info };
    let message = format!(
        "{} changes {} and stands at byte {} of the {carrier} carrier: when it does, the cache loses {}",
        span.source.without_place(),
        span.stability.rhythm(),
        span.bytes.start,
        bytes_in_words(carrier_bytes - span.bytes.start),
    );
    let place = span.template.clone().unwrap_or_else(|| span.source.clone());
    Note::new(Code::VolatileInPrefix, severity, message)
        .with_hint("move it to a section on the `turn` carrier, or as far down as possible")
        .with_source(place)
}

fn bytes_in_words(bytes: usize) -> String {
    if bytes == 1 { "1 byte".into() } else { format!("{bytes} bytes") }
}
