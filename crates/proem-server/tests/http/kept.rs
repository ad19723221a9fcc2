//! Stored values in requests and answers are the same for every kind of store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proem_core::limit::AUTHOR_BYTES_MAX;
use proem_store::{Current, Epoch, EpochHead, MemoryStore, PostgresStore, Store, StoreError};
use proem_testkit::PostgresServer;
use serde_json::json;

use crate::client::Call;
use crate::gate::Gate;
use crate::routes::{done, turn};
use crate::server::{Server, Site};

/// Runs a check with a server on each kind of store.
pub(crate) fn on_each_store(check: impl Fn(&str, &Server)) {
    let site = Site::new();
    check("memory", &Server::start(Arc::new(MemoryStore::new()), site.options()));
    check("sqlite", &site.serve());
    let Some(database) = PostgresServer::start() else { return };
    let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&database.database("kept")).unwrap());
    let server = Server::start(Arc::clone(&store), site.options());
    check("postgres", &server);
    drop(server);
    // Dropped last: a connection to a database cannot be closed inside the runtime.
    drop(store);
}

#[test]
fn a_nul_is_refused_by_every_store() {
    on_each_store(|kind, server| {
        let put =
            |author: &str| Call::json("PUT", "/system-prompt", &json!({ "template": "x", "author": author }));
        let with_model = |model: &str| {
            let body = json!({ "profile": "template", "template": "x", "model": model });
            Call::json("POST", "/conversations/c/turn", &body)
        };
        for call in [
            put("a\0b"),
            with_model("m\0"),
            Call::get("/conversations?search=%00"),
            Call::get("/conversations?search=a%00b"),
            Call::get("/conversations?after=1~%00"),
            Call::get("/conversations?after=1~c%00"),
        ] {
            let answer = server.ask(&call);
            assert_eq!(
                (answer.status, answer.code()),
                (400, "bad_request".into()),
                "{kind} {call:?} {answer:?}"
            );
        }
        let answer = server.ask(&with_model("m\0"));
        assert!(answer.body.contains("`model` has a NUL (U+0000) at byte 1"), "{answer:?}");
        done(server, &put("a b"));
        done(server, &with_model("m"));
        let answer = server.ask(&Call::new("DELETE", "/conversations/c/compaction/%00"));
        assert_eq!((answer.status, answer.code()), (404, "no_compaction".into()), "{kind} {answer:?}");
        let found = done(server, &Call::get("/conversations?search=c&after=9999999999999~"));
        assert_eq!(found["conversations"][0]["conversation"], "c", "{kind}: control");
    });
}

#[test]
fn an_epoch_whose_number_is_too_large_is_not_there() {
    on_each_store(|kind, server| {
        done(server, &turn("c", "x"));
        for number in ["9223372036854775807", "9223372036854775808", "18446744073709551615"] {
            for target in [
                format!("/conversations/c/epochs/{number}"),
                format!("/conversations/c/diff?from={number}&to=1"),
                format!("/conversations/c/diff?from=1&to={number}"),
            ] {
                let answer = server.ask(&Call::get(&target));
                assert_eq!((answer.status, answer.code()), (404, "not_found".into()), "{kind} {target}");
            }
        }
        done(server, &Call::get("/conversations/c/diff?from=1&to=1"));
    });
}

#[test]
fn an_author_has_a_limit() {
    on_each_store(|kind, server| {
        let put = |author: &str| {
            server.ask(&Call::json("PUT", "/system-prompt", &json!({ "template": "x", "author": author })))
        };
        let answer = put(&"a".repeat(AUTHOR_BYTES_MAX + 1));
        assert_eq!((answer.status, answer.code()), (400, "bad_request".into()), "{kind} {answer:?}");
        assert!(answer.body.contains("`author` has 201 bytes, and 200 are allowed"), "{answer:?}");
        assert_eq!(put(&"a".repeat(AUTHOR_BYTES_MAX)).status, 200, "{kind}");
        let versions = done(server, &Call::get("/system-prompt/versions?text=false"));
        let first = &versions["versions"][0];
        assert_eq!((first["version"].as_u64(), first["bytes"].as_u64()), (Some(1), Some(1)), "{kind}");
        assert_eq!(first["author"], json!("a".repeat(AUTHOR_BYTES_MAX)), "{kind}");
        assert!(first.get("template").is_none(), "{kind}");
    });
}

/// The author's name was written by an older version, which had no limit.
#[test]
fn an_author_that_is_too_long_is_shown_in_part() {
    let site = Site::new();
    let store = site.store();
    store.put_template("x", Some(&"é".repeat(1_000_000)), None).unwrap();
    let server = site.serve();
    let answer = server.ask(&Call::get("/system-prompt/versions?text=false"));
    assert_eq!(answer.json()["versions"][0]["author"], json!("é".repeat(AUTHOR_BYTES_MAX / 2) + "…"));
}

/// Lists versions of a store whose templates cannot be read.
#[test]
fn probes_and_lists_do_not_read_templates() {
    let fail = || Err(StoreError::Unavailable { place: "gate".into(), why: "a text was read".into() });
    let site = Site::new();
    let server = Server::start(Arc::new(Gate::new(fail)), site.options());
    assert_eq!(server.ask(&Call::get("/readyz")).status, 200);
    assert_eq!(server.ask(&Call::get("/system-prompt/versions?text=false")).status, 200);
    assert_eq!(server.ask(&Call::get("/system-prompt/versions")).status, 503, "control: this reads them");
}

/// Opens an epoch between the read of the current one and the answer.
#[test]
fn a_conversation_is_shown_as_it_was_at_one_moment() {
    let site = Site::new();
    let opened = AtomicU64::new(0);
    let then = move |store: &MemoryStore| {
        let Ok(Some(Current { epoch: last, .. })) = store.current("c") else { return };
        if opened.fetch_add(1, Ordering::SeqCst) < 50 {
            let head = EpochHead { number: last.head.number + 1, ..last.head.clone() };
            store.open(&Epoch { head, ..last }).unwrap();
        }
    };
    let gate = Gate { then: Box::new(then), ..Gate::new(|| Ok(())) };
    let server = Server::start(Arc::new(gate), site.options());
    done(&server, &turn("c", "x"));
    let mut shown = Vec::new();
    for _ in 0..20 {
        let answer = done(&server, &Call::get("/conversations/c"));
        let epochs = answer["epochs"].as_array().unwrap();
        let last = epochs.last().unwrap()["number"].as_u64().or(epochs.last().unwrap()["epoch"].as_u64());
        assert_eq!(answer["epoch"].as_u64(), last, "{answer}");
        shown.push(answer["epoch"].as_u64().unwrap());
    }
    assert!(shown.is_sorted() && shown.first() != shown.last(), "control: epochs came between: {shown:?}");
}

#[test]
fn calls_that_add_up_to_too_much_are_refused() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &turn("c", "x"));
    let call = |input: u64| {
        let usage = json!({ "input_tokens": input, "cache_read_input_tokens": u64::MAX, "cache_creation_input_tokens": u64::MAX });
        let body = json!({ "usage": usage, "model": "claude-opus-5" });
        server.ask(&Call::json("POST", "/conversations/c/calls", &body))
    };
    let answer = call(u64::MAX);
    assert_eq!((answer.status, answer.code()), (400, "bad_request".into()), "{answer:?}");
    assert!(answer.body.contains("add up to more than 18446744073709551615"), "{answer:?}");
}
