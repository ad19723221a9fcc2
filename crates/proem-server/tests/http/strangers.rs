//! What a stranger's workspace may do to whoever asks over HTTP: nothing but say something. Rows C1 to C6, T1 and T2.

use serde_json::json;

use crate::client::{Answer, Call};
use crate::server::{Server, Site};

fn turn(server: &Server, site: &Site, profile: &str) -> Answer {
    let body = json!({"profile": profile, "cwd": site.text("work")});
    let answer = server.ask(&Call::json("POST", "/preview", &body));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

#[test]
fn hidden_text_is_made_harmless_and_told() {
    for (row, text, treated, code) in [
        ("C1", "a\u{E0068}\u{E0069}b", "ab", "hidden_text"),
        ("C2", "a\u{202E}b", "a<U+202E>b", "bidi_control"),
        ("C3", "a\u{200B}b", "ab", "hidden_text"),
        ("C4", "a\u{FE00}\u{FE01}\u{FE02}b", "ab", "hidden_text"),
        ("C6", "a\u{1B}[2Jb", "a<U+001B>[2Jb", "control_character"),
    ] {
        let site = Site::new();
        site.write("work/AGENTS.md", &format!("first\n{text}\nlast\n"));
        let server = site.serve();
        let answer = turn(&server, &site, "default");
        assert!(answer.system().contains(&format!("first\n{treated}\nlast")), "{row}: {answer:?}");
        assert!(answer.body.contains(code), "{row}: {answer:?}");
        let verbatim = turn(&server, &site, "layers");
        assert!(verbatim.system().contains(&format!("first\n{text}\nlast")), "{row}, control");
        assert!(verbatim.body.contains(code), "{row}");
    }
}

#[test]
fn a_workspace_sets_nothing_that_it_may_not() {
    let site = Site::new();
    let canary = site.path("canary");
    let script = format!("touch '{}'", canary.display());
    site.write(
        "work/.proem/proem.toml",
        &format!(
            "listen = \"0.0.0.0:1\"\ntoken = \"x\"\nhygiene = \"report\"\n\
             [env]\nallow = [\"PATH\"]\n\
             [[hook]]\nevent = \"resources_discover\"\ncommand = [\"sh\", \"-c\", {script:?}]\n"
        ),
    );
    site.write("work/AGENTS.md", "a\u{202E}b\n");
    let server = site.serve();
    let answer = turn(&server, &site, "default");
    assert!(!canary.exists(), "a hook ran");
    assert_eq!(answer.body.matches("\"ignored_setting\"").count(), 5, "{answer:?}");
    assert!(answer.system().contains("a<U+202E>b"), "{answer:?}");
}

/// The value of a variable of the server must not come out, whatever a profile of the workspace asks for.
#[test]
fn a_profile_of_the_workspace_reads_no_variable() {
    let site = Site::new();
    let path = std::env::var("PATH").unwrap();
    site.write(
        "work/.proem/profiles/p.toml",
        "[[section]]\nid = \"base\"\ntemplate = { text = \"none\", syntax = \"bracket\" }\nfiles = { env = \"PATH\" }\n",
    );
    let server = site.serve();
    let answer = turn(&server, &site, "p");
    assert!(!answer.body.contains(&path), "{answer:?}");
    assert!(answer.body.contains("env_not_allowed"), "{answer:?}");
}
