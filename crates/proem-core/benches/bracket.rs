//! Parse and render of bracket templates against a plain copy of the output and against minijinja,
//! side by side in one run. Prints a Markdown table of ratios; times are minima over many batches.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::cast_precision_loss,
    reason = "a benchmark prints numbers"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use proem_core::bracket::{self, Policies, Template};
use proem_core::fact::{Absence, Fact, Facts};
use proem_core::source::Source;
use proem_core::stability::Stability;

const SENTENCE: &str =
    "Prefer small, reviewable changes; explain what you did and why, and name every file by its path. ";

/// One paragraph with the tags that real templates have: two insertions and a condition.
fn paragraph(jinja: bool, number: usize) -> String {
    let key = number % 8;
    let (open, middle, close, first, second) = if jinja {
        (
            format!("{{% if k{key} is defined %}}"),
            "{% else %}".to_owned(),
            "{% endif %}".to_owned(),
            format!("{{{{ k{key} }}}}"),
            format!("{{{{ k{} }}}}", (key + 1) % 8),
        )
    } else {
        (
            format!("[if k:{key}]"),
            "[else]".to_owned(),
            "[endif]".to_owned(),
            format!("[k:{key}]"),
            format!("[k:{}]", (key + 1) % 8),
        )
    };
    format!(
        "{SENTENCE}{open}On {first}.{middle}Nowhere.{close} {SENTENCE}\nIn {second}:\n{SENTENCE}{SENTENCE}\n"
    )
}

fn template(jinja: bool, bytes: usize) -> String {
    let mut text = String::new();
    let paragraphs = bytes / paragraph(false, 0).len();
    for number in 0..paragraphs {
        text.push_str(&paragraph(jinja, number));
    }
    text
}

fn value(key: usize) -> String {
    format!("value number {key}")
}

fn facts(template: &Template<'_>) -> Facts {
    let mut facts = Facts::new();
    for key in template.wanted() {
        let number = key.split_once(':').and_then(|(_, number)| number.parse().ok());
        facts.insert(
            key,
            number.map_or_else(
                || Fact::absent(Absence::NotGiven, Stability::Session),
                |number| Fact::given(value(number), Stability::Session),
            ),
        );
    }
    facts
}

/// The least time of one call, over alternating batches of all candidates.
fn race(candidates: &mut [(&str, &mut dyn FnMut())]) -> Vec<f64> {
    let rounds: u32 =
        std::env::var("PROEM_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let calls: Vec<u32> = candidates.iter_mut().map(|(_, call)| calls_per_batch(call)).collect();
    let mut least = vec![f64::INFINITY; candidates.len()];
    for _ in 0..rounds {
        for (index, (_, call)) in candidates.iter_mut().enumerate() {
            let start = Instant::now();
            for _ in 0..calls[index] {
                call();
            }
            let each = start.elapsed().as_nanos() as f64 / f64::from(calls[index]);
            least[index] = least[index].min(each);
        }
    }
    least
}

/// So many calls that a batch takes about 200 µs.
fn calls_per_batch(call: &mut dyn FnMut()) -> u32 {
    let mut calls = 1;
    loop {
        let start = Instant::now();
        for _ in 0..calls {
            call();
        }
        if start.elapsed().as_micros() >= 200 || calls >= 1 << 16 {
            return calls;
        }
        calls *= 2;
    }
}

fn row(what: &str, floor: f64, ours: f64, peer: f64, goal: &str) {
    println!(
        "| {what} | {:.2} µs | {:.2} µs | {:.2}× | {:.2} µs | {:.1}× | {goal} |",
        floor / 1e3,
        ours / 1e3,
        ours / floor,
        peer / 1e3,
        peer / ours
    );
}

fn measure(bytes: usize, label: &str) -> (f64, usize) {
    let source = template(false, bytes);
    let parsed = Template::parse(&source);
    let facts = facts(&parsed);
    let bound = bracket::bind(&parsed, &facts, &Policies::SEED).unwrap();
    let output = bracket::render(&parsed, &bound);

    let jinja_source = template(true, bytes);
    let context: BTreeMap<String, String> = (0..8).map(|key| (format!("k{key}"), value(key))).collect();
    let environment = minijinja::Environment::new();
    let compiled = environment.template_from_str(&jinja_source).unwrap();
    let context = minijinja::Value::from(context);
    assert!(compiled.render(&context).unwrap() + "\n" == output, "both engines print the same");

    // The floor copies what any renderer has to copy, piece by piece, and decides nothing.
    let origin = Source::Request { field: "template".into(), place: None };
    let spans = bracket::render_with_spans(&parsed, &bound, &origin, Stability::Release);
    let segments: Vec<&str> = spans.spans().iter().map(|span| &output[span.bytes.clone()]).collect();
    let rendered = race(&mut [
        ("copy", &mut || {
            let mut copy = String::with_capacity(output.len());
            for segment in black_box(&segments) {
                copy.push_str(segment);
            }
            black_box(copy);
        }),
        ("ours", &mut || drop(black_box(bracket::render(black_box(&parsed), &bound)))),
        ("minijinja", &mut || drop(black_box(compiled.render(black_box(&context)).unwrap()))),
    ]);
    row(&format!("render compiled, {label}"), rendered[0], rendered[1], rendered[2], "≤ 1.3× the copy");

    let cold = race(&mut [
        ("scan and copy", &mut || {
            let tags = memchr::memchr2_iter(b'[', b']', black_box(&source).as_bytes()).count();
            black_box(tags);
            black_box(output.clone());
        }),
        ("ours", &mut || {
            let parsed = Template::parse(black_box(&source));
            let bound = bracket::bind(&parsed, &facts, &Policies::SEED).unwrap();
            drop(black_box(bracket::render(&parsed, &bound)));
        }),
        ("minijinja", &mut || {
            let environment = minijinja::Environment::new();
            let compiled = environment.template_from_str(black_box(&jinja_source)).unwrap();
            drop(black_box(compiled.render(&context).unwrap()));
        }),
    ]);
    row(&format!("parse and render, {label}"), cold[0], cold[1], cold[2], "minijinja ≥ 15× ours");
    (cold[1], source.len())
}

/// Time per byte at two sizes: 1 means linear.
fn growth(what: &str, piece: &str, close: &str, counts: [usize; 2]) {
    let sources = counts.map(|count| piece.repeat(count) + &close.repeat(count));
    let facts = Facts::new();
    let times = sources.each_ref().map(|source| {
        race(&mut [("ours", &mut || {
            let parsed = Template::parse(black_box(source));
            let bound = bracket::bind(&parsed, &facts, &Policies::SEED).unwrap();
            drop(black_box(bracket::render(&parsed, &bound)));
        })])[0]
    });
    let ratio = (times[1] / sources[1].len() as f64) / (times[0] / sources[0].len() as f64);
    println!("| {what} | {} → {} | {ratio:.2}× | ≤ 1.1× |", counts[0], counts[1]);
}

fn main() {
    println!("| what | floor | proem | proem / floor | minijinja | minijinja / proem | goal |");
    println!("|---|---|---|---|---|---|---|");
    let small = measure(8 << 10, "8 KB");
    let large = measure(200 << 10, "200 KB");
    println!();
    println!("| growth of parse and render | size | time per byte, large / small | goal |");
    println!("|---|---|---|---|");
    let ratio = (large.0 / large.1 as f64) / (small.0 / small.1 as f64);
    println!("| a real template | 8 KB → 200 KB | {ratio:.2}× | ≤ 1.1× |");
    growth("`[` and nothing else", "[", "", [10_000, 100_000]);
    growth("nested `[if]`", "[if a:b]", "[endif]", [1_000, 10_000]);
    growth("`[a:` that one `]` closes", "[a:", "", [10_000, 100_000]);
}
