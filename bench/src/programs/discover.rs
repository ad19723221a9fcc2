//! P6, P7 and P11: finding files against the least that the system must be asked, and a whole build.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use proem::Caller;
use proem_bench::fixture::trees::{SKILLS, deep};
use proem_bench::fixture::{request, write};
use proem_bench::{Options, Race, Unit, difference, report};
use rustix::fs::{Access, AtFlags, Dir, Mode, OFlags};

pub(crate) fn run(options: &Options) {
    if options.wants("P6") {
        for count in options.sizes(&SKILLS, 100) {
            skills(options, count);
        }
    }
    if options.wants("P7") {
        walk(options);
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
    let again = || proem::skills(&request, Caller::User).expect("skills are found").0.len();
    let ours = || proem::file_stamp::without(again);
    assert_eq!(ours(), count, "every skill is found");
    let folder = root.join("tree/.agents/skills");
    let race = Race::new("P6", format!("scan {count} skills"))
        .grows("scan skills", count)
        .enter("floor", || read_all(&folder))
        .enter("reads and asks", || read_and_ask(&folder))
        .enter("only looks", || look(&folder))
        .enter("proem", ours)
        .enter("proem, again", again);
    race.run_short(&options.at_most(100_000 / count));
}

/// The least that the rules take: a skill's own ignore files may exclude it, and a file that has two names counts once.
fn read_and_ask(skills: &Path) -> usize {
    let mut found = 0;
    for_each(skills, |folder, name| {
        let path = [name, b"/SKILL.md"].concat();
        let file = rustix::fs::openat(folder, path, READ, Mode::empty()).expect("every folder has one");
        let status = rustix::fs::fstat(&file).expect("it is open");
        found += rustix::io::read(&file, &mut [0; 2048]).expect("it can be read")
            + usize::from(status.st_ino == 0);
        for ignore in [&b"/.gitignore"[..], b"/.ignore", b"/.fdignore"] {
            let asked =
                rustix::fs::accessat(folder, [name, ignore].concat(), Access::EXISTS, AtFlags::empty());
            found += usize::from(asked.is_ok());
        }
    });
    found
}

/// The least that tells that nothing has changed: one look at each folder and one at its file.
fn look(skills: &Path) -> i64 {
    let mut found = 0;
    for_each(skills, |folder, name| {
        for path in [name.to_vec(), [name, b"/SKILL.md"].concat()] {
            found ^=
                rustix::fs::statat(folder, path, AtFlags::SYMLINK_NOFOLLOW).expect("it is there").st_mtime;
        }
    });
    found
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

/// Twelve levels, two names each, three files. A build that walks less one that does not: the walk cannot be called
/// by itself.
fn walk(options: &Options) {
    let root = options.path("levels");
    let deep = deep(&root);
    write(&root.join("home/profiles/walk.toml"), &format!("{REST}{WALK}"));
    write(&root.join("home/profiles/rest.toml"), REST);
    let case = "walk up 12 levels for two names";
    Race::new("P7", case)
        .enter("floor", || open_all(&deep))
        .enter("opens and looks", || open_all(&deep) + look_around(&deep))
        .run_short(options);
    let (with, without) = (request("walk", &deep, &root), request("rest", &deep, &root));
    let build = |request| proem::build(request, Caller::User).expect("it builds");
    assert!(build(&with).frozen.prefix().len() > 5_000, "the files are in the prompt");
    let samples = difference(options, || build(&with), || build(&without));
    report("P7", case, "proem", Unit::Nanoseconds, &samples);
}

const REST: &str = r#"
[[section]]
id = "base"
template = { text = "x", syntax = "plain" }
"#;

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

/// What the rules ask besides: at which level the project begins, and whether a name in it is nearly right.
fn look_around(deep: &Path) -> usize {
    let repositories = deep.ancestors().filter(|folder| folder.join(".git").exists()).count();
    let folder = rustix::fs::open(deep, READ | OFlags::DIRECTORY, Mode::empty()).expect("it is there");
    repositories + Dir::read_from(&folder).expect("it can be listed").count()
}

/// P11: skills, three instruction files from twelve levels, the base and its tools.
fn build(options: &Options, count: usize) {
    let root = options.path(format!("build-{count}"));
    let deep = deep(&root);
    let request = request("layers", &deep, &root);
    let ours = || proem::file_stamp::without(|| proem::build(&request, Caller::User).expect("it builds"));
    let text = ours().system().unwrap_or_default().to_owned();
    assert_eq!(text.matches("<location>").count(), count, "all skills are in the prompt");
    let folder = root.join("tree/.agents/skills");
    Race::new("P11", format!("build a prompt with {count} skills"))
        .grows("build", count)
        .enter("floor", || read_all(&folder) + open_all(&deep))
        .enter("reads and asks", || read_and_ask(&folder) + open_all(&deep))
        .enter("proem", ours)
        .enter("proem, again", || proem::build(&request, Caller::User).expect("it builds"))
        .run_long(&options.at_most(50_000 / count));
}
