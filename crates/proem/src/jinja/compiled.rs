//! Templates that are compiled once and rendered repeatedly.
//!
//! The result is that of the traced render: the functions around expressions return their values unchanged. If tracing
//! fails, a plain render gives the text, or the error.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use minijinja::{Environment, ErrorKind};
use proem_core::rendered::Rendered;

use super::{Asset, Assets, Options, Stop, Wish, environment};
use crate::error::TemplateError;
use crate::jinja::cost::guard::{self, Budget};
use crate::jinja::cost::value_size;
use crate::jinja::edit::EditMap;
use crate::jinja::ending::Ending;
use crate::jinja::explain;
use crate::jinja::reference;
use crate::jinja::syntax::Outline;
use crate::jinja::trace::last_lookup;
use crate::jinja::trace::spans::{self, RenderScene};
use crate::jinja::trace::{self, Sink};
use crate::jinja::values::{self, Context};
use crate::observe::deadline;

/// The outline of each asset, by name.
pub(super) type Outlines = BTreeMap<String, Arc<Outline>>;

/// Extra fuel for each item of a list: a template that iterates over a long list may take more steps, and the list has
/// its own limit.
const FUEL_PER_ITEM: u64 = 64;

/// The work that each render is charged: a template may need one fact after the other, and each one starts it again.
const RENDER_WORK: usize = 1 << 10;

/// Room for the text that is usually put around a render later: a section's wording, and the sections before a long
/// list.
const BYTES_AROUND: usize = 16 << 10;

/// A template and its assets, compiled once: each missing fact causes another render.
pub(crate) struct Renderer<'s> {
    root: &'s str,
    assets: &'s Assets,
    compiled: CompiledTemplates,
}

impl<'s> Renderer<'s> {
    /// Prepares the asset called `root`.
    pub(crate) fn new(root: &'s str, assets: &'s Assets, options: &Options) -> Self {
        let compiled = CompiledTemplates::new(assets, options);
        Self { root, assets, compiled }
    }

    /// Renders.
    pub(crate) fn render(&mut self, context: &Arc<Context>) -> Result<Rendered, Stop> {
        let Self { root, assets, compiled } = self;
        let (text, pieces) = match compiled.traced.render(root, context) {
            Ok(Output { text, pieces }) => (text, Some(pieces)),
            Err(error) => match wish(&error) {
                Some(wish) => return Err(Stop::Wish(wish)),
                // A second attempt would cost as much again.
                None if is_used_up(&error) => {
                    return Err(stop(error, &compiled.traced.placed, assets, context));
                }
                None => (compiled.plain(root, context, assets)?, None),
            },
        };
        #[cfg(debug_assertions)]
        assert!(
            pieces.is_none()
                || deadline::unpaid(|| compiled.plain(root, context, assets))
                    .is_ok_and(|plain| plain == text),
            "following a render must not change it"
        );
        let CompiledTemplates { outlines, traced, .. } = compiled;
        let scene = RenderScene { root, assets, outlines, context, templates: &traced.placed };
        Ok(spans::assemble(text, pieces.as_deref(), &scene))
    }
}

/// Assets that minijinja has compiled.
pub(super) struct CompiledTemplates {
    options: Options,
    outlines: Outlines,
    traced: PreparedTemplates,
    /// The templates without tracing; compiled on demand.
    plain: Option<PreparedTemplates>,
}

impl CompiledTemplates {
    fn new(assets: &Assets, options: &Options) -> Self {
        let outlines = outlines(assets, options);
        let traced = PreparedTemplates::new(assets, &outlines, options, Tracing::On);
        Self { options: options.clone(), outlines, traced, plain: None }
    }

    fn plain(&mut self, root: &str, context: &Arc<Context>, assets: &Assets) -> Result<String, Stop> {
        let Self { outlines, options, .. } = self;
        let plain =
            self.plain.get_or_insert_with(|| PreparedTemplates::new(assets, outlines, options, Tracing::Off));
        plain.render(root, context).map(|output| output.text).map_err(|error| {
            match stop(error, &plain.placed, assets, context) {
                // Errors of the sink do not name a template.
                Stop::Error(error) if error.template.is_empty() => {
                    Stop::Error(Box::new(TemplateError { template: root.to_owned(), ..*error }))
                }
                other => other,
            }
        })
    }
}

/// Returns the outlines of all assets that have one; invalid ones were refused before.
fn outlines(assets: &Assets, options: &Options) -> Outlines {
    let outline = |(name, asset): (&str, &Asset)| {
        let known = assets.outline(name).cloned();
        Some((name.to_owned(), known.or_else(|| super::outline(name, asset, options).ok())?))
    };
    assets.present().filter_map(outline).collect()
}

/// Selects whether expressions are wrapped for tracing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracing {
    On,
    Off,
}

/// An edited template: the address of its text, and the number of its first expression.
#[derive(Debug)]
pub(super) struct PlacedTemplate {
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) edited: EditMap,
    pub(super) first_site: usize,
}

impl PlacedTemplate {
    pub(super) fn end(&self) -> usize {
        self.start + self.edited.bytes
    }
}

/// All assets with their insertions, in an environment of their own.
struct PreparedTemplates {
    placed: Vec<PlacedTemplate>,
    /// The number of expressions in them.
    sites: usize,
    fuel: u64,
    environment: Environment<'static>,
    budget: Budget,
    /// The bytes and pieces of the last output: the next one has nearly the same size.
    last: Option<(usize, usize)>,
}

/// A text, and the origin of each part of it.
struct Output {
    text: String,
    pieces: Vec<trace::Piece>,
}

impl PreparedTemplates {
    fn new(assets: &Assets, outlines: &Outlines, options: &Options, tracing: Tracing) -> Self {
        let mut edited_assets = assets.clone();
        let mut placed: Vec<PlacedTemplate> = Vec::new();
        let mut first_site = 0;
        for (name, asset) in assets.present() {
            let Some(outline) = outlines.get(name) else { continue };
            let mut insertions = guard::insertions(outline);
            if tracing == Tracing::On {
                insertions.extend(trace::insertions(&outline.sites, first_site));
            }
            let (text, edited) = EditMap::new(&asset.text, insertions);
            edited_assets.insert(name.to_owned(), Ok(Asset { text, ..asset.clone() }));
            placed.push(PlacedTemplate { name: name.to_owned(), start: 0, edited, first_site });
            first_site += outline.sites.len();
        }
        let longest = outlines.values().map(|outline| outline.longest_text).max().unwrap_or(0);
        let (environment, budget) = environment(&Arc::new(edited_assets), options);
        for placed in &mut placed {
            // Compiling a template takes a while. If the build has to end, the rest is not compiled or rendered.
            if deadline::check_clocks().is_err() {
                break;
            }
            let template = environment.get_template(&placed.name);
            placed.start = template.map_or(0, |template| template.source().as_ptr().addr());
        }
        Self { placed, sites: first_site, fuel: guard::fuel(longest), environment, budget, last: None }
    }

    /// Estimates the bytes and pieces of an output that has each template once, and each field of each item.
    fn expected(&self, context: &Context) -> (usize, usize) {
        let (fields, bytes) = context.fields();
        let templates = self.placed.iter().map(|placed| placed.edited.bytes).sum::<usize>();
        // A piece of the template separates each two values.
        (templates + bytes + BYTES_AROUND, 2 * (self.sites + fields))
    }

    fn render(&mut self, root: &str, context: &Arc<Context>) -> Result<Output, minijinja::Error> {
        deadline::check_clocks().map_err(value_size::stopped)?;
        value_size::charge(RENDER_WORK)?;
        last_lookup::reset();
        self.budget.refill();
        self.environment.set_fuel(Some(self.fuel + FUEL_PER_ITEM * context.items() as u64));
        if let Some(file) = values::file(context) {
            self.environment.add_function("file", move |path: &str| file(path));
        }
        let sources = self.placed.iter().map(|placed| (placed.start, placed.end())).collect();
        let mut sink = Sink::new(sources, self.last.unwrap_or_else(|| self.expected(context)));
        // minijinja panics on some mistakes of a template, such as `loop.cycle()`.
        let rendered = catch_unwind(AssertUnwindSafe(|| {
            let template = self.environment.get_template(root)?;
            template.render_captured_to(values::root(context), &mut sink).map(drop)
        }));
        let rendered = rendered.unwrap_or_else(|_| {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, "minijinja panics on this template"))
        });
        // It holds the context, which must not be kept with the template.
        self.environment.remove_global("file");
        rendered?;
        self.last = Some((sink.text.len(), sink.pieces.len()));
        let text = String::from_utf8(sink.text)
            .map_err(|error| minijinja::Error::new(ErrorKind::WriteFailure, error.to_string()))?;
        Ok(Output { text, pieces: sink.pieces })
    }
}

/// Returns the chain of an error's causes, starting with itself.
fn causes(error: &minijinja::Error) -> impl Iterator<Item = &minijinja::Error> {
    std::iter::successors(Some(error), |error| {
        std::error::Error::source(*error).and_then(|source| source.downcast_ref::<minijinja::Error>())
    })
}

/// Tells whether a render was stopped because of its cost.
fn is_used_up(error: &minijinja::Error) -> bool {
    causes(error).any(|inner| matches!(Ending::from_error(inner), Some(Ending::LargeValue | Ending::Stopped)))
}

/// Returns the fact or asset whose absence made a render fail.
fn wish(error: &minijinja::Error) -> Option<Wish> {
    causes(error).find_map(|inner| match Ending::from_error(inner)? {
        Ending::WantedFact(key) => Some(Wish::Fact(key.clone())),
        Ending::WantedAsset(name) => reference::parse(name, None, &BTreeMap::new()).ok().map(Wish::Asset),
        _ => None,
    })
}

fn stop(error: minijinja::Error, placed: &[PlacedTemplate], assets: &Assets, context: &Context) -> Stop {
    if let Some(wish) = wish(&error) {
        return Stop::Wish(wish);
    }
    let original = |name: &str, offset: usize| {
        let placed = placed.iter().find(|placed| placed.name == name);
        placed.map_or(offset, |placed| placed.edited.original(offset))
    };
    Stop::Error(Box::new(explain::explain(error, assets, &original, &context.names())))
}
