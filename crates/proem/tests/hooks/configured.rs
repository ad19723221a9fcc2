//! Only the hooks of the user's configuration run.

use std::fs;
use std::os::unix::fs::symlink;

use proem::{Caller, Engine, Error, Request};
use proem_core::note::Code;
use serde_json::json;

use crate::site::{Site, hook, said};

const EVENTS: [&str; 3] = ["resources_discover", "before_agent_start", "context"];

/// A hook for every event; each leaves a canary.
fn canaries() -> String {
    EVENTS.map(|event| hook(event, event, &format!(": >'{{root}}/canary-{event}'"))).concat()
}

/// Returns the canaries that exist, and removes them.
fn sung(site: &Site) -> Vec<&'static str> {
    EVENTS.into_iter().filter(|event| fs::remove_file(site.path(format!("canary-{event}"))).is_ok()).collect()
}

fn take_a_turn(site: &Site) -> Vec<String> {
    let session = site.start(&Engine::new());
    let turn = session.turn(&said("Hello"));
    assert_eq!(turn.notes, []);
    site.noted(session.build().notes(), Code::IgnoredSetting)
}

const IGNORED: &str = "`[[hook]]` in {root}/work/.proem/proem.toml is ignored: a workspace may not set it";

/// Rows T1 and T2.
#[test]
fn hooks_of_the_workspace_do_not_run() {
    let site = Site::new();
    site.write("work/.proem/proem.toml", &canaries());
    assert_eq!(take_a_turn(&site), [IGNORED]);
    assert_eq!(sung(&site), [""; 0]);
    site.write("config/proem.toml", &canaries());
    assert_eq!(take_a_turn(&site), [IGNORED]);
    assert_eq!(sung(&site), EVENTS, "control: the user's own run");
}

/// Row T3: the workspace may look like a configuration directory from every side.
#[test]
fn no_file_of_the_workspace_is_the_users_configuration() {
    let site = Site::new();
    for place in
        ["proem.toml", "proem/proem.toml", ".config/proem/proem.toml", ".proem/config.toml", ".proem.toml"]
    {
        site.write(&format!("work/{place}"), &canaries());
    }
    site.write("work/.env", "PROEM_CONFIG_DIR={root}/work\nXDG_CONFIG_HOME={root}/work\nHOME={root}/work\n");
    assert_eq!(take_a_turn(&site), [""; 0]);
    assert_eq!(sung(&site), [""; 0]);
    site.write("work/linked.toml", &canaries());
    fs::create_dir(site.path("work/.proem/profiles")).unwrap();
    symlink("../linked.toml", site.path("work/.proem/proem.toml")).unwrap();
    assert_eq!(take_a_turn(&site), [IGNORED]);
    assert_eq!(sung(&site), [""; 0]);
    fs::rename(site.path("work/linked.toml"), site.path("config/proem.toml")).unwrap();
    take_a_turn(&site);
    assert_eq!(sung(&site), EVENTS, "control: the same file in the user's folder");
}

/// A remote request is untrusted: it must not choose the user's configuration directory.
#[test]
fn a_remote_request_cannot_bring_hooks_along() {
    let site = Site::new();
    for folder in ["evil", "evil/proem", "evil/.config/proem"] {
        site.write(&format!("work/{folder}/proem.toml"), &canaries());
    }
    let evil = site.path("work/evil");
    for host in [
        json!({"config_dir": evil}),
        json!({"home": evil}),
        json!({"env": {"PROEM_CONFIG_DIR": evil}}),
        json!({"env": {"XDG_CONFIG_HOME": evil}}),
        json!({"env": {"HOME": evil}}),
    ] {
        let request = json!({"profile": "layers", "cwd": site.path("work"), "host": host}).to_string();
        let turn = |caller| {
            let session = Engine::new().start(Request::from_json(&request).unwrap(), caller);
            drop(session.map(|session| session.turn("Hello")));
            sung(&site)
        };
        assert_eq!(turn(Caller::User), EVENTS, "control: the user may say where their configuration is");
        assert_eq!(turn(Caller::REMOTE), [""; 0], "{host}");
    }
}

/// Invalid commands, with the expected messages.
const NO_COMMAND: [(&str, &str); 9] = [
    (
        "event = \"context\"\ncommand = \"rm -rf /\"",
        "line 3, column 11: invalid type: string \"rm -rf /\", expected a list such as [\"program\", \
         \"argument\"]: hooks run without a shell",
    ),
    ("event = \"context\"\ncommand = []", "line 3, column 11: `command` names no program"),
    ("event = \"context\"\ncommand = [\"\"]", "line 3, column 11: `command` names no program"),
    ("event = \"context\"", "line 1, column 1: a hook needs a `command` or a `url`"),
    ("command = [\"x\"]", "line 1, column 1: missing field `event`"),
    ("event = \"contexts\"\ncommand = [\"x\"]", ""),
    ("event = \"context\"\ncommand = [\"x\"]\nshell = true", ""),
    ("event = \"context\"\ncommand = [\"x\", 1]", ""),
    ("event = \"context\"\ncommand = [\"x\"]\ntimeout_ms = -1", ""),
];

/// Row T7.
#[test]
fn a_command_that_is_no_list_is_an_error_that_says_so() {
    for (keys, expected) in NO_COMMAND {
        let site = Site::new();
        site.write("config/proem.toml", &format!("[[hook]]\n{keys}\n"));
        let error = Engine::new().build(&site.request(json!({})), Caller::User).unwrap_err();
        let Error::Config { path, message, .. } = error else { panic!("{error}") };
        assert_eq!(site.said(&path), "{root}/config/proem.toml");
        assert!(expected.is_empty() || message == expected, "{keys}: {message}");
    }
}

/// Row T7.
#[test]
fn a_relative_program_is_the_configurations_and_runs_beside_it() {
    let site = Site::new();
    site.write(
        "config/proem.toml",
        "[[hook]]\nevent = \"before_agent_start\"\ncommand = [\"hooks/own\", \"$HOME\", \"*\", \"; exit 1\"]\n",
    );
    let script = "#!/bin/sh\nprintf '%s|' \"$@\" >'{root}/arguments'\npwd >'{root}/pwd'\n";
    site.write("config/hooks/own", script);
    site.write("work/hooks/own", "#!/bin/sh\n: >'{root}/canary-context'\n");
    for path in ["config/hooks/own", "work/hooks/own"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(site.path(path), mode).unwrap();
    }
    let turn = site.start(&Engine::new()).turn(&said("Hello"));
    assert_eq!(turn.notes, []);
    let read = |path: &str| site.said(&fs::read_to_string(site.path(path)).unwrap());
    assert_eq!((read("arguments"), read("pwd")), ("$HOME|*|; exit 1|".into(), "{root}/config\n".into()));
    assert_eq!(sung(&site), [""; 0]);
}
