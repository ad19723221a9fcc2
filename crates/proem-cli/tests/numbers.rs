//! Row F7, by the command: too many of everything. Counts are compared, never times. The control of each limit is what just
//! fits: it is in the prompt, and nothing is said about it.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::ops::Range;

use crate::desk::Desk;
use proem_core::limit::{
    ANCESTORS_MAX, DIRECTORY_ENTRIES_MAX, DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, SKILL_DEPTH_MAX,
    SKILL_FOLDERS_MAX, SKILLS_MAX,
};
use proem_testkit::hostile::for_each;
use rustix::fs::statvfs;

/// A thing with a maximum number.
struct Many {
    name: &'static str,
    profile: &'static str,
    /// The maximum number.
    max: usize,
    /// Adds those of a range; a size or a depth is its end.
    fill: fn(&Desk, Range<usize>),
    /// The working directory for a number of things.
    cwd: fn(usize) -> String,
    /// A text of the prompt, and its count with the maximum number and with one more.
    seen: (&'static str, usize, usize),
    /// All notes about one more than the maximum.
    told: &'static str,
}

const SKILLS: Many = Many {
    name: "skills",
    profile: "layers",
    max: SKILLS_MAX,
    fill: |desk, range| {
        for number in range {
            desk.write(&format!(".sf/skills/s{number:05}.md"), skill(&format!("s{number:05}")).as_bytes());
        }
    },
    cwd: |_| String::new(),
    seen: ("<name>", SKILLS_MAX, SKILLS_MAX),
    told: "warning: 1 skills are not read: there are more than 20000\n",
};

const MANY: [Many; 8] = [
    SKILLS,
    Many {
        name: "entries of a folder",
        // One of them is the skill.
        max: DIRECTORY_ENTRIES_MAX - 1,
        fill: |desk, range| {
            desk.write(".sf/skills/own/SKILL.md", skill("own").as_bytes());
            range.for_each(|number| name_again(desk, number));
        },
        seen: ("<name>own</name>", 1, 0),
        told: "warning: {root}/work/.sf/skills is not searched: it has too many entries \
               ({root}/work/.sf/skills)\n",
        ..SKILLS
    },
    Many {
        name: "folders of skills",
        max: SKILL_FOLDERS_MAX,
        fill: |desk, range| {
            desk.write(".sf/skills/own.md", skill("own").as_bytes());
            for number in range {
                fs::create_dir(desk.work().join(format!(".sf/skills/f{number:05}"))).unwrap();
            }
        },
        seen: ("<name>own</name>", 1, 1),
        told: "warning: {root}/work/.sf/skills/f20000 is not searched: too many folders lie below this \
               directory of skills ({root}/work/.sf/skills/f20000)\n",
        ..SKILLS
    },
    Many {
        name: "levels of skills",
        max: SKILL_DEPTH_MAX,
        fill: |desk, range| {
            drop(fs::remove_dir_all(desk.work().join(".sf")));
            desk.write(&format!(".sf/skills{}/SKILL.md", "/d".repeat(range.end)), skill("d").as_bytes());
        },
        seen: ("<name>d</name>", 1, 0),
        told: "warning: {root}/work/.sf/skills{64 × /d} is not searched: it lies too deep \
               ({root}/work/.sf/skills{64 × /d})\n",
        ..SKILLS
    },
    Many {
        name: "levels above the working directory",
        // As many lie above: see `room`.
        max: ANCESTORS_MAX - 5,
        fill: |desk, range| {
            desk.write("AGENTS.md", b"TOP");
            fs::create_dir_all(desk.work().join("d/".repeat(range.end))).unwrap();
        },
        cwd: |levels| "d/".repeat(levels),
        seen: ("TOP", 1, 1),
        told: "warning: the working directory lies more than 256 levels deep: the topmost are not searched \
               ({root}/work{252 × /d})\n",
        ..SKILLS
    },
    Many {
        name: "instruction files of directories",
        profile: "both",
        max: DOCUMENTS_MAX,
        fill: |desk, range| {
            desk.write("../.config/proem/profiles/both.toml", BOTH.as_bytes());
            for number in range {
                let name = if number % 2 == 0 { "AGENTS.md" } else { "CLAUDE.md" };
                desk.write(&format!("{}{name}", "d/".repeat(number / 2)), b"INSTRUCTION");
            }
        },
        cwd: |number| "d/".repeat((number - 1) / 2),
        seen: ("INSTRUCTION", DOCUMENTS_MAX, DOCUMENTS_MAX),
        told: "warning: {root}/work{64 × /d}{64 × /d}/AGENTS.md is left out: over the limit of 256 files and 1 MiB \
               for all instruction files ({root}/work{64 × /d}{64 × /d}/AGENTS.md)\n",
    },
    Many {
        name: "instruction files of rules",
        profile: "cursor",
        max: DOCUMENTS_MAX,
        fill: |desk, range| {
            for number in range {
                desk.write(&format!(".cursor/rules/r{number:03}.mdc"), b"---\nalwaysApply: true\n---\nRULE");
            }
        },
        seen: ("RULE", DOCUMENTS_MAX, DOCUMENTS_MAX),
        told: "warning: {root}/work/.cursor/rules/r256.mdc is left out: over the limit of 256 files and 1 MiB for \
               all instruction files ({root}/work/.cursor/rules/r256.mdc)\n",
        ..SKILLS
    },
    Many {
        name: "bytes of instruction files",
        max: DOCUMENTS_BYTES_MAX,
        fill: |desk, range| {
            desk.write("AGENTS.md", "x".repeat(range.end - "LAST".len()).as_bytes());
            desk.write("sub/AGENTS.md", b"LAST");
        },
        cwd: |_| "sub".to_owned(),
        seen: ("LAST", 1, 0),
        told: "warning: {root}/work/sub/AGENTS.md is left out: over the limit of 256 files and 1 MiB for all \
               instruction files ({root}/work/sub/AGENTS.md)\n",
        ..SKILLS
    },
];

/// With two files of each directory there can be more of them than there are directories that are looked at.
const BOTH: &str = "[[section]]\nid = \"context\"\nformat = \"$builtin/layers/context\"\n\
                    collect = { kind = \"documents\", walk = \"root_to_cwd\", names = [\"AGENTS.md\", \"CLAUDE.md\"], \
                    per_directory = \"all\" }\n";

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: For {name}.\n---\n")
}

/// Puts one more name among the skills. Names for a few files: a file system makes those sooner than as many files.
fn name_again(desk: &Desk, number: usize) {
    let file = desk.root.path().join(format!("named{}", number / 30_000));
    let name = desk.work().join(format!(".sf/skills/{number}.txt"));
    let link = || fs::hard_link(&file, &name);
    link().or_else(|_| fs::write(&file, "").and_then(|()| link())).unwrap();
}

/// Builds with `number` things. Returns the count of the text in the prompt, and the notes.
fn built(desk: &Desk, many: &Many, number: usize) -> (usize, String) {
    let mut command = desk.command(&["build", "-p", many.profile, "--verbose"]);
    let output = command.current_dir(desk.work().join((many.cwd)(number))).output().unwrap();
    let shorten = |text: String, levels| text.replace(&"/d".repeat(levels), &format!("{{{levels} × /d}}"));
    let told = [ANCESTORS_MAX - 4, SKILL_DEPTH_MAX].into_iter().fold(desk.said(&output.stderr), shorten);
    assert!(output.status.success(), "{}: {told}", many.name);
    // Each of these prompts has the date, with a note about it.
    let is_of_numbers = |line: &&str| !line.starts_with("hint: ") && !line.contains("] changes with every");
    let told = told.split_inclusive('\n').filter(is_of_numbers).collect();
    (desk.said(&output.stdout).matches(many.seen.0).count(), told)
}

/// Returns a directory for hundreds of thousands of files: in memory if there is enough, because a busy disk may take
/// minutes. Both paths have the same depth.
fn room() -> &'static str {
    let is_roomy = statvfs("/dev/shm").is_ok_and(|found| found.f_bavail * found.f_frsize > 512 << 20);
    if is_roomy { "/dev/shm" } else { "/var/tmp" }
}

fn check(many: &Many) {
    let desk = Desk::below(room());
    let Many { name, max, seen: (_, fitting, over), told, .. } = many;
    (many.fill)(&desk, 0..*max);
    assert_eq!(built(&desk, many, *max), (*fitting, String::new()), "{name}: control: as many as fit");
    (many.fill)(&desk, *max..max + 1);
    assert_eq!(built(&desk, many, max + 1), (*over, (*told).to_owned()), "{name}: one more");
}

/// Row F7.
#[test]
fn one_more_than_the_limit_is_left_out_and_told() {
    for_each(&MANY, |many| many.name.to_owned(), check);
}
