//! The contract of every store, checked in memory, on SQLite and on a real PostgreSQL server.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::collections::BTreeSet;
use std::io::BufReader;
use std::sync::{Arc, Barrier};
use std::thread;

use proem::stored_prompt::StoredPrompt;
use proem::{Caller, Request};
use proem_core::carrier::Carrier;
use proem_store::MaintainStore as _;
use proem_store::{
    Commit, CompactionRecord, Epoch, EpochHead, History, MemoryStore, PostgresStore, Query, SqliteStore,
    StateRecord, Store, StoreError, export, import,
};
use proem_testkit::PostgresServer;

use crate::{commits, traffic, workspaces};

/// Opens the same store each time it is called.
type Opener = Box<dyn Fn() -> Arc<dyn Store>>;

/// Creates empty stores, each of which can be opened several times.
struct Maker {
    name: &'static str,
    make: Box<dyn Fn() -> Opener>,
}

fn memory() -> Maker {
    Maker {
        name: "memory",
        make: Box::new(|| {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            Box::new(move || Arc::clone(&store))
        }),
    }
}

fn sqlite() -> Maker {
    Maker {
        name: "sqlite",
        make: Box::new(|| {
            let folder = tempfile::tempdir().unwrap();
            Box::new(move || Arc::new(SqliteStore::open(&folder.path().join("new/proem.db")).unwrap()))
        }),
    }
}

fn postgres(server: PostgresServer) -> Maker {
    let count = std::cell::Cell::new(0);
    Maker {
        name: "postgres",
        make: Box::new(move || {
            count.set(count.get() + 1);
            let url = server.database(&format!("proem_{}", count.get()));
            Box::new(move || Arc::new(PostgresStore::connect(&url).unwrap()))
        }),
    }
}

pub(crate) fn epoch(conversation: &str, number: u64, text: &str) -> Epoch {
    let request = serde_json::json!({ "profile": "template", "system": text, "cwd": "/" }).to_string();
    let build = proem::build(&Request::from_json(&request).unwrap(), Caller::User).unwrap();
    Epoch {
        head: EpochHead {
            conversation: conversation.to_owned(),
            number,
            reason: if number == 1 { "startup".into() } else { "reload".into() },
            digest: build.frozen().digest().hex(),
            fingerprint: build.fingerprint().whole.hex(),
            profile: "template".into(),
            engine: "0.1.0".into(),
            cwd: format!("/work/{conversation}"),
            model: number.is_multiple_of(2).then(|| "claude-opus-5".to_owned()),
            has_turn: true,
            opened_at: 1_000 + i64::try_from(number).unwrap(),
            template_version: None,
        },
        prompt: StoredPrompt::from_frozen(build.frozen()).unwrap(),
        request,
        // An earlier version stored the first epochs of these conversations.
        sources: (number > 1).then(|| sources_of(text)),
    }
}

/// Reads the current epoch.
fn current(store: &Arc<dyn Store>, conversation: &str) -> Option<Epoch> {
    store.current(conversation).unwrap().map(|current| current.epoch)
}

type Promise = fn(&dyn Fn() -> Arc<dyn Store>);

const PROMISES: [(&str, Promise); 34] = [
    ("calls are listed by time", traffic::calls_are_listed_by_time),
    ("a call counts once", traffic::a_call_counts_once),
    ("sums are those of the rows", traffic::sums_are_those_of_the_rows),
    ("rows expire, and sums stay", traffic::rows_expire_and_sums_stay),
    ("calls before a time are forgotten", traffic::calls_before_a_time_are_forgotten),
    ("own and observed conversations share a list", traffic::own_and_observed_conversations_share_a_list),
    ("the key of accounts stays", traffic::the_key_of_accounts_stays),
    ("a recorder goes on where another stopped", traffic::a_recorder_goes_on_where_another_stopped),
    ("a workspace is kept while it is used", workspaces::are_kept_while_they_are_used),
    ("workspaces are part of an export", workspaces::are_part_of_an_export),
    ("a check misses the workspace of an epoch", workspaces::are_missed),
    ("an epoch is read as it was stored", stored_is_read),
    ("an epoch is the next one or none", epochs_have_no_gaps),
    ("of many first epochs one wins, and all writers get its bytes", one_wins),
    ("of many next epochs one wins", one_rebuild_wins),
    ("an epoch is visible to other connections", others_see_it),
    ("lists are ordered, searched and paged", lists),
    ("a removal removes one conversation", removal),
    ("a compaction is stored until it ends", compactions),
    ("templates have versions, and conflicts are found", templates),
    ("texts of every kind survive", every_text),
    ("unused texts can be pruned, used ones cannot", pruning),
    ("an export reads back as the same store", transfer),
    ("a generation ends with every write, and with nothing else", generations),
    ("calls are stored in order, and removed with their conversation", calls),
    ("a history shows one moment", histories),
    ("an impossible number finds no epoch", numbers),
    ("sources are stored with their epoch, and no prune removes them", sources),
    ("a change is written whole or not at all", commits::a_change_is_written_whole_or_not_at_all),
    ("a conversation without a state gets one", commits::a_conversation_without_a_state_gets_one),
    ("a state goes with its conversation", commits::a_state_goes_with_its_conversation),
    ("a state is read with its epoch", commits::a_state_is_read_with_its_epoch),
    ("of many changes none is lost", commits::of_many_changes_none_is_lost),
    ("states of every kind survive", commits::states_of_every_kind_survive),
];

/// Row S1.
#[test]
fn every_store_keeps_its_promises() {
    let mut makers = vec![memory(), sqlite()];
    makers.extend(PostgresServer::start().map(postgres));
    for maker in makers {
        for (promise, check) in PROMISES {
            eprintln!("{}: {promise}", maker.name);
            check(&(maker.make)());
        }
    }
}

fn stored_is_read(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    assert_eq!(current(&store, "c"), None);
    assert_eq!(store.current_number("c").unwrap(), 0);
    assert_eq!(store.epochs("c").unwrap(), []);
    let (first, second) = (epoch("c", 1, "one"), epoch("c", 2, "two"));
    assert_eq!(store.open(&first).unwrap(), first);
    assert_eq!(store.open(&second).unwrap(), second);
    assert_eq!(current(&store, "c"), Some(second.clone()));
    assert_eq!(store.epoch("c", 1).unwrap(), Some(first.clone()));
    assert_eq!(store.epoch("c", 3).unwrap(), None);
    assert_eq!(store.epochs("c").unwrap(), [first.head, second.head]);
    assert_eq!(store.current_number("c").unwrap(), 2);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

fn epochs_have_no_gaps(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    assert_eq!(store.open(&epoch("c", 2, "x")).unwrap_err(), StoreError::Conflict { current: 0 });
    assert_eq!(current(&store, "c"), None, "nothing of it is stored");
    assert!(store.conversations(&Query { most: 9, ..Query::default() }).unwrap().items.is_empty());
    store.open(&epoch("c", 1, "x")).unwrap();
    assert_eq!(store.open(&epoch("c", 3, "x")).unwrap_err(), StoreError::Conflict { current: 1 });
    // The stored epoch is returned, not replaced.
    assert_eq!(store.open(&epoch("c", 1, "other")).unwrap(), epoch("c", 1, "x"));
}

/// Opens the same number in many threads, each with a store of its own.
fn race(open: &dyn Fn() -> Arc<dyn Store>, conversations: usize, number: u64) {
    const THREADS: usize = 8;
    let barrier = Arc::new(Barrier::new(THREADS));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (store, barrier) = (open(), Arc::clone(&barrier));
            thread::spawn(move || {
                barrier.wait();
                let opened = (0..conversations).map(|index| {
                    let own = epoch(&format!("c{index}"), number, &format!("text of thread {thread}"));
                    store.open(&own).unwrap()
                });
                opened.collect::<Vec<_>>()
            })
        })
        .collect();
    let answers: Vec<Vec<Epoch>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let store = open();
    for index in 0..conversations {
        let stored = store.epoch(&format!("c{index}"), number).unwrap().unwrap();
        let different: BTreeSet<&str> =
            answers.iter().map(|answer| answer[index].prompt.texts[&Carrier::System].as_str()).collect();
        assert_eq!(different.len(), 1, "all callers get the same bytes");
        assert_eq!(answers[0][index], stored);
        assert_eq!(store.epochs(&format!("c{index}")).unwrap().len() as u64, number);
    }
}

fn one_wins(open: &dyn Fn() -> Arc<dyn Store>) {
    race(open, 20, 1);
}

fn one_rebuild_wins(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    for index in 0..10 {
        store.open(&epoch(&format!("c{index}"), 1, "first")).unwrap();
    }
    race(open, 10, 2);
}

fn others_see_it(open: &dyn Fn() -> Arc<dyn Store>) {
    let (one, other) = (open(), open());
    one.open(&epoch("c", 1, "x")).unwrap();
    assert_eq!(other.current_number("c").unwrap(), 1);
    other.open(&epoch("c", 2, "y")).unwrap();
    assert_eq!(current(&one, "c"), Some(epoch("c", 2, "y")));
}

fn lists(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    for (index, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let mut own = epoch(name, 1, "same text");
        own.head.opened_at = 100 + i64::try_from(index / 2).unwrap();
        store.open(&own).unwrap();
    }
    let names = |query: &Query| -> (Vec<String>, Option<String>) {
        let page = store.conversations(query).unwrap();
        (page.items.into_iter().map(|item| item.conversation).collect(), page.next)
    };
    let (all, next) = names(&Query { most: 10, ..Query::default() });
    assert_eq!((all.concat().as_str(), next), ("edcba", None));
    let (first, next) = names(&Query { most: 2, ..Query::default() });
    let (second, next) = names(&Query { most: 2, after: next, ..Query::default() });
    let (third, last) = names(&Query { most: 2, after: next, ..Query::default() });
    assert_eq!((first.concat(), second.concat(), third.concat()), ("ed".into(), "cb".into(), "a".into()));
    assert_eq!(last, None);
    let (found, _) = names(&Query { search: Some("/work/b".into()), most: 9, ..Query::default() });
    assert_eq!(found, ["b"]);
    let (none, _) = names(&Query { search: Some("%' OR 1=1 --".into()), most: 9, ..Query::default() });
    assert!(none.is_empty());
    store.open(&epoch("a", 2, "newer")).unwrap();
    let page = store.conversations(&Query { most: 1, ..Query::default() }).unwrap();
    assert_eq!(
        (page.items[0].conversation.as_str(), page.items[0].epoch, page.items[0].began_at),
        ("a", 2, 100)
    );
}

fn removal(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    store.open(&epoch("a", 1, "shared")).unwrap();
    store.open(&epoch("b", 1, "shared")).unwrap();
    assert!(store.remove("a").unwrap());
    assert!(!store.remove("a").unwrap());
    assert_eq!(current(&store, "a"), None);
    assert_eq!(current(&store, "b"), Some(epoch("b", 1, "shared")));
    assert_eq!(store.open(&epoch("a", 1, "again")).unwrap(), epoch("a", 1, "again"));
}

fn compactions(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    let begun = |token: &str, rebuilt: Option<Epoch>| CompactionRecord {
        token: token.into(),
        conversation: "c".into(),
        from: 1,
        rebuilt,
        request: "{\"cwd\":\"/\"}".into(),
        expires_at: i64::MAX,
        opened: None,
    };
    let (one, other) = (begun("t1", None), begun("t2", Some(epoch("c", 2, "rebuilt"))));
    store.begin_compaction(&one).unwrap();
    store.begin_compaction(&other).unwrap();
    assert_eq!(open().compaction("t1").unwrap(), Some(one));
    assert_eq!(open().compaction("t2").unwrap(), Some(other));
    assert_eq!(store.compaction("t3").unwrap(), None);
    assert!(store.end_compaction("t1", None).unwrap());
    assert!(!store.end_compaction("t1", None).unwrap());
    assert!(!store.end_compaction("t1", Some(2)).unwrap());
    assert_eq!(store.compaction("t1").unwrap(), None);
    assert!(store.end_compaction("t2", Some(2)).unwrap());
    let ended = CompactionRecord { opened: Some(2), ..begun("t2", None) };
    assert_eq!(open().compaction("t2").unwrap(), Some(ended), "the epoch that it opened is stored");
    store.open(&epoch("c", 1, "x")).unwrap();
    store.remove("c").unwrap();
    assert_eq!(store.compaction("t2").unwrap(), None, "it is removed with its conversation");
}

fn calls(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    assert_eq!(store.add_call("c", "{}").unwrap(), None, "there is no such conversation");
    store.open(&epoch("c", 1, "x")).unwrap();
    store.open(&epoch("d", 1, "x")).unwrap();
    assert_eq!(store.last_call("c").unwrap(), None);
    let threads: Vec<_> = (0..8)
        .map(|index| {
            let store = open();
            thread::spawn(move || store.add_call("c", &index.to_string()).unwrap().unwrap())
        })
        .collect();
    let mut numbers: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    assert_eq!(store.add_call("c", "last").unwrap(), Some(9));
    assert_eq!(store.last_call("c").unwrap().as_deref(), Some("last"));
    assert_eq!((store.calls("c").unwrap().len(), store.calls("d").unwrap().len()), (9, 0));
    store.remove("c").unwrap();
    assert_eq!(store.calls("c").unwrap(), Vec::<String>::new());
}

fn histories(open: &dyn Fn() -> Arc<dyn Store>) {
    const EPOCHS: u64 = 60;
    let (store, writer) = (open(), open());
    assert_eq!(store.history("c").unwrap(), History::default());
    store.open(&epoch("c", 1, "x")).unwrap();
    let one = epoch("c", 2, "y");
    let writing = thread::spawn(move || {
        for number in 2..=EPOCHS {
            let head = EpochHead { number, ..one.head.clone() };
            writer.open(&Epoch { head, ..one.clone() }).unwrap();
        }
    });
    let (mut last, mut looks) = (0, 0);
    while last < EPOCHS {
        let History { current, epochs } = store.history("c").unwrap();
        assert!(current >= last, "{current} came after {last}");
        assert_eq!(epochs.last().map(|head| head.number), Some(current), "after {looks} looks");
        assert_eq!(epochs.len() as u64, current);
        (last, looks) = (current, looks + 1);
    }
    writing.join().unwrap();
    assert_eq!(store.history("c").unwrap().epochs, store.epochs("c").unwrap());
}

fn numbers(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    store.open(&epoch("c", 1, "x")).unwrap();
    for number in [0, 2, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        assert_eq!(store.epoch("c", number).unwrap(), None, "{number}");
        assert_eq!(store.template_version(number).unwrap(), None, "{number}");
    }
    assert!(store.epoch("c", 1).unwrap().is_some(), "control");
}

fn generations(open: &dyn Fn() -> Arc<dyn Store>) {
    let (own, other) = (open(), open());
    // A store without generations is queried each time.
    let Some(mut before) = own.generation().unwrap() else { return };
    let open_epoch = |store: &Arc<dyn Store>, name: &str, number: u64| {
        store.open(&epoch(name, number, "x")).unwrap();
    };
    let commit = |based_on: u64| {
        let state = StateRecord { version: based_on + 1, text: "{}".into() };
        other.commit(&Commit { conversation: "c", based_on, state: &state, epoch: None }).unwrap()
    };
    let writes: [(&str, &dyn Fn()); 10] = [
        ("an epoch", &|| open_epoch(&other, "c", 1)),
        ("another one", &|| open_epoch(&other, "c", 2)),
        ("another conversation", &|| open_epoch(&other, "d", 1)),
        ("a template", &|| assert_eq!(other.put_template("t", None, None).unwrap().version, 1)),
        ("a call", &|| assert_eq!(other.add_call("c", "{}").unwrap(), Some(1))),
        ("a state", &|| assert!(commit(0))),
        ("another state", &|| assert!(commit(1))),
        ("a removal", &|| assert!(other.remove("c").unwrap())),
        ("the same epoch again", &|| open_epoch(&other, "c", 1)),
        ("its own", &|| open_epoch(&own, "c", 2)),
    ];
    for (what, write) in writes {
        own.current("c").unwrap();
        other.conversations(&Query { most: 9, ..Query::default() }).unwrap();
        assert!(!commit(9), "there is no version 9");
        assert_eq!(own.generation().unwrap(), Some(before), "reading before {what} is not a write");
        write();
        let after = own.generation().unwrap();
        assert_ne!(after, Some(before), "{what}");
        before = after.unwrap();
    }
}

fn templates(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    assert_eq!(store.template().unwrap(), None);
    let first = store.put_template("one", Some("me"), None).unwrap();
    assert_eq!((first.version, first.text.as_str(), first.author.as_deref()), (1, "one", Some("me")));
    let second = store.put_template("two", None, Some(1)).unwrap();
    assert_eq!(store.put_template("three", None, Some(1)).unwrap_err(), StoreError::Conflict { current: 2 });
    assert_eq!(open().template().unwrap(), Some(second.clone()));
    assert_eq!(store.template_version(1).unwrap(), Some(first.clone()));
    assert_eq!(store.template_version(9).unwrap(), None);
    assert_eq!(store.template_version(u64::MAX).unwrap(), None);
    assert_eq!(store.template_versions(None, 10).unwrap(), [second.clone(), first.clone()]);
    assert_eq!(store.template_versions(Some(2), 10).unwrap(), [first]);
    assert_eq!(store.template_versions(None, 1).unwrap(), [second]);
    let heads = store.template_heads(None, 10).unwrap();
    let heads: Vec<_> = heads.iter().map(|head| (head.version, head.bytes, head.author.as_deref())).collect();
    assert_eq!(heads, [(2, 3, None), (1, 3, Some("me"))]);
    assert_eq!(store.template_heads(Some(2), 10).unwrap().len(), 1);
    assert_eq!(store.template_heads(None, 1).unwrap()[0].version, 2);
    let stores: Vec<Arc<dyn Store>> = (0..6).map(|_| open()).collect();
    let threads: Vec<_> = stores
        .into_iter()
        .map(|store| thread::spawn(move || store.put_template("racing", None, Some(2)).is_ok()))
        .collect();
    let won = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count();
    assert_eq!(won, 1, "of several writers that expect the same version one wins");
}

fn every_text(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    let large = "é🦀\n".repeat(100_000);
    let texts = ["", " ", "\n", "a\u{0}b", "\u{FEFF}", "' \" \\ ; --", "🦀", large.as_str()];
    for (index, text) in texts.into_iter().enumerate() {
        let mut own = epoch(&format!("c{index}"), 1, text);
        own.prompt.texts.insert(Carrier::Developer, text.to_owned());
        own.request = format!("{{\"system\":{text:?}}}");
        store.open(&own).unwrap();
        assert_eq!(current(&open(), &own.head.conversation), Some(own));
    }
}

fn pruning(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    store.open(&epoch("a", 1, "only of a")).unwrap();
    store.open(&epoch("b", 1, "of b")).unwrap();
    store.remove("a").unwrap();
    store.prune().unwrap();
    assert_eq!(current(&store, "b"), Some(epoch("b", 1, "of b")));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    assert_eq!(store.prune().unwrap(), 0);
    assert_eq!(store.open(&epoch("a", 1, "only of a")).unwrap(), epoch("a", 1, "only of a"));
    assert_eq!(current(&store, "a"), Some(epoch("a", 1, "only of a")));
}

/// Makes the sources of an epoch, which differ with `text`.
fn sources_of(text: &str) -> String {
    let policy = serde_json::json!({
        "profile": "p", "rebuild": [], "compaction": "aligned", "has_turn": false, "cwd": "/",
    });
    serde_json::json!({ "version": 1, "policy": policy, "facts": [text], "read": {} }).to_string()
}

fn sources(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    let first = Epoch { sources: Some("{\"files\":1}".into()), ..epoch("c", 1, "x") };
    let second = Epoch { sources: Some("{\"files\":2}".into()), ..epoch("c", 2, "x") };
    for own in [&first, &second] {
        assert_eq!(store.open(own).unwrap(), *own);
        assert_eq!(current(&open(), "c").as_ref(), Some(own));
    }
    store.open(&Epoch { sources: Some("only of d".into()), ..epoch("d", 1, "x") }).unwrap();
    store.remove("d").unwrap();
    let removed = store.prune().unwrap();
    assert!(store.maintenance().is_none() || removed == "only of d".len() as u64, "{removed}");
    // A store opened again has nothing in memory.
    assert_eq!((open().epoch("c", 1).unwrap(), current(&open(), "c")), (Some(first), Some(second)));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    // A different epoch is not the stored one.
    let other = Epoch { sources: None, ..epoch("c", 2, "x") };
    assert_ne!(store.open(&other).unwrap(), other);
}

fn transfer(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    store.put_template("one", Some("me"), None).unwrap();
    store.put_template("two\n", None, None).unwrap();
    for index in 0..5 {
        store.open(&epoch(&format!("c{index}"), 1, "shared")).unwrap();
        store.open(&epoch(&format!("c{index}"), 2, &format!("own {index}"))).unwrap();
        let state = StateRecord { version: 7 + index, text: format!("{{\"é\":{index}}}") };
        let change = Commit { conversation: &format!("c{index}"), based_on: 0, state: &state, epoch: None };
        // An earlier version stored the other conversations.
        assert!(index % 2 == 0 || store.commit(&change).unwrap());
        store.add_call(&format!("c{index}"), "same").unwrap();
        store.add_call(&format!("c{index}"), "same").unwrap();
    }
    let written = |store: &dyn Store| {
        let mut out = Vec::new();
        export(store, &mut out).unwrap();
        out
    };
    let exported = written(&*store);
    let copy = MemoryStore::new();
    let done = import(&copy, &mut BufReader::new(exported.as_slice())).unwrap();
    assert_eq!((done.epochs, done.templates), (10, 2));
    assert_eq!(written(&copy), exported, "it round-trips");
    assert_eq!(copy.current("c3").unwrap(), store.current("c3").unwrap());
    assert_eq!(copy.current_head("c2").unwrap().unwrap().state_version, 0);
    // A second import into the same store changes nothing.
    import(&*store, &mut BufReader::new(exported.as_slice())).unwrap();
    assert_eq!(written(&*store), exported);
    let other = MemoryStore::new();
    other.open(&epoch("c0", 1, "another text")).unwrap();
    assert!(import(&other, &mut BufReader::new(exported.as_slice())).is_err(), "nothing is replaced");
    let damaged = String::from_utf8(exported).unwrap().replacen("shared", "sharad", 1);
    assert!(import(&MemoryStore::new(), &mut BufReader::new(damaged.as_bytes())).is_err());
}
