//! Changes in the request of a turn: they open an epoch where the profile's policy allows it, and wait elsewhere.

use proem::Caller;
use proem::request::RequestUpdate;
use proem_core::carrier::Carrier;
use proem_core::note::Code;
use serde_json::{Value, json};

use crate::site::{
    Site, conversations, epochs, history, noted, on_each_store, summary, system, tool, turn, turn_summary,
    waiting, waits,
};

/// A change since the first turn.
struct Change {
    fields: Value,
    /// The field, and the word of the profile's policy for it.
    word: &'static str,
    /// The reason of the epoch that it opens.
    reason: &'static str,
    /// A part of the new prompt.
    part: &'static str,
}

fn changes(site: &Site) -> [Change; 3] {
    [
        Change {
            fields: json!({"tools": [{"name": "read"}, {"name": "grep"}]}),
            word: "tools",
            reason: "tools",
            part: "- grep: Searches",
        },
        Change { fields: json!({"cwd": site.path("other")}), word: "cwd", reason: "cwd", part: "/other\n" },
        Change {
            fields: json!({"profile": "layers"}),
            word: "profile",
            reason: "profile_switch:layers",
            part: "Current working directory",
        },
    ]
}

/// Returns the request for a profile with a change.
fn with(site: &Site, profile: &str, change: &Value) -> proem::Request {
    let mut fields = json!({"profile": profile});
    fields.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    site.request(fields)
}

#[test]
fn a_change_that_the_profile_follows_opens_an_epoch() {
    on_each_store(|site, store| {
        for (index, Change { fields, word, reason, part }) in changes(site).into_iter().enumerate() {
            let (own, id) = (conversations(store), format!("c{index}"));
            site.profile("one", "default", &format!("[\"{word}\"]"));
            let ask = |change: &Value| own.turn(&id, with(site, "one", change), Caller::User).unwrap();
            let first = ask(&json!({}));
            let before = own.current(&id).unwrap().unwrap();
            assert!(!system(&first.frozen).contains(part), "{reason}");
            let second = ask(&fields);
            assert!(system(&second.frozen).contains(part), "{reason}: {}", system(&second.frozen));
            assert_eq!((second.is_reused, second.epoch, second.reason.as_str()), (false, 2, reason));
            assert_eq!((waiting(&second.pending), second.expected_miss.as_deref()), (vec![], Some(reason)));
            let third = ask(&fields);
            assert_eq!((third.is_reused, third.epoch), (true, 2), "it is not a change any more");
            assert_eq!(third.expected_miss, None, "it is reported once");
            let old = own.epoch(&id, 1).unwrap().unwrap();
            assert_eq!((&old.head, &old.frozen), (&before.head, &first.frozen), "it stays readable");
        }
    });
}

#[test]
fn a_change_that_the_profile_does_not_follow_waits() {
    on_each_store(|site, store| {
        for (index, Change { fields, word, part, .. }) in changes(site).into_iter().enumerate() {
            let (own, id) = (conversations(store), format!("c{index}"));
            let others: Vec<&str> =
                ["tools", "cwd", "profile", "reload"].into_iter().filter(|other| *other != word).collect();
            site.profile("all-but-one", "default", &format!("{others:?}"));
            let ask =
                |change: &Value| own.turn(&id, with(site, "all-but-one", change), Caller::User).unwrap();
            let first = ask(&json!({}));
            for _ in 0..2 {
                let later = ask(&fields);
                assert_eq!((later.is_reused, &later.frozen), (true, &first.frozen), "{word}");
                assert_eq!((waiting(&later.pending), later.tools), (vec![word], first.tools.clone()));
                assert_eq!(noted(&later.notes, Code::PendingChange), [waits(word, "all-but-one")]);
                let note = later.notes.iter().find(|note| note.code == Code::PendingChange).unwrap();
                assert_eq!(note.hint.as_deref(), Some("a reload of the conversation applies it"));
            }
            assert_eq!(store.current_number(&id).unwrap(), 1);
            // Another process applies it, as the hint says.
            let changed = conversations(store).reload(&id, RequestUpdate::default(), Caller::User).unwrap();
            assert_eq!((changed.is_opened, waiting(&changed.pending)), (true, vec![]), "{word}");
            assert_eq!(summary(&changed.epoch).1, "reload");
            assert!(system(&changed.epoch.frozen).contains(part), "{word}");
        }
    });
}

/// F7: the first value comes back before any epoch was opened.
#[test]
fn a_change_that_is_withdrawn_waits_no_more() {
    on_each_store(|site, store| {
        for (index, Change { fields, word, .. }) in changes(site).into_iter().enumerate() {
            let (own, id) = (conversations(store), format!("c{index}"));
            site.profile("still", "default", "[\"reload\"]");
            let ask = |change: &Value| own.turn(&id, with(site, "still", change), Caller::User).unwrap();
            ask(&json!({}));
            assert_eq!(waiting(&ask(&fields).pending), [word]);
            let back = ask(&json!({}));
            assert_eq!((waiting(&back.pending), noted(&back.notes, Code::PendingChange)), (vec![], vec![]));
            let changed = own.reload(&id, RequestUpdate::default(), Caller::User).unwrap();
            assert_eq!((changed.is_opened, changed.epoch.head.number), (false, 1), "{word}");
        }
    });
}

#[test]
fn a_switch_to_the_profile_of_the_epoch_is_not_a_change() {
    on_each_store(|site, store| {
        site.profile("still", "default", "[]");
        for (id, profile) in [("c", "default"), ("d", "still")] {
            let own = conversations(store);
            site.write("work/AGENTS.md", "old\n");
            own.turn(id, site.request(json!({"profile": profile})), Caller::User).unwrap();
            site.write("work/AGENTS.md", "new\n");
            let same = own.switch_profile(id, profile, Caller::User).unwrap();
            assert_eq!((same.is_opened, waiting(&same.pending)), (false, vec![]), "{profile}");
        }
        let own = conversations(store);
        let other = own.switch_profile("d", "layers", Caller::User).unwrap();
        assert_eq!((other.is_opened, waiting(&other.pending)), (false, vec!["profile"]));
        let back = own.switch_profile("d", "still", Caller::User).unwrap();
        assert_eq!((back.is_opened, waiting(&back.pending)), (false, vec![]), "it is withdrawn");
        let switched = own.switch_profile("c", "layers", Caller::User).unwrap();
        assert!(switched.is_opened && system(&switched.epoch.frozen).contains("new"), "control");
    });
}

/// A language in the part of a turn is not frozen, so that another one takes effect at once.
#[test]
fn a_change_that_no_frozen_text_depends_on_takes_effect_at_once() {
    on_each_store(|site, store| {
        let text = "name = \"spoken\"\nextends = \"boundary\"\n[[section]]\nid = \"project\"\n\
                    template = { text = \"<[prompt:language]>\", syntax = \"bracket\" }\n";
        site.write("config/profiles/spoken.toml", text);
        let own = conversations(store);
        let said = |language: &str| {
            let answer = turn(&own, &site.request(json!({"profile": "spoken", "language": language})));
            assert_eq!((answer.epoch, waiting(&answer.pending)), (1, vec![]));
            answer.suffix.text(Carrier::System)
        };
        assert_eq!([said("French"), said("Latin"), said("Latin")], ["<French>", "<Latin>", "<Latin>"]);
    });
}

/// A later call may come from a process in another directory.
#[test]
fn a_relative_directory_is_that_of_the_call() {
    on_each_store(|site, store| {
        let here = std::env::current_dir().unwrap();
        for (id, profile) in [("c", "template"), ("d", "default")] {
            let own = conversations(store);
            let ask = |cwd: &str| {
                let request = site.request(json!({"profile": profile, "cwd": cwd}));
                own.turn(id, &request, Caller::User).unwrap()
            };
            ask("tests");
            let state = store.current(id).unwrap().unwrap().state.unwrap().text;
            assert!(state.contains(&format!("{:?}", here.join("tests"))), "{state}");
            for cwd in ["tests", "./tests/", here.join("tests").to_str().unwrap()] {
                let answer = ask(cwd);
                assert_eq!((answer.epoch, waiting(&answer.pending)), (1, vec![]), "{profile} {cwd}");
            }
        }
    });
}

/// The facts that `boundary` fixes when a conversation begins are those of its directory.
#[test]
fn a_directory_that_waited_is_that_of_the_next_epoch() {
    on_each_store(|site, store| {
        let own = conversations(store);
        turn(&own, &site.request(json!({"profile": "boundary"})));
        let moved = turn(&own, &site.request(json!({"profile": "boundary", "cwd": site.path("other")})));
        let facts = |turn: &proem::Turn| site.said(turn.suffix.text(Carrier::System).as_str());
        assert_eq!(waiting(&moved.pending), ["cwd"]);
        assert!(facts(&moved).contains("{root}/work\n"), "{}", facts(&moved));
        own.reload("c", RequestUpdate::default(), Caller::User).unwrap();
        let later = turn(&own, &site.request(json!({"profile": null, "cwd": null})));
        assert!(facts(&later).contains("{root}/other\n"), "{}", facts(&later));
        assert!(!facts(&later).contains("{root}/work\n"), "{}", facts(&later));
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
            assert_eq!(own.set_tool_registry("c", &tools, Caller::User).unwrap().epoch.head.number, 1);
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
        let rebuilt = own.set_tool_registry("c", &[tool("read"), tool("read")], Caller::User).unwrap();
        assert_eq!(rebuilt.epoch.head.number, 2);
        assert!(!system(&rebuilt.epoch.frozen).contains("- bash:"), "{}", system(&rebuilt.epoch.frozen));
        let expected = "`tools[1]` is left out: `tools[0]` is called `read`, too";
        assert_eq!(noted(&rebuilt.notes, Code::DuplicateTool), [expected]);
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
        assert!(parts.iter().all(|part| system(&first.frozen).contains(part)));
        let tools = json!([{"name": "read"}]);
        let second = turn(&own, &site.request(json!({"tools": tools, "profile": null, "cwd": null})));
        assert_eq!(second.epoch, 2);
        let missing: Vec<&str> =
            parts.into_iter().filter(|part| !system(&second.frozen).contains(part)).collect();
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
        assert!(system(&second.frozen).contains("- grep:") && system(&second.frozen).contains("/other\n"));
    });
}

#[test]
fn tools_that_cannot_be_set_now_are_those_of_the_next_epoch() {
    on_each_store(|site, store| {
        let own = conversations(store);
        let request = site.request(json!({"profile": "template"}));
        let first = turn(&own, &request);
        let changed = own.set_tool_registry("c", &[tool("grep")], Caller::User).unwrap();
        assert_eq!((changed.is_opened, waiting(&changed.pending)), (false, vec!["tools"]));
        assert_eq!(noted(&changed.notes, Code::PendingChange), [waits("tools", "template")]);
        let hint = "the next compaction applies it; for another prompt now, begin another conversation";
        assert_eq!(changed.notes[0].hint.as_deref(), Some(hint));
        let plain = site.request(json!({"profile": "template", "tools": null}));
        let later = turn(&conversations(store), &plain);
        assert_eq!((&later.frozen, &later.tools), (&first.frozen, &first.tools));
        assert_eq!((waiting(&later.pending), history(store)), (vec!["tools"], epochs(&["startup"])));
        let begun = own.begin_compaction("c", RequestUpdate::default(), Caller::User).unwrap();
        let opened = own.commit_compaction("c", &begun.token, Caller::User).unwrap();
        assert_eq!(opened.request.tools, Some(vec![tool("grep")]));
        let last = turn(&conversations(store), &plain);
        let names: Vec<&str> = last.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!((names, waiting(&last.pending)), (vec!["grep"], vec![]));
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
        assert_eq!(turn_summary(&later), turn_summary(&first));
        assert_eq!((waiting(&later.pending), history(store)), (vec![], epochs(&["startup"])));
    });
}
