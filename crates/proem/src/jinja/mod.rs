//! Jinja templates: assets that include each other, rendered by minijinja, with the origin of every
//! byte.
//!
//! Nothing here looks at the world. What a render lacks (an asset, a fact) it names as a [`Wish`];
//! whoever renders fulfils it and tries again. It lives outside the core only because it must
//! implement `std::io::Write` to see what minijinja writes.

mod asset;
mod edit;
mod error;
mod expression;
mod guard;
mod items;
pub(crate) mod reference;
mod spans;
mod syntax;
mod trace;
mod values;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, ErrorKind, Output, State, UndefinedBehavior, escape_formatter};
use proem_core::limit::JINJA_DEPTH_MAX;
use proem_core::rendered::Rendered;

pub(crate) use asset::{Asset, Assets};
pub use error::TemplateError;
pub(crate) use items::{Field, Item};
pub(crate) use syntax::Outline;
pub(crate) use values::{Binding, Context};

use edit::Edited;
use guard::Budget;
use reference::Reference;
use spans::Scene;
use trace::{BEGIN, MARK, Mark, Sink};

/// What each asset says about itself, by name.
type Outlines = BTreeMap<String, Arc<Outline>>;

/// What a render lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A fact, by its key.
    Fact(String),
    /// An asset, by its reference.
    Asset(Reference),
}

/// Why there is no text.
#[derive(Debug)]
pub(crate) enum Stop {
    Wish(Wish),
    Error(Box<TemplateError>),
}

/// What a profile says about Jinja.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) trim_blocks: bool,
    pub(crate) lstrip_blocks: bool,
    /// Other names of the libraries' prefixes.
    pub(crate) aliases: BTreeMap<String, String>,
}

impl Options {
    fn syntax(&self) -> SyntaxConfig {
        let mut builder = SyntaxConfig::builder();
        builder.trim_blocks(self.trim_blocks).lstrip_blocks(self.lstrip_blocks).keep_trailing_newline(false);
        builder.build().unwrap_or_default()
    }
}

/// A template that walks a long list may take more steps: the list has a limit of its own.
const FUEL_PER_ITEM: u64 = 64;

/// Begins the detail of an error that asks for an asset.
const WANTED_ASSET: &str = "\u{0}wanted asset ";
/// Begins the name that stands for a reference which is none.
const BAD_REFERENCE: &str = "\u{0}bad reference ";

/// Checks the syntax of an asset and outlines it.
pub(crate) fn outline(name: &str, asset: &Asset, options: &Options) -> Result<Outline, Box<TemplateError>> {
    syntax::outline(&asset.text, name, &options.syntax()).map_err(|error| {
        let mut assets = Assets::default();
        assets.insert(name.to_owned(), Ok(asset.clone()));
        let explained = error::explain(&error, &assets, &|_, offset| offset, &[]);
        // What is refused before minijinja sees it carries no name.
        let template =
            if explained.template.is_empty() { name.to_owned() } else { explained.template.clone() };
        Box::new(TemplateError { template, ..explained })
    })
}

/// The asset that an include names, as a qualified reference.
pub(crate) fn resolve(
    include: &str,
    parent: &Asset,
    options: &Options,
) -> Result<Reference, reference::ReferenceError> {
    reference::parse(include, parent.reference.as_ref(), &options.aliases)
}

/// A template and its assets, compiled once: each fact that it turns out to need is another try.
pub(crate) struct Session<'s> {
    root: &'s str,
    assets: &'s Assets,
    options: &'s Options,
    outlines: Outlines,
    plain: Templates,
    environment: Environment<'static>,
    budget: Budget,
}

impl<'s> Session<'s> {
    /// Prepares the asset called `root`. Of the context, only facts may be others later.
    pub(crate) fn new(root: &'s str, assets: &'s Assets, context: &Context, options: &'s Options) -> Self {
        let outlines = outlines(assets, options);
        let plain = Templates::new(assets, &outlines, Tracing::Off);
        let (environment, _, budget) = environment(&plain, context, options);
        Self { root, assets, options, outlines, plain, environment, budget }
    }

    /// Renders.
    pub(crate) fn render(&mut self, context: &Context) -> Result<Rendered, Stop> {
        let text = self.text(context).map_err(|error| {
            match stop(&error, &self.plain, self.assets, context) {
                // The sink knows no template.
                Stop::Error(error) if error.template.is_empty() => {
                    Stop::Error(Box::new(TemplateError { template: self.root.to_owned(), ..*error }))
                }
                other => other,
            }
        })?;
        let Self { root, assets, options, outlines, .. } = self;
        let traced = Templates::new(assets, outlines, Tracing::On).trace(root, context, options);
        let scene = Scene { root, assets, outlines, context };
        Ok(spans::assemble(&text, traced, &scene))
    }

    fn text(&mut self, context: &Context) -> Result<String, minijinja::Error> {
        self.budget.refill();
        add_file_function(&mut self.environment, context);
        let mut sink = Sink::new(Vec::new(), Mark::default());
        let template = self.environment.get_template(self.root)?;
        template.render_captured_to(context.value(&Mark::default()), &mut sink)?;
        String::from_utf8(sink.text)
            .map_err(|error| minijinja::Error::new(ErrorKind::WriteFailure, error.to_string()))
    }
}

/// The outlines of all assets that have one; broken ones were refused before.
fn outlines(assets: &Assets, options: &Options) -> Outlines {
    let outline = |(name, asset): (&str, &Asset)| {
        let known = assets.outline(name).cloned();
        let anew = || syntax::outline(&asset.text, name, &options.syntax()).ok().map(Arc::new);
        Some((name.to_owned(), known.or_else(anew)?))
    };
    assets.present().filter_map(outline).collect()
}

fn stop(error: &minijinja::Error, templates: &Templates, assets: &Assets, context: &Context) -> Stop {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = next.and_then(|source| source.downcast_ref::<minijinja::Error>()) {
        if let Some(key) = values::wanted_fact(inner) {
            return Stop::Wish(Wish::Fact(key));
        }
        if let Some(name) = inner.detail().and_then(|detail| detail.strip_prefix(WANTED_ASSET))
            && let Ok(reference) = reference::parse(name, None, &BTreeMap::new())
        {
            return Stop::Wish(Wish::Asset(reference));
        }
        next = std::error::Error::source(inner);
    }
    let original = |name: &str, offset: usize| {
        let placed = templates.placed.iter().find(|placed| placed.name == name);
        placed.map_or(offset, |placed| placed.edited.original(offset))
    };
    Stop::Error(Box::new(error::explain(error, assets, &original, &context.names())))
}

/// What a traced render gives: the pieces, and the edited texts that their addresses point into.
pub(super) struct Traced {
    text: Vec<u8>,
    pieces: Vec<trace::Piece>,
    templates: Vec<Placed>,
}

/// An edited template: where its text begins in memory, and the number of its first expression.
#[derive(Debug)]
struct Placed {
    name: String,
    start: usize,
    edited: Edited,
    first_site: usize,
}

/// Whether expressions are wrapped so that they can be followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracing {
    On,
    Off,
}

/// All assets with their insertions, ready for one render.
struct Templates {
    assets: Arc<Assets>,
    placed: Vec<Placed>,
    fuel: u64,
}

impl Templates {
    fn new(assets: &Assets, outlines: &Outlines, tracing: Tracing) -> Self {
        let mut edited_assets = assets.clone();
        let mut placed: Vec<Placed> = Vec::new();
        let mut first_site = 0;
        for (name, asset) in assets.present() {
            let Some(outline) = outlines.get(name) else { continue };
            let mut insertions = guard::insertions(outline);
            if tracing == Tracing::On {
                insertions.extend(trace::insertions(&outline.sites, first_site));
            }
            let edited = Edited::new(&asset.text, insertions);
            edited_assets.insert(name.to_owned(), Ok(Asset { text: edited.text.clone(), ..asset.clone() }));
            placed.push(Placed { name: name.to_owned(), start: 0, edited, first_site });
            first_site += outline.sites.len();
        }
        let longest = outlines.values().map(|outline| outline.longest_text).max().unwrap_or(0);
        Self { assets: Arc::new(edited_assets), placed, fuel: guard::fuel(longest) }
    }

    /// Renders once more, following every byte; `None` where that is not possible.
    fn trace(mut self, root: &str, context: &Context, options: &Options) -> Option<Traced> {
        let (mut environment, mark, budget) = environment(&self, context, options);
        mark.reset();
        budget.refill();
        add_file_function(&mut environment, context);
        for placed in &mut self.placed {
            placed.start = environment.get_template(&placed.name).ok()?.source().as_ptr().addr();
        }
        let ranges = self
            .placed
            .iter()
            .map(|placed| (placed.start, placed.start + placed.edited.text.len()))
            .collect();
        let mut sink = Sink::new(ranges, mark.clone());
        environment.get_template(root).ok()?.render_captured_to(context.value(&mark), &mut sink).ok()?;
        Some(Traced { text: sink.text, pieces: sink.pieces, templates: self.placed })
    }
}

/// Lets wrapped expressions announce their values, and the formatter say when one is written. Every
/// value counts against the budget, also one that is captured and never printed.
fn announce(environment: &mut Environment<'_>, mark: &Mark, budget: &Budget) {
    let started = mark.clone();
    environment.add_function(BEGIN, move |site: usize| {
        started.start();
        site
    });
    let called = mark.clone();
    environment.add_function(MARK, move |site: usize, value: Value| {
        called.call(site);
        value
    });
    let (writing, budget) = (mark.clone(), budget.clone());
    environment.set_formatter(move |output: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value| {
        budget.spend(guard::size(value))?;
        values::check_text(value)?;
        writing.begin();
        let written = escape_formatter(output, state, value);
        // An empty value leaves its trace as well.
        let written = written.and_then(|()| output.write_str("").map_err(Into::into));
        writing.end();
        written
    });
}

/// An environment that knows the assets and nothing else. Everything that changes bytes is said here.
fn environment(
    templates: &Templates,
    context: &Context,
    options: &Options,
) -> (Environment<'static>, Mark, Budget) {
    let (mut environment, mark, budget) = BASE.with(Clone::clone);
    let assets = &templates.assets;
    environment.set_syntax(options.syntax());
    environment.set_fuel(Some(templates.fuel + FUEL_PER_ITEM * context.items() as u64));
    let (known, aliases) = (Arc::clone(assets), options.aliases.clone());
    environment.set_path_join_callback(move |name, parent| join(name, parent, &known, &aliases));
    let known = Arc::clone(assets);
    environment.set_loader(move |name| load(name, &known));
    (environment, mark, budget)
}

thread_local! {
    /// What every environment of a thread begins with: making a hundred functions takes longer than most renders. Renders
    /// of a thread come one after the other, so they share the mark and the budget, and each begins with fresh ones.
    static BASE: (Environment<'static>, Mark, Budget) = base();
}

fn base() -> (Environment<'static>, Mark, Budget) {
    let (mut environment, mark, budget) = (Environment::new(), Mark::default(), Budget::default());
    guard::install(&mut environment, &budget);
    announce(&mut environment, &mark, &budget);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_recursion_limit(JINJA_DEPTH_MAX);
    environment.set_debug(true);
    // It prints what is inside minijinja.
    environment.remove_global("debug");
    let xml_budget = budget.clone();
    environment.add_filter("xml", move |text: &str| xml_budget.spend(text.len()).map(|()| items::xml(text)));
    environment.add_test("absent", |value: &Value| values::is_absent(value));
    environment.add_test("present", |value: &Value| values::is_absent(value).map(|is_absent| !is_absent));
    (environment, mark, budget)
}

/// Lets templates ask for files, of which this context knows some.
fn add_file_function(environment: &mut Environment<'_>, context: &Context) {
    if let Some(file) = context.file() {
        environment.add_function("file", move |path: &str| file(path));
    }
}

/// The qualified name of an include. A name that is none travels on, to be refused with its reason.
fn join<'s>(
    name: &'s str,
    parent: &str,
    assets: &Assets,
    aliases: &BTreeMap<String, String>,
) -> Cow<'s, str> {
    let parent = assets.find(parent).and_then(Result::ok).and_then(|asset| asset.reference.as_ref());
    match reference::parse(name, parent, aliases) {
        Ok(reference) => Cow::Owned(reference.to_string()),
        Err(why) => Cow::Owned(format!("{BAD_REFERENCE}`{name}` is no reference: {why}")),
    }
}

fn load(name: &str, assets: &Assets) -> Result<Option<String>, minijinja::Error> {
    if let Some(why) = name.strip_prefix(BAD_REFERENCE) {
        return Err(minijinja::Error::new(ErrorKind::BadInclude, why.to_owned()));
    }
    match assets.find(name) {
        Some(Ok(asset)) => Ok(Some(asset.text.clone())),
        Some(Err(why)) => Err(minijinja::Error::new(ErrorKind::TemplateNotFound, why.to_owned())),
        None => Err(minijinja::Error::new(ErrorKind::InvalidOperation, format!("{WANTED_ASSET}{name}"))),
    }
}
