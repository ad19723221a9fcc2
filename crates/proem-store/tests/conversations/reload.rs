//! Reloads on request: the new epoch, its conditions, and the plan of a reload.

use proem::{Caller, PendingKind};
use proem_store::{ConversationError, Plan, Rebuilt};
use serde_json::json;

use crate::site::{conversations, epochs, history, on_each_store, shown, summary, system, tool, turn};

#[test]
fn a_reload_reads_everything_again() {
    on_each_store(|site, store| {
        site.write("work/AGENTS.md", "old\n");
        let own = conversations(store);
        let request = site.request(json!({"append": "Given."}));
        let first = turn(&own, &request);
        site.write("work/AGENTS.md", "new\n");
        let rebuilt = own.reload("c", None, Caller::User).unwrap();
        assert!(matches!(rebuilt, Rebuilt::Opened(_)));
        let now = proem::build(&request, Caller::User).unwrap();
        assert_eq!(rebuilt.kept().frozen, *now.frozen());
        assert_eq!(history(store), epochs(&["startup", "reload"]));
        let later = turn(&conversations(store), &request);
        assert_eq!((later.is_reused, &later.kept.frozen), (true, now.frozen()));
        let old = own.epoch("c", 1).unwrap().unwrap();
        assert_eq!((&old.head, &old.frozen), (&first.kept.head, &first.kept.frozen));
    });
}

#[test]
fn a_reload_takes_a_request_in_place_of_the_stored_one() {
    on_each_store(|site, store| {
        let own = conversations(store);
        turn(&own, &site.request(json!({"append": "Old."})));
        let next = site.request(json!({"append": "New."}));
        let rebuilt = own.reload("c", Some(&(&next).into()), Caller::User).unwrap();
        assert!(system(rebuilt.kept()).contains("New.") && !system(rebuilt.kept()).contains("Old."));
        assert!(matches!(own.reload("c", None, Caller::User).unwrap(), Rebuilt::Unchanged(_)));
    });
}

#[test]
fn a_reload_that_changes_nothing_opens_nothing() {
    on_each_store(|site, store| {
        let own = conversations(store);
        let first = turn(&own, &site.request(json!({})));
        for _ in 0..2 {
            let rebuilt = own.reload("c", None, Caller::User).unwrap();
            assert!(matches!(rebuilt, Rebuilt::Unchanged(_)));
            assert_eq!(summary(rebuilt.kept()), summary(&first.kept));
        }
        assert_eq!(history(store), epochs(&["startup"]));
    });
}

#[test]
fn a_reload_that_the_profile_does_not_know_is_refused_in_words() {
    on_each_store(|site, store| {
        site.profile("still", "default", "[]");
        site.profile("loose", "template", "[\"reload\"]");
        for (profile, is_allowed) in [("template", false), ("still", false), ("loose", true)] {
            let own = conversations(store);
            site.write("work/AGENTS.md", "old\n");
            let request = site.request(json!({"profile": profile}));
            own.turn(profile, &request, Caller::User).unwrap();
            site.write("work/AGENTS.md", "new\n");
            match own.reload(profile, None, Caller::User) {
                Ok(rebuilt) => assert_eq!((is_allowed, rebuilt.kept().head.number), (true, 2), "{profile}"),
                Err(error) => {
                    assert!(!is_allowed && error.is_usage());
                    let expected = format!(
                        "the profile `{profile}` does not rebuild its prompt for the reason `reload`\n\
                         hint: add `reload` to `rebuild` in a profile that extends this one"
                    );
                    assert_eq!(shown(site, &error), expected);
                    assert_eq!(store.current_number(profile).unwrap(), 1);
                }
            }
        }
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
        assert_eq!(first.kept.head.profile, "template");
        site.write("config/proem.toml", "profile = \"default\"\n");
        let error =
            own.reload("c", None, Caller::User).map(|rebuilt| rebuilt.kept().head.clone()).unwrap_err();
        let expected = "the profile `template` does not rebuild its prompt for the reason `reload`\n\
                        hint: add `reload` to `rebuild` in a profile that extends this one";
        assert_eq!(shown(site, &error), expected);
        assert_eq!(summary(&turn(&own, &request).kept), summary(&first.kept));
    });
}

#[test]
fn a_reload_that_cannot_be_built_leaves_the_epoch_in_force() {
    on_each_store(|site, store| {
        let own = conversations(store);
        let first = turn(&own, &site.request(json!({})));
        site.write("config/proem.toml", "not TOML");
        let error = own.reload("c", None, Caller::User).unwrap_err();
        assert!(matches!(error, ConversationError::Build(_)), "{error}");
        assert_eq!(summary(&turn(&own, &site.request(json!({}))).kept), summary(&first.kept));
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
        let plan = own.plan_reload("c", None, Caller::User).unwrap();
        assert!(plan.pending.is_empty() && plan.cost().is_none() && plan.is_allowed);
        site.write("work/AGENTS.md", "new\n");
        let plan = own.plan_reload("c", None, Caller::User).unwrap();
        assert_eq!((planned(&plan), plan.pending.tools), (vec![("context", PendingKind::Changed)], false));
        assert!(plan.cost().is_some() && plan.is_allowed);
        let plan = own.plan_tools("c", &[tool("read")], Caller::User).unwrap();
        let sections = vec![("tools", PendingKind::Changed), ("context", PendingKind::Changed)];
        assert_eq!((planned(&plan), plan.pending.tools), (sections, true));
        assert_eq!(summary(&plan.kept), summary(&first.kept));
        assert_eq!(history(store), epochs(&["startup"]));
        assert_eq!(turn(&conversations(store), &request).kept.frozen, first.kept.frozen);
    });
}

#[test]
fn a_plan_says_whether_the_profile_allows_it() {
    on_each_store(|site, store| {
        let own = conversations(store);
        turn(&own, &site.request(json!({"profile": "template"})));
        site.write("work/AGENTS.md", "new\n");
        let plan = own.plan_reload("c", None, Caller::User).unwrap();
        assert_eq!((planned(&plan), plan.is_allowed), (vec![("base", PendingKind::Changed)], false));
        assert_eq!(history(store), epochs(&["startup"]));
    });
}
