//! Hooks by `proem turn` and `proem serve`: which of a workspace run after `proem trust add`, and what those of the user's may
//! do to a server. Rows T3, T4 and T6 to T9.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::desk::Desk;
use crate::served::Server;

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];

/// A workspace with a hook that leaves a canary beside the desk's folders.
fn with_hook(desk: &Desk) {
    let canary = desk.root.path().join("canary");
    desk.write(".proem/hooks/sing", format!("#!/bin/sh\ntouch '{}'\n", canary.display()).as_bytes());
    fs::set_permissions(desk.work().join(".proem/hooks/sing"), fs::Permissions::from_mode(0o755)).unwrap();
    desk.write(
        ".proem/proem.toml",
        b"[[hook]]\nevent = \"resources_discover\"\ncommand = [\"hooks/sing\"]\n",
    );
}

fn trust(desk: &Desk) {
    let output = desk.run(&["trust", "add"]);
    assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
}

/// Removes the canary. Returns `true` if it was there.
fn sang(desk: &Desk) -> bool {
    fs::remove_file(desk.root.path().join("canary")).is_ok()
}

/// The notes of a turn in a folder by the command, and by a server that is started for it.
fn both_ways(desk: &Desk, folder: &Path) -> [(&'static str, bool, String); 2] {
    let mut command = desk.command(&["turn", "--prompt-text", "Hello", "--format", "json"]);
    let turn = command.current_dir(folder).output().unwrap();
    assert_eq!(turn.status.code(), Some(0), "{}", desk.said(&turn.stderr));
    let by_command = ("command", sang(desk), desk.said(&turn.stdout));
    let root = desk.root.path().to_str().unwrap();
    let server = Server::start(desk, "", &[LISTEN.as_slice(), &["--workspace", root]].concat());
    let (status, answer) = first_turn(&server, &serde_json::json!({"cwd": folder}).to_string());
    assert_eq!(status, 200, "{answer}");
    let by_server = ("server", sang(desk), desk.said(answer.as_bytes()));
    [by_command, by_server]
}

/// Runs the first turn of a new conversation: a later one would build nothing.
fn first_turn(server: &Server, body: &str) -> (u16, String) {
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    let number = BEGUN.fetch_add(1, Ordering::Relaxed);
    server.ask("POST", &format!("/conversations/c-{number}/turn"), body)
}

/// Row T6.
#[test]
fn a_hook_that_is_not_what_was_approved_does_not_run() {
    let desk = Desk::new();
    with_hook(&desk);
    for (way, sang, said) in both_ways(&desk, &desk.work()) {
        assert!(!sang && said.contains("ignored_setting"), "{way}, not approved: {said}");
    }
    trust(&desk);
    for (way, sang, said) in both_ways(&desk, &desk.work()) {
        assert!(sang, "{way}, control: {said}");
    }
    let script = fs::read_to_string(desk.work().join(".proem/hooks/sing")).unwrap();
    desk.write(".proem/hooks/sing", (script + "# more\n").as_bytes());
    for (way, sang, said) in both_ways(&desk, &desk.work()) {
        assert!(!sang && said.contains("hook_changed"), "{way}, changed: {said}");
    }
}

/// A client is told that a hook of the operator failed, and not what it wrote: neither now nor from the kept prompt.
#[test]
fn a_failing_hook_tells_clients_its_status_alone() {
    let desk = Desk::of("default");
    let script = "echo 'no https://svc:hunterCANARY22x@db.example for CANARY' >&2; exit 3";
    let hook = format!(
        "[[hook]]\nname = \"bad\"\nevent = \"resources_discover\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"
    );
    desk.write("../.config/proem/proem.toml", hook.as_bytes());
    let output = desk.run(&["build"]);
    let said = desk.said(&output.stderr);
    assert!(said.contains("exit status: 3: no https://svc:…@db.example for CANARY"), "control: {said}");
    let server = Server::start(&desk, "", &LISTEN);
    let (status, turn) = server.ask("POST", "/conversations/c/turn", "{}");
    let (_, shown) = server.ask("GET", "/conversations/c/epochs/1", "");
    let (_, preview) = server.ask("POST", "/preview", "{}");
    assert_eq!(status, 200, "{turn}");
    assert!(turn.contains("the hook `bad` is skipped at `resources_discover`: exit status: 3\""), "{turn}");
    for answer in [turn, shown, preview] {
        assert!(!answer.contains("CANARY") && !answer.contains("db.example"), "{answer}");
    }
    assert_eq!(server.stop(), Some(0));
    // The user sees what the hook wrote; an epoch that the command stores is read by clients, and does not have it.
    let reloaded = desk.run(&["conversation", "reload", "c"]);
    let said = desk.said(&reloaded.stderr);
    assert!(said.contains("exit status: 3: no https://svc:…@db.example for CANARY"), "{said}");
    let exported = desk.run(&["store", "export"]);
    let kept = desk.said(&exported.stdout);
    assert!(kept.contains("`bad` is skipped") && !kept.contains("CANARY"), "{kept}");
}

/// Row T4: what was approved in one place is not approved in another, however that is made to look like it.
#[test]
fn approval_does_not_travel() {
    let desk = Desk::new();
    with_hook(&desk);
    trust(&desk);
    let copy = desk.root.path().join("copy");
    let nested = desk.work().join("nested");
    for folder in [&copy, &nested] {
        fs::create_dir_all(folder).unwrap();
        let done = std::process::Command::new("cp")
            .args(["-a", desk.work().join(".proem").to_str().unwrap(), folder.to_str().unwrap()])
            .status();
        assert!(done.unwrap().success());
        fs::write(folder.join(".git"), format!("gitdir: {}/.git\n", desk.work().display())).unwrap();
        for (way, sang, said) in both_ways(&desk, folder) {
            assert!(!sang, "{way}, {}: {said}", folder.display());
        }
    }
    for (way, sang, said) in both_ways(&desk, &desk.work()) {
        assert!(sang, "{way}, control: {said}");
    }
}

/// Row T3: `.env` is not read as an environment.
#[test]
fn a_file_of_variables_in_the_workspace_is_not_read() {
    let desk = Desk::new();
    with_hook(&desk);
    let canary = desk.root.path().join("canary");
    let hook = format!(
        "[[hook]]\nevent = \"resources_discover\"\ncommand = [\"touch\", \"{}\"]\n",
        canary.display()
    );
    desk.write("settings/proem.toml", hook.as_bytes());
    let settings = desk.work().join("settings");
    desk.write(".env", format!("PROEM_CONFIG_DIR={}\nPROEM_PROFILE=none\n", settings.display()).as_bytes());
    for (way, sang, said) in both_ways(&desk, &desk.work()) {
        assert!(!sang, "{way}: {said}");
    }
    let mut control = desk.command(&["turn", "--prompt-text", "Hello"]);
    assert!(control.env("PROEM_CONFIG_DIR", &settings).output().unwrap().status.success());
    assert!(sang(&desk), "control");
}

fn configure(desk: &Desk, hook: &str) {
    desk.write("../.config/proem/proem.toml", hook.as_bytes());
}

/// Row T8 by the server: its own variables are not those of a hook.
#[test]
fn a_hook_of_a_server_sees_no_secret_of_it() {
    let desk = Desk::new();
    let seen = desk.root.path().join("seen");
    let script = format!("tr '\\0' '\\n' < /proc/$$/environ > '{}'", seen.display());
    let script = serde_json::to_string(&script).unwrap();
    let keys = ["", "env = [\"DECLARED\"]\n"];
    for (keys, declared) in keys.iter().zip([false, true]) {
        configure(
            &desk,
            &format!(
                "[[hook]]\nevent = \"resources_discover\"\ncommand = [\"/bin/sh\", \"-c\", {script}]\n{keys}"
            ),
        );
        let server = Server::start(&desk, "export SECRET=canary-1 DECLARED=canary-2", &LISTEN);
        assert_eq!(first_turn(&server, "{}").0, 200);
        let seen = fs::read_to_string(&seen).unwrap();
        assert!(!seen.contains("canary-1"), "{seen}");
        assert_eq!(seen.contains("canary-2"), declared, "control: {seen}");
    }
}

/// Row T9 by the server: a turn does not wait for a hook that never ends, and says so.
#[test]
fn a_hook_that_hangs_costs_a_server_its_answer_and_nothing_else() {
    let desk = Desk::new();
    configure(
        &desk,
        "[[hook]]\nevent = \"resources_discover\"\ncommand = [\"sleep\", \"100000\"]\ntimeout_ms = 100\n",
    );
    let server = Server::start(&desk, "", &LISTEN);
    let (status, answer) = first_turn(&server, "{}");
    assert!(status == 200 && answer.contains("hook_failed"), "{status} {answer}");
    assert_eq!(server.stop(), Some(0));
}

/// Row T7 by the server: a command that is a text is an error, and strangers are not told where it stands.
#[test]
fn a_command_that_is_a_text_is_not_given_to_a_shell() {
    let desk = Desk::new();
    let canary = desk.root.path().join("canary");
    configure(
        &desk,
        &format!("[[hook]]\nevent = \"resources_discover\"\ncommand = \"touch '{}'\"\n", canary.display()),
    );
    let server = Server::start(&desk, "", &LISTEN);
    let (status, answer) = first_turn(&server, "{}");
    assert!(!sang(&desk), "{answer}");
    assert!(status == 500 && answer.contains("misconfigured"), "{status} {answer}");
    assert!(!answer.contains(".config") && !answer.contains("touch"), "{answer}");
}

/// Hooks of a `.proem` above run where the folder that holds it is trusted, and never because a folder below is.
#[test]
fn hooks_above_need_the_trust_of_their_own_folder() {
    let desk = Desk::new();
    with_hook(&desk);
    fs::create_dir(desk.work().join(".git")).unwrap();
    let below = desk.work().join("sub");
    fs::create_dir(&below).unwrap();
    // An empty folder of that name is not a repository, and widens nothing.
    for (way, ran, notes) in both_ways(&desk, &below) {
        assert!(!ran && !notes.contains("workspace_above"), "{way}: {notes}");
    }
    proem_testkit::git(&desk.work(), &["init".to_owned(), "-q".to_owned()]);
    for (way, ran, notes) in both_ways(&desk, &below) {
        assert!(!ran && notes.contains("workspace_above") && notes.contains("is ignored"), "{way}: {notes}");
    }
    let added = desk.run(&["trust", "add", "sub"]);
    assert!(desk.said(&added.stdout).ends_with(
        "the settings of {root}/work count there; `proem trust add {root}/work` lets their hooks run\n"
    ));
    for (way, ran, notes) in both_ways(&desk, &below) {
        assert!(!ran, "{way}: {notes}");
    }
    trust(&desk);
    for (way, ran, notes) in both_ways(&desk, &below) {
        assert!(ran, "{way}: {notes}");
    }
    // A repository inside of a trusted one is another one, and has no settings from outside.
    fs::create_dir(below.join(".git")).unwrap();
    for (way, ran, notes) in both_ways(&desk, &below) {
        assert!(!ran, "{way}: {notes}");
    }
}
