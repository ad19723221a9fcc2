//! The commands in docs/conversations.md are run, and print what the page shows.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the commands of the console blocks of a page, each with the output that the page shows.
fn transcripts(page: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => is_console = line == "```console",
            _ if !is_console => {}
            Some(command) => steps.push((command.to_owned(), String::new())),
            None => {
                let (_, output) = steps.last_mut().unwrap();
                output.push_str(line);
                output.push('\n');
            }
        }
    }
    steps
}

#[test]
fn commands_of_the_page_about_conversations_print_what_it_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/conversations.md")).unwrap();
    let steps = transcripts(&page);
    assert!(steps.len() >= 7, "{steps:?}");
    let site = tempfile::tempdir().unwrap();
    fs::write(site.path().join("tools.json"), r#"[{"name": "read"}]"#).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_proem"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    for (command, expected) in steps {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &command]).current_dir(site.path()).env_clear();
        let output = shell.env("PATH", &path).env("HOME", site.path()).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, expected, "$ {command}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}
