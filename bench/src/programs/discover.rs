//! P6 and P11: finding skills against reading their files, and a whole build.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use proem::Caller;
use proem_bench::fixture::request;
use proem_bench::fixture::trees::{SKILLS, deep};
use proem_bench::{Options, Race};
use rustix::fs::{Dir, Mode, OFlags};

pub(crate) fn run(options: &Options) {
    if options.wants("P6") {
        for count in options.sizes(&SKILLS, 100) {
            skills(options, count);
        }
    }
    if options.wants("P11") {
        for count in options.sizes(&[50, 500, 5_000], 500) {
            build(options, count);
        }
    }
}

/// Everything that `proem skills list` does but print.
fn skills(options: &Options, count: usize) {
    let root = options.path(format!("skills-{count}"));
    let request = request("layers", &root.join("tree"), &root);
    let ours = || proem::skills(&request, Caller::User).expect("skills are found").0.len();
    assert_eq!(ours(), count, "every skill is found");
    let folder = root.join("tree/.agents/skills");
    let race = Race::new("P6", format!("scan {count} skills"))
        .grows("scan skills", count)
        .enter("floor", || read_all(&folder))
        .enter("proem", ours);
    race.run_short(&options.at_most(100_000 / count));
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

fn for_each(skills: &Path, mut work: impl FnMut(&OwnedFd, &[u8])) {
    let folder = rustix::fs::open(skills, READ | OFlags::DIRECTORY, Mode::empty()).expect("it is there");
    for entry in Dir::read_from(&folder).expect("it can be listed") {
        let entry = entry.expect("it can be listed");
        let name = entry.file_name().to_bytes();
        if !name.starts_with(b".") {
            work(&folder, name);
        }
    }
}

/// The least: list the folder, open each file, read 2 KB, close it.
fn read_all(skills: &Path) -> usize {
    let (mut bytes, mut buffer) = (0, [0; 2048]);
    for_each(skills, |folder, name| {
        let path = [name, b"/SKILL.md"].concat();
        let file = rustix::fs::openat(folder, path, READ, Mode::empty()).expect("every folder has one");
        bytes += rustix::io::read(&file, &mut buffer).expect("it can be read");
    });
    bytes
}

fn open_all(deep: &Path) -> usize {
    let names = ["AGENTS.md", "CLAUDE.md"];
    let all = deep.ancestors().flat_map(|folder| names.map(|name| folder.join(name)));
    all.filter_map(|path| fs::read(path).ok()).map(|bytes| bytes.len()).sum()
}

/// P11: skills, three instruction files from twelve levels, the base and its tools.
fn build(options: &Options, count: usize) {
    let root = options.path(format!("build-{count}"));
    let deep = deep(&root);
    let request = request("layers", &deep, &root);
    let ours = || proem::build(&request, Caller::User).expect("it builds");
    let text = ours().system().unwrap_or_default().to_owned();
    assert_eq!(text.matches("<location>").count(), count, "all skills are in the prompt");
    let folder = root.join("tree/.agents/skills");
    Race::new("P11", format!("build a prompt with {count} skills"))
        .grows("build", count)
        .enter("floor", || read_all(&folder) + open_all(&deep))
        .enter("proem", ours)
        .run_long(&options.at_most(50_000 / count));
}
