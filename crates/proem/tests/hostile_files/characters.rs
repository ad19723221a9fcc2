//! Invisible characters, in every kind of file that a prompt takes text from: rows C1 to C6.

use proem::{Build, Caller, Error};
use proem_core::note::Code;
use proem_testkit::hidden::{HIDDEN, Hidden};
use serde_json::{Value, json};

use crate::site::{Site, count, for_each};

/// Text that needs characters that are suspicious elsewhere.
const NEEDED: [(&str, &str); 5] = [
    ("family", "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}"),
    ("flag by tags", "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}"),
    ("heart", "\u{2764}\u{FE0F}"),
    ("Persian", "\u{645}\u{6CC}\u{200C}\u{62E}\u{648}\u{627}\u{647}\u{645}"),
    ("Hindi", "\u{915}\u{94D}\u{200D}\u{937}"),
];

/// The places from which `default` takes untrusted text.
const PLACES: [&str; 4] =
    ["work/AGENTS.md", "work/sub/AGENTS.md", "work/sub/.proem/SYSTEM.md", "work/sub/notes.md"];

/// A site with `text` at a place, and a request whose prompt has it.
fn laid_out(place: &str, text: &str) -> (Site, Value) {
    let site = Site::bare();
    site.write(place, format!("first\n{text}\nlast\n"));
    let more = match place {
        "work/sub/notes.md" => json!({"profile": "default", "template": "[file:notes.md]"}),
        _ => json!({"profile": "default"}),
    };
    (site, more)
}

fn prompt(site: &Site, more: &Value) -> String {
    site.build_with(Caller::User, more.clone()).system().unwrap().to_owned()
}

/// Counts the notes with a code, by its word.
fn noted(build: &Build, code: &str) -> usize {
    build.notes().iter().filter(|note| note.code.word() == code).count()
}

/// Rows C1 to C4 and C6.
#[test]
fn what_is_hidden_is_made_harmless_by_default_and_noted() {
    let all: Vec<(&Hidden, &str)> =
        HIDDEN.iter().flat_map(|case| PLACES.map(|place| (case, place))).collect();
    for_each(
        &all,
        |(case, place)| format!("{} in {place}", case.row),
        |(case, place)| {
            let (site, more) = laid_out(place, case.text);
            let build = site.build_with(Caller::User, more.clone());
            let text = build.system().unwrap();
            assert!(text.contains(&format!("first\n{}\nlast", case.treated)), "{text:?}");
            assert_eq!(noted(&build, case.code), 1, "{:#?}", build.notes());
            let note = build.notes().iter().find(|note| note.code.word() == case.code).unwrap();
            let shown = note.source.as_ref().unwrap().to_string();
            assert!(shown.contains(place.rsplit('/').next().unwrap()) && shown.contains(":2"), "{shown}");
            // Treated text has nothing left to treat.
            let (again, more) = laid_out(place, case.treated);
            let again = again.build_with(Caller::User, more);
            assert_eq!(noted(&again, case.code), 0);
        },
    );
}

/// Rows C1 to C4 and C6, the control: without the policy the bytes are in the prompt.
#[test]
fn the_seeds_keep_every_byte_and_note_it() {
    for_each(
        &HIDDEN,
        |case| case.row.to_owned(),
        |case| {
            let site = Site::bare();
            site.write("work/AGENTS.md", format!("first\n{}\nlast\n", case.text));
            let build = site.build();
            assert!(build.system().unwrap().contains(&format!("first\n{}\nlast", case.text)));
            assert_eq!(noted(&build, case.code), 1, "{:#?}", build.notes());
        },
    );
}

/// Row C3.
#[test]
fn what_scripts_and_pictures_need_stays() {
    for_each(
        &NEEDED,
        |(name, _)| (*name).to_owned(),
        |(_, text)| {
            let (site, more) = laid_out("work/AGENTS.md", text);
            let build = site.build_with(Caller::User, more);
            assert!(build.system().unwrap().contains(&format!("first\n{text}\nlast")));
            assert_eq!(count(&build, Code::HiddenText), 0, "{:#?}", build.notes());
        },
    );
}

/// C5: a mark at the very beginning has no meaning; a file with a NUL is not text.
#[test]
fn marks_at_the_beginning_go_and_files_with_a_nul_are_absent() {
    let site = Site::bare();
    site.write("work/AGENTS.md", "\u{FEFF}first\n");
    site.write("work/sub/AGENTS.md", "a\0b\n");
    let build = site.build_with(Caller::User, json!({"profile": "default"}));
    let text = build.system().unwrap();
    assert!(text.contains("first\n") && !text.contains('\u{FEFF}') && !text.contains("a\0b"));
    assert_eq!(count(&build, Code::NotUtf8), 1, "{:#?}", build.notes());
    let verbatim = site.build();
    assert!(verbatim.system().unwrap().contains("a\0b"), "control: the seed takes it");
}

/// The user's configuration sets the minimum, whatever a profile has; a workspace's is ignored.
#[test]
fn the_user_may_be_stricter_than_a_profile() {
    for case in &HIDDEN {
        let site = Site::bare();
        site.write("work/AGENTS.md", format!("first\n{}\nlast\n", case.text));
        site.write("work/sub/.proem/proem.toml", "hygiene = \"refuse\"\n");
        assert!(prompt(&site, &json!({})).contains(case.text), "a workspace does not set it");

        site.write("config/proem.toml", "hygiene = \"neutralise\"\n");
        assert!(
            prompt(&site, &json!({})).contains(&format!("first\n{}\nlast", case.treated)),
            "{}",
            case.row
        );

        site.write("config/proem.toml", "hygiene = \"refuse\"\n");
        let refused = proem::build(&site.request(Caller::User, json!({})), Caller::User).unwrap_err();
        assert!(matches!(refused, Error::Refused { .. }), "{refused}");
        assert!(refused.to_string().contains("AGENTS.md:2"), "{refused}");
    }
}

/// Row C9.
#[test]
fn secrets_in_files_are_noted_masked_or_refused() {
    const SECRET: &str = "ghp_x7Kd93mQpL2vRt8WzYb4NcHf6JsAe1GuTo5X";
    let site = Site::bare();
    site.write("work/AGENTS.md", format!("Use {SECRET} for releases.\n"));
    site.write("work/sub/notes.md", format!("Or {SECRET}.\n"));
    let build = || site.build_with(Caller::User, json!({"profile": "default", "append": "x"}));
    let kept = build();
    assert!(kept.system().unwrap().contains(SECRET), "control: reported, not changed");
    assert_eq!(count(&kept, Code::LooksSecret), 1);
    let notes = format!("{:?}", kept.notes());
    assert!(!notes.contains(SECRET) && notes.contains("ghp_…"), "{notes}");

    site.write("config/proem.toml", "secrets = \"redact\"\n");
    let masked = build();
    assert!(!masked.system().unwrap().contains(SECRET));
    assert_eq!(masked.system(), build().system(), "always in the same way");
    let of_fact = prompt(&site, &json!({"profile": "default", "template": "[file:notes.md]"}));
    assert!(of_fact.contains("Or ghp_…") && !of_fact.contains(SECRET), "{of_fact}");

    site.write("config/proem.toml", "secrets = \"refuse\"\n");
    for more in [
        json!({"profile": "default"}),
        json!({"profile": "default", "project": false, "template": "[file:notes.md]"}),
    ] {
        let refused = proem::build(&site.request(Caller::User, more), Caller::User).unwrap_err();
        assert!(
            matches!(refused, Error::Refused { .. }) && !refused.to_string().contains(SECRET),
            "{refused}"
        );
    }
}
