//! Hooks of a workspace run for users who approved them, and only in the approved version. Rows T4 and T6.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use proem::trust::{self, HookState};
use proem::{Engine, Host, HostPins, Workspace};
use proem_core::note::Code;

use crate::site::{Site, said};

const SCRIPT: &str = "work/.proem/hooks/canary";
const CONFIG: &str = "work/.proem/proem.toml";
const HOOK: &str =
    "[[hook]]\nname = \"c\"\nevent = \"context\"\ncommand = [\"hooks/canary\", \"a\"]\nenv = [\"EDITOR\"]\n";

/// A workspace with a hook that leaves a canary.
fn site() -> Site {
    let site = Site::new();
    site.write(CONFIG, HOOK);
    script(&site, ": >'{root}/canary'");
    site
}

fn script(site: &Site, command: &str) {
    site.write(SCRIPT, &format!("#!/bin/sh\n{command}\n"));
    fs::set_permissions(site.path(SCRIPT), fs::Permissions::from_mode(0o755)).unwrap();
}

fn host(site: &Site) -> Host {
    let pins = serde_json::json!({"config_dir": site.path("config"), "home": site.path("home")});
    Host::new(&serde_json::from_value::<HostPins>(pins).unwrap()).unwrap()
}

fn workspace(site: &Site, path: &str) -> Workspace {
    Workspace::open(site.path(path).to_str()).unwrap()
}

/// Takes a turn; returns whether the hook ran, and the notes about it.
fn ran(site: &Site) -> (bool, Vec<String>) {
    let session = site.start(&Engine::new());
    drop(session.turn(&said("Hello")));
    let notes = session.build().notes();
    let about = [Code::IgnoredSetting, Code::HookChanged].map(|code| site.noted(notes, code)).concat();
    (fs::remove_file(site.path("canary")).is_ok(), about)
}

/// Row T4, the control.
#[test]
fn a_hook_of_the_workspace_runs_when_it_is_approved_and_no_longer() {
    let site = site();
    let (is_run, notes) = ran(&site);
    assert!(!is_run && notes.len() == 1 && notes[0].contains("may not set it"), "{notes:?}");
    let trusted = trust::add(&host(&site), &workspace(&site, "work")).unwrap();
    assert_eq!(trusted.hook[0].files.keys().collect::<Vec<_>>(), ["hooks/canary"]);
    assert_eq!(ran(&site), (true, Vec::new()));
    let file = site.path("config/trust.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(trust::remove(&host(&site), &site.path("work")).unwrap());
    assert!(!trust::remove(&host(&site), &site.path("work")).unwrap());
    assert!(!ran(&site).0);
}

/// A change that a stranger makes to a workspace.
type Change = fn(&Site);

/// T6: each change by itself stops the hook from running, and is named.
#[test]
fn a_hook_that_is_not_what_was_approved_does_not_run() {
    let changes: [(&str, Change); 7] = [
        ("the file `hooks/canary`", |site| script(site, ": >'{root}/canary' # more")),
        ("its command", |site| site.write(CONFIG, &HOOK.replace("\"a\"", "\"b\""))),
        ("the environment that it wants", |site| site.write(CONFIG, &HOOK.replace("EDITOR", "SECRET"))),
        ("its limits", |site| site.write(CONFIG, &format!("{HOOK}timeout_ms = 100000\n"))),
        ("it was not there", |site| site.write(CONFIG, &HOOK.replace("\"c\"", "\"d\""))),
        ("it was not there", |site| {
            site.write(CONFIG, &HOOK.replace("\"context\"", "\"before_agent_start\""));
        }),
        ("the file `hooks/canary`", |site| {
            let elsewhere = site.path("elsewhere");
            fs::copy(site.path(SCRIPT), &elsewhere).unwrap();
            fs::remove_file(site.path(SCRIPT)).unwrap();
            symlink(elsewhere, site.path(SCRIPT)).unwrap();
        }),
    ];
    for (what, change) in changes {
        let site = site();
        trust::add(&host(&site), &workspace(&site, "work")).unwrap();
        assert!(ran(&site).0, "control: it runs as it was approved");
        change(&site);
        let (is_run, notes) = ran(&site);
        assert!(!is_run, "{what}");
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("does not run") && notes[0].ends_with(what), "{what}: {notes:?}");
        trust::add(&host(&site), &workspace(&site, "work")).unwrap();
        assert_eq!(ran(&site), (true, Vec::new()), "{what}, approved");
    }
}

/// T6: a file that is named inside a word is pinned like one that is a whole word.
#[test]
fn a_file_that_is_named_inside_of_a_word_is_pinned() {
    for command in [
        r#"["bash", "-c", ". ./hooks/canary"]"#,
        r#"["sh", "-c", "cd hooks; cd ..; sh 'hooks/canary'"]"#,
        r#"["sh", "-c", "sh $PWD/hooks/canary"]"#,
        r#"["env", "-S", "sh hooks/canary"]"#,
        r#"["make", "-s", "-fhooks/canary"]"#,
        r#"["env", "BASH_ENV=hooks/canary", "bash", "-c", "true"]"#,
    ] {
        let site = site();
        if command.contains("make") {
            site.write(SCRIPT, "all:\n\t@: >'{root}/canary'\n");
        }
        let hook = format!("[[hook]]\nname = \"c\"\nevent = \"context\"\ncommand = {command}\n");
        site.write(CONFIG, &hook);
        trust::add(&host(&site), &workspace(&site, "work")).unwrap();
        assert!(ran(&site).0, "control: it runs as it was approved: {command}");
        let text = fs::read_to_string(site.path(SCRIPT)).unwrap();
        site.write(SCRIPT, &format!("{text}# more\n"));
        let (is_run, notes) = ran(&site);
        assert!(!is_run, "{command}");
        assert!(notes.len() == 1 && notes[0].ends_with("hooks/canary`"), "{command}: {notes:?}");
        let states = trust::list(&host(&site)).unwrap()[0].states().unwrap();
        assert!(matches!(&states[0].1, HookState::Changed(_)), "{command}: {states:?}");
    }
}

/// T4: trust in a path does not extend to paths that lead there.
#[test]
fn trust_does_not_go_from_one_folder_to_another() {
    let site = site();
    trust::add(&host(&site), &workspace(&site, "work")).unwrap();
    for other in ["clone", "work/nested"] {
        fs::create_dir_all(site.path(other)).unwrap();
        let copied = std::process::Command::new("cp")
            .args(["-r", site.path("work/.proem").to_str().unwrap(), site.path(other).to_str().unwrap()])
            .status();
        assert!(copied.unwrap().success());
        site.write(&format!("{other}/.git"), &format!("gitdir: {}/.git\n", site.path("work").display()));
        let config = proem::config::Config::load(&host(&site), &workspace(&site, other)).unwrap();
        assert!(config.hooks.value.is_empty(), "{other}");
        assert_eq!(config.notes.len(), 1, "{other}");
    }
    // A link leads to the same place.
    symlink(site.path("work"), site.path("link")).unwrap();
    let config = proem::config::Config::load(&host(&site), &workspace(&site, "link")).unwrap();
    assert_eq!(config.hooks.value.len(), 1);
}

/// Row T4: a workspace that holds the configuration directory could write its own approval.
#[test]
fn a_list_that_lies_in_the_workspace_counts_for_nothing() {
    let site = site();
    let inside = serde_json::json!({"config_dir": site.path("work/config"), "home": site.path("home")});
    let inside = Host::new(&serde_json::from_value::<HostPins>(inside).unwrap()).unwrap();
    let here = workspace(&site, "work");
    assert!(trust::add(&inside, &here).is_err());
    trust::add(&host(&site), &here).unwrap();
    site.write("work/config/trust.toml", &fs::read_to_string(site.path("config/trust.toml")).unwrap());
    let config = proem::config::Config::load(&inside, &here).unwrap();
    assert!(config.hooks.value.is_empty());
    let config = proem::config::Config::load(&host(&site), &here).unwrap();
    assert_eq!(config.hooks.value.len(), 1, "control: the same list elsewhere counts");
}

#[test]
fn the_list_says_what_has_become_of_each_hook() {
    let site = site();
    let host = host(&site);
    trust::add(&host, &workspace(&site, "work")).unwrap();
    let states = || trust::list(&host).unwrap()[0].states().unwrap();
    assert_eq!(states(), [("c".to_owned(), HookState::Approved)]);
    site.write(
        CONFIG,
        &format!("{HOOK}\n[[hook]]\nname = \"n\"\nevent = \"context\"\ncommand = [\"true\"]\n"),
    );
    assert_eq!(states()[1], ("n".to_owned(), HookState::Unknown));
    site.write(CONFIG, "profile = \"default\"\n");
    assert!(states().is_empty());
    // A workspace without hooks can be trusted to link out of itself.
    assert!(trust::add(&host, &workspace(&site, "work")).unwrap().hook.is_empty());
    assert_eq!(trust::list(&host).unwrap().len(), 1);
}
