//! Converts the pieces of a traced render to spans.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proem_core::line_map::LineMap;
use proem_core::rendered::{Origin, Rendered, Span};
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::Places;
use proem_core::variable;

use crate::jinja::asset::{Asset, Assets};
use crate::jinja::compiled::{Outlines, PlacedTemplate};
use crate::jinja::items::Touch;
use crate::jinja::reference;
use crate::jinja::syntax::{Outline, Site};
use crate::jinja::trace::copied_lines::{CopyLocator, CopySource};
use crate::jinja::trace::last_lookup::Evaluation;
use crate::jinja::trace::{From, Piece};
use crate::jinja::values::{Binding, Context};
use crate::observe::deadline;

/// The inputs and the context of a finished render.
pub(crate) struct RenderScene<'s> {
    pub(crate) root: &'s str,
    pub(crate) assets: &'s Assets,
    pub(crate) outlines: &'s Outlines,
    pub(crate) context: &'s Context,
    pub(crate) templates: &'s [PlacedTemplate],
}

/// Room for the spans of the text that is usually put around a render later: a section's wording, and the sections
/// before a long list.
const SPANS_AROUND: usize = 128;

/// Assigns spans to `text`. Without a trace, the whole text is attributed to the root template, which is less exact but
/// not wrong.
pub(crate) fn assemble(text: String, pieces: Option<&[Piece]>, scene: &RenderScene<'_>) -> Rendered {
    let mut rendered = Rendered::new();
    let Some(Ok(asset)) = scene.assets.find(scene.root) else { return rendered };
    let Some(pieces) = pieces.filter(|pieces| do_cover(pieces, &text)) else {
        rendered.push(&text, asset.origin.clone(), None, least_stable(scene.assets, scene.context));
        return rendered;
    };
    let (mut scribe, mut located) = (SpanWriter::new(scene), CopyLocator::default());
    let mut spans = Vec::with_capacity(pieces.len() + SPANS_AROUND);
    let mut start = 0;
    for piece in pieces {
        // The build fails then, whatever the spans are.
        if deadline::check().is_err() {
            return rendered;
        }
        let bytes = start..start + piece.bytes;
        start = bytes.end;
        let origin = scribe.origin(piece);
        let written = text.get(bytes.clone()).unwrap_or_default();
        match copied_from(piece, &origin, scene.context) {
            Some(copy) => located.put(&copy, written, &origin, &mut spans),
            None if !bytes.is_empty() || matches!(origin.source, Source::Variable { .. }) => {
                spans.push(span(bytes, origin));
            }
            None => {}
        }
    }
    Rendered::restore(text, spans).unwrap_or(rendered)
}

fn span(bytes: Range<usize>, origin: Origin) -> Span {
    let Origin { source, template, included_from, stability } = origin;
    Span { bytes, source, template, included_from, stability }
}

/// Finds the text of a file that a value was copied from, if the value consists of one such text only.
fn copied_from<'s>(piece: &Piece, origin: &Origin, context: &'s Context) -> Option<CopySource<'s>> {
    let From::Site(Evaluation { touch, .. }) = piece.from else { return None };
    origin.source.place()?;
    if let Some(touch) = touch
        && let Some(field) = context.touched(touch)
        && let Some(line_map) = field.line_map.as_deref()
        && field.source == origin.source
    {
        return Some(CopySource { text: &field.text, line_map: Cow::Borrowed(line_map) });
    }
    context.bindings.values().find_map(|binding| match binding {
        Binding::Text { text, source, .. } if *source == origin.source => {
            Some(CopySource { text, line_map: Cow::Owned(LineMap::from_place(source.place()?)) })
        }
        _ => None,
    })
}

/// Tells whether pieces end at character boundaries, and the last one at the end of the text.
fn do_cover(pieces: &[Piece], text: &str) -> bool {
    let mut end = 0;
    let is_whole = |piece: &Piece| {
        end += piece.bytes;
        text.is_char_boundary(end)
    };
    pieces.iter().all(is_whole) && end == text.len()
}

/// Returns the stability of the least stable value that could be in the text.
fn least_stable(assets: &Assets, context: &Context) -> Stability {
    let facts = context.facts.iter().flat_map(|facts| facts.iter().map(|(_, fact)| fact.stability));
    let assets = assets.present().map(|(_, asset)| asset.stability);
    facts.chain(assets).max().unwrap_or(Stability::Session)
}

/// Tracks the position of the render: the current template and its includes.
struct SpanWriter<'s> {
    templates: &'s [PlacedTemplate],
    /// The places of each template.
    known: Vec<TemplatePlaces<'s>>,
    assets: &'s Assets,
    context: &'s Context,
    /// The names in the values that templates set, by name, over all templates.
    assigned: BTreeMap<&'s str, BTreeSet<&'s str>>,
    /// The templates that are being rendered: their index, and the place of the include in the one above.
    stack: Vec<(usize, Option<Source>)>,
    /// Properties shared by expressions with the same names, by the number of the first of them.
    alike: Vec<Option<SharedOrigin>>,
}

/// The number of places of a template that are remembered: more than a loop usually has pieces.
const PLACES: usize = 32;

/// Properties shared by expressions with the same names.
struct SharedOrigin {
    /// Their origin if no field was looked up.
    untouched: ValueOrigin,
    /// The list of items that they consist of, by its number, if it is the only one: then a looked-up field of it is
    /// the whole value.
    list: Option<usize>,
}

/// Bytes of a template with their places.
type RecentPlaces = [Option<(usize, Source)>; PLACES];

struct TemplatePlaces<'s> {
    asset: &'s Asset,
    outline: &'s Outline,
    places: Places<'s>,
    /// The last byte requested.
    last: usize,
    /// The places requested since the render returned to an earlier byte, indexed by the byte: a loop will request them
    /// again.
    again: Option<Box<RecentPlaces>>,
}

impl TemplatePlaces<'_> {
    /// Returns the place of a byte of the template.
    fn place(&mut self, offset: usize) -> Source {
        if offset < self.last && self.again.is_none() {
            self.again = Some(Box::new([const { None }; PLACES]));
        }
        self.last = offset;
        let mut look = || self.asset.origin.at(self.places.at(offset));
        let Some(again) = &mut self.again else { return look() };
        match &mut again[offset % PLACES] {
            Some((known, source)) if *known == offset => source.clone(),
            other => other.insert((offset, look())).1.clone(),
        }
    }
}

/// The origin of a value: one source for all of it, and its stability.
#[derive(Clone)]
struct ValueOrigin {
    source: Option<Source>,
    stability: Stability,
}

impl<'s> SpanWriter<'s> {
    fn new(scene: &RenderScene<'s>) -> Self {
        let RenderScene { root, assets, outlines, context, templates } = *scene;
        let mut assigned: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, made_of) in outlines.values().flat_map(|outline| &outline.assigned) {
            assigned.entry(name).or_default().extend(made_of.iter().map(String::as_str));
        }
        let first = templates.iter().position(|placed| placed.name == root).unwrap_or(0);
        let stack = vec![(first, None)];
        let known = |placed: &PlacedTemplate| {
            let asset = assets.find(&placed.name).and_then(Result::ok);
            let asset = asset.expect("only assets that exist are traced");
            let (outline, places) = (&*outlines[&placed.name], Places::new(&asset.text));
            TemplatePlaces { asset, outline, places, last: 0, again: None }
        };
        let known: Vec<TemplatePlaces<'_>> = templates.iter().map(known).collect();
        let sites = known.iter().map(|known| known.outline.sites.len()).sum();
        let mut alike = Vec::new();
        alike.resize_with(sites, || None);
        Self { templates, known, assets, context, assigned, stack, alike }
    }

    fn origin(&mut self, piece: &Piece) -> Origin {
        match piece.from {
            From::Text { address } => self.text(address),
            From::Site(evaluated) => self.site(evaluated).unwrap_or_else(|| self.elsewhere()),
            From::Elsewhere => self.elsewhere(),
        }
    }

    fn elsewhere(&self) -> Origin {
        let (index, _) = *self.stack.last().unwrap_or(&(0, None));
        let source = self.known[index].asset.origin.clone();
        let stability = least_stable(self.assets, self.context);
        Origin { source, template: None, included_from: self.included_from(), stability }
    }

    fn text(&mut self, address: usize) -> Origin {
        let holds = |placed: &PlacedTemplate| (placed.start..placed.end()).contains(&address);
        let index = self.templates.iter().position(holds).unwrap_or(0);
        self.enter(index);
        let placed = &self.templates[index];
        let source = self.place(index, placed.edited.original(address - placed.start));
        let stability = self.known[index].asset.stability;
        Origin { source, template: None, included_from: self.included_from(), stability }
    }

    /// Returns the origin of an expression's value; `None` for an unknown number.
    fn site(&mut self, evaluated: Evaluation) -> Option<Origin> {
        let Evaluation { number, touch } = evaluated;
        let index = self.templates.partition_point(|placed| placed.first_site <= number).checked_sub(1)?;
        let first = self.templates[index].first_site;
        let site = self.known[index].outline.sites.get(number - first)?;
        self.enter(index);
        let made = self.made_alike(index, site, first + site.alike, touch);
        let written = self.place(index, site.offset);
        let (included_from, stability) = (self.included_from(), made.stability);
        Some(match made.source {
            Some(source) => Origin { source, template: Some(written), included_from, stability },
            None => Origin { source: written, template: None, included_from, stability },
        })
    }

    /// Returns the origin of an expression's value. The part shared by expressions with the same names is computed
    /// once.
    fn made_alike(&mut self, index: usize, site: &Site, alike: usize, touch: Option<Touch>) -> ValueOrigin {
        let known = self.alike[alike].take().unwrap_or_else(|| SharedOrigin {
            untouched: self.made(index, site, None),
            list: self.only_list(&site.names),
        });
        let made = match (touch, known.list) {
            (Some(touch), None) => Some(self.made(index, site, Some(touch))),
            (Some(touch), Some(list)) if list == touch.list => self.field(index, touch),
            _ => None,
        };
        let made = made.unwrap_or_else(|| known.untouched.clone());
        self.alike[alike] = Some(known);
        made
    }

    /// Returns the origin of a looked-up field, written by an expression of this template.
    fn field(&self, index: usize, touch: Touch) -> Option<ValueOrigin> {
        let field = self.context.touched(touch)?;
        let stability = field.stability.max(self.known[index].asset.stability);
        Some(ValueOrigin { source: Some(field.source.clone()), stability })
    }

    /// Returns the number of the list of items that some names come from, if it is their only origin.
    fn only_list(&self, names: &BTreeSet<String>) -> Option<usize> {
        let (mut lists, mut has_others) = (Vec::new(), false);
        self.follow(names, |name| match self.binding(name) {
            Some(Binding::Items { .. }) => {
                lists.push(base_of(name));
                true
            }
            None if self.fact(name).is_none() => false,
            _ => {
                has_others = true;
                true
            }
        });
        let [only] = lists.as_slice() else { return None };
        let number = self.context.bindings.keys().position(|name| name == only);
        number.filter(|_| !has_others)
    }

    fn made(&self, index: usize, site: &Site, touch: Option<Touch>) -> ValueOrigin {
        let made_of = self.made_of(&site.names, touch);
        let own = self.known[index].asset.stability;
        let stability = made_of.iter().map(|(_, stability)| *stability).max().unwrap_or(own).max(own);
        ValueOrigin { source: merge(made_of), stability }
    }

    /// Returns the sources of some names, through all values that templates set.
    fn made_of(&self, names: &BTreeSet<String>, touch: Option<Touch>) -> Vec<(Source, Stability)> {
        let mut sources = Vec::new();
        self.follow(names, |name| {
            let source = self.source(name, touch);
            let is_found = source.is_some();
            sources.extend(source);
            is_found
        });
        if sources.len() > 1 {
            sources.sort_by_cached_key(|(source, _)| source.to_string());
        }
        sources
    }

    /// Follows names to the names in the values that templates set, up to those that `is_end` accepts; visits each
    /// once.
    fn follow<'n>(&'n self, names: &'n BTreeSet<String>, mut is_end: impl FnMut(&'n str) -> bool) {
        let mut open: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        while let Some(name) = open.pop() {
            if seen.insert(name) && !is_end(name) {
                open.extend(self.assigned_to(name));
            }
        }
    }

    /// Returns the names in the values that templates set for a name.
    fn assigned_to(&self, name: &str) -> impl Iterator<Item = &'s str> {
        let made_of = self.assigned.get(name).or_else(|| self.assigned.get(base_of(name)));
        made_of.into_iter().flatten().copied()
    }

    /// Returns the binding of a name: that of its base if that has fields, else its own.
    fn binding(&self, name: &str) -> Option<&'s Binding> {
        let fields = self.context.bindings.get(base_of(name));
        let fields = fields.filter(|binding| matches!(binding, Binding::Fields { .. }));
        fields.or_else(|| self.context.bindings.get(name))
    }

    fn source(&self, name: &str, touch: Option<Touch>) -> Option<(Source, Stability)> {
        let touched = || {
            let base = base_of(name);
            let is_own =
                |touch: &Touch| self.context.bindings.keys().nth(touch.list).is_some_and(|own| own == base);
            let touch = touch.filter(is_own);
            touch
                .and_then(|touch| self.context.touched(touch))
                .map(|field| (field.source.clone(), field.stability))
        };
        match self.binding(name) {
            Some(Binding::Items { source, stability, .. }) => {
                Some(touched().unwrap_or_else(|| (source.clone(), *stability)))
            }
            Some(Binding::Fields { .. }) => touched(),
            Some(Binding::Text { source, stability, .. } | Binding::List { source, stability, .. }) => {
                Some((source.clone(), *stability))
            }
            Some(Binding::Fact(key)) => self.fact(key),
            None => self.fact(name),
        }
    }

    fn fact(&self, key: &str) -> Option<(Source, Stability)> {
        let fact = self.context.facts.as_ref()?.fact(key);
        let stability = fact.map(|fact| fact.stability).or_else(|| Some(variable::find(key)?.stability()))?;
        let path = fact.and_then(|fact| fact.path.clone());
        Some((Source::Variable { key: key.into(), path }, stability))
    }

    fn place(&mut self, index: usize, offset: usize) -> Source {
        self.known[index].place(offset)
    }

    /// Records that the render is now in this template: back in one that included the last, or in one that the last, or
    /// one above it, includes.
    fn enter(&mut self, index: usize) {
        if let Some(depth) = self.stack.iter().rposition(|(open, _)| *open == index) {
            self.stack.truncate(depth + 1);
            return;
        }
        let wanted = &self.templates[index].name;
        for depth in (0..self.stack.len()).rev() {
            let parent = self.stack[depth].0;
            if let Some(offset) = self.include_of(parent, wanted) {
                let from = self.place(parent, offset);
                self.stack.truncate(depth + 1);
                self.stack.push((index, Some(from)));
                return;
            }
        }
        self.stack.push((index, None));
    }

    fn include_of(&self, parent: usize, wanted: &str) -> Option<usize> {
        let TemplatePlaces { asset, outline, .. } = &self.known[parent];
        let found = outline.includes.iter().find(|include| {
            let resolved = reference::parse(&include.name, asset.reference.as_ref(), &self.context.aliases);
            resolved.is_ok_and(|reference| reference.to_string() == wanted)
        });
        found.map(|include| include.offset)
    }

    fn included_from(&self) -> Vec<Source> {
        self.stack.iter().rev().filter_map(|(_, from)| from.clone()).collect()
    }
}

/// Returns the name before a field: `texts.identity` is recorded as `texts:identity`, as facts are.
fn base_of(name: &str) -> &str {
    name.split_once(':').map_or(name, |(base, _)| base)
}

/// Merges the sources of a value into one.
fn merge(sources: Vec<(Source, Stability)>) -> Option<Source> {
    let mut sources = sources.into_iter().map(|(source, _)| source);
    let first = sources.next()?;
    let rest: Vec<String> = sources.map(|source| key_of(&source)).collect();
    if rest.is_empty() {
        return Some(first);
    }
    let keys = std::iter::once(key_of(&first)).chain(rest).collect::<Vec<_>>().join(", ");
    Some(Source::Variable { key: keys.into(), path: None })
}

fn key_of(source: &Source) -> String {
    match source {
        Source::Variable { key, .. } => key.as_ref().into(),
        other => other.to_string(),
    }
}
