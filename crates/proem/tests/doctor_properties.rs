//! The doctor names the file that was edited: random edits to random trees, by rules that the comparison does not know.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::path::{Path, PathBuf};

use proem::compare::{DifferenceKind, Snapshot, compare};
use proem::tokens::Tokenizer;
use proem::{Caller, Request, build};
use proem_core::source::Source;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

/// Lines that files are made of: few, so that neighbours share text.
const LINES: [&str; 6] = ["Run the tests.", "Use spaces.", "Be brief.", "", "# Rules", "- one\n- two"];

const PLACES: [&str; 5] = ["AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md", "a/b/TODO.md", "a/b/NOTES.md"];

const TEMPLATE: &str = "Base.\n[if file:TODO.md]\nOpen: [file:TODO.md]\n[endif][file:NOTES.md]\nEnd.";

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&LINES[..]), 1..5).prop_map(|lines| lines.join("\n"))
}

fn snapshot(root: &Path, profile: &str) -> Snapshot {
    let mut request = json!({
        "profile": profile,
        "cwd": root.join("a/b").to_str(),
        "host": { "home": root.join("home").to_str(), "config_dir": root.join("config").to_str(), "env": {},
                  "now": "2026-03-07T14:55:05Z" },
    });
    if profile == "template" {
        request["template"] = TEMPLATE.into();
    }
    let request = Request::from_json(&request.to_string()).unwrap();
    let built = build(&request, Caller::User).unwrap();
    Snapshot::new(profile, built.frozen(), &request, None)
}

fn path_of(source: &Source) -> Option<PathBuf> {
    match source {
        Source::File { path, .. } | Source::Variable { path: Some(path), .. } => Some(path.as_ref().into()),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_owner_of_the_first_difference_is_the_edited_file(
        texts in prop::collection::vec(prop::option::of(text()), PLACES.len()),
        chosen in any::<Index>(),
        edited in prop::option::of(text()),
        profile in prop::sample::select(vec!["default", "layers", "boundary", "template"]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b/.git")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::remove_dir(root.join("a/b/.git")).unwrap();
        for (place, text) in PLACES.iter().zip(&texts) {
            if let Some(text) = text {
                fs::write(root.join(place), text).unwrap();
            }
        }
        let before = snapshot(&root, profile);
        let place = root.join(PLACES[chosen.index(PLACES.len())]);
        match &edited {
            Some(text) => fs::write(&place, text).unwrap(),
            None => drop(fs::remove_file(&place)),
        }
        let after = snapshot(&root, profile);
        let found = compare(&before, &after, Tokenizer::Estimate);
        let whole = |side: &Snapshot| side.carriers.iter().map(|one| one.text.clone()).collect::<Vec<_>>();
        prop_assert_eq!(found.differences.is_empty(), whole(&before) == whole(&after));
        if let Some(first) = found.differences.first() {
            let owner = match first.kind {
                DifferenceKind::Added => &first.b,
                _ => &first.a,
            };
            let named = owner.as_ref().and_then(|owner| path_of(&owner.source));
            prop_assert_eq!(named.as_deref(), Some(place.as_path()), "{:?}", first);
            let (a, b) = (whole(&before).concat(), whole(&after).concat());
            let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(found.common_bytes, b.floor_char_boundary(same));
        }
    }
}
