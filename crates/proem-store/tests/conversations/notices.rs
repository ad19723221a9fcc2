//! Notices: each change is announced exactly once, whatever histories callers bring, and however many take turns at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Barrier};

use proem::deliver::{Notice, RawMessage};
use proem::models::Models;
use proem::simulate::{Payload, SentRequest, simulate};
use proem::{Caller, Engine, Request, Turn};
use proem_core::note::Code;
use proem_store::{Conversations, MemoryStore, PostgresStore, Store};
use proem_testkit::PostgresServer;
use serde_json::{Value, json};

use crate::child;
use crate::site::{Site, conversations, on_each_store};

const PROFILE: &str = r#"
name = "told"
description = "A text, and rules whose changes are announced"
rebuild = ["tools", "reload"]
compaction = "aligned"

[[section]]
id = "base"
template = { text = "Base.", syntax = "bracket" }

[[section]]
id = "context"
collect = { kind = "documents", walk = "repository_to_cwd", names = ["AGENTS.md"], skip_empty = true }
format = "$builtin/default/context"
on_change = "notify"

[[section]]
id = "skills"
collect = { kind = "skills", directories = [{ path = "skills" }] }
format = "$builtin/default/skills"
on_change = "notify"

[[section]]
id = "day"
template = { text = "Day: [system:date]", syntax = "bracket" }
accepts = "day"
on_change = "notify"
"#;

fn told() -> Site {
    let site = Site::new();
    prepare(&site);
    site
}

fn prepare(site: &Site) {
    site.write("config/profiles/told.toml", PROFILE);
    site.write("work/AGENTS.md", "Rules 0.\n");
}

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn request(site: &Site, more: Value) -> Request {
    let mut fields = json!({ "profile": "told" });
    let Value::Object(more) = more else { unreachable!("fields are an object") };
    fields.as_object_mut().unwrap().extend(more);
    site.request(fields)
}

fn messages(turn: &Turn) -> Vec<Value> {
    turn.history.iter().map(|message| serde_json::from_str(message.get()).unwrap()).collect()
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns how often a notice is in a history.
fn count(history: &[Value], notice: &Notice) -> usize {
    history.iter().map(|message| text_of(message).matches(&notice.text).count()).sum()
}

/// Leads a conversation with random edits, retries and damaged histories. Behind each turn, the history has each notice of
/// the epoch exactly once, and the newest content of the file is the last one that was announced.
fn lead(site: &Site, store: &Arc<dyn Store>, seed: u64) {
    let mut numbers = Numbers(seed);
    let id = format!("c{seed}");
    let mut all = conversations(store);
    let take = |all: &Conversations, more: Value| all.turn(&id, request(site, more), Caller::User).unwrap();
    let mut version = 0;
    site.write("work/AGENTS.md", "Rules 0.\n");
    let mut history = messages(&take(&all, json!({ "prompt": "Go." })));
    let mut known: BTreeMap<String, Notice> = BTreeMap::new();
    for step in 0..12 {
        match numbers.below(5) {
            0 => all = conversations(store),
            1 | 2 => {
                version += 1;
                site.write("work/AGENTS.md", &format!("Rules {version} of {seed}.\n"));
            }
            _ => {}
        }
        history.push(json!({ "role": "assistant", "content": "Done." }));
        let before = history.clone();
        match numbers.below(4) {
            // The caller lost a notice.
            0 => history.retain(|message| !text_of(message).contains("<notice-")),
            1 => {
                if let Some(cut) = history.iter().position(|message| text_of(message).contains("<notice-")) {
                    history.remove(cut);
                }
            }
            _ => {}
        }
        let body = json!({ "prompt": format!("Step {step}."), "messages": history });
        let turn = take(&all, body.clone());
        if numbers.below(3) == 0 {
            let again = take(&all, body);
            assert_eq!(again.notices, turn.notices, "a retry gets the same");
            assert_eq!(again.history, turn.history);
        }
        for notice in &turn.notices {
            let same = known.entry(notice.id.clone()).or_insert_with(|| notice.clone());
            assert_eq!(same, notice, "a notice never changes");
        }
        history = messages(&turn);
        for notice in known.values() {
            assert_eq!(count(&history, notice), 1, "seed {seed}, step {step}: {} in {before:?}", notice.text);
        }
        let numbers: BTreeSet<u64> = known.values().map(|notice| notice.number).collect();
        assert_eq!(numbers.len(), known.len(), "numbers are unique");
        if version > 0 {
            let last = known.values().max_by_key(|notice| notice.number).unwrap();
            assert!(last.text.contains(&format!("Rules {version} of {seed}.\n")), "{}", last.text);
        }
    }
}

#[test]
fn every_change_is_in_the_history_exactly_once() {
    let site = told();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    (0..40).for_each(|seed| lead(&site, &store, seed));
    let store = site.sqlite();
    (100..106).for_each(|seed| lead(&site, &store, seed));
}

/// Takes turns at once, each as another process would, after an edit.
fn race(open: &dyn Fn() -> Arc<dyn Store>, site: &Site) {
    const RACERS: usize = 8;
    let racers: Vec<Arc<Conversations>> =
        (0..RACERS).map(|_| Arc::new(Conversations::new(open(), Engine::new()))).collect();
    for round in 0..5 {
        let id = format!("race{round}");
        site.write("work/AGENTS.md", "Rules.\n");
        racers[0].turn(&id, request(site, json!({ "prompt": "Go." })), Caller::User).unwrap();
        for edit in 1..=3 {
            site.write("work/AGENTS.md", &format!("Rules {edit}.\n"));
            let barrier = Arc::new(Barrier::new(RACERS));
            let threads: Vec<_> = racers
                .iter()
                .map(|racer| {
                    let (racer, barrier, id) = (Arc::clone(racer), Arc::clone(&barrier), id.clone());
                    let request = request(site, json!({ "prompt": "On.", "messages": [] }));
                    std::thread::spawn(move || {
                        barrier.wait();
                        racer.turn(&id, request, Caller::User).unwrap()
                    })
                })
                .collect();
            let turns: Vec<Turn> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            for turn in &turns {
                assert_eq!(turn.notices, turns[0].notices, "all get the same bytes");
                let numbers: Vec<u64> = turn.notices.iter().map(|notice| notice.number).collect();
                assert_eq!(numbers, (1..=edit).collect::<Vec<u64>>(), "each change was announced once");
            }
        }
    }
}

#[test]
fn turns_at_once_store_one_notice_and_all_get_it() {
    let site = told();
    race(&|| site.sqlite(), &site);
    if let Some(server) = PostgresServer::start() {
        let site = told();
        let database = server.database("notices");
        race(&|| Arc::new(PostgresStore::connect(&database).unwrap()), &site);
    }
}

/// Without messages, a turn that lost the race delivers what the winner stored meanwhile.
#[test]
fn turns_at_once_without_messages_deliver_the_notice_at_least_once_each() {
    let site = told();
    let store = site.sqlite();
    let all = Arc::new(conversations(&store));
    all.turn("c", request(&site, json!({ "prompt": "Go." })), Caller::User).unwrap();
    site.write("work/AGENTS.md", "Rules 1.\n");
    let one = all.turn("c", request(&site, json!({ "prompt": "On." })), Caller::User).unwrap();
    let two = all.turn("c", request(&site, json!({ "prompt": "On." })), Caller::User).unwrap();
    assert_eq!((one.notices.len(), two.notices.len()), (1, 0));
}

/// The short form of a race between processes; `PROEM_NOTICE_RACES` sets the number of conversations.
#[test]
fn processes_announce_each_change_exactly_once() {
    const PROCESSES: usize = 8;
    let count: usize = std::env::var("PROEM_NOTICE_RACES").map_or(6, |count| count.parse().unwrap());
    let site = told();
    let store = site.sqlite();
    let all = conversations(&store);
    for index in 0..count {
        let id = format!("p{index}");
        all.turn(&id, request(&site, json!({ "prompt": "Go." })), Caller::User).unwrap();
    }
    for edit in 1..=3 {
        site.write("work/AGENTS.md", &format!("Edit {edit}.\n"));
        let commands = (0..PROCESSES).map(|process| {
            let answer = site.path(format!("answer-{process}"));
            let body = json!(request(&site, json!({ "prompt": "On.", "messages": [] })));
            let task = json!({
                "task": "turns", "store": site.database(), "count": count, "request": body, "answer": answer,
            });
            child::command(&[], &task)
        });
        child::run_together(commands.collect());
        let answers: Vec<Value> =
            (0..PROCESSES).map(|process| child::answer(&site.path(format!("answer-{process}")))).collect();
        for answer in &answers {
            assert_eq!(answer, &answers[0], "every process gets the same bytes");
            for notices in answer.as_array().unwrap() {
                let notices = notices.as_array().unwrap();
                assert_eq!(notices.len(), edit, "each change was announced exactly once: {notices:?}");
                let text = notices[edit - 1]["text"].as_str().unwrap();
                assert!(text.contains(&format!("Edit {edit}.\n")), "{text}");
            }
        }
    }
}

#[test]
fn large_documents_and_many_paths_have_limits() {
    on_each_store(|site, store| {
        prepare(site);
        let all = conversations(store);
        let take = |more: Value| all.turn("c", request(site, more), Caller::User).unwrap();
        take(json!({ "prompt": "Go." }));
        site.write("work/AGENTS.md", &"A line of a very long document.\n".repeat(330_000));
        let turn = take(json!({ "prompt": "a" }));
        let [notice] = turn.notices.as_slice() else { panic!("one notice: {:?}", turn.notices) };
        assert!(notice.text.contains("too long to repeat here: read the file"), "{}", notice.text);
        assert!(notice.text.len() < 2000);
        assert_eq!(take(json!({ "prompt": "b" })).notices, []);
        site.write("work/AGENTS.md", "Short again.\n");
        assert!(take(json!({ "prompt": "c" })).notices[0].text.contains("Short again."));
        for folder in 0..50 {
            site.write(&format!("work/f{folder}/AGENTS.md"), &format!("Of folder {folder}.\n"));
        }
        let paths: Vec<String> = (0..10_000).map(|index| format!("f{}/x{index}.rs", index % 60)).collect();
        let turn = take(json!({ "prompt": "d", "touched": paths }));
        assert!(turn.notes.iter().any(|note| note.code == Code::OverLimit), "{:?}", turn.notes);
        let text = &turn.notices[0].text;
        assert!((0..50).all(|folder| text.contains(&format!("Of folder {folder}.\n"))), "{text}");
        let outside = take(json!({ "prompt": "e", "touched": ["../../../etc/passwd", "/etc/x"] }));
        assert!(outside.notes.iter().any(|note| note.code == Code::RootNotAllowed), "{:?}", outside.notes);
        assert_eq!(outside.notices, []);
    });
}

#[test]
fn a_state_with_notices_is_refused_by_a_program_that_does_not_know_them() {
    on_each_store(|site, store| {
        prepare(site);
        let all = conversations(store);
        all.turn("c", request(site, json!({ "prompt": "Go." })), Caller::User).unwrap();
        let form = || {
            let state = store.current("c").unwrap().unwrap().state.unwrap();
            serde_json::from_str::<Value>(&state.text).unwrap()["form"].clone()
        };
        assert_eq!(form(), json!(1), "without notices, earlier programs read it");
        site.write("work/AGENTS.md", "New.\n");
        all.turn("c", request(site, json!({ "prompt": "a" })), Caller::User).unwrap();
        assert_eq!(form(), json!(2));
    });
}

/// A conversation with everything that is announced: edits, a skill, a day, touched folders, and a fork.
fn long_conversation(site: &Site, provider: &str, model: &str) -> Vec<Turn> {
    prepare(site);
    site.write(
        "config/profiles/told.toml",
        &PROFILE.replace("Base.", &"Base of a long prompt. ".repeat(500)),
    );
    for folder in ["src", "docs"] {
        site.write(&format!("work/{folder}/AGENTS.md"), &format!("Rules of {folder}.\n"));
    }
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let all = conversations(&store);
    let (mut turns, mut history): (Vec<Turn>, Vec<RawMessage>) = Default::default();
    let mut id = "c";
    for number in 1..=20 {
        let mut body =
            json!({ "prompt": format!("Question {number}."), "provider": provider, "model": model });
        match number {
            3 | 8 | 15 => site.write("work/AGENTS.md", &format!("Rules since {number}.\n")),
            5 => site.write("work/skills/al/SKILL.md", "---\nname: al\ndescription: Al.\n---\nBody.\n"),
            7 => body["touched"] = json!(["src/x.rs"]),
            12 => body["touched"] = json!(["docs/y.md"]),
            17 => {
                all.fork("c", "d", Some("Review the tests."), Caller::User).unwrap();
                id = "d";
            }
            _ => {}
        }
        let moment = if number < 10 { "2026-03-07T14:55:05Z" } else { "2026-03-08T14:55:05Z" };
        body["host"] = site.host(moment);
        let mut request = request(site, body);
        request.messages = Some(history.clone());
        let turn = all.turn(id, request, Caller::User).unwrap();
        history.clone_from(&turn.history);
        history.push(RawMessage::plain("assistant", &format!("Answer {number}.")));
        turns.push(turn);
    }
    turns
}

#[test]
fn every_turn_reads_the_whole_past_from_the_cache() {
    let models = Models::built_in().unwrap();
    for (provider, cache, model) in [
        ("anthropic", "anthropic", "claude-opus-5"),
        ("anthropic", "anthropic", "claude-opus-5-5"),
        ("openai-chat", "openai", "gpt-6-sol"),
        ("openai-responses", "openai", "gpt-6-sol"),
    ] {
        let site = Site::new();
        let turns = long_conversation(&site, provider, model);
        let payloads = turns.iter().map(|turn| turn.payload.as_ref().unwrap().get());
        let sent: Vec<SentRequest> = payloads.map(|text| Payload::from_json(text).unwrap().into()).collect();
        let simulation = simulate(cache, Some(model), &sent, &models).unwrap();
        assert_eq!(simulation.warnings, Vec::<String>::new());
        let mut left = 0;
        for turn in &simulation.turns {
            let figures = turn.figures;
            assert_eq!(turn.miss, None, "{provider} {model}, turn {}", turn.turn);
            assert!(
                figures.read >= left,
                "{provider} {model}, turn {}: {} < {left}",
                turn.turn,
                figures.read
            );
            left = figures.read + figures.written;
        }
        assert!(left > 1000, "control: there is something to read");
        let last = turns.last().unwrap().payload.as_ref().unwrap().get();
        for text in [
            "Rules since 3.",
            "Rules since 8.",
            "Rules since 15.",
            "- al: Al.",
            "Rules of src.",
            "Rules of docs.",
            "- date: 2026-03-08",
            "Review the tests.",
        ] {
            assert_eq!(last.matches(text).count(), 1, "{provider} {model}: {text}");
        }
        assert_eq!(turns.iter().map(|turn| turn.epoch).collect::<BTreeSet<u64>>(), BTreeSet::from([1]));
    }
}

/// Returns the least time of some rounds.
fn least(rounds: usize, mut work: impl FnMut()) -> std::time::Duration {
    let time = |_| {
        let began = std::time::Instant::now();
        work();
        began.elapsed()
    };
    (0..rounds).map(time).min().unwrap()
}

/// Measures what the search for changes adds to an unchanged turn: twelve instruction files and fifty skills.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn an_unchanged_turn_costs_at_most_twice_the_stats_of_its_files() {
    const TURNS: usize = 200;
    let site = told();
    let held =
        PROFILE.replace("on_change = \"notify\"", "on_change = \"hold\"").replace("\"told\"", "\"held\"");
    site.write("config/profiles/held.toml", &held);
    site.write("work/.git/HEAD", "ref: refs/heads/main\n");
    let mut folder = "work".to_owned();
    let mut files = vec![site.path("work/AGENTS.md")];
    for level in 1..12 {
        folder = format!("{folder}/l{level}");
        site.write(&format!("{folder}/AGENTS.md"), &format!("Rules of {level}.\n"));
        files.push(site.path(format!("{folder}/AGENTS.md")));
    }
    for skill in 0..50 {
        let path = format!("{folder}/skills/s{skill}/SKILL.md");
        site.write(&path, &format!("---\nname: s{skill}\ndescription: Skill {skill}.\n---\n"));
        files.push(site.path(path));
    }
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let all = conversations(&store);
    let cwd = site.path(&folder);
    let turn = |profile: &str| {
        let request = request(&site, json!({ "profile": profile, "cwd": cwd, "prompt": "On." }));
        all.turn(profile, request, Caller::User).unwrap()
    };
    for profile in ["told", "held"] {
        (0..50).for_each(|_| drop(turn(profile)));
        std::thread::sleep(std::time::Duration::from_millis(100));
        (0..50).for_each(|_| drop(turn(profile)));
    }
    let stats = least(20, || {
        for _ in 0..TURNS {
            for file in &files {
                std::hint::black_box(std::fs::metadata(file).unwrap());
            }
        }
    });
    let run = |profile: &str| least(20, || (0..TURNS).for_each(|_| drop(turn(profile))));
    let (told, held) = (run("told"), run("held"));
    let per_turn = |time: std::time::Duration| time / u32::try_from(TURNS).unwrap();
    println!(
        "{} files: stat {:?}, turn with notify {:?}, with hold {:?}",
        files.len(),
        per_turn(stats),
        per_turn(told),
        per_turn(held)
    );
    assert!(told.saturating_sub(held) <= stats * 2, "the search costs more than twice the stats");
}
