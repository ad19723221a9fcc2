//! Folders in folders in folders.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use proem::{Caller, Error};
use proem_core::limit::{ANCESTORS_MAX, ASSETS_MAX, DOCUMENTS_MAX, SKILL_DEPTH_MAX};
use proem_core::note::Code;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use serde_json::json;

use crate::site::{Site, count, listed, skill};

const SKILLS: &str = "work/sub/.sf/skills";

/// Row F7.
#[test]
fn skills_that_lie_too_deep_are_named() {
    let site = Site::new();
    let without = site.build();
    site.skill(format!("{SKILLS}/{}", "d/".repeat(200)), "deep");
    let build = site.build();
    assert_eq!(build.system(), without.system());
    let path = format!("{SKILLS}{}", "/d".repeat(SKILL_DEPTH_MAX));
    let expected = format!("over_limit: {{root}}/{path} is not searched: it lies too deep");
    assert_eq!(site.about(&build, &path), [expected, "considered: over_budget".to_owned()]);
    site.skill(path, "just");
    assert_eq!(listed(&site.build()), ["aa", "just", "zz", "shared", "own"]);
}

/// Uses names so long that the whole path exceeds the system's limit.
#[test]
fn paths_that_are_too_long_are_named() {
    let site = Site::new();
    let without = site.build();
    let name = "n".repeat(250);
    let mut folder = openat(CWD, site.path(SKILLS), OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..20 {
        mkdirat(&folder, &name, Mode::RWXU).unwrap();
        folder = openat(&folder, &name, OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let file = openat(&folder, "SKILL.md", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
    rustix::io::write(&file, skill("long").as_bytes()).unwrap();
    let build = site.build();
    remove(site.path(SKILLS).join(&name));
    assert_eq!(build.system(), without.system(), "that file cannot be opened by its path");
    assert_eq!(build.notes().len(), without.notes().len() + 1, "{:?}", build.notes());
}

/// Removes a tree that is nested too deep for the usual way.
fn remove(path: PathBuf) {
    assert!(Command::new("rm").arg("-rf").arg(path).status().unwrap().success());
}

#[test]
fn directories_over_the_limit_are_not_walked_up() {
    let site = Site::new();
    let own = site.path("work").components().count();
    let folder = |levels: usize| format!("work{}", "/d".repeat(levels));
    let deep = folder(300);
    fs::create_dir_all(site.path(&deep)).unwrap();
    site.write("work/AGENTS.md", "TOP\n");
    let just = folder(300 + 1 - ANCESTORS_MAX);
    let over = folder(300 - ANCESTORS_MAX);
    site.write(format!("{just}/AGENTS.md"), "JUST\n");
    site.write(format!("{over}/AGENTS.md"), "OVER\n");
    site.write(format!("{deep}/AGENTS.md"), "DEEP\n");
    for caller in [Caller::User, site.remote()] {
        let build = site.build_with(caller, json!({"cwd": site.path(&deep)}));
        let prompt = build.system().unwrap();
        assert!(prompt.contains("DEEP\n") && !prompt.contains("TOP\n") && !prompt.contains("OVER\n"));
        // The repository's root is out of reach, so for a remote client this lies outside.
        assert_eq!(prompt.contains("JUST\n"), caller == Caller::User);
        let note = format!(
            "the working directory lies more than {ANCESTORS_MAX} levels deep: the topmost are not searched"
        );
        assert!(build.notes().iter().any(|note_| note_.message == note));
    }
    let just_deep_enough = folder(ANCESTORS_MAX - own);
    let build = site.build_with(Caller::User, json!({"cwd": site.path(just_deep_enough)}));
    assert!(build.system().unwrap().contains("TOP\n"));
    assert_eq!(count(&build, Code::OverLimit), 0);
}

/// Row F7.
#[test]
fn instruction_files_over_the_limit_are_named() {
    let site = Site::new();
    let own = site.path("work").components().count();
    let folder = |levels: usize| format!("work{}", "/d".repeat(levels));
    // With the user's there is one too many; there are none above the workspace.
    let deepest = ANCESTORS_MAX - own;
    for level in 0..=deepest {
        site.write(format!("{}/AGENTS.md", folder(level)), format!("LEVEL {level}.\n"));
    }
    let room = DOCUMENTS_MAX - 1;
    let build = site.build_with(Caller::User, json!({"cwd": site.path(folder(deepest))}));
    let levels = build.system().unwrap().matches("LEVEL ").count();
    assert_eq!(levels, room.min(deepest + 1));
    assert_eq!(count(&build, Code::OverLimit), (deepest + 1).saturating_sub(room));
}

#[test]
fn a_working_directory_five_thousand_levels_deep_is_refused() {
    let site = Site::new();
    let mut folder = openat(CWD, site.path("work"), OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..5000 {
        mkdirat(&folder, "d", Mode::RWXU).unwrap();
        folder = openat(&folder, "d", OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let cwd = format!("{}{}", site.path("work").display(), "/d".repeat(5000));
    let result = proem::build(&site.request(Caller::User, json!({"cwd": cwd})), Caller::User);
    let reachable = format!("{}{}", site.path("work").display(), "/d".repeat(1000));
    let build = proem::build(&site.request(Caller::User, json!({"cwd": reachable})), Caller::User);
    remove(site.path("work/d"));
    let Err(Error::Cwd { why, .. }) = result else { panic!("{result:?}") };
    assert_eq!(why, "file name too long");
    assert_eq!(count(&build.unwrap(), Code::OverLimit), 1);
}

/// Row M3: includes at the limits of depth and number, and one more.
#[test]
fn includes_have_a_depth_and_a_number() {
    const LEVELS_MAX: usize = 16;
    let built = |site: &Site, name: &str| {
        let request =
            site.request(Caller::User, json!({"profile": "assets", "instruction": format!("$user/{name}")}));
        proem::build(&request, Caller::User).map(|build| build.system().unwrap_or_default().to_owned())
    };
    let site = Site::bare();
    for level in 0..=LEVELS_MAX {
        site.write(
            format!("config/prompts/level-{level}.md"),
            format!("{{% include 'level-{}' %}}", level + 1),
        );
    }
    site.write(format!("config/prompts/level-{}.md", LEVELS_MAX + 1), "the end");
    assert!(built(&site, "level-1").unwrap().contains("the end"), "{LEVELS_MAX} levels");
    let deeper = built(&site, "level-0").unwrap_err().to_string();
    assert!(deeper.contains("too deeply"), "{deeper}");

    let of = |count: usize| {
        (1..count).map(|number| format!("{{% include 'of-{number}' %}}")).collect::<Vec<_>>().concat()
    };
    for number in 1..=ASSETS_MAX {
        site.write(format!("config/prompts/of-{number}.md"), "x");
    }
    site.write("config/prompts/many.md", of(ASSETS_MAX));
    assert!(built(&site, "many").unwrap().contains(&"x".repeat(ASSETS_MAX - 1)));
    site.write("config/prompts/many.md", of(ASSETS_MAX + 1));
    let more = built(&site, "many").unwrap_err().to_string();
    assert!(more.contains("includes more than 256 assets"), "{more}");
}
