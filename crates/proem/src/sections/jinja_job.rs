//! Renders Jinja templates: loads their includes, observes the facts they read, and renders again.

use std::collections::BTreeSet;
use std::sync::Arc;

use proem_core::fact::Facts;
use proem_core::limit::{ASSETS_BYTES_MAX, ASSETS_MAX};
use proem_core::note::{Code, Note, Severity};
use proem_core::rendered::Rendered;
use proem_core::source::Source;

use crate::discover::libraries::{self, Libraries, MissingAsset};
use crate::error::{Error, TemplateError, TemplateErrorKind};
use crate::jinja::reference::{Reference, ReferenceError};
use crate::jinja::{self, Asset, Assets, Context, Options, Renderer, Stop, Wish};
use crate::observe::deadline;
use crate::request::caller::Author;
use crate::sections::resolver::Resolver;
use crate::sections::text_policy::{Treatment, is_of_file};

/// A template on its way to text.
pub(crate) struct Job<'j> {
    /// The template's name for messages: its reference, or a description.
    pub(crate) name: String,
    pub(crate) asset: Asset,
    pub(crate) author: Author,
    pub(crate) context: Context,
    pub(crate) options: &'j Options,
    pub(crate) libraries: &'j Libraries,
    /// The text policy for assets that come from files.
    pub(crate) treatment: Option<Treatment>,
}

/// Checks a template and everything that it includes by name, dead branches too.
pub(crate) fn check(job: &Job<'_>) -> Result<(Assets, Author, Vec<Note>), Error> {
    let mut loading = Loading {
        job,
        assets: Assets::default(),
        author: job.author,
        loaded: 0,
        bytes: 0,
        notes: Vec::new(),
    };
    loading.take(&job.name, &job.asset, &[])?;
    Ok((loading.assets, loading.author, loading.notes))
}

/// Renders a template.
pub(crate) fn render(job: &Job<'_>, resolver: &mut Resolver<'_>) -> Result<(Rendered, Vec<Note>), Error> {
    let (mut assets, mut author, mut notes) = check(job)?;
    let mut context = Arc::new(given(job, resolver));
    let mut asked: BTreeSet<String> = BTreeSet::new();
    loop {
        let mut compiled = Renderer::new(&job.name, &assets, job.options);
        let reference = loop {
            match compiled.render(&context) {
                Ok(rendered) => {
                    // The text depends on the values that it has read, not on all that were supplied.
                    for key in resolver.given().into_iter().filter(|key| context.has_read(key)) {
                        resolver.fact(key, job.author);
                    }
                    notes.extend(absences(&asked, context.facts.as_ref()));
                    return Ok((rendered, notes));
                }
                Err(Stop::Error(error)) => return Err(Error::Template(named_cycle(error, &assets, job))),
                Err(Stop::Wish(Wish::Fact(key))) => {
                    let fact = resolver.fact(&key, author);
                    Arc::make_mut(&mut context).facts.get_or_insert_default().insert(&key, fact);
                    asked.insert(key);
                }
                Err(Stop::Wish(Wish::Asset(reference))) => break reference,
            }
        };
        let bytes = assets.present().map(|(_, asset)| asset.text.len()).sum();
        let mut loading = Loading { job, assets, author, loaded: 0, bytes, notes: Vec::new() };
        loading.fetch(&reference, &[])?;
        notes.append(&mut loading.notes);
        (assets, author) = (loading.assets, loading.author);
    }
}

/// Returns the facts that templates get without a lookup. Values of the request cost nothing and bring no notes, so
/// they are supplied in advance.
fn given(job: &Job<'_>, resolver: &mut Resolver<'_>) -> Context {
    let mut context = job.context.clone();
    if let Some(facts) = &mut context.facts {
        for key in resolver.given() {
            facts.insert(key, resolver.observe(key, job.author));
        }
    }
    context
}

/// Returns a note for each requested fact that has no value.
fn absences(asked: &BTreeSet<String>, facts: Option<&Facts>) -> Vec<Note> {
    let absent = asked.iter().filter_map(|key| {
        let why = facts?.fact(key)?.value.as_ref().err()?;
        let note = Note::new(why.code(), why.severity(), format!("`{key}` is absent: {why}"));
        let note = note.with_source(Source::Variable { key: key.clone().into(), path: None });
        Some(why.hint().into_iter().fold(note, Note::with_hint))
    });
    absent.collect()
}

struct Loading<'l, 'j> {
    job: &'l Job<'j>,
    assets: Assets,
    author: Author,
    loaded: usize,
    /// The bytes of all assets.
    bytes: usize,
    notes: Vec<Note>,
}

impl Loading<'_, '_> {
    /// The error of a template that is over a limit.
    fn over(&self, message: String) -> Error {
        Error::Template(Box::new(TemplateError::new(&self.job.name, TemplateErrorKind::Limit, message)))
    }

    /// Takes an asset, and those that it includes by name.
    fn take(&mut self, name: &str, asset: &Asset, chain: &[String]) -> Result<(), Error> {
        deadline::check_clocks().map_err(|why| Error::Stopped { why })?;
        self.loaded += 1;
        self.bytes += asset.text.len();
        if self.loaded > ASSETS_MAX {
            return Err(self.over(format!("it includes more than {ASSETS_MAX} assets")));
        }
        if self.bytes > ASSETS_BYTES_MAX {
            return Err(
                self.over(format!("it and its assets have more than {ASSETS_BYTES_MAX} bytes together"))
            );
        }
        let outline = jinja::outline(name, asset, self.job.options).map_err(|mut error| {
            error.included_from = chain.to_vec();
            Error::Template(error)
        })?;
        self.assets.insert_checked(name, asset.clone(), Arc::clone(&outline));
        for include in &outline.includes {
            deadline::check().map_err(|why| Error::Stopped { why })?;
            let fail = |message: String, hint: Option<String>| {
                let mut error = TemplateError::new(name, TemplateErrorKind::Missing, message).at(
                    &asset.text,
                    &asset.origin,
                    include.offset,
                );
                error.hint = hint;
                error.included_from = chain.to_vec();
                Error::Template(Box::new(error))
            };
            let line = asset.text.get(..include.offset).map_or(1, |before| before.matches('\n').count() + 1);
            let mut chain = chain.to_vec();
            chain.insert(0, format!("{name}, line {line}"));
            match jinja::resolve(&include.name, asset, self.job.options) {
                Err(why) => return Err(fail(bad_reference(&include.name, why), Some(why.hint().into()))),
                Ok(reference) => match self.fetch(&reference, &chain)? {
                    Some(missing) if !include.ignores_missing => {
                        return Err(fail(missing.message, missing.hint));
                    }
                    Some(missing) if missing.is_unusable => {
                        self.notes.push(skipped(&missing, &asset.origin));
                    }
                    _ => {}
                },
            }
        }
        Ok(())
    }

    /// Loads an asset unless that was tried before; returns why it cannot be had.
    fn fetch(&mut self, reference: &Reference, chain: &[String]) -> Result<Option<MissingAsset>, Error> {
        let name = reference.to_string();
        match self.assets.find(&name) {
            Some(Ok(_)) => return Ok(None),
            Some(Err(why)) => {
                return Ok(Some(MissingAsset { is_unusable: false, message: why.to_owned(), hint: None }));
            }
            None => {}
        }
        match self.job.libraries.load(reference) {
            Ok(mut asset) => {
                self.author = self.author.max(libraries::author(reference.library));
                if let Some(treatment) = self.job.treatment.filter(|_| is_of_file(&asset.origin)) {
                    treatment.treat(&mut asset.text, &asset.origin, &mut self.notes)?;
                }
                self.take(&name, &asset, chain)?;
                Ok(None)
            }
            Err(missing) => {
                self.assets.insert(name, Err(missing.message.clone()));
                Ok(Some(missing))
            }
        }
    }
}

/// Notes an optional include that is there and cannot be used.
fn skipped(missing: &MissingAsset, included_by: &Source) -> Note {
    let message = format!("{}; the include that may miss it is skipped", missing.message);
    Note::new(Code::NotRegular, Severity::Warning, message).with_source(included_by.clone())
}

pub(crate) fn bad_reference(text: &str, why: ReferenceError) -> String {
    format!("`{text}` is not a reference: {why}")
}

/// Reports a cycle of includes, if a cycle is the reason for nesting too deeply.
fn named_cycle(mut error: Box<TemplateError>, assets: &Assets, job: &Job<'_>) -> Box<TemplateError> {
    if error.kind == TemplateErrorKind::Nesting
        && let Some(cycle) = cycle(&job.name, assets, job.options, &mut Vec::new())
    {
        error.message =
            format!("templates include each other in a circle, or too deeply: {}", cycle.join(" → "));
        error.hint = Some("remove one of these includes".into());
        error.included_from.clear();
        error.kind = TemplateErrorKind::Render;
    }
    error
}

/// The first circle of includes that can be reached from `name`.
fn cycle(name: &str, assets: &Assets, options: &Options, path: &mut Vec<String>) -> Option<Vec<String>> {
    if let Some(start) = path.iter().position(|open| open == name) {
        let mut circle: Vec<String> = path.get(start..)?.to_vec();
        circle.push(name.to_owned());
        return Some(circle);
    }
    let asset = assets.find(name)?.ok()?;
    path.push(name.to_owned());
    for include in &jinja::outline(name, asset, options).ok()?.includes {
        let next = jinja::resolve(&include.name, asset, options).ok()?.to_string();
        if let Some(circle) = cycle(&next, assets, options, path) {
            return Some(circle);
        }
    }
    path.pop();
    None
}
