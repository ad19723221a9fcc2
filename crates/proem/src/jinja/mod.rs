//! Jinja templates: assets that include each other, rendered by minijinja, with the origin of every byte.
//!
//! This module does not observe anything. A render that lacks an asset or a fact names it as a [`Wish`]; the caller
//! fulfils it and renders again. The module lies outside the core only because it must implement `std::io::Write` to
//! receive minijinja's output.

mod asset;
mod compiled;
mod cost;
mod edit;
mod ending;
mod explain;
mod items;
pub(crate) mod reference;
mod syntax;
mod trace;
mod values;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{ArgType, Value};
use minijinja::{AutoEscape, Environment, ErrorKind, Output, State, UndefinedBehavior, escape_formatter};
use proem_core::limit::JINJA_DEPTH_MAX;

pub(crate) use asset::{Asset, Assets};
pub(crate) use compiled::Renderer;
pub(crate) use items::{Field, Item};
pub(crate) use syntax::Outline;
pub(crate) use values::{Binding, Context};

use crate::error::TemplateError;
use cost::guard::Budget;
use ending::Ending;
use reference::Reference;
use trace::{BEGIN, MARK};

/// An asset or a fact that a render lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A fact, by its key.
    Fact(String),
    /// An asset, by its reference.
    Asset(Reference),
}

/// The reason why a render gave no text.
#[derive(Debug)]
pub(crate) enum Stop {
    Wish(Wish),
    Error(Box<TemplateError>),
}

/// The Jinja settings of a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) trim_blocks: bool,
    pub(crate) lstrip_blocks: bool,
    /// Alternative names of the libraries' prefixes.
    pub(crate) aliases: BTreeMap<String, String>,
}

impl Options {
    fn syntax(&self) -> SyntaxConfig {
        let mut builder = SyntaxConfig::builder();
        builder.trim_blocks(self.trim_blocks).lstrip_blocks(self.lstrip_blocks).keep_trailing_newline(false);
        builder.build().unwrap_or_default()
    }
}

/// The prefix of a name that replaces an invalid reference.
const BAD_REFERENCE: &str = "\u{0}bad reference ";

/// Checks the syntax of an asset and outlines it.
pub(crate) fn outline(
    name: &str,
    asset: &Asset,
    options: &Options,
) -> Result<Arc<Outline>, Box<TemplateError>> {
    syntax::outline(&asset.text, name, &options.syntax()).map(Arc::new).map_err(|error| {
        let mut assets = Assets::default();
        assets.insert(name.to_owned(), Ok(asset.clone()));
        let explained = explain::explain(error, &assets, &|_, offset| offset, &[]);
        // Errors found before minijinja parses the template have no name.
        let template =
            if explained.template.is_empty() { name.to_owned() } else { explained.template.clone() };
        Box::new(TemplateError { template, ..explained })
    })
}

/// Returns the asset that an include names, as a qualified reference.
pub(crate) fn resolve(
    include: &str,
    parent: &Asset,
    options: &Options,
) -> Result<Reference, reference::ReferenceError> {
    reference::parse(include, parent.reference.as_ref(), &options.aliases)
}

/// Makes wrapped expressions announce their values, and the formatter report when one is written. Every value is
/// charged, also one that is captured and never printed.
fn announce(environment: &mut Environment<'_>, budget: &Budget) {
    environment.add_filter(BEGIN, |site: usize| {
        trace::last_lookup::start();
        site
    });
    environment.add_filter(MARK, |site: usize, value: Value| {
        trace::last_lookup::call(site);
        value
    });
    let budget = budget.clone();
    environment.set_formatter(move |output: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value| {
        budget.spend(cost::value_size::size(value))?;
        values::check_text(value)?;
        trace::last_lookup::begin();
        let written = write(output, state, value);
        trace::last_lookup::end();
        written
    });
}

/// Writes a value as Jinja does. An empty value is written as well, so that it is traced.
fn write(output: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    match value.as_str() {
        // Nearly every value is a text that stays as it is.
        Some(text) if *state.auto_escape() == AutoEscape::None => Ok(output.write_str(text)?),
        _ => {
            escape_formatter(output, state, value)?;
            Ok(output.write_str("")?)
        }
    }
}

/// Makes an environment that contains only the assets. All settings that affect bytes are here.
fn environment(assets: &Arc<Assets>, options: &Options) -> (Environment<'static>, Budget) {
    let (mut environment, budget) = BASE.with(Clone::clone);
    environment.set_syntax(options.syntax());
    let (known, aliases) = (Arc::clone(assets), options.aliases.clone());
    environment.set_path_join_callback(move |name, parent| join(name, parent, &known, &aliases));
    let known = Arc::clone(assets);
    environment.set_loader(move |name| load(name, &known));
    (environment, budget)
}

thread_local! {
    /// The initial environment of a thread: making a hundred functions takes longer than most renders. Renders of a
    /// thread come one after the other, so they share the budget, which each render resets.
    static BASE: (Environment<'static>, Budget) = base();
}

fn base() -> (Environment<'static>, Budget) {
    let (mut environment, budget) = (Environment::new(), Budget::default());
    cost::guard::install(&mut environment, &budget);
    cost::filters::install(&mut environment, &budget);
    announce(&mut environment, &budget);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_recursion_limit(JINJA_DEPTH_MAX);
    environment.set_debug(true);
    // It prints internals of minijinja.
    environment.remove_global("debug");
    let xml_budget = budget.clone();
    environment.add_filter("xml", move |value: Value| xml(value, &xml_budget));
    environment.add_test("absent", |value: &Value| values::is_absent(value));
    environment.add_test("present", |value: &Value| values::is_absent(value).map(|is_absent| !is_absent));
    environment.add_test("failed", |value: &Value| values::is_failed(value));
    environment.add_test("timed_out", |value: &Value| values::is_timed_out(value));
    (environment, budget)
}

/// Implements the filter `xml`. Returns a text without special characters unchanged.
fn xml(value: Value, budget: &Budget) -> Result<Value, minijinja::Error> {
    let text = <&str>::from_value(Some(&value))?;
    budget.spend(text.len())?;
    match items::xml(text) {
        Cow::Borrowed(_) if !value.is_safe() => Ok(value),
        escaped => Ok(Value::from(escaped.into_owned())),
    }
}

/// Returns the qualified name of an include. An invalid name is passed on, to be refused with its reason.
fn join<'s>(
    name: &'s str,
    parent: &str,
    assets: &Assets,
    aliases: &BTreeMap<String, String>,
) -> Cow<'s, str> {
    let parent = assets.find(parent).and_then(Result::ok).and_then(|asset| asset.reference.as_ref());
    match reference::parse(name, parent, aliases) {
        Ok(reference) => Cow::Owned(reference.to_string()),
        Err(why) => Cow::Owned(format!("{BAD_REFERENCE}`{name}` is not a reference: {why}")),
    }
}

/// The work that the search for an asset is charged.
const LOAD_WORK: usize = 64;

fn load(name: &str, assets: &Assets) -> Result<Option<String>, minijinja::Error> {
    if let Some(why) = name.strip_prefix(BAD_REFERENCE) {
        return Err(minijinja::Error::new(ErrorKind::BadInclude, why.to_owned()));
    }
    // A template may name any number of missing assets.
    cost::value_size::charge(LOAD_WORK)?;
    match assets.find(name) {
        Some(Ok(asset)) => Ok(Some(asset.text.clone())),
        Some(Err(why)) => Err(minijinja::Error::new(ErrorKind::TemplateNotFound, why.to_owned())),
        None => Err(Ending::WantedAsset(name.to_owned()).into()),
    }
}
