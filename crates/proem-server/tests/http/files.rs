//! Remote requests read files of the workspace only.

use std::path::Path;

use proem_server::Options;
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::routes::done;
use crate::server::{Server, Site};

const CANARY: &str = "CANARY-from-outside";

/// Creates a workspace with every kind of link to the outside.
fn site() -> Site {
    let site = Site::new();
    site.write("work/own", "own");
    site.write("work/.env", CANARY);
    for name in ["outside/secret", "outside/AGENTS.md", "outside/SYSTEM.md", "outside/pack/default/base.md"] {
        site.write(name, CANARY);
    }
    site.write("outside/bad.toml", &format!("{CANARY} = [\n"));
    site.link("work/link", &site.path("outside/secret"));
    site.link("work/relative", Path::new("../outside/secret"));
    site.link("work/folder", &site.path("outside"));
    site.link("work/chain", &site.path("work/link"));
    site.link("work/loop", &site.path("work/loop"));
    site.link("work/environ", Path::new("/proc/self/environ"));
    site.link("work/root", Path::new("/proc/self/root"));
    site
}

fn preview(server: &Server, body: &Value) -> Answer {
    let answer = server.ask(&Call::json("POST", "/preview", body));
    assert!(!answer.body.contains(CANARY), "{body}: {answer:?}");
    assert!(!answer.body.contains("root:x:0"), "{body}: {answer:?}");
    answer
}

/// Rows C10, F1 to F3 and F8.
#[test]
fn templates_read_nothing_outside_of_the_workspace() {
    let site = site();
    let server = site.serve();
    let outside = site.text("outside/secret");
    let long = "x/".repeat(2500);
    let through = format!("root{outside}");
    for path in [
        "/etc/passwd",
        "//etc/passwd",
        "/etc/shadow",
        "../outside/secret",
        "sub/../../outside/secret",
        "../../../../../../../../etc/passwd",
        &outside,
        "link",
        "relative",
        "folder/secret",
        "chain",
        "loop",
        "environ",
        "root/etc/passwd",
        &through,
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/dev/stdin",
        ".env",
        "~/.ssh/id_rsa",
        "$HOME/.netrc",
        "file:///etc/passwd",
        "own\u{0}",
        "",
        ".",
        &long,
    ] {
        let body = json!({ "profile": "template", "template": format!("<[file:{path}]>") });
        let answer = preview(&server, &body);
        assert_eq!((answer.status, answer.system()), (200, "<>".into()), "{path}");
        let put = Call::json("PUT", "/system-prompt", &json!({ "template": format!("<[file:{path}]>") }));
        if server.ask(&put).status == 200 {
            assert_eq!(preview(&server, &json!({ "profile": "template" })).system(), "<>", "{path}");
        }
    }
    let own = preview(&server, &json!({ "profile": "template", "template": "<[file:own]>" }));
    assert_eq!(own.system(), "<own>");
}

/// Row F2.
#[test]
fn whether_a_file_outside_is_there_is_not_told() {
    let site = site();
    let server = site.serve();
    let notes = |path: &str| {
        let body = json!({ "profile": "template", "template": format!("[file:{path}]") });
        preview(&server, &body).json()["notes"].to_string().replace(path, "PATH")
    };
    let outside = site.text("outside");
    for (there, missing) in [
        (format!("{outside}/secret"), format!("{outside}/absent")),
        ("../outside/secret".into(), "../outside/absent".into()),
        ("folder/secret".into(), "folder/absent".into()),
        ("/etc/passwd".into(), "/etc/passwt".into()),
    ] {
        assert_eq!(notes(&there), notes(&missing), "{there}");
    }
}

/// Row F2.
#[test]
fn other_fields_lead_nowhere_either() {
    let site = site();
    let server = site.serve();
    let outside = site.text("outside");
    for body in [
        json!({ "packs": [format!("{outside}/pack")] }),
        json!({ "packs": ["../outside/pack"] }),
        json!({ "packs": ["folder/pack"] }),
        json!({ "packs": [format!("{outside}/bad.toml")] }),
        json!({ "packs": ["/etc"] }),
        json!({ "instruction": format!("{outside}/secret") }),
        json!({ "instruction": "$workspace/../outside/secret" }),
        json!({ "instruction": "$workspace/folder/secret" }),
        json!({ "instruction": "$user/../../../../../../etc/passwd" }),
        json!({ "instruction": "$builtin/../../../../etc/passwd" }),
        json!({ "profile": format!("{outside}/bad") }),
        json!({ "profile": "../../outside/bad" }),
        json!({ "profile": "assets", "template": "{% include '/etc/passwd' %}" }),
        json!({ "profile": "assets", "template": "{% include '$workspace/link' %}" }),
        json!({ "profile": "assets", "template": format!("{{% include '{outside}/secret' %}}") }),
        json!({ "profile": "layers", "template": "[file:../outside/AGENTS.md]" }),
        json!({ "variables": { "prompt:cwd": outside } , "profile": "template", "template": "[file:secret]" }),
        json!({ "scope": { "allow": [{ "target": outside, "permission": "read" }] } }),
        json!({ "workspace_id": "../../outside", "conversation": "../outside" }),
        json!({ "template_path": format!("{outside}/secret") }),
    ] {
        let answer = preview(&server, &body);
        assert!(matches!(answer.status, 200 | 400 | 422), "{body}: {answer:?}");
    }
}

/// Row F8.
#[test]
fn what_decides_about_reading_cannot_be_said() {
    let site = site();
    let server = site.serve();
    let outside = site.text("outside");
    for host in [
        json!({ "home": outside }),
        json!({ "home": null }),
        json!({ "config_dir": outside }),
        json!({ "config_dir": null }),
        json!({ "env": { "HOME": outside } }),
        json!({ "env": null }),
    ] {
        for path in ["/preview", "/conversations/c/turn"] {
            let answer = server.ask(&Call::json("POST", path, &json!({ "host": host })));
            assert_eq!((answer.status, answer.code()), (400, "bad_request".into()), "{host}");
        }
    }
    assert_eq!(done(&server, &Call::get("/conversations")), json!({ "conversations": [], "total": 0 }));
}

/// Row H14.
#[test]
fn a_directory_outside_is_refused_in_the_same_words_whether_it_is_there_or_not() {
    let site = site();
    let server = site.serve();
    done(&server, &Call::json("POST", "/conversations/c/turn", &json!({})));
    let refused = server.ask(&Call::json("POST", "/preview", &json!({ "cwd": "/" })));
    assert_eq!((refused.status, refused.code()), (403, "cwd_not_allowed".into()));
    for cwd in [
        site.text("outside"),
        site.text("absent"),
        site.text("outside/secret"),
        site.text("work/../outside"),
        site.text("work/folder"),
        site.text("work/root"),
        site.text("work/loop"),
        format!("{}x", site.text("work")),
        "/etc".into(),
        "/nowhere".into(),
        ".".into(),
        "sub".into(),
        String::new(),
        format!("{}\u{0}", site.text("work")),
        "x".repeat(5000),
        "/".repeat(5000),
    ] {
        for path in [
            "/preview",
            "/conversations/c/turn",
            "/conversations/d/turn",
            "/conversations/c/reload",
            "/conversations/c/compaction",
        ] {
            let answer = server.ask(&Call::json("POST", path, &json!({ "cwd": cwd })));
            assert_eq!((answer.status, &answer.body), (403, &refused.body), "{path} {cwd}");
        }
    }
    let inside = Call::json("POST", "/preview", &json!({ "cwd": site.text("work/sub") }));
    assert_eq!(server.ask(&inside).status, 200);
}

/// Row H14: the directory of a conversation is replaced by a link to another directory.
#[test]
fn a_kept_directory_is_checked_again_before_it_is_read() {
    let site = site();
    let server = site.serve();
    let first = json!({ "cwd": site.text("work/sub") });
    done(&server, &Call::json("POST", "/conversations/c/turn", &first));
    std::fs::remove_dir(site.path("work/sub")).unwrap();
    site.link("work/sub", &site.path("outside"));
    for call in [
        Call::get("/conversations/c/drift"),
        Call::new("POST", "/conversations/c/reload?plan=true"),
        Call::new("POST", "/conversations/c/reload"),
        Call::json("PUT", "/conversations/c/tools", &json!({ "tools": [{ "name": "t" }] })),
        Call::new("POST", "/conversations/c/compaction?commit=true"),
    ] {
        let answer = server.ask(&call);
        assert_eq!((answer.status, answer.code()), (403, "cwd_not_allowed".into()), "{call:?}");
    }
    let kept = server.ask(&Call::get("/conversations/c"));
    assert!(!kept.body.contains(CANARY), "{kept:?}");
}

/// A `.proem` above the working directory is used over HTTP as on the command line, but only inside of a workspace.
#[test]
fn settings_above_count_inside_of_a_workspace_only() {
    let site = Site::new();
    proem_testkit::git(&site.path("work"), &["init".to_owned(), "-q".to_owned()]);
    site.write("work/.proem/SYSTEM.md", "the base of the repository\n");
    site.write("work/sub/x.txt", "x\n");
    let preview = |server: &Server| {
        let body = json!({"profile": "default", "cwd": site.path("work/sub")});
        let answer = server.ask(&Call::json("POST", "/preview", &body));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer
    };
    let inside = preview(&site.serve());
    assert!(inside.system().starts_with("the base of the repository\n"), "{inside:?}");
    assert!(inside.body.contains("workspace_above"), "{inside:?}");
    // Only a part of the same repository is a workspace.
    let part = Options { workspaces: vec![site.path("work/sub")], ..site.options() };
    let outside = preview(&Server::start(site.store(), part));
    assert!(!outside.body.contains("the base of the repository"), "{outside:?}");
    assert!(!outside.body.contains("workspace_above"), "{outside:?}");
}

/// The server knows the same provider names as the command line, with the same error for others.
#[test]
fn providers_have_the_names_of_the_command() {
    let site = Site::new();
    let server = site.serve();
    let turn = |id: &str, provider: &str| {
        let body =
            json!({"profile": "default", "cwd": site.path("work"), "prompt": "Hello", "provider": provider});
        server.ask(&Call::json("POST", &format!("/conversations/{id}/turn"), &body))
    };
    for (index, name) in proem::deliver::ProviderName::all().enumerate() {
        for (other, word) in std::iter::once(&name.word).chain(name.aliases).enumerate() {
            let answer = turn(&format!("c-{index}-{other}"), word);
            assert_eq!(answer.status, 200, "{word}: {answer:?}");
            assert!(answer.json()["payload"].is_object(), "{word}: {answer:?}");
        }
    }
    let unknown = turn("c-none", "openai2");
    assert_eq!(unknown.status, 400);
    assert!(
        unknown.body.contains(r#"unknown provider \"openai2\"; expected one of: anthropic, "#),
        "{unknown:?}"
    );
    assert!(unknown.body.contains("did you mean `openai`?"), "{unknown:?}");
}
