//! The events that open a new epoch, those that do not, and the files that are read again.

use proem::hooks::ResourcePaths;
use proem::{Engine, Request, Tool};
use serde_json::json;

use crate::own::Own;
use crate::site::{Rebuild, Session, Site, hook, opened, said, skills};

fn tool(name: &str) -> Tool {
    Tool { name: name.into(), ..Tool::default() }
}

/// Returns the tools in the prompt and in the turn, which must be the same.
fn tools(session: &Session) -> Vec<String> {
    let prompt = session.build().system().unwrap();
    let (_, rest) = prompt.split_once("Available tools:\n").unwrap();
    let lines = rest.lines().take_while(|line| !line.is_empty());
    let shown: Vec<String> =
        lines.filter_map(|line| Some(line.strip_prefix("- ")?.split_once(':')?.0.to_owned())).collect();
    let defined: Vec<String> = session.turn(&said("x")).tools.into_iter().map(|tool| tool.name).collect();
    assert_eq!(shown, defined);
    shown
}

#[test]
fn active_tools_are_a_set_of_known_names_in_the_order_that_was_last_new() {
    let site = Site::new();
    let given = json!([{"name": "read"}, {"name": "bash"}, {"name": "edit"}]);
    let session = site.start_with(&Engine::new(), json!({"tools": given}));
    let steps: [(&[&str], Rebuild, &[&str]); 9] = [
        (&["read", "bash", "edit"], Rebuild::Unchanged, &["read", "bash", "edit"]),
        (&["edit", "bash", "read"], Rebuild::Unchanged, &["read", "bash", "edit"]),
        (&["edit", "edit", "no", "", "bash", "read", "bash"], Rebuild::Unchanged, &["read", "bash", "edit"]),
        (&["edit", "read"], opened(2, "tools"), &["edit", "read"]),
        (&["read", "READ", "edit", "read "], Rebuild::Unchanged, &["edit", "read"]),
        (&["unknown"], opened(3, "tools"), &[]),
        (&[], Rebuild::Unchanged, &[]),
        (&["bash", "bash"], opened(4, "tools"), &["bash"]),
        (&["read", "bash", "edit"], opened(5, "tools"), &["read", "bash", "edit"]),
    ];
    for (names, rebuild, expected) in steps {
        assert_eq!(session.set_active_tools(names).unwrap(), rebuild, "{names:?}");
        assert_eq!(tools(&session), expected, "{names:?}");
    }
    assert_eq!((session.epoch(), session.reason().as_str()), (5, "tools"));
}

#[test]
fn a_tool_given_twice_counts_once() {
    let given = json!([{"name": "read"}, {"name": "bash"}, {"name": "read"}]);
    let site = Site::new();
    let session = site.start_with(&Engine::new(), json!({"tools": given}));
    assert_eq!(tools(&session), ["read", "bash"]);
    assert_eq!(session.set_active_tools(&["bash", "read"]).unwrap(), Rebuild::Unchanged);
}

#[test]
fn without_tools_in_the_request_those_of_the_profile_are_active() {
    let site = Site::new();
    let session = site.start_with(&Engine::new(), json!({"tools": null}));
    let all = ["write", "edit", "bash", "read"];
    assert_eq!(session.set_active_tools(&all).unwrap(), Rebuild::Unchanged);
    assert_eq!(session.set_active_tools(&["read"]).unwrap(), opened(2, "tools"));
    assert_eq!(tools(&session), ["read"]);
}

#[test]
fn the_registry_keeps_active_tools_and_adds_new_ones() {
    let given = json!([{"name": "read"}, {"name": "bash"}, {"name": "edit"}]);
    let site = Site::new();
    let session = site.start_with(&Engine::new(), json!({"tools": given}));
    session.set_active_tools(&["edit", "read"]).unwrap();
    let described = Tool { description: Some("Other.".into()), ..tool("edit") };
    let hidden = Tool { description: Some("Other.".into()), ..tool("bash") };
    let steps: [(Vec<Tool>, Rebuild, &[&str]); 6] = [
        (vec![tool("edit"), tool("bash"), tool("read")], Rebuild::Unchanged, &["edit", "read"]),
        (vec![tool("edit"), hidden, tool("read")], Rebuild::Unchanged, &["edit", "read"]),
        (vec![described.clone(), tool("read")], opened(3, "tools"), &["edit", "read"]),
        (vec![tool("new"), tool("read"), described], opened(4, "tools"), &["edit", "read", "new"]),
        (vec![tool("read"), tool("bash")], opened(5, "tools"), &["read", "bash"]),
        (vec![], opened(6, "tools"), &[]),
    ];
    for (registry, rebuild, expected) in steps {
        assert_eq!(session.set_tool_registry(&registry).unwrap(), rebuild, "{registry:?}");
        assert_eq!(tools(&session), expected, "{registry:?}");
    }
}

/// Writes one version of all files that a prompt of these layers is made of.
fn lay_files(site: &Site, version: &str) {
    for path in ["work/AGENTS.md", "home/.sf/agent/AGENTS.md", "work/.sf/APPEND_SYSTEM.md"] {
        site.write(path, &format!("{version} of {path}\n"));
    }
    site.skill(&format!("work/.sf/skills/{version}"), version);
}

#[test]
fn files_are_read_again_on_reload_alone() {
    let site = Site::new();
    lay_files(&site, "old");
    let session = site.start(&Engine::new());
    let old = session.build().clone();
    assert_eq!(skills(old.system().unwrap()), ["old"]);
    lay_files(&site, "new");
    assert_eq!(session.set_active_tools(&["read"]).unwrap(), opened(2, "tools"));
    let registry = |names: &[&str]| names.iter().map(|name| tool(name)).collect::<Vec<_>>();
    let more = registry(&["read", "bash", "new"]);
    assert_eq!(session.set_tool_registry(&more).unwrap(), opened(3, "tools"));
    assert_eq!(session.set_tool_registry(&registry(&["read"])).unwrap(), opened(4, "tools"));
    let again = registry(&["read", "bash"]);
    assert_eq!(session.set_tool_registry(&again).unwrap(), opened(5, "tools"));
    assert_eq!(session.build().system(), old.system(), "read and bash again, and nothing was read");
    assert_eq!(session.build().notes(), old.notes());
    assert_eq!(session.build().frozen().considered(), old.frozen().considered());
    assert_eq!(session.reload().unwrap(), opened(6, "reload"));
    let fresh = site.start(&Engine::new());
    assert_eq!(session.build().system(), fresh.build().system());
    assert_eq!(skills(session.build().system().unwrap()), ["new", "old"]);
    assert!(session.build().system().unwrap().contains("new of work/AGENTS.md\n"));
}

#[test]
fn hooks_are_read_again_on_reload() {
    let site = Site::with_hooks(&[hook("h", "before_agent_start", r#"echo '{"system_prompt": "old"}'"#)]);
    let session = site.start(&Engine::new());
    assert_eq!(session.turn(&said("Hello")).system_prompt, "old");
    site.write("config/proem.toml", &hook("h", "before_agent_start", r#"echo '{"system_prompt": "new"}'"#));
    assert_eq!(session.turn(&said("Hello")).system_prompt, "old");
    session.reload().unwrap();
    assert_eq!(session.turn(&said("Hello")).system_prompt, "new");
    site.write("config/proem.toml", "");
    session.reload().unwrap();
    let turn = session.turn(&said("Hello"));
    assert_eq!(
        turn.system_prompt,
        session.build().system().unwrap(),
        "a hook that was taken out runs no more"
    );
}

#[test]
fn added_resources_open_an_epoch_once() {
    let site = Site::new();
    site.skill("work/.sf/skills/first", "first");
    site.skill("work/more/second", "second");
    site.write("work/AGENTS.md", "old\n");
    let session = site.start(&Engine::new());
    site.write("work/AGENTS.md", "new\n");
    let more = ResourcePaths { skill_paths: vec!["more".into()], ..ResourcePaths::default() };
    let again = ResourcePaths { skill_paths: vec!["./x/../more".into()], ..ResourcePaths::default() };
    assert_eq!(session.add_resources(&more).unwrap(), opened(2, "resources"));
    assert_eq!(session.add_resources(&again).unwrap(), Rebuild::Unchanged);
    assert_eq!(session.add_resources(&ResourcePaths::default()).unwrap(), Rebuild::Unchanged);
    let prompt = session.build().system().unwrap();
    assert_eq!(skills(prompt), ["first", "second"]);
    assert!(prompt.contains("\nold\n") && !prompt.contains("\nnew\n"), "{prompt}");
}

/// Uses a profile that rebuilds for no reason.
#[test]
fn a_reason_that_the_profile_does_not_name_changes_nothing() {
    let site = Site::new();
    site.write("config/profiles/still.toml", "name = \"still\"\nextends = \"layers\"\nrebuild = []\n");
    site.write("work/AGENTS.md", "old\n");
    let mark = || {
        Own::new("spy").discovering(|event| Err(proem::hooks::HookError::new(format!("{:?}", event.reason))))
    };
    let session = site.start_with(&Engine::new().with_hook(mark()), json!({"profile": "still"}));
    let old = session.build().clone();
    site.write("work/AGENTS.md", "new\n");
    let more = ResourcePaths { skill_paths: vec!["more".into()], ..ResourcePaths::default() };
    let waits = |rebuild: Rebuild| matches!(rebuild, Rebuild::Pending(_));
    for _ in 0..2 {
        assert!(waits(session.set_active_tools(&["read"]).unwrap()));
        assert!(waits(session.set_tool_registry(&[tool("other")]).unwrap()));
        assert!(waits(session.reload().unwrap()));
        assert!(waits(session.add_resources(&more).unwrap()));
        let registry = [tool("read"), tool("bash")];
        assert!(waits(session.set_tool_registry(&registry).unwrap()), "the reload still waits");
        session.set_active_tools(&["read", "bash"]).unwrap();
    }
    let pending: Vec<&str> = session.0.pending().unwrap().iter().map(|pending| pending.field).collect();
    assert_eq!(pending, ["resources", "files"]);
    assert_eq!((session.build(), session.epoch(), session.reason().as_str()), (&old, 1, "startup"));
    assert_eq!(tools(&session), ["read", "bash"]);
}

#[test]
fn a_rebuild_that_fails_leaves_everything_as_it_was() {
    let site = Site::new();
    site.write("work/AGENTS.md", "old\n");
    let session = site.start(&Engine::new());
    let old = session.build().clone();
    let many: Vec<Tool> = (0..2001).map(|number| tool(&format!("t{number}"))).collect();
    assert!(session.set_tool_registry(&many).is_err());
    assert!(session.set_tool_registry(&[tool("read"), tool("bad\nname")]).is_err());
    assert_eq!(session.set_active_tools(&["t1", "bash", "read"]).unwrap(), Rebuild::Unchanged);
    site.write("work/AGENTS.md", "new\n");
    site.write("config/proem.toml", "not TOML");
    assert!(session.reload().is_err());
    assert_eq!((session.build(), session.epoch(), session.reason().as_str()), (&old, 1, "startup"));
    assert_eq!(tools(&session), ["read", "bash"]);
    site.write("config/proem.toml", "");
    assert_eq!(session.set_active_tools(&["read"]).unwrap(), opened(2, "tools"));
    assert!(session.build().system().unwrap().contains("\nold\n"), "the failed reload left nothing behind");
    assert_eq!(session.reload().unwrap(), opened(3, "reload"));
    assert!(session.build().system().unwrap().contains("\nnew\n"));
}

/// Tools that a request leaves out stay out.
#[test]
fn requests_are_not_altered_by_a_session() {
    let site = Site::new();
    let request: Request = site.request(json!({"tools": null}));
    let session = Session(Engine::new().start(request.clone(), proem::Caller::User).unwrap());
    assert_eq!(Some(session.build().clone()), proem::build(&request, proem::Caller::User).ok());
}
