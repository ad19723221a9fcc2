//! Reports about a hook that fails, to the user and to remote clients.

use std::sync::{Arc, Mutex};

use proem::hooks::{HookError, ResourcePaths};
use proem::{Caller, Engine, Request};
use proem_core::note::Code;
use serde_json::json;

use crate::own::Own;
use crate::site::{Site, hook, said};

const WRITTEN: &str = "cannot fetch https://svc:hunterCANARY22x@db.internal/skills with ghp_x7Rk2mQ9vT4wLpZ8sB1nYc6HdF3gJ5aE0uKo";
const MASKED: &str = "cannot fetch https://svc:…@db.internal/skills with ghp_… (40 characters)";
const BEGIN: &str = "the hook `bad` is skipped at `resources_discover`";

#[test]
fn the_user_sees_what_a_hook_wrote_with_secrets_masked() {
    let script = format!("echo '{WRITTEN}' >&2; exit 3");
    for event in ["resources_discover", "before_agent_start", "context"] {
        let site = Site::with_hooks(&[hook("bad", event, &script)]);
        let session = site.start(&Engine::new());
        let notes = [session.build().notes(), &session.turn(&said("Hello")).notes].concat();
        let expected = format!("the hook `bad` is skipped at `{event}`: exit status: 3: {MASKED}");
        assert_eq!(site.noted(&notes, Code::HookFailed), [expected]);
    }
}

/// A hook in Rust that fails, and a request that both callers may send.
fn failing(site: &Site) -> (Engine, Request) {
    let engine = Engine::new().with_hook(Own::new("bad").discovering(|_| Err(HookError::new(WRITTEN))));
    let request = json!({"profile": "template", "cwd": site.path("work"), "template": "x"});
    (engine, Request::from_json(&request.to_string()).unwrap())
}

/// A remote client sees none of it; `proem-cli/tests/trusted.rs` has the same for programs, over HTTP.
#[test]
fn a_remote_client_sees_that_a_hook_failed_and_not_what_it_said() {
    let site = Site::new();
    let (engine, request) = failing(&site);
    for (caller, why) in [(Caller::User, MASKED), (Caller::REMOTE, "it failed")] {
        let build = engine.build(&request, caller).unwrap();
        assert_eq!(site.noted(build.notes(), Code::HookFailed), [format!("{BEGIN}: {why}")]);
    }
}

/// Details that remote clients do not get are reported to the embedding program, once for each call.
#[test]
fn failures_are_reported_to_the_embedding_program() {
    let site = Site::new();
    let (engine, request) = failing(&site);
    let told = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&told);
    let engine = engine.on_hook_failure(move |failure| {
        let words = format!("{} {} {}", failure.hook(), failure.event().word(), failure.why());
        own.lock().unwrap().push(words);
    });
    let request = Request { tools: Some(Vec::new()), ..request };
    let session = engine.start(request, Caller::REMOTE).unwrap();
    session.add_resources(&ResourcePaths::default()).unwrap();
    let expected = format!("bad resources_discover {MASKED}");
    assert_eq!(*told.lock().unwrap(), [expected], "the rebuild did not call it again");
}

/// Notes of a stored prompt are read by other clients, not only by the one that built it.
#[test]
fn prompts_for_a_store_have_no_word_of_what_a_hook_wrote() {
    let site = Site::new();
    let (engine, request) = failing(&site);
    let build = engine.without_hook_output().build(&request, Caller::User).unwrap();
    assert_eq!(site.noted(build.notes(), Code::HookFailed), [format!("{BEGIN}: it failed")]);
}
