//! P17: explaining and comparing prompts, against hashing them.

use std::fs;
use std::path::{Path, PathBuf};

use proem::build_shape::BuildShape;
use proem::compare::why::{Question, places};
use proem::compare::{DifferenceKind, Snapshot, compare};
use proem::tokens::Tokenizer;
use proem::{Build, Caller, build};
use proem_bench::fixture::{request, write};
use proem_bench::{Options, Race};
use proem_core::digest::Digest;

pub(crate) fn run(options: &Options) {
    if options.wants("P17") {
        for sources in options.sizes(&[200, 2_000, 20_000], 2_000) {
            prompts(options, &options.path(format!("doctor-{sources}")), sources);
        }
    }
}

/// One prompt of `sources` skills and a long instruction file, and the same after an edit of that file's first line.
fn prompts(options: &Options, root: &Path, sources: usize) {
    lay_out(root, sources, "Be brief.");
    let request = request("layers", &root.join("tree"), root);
    let built = || build(&request, Caller::User).expect("it builds");
    let before = built();
    write(&root.join("tree/AGENTS.md"), &rules("Be brief!", sources));
    let after = built();
    let snapshot = |build: &Build| Snapshot::new("one", build.frozen(), &request, None);
    let (a, b) = (snapshot(&before), snapshot(&after));
    // In the middle of the others.
    let one = sources / 2;
    fs::remove_dir_all(skill(root, one)).expect("it is there");
    let without_one = snapshot(&built());
    write_skill(root, one);
    let (old, new) = (before.frozen().prefix(), after.frozen().prefix());
    let hash = || Digest::new(old.as_bytes()) == Digest::new(new.as_bytes());
    let size = format!("{sources} sources");
    let options = &options.at_most(200_000 / sources);
    Race::new("P17", format!("diff two prompts of {size}"))
        .grows("diff", new.len())
        .enter("floor", hash)
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
    Race::new("P17", format!("explain a prompt of {size}, as JSON"))
        .grows("explain", new.len())
        .enter("floor", hash)
        .enter("proem", || serde_json::to_vec(&BuildShape::new(&after)).expect("it is JSON").len())
        .run_short(options);
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
