//! Resources that hooks add before files are searched for.

use std::sync::{Arc, Mutex};

use proem::hooks::{DiscoverReason, ResourcePaths};
use proem::{Caller, Engine};
use proem_core::note::Code;
use serde_json::json;

use crate::own::Own;
use crate::site::{Site, hook, skill, skills};

fn paths(all: &[&str]) -> Vec<String> {
    all.iter().map(|path| (*path).to_owned()).collect()
}

/// Lays out skills, one in each place that a path can lead to.
fn laid_out(hooks: &[String]) -> Site {
    let site = Site::with_hooks(hooks);
    site.skill("work/.sf/skills/of-project", "of-project");
    site.skill("home/.agents/skills/of-user", "of-user");
    site.skill("work/more/relative", "relative");
    site.skill("home/more/from-home", "from-home");
    site.skill("elsewhere/absolute", "absolute");
    site.write("work/single.md", &skill("single"));
    site
}

#[test]
fn skill_paths_come_behind_the_existing_ones() {
    let answer = r#"{"skill_paths": ["~/more", "./more/../more/", "{root}/elsewhere", "single.md", "none"]}"#;
    let site = laid_out(&[hook("b", "resources_discover", &format!("echo '{answer}'"))]);
    let own = Own::new("a").discovering(|_| {
        let skill_paths = paths(&["more", "~other", "", "~"]);
        Ok(Some(ResourcePaths { skill_paths, ..ResourcePaths::default() }))
    });
    let build = Engine::new().with_hook(own).build(&site.request(json!({})), Caller::User).unwrap();
    // An empty path is the working directory itself, and `~` the home: their folders are searched.
    let expected = ["of-project", "of-user", "relative", "single", "from-home", "absolute"];
    assert_eq!(skills(build.system().unwrap()), expected);
    let considered = build.frozen().considered().iter();
    let missing: Vec<String> = considered
        .filter(|considered| considered.path.ends_with("other") || considered.path.ends_with("none"))
        .map(|considered| format!("{} {}", site.said(&considered.path), considered.outcome.word()))
        .collect();
    assert_eq!(missing, ["{root}/work/none missing", "{root}/work/~other missing"]);
}

#[test]
fn asset_paths_serve_what_the_users_library_lacks() {
    let answer = r#"{"asset_paths": ["assets", "~/assets"]}"#;
    let site = Site::with_hooks(&[hook("h", "resources_discover", &format!("echo '{answer}'"))]);
    site.write("config/prompts/own.md", "own\n");
    site.write("work/assets/own.md", "not this\n");
    site.write("work/assets/first.md", "first\n");
    site.write("home/assets/first.md", "not this\n");
    site.write("home/assets/second.md", "second\n");
    let template = "{% include '$user/own' %}{% include '$user/first' %}{% include '$user/second' %}";
    let request = json!({"profile": "assets", "template": template, "project": false, "residents": false});
    let build = Engine::new().build(&site.request(request), Caller::User).unwrap();
    assert!(build.system().unwrap().starts_with("ownfirstsecond\n"), "{:?}", build.system());
}

#[test]
fn prompt_paths_are_packs_that_win_over_those_of_the_request() {
    let site = Site::with_hooks(&[hook(
        "h",
        "resources_discover",
        r#"echo '{"prompt_paths": ["~/pack.toml", "pack.toml"]}'"#,
    )]);
    let pack = |word: &str| format!("[prompt]\nworking_boundaries_section = \"{word}\"\n");
    site.write("work/given.toml", &pack("given"));
    site.write("home/pack.toml", &pack("from home"));
    site.write("work/pack.toml", &pack("from the project"));
    let request = json!({"profile": "assets", "system": "base", "packs": ["given.toml"]});
    let build = Engine::new().build(&site.request(request), Caller::User).unwrap();
    assert_eq!(build.system(), Some("base\n\nfrom the project"));
}

#[test]
fn the_reason_is_startup_once_and_then_reload() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&seen);
    let spy = Own::new("spy").discovering(move |event| {
        own.lock().unwrap().push((event.cwd.clone(), event.reason));
        Ok(None)
    });
    let script = "cat >>'{root}/events'; echo >>'{root}/events'";
    let site = Site::with_hooks(&[hook("h", "resources_discover", script)]);
    let session = site.start(&Engine::new().with_hook(spy));
    session.set_active_tools(&["read"]).unwrap();
    let more = ResourcePaths { skill_paths: paths(&["more"]), ..ResourcePaths::default() };
    session.add_resources(&more).unwrap();
    session.reload().unwrap();
    let work = site.path("work").to_str().unwrap().to_owned();
    let expected = [(work.clone(), DiscoverReason::Startup), (work, DiscoverReason::Reload)];
    assert_eq!(*seen.lock().unwrap(), expected);
    let events = std::fs::read_to_string(site.path("events")).unwrap();
    let events: Vec<serde_json::Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let event =
        |reason: &str| json!({"event": "resources_discover", "cwd": site.path("work"), "reason": reason});
    assert_eq!(events, [event("startup"), event("reload")]);
}

/// A hook must not be able to stop a build, even with paths that do not exist.
#[test]
fn paths_that_lead_nowhere_cost_a_note_and_not_the_prompt() {
    let broken = "[prompt\n";
    for path in ["none.toml", "broken.toml", "/dev/zero", "", "~", "a\u{0}b"] {
        let path: String = path.into();
        let own = Own::new("bad").discovering(move |_| {
            let prompt_paths = vec![path.clone()];
            Ok(Some(ResourcePaths { prompt_paths, ..ResourcePaths::default() }))
        });
        let site = Site::new();
        site.write("work/broken.toml", broken);
        let request = site.request(json!({"profile": "assets", "system": "base"}));
        let without = Engine::new().build(&request, Caller::User).unwrap();
        let build = Engine::new().with_hook(own).build(&request, Caller::User);
        let build = build.unwrap_or_else(|error| panic!("the hook stopped the build: {error}"));
        assert_eq!(build.system(), without.system());
        assert_ne!(build.notes(), without.notes(), "it is noted");
    }
}

#[test]
fn notes_about_a_failed_hook_stay_with_the_prompt_that_was_built_without_it() {
    let site = Site::with_hooks(&[hook("bad", "resources_discover", "exit 1")]);
    let session = site.start(&Engine::new());
    let expected = ["the hook `bad` is skipped at `resources_discover`: exit status: 1"];
    assert_eq!(site.noted(session.build().notes(), Code::HookFailed), expected);
    session.set_active_tools(&["read"]).unwrap();
    assert_eq!(site.noted(session.build().notes(), Code::HookFailed), expected);
}
