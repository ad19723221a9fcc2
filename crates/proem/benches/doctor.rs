//! Explaining, comparing and checking a prompt of 500 KB from 2,000 sources against hashing it, or reading its files: side
//! by side in one run, least times of alternating rounds. Prints a Markdown table.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints numbers")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use proem::check::check;
use proem::doctor::why::{Question, places};
use proem::doctor::{Snapshot, compare};
use proem::tokens::Tokenizer;
use proem::wire::BuildShape;
use proem::{Build, Caller, Request, build};
use proem_core::digest::Digest;

const SKILLS: usize = 2_000;

fn main() {
    let rounds: usize =
        std::env::var("PROEM_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path());
    let request = request(folder.path());
    let before = build(&request, Caller::User).unwrap();
    fs::write(folder.path().join("tree/AGENTS.md"), rules("Be brief!")).unwrap();
    let after = build(&request, Caller::User).unwrap();
    let snapshot = |build: &Build| Snapshot::of("one", &build.frozen, &request, None);
    let (a, b) = (snapshot(&before), snapshot(&after));
    let (old, new) = (before.frozen.prefix(), after.frozen.prefix());
    println!(
        "| what, {} KB from {} sources | floor | proem | proem / floor | goal |",
        new.len() / 1024,
        SKILLS + 1
    );
    println!("|---|---|---|---|---|");
    let hash = || Digest::of(old.as_bytes()) == Digest::of(new.as_bytes());
    let goal = "≤ 5× hashing both";
    let times = race(rounds, hash, || compare(&a, &b, Tokenizer::Estimate).common_bytes);
    row("diff: compare two prompts", times, goal);
    let times = race(rounds, hash, || places(&after, &Question::Text("Be brief!")).len());
    row("why: find a text", times, goal);
    let times = race(rounds, hash, || serde_json::to_string(&BuildShape::of(&after)).unwrap().len());
    row("explain: everything as JSON", times, goal);
    let read = || read_all(folder.path());
    let times = race(rounds.min(30), read, || check(&request, Caller::User).unwrap().files);
    row("check: build it, read its files, all lints", times, "≤ 10× reading them");
}

fn lay_out(root: &Path) {
    fs::create_dir_all(root.join("tree/.git")).unwrap();
    fs::create_dir(root.join("home")).unwrap();
    fs::write(root.join("tree/AGENTS.md"), rules("Be brief.")).unwrap();
    for number in 0..SKILLS {
        let own = root.join(format!("tree/.agents/skills/skill-{number:05}"));
        fs::create_dir_all(&own).unwrap();
        let text = format!(
            "---\nname: skill-{number:05}\ndescription: Does thing number {number}; use it when somebody asks for that.\n\
             ---\nA line of the body.\n"
        );
        fs::write(own.join("SKILL.md"), text).unwrap();
    }
}

fn rules(first: &str) -> String {
    let line =
        |number: usize| format!("- Rule {number}: keep the part number {number} as it is, and say why.\n");
    format!("{first}\n\n{}", (0..1_500).map(line).collect::<String>())
}

fn request(root: &Path) -> Request {
    let json = serde_json::json!({
        "profile": "layers", "cwd": root.join("tree").to_str(),
        "host": { "home": root.join("home").to_str(), "config_dir": root.join("home").to_str(),
            "now": "2026-03-07T14:55:05Z", "env": {} },
    });
    Request::from_json(&json.to_string()).unwrap()
}

fn read_all(root: &Path) -> usize {
    let skill = |number: usize| root.join(format!("tree/.agents/skills/skill-{number:05}/SKILL.md"));
    let files = (0..SKILLS).map(skill).chain([root.join("tree/AGENTS.md")]);
    files.map(|path| fs::read(path).unwrap().len()).sum()
}

/// The least time of each, in alternating rounds.
fn race<A, B>(
    rounds: usize,
    mut floor: impl FnMut() -> A,
    mut ours: impl FnMut() -> B,
) -> (Duration, Duration) {
    let mut least = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        let start = Instant::now();
        black_box(floor());
        least.0 = least.0.min(start.elapsed());
        let start = Instant::now();
        black_box(ours());
        least.1 = least.1.min(start.elapsed());
    }
    least
}

fn row(what: &str, (floor, ours): (Duration, Duration), goal: &str) {
    let ratio = ours.as_secs_f64() / floor.as_secs_f64();
    println!("| {what} | {floor:.1?} | {ours:.1?} | {ratio:.2}× | {goal} |");
}
