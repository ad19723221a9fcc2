//! Compares bracket templates with a slow, simple renderer, on generated input.
#![expect(clippy::string_slice, clippy::format_collect, reason = "a test that cannot be set up must stop")]

use std::collections::{BTreeMap, BTreeSet};

use proem_core::bracket::{self, AbsentVariable, Policies, StandaloneTags, Template, UnknownType, diagnose};
use proem_core::fact::{Absence, Fact, Facts};
use proem_core::rendered::Rendered;
use proem_core::source::Source;
use proem_core::stability::Stability;
use proptest::prelude::*;

/// Generates pieces that make complete, broken and nested tags likely.
const PIECES: [&str; 34] = [
    "[",
    "]",
    "[[",
    "]]",
    "[if a:b]",
    "[if !a:b]",
    "[if a:n]",
    "[if !a:n]",
    "[if e:e]",
    "[if u:u]",
    "[else]",
    "[endif]",
    "[a:b]",
    "[a:n]",
    "[e:e]",
    "[u:u]",
    "[ a:b ]",
    "[if\t\u{3000}a:b\u{FEFF}]",
    "[a:",
    "if ",
    "!",
    ":",
    "a:b",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\u{2028}",
    "\u{85}",
    "é",
    "🦀",
    "\\",
    "[literal:x]",
    "word",
];

fn template() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES.to_vec()).prop_map(str::to_owned);
    let any_character = any::<char>().prop_map(String::from);
    prop::collection::vec(prop_oneof![9 => piece, 1 => any_character], 0..40)
        .prop_map(|pieces| pieces.concat())
}

/// Generates values that look like templates; they must be inserted unchanged.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("V".to_owned()), template()]
}

fn facts(values: &BTreeMap<&str, Option<String>>, template: &Template<'_>) -> Facts {
    let mut facts = Facts::new();
    for key in template.wanted() {
        let fact = match (values.get(key), key.strip_prefix("literal:")) {
            (Some(Some(value)), _) => Fact::given(value.clone(), Stability::Session),
            (Some(None), _) => Fact::absent(Absence::SaidAbsent, Stability::Session),
            (None, Some(name)) => Fact::given(format!("[{name}]"), Stability::Release),
            (None, None) => Fact::absent(Absence::UnknownType, Stability::Session),
        };
        facts.insert(key, fact);
    }
    facts
}

fn render(source: &str, values: &BTreeMap<&str, Option<String>>, policies: &Policies) -> (String, Rendered) {
    let template = Template::parse_with(source, policies);
    let facts = facts(values, &template);
    let bound = bracket::bind(&template, &facts, policies).expect("no policy is `error`");
    let origin = Source::Request { field: "template".into(), place: None };
    let text = bracket::render(&template, &bound);
    assert_eq!(text.len(), bracket::rendered_bytes(&template, &bound));
    let given: BTreeSet<&str> = values.keys().copied().collect();
    let _ = diagnose::diagnose(&template, &origin, &given, policies);
    let _ = diagnose::absences(&template, &origin, &facts);
    (text, bracket::render_with_spans(&template, &bound, &origin, Stability::Release))
}

fn policies(unknown_type: UnknownType, standalone_tags: StandaloneTags) -> Policies {
    Policies { unknown_type, absent: AbsentVariable::Blank, standalone_tags }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Row M1.
    #[test]
    fn output_equals_the_reference_renderer(source in template(), inserted in value()) {
        let values = BTreeMap::from([("a:b", Some(inserted)), ("a:n", None), ("e:e", Some(String::new()))]);
        for unknown_type in [UnknownType::Blank, UnknownType::Literal] {
            for standalone_tags in [StandaloneTags::Keep, StandaloneTags::Trim] {
                let policies = policies(unknown_type, standalone_tags);
                let expected = crate::reference::render(&source, &values, &policies);
                prop_assert_eq!(render(&source, &values, &policies).0, expected, "{:?}", policies);
            }
        }
    }

    #[test]
    fn spans_cover_the_output_without_gap_or_overlap(source in template(), inserted in value()) {
        let values = BTreeMap::from([("a:b", Some(inserted)), ("a:n", None), ("e:e", Some(String::new()))]);
        let (text, rendered) = render(&source, &values, &Policies::SEED);
        prop_assert_eq!(rendered.text(), &text);
        let mut next = 0;
        for span in rendered.spans() {
            prop_assert_eq!(span.bytes.start, next);
            prop_assert!(span.bytes.end >= span.bytes.start);
            next = span.bytes.end;
        }
        prop_assert_eq!(next, text.len());
    }

    #[test]
    fn spans_of_text_point_to_that_text(source in template()) {
        let values = BTreeMap::from([("a:b", Some("V".to_owned()))]);
        let (text, rendered) = render(&source, &values, &Policies::SEED);
        let lines: Vec<&str> = source.split('\n').collect();
        for span in rendered.spans() {
            let place = span.template.as_ref().unwrap_or(&span.source).place().expect("templates have places");
            let line: String = lines[place.line - 1].chars().skip(place.column - 1).collect();
            let first = text[span.bytes.clone()].chars().next();
            let written = line.chars().next().unwrap_or('\n');
            prop_assert!(span.template.is_some() || Some(written) == first, "{place:?} in {source:?}");
        }
    }

    #[test]
    fn any_text_renders(source in any::<String>()) {
        render(&source, &BTreeMap::new(), &Policies::SEED);
    }
}

/// Row M2: each of these would take hours if any part were quadratic.
#[test]
fn hostile_templates_of_a_mebibyte_render() {
    let fill = |piece: &str| piece.repeat((1 << 20) / piece.len());
    let sources = [
        fill("["),
        fill("[") + "]",
        fill("]"),
        fill("[if a:b]"),
        fill("[if a:b][else]"),
        fill("[if a:b]") + &fill("[endif]"),
        fill("[a:") + "\n]",
        fill("[a:") + &fill(" ") + "\n]",
        fill("[ ") + "]",
        fill("[if ") + "]",
        fill("[if !") + "]",
        fill("[") + &fill(" ") + "]",
        fill("[else") + &fill(" ") + "]",
        (0..100_000).map(|n| format!("[x:{n}]")).collect(),
    ];
    for source in sources {
        for standalone_tags in [StandaloneTags::Keep, StandaloneTags::Trim] {
            render(&source, &BTreeMap::new(), &policies(UnknownType::Literal, standalone_tags));
        }
    }
}
