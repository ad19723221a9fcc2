//! The comparison against the slow one, on random prompts and on shapes that make a careless algorithm slow.

use std::collections::BTreeMap;

use proem_core::carrier::Carrier;
use proem_core::rendered::Span;
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::Place;
use proptest::prelude::*;

use super::snapshot::{CarrierText, Snapshot, ToolSet};
use super::{compare, reference};

/// Texts, few, so that different pieces say the same; one ends as a file does that is cut.
const TEXTS: [&str; 9] =
    ["", "one\n", "one\r\n", "one\ntwo\n", "\u{feff}one\n", "one  \n", "é", "è one", "one\n... [truncated]"];

const PATHS: [&str; 6] = ["/a", "/a/b", "/a/b/c", "/ab", "/d", "/a/e"];

/// What one run of bytes is.
#[derive(Debug, Clone, PartialEq)]
struct Piece {
    source: usize,
    text: usize,
    line: usize,
    is_inserted: bool,
    begins_section: bool,
    is_volatile: bool,
}

fn piece() -> impl Strategy<Value = Piece> {
    (0..13_usize, 0..TEXTS.len(), 0..3_usize, any::<bool>(), prop::bool::weighted(0.3), any::<bool>())
        .prop_map(|(source, text, line, is_inserted, begins_section, is_volatile)| Piece {
            source,
            text,
            line,
            is_inserted,
            begins_section,
            is_volatile,
        })
}

fn source(piece: &Piece) -> Source {
    let place = (piece.line > 0).then_some(Place { line: piece.line, column: 1 });
    let path = |index: usize| PATHS[index].to_owned();
    match piece.source {
        index @ 0..=3 => Source::File { path: path(index).into(), place },
        4 => Source::Variable { key: "clock".into(), path: None },
        5 => Source::Variable { key: "file:d".into(), path: Some(path(4).into()) },
        6 => Source::BuiltIn { name: "base".into(), place },
        7 => Source::Request { field: "template".into(), place },
        8 => Source::Pack { path: "/pack".into(), key: "rules".into(), place },
        9 => Source::Profile { profile: "own".into(), key: "section.a.before".into() },
        10 => Source::Profile { profile: "own".into(), key: "section.a.cut".into() },
        11 => Source::Profile { profile: "own".into(), key: "section.a.template".into() },
        _ => Source::Hook { name: "hook".into() },
    }
}

fn snapshot(pieces: &[Piece], used: &[bool]) -> Snapshot {
    let (mut text, mut spans, mut sections) = (String::new(), Vec::new(), Vec::new());
    let mut begin = 0;
    for piece in pieces {
        if piece.begins_section && begin < text.len() {
            sections.push((format!("s{}", sections.len() % 4), begin..text.len()));
            begin = text.len();
        }
        let start = text.len();
        text.push_str(TEXTS[piece.text]);
        spans.push(Span {
            bytes: start..text.len(),
            source: source(piece),
            template: piece.is_inserted.then(|| Source::BuiltIn { name: "base".into(), place: None }),
            included_from: Vec::new(),
            stability: if piece.is_volatile { Stability::Turn } else { Stability::Project },
        });
    }
    // What lies behind the last section belongs to none.
    let considered = PATHS.iter().zip(used);
    let outcome = |is_used: bool| if is_used { "used" } else { "missing" }.to_owned();
    let considered = considered.map(|(path, is_used)| ((*path).to_owned(), outcome(*is_used)));
    Snapshot {
        name: "one".into(),
        profile: "own".into(),
        engine: None,
        model: None,
        tools: ToolSet::Known { tools: Vec::new(), digest: String::new() },
        carriers: vec![CarrierText { carrier: Carrier::System, text, spans, sections }],
        considered: considered.collect::<BTreeMap<_, _>>(),
    }
}

/// An edit of a list of pieces.
#[derive(Debug, Clone)]
enum Edit {
    Remove(prop::sample::Index),
    Insert(prop::sample::Index, Piece),
    Say(prop::sample::Index, usize),
    Move(prop::sample::Index, prop::sample::Index),
    Turn,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        3 => any::<prop::sample::Index>().prop_map(Edit::Remove),
        3 => (any::<prop::sample::Index>(), piece()).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        3 => (any::<prop::sample::Index>(), 0..TEXTS.len()).prop_map(|(at, text)| Edit::Say(at, text)),
        2 => (any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(|(a, b)| Edit::Move(a, b)),
        1 => Just(Edit::Turn),
    ]
}

fn edited(pieces: &[Piece], edits: &[Edit]) -> Vec<Piece> {
    let mut pieces = pieces.to_vec();
    for edit in edits {
        let count = pieces.len();
        match edit {
            Edit::Insert(at, piece) => pieces.insert(at.index(count + 1), piece.clone()),
            Edit::Turn => pieces.reverse(),
            _ if count == 0 => {}
            Edit::Remove(at) => drop(pieces.remove(at.index(count))),
            Edit::Say(at, text) => pieces[at.index(count)].text = *text,
            Edit::Move(a, b) => pieces.swap(a.index(count), b.index(count)),
        }
    }
    pieces
}

fn is_equal_to_reference(a: &Snapshot, b: &Snapshot) -> Result<(), TestCaseError> {
    let (old, new) = (a.carriers.first(), b.carriers.first());
    let found = compare::of_carrier(old, new, (a, b));
    let expected = reference::of_carrier(old, new, (a, b));
    prop_assert_eq!(format!("{found:#?}"), format!("{expected:#?}"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn edited_prompts_are_compared_as_the_slow_way_does(
        pieces in prop::collection::vec(piece(), 0..40),
        edits in prop::collection::vec(edit(), 0..6),
        used in prop::collection::vec(any::<bool>(), PATHS.len()),
        used_then in prop::collection::vec(any::<bool>(), PATHS.len()),
    ) {
        is_equal_to_reference(&snapshot(&pieces, &used), &snapshot(&edited(&pieces, &edits), &used_then))?;
    }

    #[test]
    fn unrelated_prompts_are_compared_as_the_slow_way_does(
        before in prop::collection::vec(piece(), 0..30),
        after in prop::collection::vec(piece(), 0..30),
        used in prop::collection::vec(any::<bool>(), PATHS.len()),
    ) {
        is_equal_to_reference(&snapshot(&before, &used), &snapshot(&after, &used))?;
    }
}

/// A prompt of many pieces, each of which is a file of its own between two frames that all share.
fn many(numbers: impl Iterator<Item = usize>, said: &str) -> Snapshot {
    let mut whole = snapshot(&[], &[]);
    let carrier = &mut whole.carriers[0];
    let frame = || Source::Profile { profile: "own".into(), key: "section.list.item".into() };
    for number in numbers {
        let start = carrier.text.len();
        let path = format!("/skills/{number:05}");
        let file = Source::File { path: path.as_str().into(), place: None };
        for (text, source, is_inserted) in
            [("<", frame(), false), (said, file, true), (">\n", frame(), false)]
        {
            let begin = carrier.text.len();
            carrier.text.push_str(text);
            carrier.spans.push(Span {
                bytes: begin..carrier.text.len(),
                source,
                template: is_inserted.then(frame),
                included_from: Vec::new(),
                stability: Stability::Project,
            });
        }
        carrier.sections.push((format!("s{number}"), start..carrier.text.len()));
        whole.considered.insert(path, "used".into());
    }
    whole
}

#[test]
fn large_shapes_are_compared_as_the_slow_way_does() {
    // What comes behind another difference, and repeats what follows, is moved behind all of that.
    let behind =
        |first: usize, count: usize| many([first, 9].into_iter().chain(std::iter::repeat_n(1, count)), "one");
    let shapes = [
        (behind(0, 300), behind(2, 301)),
        (many(0..300, "old"), many(0..300, "new")),
        (many(0..300, "one"), many((0..300).rev(), "one")),
        (many(0..300, "one"), many(300..600, "one")),
        (many(0..300, "one"), many((0..300).filter(|number| number % 2 == 0), "one")),
        (many(0..300, ""), many(0..300, "new")),
        (many(std::iter::repeat_n(1, 300), "one"), many(std::iter::repeat_n(1, 301), "one")),
    ];
    for (a, b) in &shapes {
        is_equal_to_reference(a, b).expect("both ways agree");
        is_equal_to_reference(b, a).expect("both ways agree");
    }
}
