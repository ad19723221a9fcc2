//! Compares the profiles of other agents with the requests of those agents: each case is a tree in which the real
//! program ran, and the part of the tree that was in its request. The agents' own sentences are replaced by those of
//! the profile, and the text that they put around all of it is left out. Cursor and Zed could not be run: their cases
//! are written from their code. A case that `differs` gives the reason, and is checked to differ still.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proem::{Caller, Request, build};
use proem_testkit::{git, project_root};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Observed {
    name: String,
    /// The working directory, below the tree.
    cwd: String,
    /// Directories of the tree that have a `.git`: `init`, `dir` or `file`.
    git: BTreeMap<String, String>,
    tree: BTreeMap<String, Value>,
    home: BTreeMap<String, Value>,
    #[serde(default)]
    outside: BTreeMap<String, Value>,
    carriers: BTreeMap<String, String>,
    differs: Option<String>,
}

struct Laid {
    folder: tempfile::TempDir,
}

impl Laid {
    fn placed(&self, text: &str) -> String {
        let root = self.folder.path().canonicalize().unwrap();
        let at = |part: &str| root.join(part).to_str().unwrap().to_owned();
        let text = text.replace("{{root}}", &at("scratch/tree")).replace("{{home}}", &at("home"));
        text.replace("{{scratch}}", &at("scratch"))
    }

    fn write(&self, folder: &Path, files: &BTreeMap<String, Value>) {
        for (name, content) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match content {
                Value::String(text) => fs::write(path, self.placed(text)).unwrap(),
                other if other.get("link").is_some() => {
                    symlink(self.placed(other["link"].as_str().unwrap()), path).unwrap();
                }
                other if other.get("hex").is_some() => {
                    fs::write(path, bytes(other["hex"].as_str().unwrap())).unwrap();
                }
                _ => fs::create_dir_all(path).unwrap(),
            }
        }
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

fn lay_out(case: &Observed) -> Laid {
    let laid = Laid { folder: tempfile::tempdir().unwrap() };
    let root = laid.folder.path().canonicalize().unwrap();
    let tree = root.join("scratch/tree");
    fs::create_dir_all(tree.join(&case.cwd)).or_else(|_| fs::create_dir_all(&tree)).unwrap();
    fs::create_dir(root.join("home")).unwrap();
    if case.tree.keys().any(|name| case.cwd.starts_with(name.as_str())) {
        // A folder on the way to the working directory is a link.
        fs::remove_dir_all(&tree).unwrap();
        fs::create_dir_all(&tree).unwrap();
    }
    laid.write(&tree, &case.tree);
    laid.write(&root.join("home"), &case.home);
    laid.write(&root.join("scratch"), &case.outside);
    for (folder, kind) in &case.git {
        let folder = tree.join(folder);
        fs::create_dir_all(&folder).unwrap();
        match kind.as_str() {
            "init" => git(&folder, &["init".into(), "-q".into()]),
            "dir" => fs::create_dir_all(folder.join(".git")).unwrap(),
            _ => fs::write(folder.join(".git"), "gitdir: /nowhere\n").unwrap(),
        }
    }
    laid
}

fn carriers(case: &Observed, profile: &str, laid: &Laid) -> BTreeMap<String, String> {
    let root = laid.folder.path().canonicalize().unwrap();
    let tree = root.join("scratch/tree");
    let cwd = if matches!(case.cwd.as_str(), "" | ".") { tree } else { tree.join(&case.cwd) };
    let request = json!({
        "profile": profile, "cwd": cwd.to_str(),
        "host": { "home": root.join("home").to_str(), "config_dir": root.join("config").to_str(), "env": {} },
    });
    let request = Request::from_json(&request.to_string()).unwrap();
    let built = build(&request, Caller::User).unwrap();
    let own = built.whole().carriers().map(|(carrier, text)| (carrier.word().to_owned(), text.to_owned()));
    let mut own: BTreeMap<String, String> = own.collect();
    own.remove("developer");
    if profile == "copilot" {
        for text in own.values_mut() {
            text.truncate(text.trim_end_matches('\n').len());
        }
    }
    own
}

/// Returns the fault of a case, if any.
fn complaint(case: &Observed, profile: &str) -> Option<String> {
    let laid = lay_out(case);
    let expected: BTreeMap<String, String> =
        case.carriers.iter().map(|(carrier, text)| (carrier.clone(), laid.placed(text))).collect();
    let found = carriers(case, profile, &laid);
    match (&case.differs, expected == found) {
        (None, true) | (Some(_), false) => None,
        (None, false) => {
            Some(format!("{profile}/{}\n expected {expected:?}\n found    {found:?}", case.name))
        }
        (Some(why), true) => Some(format!("{profile}/{} is the same now; it said: {why}", case.name)),
    }
}

#[test]
fn every_agent_is_given_what_it_read() {
    let (mut wrong, mut count, mut same) = (Vec::new(), 0, 0);
    for entry in fs::read_dir(project_root().join("corpus/agents")).unwrap() {
        let path = entry.unwrap().path();
        let profile = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let cases: Vec<Observed> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for case in &cases {
            count += 1;
            same += usize::from(case.differs.is_none());
            wrong.extend(complaint(case, &profile));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 230 && same >= 220, "{same} of {count} are the same");
}
