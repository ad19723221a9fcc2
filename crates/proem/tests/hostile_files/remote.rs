//! For a remote client only the workspace is read: no byte from outside is shown, and no hint of which files exist
//! there.

use std::fs;

use proem::{Caller, Workspaces};
use proem_core::note::Code;
use serde_json::{Value, json};

use crate::site::{Site, count, for_each, skill};

struct Case {
    name: &'static str,
    /// The link in the workspace and its target, both below the site.
    link: [&'static str; 2],
    /// The file outside that would be read; `is_skill` tells whether it is a skill.
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
            let without = site.build_as(site.remote());
            site.link(site.path(case.link[1]), case.link[0]);
            let build = site.build();
            assert!(build.system().unwrap().contains("CANARY"), "control: a user who trusts it gets it");
            assert!(count(&build, Code::LinkOutside) > 0, "and is told");
            site.distrust();
            let build = site.build();
            // A link to the user's own folder of skills adds nothing new.
            let is_own = case.name == "home";
            assert_eq!(
                build.system().unwrap().contains("CANARY"),
                is_own,
                "a user who does not gets nothing"
            );
            assert!(count(&build, Code::LinkOutside) > 0, "and is told");
            let build = site.build_as(site.remote());
            assert_eq!(build.system(), without.system());
            let everything = format!("{:?}", build.frozen());
            assert!(!everything.contains("CANARY"), "not in any note either");
            let shown = site.path(case.link[0]);
            let refused = |note: &&proem_core::note::Note| {
                note.code == Code::RootNotAllowed && note.message.starts_with(shown.to_str().unwrap())
            };
            assert!(build.notes().iter().any(|note| refused(&note)), "{:#?}", build.notes());
        },
    );
}

/// Row F3, the control: links inside reveal nothing.
#[test]
fn links_inside_the_workspace_are_followed() {
    let site = Site::bare();
    site.write("work/shared/x.md", skill("inside"));
    site.link(site.path("work/shared/x.md"), "work/sub/.sf/skills/x.md");
    site.link("../shared/x.md", "work/sub/AGENTS.md");
    let build = site.build_as(site.remote());
    assert_eq!(build.system(), site.build().system());
    assert_eq!(build.system().unwrap().matches("For inside.").count(), 2);
}

/// Row F2: otherwise a link would be a probe for the files of the machine.
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
                let build = site.build_as(site.remote());
                format!("{:?}{:?}", build.notes(), build.frozen().considered())
            };
            let nothing = said();
            site.write("outside/target", canary("x.md"));
            assert_eq!(said(), nothing, "a file");
            fs::remove_file(site.path("outside/target")).unwrap();
            site.skill("outside/target", "CANARY");
            assert_eq!(said(), nothing, "a folder");
        },
    );
}

/// Returns everything that the client receives, errors included.
fn answer(site: &Site, caller: Caller, more: Value) -> String {
    site.said(&format!("{:?}", proem::build(&site.request(caller, more), caller)))
}

/// Row F2: host values decide which files may be read, so a remote client must not set them.
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
        assert!(!answer(&site, site.remote(), more()).contains("CANARY"));
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
            let nothing = ask(site.remote(), "outside/pack.toml");
            site.write("outside/pack.toml", content);
            site.write("work/sub/pack.toml", content);
            assert!(ask(Caller::User, "outside/pack.toml").contains("CANARY"), "control");
            assert!(ask(site.remote(), "work/sub/pack.toml").contains("CANARY"), "control");
            assert_eq!(ask(site.remote(), "outside/pack.toml"), nothing);
        },
    );
}

#[test]
fn the_working_directory_may_be_a_link() {
    let site = Site::new();
    site.link(site.path("work/sub"), "elsewhere/link");
    let request = json!({"cwd": site.path("elsewhere/link")});
    let build = site.build_with(site.remote(), request);
    assert!(build.system().unwrap().contains("The folder's.\n"));
}

/// The user's files that a template in the repository names.
const PRIVATE: [&str; 3] = ["home/diary.txt", "home/projects/other/notes.md", "config/proem.toml"];

/// A repository below the user's home, which is itself a repository for settings: that does not allow more reads.
#[test]
fn a_repository_that_holds_the_home_widens_nothing() {
    for has_git in [false, true] {
        let site = Site::bare();
        site.distrust();
        for path in PRIVATE {
            site.write(path, "# CANARY\n");
        }
        if has_git {
            site.write("home/.git/HEAD", "ref: refs/heads/main\n");
            for folder in ["objects", "refs"] {
                fs::create_dir_all(site.path(format!("home/.git/{folder}"))).unwrap();
            }
        }
        let tags: Vec<String> =
            PRIVATE.iter().map(|path| format!("[file:{}]", site.path(path).display())).collect();
        let tags = tags.concat();
        site.write("home/projects/evil/.proem/SYSTEM.md", format!("Base. {tags}"));
        site.write("home/projects/evil/.proem/note.md", "own");
        let more = || json!({"profile": "default", "cwd": site.path("home/projects/evil")});
        let build = site.build_with(Caller::User, more());
        assert!(!format!("{:?}", build.frozen()).contains("CANARY"), "git above: {has_git}");
        let remote = Caller::Remote(Workspaces::new(&[site.path("home/projects/evil")]));
        let mut request = site.request(remote, more());
        request.template = Some(format!("Base. {tags}"));
        let build = proem::build(&request, remote).unwrap();
        assert!(
            !format!("{:?}", build.frozen()).contains("CANARY"),
            "over a connection, git above: {has_git}"
        );
        let wide = Caller::Remote(Workspaces::new(&[site.path("home")]));
        let build = proem::build(&request, wide).unwrap();
        let is_read = build.system().unwrap().contains("CANARY");
        assert_eq!(is_read, has_git, "control: a server of the whole home reads its repository");
    }
}

/// An import in a file of the project has the same limits as a link.
#[test]
fn imports_out_of_the_project_are_refused_until_it_is_trusted() {
    let site = Site::bare();
    site.write("home/diary.md", "CANARY\n");
    site.write("work/sub/own.md", "Its own.\n");
    site.write(
        "work/CLAUDE.md",
        format!(
            "See @~/diary.md and @{} and @sub/own.md of its own.\n",
            site.path("home/diary.md").display()
        ),
    );
    site.link(site.path("home/diary.md"), "work/sub/linked.md");
    site.write("work/sub/CLAUDE.md", "See @linked.md too.\n");
    let profile = include_str!("../../../proem-core/builtin/profiles/claude-code.toml");
    let wide =
        profile.replace("inside = \"cwd\"", "inside = \"anywhere\"").replace("\"claude-code\"", "\"wide\"");
    site.write("config/profiles/wide.toml", wide);
    let more = || json!({"profile": "wide"});
    let build = site.build_with(Caller::User, more());
    let everything = |build: &proem::Build| format!("{:?}", build.whole());
    assert!(everything(&build).contains("CANARY"), "control: a trusted project leads there");
    site.distrust();
    let build = site.build_with(Caller::User, more());
    assert!(!everything(&build).contains("CANARY"));
    assert!(everything(&build).contains("Its own."), "control: what lies inside is imported");
    let refused = |note: &&proem_core::note::Note| note.message.contains("leads out of the project");
    assert!(build.notes().iter().filter(refused).count() >= 2, "{:#?}", build.notes());
    site.write("config/proem.toml", "[files]\nallow = [\"../home/diary.md\"]\n");
    assert!(
        everything(&site.build_with(Caller::User, more())).contains("CANARY"),
        "control: it can be allowed"
    );
}

/// The server checks a working directory before it builds, and the directory may be swapped for a link in between. This
/// is the resulting build.
#[test]
fn a_working_directory_that_leads_out_gives_nothing() {
    let site = Site::bare();
    let fill = |folder: &str| {
        for (name, text) in [
            ("AGENTS.md", "CANARY\n"),
            ("CLAUDE.md", "CANARY\n"),
            ("GEMINI.md", "CANARY\n"),
            ("note.md", "CANARY\n"),
            (".proem/SYSTEM.md", "CANARY\n"),
            (".proem/knowledge/a.md", "CANARY\n"),
            (".proem/prompts/a.md", "CANARY\n"),
            (".git/HEAD", "ref: refs/heads/CANARY\n"),
            (".git/refs/heads/CANARY", "0123456789012345678901234567890123456789\n"),
            (".git/objects/x", ""),
        ] {
            site.write(format!("{folder}/{name}"), text);
        }
        site.skill(format!("{folder}/.agents/skills/CANARY"), "CANARY");
        site.skill(format!("{folder}/.proem/skills/CANARY"), "CANARY");
    };
    fill("outside/private");
    fill("work/own");
    site.link(site.path("outside/private"), "work/swapped");
    let requests = [
        json!({"profile": "default"}),
        json!({"profile": "layers"}),
        json!({"profile": "boundary"}),
        json!({"profile": "assets"}),
        json!({"profile": "assets", "template": "{% include '$workspace/a' %}"}),
        json!({"profile": "template", "template": "[file:note.md]"}),
        json!({"profile": "template", "template": "[git:branch]"}),
        json!({"profile": "claude-code"}),
        json!({"profile": "codex"}),
        json!({"profile": "gemini-cli"}),
    ];
    for request in requests {
        for (folder, has_it) in [("work/own", true), ("work/swapped", false)] {
            let mut request = request.clone();
            request["cwd"] = json!(site.path(folder));
            let built = proem::build(&site.request(site.remote(), request.clone()), site.remote());
            let everything = format!("{built:?}");
            assert_eq!(everything.contains("CANARY"), has_it, "{folder} {request}: {everything}");
        }
    }
}

/// A place that is not searched is not reported as refused: it may not exist.
#[test]
fn places_out_of_reach_have_one_note() {
    let site = Site::new();
    let build = site.build_as(site.remote());
    let about = build.notes().iter().filter(|note| note.code == Code::RootNotAllowed);
    let said: Vec<(&str, &str)> = about.map(|note| (note.severity.word(), note.message.as_str())).collect();
    let expected = "files outside the working directory and its git repository are not looked for: neither for requests \
                    over HTTP nor for profiles of a workspace";
    assert_eq!(said, [("info", expected)]);
    let refused = build.frozen().considered().iter().filter(|one| one.outcome.word() == "refused");
    let why: Vec<&str> = refused.filter_map(|one| one.why.as_deref()).collect();
    assert!(
        !why.is_empty() && why.iter().all(|why| *why == "not looked at: outside the allowed roots"),
        "{why:?}"
    );
}
