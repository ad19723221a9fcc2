//! A folder with a home, a configuration, a workspace and everything outside of it.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use proem::{Build, Caller, Request, Workspaces};
use proem_core::note::Code;
use rustix::fs::{CWD, FileType, mknodat};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Site {
    root: TempDir,
}

impl Site {
    /// Lays out one of everything that a prompt takes: instructions above and below, the user's, skills.
    pub(crate) fn new() -> Self {
        let site = Self::bare();
        site.write("home/.sf/agent/CLAUDE.md", "The user's.\n");
        site.write("home/.sf/agent/SYSTEM.md", "The base.");
        site.write("home/.sf/agent/APPEND_SYSTEM.md", "The appendix.");
        site.write("work/AGENTS.md", "The project's.\n");
        site.write("work/sub/CLAUDE.md", "The folder's.\n");
        site.skill("work/sub/.sf/skills/aa", "aa");
        site.skill("work/sub/.sf/skills/zz", "zz");
        site.skill("work/.agents/skills/shared", "shared");
        site.skill("home/.agents/skills/own", "own");
        site
    }

    pub(crate) fn bare() -> Self {
        let root = tempfile::Builder::new().prefix("proem-files-").tempdir().unwrap();
        for folder in ["home", "config", "outside", "work/sub", "work/.git/objects", "work/.git/refs"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("work/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let site = Self { root };
        // The user trusts the workspace, so links are followed: most tests are about the files behind them.
        let work = site.path("work").canonicalize().unwrap();
        site.write("config/trust.toml", format!("[[workspace]]\npath = {:?}\n", work.to_str().unwrap()));
        site
    }

    /// Takes the user's trust in the workspace back.
    pub(crate) fn distrust(&self) {
        fs::remove_file(self.path("config/trust.toml")).unwrap();
    }

    /// Makes a client of a server whose workspace is `work`.
    pub(crate) fn remote(&self) -> Caller {
        Caller::Remote(Workspaces::new(&[self.path("work")]))
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(path)
    }

    /// Returns a path, and makes its parent.
    pub(crate) fn place(&self, path: impl AsRef<Path>) -> PathBuf {
        let place = self.path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        fs::write(self.place(path), content).unwrap();
    }

    pub(crate) fn skill(&self, folder: impl AsRef<Path>, name: &str) {
        self.write(folder.as_ref().join("SKILL.md"), skill(name));
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, path: impl AsRef<Path>) {
        symlink(target, self.place(path)).unwrap();
    }

    /// Makes a request of the user, with everything pinned, or one that a remote client could send. `more` is merged
    /// into it, key by key.
    pub(crate) fn request(&self, caller: Caller, more: Value) -> Request {
        let mut host = json!({"now": "2026-03-07T14:55:05Z", "timezone": "America/Chicago"});
        if caller == Caller::User {
            host["env"] = json!({});
            host["home"] = json!(self.path("home"));
            host["config_dir"] = json!(self.path("config"));
        }
        let mut request = json!({"profile": "layers", "cwd": self.path("work/sub"), "host": host});
        let (Value::Object(fields), Value::Object(more)) = (&mut request, more) else { unreachable!() };
        fields.extend(more);
        Request::from_json(&request.to_string()).unwrap()
    }

    pub(crate) fn build(&self) -> Build {
        self.build_as(Caller::User)
    }

    pub(crate) fn build_as(&self, caller: Caller) -> Build {
        self.build_with(caller, json!({}))
    }

    pub(crate) fn build_with(&self, caller: Caller, more: Value) -> Build {
        proem::build(&self.request(caller, more), caller).unwrap()
    }

    /// A text without the site's own path.
    pub(crate) fn said(&self, text: &str) -> String {
        text.replace(self.root.path().to_str().unwrap(), "{root}")
    }

    /// Returns the messages of a build about `path`: `code: message` for each note, `considered: outcome` for each
    /// file. They must be safe for a terminal.
    pub(crate) fn about(&self, build: &Build, path: &str) -> Vec<String> {
        let place = self.path(path);
        let place = place.to_str().unwrap();
        let notes = build.notes().iter().filter(|note| note.message.contains(place));
        let mut said: Vec<String> =
            notes.map(|note| self.said(&format!("{}: {}", note.code, note.message))).collect();
        let considered = build.frozen().considered().iter().filter(|file| file.path == place);
        said.extend(considered.map(|file| format!("considered: {}", file.outcome.word())));
        said
    }
}

/// Puts something at a path below a site.
pub(crate) type Put = fn(&Site, &Path);

pub(crate) fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: For {name}.\n---\n")
}

/// The names of the skills that a prompt lists, in order.
pub(crate) fn listed(build: &Build) -> Vec<&str> {
    let lines = build.system().unwrap().lines().map(str::trim);
    lines.filter_map(|line| line.strip_prefix("<name>")?.strip_suffix("</name>")).collect()
}

/// Counts the notes of one kind.
pub(crate) fn count(build: &Build, code: Code) -> usize {
    build.notes().iter().filter(|note| note.code == code).count()
}

/// Runs `check` on every case and names all those that failed.
pub(crate) fn for_each<C>(cases: &[C], name: impl Fn(&C) -> String, check: impl Fn(&C)) {
    let run = |case: &C| catch_unwind(AssertUnwindSafe(|| check(case)));
    let failed: Vec<String> = cases.iter().filter(|case| run(case).is_err()).map(name).collect();
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

pub(crate) fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, 0o644.into(), 0).unwrap();
}

/// Leaves a socket file. Its address must be short, so it is made elsewhere and moved.
pub(crate) fn socket(path: &Path) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let address = folder.path().join("s");
    drop(UnixListener::bind(&address).unwrap());
    fs::rename(address, path).unwrap();
}

/// Makes a file that reports a large size and takes no disk space.
pub(crate) fn sparse(path: &Path, head: &str, bytes: u64) {
    fs::write(path, head).unwrap();
    File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

/// Tells whether this process may read everything, so that permissions have no effect.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
