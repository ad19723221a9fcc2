//! P17 and P19: explaining, comparing and checking prompts, against hashing them or reading their files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use proem::check::check;
use proem::compare::why::{Question, places};
use proem::compare::{DifferenceKind, Snapshot, compare};
use proem::tokens::Tokenizer;
use proem::build_shape::BuildShape;
use proem::{Build, Caller, Request, build};
use proem_bench::fixture::{request, write};
use proem_bench::{Options, Race};
use proem_core::digest::Digest;
use proem_core::source::Source;

pub(crate) fn run(options: &Options) {
    if options.wants("P17") {
        for sources in options.sizes(&[200, 2_000, 20_000], 2_000) {
            prompts(options, &options.path(format!("doctor-{sources}")), sources);
        }
    }
    if options.wants("P19") {
        for files in options.sizes(&[10, 100, 1_000], 100) {
            lints(options, &options.path(format!("check-{files}")), files);
        }
    }
}

/// One prompt of so many skills and a long instruction file, and the same after an edit of that file's first line.
fn prompts(options: &Options, root: &Path, sources: usize) {
    lay_out(root, sources, "Be brief.");
    let request = request("layers", &root.join("tree"), root);
    let built = || build(&request, Caller::User).expect("it builds");
    let before = built();
    write(&root.join("tree/AGENTS.md"), &rules("Be brief!", sources));
    let after = built();
    let snapshot = |build: &Build| Snapshot::new("one", &build.frozen, &request, None);
    let (a, b) = (snapshot(&before), snapshot(&after));
    // In the middle of the others.
    let one = sources / 2;
    fs::remove_dir_all(skill(root, one)).expect("it is there");
    let without_one = snapshot(&built());
    write_skill(root, one);
    let (old, new) = (before.frozen.prefix(), after.frozen.prefix());
    let hash = || Digest::new(old.as_bytes()) == Digest::new(new.as_bytes());
    let size = format!("{sources} sources");
    let options = &options.at_most(200_000 / sources);
    Race::new("P17", format!("diff two prompts of {size}"))
        .grows("diff", new.len())
        .enter("floor", hash)
        .enter("looks at every source", || same_sources(&before, &after))
        .enter("proem", || compare(&a, &b, Tokenizer::Estimate).common_bytes)
        .run_short(options);
    let gone = compare(&b, &without_one, Tokenizer::Estimate).differences;
    assert!(gone.len() == 1 && gone[0].kind == DifferenceKind::Removed, "one skill is gone");
    Race::new("P17", format!("diff two prompts of {size}, one skill less"))
        .grows("diff, one skill less", new.len())
        .enter("floor", hash)
        .enter("proem", || compare(&b, &without_one, Tokenizer::Estimate).common_bytes)
        .run_short(options);
    Race::new("P17", format!("why: find a text among {size}"))
        .grows("why", new.len())
        .enter("floor", hash)
        .enter("proem", || places(&after, &Question::Text("Be brief!")).len())
        .run_short(options);
    let json = || proem::json::to_vec(&BuildShape::new(&after)).expect("it is JSON");
    let as_long = "x".repeat(json().len());
    let read: serde_json::Value = serde_json::from_slice(&json()).expect("it is JSON");
    let mut nowhere = File::create("/dev/null").expect("it is always there");
    Race::new("P17", format!("explain a prompt of {size}, as JSON"))
        .grows("explain", new.len())
        .enter("floor", hash)
        .enter("a JSON string as long", || proem::json::to_vec(&as_long).expect("it is JSON").len())
        .enter("compact, in memory", || json().len())
        .enter("the same from memory", || serde_json::to_string_pretty(&read).expect("it is JSON").len())
        .enter("proem", || {
            proem::json::print(&mut nowhere, &BuildShape::new(&after)).expect("it can be written");
        })
        .run_short(options);
}

/// How many sources of two prompts are the same: the least that tells whose bytes differ.
fn same_sources(before: &Build, after: &Build) -> usize {
    let pairs = sources(before).zip(sources(after));
    pairs.filter(|(old, new)| old.is_same(new)).count()
}

fn sources(build: &Build) -> impl Iterator<Item = &Source> {
    let body = build.frozen.body();
    body.carriers().flat_map(|(carrier, _)| body.spans(carrier)).map(|span| &span.source)
}

fn lay_out(root: &Path, skills: usize, first: &str) {
    write(&root.join("tree/.git/HEAD"), "ref: refs/heads/main\n");
    write(&root.join("home/.keep"), "");
    write(&root.join("tree/AGENTS.md"), &rules(first, skills));
    for number in 0..skills {
        write_skill(root, number);
    }
}

fn skill(root: &Path, number: usize) -> PathBuf {
    root.join(format!("tree/.agents/skills/skill-{number:05}"))
}

fn write_skill(root: &Path, number: usize) {
    let text = format!(
        "---\nname: skill-{number:05}\ndescription: Does thing number {number}; use it when somebody asks for that.\n\
         ---\nA line of the body.\n"
    );
    write(&skill(root, number).join("SKILL.md"), &text);
}

/// Three rules for four skills: a file of a quarter of the prompt, and below what one file may have.
fn rules(first: &str, skills: usize) -> String {
    let line = |number| format!("- Rule {number}: keep the part number {number} as it is, and say why.\n");
    format!("{first}\n\n{}", (0..(skills * 3 / 4).min(12_000)).map(line).collect::<String>())
}

/// Skills whose bodies are pages of this project's documentation: prose, tables and code as people write them.
fn lints(options: &Options, root: &Path, files: usize) {
    let pages = pages();
    write(&root.join("tree/.git/HEAD"), "ref: refs/heads/main\n");
    write(&root.join("home/.keep"), "");
    let mut paths: Vec<PathBuf> = vec![root.join("tree/AGENTS.md")];
    write(&paths[0], &pages[0]);
    for number in 1..files {
        let head =
            format!("---\nname: skill-{number:05}\ndescription: Page {number}; read it when asked.\n---\n");
        let path = root.join(format!("tree/.agents/skills/skill-{number:05}/SKILL.md"));
        write(&path, &(head + &pages[number % pages.len()]));
        paths.push(path);
    }
    let request: Request = request("layers", &root.join("tree"), root);
    let ours = || check(&request, Caller::User).expect("it can be checked").files;
    assert!(ours() >= files, "every file is read");
    Race::new("P19", format!("check {files} instruction files"))
        .grows("check", files)
        .enter("floor", || paths.iter().map(|path| fs::read(path).expect("it is there").len()).sum::<usize>())
        .enter("a build alone", || build(&request, Caller::User).expect("it builds"))
        .enter("proem", ours)
        .run_short(&options.at_most(20_000 / files));
}

/// Pages of documentation, cut to about 6 KB at a line's end.
fn pages() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("the docs are there").flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "md") && !path.ends_with("benchmarks.md"));
    paths.sort();
    let texts = paths.iter().map(|path| fs::read_to_string(path).expect("a page is text"));
    texts.flat_map(|text| parts(&text)).collect()
}

fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if parts.last().is_some_and(|part| part.len() > 6_000) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push_str(line);
        }
    }
    parts
}
