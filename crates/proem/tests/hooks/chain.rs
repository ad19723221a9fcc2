//! Changes that hooks may make to one turn, and their duration.

use std::sync::{Arc, Mutex};

use proem::Engine;
use proem::hooks::{AgentStart, InjectedMessage};
use proem_core::note::Code;
use serde_json::{Value, json};

use crate::own::Own;
use crate::site::{Site, UserInput, hook, message, messages, said};

const KEEP: &str = "cat >'{root}/ID.json'; printf '%s' 'ANSWER'";

/// Returns a hook that stores its input, and answers.
fn keeping(id: &str, event: &str, answer: &str) -> String {
    hook(id, event, &KEEP.replace("ID", id).replace("ANSWER", answer))
}

#[test]
fn handlers_chain_in_the_order_of_registration_and_programs_come_last() {
    let site = Site::with_hooks(&[
        keeping("c", "before_agent_start", r#"{"system_prompt": "from c"}"#),
        keeping("other", "context", ""),
        keeping("d", "before_agent_start", r#"{"system_prompt": "from d"}"#),
    ]);
    let session = site.start(&Engine::new().with_hook(Own::mark("a")).with_hook(Own::mark("b")));
    let frozen = session.build().system().unwrap().to_owned();
    let turn = session.turn(&UserInput { images: vec![json!({"x": [1]})], ..said("Hello\u{0}") });
    let event = |system_prompt: &str| {
        json!({
            "event": "before_agent_start", "prompt": "Hello\u{0}", "images": [{"x": [1]}], "model": null,
            "system_prompt": system_prompt, "cwd": site.path("work"),
        })
    };
    assert_eq!(site.json("c.json"), event(&format!("{frozen}|a|b")));
    assert_eq!(site.json("d.json"), event("from c"));
    assert_eq!(
        site.json("other.json"),
        json!({"event": "context", "messages": messages(&turn), "cwd": site.path("work")})
    );
    assert_eq!(turn.system_prompt, "from d");
    let changed: Vec<&str> = turn.changes.iter().map(|change| change.hook.as_str()).collect();
    assert_eq!(changed, ["a", "b", "c", "d"]);
}

#[test]
fn every_prompt_starts_from_the_frozen_one() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&seen);
    let spy = Own::new("spy").starting(move |event| {
        own.lock().unwrap().push(event.system_prompt.clone());
        Ok(None)
    });
    let session = Site::new().start(&Engine::new().with_hook(spy).with_hook(Own::mark("a")));
    let frozen = session.build().system().unwrap().to_owned();
    for _ in 0..3 {
        assert_eq!(session.turn(&said("Hello")).system_prompt, format!("{frozen}|a"));
    }
    assert_eq!(*seen.lock().unwrap(), vec![frozen.clone(); 3]);
    let continued = session.turn(&UserInput::default());
    assert_eq!(continued.system_prompt, format!("{frozen}|a"), "the same prompt of the user goes on");
    assert_eq!((seen.lock().unwrap().len(), session.epoch()), (3, 1));
}

#[test]
fn an_empty_end_is_the_frozen_prompt() {
    for (hooks, expected, changes) in [
        (vec![("a", "")], "frozen", 0),
        (vec![("a", "x"), ("b", "")], "frozen", 0),
        (vec![("a", ""), ("b", "y")], "y", 2),
        (vec![("a", ""), ("b", " ")], " ", 2),
    ] {
        let engine =
            hooks.iter().fold(Engine::new(), |engine, (name, text)| engine.with_hook(Own::set(name, text)));
        let session = Site::new().start_with(&engine, json!({"profile": "template", "system": "frozen"}));
        let turn = session.turn(&said("Hello"));
        assert_eq!(turn.system_prompt, expected, "{hooks:?}");
        assert_eq!(turn.changes.len(), changes, "{hooks:?}: what is not used costs nothing");
        let said = Site::new().noted(&turn.notes, Code::HookFailed);
        let expected: &[&str] = if changes == 0 {
            &["the hooks left an empty system prompt: the frozen one is used"]
        } else {
            &[]
        };
        assert_eq!(said, expected, "{hooks:?}");
    }
}

#[test]
fn changes_of_the_prefix_are_measured_exactly() {
    for (frozen, changed, expected) in [
        ("abcdef", "abcdef", None),
        ("abcdef", "abcdefg", Some((6, 0))),
        ("abcdef", "abc", Some((3, 3))),
        ("abcdef", "abXdef", Some((2, 4))),
        ("abcdef", "Xabcdef", Some((0, 6))),
        // The first bytes of these two letters are the same.
        ("aä!", "aö!", Some((2, 2))),
        ("", "new", Some((0, 0))),
    ] {
        let engine = Engine::new().with_hook(Own::set("h", changed));
        let session = Site::new().start_with(&engine, json!({"profile": "template", "system": frozen}));
        let turn = session.turn(&said("Hello"));
        let found: Vec<_> = turn.changes.iter().map(|c| (c.change.first_byte, c.change.lost_bytes)).collect();
        assert_eq!(found, Vec::from_iter(expected), "{frozen:?} to {changed:?}");
        let message = expected.map(|(first, lost)| {
            let bytes = match lost {
                0 => String::new(),
                _ => format!("{lost} bytes of it (about {} tokens) and ", (lost * 10usize).div_ceil(27)),
            };
            format!(
                "the hook `h` changed the system prompt from byte {first} on: {bytes}the messages behind it are \
                 not read from the cache"
            )
        });
        assert_eq!(Site::new().noted(&turn.notes, Code::PrefixChanged), Vec::from_iter(message));
    }
}

/// Each hook is charged for its own change, and for the cache that is lost by it alone.
#[test]
fn every_hook_is_measured_by_what_it_was_given() {
    let engine = Engine::new().with_hook(Own::set("a", "aXc")).with_hook(Own::set("b", "abX"));
    let session = Site::new().start_with(&engine, json!({"profile": "template", "system": "abc"}));
    let turn = session.turn(&said("Hello"));
    let found: Vec<_> = turn
        .changes
        .iter()
        .map(|change| (change.hook.as_str(), change.change.first_byte, change.change.lost_bytes))
        .collect();
    assert_eq!(found, [("a", 1, 2), ("b", 1, 0)]);
}

#[test]
fn messages_are_injected_in_order_behind_the_users_and_kept() {
    let own = |name: &'static str, content: Value| {
        Own::new(name).starting(move |_| {
            let message = Some(InjectedMessage::Content(content.clone()));
            Ok(Some(AgentStart { system_prompt: None, message }))
        })
    };
    let site = Site::with_hooks(&[
        hook("c", "before_agent_start", r#"echo '{"message": "third"}'"#),
        hook("d", "before_agent_start", r#"echo '{"message": {"content": [{"type": "text"}]}}'"#),
    ]);
    let engine = Engine::new().with_hook(own("a", json!("first"))).with_hook(own("b", json!(["second"])));
    let session = site.start_with(&engine, json!({"profile": "default"}));
    let before = message(json!({"role": "user", "content": "before", "id": 7}));
    let turn = session.turn(&UserInput {
        messages: vec![before.clone()],
        recalled: Some("Remembered.".into()),
        ..said("Hello")
    });
    let contents: Vec<&Value> = turn.messages.iter().map(|message| &message["content"]).collect();
    let expected = [
        json!("before"),
        json!("Hello"),
        json!("first"),
        json!(["second"]),
        json!("third"),
        json!([{"type": "text"}]),
    ];
    assert_eq!(contents[..6], expected.iter().collect::<Vec<_>>());
    assert_eq!((contents.len(), &turn.messages[0]), (7, &before), "the turn's own text comes last");
    assert!(contents[6].as_str().unwrap().starts_with("Remembered."));
    assert!(turn.messages.iter().all(|message| message["role"] == "user"));
    assert_eq!(turn.history, turn.messages);
    assert_eq!((turn.notes.as_slice(), turn.changes.len()), ([].as_slice(), 0));
}

#[test]
fn context_rewrites_a_copy_that_nobody_keeps() {
    let site = Site::with_hooks(&[keeping("b", "context", r#"{"messages": [{"role": "x"}]}"#)]);
    let own = Own::new("a").rewriting(|event| {
        let mut messages = event.messages.clone();
        messages.reverse();
        messages[0].insert("content".into(), "rewritten".into());
        Ok(Some(messages))
    });
    let session = site.start(&Engine::new().with_hook(own));
    let before = message(json!({"role": "assistant", "content": {"deep": ["one"]}}));
    let hello = message(json!({"role": "user", "content": "Hello"}));
    let prompt =
        UserInput { messages: vec![before.clone()], recalled: Some("Remembered.".into()), ..said("Hello") };
    for _ in 0..2 {
        let turn = session.turn(&prompt);
        let rewritten = message(json!({"role": "user", "content": "rewritten"}));
        assert_eq!(
            site.json("b.json"),
            json!({"event": "context", "messages": [rewritten, before], "cwd": site.path("work")})
        );
        assert_eq!(messages(&turn), json!([{"role": "x"}]));
        assert_eq!(turn.history, [before.clone(), hello.clone()]);
        assert_eq!(turn.notes, []);
    }
    let turn = session.turn(&UserInput { text: None, ..prompt });
    assert_eq!(messages(&turn), json!([{"role": "x"}]), "also when the turn goes on by itself");
    assert_eq!(turn.history, [before]);
}
