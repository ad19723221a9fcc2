//! Exports and imports from one kind of store to another and back, with every byte of every epoch.

use std::io::BufReader;
use std::sync::Arc;

use proem::Caller;
use proem::request::RequestUpdate;
use proem_store::MaintainStore as _;
use proem_store::{
    Commit, MemoryStore, PostgresStore, Query, SqliteStore, StateRecord, Store, export, import,
};
use proem_testkit::PostgresServer;
use serde_json::{Value, json};

use crate::site::{Site, conversations, epochs, history, system, turn};

fn exported(store: &Arc<dyn Store>) -> String {
    let mut out = Vec::new();
    export(&**store, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Imports an export. Returns the numbers of epochs and template versions that are new, and of those that were known.
fn imported(store: &Arc<dyn Store>, text: &str) -> Result<[(u64, u64); 2], String> {
    let done = import(&**store, &mut BufReader::new(text.as_bytes())).map_err(|error| error.to_string())?;
    Ok([(done.epochs, done.templates), (done.known_epochs, done.known_templates)])
}

/// Creates a store with a conversation of three epochs, and one of another profile.
fn filled(site: &Site) -> Arc<dyn Store> {
    let store = site.sqlite();
    // First, because a new prompt uses the template that is current then.
    store.put_template("one", Some("me"), None).unwrap();
    store.put_template("two\n", None, None).unwrap();
    let own = conversations(&store);
    site.write("work/AGENTS.md", "old \u{1F980}\r\n");
    turn(&own, &site.request(json!({})));
    site.write("work/AGENTS.md", "new\n");
    own.reload("c", RequestUpdate::default(), Caller::User).unwrap();
    let begun = own.begin_compaction("c", RequestUpdate::default(), Caller::User).unwrap();
    own.commit_compaction("c", &begun.token, Caller::User).unwrap();
    own.turn("other", site.request(json!({"profile": "layers"})), Caller::User).unwrap();
    store
}

/// Checks that two stores give the same answers.
fn assert_same(one: &Arc<dyn Store>, other: &Arc<dyn Store>) {
    assert_eq!(exported(one), exported(other));
    let query = Query { most: 9, ..Query::default() };
    assert_eq!(one.conversations(&query).unwrap(), other.conversations(&query).unwrap());
    assert_eq!(history(other), epochs(&["startup", "reload", "compaction"]));
    for number in 1..=3 {
        let kept = |store| conversations(store).epoch("c", number).unwrap().unwrap();
        assert_eq!((kept(one).head, kept(one).frozen), (kept(other).head, kept(other).frozen));
    }
    assert_eq!(one.template_versions(None, 9).unwrap(), other.template_versions(None, 9).unwrap());
    assert_eq!(other.check().unwrap(), Vec::<String>::new());
}

fn there_and_back(site: &Site, store: &Arc<dyn Store>, between: &Arc<dyn Store>) {
    assert_eq!(imported(between, &exported(store)), Ok([(4, 2), (0, 0)]));
    assert_same(store, between);
    let back: Arc<dyn Store> = Arc::new(SqliteStore::open(&site.path("back/proem.db")).unwrap());
    assert_eq!(imported(&back, &exported(between)), Ok([(4, 2), (0, 0)]));
    assert_eq!(imported(&back, &exported(between)), Ok([(0, 0), (4, 2)]), "the second time changes nothing");
    assert_same(store, &back);
    let request = site.request(json!({}));
    let (one, other) = (turn(&conversations(store), &request), turn(&conversations(&back), &request));
    assert_eq!((one.is_reused, system(&one.frozen)), (other.is_reused, system(&other.frozen)));
    let rebuilt = conversations(&back).reload("c", RequestUpdate::default(), Caller::User).unwrap();
    assert_eq!(rebuilt.epoch.head.number, 3, "its request came with it: nothing has changed");
}

#[test]
fn conversations_go_from_sqlite_to_memory_and_back() {
    let site = Site::new();
    let between: Arc<dyn Store> = Arc::new(MemoryStore::new());
    there_and_back(&site, &filled(&site), &between);
}

#[test]
fn conversations_go_from_sqlite_to_postgresql_and_back() {
    let Some(server) = PostgresServer::start() else { return };
    let site = Site::new();
    let between: Arc<dyn Store> = Arc::new(PostgresStore::connect(&server.database("between")).unwrap());
    there_and_back(&site, &filled(&site), &between);
}

#[test]
fn nothing_is_replaced_by_an_import() {
    let site = Site::new();
    let text = exported(&filled(&site));
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&site.path("own/proem.db")).unwrap());
    let own = turn(&conversations(&store), &site.request(json!({"profile": "template", "template": "own"})));
    let error = imported(&store, &text).unwrap_err();
    assert!(error.ends_with(": the store has a different epoch 1 of `c`"), "{error}");
    assert_eq!(system(&conversations(&store).current("c").unwrap().unwrap().frozen), system(&own.frozen));
    assert_eq!(history(&store), epochs(&["startup"]));
}

/// Sets the state of `c`, or does nothing if there is a later one.
fn set_state(store: &Arc<dyn Store>, version: u64, text: &str) -> bool {
    let based_on = store.current_head("c").unwrap().unwrap().state_version;
    let state = StateRecord { version, text: text.into() };
    store.commit(&Commit { conversation: "c", based_on, state: &state, epoch: None }).unwrap()
}

/// States are moved with their conversations, and never go back.
#[test]
fn a_state_is_replaced_only_by_a_later_one() {
    let site = Site::new();
    let store = filled(&site);
    let is_other = |line: &&str| !line.contains("\"kind\":\"state\"");
    let without: String =
        exported(&store).lines().filter(is_other).map(|line| line.to_owned() + "\n").collect();
    let known = store.current_head("c").unwrap().unwrap().state_version;
    let versions = [known + 5, known + 9];
    let exports = [(versions[0], "five"), (versions[1], "nine")].map(|(version, text)| {
        assert!(set_state(&store, version, text));
        exported(&store)
    });
    let [five, nine] = &exports;
    let [as_five, as_nine] = [(versions[0], "five".to_owned()), (versions[1], "nine".to_owned())].map(Some);
    let mut kinds = vec![Arc::new(MemoryStore::new()) as Arc<dyn Store>];
    kinds.push(Arc::new(SqliteStore::open(&site.path("states/proem.db")).unwrap()));
    let server = PostgresServer::start();
    kinds.extend(server.iter().map(|server| -> Arc<dyn Store> {
        Arc::new(PostgresStore::connect(&server.database("states")).unwrap())
    }));
    for copy in kinds {
        let state = || copy.current("c").unwrap().unwrap().state.map(|state| (state.version, state.text));
        for (text, expected) in [
            // An earlier version exported this.
            (&without.replacen("\"version\":3", "\"version\":1", 1), None),
            (five, as_five.clone()),
            (five, as_five.clone()),
            (nine, as_nine.clone()),
            (five, as_nine.clone()),
            (&without, as_nine.clone()),
        ] {
            imported(&copy, text).unwrap();
            assert_eq!(state(), expected);
        }
        assert_eq!(exported(&copy), *nine);
        let line = nine.lines().position(|line| line.contains("\"nine\"")).unwrap() + 1;
        let refusals = [
            (nine.replacen("\"nine\"", "\"other\"", 1), "the store has a different state of `c`"),
            (
                nine.replacen("\"nine\"", "\"a\\u0000b\"", 1),
                "`text` has a NUL (U+0000) at byte 1, which cannot be \
             stored; edit this field of this line, and import again",
            ),
        ];
        for (text, expected) in refusals {
            assert_eq!(imported(&copy, &text), Err(format!("line {line}: {expected}")));
        }
        let alone = nine.lines().find(|line| line.contains("\"nine\"")).unwrap();
        copy.remove("c").unwrap();
        let expected = "line 1: no line before it has an epoch of `c`";
        assert_eq!(imported(&copy, alone), Err(expected.into()));
    }
}

/// Returns the export with one changed field of the first epoch of `c`.
fn altered(text: &str, field: &str, value: &str) -> String {
    let lines = text.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if record["conversation"] == "c" && record["number"] == 1 {
            record[field] = json!(value);
        }
        record.to_string() + "\n"
    });
    lines.collect()
}

/// An epoch that could not be read back is refused.
#[test]
fn an_epoch_that_could_not_be_read_is_not_imported() {
    let site = Site::new();
    let text = exported(&filled(&site));
    let altered = [
        ("digest", altered(&text, "digest", "00")),
        ("conversation", altered(&text, "conversation", "no name")),
        ("form", text.replacen("\\\"version\\\":1", "\\\"version\\\":2", 1)),
        ("truncated", text.chars().take(text.chars().count() - 20).collect()),
        ("header", text.replacen("\"version\":3", "\"version\":4", 1)),
    ];
    let mut taken = Vec::new();
    for (name, text) in altered {
        let store: Arc<dyn Store> =
            Arc::new(SqliteStore::open(&site.path(format!("{name}/proem.db"))).unwrap());
        if imported(&store, &text).is_ok() {
            taken.push(name);
        }
    }
    assert_eq!(taken, Vec::<&str>::new());
}

/// Every store refuses a field that PostgreSQL cannot hold, with its line and the fix.
#[test]
fn a_nul_is_refused_with_its_line_and_the_way_to_mend_it() {
    let site = Site::new();
    let text = exported(&filled(&site));
    let line = |text: &str, what: &str| text.lines().position(|line| line.contains(what)).unwrap() + 1;
    let of_epoch = altered(&text, "model", "a\0b");
    let of_author = text.replacen("\"author\":\"me\"", "\"author\":\"m\\u0000\"", 1);
    let long = text.replacen("\"author\":\"me\"", &format!("\"author\":\"{}\"", "m".repeat(201)), 1);
    let fix = "; edit this field of this line, and import again";
    let nul = "has a NUL (U+0000) at byte 1, which cannot be stored";
    let cases = [
        (&of_epoch, format!("line {}: `model` {nul}{fix}", line(&of_epoch, "a\\u0000b"))),
        (&of_author, format!("line 2: `author` {nul}{fix}")),
        (&long, format!("line 2: `author` has 201 bytes, and 200 are allowed{fix}")),
    ];
    let server = PostgresServer::start();
    for (index, (text, expected)) in cases.into_iter().enumerate() {
        let mut stores: Vec<Arc<dyn Store>> = vec![
            Arc::new(MemoryStore::new()),
            Arc::new(SqliteStore::open(&site.path(format!("nul{index}/proem.db"))).unwrap()),
        ];
        if let Some(server) = &server {
            stores.push(Arc::new(PostgresStore::connect(&server.database(&format!("nul{index}"))).unwrap()));
        }
        for store in stores {
            assert_eq!(imported(&store, text), Err(expected.clone()), "{}", store.describe());
            let edited =
                text.replace("a\\u0000b", "ab").replace("m\\u0000", "m").replace(&"m".repeat(201), "m");
            let all = imported(&store, &edited).map(|[new, known]| (new.0 + known.0, new.1 + known.1));
            assert_eq!(all, Ok((4, 2)), "control: edited as the message says");
        }
    }
}
