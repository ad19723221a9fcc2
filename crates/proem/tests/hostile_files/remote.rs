//! Over a connection only the workspace is read: not one byte from outside, and no word about what is there.

use proem::Caller;
use proem_core::note::Code;
use serde_json::{Value, json};

use crate::site::{Site, count, for_each, skill};

struct Case {
    name: &'static str,
    /// The link in the workspace and what it leads to, both below the site.
    link: [&'static str; 2],
    /// The file outside that would be read, and whether it is a skill.
    file: &'static str,
}

const CASES: [Case; 15] = [
    Case { name: "instructions", link: ["work/sub/AGENTS.md", "outside/x"], file: "outside/x" },
    Case { name: "second name", link: ["work/AGENTS.md", "outside/x"], file: "outside/x" },
    Case { name: "base", link: ["work/sub/.sf/SYSTEM.md", "outside/x"], file: "outside/x" },
    Case { name: "appendix", link: ["work/sub/.sf/APPEND_SYSTEM.md", "outside/x"], file: "outside/x" },
    Case { name: "folder of the base", link: ["work/sub/.sf", "outside/sf"], file: "outside/sf/SYSTEM.md" },
    Case { name: "skill", link: ["work/sub/.sf/skills/x/SKILL.md", "outside/x.md"], file: "outside/x.md" },
    Case {
        name: "skill in the root",
        link: ["work/sub/.sf/skills/x.md", "outside/x.md"],
        file: "outside/x.md",
    },
    Case { name: "skill's folder", link: ["work/sub/.sf/skills/x", "outside/x"], file: "outside/x/SKILL.md" },
    Case {
        name: "folder of skills",
        link: ["work/sub/.sf/skills/x", "outside/x"],
        file: "outside/x/y/SKILL.md",
    },
    Case {
        name: "directory of skills",
        link: ["work/sub/.sf/skills", "outside/x"],
        file: "outside/x/y/SKILL.md",
    },
    Case { name: "and a file in it", link: ["work/sub/.sf/skills", "outside/x"], file: "outside/x/y.md" },
    Case { name: "shared skills", link: ["work/.agents/skills", "outside/x"], file: "outside/x/y/SKILL.md" },
    Case {
        name: "above shared skills",
        link: ["work/sub/.agents", "outside/x"],
        file: "outside/x/skills/y/SKILL.md",
    },
    Case {
        name: "home",
        link: ["work/sub/.sf/skills", "home/.agents/skills"],
        file: "home/.agents/skills/y/SKILL.md",
    },
    Case { name: "the site itself", link: ["work/sub/.agents/skills", ""], file: "outside/y/SKILL.md" },
];

fn canary(path: &str) -> String {
    let is_plain = path == "outside/x" || path.contains("SYSTEM");
    if is_plain { "CANARY\n".into() } else { skill("CANARY") }
}

/// Row F3.
#[test]
fn links_out_of_the_workspace_are_refused() {
    for_each(
        &CASES,
        |case| case.name.to_owned(),
        |case| {
            let site = Site::bare();
            site.write("work/sub/CLAUDE.md", "Own.\n");
            site.write(case.file, canary(case.file));
            let without = site.build_as(Caller::Remote);
            site.link(site.path(case.link[1]), case.link[0]);
            let build = site.build();
            assert!(build.system().unwrap().contains("CANARY"), "control: the user gets it");
            assert!(count(&build, Code::LinkOutside) > 0, "and is told");
            let build = site.build_as(Caller::Remote);
            assert_eq!(build.system(), without.system());
            let everything = format!("{:?}", build.frozen);
            assert!(!everything.contains("CANARY"), "not in any note either");
            let shown = site.path(case.link[0]);
            let refused = |note: &&proem_core::note::Note| {
                note.code == Code::RootNotAllowed && note.message.starts_with(shown.to_str().unwrap())
            };
            assert!(build.frozen.notes().iter().any(|note| refused(&note)), "{:#?}", build.frozen.notes());
        },
    );
}

/// Row F3, the control: links inside are nobody's secret.
#[test]
fn links_inside_the_workspace_are_followed() {
    let site = Site::bare();
    site.write("work/shared/x.md", skill("inside"));
    site.link(site.path("work/shared/x.md"), "work/sub/.sf/skills/x.md");
    site.link("../shared/x.md", "work/sub/AGENTS.md");
    let build = site.build_as(Caller::Remote);
    assert_eq!(build.system(), site.build().system());
    assert_eq!(build.system().unwrap().matches("For inside.").count(), 2);
}

/// Row F2: otherwise a link is a question, and the answer tells what there is on the machine.
#[test]
fn what_is_said_does_not_depend_on_what_is_outside() {
    let places = [
        "work/sub/AGENTS.md",
        "work/sub/.sf/SYSTEM.md",
        "work/sub/.sf",
        "work/sub/.sf/skills",
        "work/sub/.sf/skills/x",
        "work/sub/.sf/skills/x.md",
        "work/sub/.sf/skills/x/SKILL.md",
        "work/sub/.sf/skills/.gitignore",
    ];
    for_each(
        &places,
        |place| (*place).to_owned(),
        |place| {
            let site = Site::bare();
            site.link(site.path("outside/target"), place);
            let said = || {
                let build = site.build_as(Caller::Remote);
                format!("{:?}{:?}", build.frozen.notes(), build.frozen.considered())
            };
            let nothing = said();
            site.write("outside/target", canary("x.md"));
            assert_eq!(said(), nothing, "a file");
            std::fs::remove_file(site.path("outside/target")).unwrap();
            site.skill("outside/target", "CANARY");
            assert_eq!(said(), nothing, "a folder");
        },
    );
}

/// Everything that comes back; an error is an answer, too.
fn answer(site: &Site, caller: Caller, more: Value) -> String {
    site.said(&format!("{:?}", proem::build(&site.request(caller, more), caller)))
}

/// Row F2: what a request says about the host decides what may be read, so a stranger must not say it.
#[test]
fn a_remote_request_cannot_widen_what_may_be_read() {
    let site = Site::bare();
    site.write("outside/x", "CANARY\n");
    let template = format!("[file:{}]", site.path("outside/x").display());
    let hosts = [
        json!({}),
        json!({"config_dir": site.path("outside")}),
        json!({"config_dir": "/"}),
        json!({"env": {"PROEM_CONFIG_DIR": site.path("outside")}}),
        json!({"env": {"PROEM_CONFIG_DIR": "/"}}),
    ];
    for_each(&hosts, ToString::to_string, |host| {
        let more = || json!({"profile": "template", "template": template, "host": host});
        assert!(answer(&site, Caller::User, more()).contains("CANARY"), "control");
        assert!(!answer(&site, Caller::Remote, more()).contains("CANARY"));
    });
}

/// Row F2: a pack is a file like any other.
#[test]
fn a_remote_request_cannot_read_packs_outside() {
    let contents = ["[prompt]\nworking_boundaries_section = \"CANARY\"\n", "CANARY = [", "CANARY"];
    for_each(
        &contents,
        |content| (*content).to_owned(),
        |content| {
            let site = Site::bare();
            let more = |path: &str| json!({"profile": "assets", "packs": [site.path(path)]});
            let ask = |caller, path| answer(&site, caller, more(path));
            let nothing = ask(Caller::Remote, "outside/pack.toml");
            site.write("outside/pack.toml", content);
            site.write("work/sub/pack.toml", content);
            assert!(ask(Caller::User, "outside/pack.toml").contains("CANARY"), "control");
            assert!(ask(Caller::Remote, "work/sub/pack.toml").contains("CANARY"), "control");
            assert_eq!(ask(Caller::Remote, "outside/pack.toml"), nothing);
        },
    );
}

#[test]
fn the_working_directory_may_be_a_link() {
    let site = Site::new();
    site.link(site.path("work/sub"), "elsewhere/link");
    let request = json!({"cwd": site.path("elsewhere/link")});
    let build = site.build_with(Caller::Remote, request);
    assert!(build.system().unwrap().contains("The folder's.\n"));
}
