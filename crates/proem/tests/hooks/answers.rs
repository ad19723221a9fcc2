//! Hooks that fail or give invalid answers are named and skipped, and the chain goes on.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proem::Engine;
use proem::hooks::HookError;
use proem_core::note::Code;
use proem_core::source::Source;
use serde_json::json;

use crate::own::Own;
use crate::site::{Site, hook, message, messages, said};

/// Runs `check` on every case and names all those that failed.
fn for_each<C>(cases: &[C], name: impl Fn(&C) -> String, check: impl Fn(&C)) {
    let run = |case: &C| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(case)));
    let failed: Vec<String> = cases.iter().filter(|case| run(case).is_err()).map(name).collect();
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

/// Invalid answers to `before_agent_start`, with the expected messages.
const NO_START: [(&str, &str); 20] = [
    ("exit 1", "exit status: 1"),
    (
        "echo '{\"system_prompt\": \"x\"}'; echo >&2; echo ' it broke ' >&2; exit 3",
        "exit status: 3: it broke",
    ),
    ("printf '\\033[2Jred\\377' >&2; exit 1", "exit status: 1: \\u{1b}[2Jred\u{FFFD}"),
    ("kill -9 $$", "signal: 9 (SIGKILL)"),
    ("echo '{'", "NONSENSE"),
    ("head -c 60000 /dev/zero | tr '\\0' '['", "NONSENSE"),
    ("echo 42", "NONSENSE"),
    ("echo '\"text\"'", "NONSENSE"),
    ("echo '[]'", "NONSENSE"),
    ("echo '[\"a list is not an answer\"]'", "NONSENSE"),
    ("echo '{} {}'", "NONSENSE"),
    ("echo '{\"system_prompt\": 1}'", "NONSENSE"),
    ("echo '{\"system_prompt\": [\"x\"]}'", "NONSENSE"),
    ("echo '{\"systemPrompt\": \"x\"}'", "NONSENSE"),
    ("echo '{\"system_prompt\": \"x\", \"system_prompt\": \"y\"}'", "NONSENSE"),
    ("echo '{\"system_prompt\": \"x\", \"message\": 1}'", "NONSENSE"),
    ("echo '{\"message\": [\"a list is not a message\"]}'", "NONSENSE"),
    ("echo '{\"message\": {\"content\": \"x\", \"role\": \"system\"}}'", "NONSENSE"),
    ("echo '{\"message\": {}}'", "NONSENSE"),
    ("printf '{\"system_prompt\": \"\\377\"}'", "NONSENSE"),
];

#[test]
fn a_program_that_gives_no_answer_is_skipped_and_the_chain_goes_on() {
    for_each(
        &NO_START,
        |(script, _)| (*script).to_owned(),
        |(script, expected)| {
            let site = Site::with_hooks(&[
                hook("good", "before_agent_start", r#"echo '{"system_prompt": "kept", "message": "first"}'"#),
                hook("bad", "before_agent_start", script),
                hook("last", "before_agent_start", r#"cat >'{root}/last.json'; echo '{"message": "last"}'"#),
            ]);
            let turn = site.start(&Engine::new()).turn(&said("Hello"));
            assert_eq!(site.json("last.json")["system_prompt"], "kept");
            assert_eq!(turn.system_prompt, "kept");
            let contents: Vec<_> = turn.messages.iter().map(|message| message["content"].clone()).collect();
            assert_eq!(contents, ["Hello", "first", "last"]);
            let start = "the hook `bad` is skipped at `before_agent_start`: ";
            check_failed(&site.noted(&turn.notes, Code::HookFailed), start, expected);
        },
    );
}

/// Checks for one note with this text. Messages about invalid JSON come from the JSON parser in part.
fn check_failed(noted: &[String], start: &str, expected: &str) {
    let [message] = noted else { panic!("{noted:?}") };
    let rest = message.strip_prefix(start).unwrap_or_else(|| panic!("{message}"));
    match expected {
        "NONSENSE" => assert!(rest.starts_with("its answer is not"), "{rest}"),
        _ => assert_eq!(rest, expected),
    }
    assert!(!message.contains(char::is_control), "{message:?}");
    assert!(!message.contains("untagged enum"), "a name of our own source code: {message}");
}

const NO_CONTEXT: [(&str, &str); 9] = [
    ("echo '{}'", "NONSENSE"),
    ("echo '[[{\"role\": \"user\"}]]'", "NONSENSE"),
    ("echo '{\"messages\": {}}'", "NONSENSE"),
    ("echo '{\"messages\": [1]}'", "NONSENSE"),
    ("echo '{\"messages\": [], \"more\": 1}'", "NONSENSE"),
    ("echo '{\"messages\": [{\"role\": \"user\"}, {}]}'", "its `messages[1]` has no `role`"),
    ("echo '{\"messages\": [{\"role\": 1}]}'", "its `messages[0]` has no `role`"),
    ("echo '{\"messages\": [{\"role\": null}]}'", "its `messages[0]` has no `role`"),
    ("printf '{\"messages\": [{\"role\": \"user\", \"content\": \"\\377\"}]}'", "NONSENSE"),
];

#[test]
fn messages_that_cannot_be_sent_are_not_taken() {
    for_each(
        &NO_CONTEXT,
        |(script, _)| (*script).to_owned(),
        |(script, expected)| {
            let site = Site::with_hooks(&[
                hook("good", "context", r#"echo '{"messages": [{"role": "kept"}]}'"#),
                hook("bad", "context", script),
                hook("last", "context", "cat >'{root}/last.json'"),
            ]);
            let turn = site.start(&Engine::new()).turn(&said("Hello"));
            assert_eq!(site.json("last.json")["messages"], json!([{"role": "kept"}]));
            assert_eq!(messages(&turn), json!([{"role": "kept"}]));
            assert_eq!(turn.history, [message(json!({"role": "user", "content": "Hello"}))]);
            check_failed(
                &site.noted(&turn.notes, Code::HookFailed),
                "the hook `bad` is skipped at `context`: ",
                expected,
            );
        },
    );
}

const NO_RESOURCES: [(&str, &str); 6] = [
    ("exit 1", "exit status: 1"),
    ("echo '{\"skill_paths\": \"more\"}'", "NONSENSE"),
    ("echo '{\"skillPaths\": []}'", "NONSENSE"),
    ("echo '[[\"more\"]]'", "NONSENSE"),
    ("echo '{\"skill_paths\": [1]}'", "NONSENSE"),
    ("printf '{\"skill_paths\": [\"\\377\"]}'", "NONSENSE"),
];

#[test]
fn resources_that_are_none_leave_the_others() {
    for_each(
        &NO_RESOURCES,
        |(script, _)| (*script).to_owned(),
        |(script, expected)| {
            let good = |path: &str| format!("echo '{{\"skill_paths\": [\"{path}\"]}}'");
            let site = Site::with_hooks(&[
                hook("good", "resources_discover", &good("one")),
                hook("bad", "resources_discover", script),
                hook("last", "resources_discover", &good("two")),
            ]);
            site.skill("work/one/first", "first");
            site.skill("work/two/second", "second");
            site.skill("work/more/third", "third");
            let session = site.start(&Engine::new());
            assert_eq!(crate::site::skills(session.build().system().unwrap()), ["first", "second"]);
            let start = "the hook `bad` is skipped at `resources_discover`: ";
            check_failed(&site.noted(session.build().notes(), Code::HookFailed), start, expected);
        },
    );
}

#[test]
fn a_program_that_prints_nothing_has_nothing_to_say() {
    for event in ["before_agent_start", "context", "resources_discover"] {
        let site = Site::with_hooks(&[hook("silent", event, "printf ' \\n'; echo complaint >&2")]);
        let session = site.start(&Engine::new());
        let turn = session.turn(&said("Hello"));
        assert_eq!((turn.system_prompt.as_str(), turn.notes.len()), (session.build().system().unwrap(), 0));
        assert_eq!(site.noted(session.build().notes(), Code::HookFailed), [""; 0]);
    }
}

#[test]
fn a_hook_in_rust_that_fails_panics_or_is_late_is_skipped() {
    // A hook that waits for this is late until the test is over.
    let (_end, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    // Long enough for calls that return at once, even on a busy machine.
    let brief = Duration::from_secs(1);
    let cases: Vec<(Own, &str)> = vec![
        (Own::new("bad").starting(|_| Err(HookError::new("no reason"))), "no reason"),
        (Own::new("bad").starting(|_| panic!("a panic of a hook, as expected")), "it panicked"),
        (Own::new("bad").starting(|_| std::panic::resume_unwind(Box::new(7))), "it panicked"),
        (
            Own::new("bad").within(brief).starting(move |_| {
                let _ = wait.lock().map(|wait| wait.recv());
                Ok(None)
            }),
            "it took longer than 1000 ms",
        ),
    ];
    for (bad, expected) in cases {
        let engine = Engine::new().with_hook(Own::mark("a")).with_hook(bad).with_hook(Own::mark("b"));
        let site = Site::new();
        let session = site.start(&engine);
        let turn = session.turn(&said("Hello"));
        assert_eq!(turn.system_prompt, format!("{}|a|b", session.build().system().unwrap()));
        let expected = format!("the hook `bad` is skipped at `before_agent_start`: {expected}");
        assert_eq!(site.noted(&turn.notes, Code::HookFailed), [expected]);
        let sources = turn.notes.iter().filter(|note| note.code == Code::HookFailed);
        let sources: Vec<_> = sources.map(|note| note.source.clone()).collect();
        assert_eq!(sources, [Some(Source::Hook { name: "bad".into() })]);
    }
}

#[test]
fn a_hook_in_rust_fails_at_the_other_events_alike() {
    let bad = Own::new("bad")
        .discovering(|_| panic!("a panic of a hook, as expected"))
        .rewriting(|_| Ok(Some(vec![message(json!({"content": "whose?"}))])));
    let site = Site::new();
    let session = site.start(&Engine::new().with_hook(bad));
    let expected = ["the hook `bad` is skipped at `resources_discover`: it panicked"];
    assert_eq!(site.noted(session.build().notes(), Code::HookFailed), expected);
    let turn = session.turn(&said("Hello"));
    assert_eq!(messages(&turn), json!([{"role": "user", "content": "Hello"}]));
    let expected = ["the hook `bad` is skipped at `context`: its `messages[0]` has no `role`"];
    assert_eq!(site.noted(&turn.notes, Code::HookFailed), expected);
}

/// The name becomes that of a thread, and threads refuse some names.
#[test]
fn any_name_will_do() {
    for name in ["", "a\u{0}b", "\u{1b}[2J", "näme with spaces that is longer than threads can take"] {
        let session = Site::new().start(&Engine::new().with_hook(Own::mark(name)));
        let turn = session.turn(&said("Hello"));
        assert_eq!(turn.system_prompt, format!("{}|{name}", session.build().system().unwrap()));
    }
}
