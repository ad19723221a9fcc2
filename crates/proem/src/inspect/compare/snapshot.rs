//! One side of a comparison: a prompt as a cache would hold it, wherever it comes from.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use proem_core::frozen::{Body, Frozen};
use proem_core::rendered::Span;
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::Place;
use serde::Deserialize;

use crate::build::fingerprint::{canonical_tools, definition};
use crate::request::canonical_json::canonical_json;
use crate::request::{Request, Tool, distinct_tools};

/// A prompt as a cache would hold it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The user's name for it.
    pub name: String,
    /// The profile that it was built by.
    pub profile: String,
    /// The version of proem that built it, where that is known.
    pub engine: Option<String>,
    /// The model that it was built for, where that is known.
    pub model: Option<String>,
    /// The version of the stored template that it begins with, where that is known.
    pub template_version: Option<u64>,
    /// The author of that version.
    pub template_author: Option<String>,
    /// The tools that go with it.
    pub tools: SnapshotTools,
    /// The texts that are frozen, in the order in which a provider reads them.
    pub carriers: Vec<CarrierText>,
    /// The files that were examined, and the outcome of each.
    pub considered: BTreeMap<String, String>,
}

/// A carrier's frozen text.
#[derive(Debug, Clone)]
pub struct CarrierText {
    /// The carrier.
    pub carrier: Carrier,
    /// The text.
    pub text: String,
    /// The origin of its bytes, in order, without gap or overlap.
    pub spans: Vec<Span>,
    /// The sections: names and bytes.
    pub sections: Vec<(String, Range<usize>)>,
}

impl CarrierText {
    /// Removes a text wherever it lies within a span; no path begins in one and ends in another.
    fn take_out(&mut self, part: &str) {
        let (mut text, mut moved) = (String::with_capacity(self.text.len()), BTreeMap::from([(0, 0)]));
        for span in &mut self.spans {
            let own = self.text.get(span.bytes.clone()).unwrap_or_default().replace(part, "");
            let start = text.len();
            moved.insert(span.bytes.start, start);
            text.push_str(&own);
            moved.insert(span.bytes.end, text.len());
            span.bytes = start..text.len();
            let sources = [Some(&mut span.source), span.template.as_mut()].into_iter().flatten();
            sources.chain(&mut span.included_from).for_each(|source| source.move_file(part));
        }
        let at = |byte: usize| moved.get(&byte).copied().unwrap_or(byte);
        for (_, bytes) in &mut self.sections {
            *bytes = at(bytes.start)..at(bytes.end);
        }
        self.text = text;
    }

    /// The section that a byte lies in.
    #[must_use]
    pub fn section(&self, byte: usize) -> Option<&str> {
        self.section_index().at(byte)
    }

    /// Returns an index of the sections, for lookups of many bytes.
    pub(super) fn section_index(&self) -> SectionIndex<'_> {
        let is_behind = |pair: &[(String, Range<usize>)]| match pair {
            [(_, before), (_, after)] => before.end <= after.start && after.start <= after.end,
            _ => true,
        };
        let is_in_order = self.sections.windows(2).all(is_behind);
        SectionIndex { sections: &self.sections, is_in_order, last: None }
    }
}

/// Finds the section of a byte.
#[derive(Debug, Clone)]
pub(super) struct SectionIndex<'c> {
    sections: &'c [(String, Range<usize>)],
    /// True if each begins after the one before. Those of a saved build may be in any order.
    is_in_order: bool,
    /// The section that was found last: lookups of neighbouring bytes usually hit it again.
    last: Option<&'c (String, Range<usize>)>,
}

impl<'c> SectionIndex<'c> {
    /// The first section that a byte lies in.
    pub(super) fn at(&mut self, byte: usize) -> Option<&'c str> {
        if !self.last.is_some_and(|(_, bytes)| self.is_in_order && bytes.contains(&byte)) {
            self.last = self.find(byte);
        }
        self.last.map(|(id, _)| id.as_str())
    }

    fn find(&self, byte: usize) -> Option<&'c (String, Range<usize>)> {
        let near = if self.is_in_order {
            let passed = self.sections.partition_point(|(_, bytes)| bytes.end <= byte);
            &self.sections[passed..self.sections.len().min(passed + 1)]
        } else {
            self.sections
        };
        near.iter().find(|(_, bytes)| bytes.contains(&byte))
    }
}

/// The tools of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotTools {
    /// The definitions that a provider gets.
    Known {
        /// Each by name, in canonical form, in the order in which they are sent.
        tools: Vec<(String, String)>,
        /// The digest of them all.
        digest: String,
    },
    /// Only the digest of them all is known.
    Digest(String),
}

impl SnapshotTools {
    fn new(tools: &[Tool]) -> Self {
        // In the shape for providers: fields that are only for the prompt are already in the prompt.
        let canonical = |tool: &&Tool| (tool.name.clone(), canonical_json(&definition(tool)));
        let known = distinct_tools(tools).iter().map(canonical).collect();
        Self::Known { tools: known, digest: digest_of(tools) }
    }

    /// The digest of them all, which does not depend on their order.
    #[must_use]
    pub fn digest(&self) -> &str {
        match self {
            Self::Known { digest, .. } | Self::Digest(digest) => digest,
        }
    }

    /// Returns their text in the cached prefix; empty if unknown.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Known { tools, .. } => {
                tools.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n")
            }
            Self::Digest(_) => String::new(),
        }
    }
}

/// The reason why a text does not describe a prompt.
#[derive(Debug, Clone)]
pub struct SnapshotError {
    message: String,
    json: Option<Arc<serde_json::Error>>,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.json.as_deref()?)
    }
}

impl Snapshot {
    /// A frozen prompt and the request that it was built for.
    #[must_use]
    pub fn new(name: &str, frozen: &Frozen, request: &Request, engine: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            profile: frozen.profile().to_owned(),
            engine: engine.map(str::to_owned),
            model: request.model.clone(),
            template_version: None,
            template_author: None,
            tools: SnapshotTools::new(request.tools.as_deref().unwrap_or_default()),
            carriers: carriers(frozen.body()),
            considered: frozen
                .considered()
                .iter()
                .map(|one| (one.path.clone(), one.outcome.word().to_owned()))
                .collect(),
        }
    }

    /// Sets the version of the stored template that it begins with, and its author.
    #[must_use]
    pub fn with_template(mut self, version: Option<u64>, author: Option<String>) -> Self {
        (self.template_version, self.template_author) = (version, author);
        self
    }

    /// The same as if it had been built at another place: `root` goes from the beginning of every path.
    #[must_use]
    pub fn without_root(mut self, root: &str) -> Self {
        for carrier in &mut self.carriers {
            carrier.take_out(root);
        }
        let plain = |path: String| path.strip_prefix(root).map(str::to_owned).unwrap_or(path);
        self.considered = self.considered.into_iter().map(|(path, outcome)| (plain(path), outcome)).collect();
        self
    }

    /// A prompt as `proem build --format json` wrote it.
    pub fn read(name: &str, json: &str) -> Result<Self, SnapshotError> {
        let saved: SavedBuild = serde_json::from_str(json).map_err(|error| SnapshotError {
            message: format!("{name} is not a saved build: {error}"),
            json: Some(Arc::new(error)),
        })?;
        let digest = saved.fingerprint.map_or_else(|| digest_of(&[]), |fingerprint| fingerprint.tools);
        let given = SnapshotTools::new(&saved.tools);
        let tools = if given.digest() == digest { given } else { SnapshotTools::Digest(digest) };
        let mut carriers = Vec::new();
        for carrier in frozen_carriers() {
            let Some(whole) = saved.carriers.get(carrier.word()) else { continue };
            let end =
                if carrier == Carrier::System { saved.prefix_bytes.min(whole.len()) } else { whole.len() };
            let text = whole.get(..end).ok_or_else(|| SnapshotError {
                message: format!("{name}: `prefix_bytes` splits a character"),
                json: None,
            })?;
            let own = |found: &&SavedSpan| found.carrier == carrier.word() && found.start < end;
            carriers.push(CarrierText {
                carrier,
                text: text.to_owned(),
                spans: saved.spans.iter().filter(own).map(|span| span.restore(end)).collect(),
                sections: saved
                    .sections
                    .iter()
                    .filter(|one| one.carrier == carrier.word() && one.start < end)
                    .map(|one| (one.id.clone(), one.start..one.end.min(end)))
                    .collect(),
            });
        }
        let considered = saved.considered.into_iter().map(|one| (one.path, one.outcome)).collect();
        let (name, profile) = (name.to_owned(), saved.profile);
        Ok(Self {
            name,
            profile,
            engine: None,
            model: saved.model,
            template_version: None,
            template_author: None,
            tools,
            carriers,
            considered,
        })
    }
}

fn digest_of(tools: &[Tool]) -> String {
    Digest::new(canonical_tools(tools).as_bytes()).hex()
}

/// The carriers whose text is frozen: that of a turn changes each time, after everything cached.
fn frozen_carriers() -> impl Iterator<Item = Carrier> {
    Carrier::ALL.into_iter().filter(|carrier| *carrier != Carrier::Turn)
}

fn carriers(body: &Body) -> Vec<CarrierText> {
    let of = |carrier: Carrier| {
        let text = body.text(carrier)?.to_owned();
        let sections = body.sections().iter().filter(|section| section.carrier == carrier);
        Some(CarrierText {
            carrier,
            text,
            spans: body.spans(carrier).to_vec(),
            sections: sections.map(|section| (section.id.clone(), section.bytes.clone())).collect(),
        })
    };
    frozen_carriers().filter_map(of).collect()
}

/// The fields that are read from a saved build.
#[derive(Deserialize)]
struct SavedBuild {
    profile: String,
    carriers: BTreeMap<String, String>,
    prefix_bytes: usize,
    #[serde(default)]
    model: Option<String>,
    /// Missing in builds that older versions saved.
    #[serde(default)]
    tools: Vec<Tool>,
    #[serde(default)]
    fingerprint: Option<SavedFingerprint>,
    #[serde(default)]
    sections: Vec<SavedSection>,
    #[serde(default)]
    spans: Vec<SavedSpan>,
    #[serde(default)]
    considered: Vec<SavedFileOutcome>,
}

#[derive(Deserialize)]
struct SavedFileOutcome {
    path: String,
    outcome: String,
}

#[derive(Deserialize)]
struct SavedFingerprint {
    tools: String,
}

#[derive(Deserialize)]
struct SavedSection {
    id: String,
    carrier: String,
    start: usize,
    end: usize,
}

#[derive(Deserialize)]
struct SavedSpan {
    carrier: String,
    start: usize,
    end: usize,
    stability: Stability,
    source: SavedSource,
    #[serde(default)]
    template: Option<SavedSource>,
}

impl SavedSpan {
    fn restore(&self, end: usize) -> Span {
        Span {
            bytes: self.start..self.end.min(end),
            source: self.source.restore(),
            template: self.template.as_ref().map(SavedSource::restore),
            included_from: Vec::new(),
            stability: self.stability,
        }
    }
}

/// A source of any kind, with the fields that kinds have.
#[derive(Deserialize)]
struct SavedSource {
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    key: String,
    #[serde(default)]
    field: String,
    #[serde(default)]
    profile: String,
    #[serde(default)]
    line: Option<usize>,
    #[serde(default)]
    column: Option<usize>,
}

impl SavedSource {
    fn restore(&self) -> Source {
        let place = self.line.map(|line| Place { line, column: self.column.unwrap_or(1) });
        let path = self.path.clone().unwrap_or_default();
        match self.kind.as_str() {
            "file" => Source::File { path: path.into(), place },
            "variable" => {
                Source::Variable { key: self.key.clone().into(), path: self.path.as_deref().map(Into::into) }
            }
            "request" => Source::Request { field: self.field.clone().into(), place },
            "pack" => Source::Pack { path: path.into(), key: self.key.clone().into(), place },
            "profile" => {
                Source::Profile { profile: self.profile.clone().into(), key: self.key.clone().into() }
            }
            "hook" => Source::Hook { name: self.name.as_str().into() },
            _ => Source::BuiltIn { name: self.name.as_str().into(), place },
        }
    }
}
