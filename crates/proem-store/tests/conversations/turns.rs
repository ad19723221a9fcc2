//! First turns build and store a prompt; later turns return it, even if files have changed.

use std::fs;
use std::sync::Arc;

use proem::hooks::{HookError, ResourcePaths, ResourcesDiscover};
use proem::request::RequestUpdate;
use proem::{Caller, Engine, Hook};
use proem_core::carrier::Carrier;
use proem_core::note::Code;
use proem_store::{ConversationError, Conversations, Query, Store};
use serde_json::json;

use crate::site::{
    Counter, Site, conversations, epochs, history, noted, on_each_store, shown, system, turn, turn_summary,
};

#[test]
fn the_first_turn_builds_and_keeps_what_a_build_gives() {
    on_each_store(|site, store| {
        site.write("work/AGENTS.md", "Be brief.\n");
        let request = site.request(json!({"model": "claude-opus-5", "prompt": "Hello"}));
        let build = proem::build(&request, Caller::User).unwrap();
        let answer = turn(&conversations(store), &request);
        assert!(!answer.is_reused);
        assert_eq!((&*answer.frozen, &answer.suffix), (build.frozen(), build.suffix()));
        assert_eq!(answer.suffix.behind(&answer.frozen), *build.whole());
        assert_eq!(answer.system_prompt, build.system().unwrap());
        let stored = store.current("c").unwrap().unwrap().epoch;
        assert_eq!((stored.head.number, &stored.head.reason), (answer.epoch, &answer.reason));
        assert_eq!(stored.head.fingerprint, answer.fingerprint);
        assert_eq!(stored.prompt.frozen().unwrap(), *build.frozen());
        let head = &stored.head;
        assert_eq!((head.number, head.reason.as_str(), head.profile.as_str()), (1, "startup", "default"));
        assert_eq!((head.digest.clone(), head.has_turn), (build.frozen().digest().hex(), true));
        assert_eq!(head.fingerprint, build.fingerprint().whole.hex());
        assert_eq!(
            (site.said(&head.cwd).as_str(), head.model.as_deref()),
            ("{root}/work", Some("claude-opus-5"))
        );
        let next = proem::Request::from_json(&stored.request).unwrap();
        assert_eq!((next.prompt, next.tools), (None, request.tools), "the user's message is not stored");
    });
}

/// Writes all files that a prompt of the profile `default` contains, in one version.
fn lay_files(site: &Site, version: &str) {
    for path in ["work/AGENTS.md", "config/AGENTS.md", "work/.proem/APPEND_SYSTEM.md"] {
        site.write(path, &format!("{version} of {path}\n"));
    }
    site.write("config/SYSTEM.md", &format!("The {version} template.\n"));
    let skill = format!("---\nname: {version}\ndescription: For {version}.\n---\n");
    site.write(&format!("work/.proem/skills/{version}/SKILL.md"), &skill);
    site.write("config/proem.toml", "profile = \"default\"\n");
}

fn git(site: &Site, arguments: &[&str]) {
    let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    proem_testkit::git(&site.path("work"), &arguments);
}

#[test]
fn later_turns_give_the_stored_bytes_although_everything_has_changed() {
    on_each_store(|site, store| {
        lay_files(site, "old");
        git(site, &["init", "-q", "-b", "main"]);
        git(site, &["commit", "-q", "--allow-empty", "-m", "first"]);
        let request = site.request(json!({}));
        let first = turn(&conversations(store), &request);
        let before = store.current("c").unwrap().unwrap().epoch;
        assert!(
            system(&first.frozen).contains("The old template.") && system(&first.frozen).contains("main")
        );
        lay_files(site, "new");
        git(site, &["checkout", "-q", "-b", "other"]);
        site.write("config/proem.toml", "profile = \"layers\"\n");
        let later = site.request(json!({"profile": null, "host": site.host("2027-01-01T00:00:00Z")}));
        assert_ne!(*proem::build(&later, Caller::User).unwrap().frozen(), *first.frozen, "the control");
        // A process that knows the prompt, and one that has just started.
        let fresh = conversations(store);
        for _ in 0..2 {
            let answer = turn(&fresh, &later);
            assert!(answer.is_reused);
            assert_eq!((answer.epoch, &answer.frozen), (1, &first.frozen));
            assert_eq!(fresh.current("c").unwrap().unwrap().head, before.head);
            assert_eq!(noted(&answer.notes, Code::PendingChange), Vec::<&str>::new());
        }
        assert_eq!(history(store), epochs(&["startup"]));
    });
}

#[test]
fn later_turns_give_the_stored_bytes_although_every_file_is_gone() {
    on_each_store(|site, store| {
        for profile in ["template", "default", "layers"] {
            lay_files(site, "old");
            site.write("home/.sf/agent/AGENTS.md", "old\n");
            let request = site.request(json!({"profile": profile}));
            let ask =
                |store: &Arc<dyn Store>| conversations(store).turn(profile, &request, Caller::User).unwrap();
            let first = ask(store);
            for folder in ["work", "config", "home"] {
                fs::remove_dir_all(site.path(folder)).unwrap();
            }
            let later = ask(store);
            assert_eq!((later.is_reused, &later.frozen), (true, &first.frozen), "{profile}");
            let expected = "the facts of this turn are those of an earlier one: cannot use `{root}/work` as the working \
                            directory: no such directory";
            let absent: Vec<String> =
                noted(&later.notes, Code::Absent).into_iter().map(|note| site.said(note)).collect();
            let expected: &[&str] = if profile == "default" { &[expected] } else { &[] };
            assert_eq!(absent, expected, "{profile}");
        }
    });
}

#[test]
fn without_a_turn_carrier_nothing_at_all_is_looked_for_again() {
    on_each_store(|site, store| {
        let counter = Counter::default();
        let own = || Conversations::new(Arc::clone(store), Engine::new().with_hook(counter.clone()));
        let request = site.request(json!({"profile": "template"}));
        turn(&own(), &request);
        assert_eq!(counter.count(), 1);
        for _ in 0..3 {
            turn(&own(), &request);
        }
        assert_eq!(counter.count(), 1);
    });
}

/// Files of hooks are part of the frozen prompt: only a build runs the hooks.
#[test]
fn with_a_turn_carrier_hooks_are_asked_for_files_once() {
    on_each_store(|site, store| {
        let counter = Counter::default();
        let own = || Conversations::new(Arc::clone(store), Engine::new().with_hook(counter.clone()));
        let request = site.request(json!({}));
        for _ in 0..3 {
            turn(&own(), &request);
        }
        assert_eq!(counter.count(), 1);
    });
}

/// A hook that brings a folder of assets.
struct Assets(&'static str);

impl Hook for Assets {
    fn name(&self) -> &'static str {
        "assets"
    }

    fn resources_discover(&self, _: &ResourcesDiscover) -> Result<Option<ResourcePaths>, HookError> {
        Ok(Some(ResourcePaths { asset_paths: vec![self.0.to_owned()], ..ResourcePaths::default() }))
    }
}

/// A template for each turn may lie in a folder of a hook, or in one that was added.
#[test]
fn the_part_of_a_turn_uses_the_resources_of_the_epoch() {
    on_each_store(|site, store| {
        let text = "name = \"brought\"\nextends = \"boundary\"\n[[section]]\nid = \"project\"\n\
                    template = { asset = \"$user/now\", syntax = \"bracket\" }\n";
        site.write("config/profiles/brought.toml", text);
        site.write("work/hooked/now.md", "<[prompt:model]>");
        let own = || Conversations::new(Arc::clone(store), Engine::new().with_hook(Assets("hooked")));
        let said = |own: &Conversations, id: &str, model: &str| {
            let request = site.request(json!({"profile": null, "cwd": null, "model": model}));
            own.turn(id, &request, Caller::User).unwrap().suffix.text(Carrier::System)
        };
        own().turn("c", site.request(json!({"profile": "brought"})), Caller::User).unwrap();
        assert_eq!([said(&own(), "c", "m1"), said(&own(), "c", "m2")], ["<m1>", "<m2>"]);

        site.write("work/added/later.md", "+[prompt:model]+");
        let plain = conversations(store);
        plain.turn("d", site.request(json!({"profile": "boundary"})), Caller::User).unwrap();
        let paths = ResourcePaths { asset_paths: vec!["added".into()], ..ResourcePaths::default() };
        plain.add_resources("d", &paths, Caller::User).unwrap();
        let later = text.replace("brought", "added").replace("$user/now", "$user/later");
        site.write("config/profiles/added.toml", &later);
        plain.switch_profile("d", "added", Caller::User).unwrap();
        assert_eq!([said(&plain, "d", "m1"), said(&conversations(store), "d", "m2")], ["+m1+", "+m2+"]);
    });
}

#[test]
fn the_turn_carrier_is_observed_each_turn() {
    on_each_store(|site, store| {
        git(site, &["init", "-q", "-b", "main"]);
        let own = conversations(store);
        let at = |now: &str, recalled: &str| {
            let request = site.request(json!({"host": site.host(now), "recalled": recalled}));
            let answer = turn(&own, &request);
            assert_eq!(answer.epoch, 1);
            answer.suffix.text(Carrier::Turn)
        };
        let first = at("2026-03-07T14:55:05Z", "He likes tea.");
        assert_eq!(first, "He likes tea.\n\n<now>\nTime: Saturday, March 7, 2026 at 08:55:05 AM CST\n</now>");
        site.write("work/new.txt", "x");
        let second = at("2026-03-08T14:55:05Z", "He likes coffee.");
        let expected = "He likes coffee.\n\n<now>\nTime: Sunday, March 8, 2026 at 09:55:05 AM CDT\n\
                        Changed files (git status):\n?? new.txt\n</now>";
        assert_eq!(second, expected);
    });
}

#[test]
fn what_belongs_to_a_turn_is_not_kept() {
    on_each_store(|site, store| {
        let more = json!({"prompt": "SECRET1", "recalled": "SECRET2", "messages": [{"role": "user", "content": "SECRET3"}]});
        let answer = turn(&conversations(store), &site.request(more));
        assert!(answer.suffix.text(Carrier::Turn).contains("SECRET2"));
        let stored = format!("{:?}", store.current("c").unwrap().unwrap());
        assert!(!stored.contains("SECRET"), "{stored}");
    });
}

#[test]
fn a_first_turn_that_cannot_be_built_leaves_nothing() {
    on_each_store(|site, store| {
        site.write("config/proem.toml", "not TOML");
        let error = conversations(store).turn("c", site.request(json!({})), Caller::User).unwrap_err();
        assert!(matches!(error, ConversationError::Build(_)), "{error}");
        assert_eq!(store.current("c").unwrap(), None);
        let all = store.conversations(&Query { most: 9, ..Query::default() }).unwrap();
        assert!(all.items.is_empty());
        site.write("config/proem.toml", "");
        assert!(!turn(&conversations(store), &site.request(json!({}))).is_reused);
    });
}

/// Row H13.
#[test]
fn only_names_name_conversations() {
    let longest = "x".repeat(128);
    let too_long = "x".repeat(129);
    on_each_store(|site, store| {
        let own = conversations(store);
        let request = site.request(json!({"profile": "template"}));
        for id in ["a", "A.b_c:d-9", "...", longest.as_str()] {
            assert_eq!(own.turn(id, &request, Caller::User).unwrap().conversation, id);
        }
        for id in ["", " ", ".", "..", "a b", "a/b", "../a", "é", "a\0", "a\n", "a%", "a'", too_long.as_str()]
        {
            let answers = [
                own.turn(id, &request, Caller::User).map(drop),
                own.current(id).map(drop),
                own.epoch(id, 1).map(drop),
                own.reload(id, RequestUpdate::default(), Caller::User).map(drop),
                own.set_tool_registry(id, &[], Caller::User).map(drop),
                own.plan_reload(id, RequestUpdate::default(), Caller::User).map(drop),
                own.begin_compaction(id, RequestUpdate::default(), Caller::User).map(drop),
                own.commit_compaction(id, "t", Caller::User).map(drop),
                own.abort_compaction(id, "t"),
            ];
            for answer in answers {
                let error = answer.unwrap_err();
                assert!(error.is_usage());
                let expected = "invalid conversation id\n\
                                hint: use 1 to 128 letters, digits, `.`, `_`, `:` and `-`";
                assert_eq!(shown(site, &error), expected, "{id:?}");
            }
        }
        let all = store.conversations(&Query { most: 9, ..Query::default() }).unwrap();
        assert_eq!(all.items.len(), 4);
    });
}

#[test]
fn what_is_not_known_is_said_by_name() {
    on_each_store(|site, store| {
        let own = conversations(store);
        assert!(own.current("c").unwrap().is_none() && own.epoch("c", 1).unwrap().is_none());
        let error = own.reload("c", RequestUpdate::default(), Caller::User).unwrap_err();
        assert_eq!(shown(site, &error), "there is no conversation `c`\nhint: the first turn creates it");
        turn(&own, &site.request(json!({})));
        assert!(own.epoch("c", 2).unwrap().is_none());
    });
}

/// A conversation that was removed and started again has other bytes under the same number.
#[test]
fn a_conversation_that_was_begun_again_elsewhere_has_its_new_bytes() {
    on_each_store(|site, store| {
        let (one, other) = (conversations(store), conversations(store));
        let old = site.request(json!({"profile": "template", "template": "old"}));
        let new = site.request(json!({"profile": "template", "template": "new"}));
        assert_eq!(turn_summary(&turn(&one, &old)), (1, "startup", "old"));
        assert!(store.remove("c").unwrap());
        assert_eq!(turn_summary(&turn(&other, &new)), (1, "startup", "new"));
        assert_eq!(turn_summary(&turn(&one, &old)), (1, "startup", "new"));
    });
}
