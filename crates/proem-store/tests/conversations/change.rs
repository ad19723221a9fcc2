//! Changes in the request of a turn: they open an epoch where the profile's policy allows it, and leave a note elsewhere.

use proem::Caller;
use proem_core::note::Code;
use serde_json::{Value, json};

use crate::site::{
    Site, conversations, epochs, history, noted, on_each_store, shown, summary, system, tool, turn,
};

/// Changes since the first turn, each with its reason and a part of the new prompt.
fn changes(site: &Site) -> [(Value, &'static str, &'static str); 3] {
    [
        (json!({"tools": [{"name": "read"}, {"name": "grep"}]}), "tools", "- grep: Searches"),
        (json!({"cwd": site.path("other")}), "cwd", "/other\n"),
        (json!({"profile": "layers"}), "profile", "Current working directory"),
    ]
}

#[test]
fn a_change_that_the_profile_follows_opens_an_epoch() {
    on_each_store(|site, store| {
        for (index, (change, reason, part)) in changes(site).into_iter().enumerate() {
            let (own, id) = (conversations(store), format!("c{index}"));
            site.profile("one", "default", &format!("[\"{reason}\"]"));
            let ask = |more: Value| {
                let mut fields = json!({"profile": "one"});
                fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                own.turn(&id, site.request(fields), Caller::User).unwrap()
            };
            let first = ask(json!({}));
            assert!(!system(&first.kept).contains(part), "{reason}");
            let second = ask(change.clone());
            assert!(system(&second.kept).contains(part), "{reason}: {}", system(&second.kept));
            assert_eq!((second.is_reused, second.kept.head.number), (false, 2));
            assert_eq!(second.kept.head.reason, reason);
            let third = ask(change);
            assert_eq!((third.is_reused, third.kept.head.number), (true, 2), "it is not a change any more");
            let old = own.epoch(&id, 1).unwrap().unwrap();
            assert_eq!((&old.head, &old.frozen), (&first.kept.head, &first.kept.frozen), "it stays readable");
        }
    });
}

#[test]
fn a_change_that_the_profile_does_not_follow_is_noted() {
    on_each_store(|site, store| {
        for (index, (change, reason, _)) in changes(site).into_iter().enumerate() {
            let (own, id) = (conversations(store), format!("c{index}"));
            let others: Vec<&str> =
                ["tools", "cwd", "profile", "reload"].into_iter().filter(|other| *other != reason).collect();
            site.profile("all-but-one", "default", &format!("{others:?}"));
            let first = own.turn(&id, site.request(json!({"profile": "all-but-one"})), Caller::User).unwrap();
            let mut fields = json!({"profile": "all-but-one"});
            fields.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            for _ in 0..2 {
                let later = own.turn(&id, site.request(fields.clone()), Caller::User).unwrap();
                assert_eq!((later.is_reused, &later.kept.frozen), (true, &first.kept.frozen), "{reason}");
                let expected = format!(
                    "the change of `{reason}` does not take effect: the profile `all-but-one` keeps its prompt"
                );
                assert_eq!(noted(&later.notes, Code::PendingChange), [expected]);
            }
            assert_eq!(store.current_number(&id).unwrap(), 1);
        }
    });
}

#[test]
fn tools_are_a_set() {
    on_each_store(|site, store| {
        let own = conversations(store);
        turn(&own, &site.request(json!({})));
        for names in [vec!["read", "bash"], vec!["bash", "read"]] {
            let tools: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            assert!(turn(&own, &site.request(json!({"tools": tools}))).is_reused);
            let tools: Vec<_> = names.into_iter().map(tool).collect();
            assert_eq!(own.set_tools("c", &tools, Caller::User).unwrap().kept().head.number, 1);
        }
        assert!(
            turn(&own, &site.request(json!({"tools": null}))).is_reused,
            "a missing field is not a change"
        );
        assert_eq!(history(store), epochs(&["startup"]));
    });
}

/// `bash` is missing, although there are as many tools as before and none is new.
#[test]
fn a_tool_that_is_named_twice_does_not_stand_for_another() {
    on_each_store(|site, store| {
        let own = conversations(store);
        turn(&own, &site.request(json!({})));
        let rebuilt = own.set_tools("c", &[tool("read"), tool("read")], Caller::User).unwrap();
        assert_eq!(rebuilt.kept().head.number, 2);
        assert!(!system(rebuilt.kept()).contains("- bash:"), "{}", system(rebuilt.kept()));
        assert_eq!(history(store), epochs(&["startup", "tools"]));
    });
}

#[test]
fn what_a_change_does_not_mention_stays() {
    on_each_store(|site, store| {
        let own = conversations(store);
        let more = json!({"system": "I am the base.", "append": "I am behind it.", "language": "Latin"});
        let first = turn(&own, &site.request(more));
        let parts = ["I am the base.", "I am behind it.", "Answer in: Latin"];
        assert!(parts.iter().all(|part| system(&first.kept).contains(part)));
        let tools = json!([{"name": "read"}]);
        let second = turn(&own, &site.request(json!({"tools": tools, "profile": null, "cwd": null})));
        assert_eq!(second.kept.head.number, 2);
        let missing: Vec<&str> =
            parts.into_iter().filter(|part| !system(&second.kept).contains(part)).collect();
        assert_eq!(missing, Vec::<&str>::new());
    });
}

/// An epoch has everything that was given until it opens, for whatever reason it does.
#[test]
fn a_change_that_is_followed_brings_the_others_with_it() {
    on_each_store(|site, store| {
        let own = conversations(store);
        site.profile("tools-only", "default", "[\"tools\"]");
        turn(&own, &site.request(json!({"profile": "tools-only"})));
        let both = json!({"profile": "tools-only", "cwd": site.path("other"), "tools": [{"name": "grep"}]});
        let second = turn(&own, &site.request(both));
        assert_eq!(noted(&second.notes, Code::PendingChange), Vec::<String>::new());
        assert_eq!(history(store), epochs(&["startup", "tools"]));
        assert!(system(&second.kept).contains("- grep:") && system(&second.kept).contains("/other\n"));
    });
}

#[test]
fn tools_that_cannot_be_set_are_refused_in_words() {
    on_each_store(|site, store| {
        let own = conversations(store);
        let first = turn(&own, &site.request(json!({"profile": "template"})));
        let error = own.set_tools("c", &[tool("grep")], Caller::User).unwrap_err();
        assert!(error.is_usage());
        let expected = "the profile `template` does not rebuild its prompt for the reason `tools`\n\
                        hint: add `tools` to `rebuild` in a profile that extends this one";
        assert_eq!(shown(site, &error), expected);
        assert_eq!(turn(&own, &site.request(json!({"profile": "template"}))).kept.frozen, first.kept.frozen);
        assert_eq!(history(store), epochs(&["startup"]));
    });
}

#[test]
fn a_change_that_cannot_be_built_leaves_the_epoch_in_force() {
    on_each_store(|site, store| {
        let own = conversations(store);
        let first = turn(&own, &site.request(json!({})));
        let bad = [
            json!({"profile": "no-such"}),
            json!({"cwd": site.path("no-such")}),
            json!({"tools": [{"name": "a\nb"}]}),
        ];
        for more in bad {
            assert!(own.turn("c", site.request(more), Caller::User).is_err());
        }
        let later = turn(&own, &site.request(json!({})));
        assert_eq!(summary(&later.kept), summary(&first.kept));
        assert_eq!(history(store), epochs(&["startup"]));
    });
}
