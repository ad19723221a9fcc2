//! The workspaces that requests bring, in every store.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::io::BufReader;
use std::sync::Arc;

use proem::request::bundle::Bundle;
use proem_store::{
    Epoch, MaintainStore as _, MemoryStore, Store, StoreError, WorkspaceRecord, export, import,
};

use crate::conformance::epoch;

/// A workspace with one file.
fn workspace(text: &str) -> WorkspaceRecord {
    let bundle = Bundle::new([("AGENTS.md".to_owned(), text.to_owned())].into(), None, None).unwrap();
    WorkspaceRecord { digest: bundle.digest(), text: bundle.to_json() }
}

/// An epoch whose request refers to a workspace.
fn of(conversation: &str, number: u64, workspace: &WorkspaceRecord) -> Epoch {
    let digest = &workspace.digest;
    let request =
        serde_json::json!({ "profile": "template", "system": "x", "workspace": digest }).to_string();
    Epoch { request, ..epoch(conversation, number, "x") }
}

pub(crate) fn are_kept_while_they_are_used(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    let (one, two, three) = (workspace("one"), workspace("two"), workspace("three \0 \u{1F600}"));
    assert_eq!(store.workspace(&one.digest).unwrap(), None);
    for record in [&one, &two, &three, &one] {
        store.put_workspace(record).unwrap();
    }
    assert_eq!(open().workspace(&three.digest).unwrap(), Some(three.clone()));
    let mut expected = [&one, &two, &three].map(|record| record.digest.clone());
    expected.sort();
    assert_eq!(store.workspaces("", 9).unwrap(), expected, "each is stored once");
    assert_eq!(store.workspaces(&expected[0], 1).unwrap(), [expected[1].clone()]);

    // Not one that was used a moment ago, and none that an epoch refers to.
    assert_eq!(store.expire_workspaces(WorkspaceRecord::expiry()).unwrap(), 0);
    store.open(&of("c", 1, &one)).unwrap();
    store.open(&of("c", 2, &two)).unwrap();
    store.open(&of("d", 1, &one)).unwrap();
    assert_eq!(store.expire_workspaces(i64::MAX).unwrap(), 1);
    assert_eq!(store.workspace(&three.digest).unwrap(), None);
    assert_eq!(store.workspace(&one.digest).unwrap(), Some(one.clone()));
    store.prune().unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    assert!(store.remove("c").unwrap());
    assert_eq!(store.expire_workspaces(i64::MAX).unwrap(), 1, "the second one was that of `c` alone");
    assert_eq!(store.workspaces("", 9).unwrap(), std::slice::from_ref(&one.digest));
}

pub(crate) fn are_part_of_an_export(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    let one = workspace("one");
    store.put_workspace(&one).unwrap();
    store.open(&of("c", 1, &one)).unwrap();
    let mut out = Vec::new();
    export(&*store, &mut out).unwrap();
    let other = MemoryStore::new();
    import(&other, &mut BufReader::new(&out[..])).unwrap();
    assert_eq!(proem_store::WorkspaceStore::workspace(&other, &one.digest).unwrap(), Some(one.clone()));
    // The other way, twice, and with a text that is not that of its digest.
    for _ in 0..2 {
        import(&*store, &mut BufReader::new(&out[..])).unwrap();
    }
    let damaged = String::from_utf8(out).unwrap().replace("\\\"one\\\"", "\\\"won\\\"");
    let error = import(&*store, &mut BufReader::new(damaged.as_bytes())).unwrap_err().to_string();
    assert!(error.contains("does not match its digest"), "{error}");
}

pub(crate) fn are_missed(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    if store.maintenance().is_none() {
        return;
    }
    let one = workspace("one");
    store.open(&of("c", 1, &one)).unwrap();
    let expected = format!("epoch 1 of `c`: its workspace {} is missing", one.digest);
    assert_eq!(store.check().unwrap(), [expected]);
    store.put_workspace(&one).unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let damaged = WorkspaceRecord { text: "{\"files\":{}}".into(), ..workspace("two") };
    store.put_workspace(&damaged).unwrap();
    assert!(matches!(store.workspace(&damaged.digest), Err(StoreError::Damaged { .. })));
    let found = store.check().unwrap();
    assert!(found.len() == 1 && found[0].contains("does not match its digest"), "{found:?}");
}
