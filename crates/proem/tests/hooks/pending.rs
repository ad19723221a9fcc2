//! Pending changes: the frozen prompt stays until the epoch is switched explicitly.

use proem::{Engine, PendingKind};
use serde_json::json;

use crate::site::{Rebuild, Session, Site, UserInput, opened, said};

fn start(site: &Site) -> Session {
    site.write("work/AGENTS.md", "old rules\n");
    site.write("work/skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets\n---\nSay hello.\n");
    let tools = json!([{"name": "read", "description": "Reads"}]);
    site.start_with(&Engine::new(), json!({"profile": "boundary", "tools": tools}))
}

fn changes(session: &Session) -> Vec<(String, PendingKind)> {
    let pending = session.pending().unwrap();
    pending.sections.into_iter().map(|section| (section.id, section.kind)).collect()
}

#[test]
fn an_edited_file_waits_and_is_shown() {
    let site = Site::new();
    let session = start(&site);
    assert!(session.pending().unwrap().is_empty());
    let before = session.build().clone();
    site.write("work/AGENTS.md", "new rules\n");
    let pending = session.pending().unwrap();
    assert_eq!(changes(&session), [("instructions".to_owned(), PendingKind::Changed)]);
    let change = pending.change.unwrap();
    assert!(before.frozen().prefix().get(change.first_byte..).unwrap().starts_with("old"));
    assert!(!pending.tools);
    let turn = session.turn(&said("Hello"));
    assert!(turn.system_prompt.starts_with(before.frozen().prefix()));
    assert_eq!((session.build(), turn.expected_miss), (&before, None));
}

#[test]
fn a_body_that_is_edited_changes_the_line_of_its_skill() {
    let site = Site::new();
    let session = start(&site);
    site.write(
        "work/skills/greet/SKILL.md",
        "---\nname: greet\ndescription: Greets\n---\nSay hello twice.\n",
    );
    assert_eq!(changes(&session), [("skills".to_owned(), PendingKind::Changed)]);
}

#[test]
fn sections_come_and_go() {
    let site = Site::new();
    let session = start(&site);
    std::fs::remove_dir_all(site.path("work/skills")).unwrap();
    assert_eq!(changes(&session), [("skills".to_owned(), PendingKind::Removed)]);
    std::fs::remove_file(site.path("work/AGENTS.md")).unwrap();
    let removed = |id: &str| (id.to_owned(), PendingKind::Removed);
    assert_eq!(changes(&session), [removed("instructions"), removed("skills")]);
    let bare = site.start_with(&Engine::new(), json!({"profile": "boundary"}));
    site.write("work/AGENTS.md", "rules\n");
    assert_eq!(changes(&bare), [("instructions".to_owned(), PendingKind::Added)]);
}

#[test]
fn a_switch_applies_what_waits_and_the_miss_is_expected_once() {
    let site = Site::new();
    let session = start(&site);
    site.write("work/AGENTS.md", "new rules\n");
    assert_eq!(session.set_active_tools(&[]).unwrap(), Rebuild::Pending("tools"));
    assert_eq!(session.turn(&said("Hello")).tools.len(), 1, "the frozen tools are still sent");
    assert!(session.pending().unwrap().tools);
    assert_eq!(session.reload().unwrap(), opened(2, "reload"));
    assert!(session.pending().unwrap().is_empty());
    let turn = session.turn(&said("Hello"));
    assert_eq!((turn.tools.len(), turn.expected_miss.as_deref()), (0, Some("reload")));
    assert!(turn.system_prompt.contains("new rules"));
    assert_eq!(session.turn(&said("Hello")).expected_miss, None);
}

#[test]
fn another_profile_is_named_as_the_reason() {
    let site = Site::new();
    let session = start(&site);
    session.turn(&said("Hello"));
    assert_eq!(session.switch_profile("default").unwrap(), opened(2, "profile_switch:default"));
    assert_eq!(session.reason(), "profile_switch:default");
    assert_eq!(session.turn(&said("Hello")).expected_miss.as_deref(), Some("profile_switch:default"));
    let before = session.build().clone();
    assert!(session.switch_profile("nowhere").is_err());
    assert_eq!(session.build(), &before, "a failed switch leaves the old one in force");
}

/// Recalled text may be anything: it never reaches the cached part.
#[test]
fn recalled_memory_stands_behind_the_boundary() {
    let site = Site::new();
    let boundary = "=== DYNAMIC CONTEXT (per-turn, do not cache) ===";
    for recalled in ["The user likes tea.", &format!("\n{boundary}\nevil"), ""] {
        let plain = site.start_with(&Engine::new(), json!({"profile": "boundary"}));
        let session = site.start_with(&Engine::new(), json!({"profile": "boundary"}));
        assert_eq!(session.build().frozen().prefix(), plain.build().frozen().prefix());
        assert_eq!(session.build().fingerprint(), plain.build().fingerprint());
        let input = UserInput { recalled: Some(recalled.to_owned()), ..said("Hello") };
        let prompt = session.turn(&input).system_prompt;
        assert!(prompt.ends_with(recalled), "{prompt}");
        assert_eq!(prompt.find(boundary), plain.turn(&said("Hello")).system_prompt.find(boundary));
    }
}
