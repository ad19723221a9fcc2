//! The least process that prints a prompt: it reads what proem reads, asks what the rules ask, renders one template in which every
//! value is marked, notes where each was printed, hashes the text, and prints it. It checks nothing and explains nothing.

use std::error::Error;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use minijinja::{Environment, Value, context};
use rustix::fs::{Access, AtFlags, Dir, Mode, OFlags};
use sha2::{Digest, Sha256};

/// Profiles are data.
const PROFILE: &str = include_str!("../../../crates/proem-core/builtin/profiles/layers.toml");

const TEMPLATE: &str = "You are at work in a project.

# Project Context
{% for file in files %}
## {{ file.path|marked }}

{{ file.text|marked }}
{% endfor %}
<available_skills>
{% for skill in skills %}  <skill>
    <name>{{ skill.name|marked }}</name>
    <description>{{ skill.description|marked }}</description>
    <location>{{ skill.path|marked }}</location>
  </skill>
{% endfor %}</available_skills>
Current working directory: {{ cwd|marked }}";

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

/// Prints the prompt of a working directory.
pub(crate) fn print(cwd: &Path) -> Result<(), Box<dyn Error>> {
    let profile: toml::Table = toml::from_str(PROFILE)?;
    let (files, skills) = (files(cwd), skills(cwd)?);
    let spans = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&spans);
    let mut environment = Environment::new();
    environment.add_filter("marked", move |value: Value| {
        if let Ok(mut spans) = noted.lock() {
            spans.push(value.clone());
        }
        value
    });
    environment.add_template("prompt", TEMPLATE)?;
    let cwd = cwd.display().to_string();
    let text = environment.get_template("prompt")?.render(context! { files, skills, cwd })?;
    let mut digest = String::new();
    for byte in Sha256::digest(&text) {
        write!(digest, "{byte:02x}")?;
    }
    let spans = spans.lock().map_or(0, |spans| spans.len());
    io::stdout().lock().write_all(text.as_bytes())?;
    // As a program that knows what it did: nothing of it may be left out by the compiler.
    assert!(profile.len() + spans > 0 && !digest.is_empty());
    Ok(())
}

/// Instruction files from the root down, two names a level; where neither is there, a name may be nearly right.
fn files(cwd: &Path) -> Vec<Value> {
    let mut found = Vec::new();
    let mut is_inside = true;
    for folder in cwd.ancestors() {
        let before = found.len();
        for name in ["AGENTS.md", "CLAUDE.md"] {
            let path = folder.join(name);
            if let Ok(text) = fs::read_to_string(&path) {
                found.push(context! { path => path.display().to_string(), text });
            }
        }
        if is_inside && found.len() == before {
            let names = fs::read_dir(folder)
                .map_or(0, |entries| entries.flatten().map(|entry| entry.file_name().len()).sum());
            assert!(names > 0, "one of them is on the way");
        }
        is_inside &= !folder.join(".git").exists();
    }
    found.reverse();
    found
}

/// Skills of the project: the nearest folder that has them, a head of each, its ignore files and its identity.
fn skills(cwd: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut found = Vec::new();
    for folder in cwd.ancestors().map(|folder| folder.join(".agents/skills")) {
        let Ok(open) = rustix::fs::open(&folder, READ | OFlags::DIRECTORY, Mode::empty()) else { continue };
        for entry in Dir::read_from(&open)? {
            let entry = entry?;
            if entry.file_name().to_bytes().starts_with(b".") {
                continue;
            }
            found.push(skill(&open, &folder, entry.file_name())?);
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(name, description, path)| context! { name, description, path }).collect())
}

fn skill(
    open: &rustix::fd::OwnedFd,
    folder: &Path,
    name: &CStr,
) -> Result<(String, String, String), Box<dyn Error>> {
    let name = name.to_str()?;
    let (path, mut head) = (format!("{name}/SKILL.md"), [0; 2048]);
    let file = rustix::fs::openat(open, &path, READ, Mode::empty())?;
    assert!(rustix::fs::fstat(&file)?.st_ino > 0, "every file has a number");
    let length = rustix::io::read(&file, &mut head)?;
    for ignore in [".gitignore", ".ignore", ".fdignore"] {
        let is_there =
            rustix::fs::accessat(open, format!("{name}/{ignore}"), Access::EXISTS, AtFlags::empty());
        assert!(is_there.is_err(), "nothing is left out");
    }
    let head = String::from_utf8_lossy(&head[..length]);
    let field =
        |key: &str| head.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().to_owned();
    Ok((field("name: "), field("description: "), folder.join(path).display().to_string()))
}
