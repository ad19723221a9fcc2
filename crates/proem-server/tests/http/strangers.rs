//! Hostile workspaces over HTTP: they run nothing, hide nothing and leak nothing. Rows C1 to C4, C6, T1, T2, F4 to F7, M11
//! and those of git.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proem_server::Options;
use proem_store::MemoryStore;
use proem_testkit::hidden::{HIDDEN, Hidden};
use proem_testkit::hostile::{
    self, Ask, ELSEWHERE, LEADS, Lead, Nuisance, Reply, STATUS, TEMPLATE, Trap, WHOLE, for_each,
};
use rustix::fs::{CWD, FileType, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::server::{Server, Site};

fn turn(server: &Server, site: &Site, profile: &str) -> Answer {
    let body = json!({"profile": profile, "cwd": site.text("work")});
    let answer = server.ask(&Call::json("POST", "/preview", &body));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

/// Rows C1 to C4 and C6.
#[test]
fn hidden_text_is_made_harmless_and_told() {
    for Hidden { row, text, treated, code } in HIDDEN {
        let site = Site::new();
        site.write("work/AGENTS.md", &format!("first\n{text}\nlast\n"));
        let server = site.serve();
        let answer = turn(&server, &site, "default");
        assert!(answer.system().contains(&format!("first\n{treated}\nlast")), "{row}: {answer:?}");
        assert!(answer.body.contains(code), "{row}: {answer:?}");
        let verbatim = turn(&server, &site, "layers");
        assert!(verbatim.system().contains(&format!("first\n{text}\nlast")), "{row}, control");
        assert!(verbatim.body.contains(code), "{row}");
    }
}

/// Row T2.
#[test]
fn a_workspace_sets_nothing_that_it_may_not() {
    let site = Site::new();
    let canary = site.path("canary");
    let script = format!("touch '{}'", canary.display());
    site.write(
        "work/.proem/proem.toml",
        &format!(
            "listen = \"0.0.0.0:1\"\ntoken = \"x\"\nhygiene = \"report\"\n\
             [env]\nallow = [\"PATH\"]\n\
             [[hook]]\nevent = \"resources_discover\"\ncommand = [\"sh\", \"-c\", {script:?}]\n"
        ),
    );
    site.write("work/AGENTS.md", "a\u{202E}b\n");
    let server = site.serve();
    let answer = turn(&server, &site, "default");
    assert!(!canary.exists(), "a hook ran");
    assert_eq!(answer.body.matches("\"ignored_setting\"").count(), 5, "{answer:?}");
    assert!(answer.system().contains("a<U+202E>b"), "{answer:?}");
}

/// Row T1: a profile of the workspace cannot read the server's environment variables.
#[test]
fn a_profile_of_the_workspace_reads_no_variable() {
    let site = Site::new();
    let path = std::env::var("PATH").unwrap();
    site.write(
        "work/.proem/profiles/p.toml",
        "[[section]]\nid = \"base\"\ntemplate = { text = \"none\", syntax = \"bracket\" }\nfiles = { env = \"PATH\" }\n",
    );
    let server = site.serve();
    let answer = turn(&server, &site, "p");
    assert!(!answer.body.contains(&path), "{answer:?}");
    assert!(answer.body.contains("env_not_allowed"), "{answer:?}");
}

/// Starts a server with all of a hostile site as its workspace.
fn serve(site: &hostile::Site) -> Server {
    let root = site.path("").canonicalize().unwrap();
    Server::start(Arc::new(MemoryStore::new()), Options { workspaces: vec![root], ..Options::default() })
}

fn git_facts(site: &hostile::Site, cwd: &str, template: &str) -> Answer {
    let cwd = site.path(cwd).canonicalize().unwrap();
    let body = json!({"profile": "template", "cwd": cwd, "template": template});
    let answer = serve(site).ask(&Call::json("POST", "/preview", &body));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

/// Rows T1 and G1 to G6.
#[test]
fn a_hostile_repository_runs_nothing() {
    let traps: Vec<&Trap> = Trap::all().collect();
    // Only repositories that name the working tree as their own are shown.
    let is_refused = |trap: &Trap| ELSEWHERE.iter().take(4).any(|refused| refused.name == trap.name);
    for_each(
        &traps,
        |trap| trap.name.to_owned(),
        |trap| {
            let said = trap.check(|site| git_facts(site, trap.cwd, TEMPLATE).system());
            let expected = if is_refused(trap) { "||".to_owned() } else { trap.expected.join("|") };
            assert_eq!(said, expected, "{}", trap.name);
        },
    );
}

/// Returns the prompt, then a line for each absent fact. The server has its own time limit for git.
fn report(site: &hostile::Site, ask: &Ask<'_>) -> String {
    let answer = git_facts(site, ask.cwd, ask.template);
    let notes = answer.json()["notes"].as_array().unwrap().clone();
    let told = notes.iter().filter(|note| note["code"] != "volatile_in_prefix").map(|note| {
        let [code, message] = ["code", "message"].map(|field| note[field].as_str().unwrap());
        format!("\n{code}: {}", site.in_general(message))
    });
    answer.system() + &told.collect::<String>()
}

/// The cases in which remote clients get another answer than the user, with the reasons.
const TOLD_TO_STRANGERS: [(&str, &str); 5] = [
    // Links out of the repository may point to another one.
    (
        "character device tree/.git/config [git:branch]|[git:status]|[git:diff]",
        "||\nroot_not_allowed: `[git:branch]` is absent: refused: outside the allowed roots\
         \nroot_not_allowed: `[git:status]` is absent: refused: outside the allowed roots\
         \nroot_not_allowed: `[git:diff]` is absent: refused: outside the allowed roots",
    ),
    (
        "character device tree/.git/index [git:branch]|[git:status]",
        "|\nroot_not_allowed: `[git:branch]` is absent: refused: outside the allowed roots\
         \nroot_not_allowed: `[git:status]` is absent: refused: outside the allowed roots",
    ),
    // External objects are refused by the name of the file that refers to them, which is not opened.
    (
        "FIFO tree/.git/objects/info/alternates [git:status]",
        "\nroot_not_allowed: `[git:status]` is absent: refused: outside the allowed roots",
    ),
    // Git gets only the current ref. A loose ref has precedence, so packed refs are not read.
    (
        "FIFO tree/.git/refs/heads/main [git:status]",
        "\ngit_failed: `[git:status]` is absent: git failed: refs/heads/main: is a FIFO, not a regular file",
    ),
    ("FIFO tree/.git/packed-refs [git:status]", STATUS),
];

/// Rows G7, G8 and G9. That this test ends is a part of it: many of the repositories try to block the reader.
#[test]
fn a_hostile_repository_neither_hangs_nor_garbles() {
    let all: Vec<Nuisance> = Nuisance::all().collect();
    for_each(&all, Nuisance::name, |nuisance| {
        let Reply { said, expected } = nuisance.said(report);
        let name = nuisance.name();
        let other = TOLD_TO_STRANGERS.iter().find(|(of, _)| *of == name);
        assert_eq!(said, other.map_or(expected.as_str(), |(_, told)| told), "{name}");
    });
    let is_there = |name: &str| all.iter().any(|nuisance| nuisance.name() == name);
    assert!(TOLD_TO_STRANGERS.iter().all(|(name, _)| is_there(name)), "each name is that of a case");
}

/// Row G6.
#[test]
fn no_byte_of_another_repository_is_shown() {
    for_each(
        &LEADS,
        |lead| lead.name.to_owned(),
        |lead| {
            let answer = git_facts(&lead.lay_out(), "tree", TEMPLATE);
            assert!(!answer.body.contains(Lead::SECRET), "{}: {answer:?}", lead.name);
        },
    );
    assert_eq!(git_facts(&hostile::Site::new(), "tree", TEMPLATE).system(), WHOLE.join("|"), "control");
}

/// Row M11: names of files are escaped in notes: no part is hidden, and none changes the direction of the text.
#[test]
fn names_of_files_hide_nothing_in_notes() {
    for (name, hidden, spelt) in [
        ("bidi", '\u{202E}', "\\u{202e}"),
        ("zero width", '\u{200B}', "\\u{200b}"),
        ("tag", '\u{E0041}', "\\u{e0041}"),
        ("separator", '\u{2028}', "\\u{2028}"),
        ("escape", '\u{1B}', "\\u{1b}"),
        ("line break", '\n', "\\u{a}"),
    ] {
        let site = Site::new();
        let folder = site.path(&format!("work/.sf/skills/x{hidden}y"));
        std::fs::create_dir_all(&folder).unwrap();
        mknodat(CWD, folder.join("SKILL.md"), FileType::Fifo, 0o644.into(), 0).unwrap();
        let answer = turn(&site.serve(), &site, "layers");
        let notes = answer.json()["notes"].clone();
        let texts = strings(&notes);
        let about: Vec<&String> = texts.iter().filter(|text| text.contains(&format!("x{spelt}y"))).collect();
        assert_eq!(about.len(), 2, "{name}: message and source say it: {notes}");
        assert!(!texts.iter().any(|text| text.contains(hidden)), "{name}: {notes}");
        let control = std::fs::read_dir(site.path("work/.sf/skills")).unwrap().next().unwrap().unwrap();
        assert!(control.file_name().to_str().unwrap().contains(hidden), "{name}: control");
    }
}

/// Collects all strings of a value.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

type Put = fn(&Path);

/// Rows F5 and F6: special files, and files that are too large.
const ODD: [(&str, Put, &str); 6] = [
    ("FIFO", |path| mknodat(CWD, path, FileType::Fifo, 0o644.into(), 0).unwrap(), "not_regular"),
    ("socket", |path| drop(UnixListener::bind(path).unwrap()), "not_regular"),
    ("device", |path| std::os::unix::fs::symlink("/dev/zero", path).unwrap(), "root_not_allowed"),
    ("directory", |path| std::fs::create_dir(path).unwrap(), "absent"),
    ("10 GiB", |path| File::create(path).unwrap().set_len(10 << 30).unwrap(), "over_limit"),
    ("kernel's", |path| std::os::unix::fs::symlink("/proc/self/status", path).unwrap(), "root_not_allowed"),
];

/// Rows F5 and F6.
#[test]
fn what_is_no_file_is_absent_and_told() {
    for (name, put, code) in ODD {
        let site = Site::new();
        put(&site.path("work/odd"));
        let server = site.serve();
        let body = json!({"profile": "template", "cwd": site.text("work"), "template": "<[file:odd]>"});
        let answer = server.ask(&Call::json("POST", "/preview", &body));
        assert_eq!((answer.status, answer.system().as_str()), (200, "<>"), "{name}: {answer:?}");
        assert!(answer.body.contains(&format!("\"{code}\"")), "{name}: {answer:?}");
        std::fs::remove_file(site.path("work/odd"))
            .or_else(|_| std::fs::remove_dir(site.path("work/odd")))
            .unwrap();
        site.write("work/odd", "plain");
        assert_eq!(server.ask(&Call::json("POST", "/preview", &body)).system(), "<plain>", "{name}: control");
    }
}

/// Rows F3 and F4: a file that alternates between a regular file and a link to the outside.
#[test]
fn no_flip_lets_a_byte_from_outside_in() {
    let site = Site::new();
    site.write("work/flip", "own");
    site.write("outside/secret", "CANARY");
    site.link("outside/link", &site.path("outside/secret"));
    let (here, there) = (site.path("work/flip"), site.path("outside/link"));
    let exchange = || renameat_with(CWD, &here, CWD, &there, RenameFlags::EXCHANGE).unwrap();
    exchange();
    assert_eq!(std::fs::read_to_string(&here).unwrap(), "CANARY", "control: a read by name gets it");
    let server = site.serve();
    let body = json!({"profile": "template", "cwd": site.text("work"), "template": "<[file:flip]>"});
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                exchange();
            }
        });
        let prompts: BTreeSet<String> = (0..300)
            .map(|_| server.ask(&Call::json("POST", "/preview", &body)))
            .map(|answer| if answer.body.contains("CANARY") { answer.body } else { answer.system() })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(prompts.iter().all(|prompt| ["<>", "<own>"].contains(&prompt.as_str())), "{prompts:?}");
    });
}

/// Row F7: a very large number of names.
#[test]
fn a_hundred_thousand_candidates_change_nothing() {
    let site = Site::new();
    site.write("work/.sf/skills/own/SKILL.md", "---\nname: own\ndescription: Own.\n---\n");
    let server = site.serve();
    let prompt = || turn(&server, &site, "layers").system().split_once("Current date").unwrap().0.to_owned();
    let without = prompt();
    assert!(without.contains("<name>own</name>"), "control");
    for number in 0..100_000 {
        // Hard links to a few files: creating them is faster than creating as many files.
        let file = site.path(&format!("outside/{}", number / 30_000));
        let name = site.path(&format!("work/.sf/skills/{number}.txt"));
        let link = || std::fs::hard_link(&file, &name);
        link().or_else(|_| std::fs::write(&file, "").and_then(|()| link())).unwrap();
    }
    assert_eq!(prompt(), without);
}
