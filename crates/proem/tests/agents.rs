//! Compares the profiles of other agents with the requests of those agents: each case is a tree in which the real
//! program ran, and the part of the tree that was in its request. The agents' own sentences are replaced by those of
//! the profile, and the text that they put around all of it is left out. Zed could not be run: its cases are written
//! from its code. Cases with `marked` were written by `scripts/agents`: their files have marks at both ends, and what
//! stands between them is compared. A case that `differs` gives the reason, and is checked to differ still.
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
    /// The project lies in the home directory.
    #[serde(default)]
    nested: bool,
    #[serde(default)]
    carriers: BTreeMap<String, String>,
    /// The marked parts of the request, and the numbers of the skills that it lists.
    marked: Option<Vec<String>>,
    #[serde(default)]
    skills: Vec<u32>,
    /// The version that was run, and the day.
    seen: Option<String>,
    differs: Option<String>,
}

struct Laid {
    folder: tempfile::TempDir,
    home: &'static str,
}

impl Laid {
    fn placed(&self, text: &str) -> String {
        let root = self.folder.path().canonicalize().unwrap();
        let at = |part: &str| root.join(part).to_str().unwrap().to_owned();
        let text = text.replace("{{root}}", &at("scratch/tree")).replace("{{home}}", &at(self.home));
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
    let home = if case.nested { "scratch" } else { "home" };
    let laid = Laid { folder: tempfile::tempdir().unwrap(), home };
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
    laid.write(&root.join(home), &case.home);
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
        "host": { "home": root.join(laid.home).to_str(), "config_dir": root.join("config").to_str(), "env": {} },
    });
    let request = Request::from_json(&request.to_string()).unwrap();
    let built = build(&request, Caller::User).unwrap();
    let own = built.whole().carriers().map(|(carrier, text)| (carrier.word().to_owned(), text.to_owned()));
    own.collect()
}

/// Returns the carriers that recorded requests hold. Skills have cases of their own.
fn compared(mut own: BTreeMap<String, String>, profile: &str) -> BTreeMap<String, String> {
    own.remove("developer");
    if profile == "copilot" {
        for text in own.values_mut() {
            text.truncate(text.trim_end_matches('\n').len());
        }
    }
    own
}

/// Returns the outermost parts of a text between the marks of files, in order.
fn marked(text: &str) -> Vec<String> {
    let (mut parts, mut open, mut start, mut at) = (Vec::new(), Vec::new(), 0, 0);
    while let Some(from) = text.get(at..).unwrap().find('Q').map(|found| at + found) {
        let rest = text.get(from + 1..).unwrap();
        let word = ["BEGIN", "END"].into_iter().find(|word| rest.starts_with(word));
        let number = word.and_then(|word| rest.get(word.len()..)?.split_once('Q')).map(|(number, _)| number);
        let (Some(word), Some(number)) = (word, number.filter(|number| number.parse::<u32>().is_ok())) else {
            at = from + 1;
            continue;
        };
        at = from + 2 + word.len() + number.len();
        if word == "BEGIN" {
            start = if open.is_empty() { from } else { start };
            open.push(number);
        } else if let Some(index) = open.iter().rposition(|other| *other == number) {
            open.truncate(index);
            if open.is_empty() {
                parts.push(text.get(start..at).unwrap().to_owned());
            }
        }
    }
    parts
}

/// Returns the numbers of the skills that a text lists.
fn skills(text: &str) -> Vec<u32> {
    text.split("QSKILL").skip(1).filter_map(|rest| rest.split_once('Q')?.0.parse().ok()).collect()
}

/// Returns the fault of a case of marked files, if any. The agent's server puts Cursor's files in order: they are
/// compared as a set. So are skills: agents that list them in the file system's order have none that could be told.
fn complaint_of_marks(case: &Observed, wanted: &[String], profile: &str) -> Option<String> {
    let laid = lay_out(case);
    assert!(case.seen.is_some(), "{profile}/{}: `scripts/agents cases` writes the version", case.name);
    let own = carriers(case, profile, &laid);
    let text =
        ["system", "developer", "first_user"].map(|carrier| own.get(carrier).cloned().unwrap_or_default());
    let text = text.join("\n");
    let (mut wanted, mut found) =
        (wanted.iter().map(|part| laid.placed(part)).collect::<Vec<_>>(), marked(&text));
    if profile == "cursor" {
        wanted.sort();
        found.sort();
    }
    let (mut listed, mut own) = (case.skills.clone(), skills(&text));
    listed.sort_unstable();
    own.sort_unstable();
    let (expected, found) = ((wanted, listed), (found, own));
    verdict(case, profile, &expected, &found)
}

fn verdict<T: PartialEq + std::fmt::Debug>(
    case: &Observed,
    profile: &str,
    expected: &T,
    found: &T,
) -> Option<String> {
    match (&case.differs, expected == found) {
        (None, true) | (Some(_), false) => None,
        (None, false) => {
            Some(format!("{profile}/{}\n expected {expected:?}\n found    {found:?}", case.name))
        }
        (Some(why), true) => Some(format!("{profile}/{} is the same now; it said: {why}", case.name)),
    }
}

/// Returns the fault of a case, if any.
fn complaint(case: &Observed, profile: &str) -> Option<String> {
    if let Some(wanted) = &case.marked {
        return complaint_of_marks(case, wanted, profile);
    }
    let laid = lay_out(case);
    let expected: BTreeMap<String, String> =
        case.carriers.iter().map(|(carrier, text)| (carrier.clone(), laid.placed(text))).collect();
    verdict(case, profile, &expected, &compared(carriers(case, profile, &laid), profile))
}

#[test]
fn every_agent_is_given_what_it_read() {
    let (mut wrong, mut count, mut same) = (Vec::new(), 0, 0);
    for entry in fs::read_dir(project_root().join("corpus/agents")).unwrap() {
        let path = entry.unwrap().path();
        let profile = path.file_stem().unwrap().to_str().unwrap().to_owned();
        // The counts of random trees, for the documentation.
        if profile == "agreement" {
            continue;
        }
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
