//! Too many of everything. Counts are compared, never times.

use std::fs;
use std::os::unix::fs::symlink;

use proem::Caller;
use proem_core::limit::{
    DIRECTORY_ENTRIES_MAX, DOCUMENTS_BYTES_MAX, SKILL_FOLDERS_MAX, SKILL_NOTES_MAX, SKILLS_MAX,
};
use proem_core::note::Code;
use serde_json::json;

use crate::site::{Put, Site, count, listed, skill};

const SKILLS: &str = "work/sub/.sf/skills";

/// Row F7.
#[test]
fn a_folder_may_have_many_entries_and_not_too_many() {
    let site = Site::new();
    let without = site.build();
    let fill = |from: usize, to: usize| {
        for number in from..to {
            // Links to a few files: a file system makes them faster than as many files.
            let file = site.path(format!("outside/{}", number / 30_000));
            let name = site.path(format!("{SKILLS}/{number}.txt"));
            fs::hard_link(&file, &name)
                .or_else(|_| fs::write(&file, "").and_then(|()| fs::hard_link(&file, &name)))
                .unwrap();
        }
    };
    fill(0, 100_000);
    let build = site.build();
    assert_eq!(build.system(), without.system());
    assert_eq!(build.notes(), without.notes());
    // The two skills are entries, too.
    fill(100_000, DIRECTORY_ENTRIES_MAX - 2);
    assert_eq!(site.build().system(), without.system());
    fill(DIRECTORY_ENTRIES_MAX - 2, DIRECTORY_ENTRIES_MAX - 1);
    let build = site.build();
    assert_eq!(listed(&build), ["shared", "own"], "the other directories are not touched by it");
    let expected = ["over_limit: {root}/work/sub/.sf/skills is not searched: it has too many entries"];
    assert_eq!(site.about(&build, SKILLS), [expected[0], "considered: over_budget"]);
}

/// Row F7.
#[test]
fn skills_over_the_limit_are_counted() {
    let site = Site::new();
    let all: Vec<String> = (0..25_000).map(|number| format!("s{number:05}")).collect();
    for name in &all {
        fs::write(site.path(format!("{SKILLS}/{name}.md")), skill(name)).unwrap();
    }
    let build = site.build();
    let listed = listed(&build);
    assert_eq!((listed.len(), listed[0]), (SKILLS_MAX, "aa"));
    assert_eq!(listed[1..], all[..SKILLS_MAX - 1]);
    let over: Vec<&str> = build
        .frozen()
        .notes()
        .iter()
        .filter(|note| note.code == Code::OverLimit)
        .map(|note| note.message.as_str())
        .collect();
    // `zz`, `shared` and `own` come after them.
    assert_eq!(over, ["5004 skills are not read: there are more than 20000"]);
}

/// A repository can contain thousands of bad skills or links as easily as one.
#[test]
fn notes_are_limited_however_many_skills_are_bad() {
    let kinds: [(&str, Put); 4] = [
        ("broken", |site, path| site.write(path, "broken")),
        ("devices", |_, path| symlink("/dev/null", path).unwrap()),
        ("links out", |site, path| symlink(site.path("outside/x.md"), path).unwrap()),
        ("secrets", |_, path| symlink("/proc/self/environ", path).unwrap()),
    ];
    for (name, put) in kinds {
        for caller in [Caller::User, Caller::REMOTE] {
            let site = Site::new();
            site.write("outside/x.md", skill("x"));
            let without = site.build_as(caller).notes().len();
            for number in 0..5 * SKILL_NOTES_MAX {
                put(&site, &site.path(format!("{SKILLS}/{number}.md")));
            }
            let build = site.build_as(caller);
            let notes = build.notes();
            assert!(notes.len() <= without + SKILL_NOTES_MAX + 1, "{name}: {} notes", notes.len());
            assert!(count(&build, Code::OverLimit) > 0, "{name}: it is not said that some are missing");
        }
    }
}

/// Folders that all link to each other: there are ten million paths through them.
#[test]
fn a_farm_of_links_ends() {
    let site = Site::new();
    let without = site.build();
    let folders = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for folder in folders {
        fs::create_dir(site.path(format!("{SKILLS}/{folder}"))).unwrap();
        for other in folders {
            symlink(format!("../{other}"), site.path(format!("{SKILLS}/{folder}/{other}"))).unwrap();
        }
        symlink("..", site.path(format!("{SKILLS}/{folder}/up"))).unwrap();
        symlink(".", site.path(format!("{SKILLS}/{folder}/self"))).unwrap();
    }
    assert_eq!(site.build().system(), without.system());
    site.skill(format!("{SKILLS}/j/end"), "end");
    let build = site.build();
    let end = format!("{}/{SKILLS}/", site.path("").to_str().unwrap().trim_end_matches('/'));
    assert_eq!(listed(&build), ["end", "aa", "zz", "shared", "own"]);
    assert!(
        build
            .system()
            .unwrap()
            .contains(&format!("<location>{end}a/b/c/d/e/f/g/h/i/j/end/SKILL.md</location>"))
    );
    check_considered(&site, folders.len() * (folders.len() + 4));
}

/// Eleven folders, each with two links to the next: two thousand paths to the skills in the last one.
#[test]
fn a_folder_is_looked_through_once_however_many_links_lead_to_it() {
    let site = Site::new();
    for level in 0..11 {
        fs::create_dir(site.place(format!("work/farm/{level}"))).unwrap();
        for name in ["one", "two"] {
            symlink(format!("../{}", level + 1), site.path(format!("work/farm/{level}/{name}"))).unwrap();
        }
    }
    let all: Vec<String> = (0..20).map(|number| format!("s{number:02}")).collect();
    for name in &all {
        site.skill(format!("work/farm/11/{name}"), name);
    }
    symlink(site.path("work/farm/0"), site.path(format!("{SKILLS}/farm"))).unwrap();
    let build = site.build();
    let mut expected = vec!["aa"];
    expected.extend(all.iter().map(String::as_str));
    expected.extend(["zz", "shared", "own"]);
    assert_eq!(listed(&build), expected);
    check_considered(&site, 2 * (11 * 2 + all.len()));
}

/// Checks that the work grows with the number of files, not with the number of paths to them.
fn check_considered(site: &Site, max: usize) {
    let build = site.build();
    let folder = site.path(SKILLS);
    let below =
        build.frozen().considered().iter().filter(|file| file.path.starts_with(folder.to_str().unwrap()));
    let below = below.count();
    assert!(below <= max, "{below} files were looked at, and there are no more than {max}");
}

#[test]
fn folders_over_the_limit_are_not_looked_into() {
    let site = Site::new();
    for number in 0..SKILL_FOLDERS_MAX {
        fs::create_dir(site.path(format!("{SKILLS}/f{number:05}"))).unwrap();
    }
    assert_eq!(listed(&site.build()), ["aa", "zz", "shared", "own"]);
    assert_eq!(count(&site.build(), Code::OverLimit), 0);
    fs::create_dir(site.path(format!("{SKILLS}/g"))).unwrap();
    let build = site.build();
    assert_eq!(listed(&build), ["aa", "zz", "shared", "own"]);
    let expected = format!(
        "over_limit: {{root}}/{SKILLS}/g is not searched: too many folders lie below this directory of skills"
    );
    assert_eq!(site.about(&build, &format!("{SKILLS}/g")), [expected, "considered: over_budget".to_owned()]);
}

/// Row F7.
#[test]
fn instructions_share_one_limit() {
    let site = Site::new();
    let used = "The user's.\n".len() + "The project's.\n".len() + "The folder's.\n".len();
    site.write("work/AGENTS.md", "x".repeat(DOCUMENTS_BYTES_MAX - used + "The project's.\n".len()));
    let build = site.build();
    assert_eq!(count(&build, Code::OverLimit), 0);
    assert!(build.system().unwrap().contains("The folder's.\n"));
    site.write("work/AGENTS.md", "x".repeat(DOCUMENTS_BYTES_MAX - used + "The project's.\n".len() + 1));
    let build = site.build();
    assert!(!build.system().unwrap().contains("The folder's.\n"));
    let why = "over the limit of 256 files and 1 MiB for all instruction files";
    let expected = format!("over_limit: {{root}}/work/sub/CLAUDE.md is left out: {why}");
    assert_eq!(site.about(&build, "work/sub/CLAUDE.md"), [expected, "considered: over_budget".to_owned()]);
}

/// One file under many names is read again for each of them, so they share a limit.
#[test]
fn files_that_a_template_names_have_a_limit_together() {
    let site = Site::bare();
    site.write("work/sub/a", "x".repeat((1 << 20) - 1));
    let template = (0..40)
        .map(|index| format!("[if file:{}a]y[endif]", "./".repeat(index)))
        .collect::<Vec<_>>()
        .concat();
    let build = site.build_with(Caller::User, json!({"profile": "template", "template": template}));
    assert_eq!(build.system(), Some("y".repeat(17).as_str()), "the last one is over by less than its size");
    let over = build.notes().iter().filter(|note| note.code == Code::OverLimit).count();
    let considered = build.frozen().considered();
    assert_eq!(considered.iter().filter(|file| file.outcome.word() == "used").count(), 17, "{over} notes");
}

/// The assets that templates include share a limit: compiling takes a hundred times the memory of the text.
#[test]
fn assets_of_a_template_have_a_limit_together() {
    let site = Site::bare();
    let include =
        (0..5).map(|index| format!("{{% include \"$workspace/a{index}\" %}}")).collect::<Vec<_>>().concat();
    for index in 0..5 {
        site.write(format!("work/sub/.proem/prompts/a{index}.md"), "y".repeat(1 << 20));
    }
    let build = |template: &str| {
        let request = site.request(Caller::User, json!({"profile": "assets", "template": template}));
        proem::build(&request, Caller::User).map(drop).map_err(|error| error.to_string())
    };
    let refused = build(&include).unwrap_err();
    assert!(refused.contains("it and its assets have more than 4194304 bytes together"), "{refused}");
    let two = include.get(..2 * include.len() / 5).unwrap();
    assert_eq!(build(two), Ok(()));
}
