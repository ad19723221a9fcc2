//! The least that Jinja with provenance is: each value passes a filter that is told which one it is, each piece of the
//! output gets its span, and the whole is hashed once.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;

use minijinja::machinery;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Template, Value};
use proem_core::digest::Digest;
use proem_core::rendered::{Rendered, Span};
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::Place;

thread_local! {
    /// The number of the value that is written next.
    static NEXT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The template with a filter behind each value.
pub(crate) fn marked(jinja: &str) -> String {
    let mut parts = jinja.split(" }}");
    let first = parts.next().unwrap_or_default().to_owned();
    parts
        .zip(0..)
        .fold(first, |text, (part, number): (&str, usize)| format!("{text}|mark({number}) }}}}{part}"))
}

/// An environment with that filter.
pub(crate) fn marking() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.add_filter("mark", |value: Value, number: usize| {
        NEXT.set(Some(number));
        value
    });
    environment
}

/// What pieces come from. Where they stand is known beforehand: the same for all.
pub(crate) struct Sources {
    text: Source,
    values: Vec<Source>,
    context: Value,
}

impl Sources {
    pub(crate) fn new(values: &BTreeMap<String, String>) -> Self {
        let place = Some(Place { line: 1, column: 1 });
        let variable = |key: &String| Source::Variable { key: key.as_str().into(), path: None };
        Self {
            text: Source::Request { field: "template".into(), place },
            values: values.keys().map(variable).collect(),
            context: Value::from(values.clone()),
        }
    }

    /// Renders a marked template.
    pub(crate) fn render(&self, marked: &Template<'_, '_>) -> (Rendered, Digest) {
        let mut sink =
            Sink { sources: self, text: Vec::with_capacity(12 << 10), spans: Vec::with_capacity(128) };
        marked.render_captured_to(&self.context, &mut sink).expect("it renders");
        let text = String::from_utf8(sink.text).expect("it is text");
        let digest = Digest::new(text.as_bytes());
        (Rendered::restore(text, sink.spans).expect("the spans cover it"), digest)
    }

    /// Reads and renders a template: once to find its values, and once with the filter behind each.
    pub(crate) fn read_and_render(&self, jinja: &str, marked: &str) -> (Rendered, Digest) {
        black_box(machinery::parse(black_box(jinja), "t", SyntaxConfig::default()).is_ok());
        let environment = marking();
        self.render(&environment.template_from_str(black_box(marked)).expect("it is Jinja"))
    }
}

struct Sink<'s> {
    sources: &'s Sources,
    text: Vec<u8>,
    spans: Vec<Span>,
}

impl io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let start = self.text.len();
        self.text.extend_from_slice(bytes);
        let Sources { text, values, .. } = self.sources;
        let (source, template) = match NEXT.take() {
            Some(number) => (values[number % values.len()].clone(), Some(text.clone())),
            None => (text.clone(), None),
        };
        let bytes_here = start..self.text.len();
        let (included_from, stability) = (Vec::new(), Stability::Session);
        self.spans.push(Span { bytes: bytes_here, source, template, included_from, stability });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
