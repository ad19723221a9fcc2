//! Workspaces that a client sends: `proem bundle`, a remote turn over TLS, and what a server reads.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use proem_testkit::{Authority, git};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::secure::Nginx;
use crate::served::Server;

/// A project with files that prompts read and files that they do not.
fn project(desk: &Desk) {
    for (path, text) in [
        ("AGENTS.md", "Rules of the root."),
        ("sub/AGENTS.md", "Rules of sub."),
        ("sub/deep/code.rs", "fn main() {}"),
        ("README.md", "Not read."),
        (".env", "SECRET=CANARY-SECRET"),
        (".agents/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Deploys\n---\nBody.\n"),
        (".agents/skills/deploy/run.sh", "exit"),
        ("../AGENTS.md", "CANARY-HOME"),
    ] {
        desk.write(path, text.as_bytes());
    }
    for arguments in
        [&["init", "-q", "-b", "trunk"][..], &["add", "AGENTS.md"], &["commit", "-q", "-m", "First"]]
    {
        git(&desk.work(), &arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    }
    desk.write("AGENTS.md", b"Rules of the root, edited.");
}

fn bundle(desk: &Desk, arguments: &[&str]) -> Value {
    let output = desk.run(&[&["bundle", "--format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn paths(bundle: &Value) -> Vec<&str> {
    bundle["files"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_bundle_holds_the_files_that_the_profile_reads() {
    let desk = Desk::new();
    project(&desk);
    let all = bundle(&desk, &["-p", "layers", "--cwd", "sub"]);
    assert_eq!(paths(&all), [".agents/skills/deploy/SKILL.md", "AGENTS.md", "sub/AGENTS.md"]);
    assert_eq!((&all["cwd"], &all["git"]["branch"]), (&json!("sub"), &json!("trunk")));
    assert!(all["git"]["status"].as_str().unwrap().contains("AGENTS.md"), "{all}");
    assert_eq!(paths(&bundle(&desk, &["sub", "-p", "layers"])), paths(&all), "the directory as an argument");
    // A template that names other files needs those, and a secret is never sent.
    let named = ["-p", "template", "--template", "template"];
    desk.write("template", b"[file:README.md][file:.env][file:../AGENTS.md]");
    let output = desk.run(&[&["bundle", "--format", "json"], &named[..]].concat());
    let one: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(paths(&one), ["README.md"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("CANARY"));
    assert!(desk.said(&output.stderr).contains("is not part of it"), "{}", desk.said(&output.stderr));
}

/// The prompt of a bundle is that of the directory, with another path.
#[test]
fn a_bundle_gives_the_prompt_of_its_directory() {
    let desk = Desk::new();
    project(&desk);
    fs::remove_file(desk.root.path().join("AGENTS.md")).unwrap();
    for profile in
        ["layers", "default", "boundary", "assets", "template", "claude-code", "codex", "gemini-cli"]
    {
        for cwd in [".", "sub", "sub/deep"] {
            let sent = bundle(&desk, &["-p", profile, "--cwd", cwd]);
            let host = json!({"now": "2026-03-07T14:55:05Z", "timezone": "UTC", "os": "linux", "os_name": "L",
                "os_version": "6", "hostname": "h", "shell": "/bin/sh", "home": null});
            let request = json!({"profile": profile, "host": host, "workspace": sent});
            desk.write("../request.json", request.to_string().as_bytes());
            let virtual_ = desk.run(&["build", "--request", "../request.json"]);
            assert_eq!(virtual_.status.code(), Some(0), "{profile}: {}", desk.said(&virtual_.stderr));
            let request = json!({"profile": profile, "host": host, "cwd": desk.work().join(cwd).canonicalize().unwrap()});
            desk.write("../request.json", request.to_string().as_bytes());
            let real = desk.run(&["build", "--request", "../request.json"]);
            let expected = desk.said(&real.stdout).replace("{root}/work", "/workspace");
            assert_eq!(desk.said(&virtual_.stdout), expected, "{profile} in {cwd}");
            let is_of_agent = ["claude-code", "codex", "gemini-cli"].contains(&profile);
            assert!(is_of_agent || !expected.is_empty(), "{profile}: control");
        }
    }
}

fn served(desk: &Desk, folder: &str) -> Server {
    let plain = desk.command(&[]);
    let mut command = Command::new(plain.get_program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", "memory:"]).env_clear();
    fs::create_dir_all(desk.root.path().join(folder)).unwrap();
    command.current_dir(desk.root.path().join(folder));
    Server::spawn(command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))))
}

#[test]
fn a_remote_turn_sends_the_files_that_the_server_does_not_have() {
    let desk = Desk::new();
    project(&desk);
    let server = served(&desk, "elsewhere");
    let url = format!("http://{}", server.address);
    let take = |arguments: &[&str]| {
        let output =
            desk.run(&[&["turn", "--url", &url, "--format", "json", "--conversation"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        (answer, desk.said(&output.stderr))
    };
    let (first, said) = take(&["c", "-p", "layers"]);
    assert!(first["prefix"].as_str().unwrap().contains("/workspace/AGENTS.md"), "{first}");
    assert!(said.contains("the server has no directory") && said.contains("files of it are sent"), "{said}");
    let (later, said) = take(&["c"]);
    assert_eq!((&later["digest"], &later["reused"], said.as_str()), (&first["digest"], &json!(true), ""));
    desk.write("AGENTS.md", b"Edited again.");
    let cwd = desk.work();
    let (edited, said) = take(&["c", "--cwd", cwd.to_str().unwrap()]);
    assert_eq!((&edited["digest"], &edited["pending"]), (&first["digest"], &json!([])));
    assert!(said.contains("are sent"), "{said}");
    let reload = desk.run(&["conversation", "reload", "c", "--url", &url, "--format", "json"]);
    let reload: Value = serde_json::from_slice(&reload.stdout).unwrap();
    assert_eq!(reload["opened"], json!(true), "{reload}");
    let (last, _) = take(&["c"]);
    assert!(last["prefix"].as_str().unwrap().contains("Edited again."), "{last}");
    // One step does the same: a relative directory is one of the client, and the profile that of the conversation.
    desk.write(".sf/SYSTEM.md", b"Base of the project.");
    let reload = desk.run(&["conversation", "reload", "c", "--cwd", ".", "--url", &url, "--format", "json"]);
    let said = desk.said(&reload.stderr);
    assert!(said.contains("the server has no directory {root}/work: 3 files of it are sent"), "{said}");
    let reload: Value = serde_json::from_slice(&reload.stdout).unwrap();
    assert_eq!(reload["opened"], json!(true), "{reload}");
    let (last, _) = take(&["c", "--cwd", "."]);
    assert!(last["prefix"].as_str().unwrap().starts_with("Base of the project."), "{last}");
    // Two steps of a compaction, tools and a profile, through the same door.
    let command = |arguments: &[&str]| {
        let output = desk.run(&[&["conversation"], arguments, &["--url", &url, "--format", "json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?} {}", desk.said(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let begun = command(&["compact", "c", "--begin", "--for", "anthropic"]);
    assert!(begun["payload"]["system"].is_array(), "{begun}");
    assert_eq!(command(&["compact", "c", "--commit", begun["token"].as_str().unwrap()])["epoch"], json!(4));
    desk.write("tools.json", br#"[{"name": "read"}]"#);
    assert_eq!(command(&["tools", "c", "--file", "tools.json"])["reason"], json!("tools"));
    desk.write(
        "../.config/proem/profiles/mine.toml",
        b"name = \"mine\"\ndescription = \"Mine\"\nextends = \"template\"\n",
    );
    assert_eq!(command(&["profile", "c", "mine"])["pending"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_remote_turn_works_over_tls() {
    let desk = Desk::new();
    project(&desk);
    let server = served(&desk, "elsewhere");
    let authority = Authority::new(desk.root.path(), "authority");
    let Some(nginx) = Nginx::start(&authority, &server.address) else { return };
    let url = format!("https://localhost:{}", nginx.port);
    let turn = |certificate: Option<&str>| {
        let mut command =
            desk.command(&["turn", "--conversation", "c", "-p", "layers", "--url", &url, "--format", "json"]);
        command.envs(certificate.map(|path| ("SSL_CERT_FILE", path))).output().unwrap()
    };
    let refused = turn(Some("/dev/null"));
    assert_eq!(refused.status.code(), Some(3), "control: {}", desk.said(&refused.stderr));
    let output = turn(authority.certificate.to_str());
    assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["prefix"].as_str().unwrap().contains("/workspace/AGENTS.md"), "{answer}");
}

/// Counts the opens of files with a name, by `strace`.
#[test]
fn a_server_opens_no_file_of_its_disk_for_a_workspace() {
    if Command::new("strace").arg("-V").output().is_err() {
        return;
    }
    let desk = Desk::new();
    for path in ["AGENTS.md", "../AGENTS.md", "../.config/proem/AGENTS.md", "../.sf/agent/AGENTS.md"] {
        desk.write(path, b"CANARY-DISK");
    }
    let build = |request: Value| {
        desk.write("../request.json", request.to_string().as_bytes());
        let plain = desk.command(&[]);
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=%file", "-o", "../trace"]).arg(plain.get_program());
        command.args(["build", "--request", "../request.json"]).current_dir(desk.work()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
        let trace = fs::read_to_string(desk.root.path().join("trace")).unwrap();
        let touched = trace.lines().filter(|line| {
            line.contains("AGENTS.md") && !line.contains("/proem-workspace-") && !line.contains("unlinkat(")
        });
        (desk.said(&output.stdout), touched.count())
    };
    let request = |place: (&str, Value)| {
        let mut request = json!({"profile": "layers", "tools": [{"name": "read"}]});
        request[place.0] = place.1;
        request
    };
    let workspace =
        json!({"files": {"AGENTS.md": "Virtual.", "a/b/AGENTS.md": "Deep."}, "git": {}, "cwd": "a/b"});
    let (prompt, touched) = build(request(("workspace", workspace)));
    assert!(
        prompt.contains("Virtual.") && prompt.contains("Deep.") && !prompt.contains("CANARY"),
        "{prompt}"
    );
    assert!(!prompt.contains("proem-workspace-"), "{prompt}");
    assert_eq!(touched, 0, "files of the disk were looked for");
    let (prompt, touched) = build(request(("cwd", json!(desk.work()))));
    assert!(prompt.contains("CANARY-DISK") && touched > 0, "control: {prompt}");
    let left = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let mine = |name: &str| name.starts_with("proem-workspace-");
    let trace = fs::read_to_string(desk.root.path().join("trace")).unwrap();
    let left = left
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| mine(name) && trace.contains(name)));
    assert_eq!(left.count(), 0, "the temporary folder is removed");
}

#[test]
fn a_workspace_that_is_too_large_is_refused_at_once() {
    let desk = Desk::new();
    let server = served(&desk, "elsewhere");
    let ask = |body: &str| {
        let (status, text) = server.ask("POST", "/workspaces", body);
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let files: Vec<String> = (0..100_000).map(|number| format!("\"f{number}\":\"\"")).collect();
    let (status, answer) = ask(&format!("{{\"files\":{{{}}}}}", files.join(",")));
    assert!(
        status == 400 && answer["message"].as_str().unwrap().contains("more than 2000 files"),
        "{answer}"
    );
    let (status, answer) = ask(&json!({"files": {"a": "x".repeat(9 << 20)}}).to_string());
    assert!(status == 400 && answer["message"].as_str().unwrap().contains("more than 8 MiB"), "{answer}");
    // A declared gigabyte is refused before it is sent.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = "POST /workspaces HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n", 1 << 30).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    for body in ["", "[]", "{", "{\"files\":{\"a\":\"\\ud800\"}}", "\"x\""] {
        assert_eq!(ask(body).0, 400, "{body}");
    }
    let (status, answer) = ask(r#"{"files": {"AGENTS.md": "x"}}"#);
    assert_eq!((status, &answer["files"], &answer["bytes"]), (200, &json!(1), &json!(1)), "{answer}");
    let digest = answer["digest"].as_str().unwrap();
    assert_eq!(ask(r#"{ "files" : {"AGENTS.md":"x"} }"#).1["digest"], json!(digest), "stored once");
}
