//! Reloads on request: the new epoch, its conditions, and the plan of a reload.

use proem::request::RequestUpdate;
use proem::{Caller, PendingKind};
use proem_core::note::Code;
use proem_store::{ConversationError, Plan};
use serde_json::json;

use crate::site::{
    conversations, epochs, history, noted, on_each_store, summary, system, tool, turn, turn_summary, waiting,
    waits,
};

#[test]
fn a_reload_reads_everything_again() {
    on_each_store(|site, store| {
        site.write("work/AGENTS.md", "old\n");
        let own = conversations(store);
        let request = site.request(json!({"append": "Given."}));
        let first = turn(&own, &request);
        let before = own.current("c").unwrap().unwrap();
        site.write("work/AGENTS.md", "new\n");
        let rebuilt = own.reload("c", RequestUpdate::default(), Caller::User).unwrap();
        assert!(rebuilt.is_opened);
        let now = proem::build(&request, Caller::User).unwrap();
        assert_eq!(*rebuilt.epoch.frozen, *now.frozen());
        assert_eq!(history(store), epochs(&["startup", "reload"]));
        let later = turn(&conversations(store), &request);
        assert_eq!((later.is_reused, &*later.frozen), (true, now.frozen()));
        assert_eq!(later.expected_miss.as_deref(), Some("reload"));
        let old = own.epoch("c", 1).unwrap().unwrap();
        assert_eq!((&old.head, &old.frozen), (&before.head, &first.frozen));
    });
}

#[test]
fn a_reload_takes_what_a_request_names() {
    on_each_store(|site, store| {
        let own = conversations(store);
        turn(&own, &site.request(json!({"append": "Old."})));
        let next = site.request(json!({"append": "New."}));
        let rebuilt = own.reload("c", &next, Caller::User).unwrap();
        assert!(
            system(&rebuilt.epoch.frozen).contains("New.") && !system(&rebuilt.epoch.frozen).contains("Old.")
        );
        assert!(!own.reload("c", RequestUpdate::default(), Caller::User).unwrap().is_opened);
    });
}

#[test]
fn a_reload_that_changes_nothing_opens_nothing() {
    on_each_store(|site, store| {
        let own = conversations(store);
        let first = turn(&own, &site.request(json!({})));
        for _ in 0..2 {
            let rebuilt = own.reload("c", RequestUpdate::default(), Caller::User).unwrap();
            assert!(!rebuilt.is_opened);
            assert_eq!(summary(&rebuilt.epoch), turn_summary(&first));
            assert_eq!(waiting(&rebuilt.pending), Vec::<&str>::new());
        }
        assert_eq!(history(store), epochs(&["startup"]));
    });
}

#[test]
fn a_reload_that_the_profile_does_not_allow_waits() {
    on_each_store(|site, store| {
        site.profile("still", "default", "[]");
        site.profile("loose", "template", "[\"reload\"]");
        for (profile, is_allowed) in [("template", false), ("still", false), ("loose", true)] {
            let own = conversations(store);
            site.write("work/AGENTS.md", "old\n");
            let request = site.request(json!({"profile": profile}));
            own.turn(profile, &request, Caller::User).unwrap();
            site.write("work/AGENTS.md", "new\n");
            let changed = own.reload(profile, RequestUpdate::default(), Caller::User).unwrap();
            assert_eq!(changed.is_opened, is_allowed, "{profile}");
            let (number, pending) = if is_allowed { (2, vec![]) } else { (1, vec!["files"]) };
            assert_eq!(store.current_number(profile).unwrap(), number);
            assert_eq!(waiting(&changed.pending), pending, "{profile}");
            let expected: Vec<String> = pending.iter().map(|field| waits(field, profile)).collect();
            assert_eq!(noted(&changed.notes, Code::PendingChange), expected);
            assert_eq!(waiting(&conversations(store).pending(profile).unwrap()), pending, "it is stored");
        }
    });
}

/// F7: the next epoch reads all files again, whatever its reason.
#[test]
fn a_reload_that_waits_is_done_by_the_next_epoch() {
    on_each_store(|site, store| {
        site.profile("tools-only", "default", "[\"tools\"]");
        site.write("work/AGENTS.md", "old\n");
        let own = conversations(store);
        let request = site.request(json!({"profile": "tools-only"}));
        turn(&own, &request);
        site.write("work/AGENTS.md", "new\n");
        own.reload("c", RequestUpdate::default(), Caller::User).unwrap();
        let changed = conversations(store).set_tool_registry("c", &[tool("grep")], Caller::User).unwrap();
        assert_eq!((changed.is_opened, waiting(&changed.pending)), (true, vec![]));
        let next = site.request(json!({"profile": "tools-only", "tools": [{"name": "grep"}]}));
        assert_eq!(*changed.epoch.frozen, *proem::build(&next, Caller::User).unwrap().frozen());
        assert_eq!(history(store), epochs(&["startup", "tools"]));
    });
}

/// F12: the control is the test above.
#[test]
fn a_change_of_tools_uses_the_files_as_they_were_read() {
    on_each_store(|site, store| {
        let lay = |version: &str| {
            for path in ["work/AGENTS.md", "work/.proem/APPEND_SYSTEM.md", "config/SYSTEM.md"] {
                site.write(path, &format!("{version} {path}\n"));
            }
            let skill = format!("---\nname: kept\ndescription: The {version} one.\n---\n");
            site.write("work/.proem/skills/kept/SKILL.md", &skill);
        };
        lay("old");
        turn(&conversations(store), &site.request(json!({})));
        let next = site.request(json!({"tools": [{"name": "grep"}]}));
        let expected = proem::build(&next, Caller::User).unwrap();
        lay("new");
        assert_ne!(proem::build(&next, Caller::User).unwrap().frozen(), expected.frozen(), "control");
        let plan = conversations(store).plan_tools("c", &[tool("grep")], Caller::User).unwrap();
        assert_eq!(plan.next, *expected.frozen());
        // Another process knows only what is stored.
        let changed = conversations(store).set_tool_registry("c", &[tool("grep")], Caller::User).unwrap();
        assert_eq!(*changed.epoch.frozen, *expected.frozen());
        let later = turn(&conversations(store), &site.request(json!({"tools": [{"name": "read"}]})));
        assert_eq!((later.epoch, later.reason.as_str()), (3, "tools"));
        assert!(system(&later.frozen).contains("old work/AGENTS.md"), "{}", system(&later.frozen));
        assert!(!system(&later.frozen).contains("new"), "{}", system(&later.frozen));
    });
}

/// The profile of the frozen prompt decides, not the current configuration.
#[test]
fn the_policy_is_that_of_the_frozen_profile() {
    on_each_store(|site, store| {
        site.write("config/proem.toml", "profile = \"template\"\n");
        let own = conversations(store);
        let request = site.request(json!({"profile": null}));
        let first = turn(&own, &request);
        assert_eq!(first.frozen.profile(), "template");
        site.write("config/proem.toml", "profile = \"default\"\n");
        let changed = own.reload("c", RequestUpdate::default(), Caller::User).unwrap();
        assert_eq!((changed.is_opened, waiting(&changed.pending)), (false, vec!["files"]));
        assert_eq!(noted(&changed.notes, Code::PendingChange), [waits("files", "template")]);
        assert_eq!(turn_summary(&turn(&own, &request)), turn_summary(&first));
    });
}

#[test]
fn a_reload_that_cannot_be_built_leaves_the_epoch_in_force() {
    on_each_store(|site, store| {
        let own = conversations(store);
        let first = turn(&own, &site.request(json!({})));
        site.write("config/proem.toml", "not TOML");
        let error = own.reload("c", RequestUpdate::default(), Caller::User).unwrap_err();
        assert!(matches!(error, ConversationError::Build(_)), "{error}");
        assert_eq!(turn_summary(&turn(&own, &site.request(json!({})))), turn_summary(&first));
        assert_eq!(history(store), epochs(&["startup"]));
    });
}

/// Returns the sections that a plan would change.
fn planned(plan: &Plan) -> Vec<(&str, PendingKind)> {
    plan.pending.sections.iter().map(|section| (section.id.as_str(), section.kind)).collect()
}

#[test]
fn a_plan_says_what_would_change_and_changes_nothing() {
    on_each_store(|site, store| {
        site.write("work/AGENTS.md", "old\n");
        let own = conversations(store);
        let request = site.request(json!({}));
        let first = turn(&own, &request);
        let plan = own.plan_reload("c", RequestUpdate::default(), Caller::User).unwrap();
        assert!(plan.pending.is_empty() && plan.cost().is_none() && plan.is_allowed);
        site.write("work/AGENTS.md", "new\n");
        let plan = own.plan_reload("c", RequestUpdate::default(), Caller::User).unwrap();
        assert_eq!((planned(&plan), plan.pending.tools), (vec![("context", PendingKind::Changed)], false));
        assert!(plan.cost().is_some() && plan.is_allowed);
        let plan = own.plan_tools("c", &[tool("read")], Caller::User).unwrap();
        // Files stay as they were read.
        assert_eq!((planned(&plan), plan.pending.tools), (vec![("tools", PendingKind::Changed)], true));
        assert_eq!(summary(&plan.kept), turn_summary(&first));
        assert_eq!(history(store), epochs(&["startup"]));
        assert_eq!(turn(&conversations(store), &request).frozen, first.frozen);
    });
}

#[test]
fn a_plan_says_whether_the_profile_allows_it() {
    on_each_store(|site, store| {
        let own = conversations(store);
        turn(&own, &site.request(json!({"profile": "template"})));
        site.write("work/AGENTS.md", "new\n");
        let plan = own.plan_reload("c", RequestUpdate::default(), Caller::User).unwrap();
        assert_eq!((planned(&plan), plan.is_allowed), (vec![("base", PendingKind::Changed)], false));
        assert_eq!(history(store), epochs(&["startup"]));
    });
}
