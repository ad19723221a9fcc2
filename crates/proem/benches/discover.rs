//! Finding skills and instruction files against the least that the system asks for the same files: side
//! by side in one run, least times of alternating rounds. Prints a Markdown table.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark prints numbers"
)]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use proem::{Caller, Request};
use rustix::fs::{Dir, Mode, OFlags};

fn main() {
    let rounds: usize =
        std::env::var("PROEM_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    println!("| what | floor | proem | proem / floor | a skill | goal |");
    println!("|---|---|---|---|---|---|");
    for count in [10, 100, 1_000, 5_000] {
        skills(count, rounds.min(200_000 / count));
    }
    walk(rounds);
}

fn skills(count: usize, rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let skills = folder.path().join("tree/.agents/skills");
    fs::create_dir_all(folder.path().join("tree/.git")).unwrap();
    fs::create_dir(folder.path().join("home")).unwrap();
    for number in 0..count {
        let own = skills.join(format!("skill-{number:05}"));
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("SKILL.md"), skill(number)).unwrap();
    }
    let request = request(&folder.path().join("tree"), &folder.path().join("home"), "layers");
    let (floor, ours) =
        race(rounds, || floor(&skills), || proem::skills(&request, Caller::User).unwrap().0.len());
    let each = ours.as_nanos() as f64 / count as f64 / 1e3;
    row(&format!("scan {count} skills"), floor, ours, &format!("{each:.1} µs"), "≤ 1.3× the floor");
}

fn skill(number: usize) -> String {
    format!(
        "---\nname: skill-{number:05}\ndescription: Does thing number {number} for the project; use it when the user \
         asks for that very thing and nothing else.\nlicense: MIT\n---\n{}",
        "A line of the body, which is never read.\n".repeat(60)
    )
}

/// The least: list the directory, open each file, read 2 KB, close it.
fn floor(skills: &Path) -> usize {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(skills, flags | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let (mut bytes, mut buffer) = (0, [0; 2048]);
    for entry in Dir::read_from(&folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_bytes();
        if name.starts_with(b".") {
            continue;
        }
        let file = rustix::fs::openat(&folder, [name, b"/SKILL.md"].concat(), flags, Mode::empty()).unwrap();
        bytes += rustix::io::read(&file, &mut buffer).unwrap();
    }
    bytes
}

/// Twelve levels, two names each, three files: a whole prompt that is little else, against opening them.
fn walk(rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut deep = folder.path().to_owned();
    for level in 0..12 {
        deep = deep.join(format!("level-{level}"));
    }
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(folder.path().join("home")).unwrap();
    for up in [0, 4, 8] {
        fs::write(deep.ancestors().nth(up).unwrap().join("AGENTS.md"), "Be brief.\n".repeat(200)).unwrap();
    }
    let profile = folder.path().join("home/profiles");
    fs::create_dir_all(&profile).unwrap();
    fs::write(profile.join("walk.toml"), WALK).unwrap();
    let request = request(&deep, &folder.path().join("home"), "walk");
    let (floor, ours) = race(
        rounds,
        || open_all(&deep),
        || proem::build(&request, Caller::User).unwrap().frozen.prefix().len(),
    );
    row("a prompt of 3 files from 12 levels", floor, ours, "", "");
}

const WALK: &str = r#"
[[section]]
id = "context"
collect = { kind = "documents", names = ["AGENTS.md", "CLAUDE.md"] }
format = "$builtin/layers/context"
"#;

fn open_all(deep: &Path) -> usize {
    let names = ["AGENTS.md", "CLAUDE.md"];
    let all = deep.ancestors().flat_map(|folder| names.map(|name| folder.join(name)));
    all.filter_map(|path| fs::read(path).ok()).map(|bytes| bytes.len()).sum()
}

fn request(cwd: &Path, home: &Path, profile: &str) -> Request {
    let json = serde_json::json!({
        "profile": profile,
        "cwd": cwd,
        "host": { "home": home, "config_dir": home, "timezone": "UTC", "env": {} },
    });
    Request::from_json(&json.to_string()).unwrap()
}

/// The least time of each, in alternating rounds.
fn race<A, B>(rounds: usize, first: impl Fn() -> A, second: impl Fn() -> B) -> (Duration, Duration) {
    let (mut least_first, mut least_second) = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds.max(3) {
        let start = Instant::now();
        black_box(first());
        least_first = least_first.min(start.elapsed());
        let start = Instant::now();
        black_box(second());
        least_second = least_second.min(start.elapsed());
    }
    (least_first, least_second)
}

fn row(what: &str, floor: Duration, ours: Duration, each: &str, goal: &str) {
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    let ratio = micros(ours) / micros(floor);
    println!("| {what} | {:.0} µs | {:.0} µs | {ratio:.2}× | {each} | {goal} |", micros(floor), micros(ours));
}
