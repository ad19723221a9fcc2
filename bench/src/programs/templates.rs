//! P1 to P4: templates against a plain copy of the output, and against other engines.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;

use proem::{Caller, Request, warm};
use proem_bench::fixture::templates::{BRACKET, JINJA, SIZES, jinja_request, label, template, value};
use proem_bench::{Options, Race, Unit, difference, report};
use proem_core::bracket::{self, Policies, Template};
use proem_core::fact::{Absence, Fact, Facts};
use proem_core::source::Source;
use proem_core::stability::Stability;

use super::noted::{Sources, marked, marking};

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
    if options.wants("P3") {
        hostile(options);
    }
    if options.wants("P4") {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        for bytes in options.sizes(&SIZES[..2], 8 << 10) {
            jinja(options, &Texts::of(bytes), folder.path());
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
    let (steps, values) = (steps(&pieces), (0..8).map(value).chain([String::new()]).collect::<Vec<_>>());
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
        .enter("copies and looks up", || {
            let mut copy = String::with_capacity(texts.output.len());
            for (text, slot) in black_box(&steps) {
                copy.push_str(text);
                copy.push_str(&values[*slot]);
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

/// Texts, each with the number of the value that follows it: the eighth stands for none.
fn steps<'t>(pieces: &[&'t str]) -> Vec<(&'t str, usize)> {
    let mut steps: Vec<(&str, usize)> = Vec::new();
    for piece in pieces {
        match ((0..8).find(|key| value(*key) == *piece), steps.last_mut()) {
            (Some(key), Some(step)) => step.1 = key,
            _ => steps.push((piece, 8)),
        }
    }
    steps
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
        .enter("finds, notes and copies", || find_note_and_copy(black_box(&texts.bracket)))
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

/// The least that reads a template before it prints: both brackets of each tag, and the text before it as a step. What the
/// tags say is not looked at, so their own bytes stand for values.
fn find_note_and_copy(source: &str) -> String {
    let mut steps: Vec<(&str, &str)> = Vec::with_capacity(source.len() / 64 + 4);
    let mut rest = source;
    while let Some((text, tag)) =
        rest.split_at_checked(memchr::memchr(b'[', rest.as_bytes()).unwrap_or(rest.len()))
        && let Some(close) = memchr::memchr(b']', tag.as_bytes())
        && let Some((tag, behind)) = tag.split_at_checked(close + 1)
    {
        steps.push((text, tag));
        rest = behind;
    }
    let mut copy = String::with_capacity(source.len());
    for (text, tag) in black_box(&steps) {
        copy.push_str(text);
        copy.push_str(tag);
    }
    copy + rest
}

/// P3. Input that makes careless parsers quadratic, at three sizes.
fn hostile(options: &Options) {
    let shapes = [
        ("`[` and nothing else", "[", "", 100_000),
        ("nested `[if]`", "[if a:b]", "[endif]", 10_000),
        ("`[a:` that one `]` closes", "[a:", "", 100_000),
    ];
    for (name, piece, close, most) in shapes {
        for count in [most / 100, most / 10, most] {
            let source = piece.repeat(count) + &close.repeat(count) + "]";
            let facts = Facts::new();
            Race::new("P3", format!("{name}, {count} times"))
                .grows(name, source.len())
                .enter("proem", || parse_and_render(black_box(&source), &facts))
                .run_short(options);
        }
    }
}

/// P4. A whole build with the template less one with an empty template: Jinja cannot be called by itself.
fn jinja(options: &Options, texts: &Texts, root: &Path) {
    let cold = format!("parse and render Jinja, {}", label(texts.bytes));
    let compiled = format!("render compiled Jinja, {}", label(texts.bytes));
    let context = minijinja::Value::from(texts.values.clone());
    let (marked, sources) = (marked(&texts.jinja), Sources::new(&texts.values));
    Race::new("P4", &cold)
        .enter("floor", || {
            let environment = minijinja::Environment::new();
            let compiled = environment.template_from_str(black_box(&texts.jinja)).expect("it is Jinja");
            compiled.render(&context).expect("it renders")
        })
        .enter("every value marked", || {
            let environment = marking();
            let compiled = environment.template_from_str(black_box(&marked)).expect("it is Jinja");
            compiled.render(&context).expect("it renders")
        })
        .enter("marked, noted and hashed", || sources.read_and_render(&texts.jinja, &marked))
        .run_short(options);
    let environment = marking();
    let template = environment.template_from_str(&texts.jinja).expect("it is Jinja");
    let with_marks = environment.template_from_str(&marked).expect("it is Jinja");
    assert_eq!(with_marks.render(&context).ok(), template.render(&context).ok(), "marks change nothing");
    assert_eq!(Some(sources.render(&with_marks).0.text()), template.render(&context).ok().as_deref());
    Race::new("P4", &compiled)
        .enter("floor", || template.render(&context).expect("it renders"))
        .enter("every value marked", || with_marks.render(&context).expect("it renders"))
        .enter("marked, noted and hashed", || sources.render(&with_marks))
        .run_short(options);
    let build = |request: &Request| proem::build(request, Caller::User).expect("it builds");
    let anew = |request: &Request| warm::without(|| build(request));
    let (whole, empty) = (jinja_request(root, &texts.jinja), jinja_request(root, "x"));
    assert_eq!(build(&whole).system(), Some(texts.output.trim_end_matches('\n')), "both print the same");
    let samples = difference(options, || anew(&whole), || anew(&empty));
    report("P4", &cold, "proem", Unit::Nanoseconds, &samples);
    let samples = difference(options, || build(&whole), || build(&empty));
    report("P4", &compiled, "proem", Unit::Nanoseconds, &samples);
}
