//! The contract of stores about calls: rows, sums, chains, and the list of conversations.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use proem::conversation::{Recorder, UsageReport};
use proem::models::Models;
use proem::store::traffic::{
    CallInsert, CallQuery, CallRow, CallSums, ChainInsert, DAY_MILLIS, ListQuery, ListSort, UsageBy,
    UsageQuery,
};
use proem::traffic::lines::{LineDefaults, call_of_line};
use proem_store::Store;
use serde_json::json;

use crate::conformance::epoch;

type Open<'o> = &'o dyn Fn() -> Arc<dyn Store>;

/// A time of today, so that no row has expired: noon of the day before.
fn noon() -> i64 {
    let day = jiff::Timestamp::now().as_millisecond().div_euclid(DAY_MILLIS);
    (day - 1) * DAY_MILLIS + DAY_MILLIS / 2
}

fn sums(read: i64, usd: f64) -> CallSums {
    CallSums { calls: 1, read, uncached: 100 - read, usd, lost_usd: usd / 2.0, ..CallSums::default() }
}

fn call(id: &str, at: i64, conversation: &str) -> CallInsert {
    CallInsert {
        row: CallRow {
            id: id.into(),
            at,
            conversation: conversation.into(),
            agent: "codex".into(),
            model: "m".into(),
            cwd: "/work".into(),
            profile: "codex".into(),
            version: String::new(),
            verdict: "system_changed".into(),
            owner: "clock".into(),
            is_alarming: true,
            sums: sums(60, 0.5),
            record: json!({ "version": 2, "id": id, "text": "NUL \u{0}, ü and \\" }).to_string(),
        },
        chain: None,
        replaces: false,
    }
}

fn ids(store: &dyn Store, query: CallQuery) -> Vec<String> {
    let page = store.list_calls(&CallQuery { most: 100, ..query }).unwrap();
    let id = |record: &str| serde_json::from_str::<serde_json::Value>(record).unwrap()["id"].clone();
    page.items.iter().map(|call| id(&call.record).as_str().unwrap().to_owned()).collect()
}

pub(crate) fn calls_are_listed_by_time(open: Open<'_>) {
    let store = open();
    let (at, mut other) = (noon(), call("c", noon() + 9, "codex:s2"));
    (other.row.verdict, other.row.is_alarming, other.row.model) = ("hit".into(), false, "n".into());
    (other.row.owner, other.row.cwd) = (String::new(), "/x".into());
    let calls = [call("a", at, "codex:s1"), call("b", at, "codex:s1"), other];
    let numbers = store.put_calls(&calls).unwrap();
    assert!(numbers.iter().all(Option::is_some));
    let text = |text: &str| Some(text.to_owned());
    let cases: [(&[&str], CallQuery); 11] = [
        (&["c", "b", "a"], CallQuery::default()),
        (&["b", "a"], CallQuery { conversation: text("codex:s1"), ..CallQuery::default() }),
        (&["b", "a"], CallQuery { conversation: text("s1"), ..CallQuery::default() }),
        (&[], CallQuery { conversation: text("codex"), ..CallQuery::default() }),
        (&["c"], CallQuery { since: Some(at + 1), ..CallQuery::default() }),
        (&["b", "a"], CallQuery { until: Some(at + 9), ..CallQuery::default() }),
        (&["c"], CallQuery { verdicts: vec!["hit".into(), "expired".into()], ..CallQuery::default() }),
        (&["b", "a"], CallQuery { model: text("m"), ..CallQuery::default() }),
        (&["c"], CallQuery { cwd: text("/x"), ..CallQuery::default() }),
        (&["b", "a"], CallQuery { owner: text("clock"), is_alarming: Some(true), ..CallQuery::default() }),
        (&["c"], CallQuery { is_alarming: Some(false), model: text("n"), ..CallQuery::default() }),
    ];
    for (expected, query) in cases {
        assert_eq!(ids(&*store, query.clone()), expected, "{query:?}");
    }
    let first = store.list_calls(&CallQuery { most: 2, ..CallQuery::default() }).unwrap();
    let rest = store.list_calls(&CallQuery { most: 2, after: first.next, ..CallQuery::default() }).unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));
    assert_eq!(rest.items[0].record, calls[0].row.record);
    assert_eq!(store.stored_call("a").unwrap().unwrap(), rest.items[0]);
    assert_eq!(store.stored_call("none").unwrap(), None);
}

/// Returns calls, tokens and money by key and verdict.
fn usage(store: &dyn Store, by: UsageBy) -> Vec<(String, i64, i64, f64)> {
    let mut found: BTreeMap<String, CallSums> = BTreeMap::new();
    for row in store.usage(&UsageQuery { since: 0, until: i64::MAX, by }).unwrap() {
        found.entry(row.key + &row.verdict).or_default().add(&row.sums);
    }
    found.into_iter().map(|(key, sums)| (key, sums.calls, sums.read, sums.usd)).collect()
}

pub(crate) fn a_call_counts_once(open: Open<'_>) {
    let store = open();
    let one = call("a", noon(), "codex:s");
    let first = store.put_calls(&[one.clone(), one.clone()]).unwrap();
    assert!(first[0].is_some() && first[1].is_none());
    assert_eq!(store.put_calls(std::slice::from_ref(&one)).unwrap(), [None]);
    assert_eq!(usage(&*store, UsageBy::Day), [("system_changed".into(), 1, 60, 0.5)]);
    let mut richer = CallInsert { replaces: true, ..one };
    (richer.row.verdict, richer.row.sums) = ("hit".into(), sums(90, 0.25));
    assert!(store.put_calls(&[richer]).unwrap()[0].is_some());
    let counted = usage(&*open(), UsageBy::Model).into_iter().filter(|row| row.1 != 0);
    assert_eq!(counted.collect::<Vec<_>>(), [("mhit".into(), 1, 90, 0.25)]);
    let list = store.list_conversations(&ListQuery { most: 9, ..ListQuery::default() }).unwrap();
    let listed = &list.items[0];
    assert_eq!((listed.calls, listed.read, listed.input, listed.usd), (1, 90, 100, 0.25));
}

pub(crate) fn sums_are_those_of_the_rows(open: Open<'_>) {
    let store = open();
    let at = noon();
    let at_day = |days: i64| at - days * DAY_MILLIS;
    let calls: Vec<CallInsert> = (0..40)
        .map(|index: i64| {
            let mut one = call(&format!("call-{index}"), at_day(index % 5), &format!("codex:{}", index % 3));
            one.row.model = format!("m{}", index % 2);
            one
        })
        .collect();
    store.put_calls(&calls).unwrap();
    let report = |since: i64, until: i64, by: UsageBy| {
        UsageReport::read(&*store, &UsageQuery { since, until, by }).unwrap()
    };
    let all = report(0, i64::MAX, UsageBy::Model);
    assert_eq!((all.totals.calls, all.totals.read, all.totals.usd), (40, 2_400, 20.0));
    assert_eq!((all.totals.lost_usd.agent, all.totals.by_owner["clock"].calls), (10.0, 40));
    let keys: Vec<(&str, usize)> =
        all.groups.iter().map(|group| (group.key.as_str(), group.totals.calls)).collect();
    assert_eq!(keys, [("m0", 20), ("m1", 20)]);
    let days = report(0, i64::MAX, UsageBy::Day);
    assert_eq!(days.groups.iter().map(|group| group.totals.calls).collect::<Vec<_>>(), [8; 5]);
    assert!(days.groups.is_sorted_by_key(|group| group.key.clone()));
    // Parts of days are those of rows, and whole days those of the daily sums.
    for (since, until, calls) in [
        (at_day(1), i64::MAX, 16),
        (at_day(1) + 1, i64::MAX, 8),
        (at_day(3) - 1, at_day(0), 24),
        (at_day(3), at_day(3) + 1, 8),
        (at_day(3) + 1, at_day(3) + 2, 0),
        (at + 1, i64::MAX, 0),
    ] {
        for by in UsageBy::ALL {
            assert_eq!(report(since, until, by).totals.calls, calls, "{since} {until} {by:?}");
        }
    }
}

pub(crate) fn rows_expire_and_sums_stay(open: Open<'_>) {
    let store = open();
    let chain = |thread: &str| {
        Some(ChainInsert { thread: thread.into(), first: "f".into(), is_full: true, link: "{}".into() })
    };
    let at = noon();
    let old = CallInsert { chain: chain("t"), ..call("old", at - 9 * DAY_MILLIS, "c") };
    let new = CallInsert { chain: chain("t"), ..call("new", at, "c") };
    let other = CallInsert { chain: chain("u"), ..call("other", at - 9 * DAY_MILLIS, "c") };
    store.put_calls(&[old, new, other]).unwrap();
    assert_eq!(store.chains("c", 0).unwrap().len(), 3);
    assert_eq!(store.conversations_of_first("f", 9).unwrap(), ["c"]);
    let removed = store.expire_calls(at - DAY_MILLIS, at - DAY_MILLIS, 100).unwrap();
    assert_eq!(removed, 3, "two rows, and the chain of the thread that is not live");
    assert_eq!(ids(&*store, CallQuery::default()), ["new"]);
    assert_eq!(store.chains("c", 0).unwrap().len(), 2, "a live thread keeps all of its chain");
    assert_eq!(usage(&*store, UsageBy::Cwd), [("/worksystem_changed".into(), 3, 180, 1.5)]);
    assert_eq!(store.expire_calls(at - DAY_MILLIS, at - DAY_MILLIS, 100).unwrap(), 0);
}

pub(crate) fn calls_before_a_time_are_forgotten(open: Open<'_>) {
    let store = open();
    let at = noon();
    let calls = [
        call("old", at - 9 * DAY_MILLIS, "codex:a"),
        call("morning", at - 5, "codex:b"),
        call("evening", at + 5, "codex:b"),
    ];
    store.put_calls(&calls).unwrap();
    assert_eq!(store.forget_calls(at).unwrap(), 2);
    assert_eq!(ids(&*store, CallQuery::default()), ["evening"]);
    assert_eq!(usage(&*store, UsageBy::Profile), [("codexsystem_changed".into(), 1, 60, 0.5)]);
    let list = store.list_conversations(&ListQuery { most: 9, ..ListQuery::default() }).unwrap();
    assert_eq!((list.total, list.items[0].calls, list.items[0].conversation.as_str()), (1, 1, "codex:b"));
    assert_eq!(store.forget_calls(at).unwrap(), 0);
}

pub(crate) fn own_and_observed_conversations_share_a_list(open: Open<'_>) {
    let store = open();
    for id in ["own", "quiet"] {
        store.open(&epoch(id, 1, "text")).unwrap();
    }
    let at = noon();
    let mut calls: Vec<CallInsert> =
        (0..4).map(|index| call(&format!("{index}"), at + index, "own")).collect();
    calls.push(call("x", at + 50, "codex:s"));
    calls.extend([call("y", at + 20, "pi:t"), call("z", at + 30, "pi:t")]);
    store.put_calls(&calls).unwrap();
    let list = |query: ListQuery| store.list_conversations(&ListQuery { most: 10, ..query }).unwrap();
    let names = |query: ListQuery| {
        let page = list(query);
        let names: Vec<String> = page.items.into_iter().map(|one| one.conversation).collect();
        assert_eq!(page.total, names.len() as u64);
        names
    };
    let by = |sort: ListSort| ListQuery { sort, is_ascending: sort.ascends(), ..ListQuery::default() };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(names(by(ListSort::Active)), ["codex:s", "pi:t", "own", "quiet"]);
    assert_eq!(names(by(ListSort::Opened)), ["codex:s", "pi:t", "quiet", "own"]);
    assert_eq!(names(by(ListSort::Calls)), ["own", "pi:t", "codex:s", "quiet"]);
    assert_eq!(names(by(ListSort::LostUsd)), ["own", "pi:t", "codex:s", "quiet"]);
    assert_eq!(names(by(ListSort::Id)), ["codex:s", "own", "pi:t", "quiet"]);
    assert_eq!(names(by(ListSort::Epoch)), ["quiet", "own", "pi:t", "codex:s"]);
    assert_eq!(names(by(ListSort::Ratio))[3], "quiet");
    assert_eq!(names(ListQuery { kind: text("observed"), ..by(ListSort::Id) }), ["codex:s", "pi:t"]);
    assert_eq!(names(ListQuery { kind: text("proem"), ..by(ListSort::Id) }), ["own", "quiet"]);
    assert_eq!(
        names(ListQuery { search: text("o"), ..by(ListSort::Id) }),
        ["codex:s", "own", "pi:t", "quiet"]
    );
    assert_eq!(names(ListQuery { search: text("pi:"), ..by(ListSort::Id) }), ["pi:t"]);
    assert_eq!(names(ListQuery { has_miss: true, ..by(ListSort::Id) }), ["codex:s", "own", "pi:t"]);
    assert_eq!(names(ListQuery { since: Some(at + 25), ..by(ListSort::Id) }), ["codex:s", "pi:t"]);
    assert_eq!(names(ListQuery { cwd: text("/work/quiet"), ..by(ListSort::Id) }), ["quiet"]);
    let own = list(ListQuery { search: text("own"), ..by(ListSort::Id) }).items.remove(0);
    assert_eq!((own.is_observed, own.epoch, own.calls, own.usd), (false, 1, 4, 2.0));
    assert_eq!(
        (own.model.as_deref(), own.cwd.as_str(), own.profile.as_str()),
        (Some("m"), "/work/own", "template")
    );
    assert!(own.last_miss.unwrap().contains(r#""id":"3""#));
    for (_, sort) in ListSort::ALL {
        for is_ascending in [false, true] {
            let whole = names(ListQuery { sort, is_ascending, ..ListQuery::default() });
            let (mut paged, mut after) = (Vec::new(), None);
            loop {
                let query = ListQuery { sort, is_ascending, after, most: 1, ..ListQuery::default() };
                let page = store.list_conversations(&query).unwrap();
                assert_eq!(page.total, 4);
                paged.extend(page.items.into_iter().map(|one| one.conversation));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(paged, whole, "{sort:?} {is_ascending}");
        }
    }
    assert!(store.remove("pi:t").unwrap() && store.remove("own").unwrap());
    assert!(!store.remove("pi:t").unwrap());
    assert_eq!(names(by(ListSort::Id)), ["codex:s", "quiet"]);
    assert_eq!(ids(&*store, CallQuery::default()), ["x"]);
}

pub(crate) fn the_key_of_accounts_stays(open: Open<'_>) {
    let key = open().account_key().unwrap();
    assert_eq!((key.len(), open().account_key().unwrap()), (32, key));
}

/// A request of a growing conversation, with a system prompt.
fn line(id: usize, system: &str, messages: usize, read: u64) -> String {
    static BEGUN: OnceLock<i64> = OnceLock::new();
    let messages: Vec<serde_json::Value> =
        (0..messages).map(|index| json!({ "role": "user", "content": format!("message {index}") })).collect();
    let request = json!({
        "model": "claude-opus-5", "messages": messages,
        "system": [{ "type": "text", "text": system, "cache_control": { "type": "ephemeral" } }],
    });
    let usage = json!({ "input_tokens": 5, "cache_read_input_tokens": read, "cache_creation_input_tokens": 5_000 - read });
    // Chains of threads that are not live are removed.
    let begun = BEGUN.get_or_init(|| jiff::Timestamp::now().as_millisecond() - 600_000);
    let at = begun + i64::try_from(id).unwrap() * 2_000;
    json!({ "id": format!("r{id}"), "at": at, "conversation": "s", "agent": "codex", "request": request,
        "response": { "usage": usage } })
    .to_string()
}

pub(crate) fn a_recorder_goes_on_where_another_stopped(open: Open<'_>) {
    let recorder = || Recorder::new(open(), Models::built_in().unwrap());
    let record = |recorder: &Recorder, line: &str| {
        let call = call_of_line(line, 1, &LineDefaults::default()).unwrap();
        recorder.record(call).unwrap().call
    };
    let first = recorder();
    assert_eq!(record(&first, &line(0, "Time 1", 1, 0)).call.verdict.word(), "cold_start");
    let kept = record(&first, &line(1, "Time 2", 2, 0)).call;
    assert_eq!((kept.verdict.word(), kept.conversation.as_str()), ("system_changed", "codex:s"));
    assert_eq!(kept.place.unwrap().byte, Some(5), "the request before is in memory");
    let second = recorder();
    let named = record(&second, &line(2, "Time 3", 3, 0)).call;
    let place = named.place.unwrap();
    assert_eq!((named.verdict.word(), named.predecessor.as_deref()), ("system_changed", Some("r1")));
    assert_eq!((place.part_after.as_deref(), place.byte), (Some("system[0]"), None));
    // The first one sees what the second one stored.
    for number in 3..150 {
        let judged =
            record(if number % 2 == 0 { &first } else { &second }, &line(number, "Time 3", number, 5_000));
        let expected = (format!("r{}", number - 1), "hit");
        assert_eq!((judged.call.predecessor.unwrap(), judged.call.verdict.word()), expected);
    }
    let third = recorder();
    let after = record(&third, &line(150, "Time 3", 150, 5_000)).call;
    assert_eq!((after.predecessor.as_deref(), after.verdict.word()), (Some("r149"), "hit"));
    let again =
        third.record(call_of_line(&line(7, "x", 1, 0), 1, &LineDefaults::default()).unwrap()).unwrap();
    assert_eq!((again.is_new, again.call.call.verdict.word()), (false, "hit"), "its id is stored");
    assert_eq!(
        ids(&*open(), CallQuery { conversation: Some("s".into()), most: 0, ..CallQuery::default() }).len(),
        100
    );
}
