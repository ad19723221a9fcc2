//! Compaction in two steps: nothing changes before the commit, or without one.

use std::sync::Arc;

use proem::Caller;
use proem::request::RequestUpdate;
use proem_core::carrier::Carrier;
use proem_core::profile::Compaction as Way;
use proem_store::{CompactionRecord, ConversationError, Conversations, StartedCompaction, Store, StoreError};
use serde_json::json;

use crate::site::{
    Site, conversations, epochs, history, interrupted, on_each_store, shown, summary, system, turn,
    turn_summary,
};

/// A profile of each policy. Both are built from `work/AGENTS.md`, and may be reloaded.
const PROFILES: [(&str, &str, Way); 2] =
    [("appended", "template", Way::Append), ("behind", "default", Way::Aligned)];

/// Runs a check for both policies on each store. In each, `c` has one epoch, and the files have changed since.
fn for_each_policy(check: impl Fn(&Site, &Arc<dyn Store>, &str)) {
    on_each_store(|site, store| {
        for (profile, extends, _) in PROFILES {
            site.profile(profile, extends, "[\"compaction\", \"reload\"]");
            site.write("work/AGENTS.md", "old\n");
            store.remove("c").unwrap();
            turn(&conversations(store), &site.request(json!({"profile": profile})));
            site.write("work/AGENTS.md", "new\n");
            check(site, store, profile);
        }
    });
}

fn begin(own: &Conversations) -> StartedCompaction {
    own.begin_compaction("c", RequestUpdate::default(), Caller::User).unwrap()
}

fn no_compaction(site: &Site, answer: Result<(), ConversationError>) {
    let error = answer.unwrap_err();
    assert!(error.is_usage());
    let expected = "there is no such compaction, or it was ended or took too long\nhint: begin it again";
    assert_eq!(shown(site, &error), expected);
}

#[test]
fn with_policy_append_the_rebuilt_prompt_is_kept_without_the_instructions() {
    on_each_store(|site, store| {
        let own = conversations(store);
        let request = site.request(json!({"profile": "template"}));
        site.write("work/AGENTS.md", "old\n");
        let first = turn(&own, &request);
        site.write("work/AGENTS.md", "new\n");
        let begun = begin(&own);
        let rebuilt = proem::build(&request, Caller::User).unwrap();
        let rebuilt = rebuilt.system().unwrap();
        assert_eq!((begun.way, begun.from, begun.instructions.as_str()), (Way::Append, 1, "Summarise it."));
        assert_eq!(begun.text(Carrier::System).unwrap(), format!("{rebuilt}\n\nSummarise it."));
        assert_eq!(begun.text(Carrier::Turn), None);
        assert_eq!(turn_summary(&turn(&own, &request)), turn_summary(&first), "not committed");
        // The prompt is that of the summarising call.
        site.write("work/AGENTS.md", "newer\n");
        let opened = own.commit_compaction("c", &begun.token, Caller::User).unwrap();
        assert_eq!(summary(&opened), (2, "compaction", rebuilt));
        assert_eq!(turn_summary(&turn(&conversations(store), &request)), (2, "compaction", rebuilt));
        assert_eq!(history(store), epochs(&["startup", "compaction"]));
        let old = own.epoch("c", 1).unwrap().unwrap();
        assert_eq!(old.frozen, first.frozen, "it stays readable");
    });
}

#[test]
fn with_policy_aligned_the_summarising_call_has_the_old_bytes() {
    on_each_store(|site, store| {
        let own = conversations(store);
        let request = site.request(json!({}));
        site.write("work/AGENTS.md", "old\n");
        let first = turn(&own, &request);
        site.write("work/AGENTS.md", "new\n");
        let begun = begin(&own);
        assert_eq!((begun.way, begun.from, begun.instructions.as_str()), (Way::Aligned, 1, "Summarise it."));
        assert_eq!(begun.text(Carrier::System).as_deref(), Some(system(&first.frozen)));
        assert_eq!(&begun.body, first.frozen.body());
        assert_eq!(turn_summary(&turn(&own, &request)), turn_summary(&first), "not committed");
        let opened = own.commit_compaction("c", &begun.token, Caller::User).unwrap();
        let rebuilt = proem::build(&request, Caller::User).unwrap();
        assert_eq!((opened.head.reason.as_str(), &*opened.frozen), ("compaction", rebuilt.frozen()));
        assert_eq!(*turn(&conversations(store), &request).frozen, *rebuilt.frozen());
        assert_eq!(history(store), epochs(&["startup", "compaction"]));
        assert_eq!(own.epoch("c", 1).unwrap().unwrap().frozen, first.frozen, "it stays readable");
    });
}

#[test]
fn a_compaction_of_assets_keeps_the_prompt_without_reading_its_template() {
    on_each_store(|site, store| {
        let own = conversations(store);
        site.write("work/.proem/prompts/greet.md", "Hello from {{ cwd }}.");
        site.write("work/AGENTS.md", "old\n");
        let request = site.request(json!({"profile": "assets", "instruction": "$workspace/greet"}));
        let first = turn(&own, &request);
        site.write("work/.proem/prompts/greet.md", "{{ broken");
        site.write("work/AGENTS.md", "new\n");
        let begun = begin(&own);
        assert_eq!((begun.way, begun.from), (Way::Aligned, 1));
        assert_eq!(begun.text(Carrier::System).as_deref(), Some(system(&first.frozen)));
        let opened = own.commit_compaction("c", &begun.token, Caller::User).unwrap();
        assert_eq!(summary(&opened), (2, "compaction", system(&first.frozen)));
        assert_eq!(turn(&conversations(store), &request).frozen, first.frozen);
    });
}

#[test]
fn a_compaction_opens_an_epoch_even_if_the_prompt_is_the_same() {
    for_each_policy(|site, store, profile| {
        site.write("work/AGENTS.md", "old\n");
        let own = conversations(store);
        let begun = begin(&own);
        let opened = own.commit_compaction("c", &begun.token, Caller::User).unwrap();
        assert_eq!(opened.frozen, own.epoch("c", 1).unwrap().unwrap().frozen, "{profile}");
        assert_eq!(history(store), epochs(&["startup", "compaction"]), "{profile}");
    });
}

#[test]
fn a_request_for_a_compaction_is_that_of_the_next_prompt() {
    for_each_policy(|site, store, profile| {
        let own = conversations(store);
        let next = site.request(json!({"profile": profile, "append": "From now on."}));
        let begun = own.begin_compaction("c", &next, Caller::User).unwrap();
        let opened = own.commit_compaction("c", &begun.token, Caller::User).unwrap();
        assert!(system(&opened.frozen).contains("From now on."), "{profile}: {}", system(&opened.frozen));
        assert_eq!(opened.request.append, next.append);
    });
}

#[test]
fn an_aborted_compaction_changes_nothing() {
    for_each_policy(|site, store, profile| {
        let own = conversations(store);
        let before = store.current("c").unwrap();
        let begun = begin(&own);
        own.abort_compaction("c", &begun.token).unwrap();
        assert_eq!(store.compaction(&begun.token).unwrap(), None);
        no_compaction(site, own.commit_compaction("c", &begun.token, Caller::User).map(drop));
        no_compaction(site, own.abort_compaction("c", &begun.token));
        assert_eq!(store.current("c").unwrap(), before, "{profile}");
    });
}

/// Row S2.
#[test]
fn of_two_compactions_that_were_begun_one_opens_an_epoch() {
    for_each_policy(|site, store, profile| {
        let (own, other) = (conversations(store), conversations(store));
        let (one, two) = (begin(&own), begin(&other));
        assert_ne!(one.token, two.token);
        let first = own.commit_compaction("c", &one.token, Caller::User).unwrap();
        site.write("work/AGENTS.md", "newer\n");
        let second = other.commit_compaction("c", &two.token, Caller::User).unwrap();
        assert_eq!(summary(&first), summary(&second), "{profile}");
        assert_eq!(history(store), epochs(&["startup", "compaction"]), "{profile}");
        let opened = store.compaction(&two.token).unwrap().and_then(|ended| ended.opened);
        assert_eq!(opened, Some(2), "both have ended");
    });
}

/// Row S8.
#[test]
fn a_compaction_that_is_committed_again_gives_the_same_epoch() {
    for_each_policy(|site, store, profile| {
        let own = conversations(store);
        let begun = begin(&own);
        let first = own.commit_compaction("c", &begun.token, Caller::User).unwrap();
        let later = begin(&own);
        own.commit_compaction("c", &later.token, Caller::User).unwrap();
        let again = own.commit_compaction("c", &begun.token, Caller::User).unwrap();
        assert_eq!((again.head.number, &again.head), (2, &first.head), "{profile}");
        no_compaction(site, own.abort_compaction("c", &begun.token));
        assert_eq!(history(store), epochs(&["startup", "compaction", "compaction"]), "{profile}");
    });
}

#[test]
fn a_token_is_that_of_its_conversation() {
    for_each_policy(|site, store, profile| {
        let own = conversations(store);
        own.turn("other", site.request(json!({"profile": profile})), Caller::User).unwrap();
        let begun = begin(&own);
        for (id, token) in [("other", begun.token.as_str()), ("c", "0123"), ("c", ""), ("none", &begun.token)]
        {
            no_compaction(site, own.commit_compaction(id, token, Caller::User).map(drop));
            no_compaction(site, own.abort_compaction(id, token));
        }
        assert_eq!(history(store), epochs(&["startup"]));
        own.commit_compaction("c", &begun.token, Caller::User).unwrap();
    });
}

#[test]
fn a_compaction_that_took_too_long_changes_nothing() {
    for_each_policy(|site, store, profile| {
        let own = conversations(store);
        let before = store.current("c").unwrap();
        let begun = begin(&own);
        let kept = store.compaction(&begun.token).unwrap().unwrap();
        let old = CompactionRecord { token: "late".into(), expires_at: 1, ..kept };
        store.begin_compaction(&old).unwrap();
        no_compaction(site, own.commit_compaction("c", "late", Caller::User).map(drop));
        no_compaction(site, own.abort_compaction("c", "late"));
        assert_eq!(store.current("c").unwrap(), before, "{profile}");
        own.commit_compaction("c", &begun.token, Caller::User).unwrap();
    });
}

#[test]
fn a_compaction_goes_with_its_conversation() {
    for_each_policy(|site, store, profile| {
        let own = conversations(store);
        let begun = begin(&own);
        store.remove("c").unwrap();
        no_compaction(site, own.commit_compaction("c", &begun.token, Caller::User).map(drop));
        assert_eq!(store.current("c").unwrap(), None, "{profile}: nothing came back");
        turn(&own, &site.request(json!({"profile": profile})));
        no_compaction(site, own.commit_compaction("c", &begun.token, Caller::User).map(drop));
        assert_eq!(
            history(store),
            epochs(&["startup"]),
            "nor is it a compaction of the next conversation of this id"
        );
    });
}

/// Row S2.
#[test]
fn a_compaction_that_another_epoch_overtook_is_a_conflict() {
    for_each_policy(|_, store, profile| {
        let own = conversations(store);
        let begun = begin(&own);
        let reloaded = own.reload("c", RequestUpdate::default(), Caller::User).unwrap();
        let error = own.commit_compaction("c", &begun.token, Caller::User).unwrap_err();
        assert_eq!(error.to_string(), "another writer was first: number 2 is current", "{profile}");
        assert!(matches!(error, ConversationError::Store(StoreError::Conflict { current: 2 })));
        assert_eq!(history(store), epochs(&["startup", "reload"]));
        assert_eq!(own.current("c").unwrap().unwrap().frozen, reloaded.epoch.frozen);
    });
}

/// The current epoch is that of another compaction, with the summary of another caller.
#[test]
fn a_compaction_that_two_epochs_overtook_is_a_conflict() {
    for_each_policy(|_, store, profile| {
        let own = conversations(store);
        let late = begin(&own);
        own.reload("c", RequestUpdate::default(), Caller::User).unwrap();
        let begun = begin(&own);
        own.commit_compaction("c", &begun.token, Caller::User).unwrap();
        let answer = own.commit_compaction("c", &late.token, Caller::User).map(|kept| kept.head.number);
        let said = answer.map_err(|error| error.to_string());
        assert_eq!(said, Err("another writer was first: number 3 is current".to_owned()), "{profile}");
        assert_eq!(history(store), epochs(&["startup", "reload", "compaction"]));
    });
}

/// Row S2: the same, between the read and the commit.
#[test]
fn an_epoch_that_is_opened_during_a_commit_is_a_conflict() {
    on_each_store(|site, store| {
        site.write("work/AGENTS.md", "old\n");
        turn(&conversations(store), &site.request(json!({})));
        site.write("work/AGENTS.md", "new\n");
        let begun = begin(&conversations(store));
        let other = conversations(store);
        let own = interrupted(store, move || {
            drop(other.reload("c", RequestUpdate::default(), Caller::User).unwrap());
        });
        let error = own.commit_compaction("c", &begun.token, Caller::User).unwrap_err();
        assert!(matches!(error, ConversationError::Store(StoreError::Conflict { current: 2 })), "{error}");
        assert_eq!(history(store), epochs(&["startup", "reload"]));
    });
}

#[test]
fn a_compaction_that_cannot_begin_leaves_everything_as_it_was() {
    for_each_policy(|site, store, profile| {
        let own = conversations(store);
        let before = store.current("c").unwrap();
        site.write("config/proem.toml", "not TOML");
        let error = own.begin_compaction("c", RequestUpdate::default(), Caller::User).unwrap_err();
        assert!(matches!(error, ConversationError::Build(_)), "{error}");
        assert_eq!(store.current("c").unwrap(), before, "{profile}");
        site.write("config/proem.toml", "");
        let begun = begin(&own);
        own.commit_compaction("c", &begun.token, Caller::User).unwrap();
    });
}

#[test]
fn a_commit_that_cannot_be_built_can_be_made_later() {
    for_each_policy(|site, store, profile| {
        let own = conversations(store);
        let before = store.current("c").unwrap();
        let begun = begin(&own);
        site.write("config/proem.toml", "not TOML");
        let answer = own.commit_compaction("c", &begun.token, Caller::User);
        site.write("config/proem.toml", "");
        if begun.way == Way::Append {
            // It was built when it was begun.
            assert_eq!(answer.unwrap().head.number, 2);
            return;
        }
        assert!(matches!(answer.unwrap_err(), ConversationError::Build(_)), "{profile}");
        assert_eq!(store.current("c").unwrap(), before);
        assert_eq!(own.commit_compaction("c", &begun.token, Caller::User).unwrap().head.number, 2);
    });
}

#[test]
fn a_profile_that_is_not_rebuilt_keeps_its_bytes_or_refuses() {
    on_each_store(|site, store| {
        site.profile("still-appended", "template", "[\"reload\"]");
        site.profile("still-behind", "default", "[\"reload\"]");
        let own = conversations(store);
        own.turn("a", site.request(json!({"profile": "still-appended"})), Caller::User).unwrap();
        let first = turn(&own, &site.request(json!({"profile": "still-behind"})));
        site.write("work/AGENTS.md", "new\n");
        let error = own.begin_compaction("a", RequestUpdate::default(), Caller::User).unwrap_err();
        let expected = "the profile `still-appended` does not rebuild its prompt for the reason `compaction`\n\
             hint: add `compaction` to `rebuild` in a profile that extends this one";
        assert_eq!(shown(site, &error), expected);
        assert_eq!(store.current_number("a").unwrap(), 1);
        let begun = begin(&own);
        let opened = own.commit_compaction("c", &begun.token, Caller::User).unwrap();
        assert_eq!(summary(&opened), (2, "compaction", system(&first.frozen)));
        assert_eq!(opened.frozen, first.frozen);
    });
}
