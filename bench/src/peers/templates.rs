//! Template engines.

use std::collections::BTreeMap;

use handlebars::Handlebars;
use tera::{Context, Tera};

use crate::fixture::templates::{HANDLEBARS, JINJA, template};

/// Engines with the template already compiled.
#[derive(Debug)]
pub struct Engines {
    tera: Tera,
    context: Context,
    handlebars: Handlebars<'static>,
    values: BTreeMap<String, String>,
}

impl Engines {
    /// Compiles the template of a size, and checks that every engine prints what proem does.
    #[must_use]
    pub fn new(bytes: usize, values: &BTreeMap<String, String>, expected: &str) -> Self {
        let mut tera = Tera::default();
        tera.add_raw_template("one", &template(&JINJA, bytes)).expect("tera takes the template");
        let mut handlebars = new_handlebars();
        handlebars
            .register_template_string("one", template(&HANDLEBARS, bytes))
            .expect("handlebars takes it");
        let context = Context::from_serialize(values).expect("a map is a context");
        let engines = Self { tera, context, handlebars, values: values.clone() };
        assert_eq!(engines.tera(), expected, "tera prints the same");
        assert_eq!(engines.handlebars(), expected, "handlebars prints the same");
        engines
    }

    /// Renders with tera.
    #[must_use]
    pub fn tera(&self) -> String {
        self.tera.render("one", &self.context).expect("tera renders")
    }

    /// Renders with handlebars.
    #[must_use]
    pub fn handlebars(&self) -> String {
        self.handlebars.render("one", &self.values).expect("handlebars renders")
    }
}

/// Parses and renders with handlebars.
#[must_use]
pub fn handlebars_cold(source: &str, values: &BTreeMap<String, String>) -> String {
    new_handlebars().render_template(source, values).expect("handlebars renders")
}

fn new_handlebars() -> Handlebars<'static> {
    let mut handlebars = Handlebars::new();
    handlebars.register_escape_fn(handlebars::no_escape);
    handlebars
}
