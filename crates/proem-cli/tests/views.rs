//! The files of the server's user, and comparisons of one conversation through several doors.

use std::path::Path;

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::served::Server;

/// Files of a home that become text of prompts in `layers`, `default` or `boundary`, each with its canary.
const OWN: [(&str, &str); 6] = [
    ("../.config/proem/AGENTS.md", "CANARY-CONFIG"),
    ("../.config/proem/skills/own/SKILL.md", "CANARY-SKILL"),
    ("../.sf/agent/AGENTS.md", "CANARY-GLOBAL"),
    ("../.agents/skills/shared/SKILL.md", "CANARY-SHARED"),
    ("../AGENTS.md", "CANARY-HOME"),
    ("../DEEPSEEK.md", "CANARY-DEEP"),
];

fn desk() -> Desk {
    let desk = Desk::new();
    for (path, canary) in OWN {
        let name =
            Path::new(path).parent().and_then(Path::file_name).map_or("", |name| name.to_str().unwrap());
        let text = if path.ends_with("SKILL.md") {
            format!("---\nname: {name}\ndescription: {canary}\n---\nBody.\n")
        } else {
            canary.to_owned()
        };
        desk.write(path, text.as_bytes());
    }
    desk.write("AGENTS.md", b"Of the project.");
    desk
}

fn start(desk: &Desk, flags: &[&str]) -> Server {
    Server::start(desk, "", &[&["--listen", "127.0.0.1:0", "--store", "store.db"], flags].concat())
}

fn turn(server: &Server, id: &str, body: &Value) -> Value {
    let (status, text) = server.ask("POST", &format!("/conversations/{id}/turn"), &body.to_string());
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn canaries(answer: &Value) -> Vec<&'static str> {
    let text = answer["prefix"].to_string();
    OWN.into_iter().map(|(_, canary)| canary).filter(|canary| text.contains(canary)).collect()
}

/// The codes of the notes of a turn.
fn codes(answer: &Value) -> Vec<(&str, &str)> {
    let notes = answer["notes"].as_array().unwrap();
    notes.iter().map(|note| (note["severity"].as_str().unwrap(), note["code"].as_str().unwrap())).collect()
}

/// The request of each profile, and its canaries.
fn profiles() -> [(&'static str, Value, Vec<&'static str>); 3] {
    let tools = json!([{"name": "read"}]);
    let now = json!({"now": "2026-03-07T14:55:05Z"});
    [
        (
            "layers",
            json!({"profile": "layers", "tools": tools, "host": now}),
            vec!["CANARY-GLOBAL", "CANARY-SHARED", "CANARY-HOME"],
        ),
        (
            "default",
            json!({"profile": "default", "tools": tools, "host": now}),
            vec!["CANARY-CONFIG", "CANARY-SKILL", "CANARY-SHARED", "CANARY-HOME"],
        ),
        (
            "boundary",
            json!({"profile": "boundary", "system": "S", "host": now}),
            vec!["CANARY-SHARED", "CANARY-DEEP"],
        ),
    ]
}

#[test]
fn files_of_the_user_are_read_only_if_the_server_was_told_to() {
    let desk = desk();
    for (flags, config, has_them) in [
        (&[][..], "", false),
        (&["--user-files"][..], "", true),
        (&[][..], "[serve]\nuser_files = true\n", true),
        (&[][..], "[serve]\nuser_files = false\n", false),
    ] {
        desk.write("../.config/proem/proem.toml", config.as_bytes());
        // A workspace cannot set it.
        desk.write(".proem/proem.toml", b"[serve]\nuser_files = true\n");
        let server = start(&desk, flags);
        for (profile, request, mut expected) in profiles() {
            let answer = turn(&server, &format!("{profile}.{}.{}", flags.len(), config.len()), &request);
            let mut found = canaries(&answer);
            found.sort_unstable();
            expected.sort_unstable();
            let expected = if has_them { expected } else { Vec::new() };
            assert_eq!(found, expected, "{profile} {flags:?} {config}");
            let said = codes(&answer);
            let about: Vec<_> = said.iter().filter(|(_, code)| *code == "root_not_allowed").collect();
            if !has_them {
                assert_eq!(about, [&("info", "root_not_allowed")], "{profile}: {answer}");
            }
            let warnings: Vec<_> = said
                .iter()
                .filter(|(severity, code)| {
                    *severity != "info" && !["volatile_in_prefix", "left_out"].contains(code)
                })
                .collect();
            assert_eq!(warnings, [&("warning", "ignored_setting")], "{profile}: {answer}");
        }
    }
}

#[test]
fn a_client_cannot_choose_the_home() {
    let desk = desk();
    desk.write("../other/AGENTS.md", b"CANARY-OTHER");
    let server = start(&desk, &["--user-files"]);
    let home = desk.root.path().join("other");
    for host in [json!({"home": home}), json!({"config_dir": home}), json!({"env": {"HOME": home}})] {
        let body = json!({"profile": "layers", "host": host}).to_string();
        let (status, text) = server.ask("POST", "/conversations/c/turn", &body);
        assert_eq!(status, 400, "{text}");
        assert!(!text.contains("CANARY"), "{text}");
    }
}

/// Finding F8.
#[test]
fn no_door_reports_a_drift_that_is_one_of_the_door() {
    let desk = desk();
    for flags in [&[][..], &["--user-files"][..]] {
        let server = start(&desk, flags);
        for (profile, request, _) in profiles() {
            let id = format!("{profile}-{}", flags.len());
            let first = turn(&server, &id, &request);
            let (status, text) = server.ask("GET", &format!("/conversations/{id}/drift"), "");
            let answer: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((status, &answer["plan"]["changed"]), (200, &json!(false)), "{id}: {text}");
            let local = desk.run(&["drift", &id, "--store", "store.db"]);
            assert_eq!(local.status.code(), Some(0), "{id}: {}", desk.said(&local.stdout));
            let reload =
                desk.run(&["conversation", "reload", &id, "--store", "store.db", "--format", "json"]);
            let reload: Value = serde_json::from_slice(&reload.stdout).unwrap();
            assert_eq!((&reload["opened"], &reload["digest"]), (&json!(false), &first["digest"]), "{id}");
        }
        // Control: an edit is found by both.
        desk.write("AGENTS.md", b"Edited.");
        let id = format!("layers-{}", flags.len());
        let (_, text) = server.ask("GET", &format!("/conversations/{id}/drift"), "");
        assert!(text.contains(r#""changed":true"#), "{text}");
        assert_eq!(desk.run(&["drift", &id, "--store", "store.db"]).status.code(), Some(1));
        desk.write("AGENTS.md", b"Of the project.");
    }
}

#[test]
fn a_prompt_with_files_of_the_user_is_not_compared_by_a_server_that_does_not_read_them() {
    let desk = desk();
    let made = desk.run(&[
        "turn",
        "--conversation",
        "mine",
        "--store",
        "store.db",
        "-p",
        "layers",
        "--now",
        "2026-03-07T14:55:05Z",
    ]);
    assert_eq!(made.status.code(), Some(0), "{}", desk.said(&made.stderr));
    let server = start(&desk, &[]);
    let (status, text) = server.ask("GET", "/conversations/mine/drift", "");
    assert!(status == 409 && text.contains("other_view") && text.contains("--user-files"), "{status} {text}");
    // Tools need no files, so the prompt keeps them. A reload by this server cannot read them, and says so.
    let tools = json!({"tools": [{"name": "read"}]}).to_string();
    let (status, text) = server.ask("PUT", "/conversations/mine/tools", &tools);
    assert!(
        status == 200 && text.contains(r#""opened":true"#) && !text.contains("root_not_allowed"),
        "{text}"
    );
    let answer = turn(&server, "mine", &json!({}));
    assert!(answer["prefix"].as_str().unwrap().contains("CANARY-GLOBAL"), "{answer}");
    assert_eq!(server.stop(), Some(0));
    let server = start(&desk, &["--user-files"]);
    let (status, text) = server.ask("GET", "/conversations/mine/drift", "");
    assert!(status == 200 && text.contains(r#""changed":false"#), "{status} {text}");
    assert_eq!(desk.run(&["drift", "mine", "--store", "store.db"]).status.code(), Some(0));
}

#[test]
fn a_reload_without_the_files_of_the_user_says_so() {
    let desk = desk();
    let made = desk.run(&[
        "turn",
        "--conversation",
        "mine",
        "--store",
        "store.db",
        "-p",
        "layers",
        "--format",
        "json",
    ]);
    assert!(desk.said(&made.stdout).contains("CANARY-GLOBAL"));
    let server = start(&desk, &[]);
    let (status, text) = server.ask("POST", "/conversations/mine/reload", "");
    assert!(status == 200 && text.contains(r#""opened":true"#), "{status} {text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert!(codes(&answer).contains(&("warning", "root_not_allowed")), "{text}");
    assert!(!turn(&server, "mine", &json!({})).to_string().contains("CANARY"));
    // The next one loses nothing.
    desk.write("AGENTS.md", b"Edited.");
    let (_, text) = server.ask("POST", "/conversations/mine/reload", "");
    assert!(text.contains(r#""opened":true"#) && !text.contains("root_not_allowed"), "{text}");
}

/// Hooks of the user may name any folder, but a server without `--user-files` does not look there, and has no warnings.
#[test]
fn folders_of_hooks_in_the_home_are_files_of_the_user() {
    let desk = desk();
    desk.write("../ext/hooked/SKILL.md", b"---\nname: hooked\ndescription: CANARY-HOOK\n---\n");
    let hook = r#"[[hook]]
event = "resources_discover"
command = ["sh", "-c", "echo '{\"skill_paths\": [\"~/ext\"]}'"]
"#;
    desk.write("../.config/proem/proem.toml", hook.as_bytes());
    for (flags, expected) in [(&[][..], false), (&["--user-files"][..], true)] {
        let server = start(&desk, flags);
        for (profile, request, _) in profiles() {
            let answer = turn(&server, &format!("{profile}-{}", flags.len()), &request);
            assert_eq!(answer["prefix"].to_string().contains("CANARY-HOOK"), expected, "{profile}: {answer}");
            let said = codes(&answer);
            assert!(!said.contains(&("warning", "absent")), "{profile}: {answer}");
            let about = said.iter().filter(|(_, code)| *code == "root_not_allowed").count();
            assert!(expected || about == 1, "{profile}: {answer}");
        }
    }
}

/// A client names folders for a conversation: they are as far out of reach as files of its templates.
#[test]
fn resources_of_a_client_lie_in_its_workspace() {
    let desk = desk();
    desk.write("../private/notes/SKILL.md", b"---\nname: notes\ndescription: CANARY-PRIVATE\n---\n");
    desk.write("../private/secret.md", b"CANARY-PRIVATE");
    let server = start(&desk, &["--user-files"]);
    let private = desk.root.path().join("private");
    turn(&server, "c", &json!({"profile": "default", "tools": [{"name": "read"}]}));
    let body =
        json!({"skill_paths": [private], "asset_paths": [private], "prompt_paths": [private.join("x.toml")]});
    let (status, text) = server.ask("POST", "/conversations/c/resources", &body.to_string());
    assert_eq!(status, 200, "{text}");
    let changed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(codes(&changed), [("warning", "root_not_allowed"); 3], "{text}");
    let answer = turn(&server, "c", &json!({}));
    assert!(!answer.to_string().contains("CANARY-PRIVATE"), "{answer}");
    let (_, text) =
        server.ask("POST", "/conversations/c/reload", &json!({"instruction": "$user/secret"}).to_string());
    assert!(!text.contains("CANARY-PRIVATE"), "{text}");
}

/// Finding F16.
#[test]
fn a_build_sees_the_template_of_a_store() {
    let desk = Desk::new();
    let server = start(&desk, &[]);
    let (status, _) = server.ask("PUT", "/system-prompt", r#"{"template": "Stored in [prompt:cwd]."}"#);
    assert_eq!(status, 200);
    let first = turn(&server, "c", &json!({"profile": "template"}));
    let build = |flags: &[&str]| desk.said(&desk.run(&[&["build", "-p"], flags].concat()).stdout);
    assert_eq!(build(&["template", "--store", "store.db"]), "Stored in {root}/work.");
    assert_eq!(
        build(&["template", "--store", "store.db"]),
        desk.said(first["prefix"].as_str().unwrap().as_bytes())
    );
    assert_eq!(build(&["template", "--system", "Own", "--store", "store.db"]), "Own");
    assert_ne!(build(&["template"]), "Stored in {root}/work.", "control");
    assert_eq!(build(&["layers", "--store", "store.db"]), build(&["layers"]), "it does not take it");
}
