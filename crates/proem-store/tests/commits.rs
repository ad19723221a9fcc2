//! The contract of changes of whole conversations, as promises of every store.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::sync::{Arc, Barrier};
use std::thread;

use proem_store::MaintainStore as _;
use proem_store::{Commit, Current, CurrentHead, Epoch, EpochHead, Query, StateRecord, Store};

use crate::conformance::epoch;

fn state(version: u64, text: &str) -> StateRecord {
    StateRecord { version, text: text.to_owned() }
}

/// Changes the conversation `c`; tells whether the change was written.
fn commit(store: &Arc<dyn Store>, based_on: u64, state: &StateRecord, epoch: Option<&Epoch>) -> bool {
    store.commit(&Commit { conversation: "c", based_on, state, epoch }).unwrap()
}

/// Reads the conversation `c`, and checks that its head fits.
fn current(store: &Arc<dyn Store>) -> Option<Current> {
    let found = store.current("c").unwrap();
    let head = found.as_ref().map(|current| CurrentHead {
        head: current.epoch.head.clone(),
        state_version: current.state.as_ref().map_or(0, |state| state.version),
    });
    assert_eq!(store.current_head("c").unwrap(), head);
    found
}

pub(crate) fn a_change_is_written_whole_or_not_at_all(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    let (first, second, third) = (epoch("c", 1, "one"), epoch("c", 2, "two"), epoch("c", 3, "three"));
    let (ten, eleven, text) = (state(10, "{}"), state(11, "{\"a\":1}"), "é🦀 ' \" \\ \n");
    for (based_on, epoch) in [(0, None), (0, Some(&second)), (5, Some(&first))] {
        assert!(!commit(&store, based_on, &ten, epoch), "{based_on}, {epoch:?}");
        assert_eq!(current(&store), None);
    }
    assert!(store.conversations(&Query { most: 9, ..Query::default() }).unwrap().items.is_empty());
    assert!(commit(&store, 0, &ten, Some(&first)));
    assert_eq!(current(&open()), Some(Current { epoch: first.clone(), state: Some(ten.clone()) }));
    assert!(commit(&store, 10, &eleven, None));
    let expected = Some(Current { epoch: first.clone(), state: Some(eleven.clone()) });
    assert_eq!(current(&open()), expected);
    let (next, other) = (state(12, text), epoch("d", 2, "two"));
    let before = store.generation().unwrap();
    for (why, based_on, state, epoch) in [
        ("the state has another version", 10, &next, None),
        ("there is a state", 0, &next, None),
        ("there is a state, and the epoch is the next one", 0, &next, Some(&second)),
        ("the state has another version, and the epoch is the next one", 10, &next, Some(&second)),
        ("the epoch exists", 11, &next, Some(&first)),
        ("an epoch is left out", 11, &next, Some(&third)),
        ("the epoch is that of another conversation", 11, &next, Some(&other)),
        ("the version does not grow", 11, &eleven, Some(&second)),
        ("the version shrinks", 11, &ten, None),
        ("no store has such a version", 11, &state(u64::MAX, "{}"), None),
    ] {
        assert!(!commit(&store, based_on, state, epoch), "{why}");
        assert_eq!(current(&store), expected, "{why}");
    }
    assert_eq!(store.generation().unwrap(), before, "nothing was written");
    assert!(commit(&store, 11, &next, Some(&second)));
    assert_eq!(current(&open()), Some(Current { epoch: second.clone(), state: Some(next) }));
    assert_eq!(store.epochs("c").unwrap(), [first.head, second.head]);
    assert_eq!(store.current("d").unwrap(), None);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

pub(crate) fn a_conversation_without_a_state_gets_one(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    let (first, second, third) = (epoch("c", 1, "one"), epoch("c", 2, "two"), epoch("c", 3, "three"));
    store.open(&first).unwrap();
    assert_eq!(current(&store), Some(Current { epoch: first, state: None }));
    let (one, two) = (state(1, "1"), state(2, "2"));
    assert!(!commit(&store, 1, &two, None), "there is no version 1");
    assert!(commit(&store, 0, &one, Some(&second)));
    assert!(!commit(&store, 0, &two, None), "there is a state now");
    store.open(&third).unwrap();
    assert_eq!(current(&store), Some(Current { epoch: third, state: Some(one) }), "an epoch alone leaves it");
    assert!(commit(&store, 1, &two, None));
}

pub(crate) fn a_state_goes_with_its_conversation(open: &dyn Fn() -> Arc<dyn Store>) {
    let (store, first) = (open(), epoch("c", 1, "one"));
    let (old, new) = (state(1, "old"), state(2, "new"));
    assert!(commit(&store, 0, &old, Some(&first)));
    let other = Commit { conversation: "d", based_on: 0, state: &old, epoch: Some(&epoch("d", 1, "one")) };
    assert!(store.commit(&other).unwrap());
    assert!(store.remove("c").unwrap());
    assert_eq!(current(&store), None);
    assert!(!commit(&store, 1, &new, None), "it comes too late");
    assert!(!commit(&store, 1, &new, Some(&epoch("c", 2, "two"))), "it comes too late");
    store.open(&first).unwrap();
    assert_eq!(current(&store), Some(Current { epoch: first.clone(), state: None }), "nothing is left of it");
    store.remove("c").unwrap();
    assert!(commit(&store, 0, &new, Some(&first)));
    assert_eq!(current(&store), Some(Current { epoch: first, state: Some(new) }));
    assert_eq!(store.current("d").unwrap().unwrap().state, Some(old), "other states stay");
}

/// Each state is the number of the epoch that came with it.
pub(crate) fn a_state_is_read_with_its_epoch(open: &dyn Fn() -> Arc<dyn Store>) {
    const EPOCHS: u64 = 60;
    let (store, writer, base) = (open(), open(), epoch("c", 2, "text"));
    let write = move |number: u64| {
        let next = Epoch { head: EpochHead { number, ..base.head.clone() }, ..base.clone() };
        assert!(commit(&writer, number - 1, &state(number, &number.to_string()), Some(&next)));
    };
    write(1);
    let writing = thread::spawn(move || (2..=EPOCHS).for_each(write));
    let mut last = 0;
    while last < EPOCHS {
        let Current { epoch, state } = store.current("c").unwrap().unwrap();
        assert_eq!(state.unwrap().text, epoch.head.number.to_string());
        let CurrentHead { head, state_version } = store.current_head("c").unwrap().unwrap();
        assert_eq!(state_version, head.number);
        assert!(epoch.head.number >= last && head.number >= epoch.head.number);
        last = head.number;
    }
    writing.join().unwrap();
}

/// Counts in the state of `c`, and opens an epoch with every third number. Returns the versions that were written.
fn count(store: &Arc<dyn Store>, base: &Epoch, rounds: usize) -> Vec<u64> {
    let mut won = Vec::new();
    while won.len() < rounds {
        let (number, known) = match store.current("c").unwrap() {
            Some(Current { epoch, state }) => (epoch.head.number, state.unwrap()),
            None => (0, state(0, "0")),
        };
        let counted = known.text.parse::<u64>().unwrap() + 1;
        let head = EpochHead { number: number + 1, ..base.head.clone() };
        let next = (number == 0 || counted.is_multiple_of(3)).then(|| Epoch { head, ..base.clone() });
        // Competing writers choose the same version.
        let new = state(known.version + 1, &counted.to_string());
        if commit(store, known.version, &new, next.as_ref()) {
            won.push(new.version);
        }
    }
    won
}

pub(crate) fn of_many_changes_none_is_lost(open: &dyn Fn() -> Arc<dyn Store>) {
    const THREADS: usize = 8;
    const ROUNDS: usize = 9;
    let (base, barrier) = (Arc::new(epoch("c", 1, "text")), Arc::new(Barrier::new(THREADS)));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (store, base, barrier) = (open(), Arc::clone(&base), Arc::clone(&barrier));
            thread::spawn(move || {
                barrier.wait();
                count(&store, &base, ROUNDS)
            })
        })
        .collect();
    let mut won: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    won.sort_unstable();
    let all = (THREADS * ROUNDS) as u64;
    assert_eq!(won, (1..=all).collect::<Vec<_>>(), "each version has one winner");
    let store = open();
    assert_eq!(current(&store).unwrap().state, Some(state(all, &all.to_string())));
    let numbers: Vec<u64> = store.epochs("c").unwrap().iter().map(|head| head.number).collect();
    assert_eq!(numbers, (1..=1 + all / 3).collect::<Vec<_>>(), "the first, and one for every third change");
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

pub(crate) fn states_of_every_kind_survive(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    let large = "é🦀\n".repeat(100_000);
    assert!(commit(&store, 0, &state(1, ""), Some(&epoch("c", 1, "x"))));
    let versions = [2, 1_763_500_000_000_000, i64::MAX as u64 - 1, i64::MAX as u64];
    for (index, version) in versions.into_iter().enumerate() {
        let text = [" ", "\u{FEFF}\r\n", "' \" \\ ; --", large.as_str()][index];
        let known = current(&store).unwrap().state.unwrap().version;
        assert!(commit(&store, known, &state(version, text), None), "{version}");
        assert_eq!(current(&open()).unwrap().state, Some(state(version, text)));
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
