//! P1 and P2: templates against a plain copy of the output, and against other engines.

use std::collections::BTreeMap;
use std::hint::black_box;

use proem_bench::fixture::templates::{BRACKET, JINJA, SIZES, label, template, value};
use proem_bench::{Options, Race};
use proem_core::bracket::{self, Policies, Template};
use proem_core::fact::{Absence, Fact, Facts};
use proem_core::source::Source;
use proem_core::stability::Stability;

pub(crate) fn run(options: &Options) {
    for bytes in options.sizes(&SIZES, 200 << 10) {
        let texts = Texts::of(bytes);
        if options.wants("P1") {
            render(options, &texts);
        }
        if options.wants("P2") {
            cold(options, &texts);
        }
    }
}

/// The template in two syntaxes, and what both must give.
struct Texts {
    bytes: usize,
    bracket: String,
    jinja: String,
    values: BTreeMap<String, String>,
    facts: Facts,
    output: String,
}

impl Texts {
    fn of(bytes: usize) -> Self {
        let (bracket, jinja) = (template(&BRACKET, bytes), template(&JINJA, bytes));
        let parsed = Template::parse(&bracket);
        let facts = facts(&parsed);
        let output = parse_and_render(&bracket, &facts);
        let values = (0..8).map(|key| (format!("k{key}"), value(key))).collect();
        Self { bytes, bracket, jinja, values, facts, output }
    }
}

fn facts(template: &Template<'_>) -> Facts {
    let mut facts = Facts::new();
    for key in template.wanted() {
        let number = key.split_once(':').and_then(|(_, number)| number.parse().ok());
        let absent = || Fact::absent(Absence::NotGiven, Stability::Session);
        facts
            .insert(key, number.map_or_else(absent, |number| Fact::given(value(number), Stability::Session)));
    }
    facts
}

fn parse_and_render(source: &str, facts: &Facts) -> String {
    let parsed = Template::parse(source);
    let bound = bracket::bind(&parsed, facts, &Policies::SEED).expect("nothing is refused");
    bracket::render(&parsed, &bound)
}

/// P1. The floor copies the very same pieces into one fresh buffer and decides nothing.
fn render(options: &Options, texts: &Texts) {
    let parsed = Template::parse(&texts.bracket);
    let bound = bracket::bind(&parsed, &texts.facts, &Policies::SEED).expect("nothing is refused");
    let origin = Source::Request { field: "template".into(), place: None };
    let spans = bracket::render_with_spans(&parsed, &bound, &origin, Stability::Release);
    let pieces: Vec<&str> =
        spans.spans().iter().filter_map(|span| texts.output.get(span.bytes.clone())).collect();
    assert_eq!(pieces.concat(), texts.output, "the pieces are all of it");
    let environment = minijinja::Environment::new();
    let compiled = environment.template_from_str(&texts.jinja).expect("the template is Jinja");
    let context = minijinja::Value::from(texts.values.clone());
    assert_eq!(compiled.render(&context).expect("it renders") + "\n", texts.output, "both print the same");
    let race = Race::new("P1", format!("render a compiled template, {}", label(texts.bytes)))
        .grows("render", texts.bracket.len())
        .enter("floor", || {
            let mut copy = String::with_capacity(texts.output.len());
            for piece in black_box(&pieces) {
                copy.push_str(piece);
            }
            copy
        })
        .enter("proem", || bracket::render(black_box(&parsed), &bound))
        .enter("minijinja", || compiled.render(black_box(&context)).expect("it renders"));
    #[cfg(feature = "peers")]
    let engines = proem_bench::peers::templates::Engines::new(texts.bytes, &texts.values, &texts.output);
    #[cfg(feature = "peers")]
    let race = race.enter("tera", || engines.tera()).enter("handlebars", || engines.handlebars());
    race.run_short(options);
}

/// P2. The floor finds every bracket and copies the output once.
fn cold(options: &Options, texts: &Texts) {
    let context = minijinja::Value::from(texts.values.clone());
    let race = Race::new("P2", format!("parse and render, {}", label(texts.bytes)))
        .grows("parse and render", texts.bracket.len())
        .enter("floor", || {
            black_box(memchr::memchr2_iter(b'[', b']', black_box(&texts.bracket).as_bytes()).count());
            texts.output.clone()
        })
        .enter("proem", || parse_and_render(black_box(&texts.bracket), &texts.facts))
        .enter("minijinja", || {
            let environment = minijinja::Environment::new();
            let compiled = environment.template_from_str(black_box(&texts.jinja)).expect("it is Jinja");
            compiled.render(&context).expect("it renders")
        });
    #[cfg(feature = "peers")]
    let source = template(&proem_bench::fixture::templates::HANDLEBARS, texts.bytes);
    // Its parser takes seconds for more.
    #[cfg(feature = "peers")]
    let race = if texts.bytes > 8 << 10 {
        race
    } else {
        race.enter("handlebars", || {
            proem_bench::peers::templates::handlebars_cold(black_box(&source), &texts.values)
        })
    };
    race.run_short(options);
}
