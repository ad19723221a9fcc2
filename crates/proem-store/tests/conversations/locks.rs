//! The locks that SQLite holds on the store: reading a file of a workspace must not release them.
//!
//! Closing any descriptor of a file drops every POSIX lock that the process has on it. So a link to the store must be
//! refused before it is opened, whatever reads it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proem::{Caller, Workspaces};
use proem_store::Store;
use serde_json::{Value, json};

use crate::site::{Site, conversations, turn};

const PARTS: [&str; 3] = ["", "-wal", "-shm"];

/// The ways to link the store's files into the workspace.
const WAYS: [&str; 2] = ["link", "hard link"];

/// Files of a workspace that a build reads.
const PLACES: [&str; 20] = [
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".goosehints",
    ".cursor/rules/a.mdc",
    ".claude/rules/a.md",
    ".github/copilot-instructions.md",
    ".proem/SYSTEM.md",
    ".proem/APPEND_SYSTEM.md",
    ".proem/skills/a/SKILL.md",
    ".proem/skills/a.md",
    ".proem/skills/.gitignore",
    ".agents/skills/a/SKILL.md",
    ".claude/skills/a/SKILL.md",
    ".gitignore",
    ".git/HEAD",
    ".git/packed-refs",
    ".git/config",
    ".git/info/exclude",
    "note.md",
];

/// The profiles whose sections read files in different ways.
const PROFILES: [&str; 11] = [
    "default",
    "template",
    "layers",
    "boundary",
    "engraving",
    "claude-code",
    "codex",
    "gemini-cli",
    "goose",
    "copilot",
    "cursor",
];

fn part(site: &Site, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", site.database().display()))
}

/// Returns the locks on the store's files. The system's list is read in pieces and may miss a lock while others come and
/// go, so a lock counts if one of many readings has it.
fn locks(site: &Site) -> BTreeSet<String> {
    (0..30).flat_map(|_| listed_locks(site)).collect()
}

/// Reads the locks that the system lists for the store's files, without the numbers of the list.
fn listed_locks(site: &Site) -> Vec<String> {
    let inodes = PARTS.map(|ending| fs::metadata(part(site, ending)).unwrap().ino());
    let all = fs::read_to_string("/proc/locks").unwrap();
    let is_of_store = |line: &&str| {
        let inode = line
            .split_whitespace()
            .find_map(|word| word.rsplit_once(':').filter(|(device, _)| device.contains(':')));
        inode.is_some_and(|(_, inode)| inodes.iter().any(|own| own.to_string() == inode))
    };
    let own = all.lines().filter(is_of_store);
    own.map(|line| line.split_once(": ").map_or(line, |(_, rest)| rest).to_owned()).collect()
}

/// Creates a repository with every file that a build reads.
fn laid() -> (Site, Arc<dyn Store>) {
    let site = Site::new();
    let store = site.sqlite();
    turn(&conversations(&store), &site.request(json!({"profile": "template", "template": "kept"})));
    site.write("tree/.git/refs/heads/main", "0123456789012345678901234567890123456789\n");
    site.write("tree/.git/HEAD", "ref: refs/heads/main\n");
    fs::create_dir_all(site.path("tree/.git/objects")).unwrap();
    site.write("tree/AGENTS.md", "See @note.md and @AGENTS.md.\n");
    site.write("tree/note.md", "A note.\n");
    (site, store)
}

fn put(way: &str, target: &Path, place: &Path) {
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let _ = fs::remove_file(place);
    match way {
        "link" => symlink(target, place).unwrap(),
        _ => fs::hard_link(target, place).unwrap(),
    }
}

/// Builds as every caller does; a build may well fail.
fn build_all(site: &Site, profile: &str) {
    let template = match profile {
        "template" => json!(
            "[git:branch] [git:status] [file:AGENTS.md] [file:note.md] [file:.gitignore] [file:.git/HEAD]"
        ),
        _ => Value::Null,
    };
    let request = site.request(json!({"profile": profile, "template": template}));
    drop(proem::build(&request, Caller::User));
    let request = proem::Request { host: proem::HostPins::default(), ..request };
    drop(proem::build(&request, Caller::Remote(Workspaces::new(&[site.path("")]))));
}

#[test]
fn no_file_of_a_workspace_ends_the_locks_of_the_store() {
    for is_trusted in [false, true] {
        let (site, store) = laid();
        if is_trusted {
            let root = site.path("tree").canonicalize().unwrap();
            site.write(
                "config/trust.toml",
                &format!("[[workspace]]\npath = {:?}\n", root.display().to_string()),
            );
        }
        let before = locks(&site);
        assert!(!before.is_empty(), "an open store holds locks, or the system does not list them");
        for place in PLACES {
            let path = site.path(format!("tree/{place}"));
            let plain = fs::read(&path).ok();
            for way in WAYS {
                for ending in PARTS {
                    put(way, &part(&site, ending), &path);
                    for profile in PROFILES {
                        build_all(&site, profile);
                    }
                    assert_eq!(locks(&site), before, "{way} from {place} to the file `proem.db{ending}`");
                }
            }
            fs::remove_file(&path).unwrap();
            if let Some(plain) = plain {
                fs::write(&path, plain).unwrap();
            }
        }
        drop(File::open(site.database()).unwrap());
        assert_ne!(locks(&site), before, "control: opening and closing the file ends a lock");
        drop(store);
    }
}

/// Returns the error of the next write after `harm` was done to a file of the store.
fn refused(ending: &str, harm: impl Fn(&Path)) -> String {
    let (site, store) = laid();
    harm(&part(&site, ending));
    let own = conversations(&store);
    let request = site.request(json!({"profile": "template", "template": "new"}));
    let error = own.turn("d", &request, Caller::User).map(drop).unwrap_err();
    site.said(&error.to_string())
}

#[test]
fn a_store_whose_log_is_gone_or_another_one_takes_nothing_more() {
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let replace = |path: &Path| {
        let copy = path.with_extension("copy");
        fs::copy(path, &copy).unwrap();
        fs::rename(&copy, path).unwrap();
    };
    for (ending, word) in [("", "file"), ("-wal", "log"), ("-shm", "log's index")] {
        let expected =
            format!("cannot use the store {{root}}/data/proem.db: its {word} was removed or replaced");
        assert_eq!(refused(ending, remove), expected);
        assert_eq!(refused(ending, replace), expected);
    }
    let (site, store) = laid();
    turn(&conversations(&store), &site.request(json!({"profile": "template", "template": "kept"})));
}
