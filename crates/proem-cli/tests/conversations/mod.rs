//! Conversations as data: every script of `corpus/conversations` runs through every door, with equal answers.
//!
//! The doors are the library on a store in memory, the command line on a SQLite file, a server on SQLite and on PostgreSQL,
//! and the packages for Python and Node where `PROEM_PACKAGES` names the folder in which they are built. `corpus/conversations/README.md` describes the scripts.

mod answer;
mod command;
mod expect;
mod http;
mod library;
pub(crate) mod package;
mod run;
mod script;
mod turns;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hook_server;
use proem::store::MemoryStore;
use proem_testkit::{PostgresServer, project_root};

use command::CommandLine;
use http::Http;
use library::Library;
use package::Package;
use run::{Outcomes, Place, compare, run};
use script::Script;

/// The findings of the audit that a conversation can show. F13 is about the answer of `GET /system-prompt`: the tests of the
/// server have it.
const FINDINGS: [&str; 16] =
    ["F1", "F2", "F3", "F4", "F5", "F6", "F7", "F9", "F10", "F11", "F12", "F14", "F15", "F17", "F18", "F19"];

/// The variable with the folder of a run.
const FOLDER: &str = "PROEM_TEST_CONVERSATIONS";

fn corpus() -> PathBuf {
    project_root().join("corpus/conversations")
}

#[test]
fn conversations_cover_the_findings() {
    let scripts = Script::all(&corpus());
    assert!(scripts.len() >= 100, "{} scripts", scripts.len());
    for finding in FINDINGS {
        assert!(scripts.iter().any(|script| script.findings.iter().any(|one| one == finding)), "{finding}");
    }
}

/// The library observes the environment of its process, so this test runs in a process with that of the other doors.
#[test]
fn conversations_are_equal_through_every_door() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return run_all(Path::new(&folder));
    }
    let folder = tempfile::Builder::new().prefix("proem-talk-").tempdir_in("/tmp").unwrap();
    let at = |path: &str| folder.path().join(path);
    for path in ["work", "home", "stores", "configs"] {
        std::fs::create_dir(at(path)).unwrap();
    }
    copy(&corpus().join("config"), &at("config"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "conversations::conversations_are_equal_through_every_door", "--nocapture"]);
    command.env_clear().envs(
        ["PATH", "PROEM_REQUIRE_POSTGRES"].map(|name| (name, std::env::var_os(name).unwrap_or_default())),
    );
    command.envs(package::variables());
    command.env("HOME", at("home")).env("PROEM_CONFIG_DIR", at("config")).env(FOLDER, folder.path());
    assert!(command.status().unwrap().success(), "some conversations are wrong, see above");
}

/// Runs all scripts, two at a time.
fn run_all(folder: &Path) {
    let scripts = Script::all(&corpus());
    let servers = Servers::start(folder);
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = servers.run(script);
                    if !found.is_empty() {
                        problems.lock().unwrap().insert(&script.name, found);
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    let shown: Vec<String> =
        problems.iter().map(|(name, found)| format!("{name}:\n  {}", found.join("\n  "))).collect();
    let (wrong, all) = (problems.len(), scripts.len());
    assert!(shown.is_empty(), "{}\n{wrong} of {all} conversations are wrong", shown.join("\n"));
}

/// The servers of a run. They are shared by scripts that neither restart a server nor store a template.
struct Servers {
    folder: PathBuf,
    sqlite: Http,
    postgres: Option<Postgres>,
}

struct Postgres {
    programs: PostgresServer,
    database: String,
    http: Http,
}

impl Servers {
    fn start(folder: &Path) -> Self {
        let folder = folder.to_owned();
        let workspaces = folder.join("work").to_str().unwrap().to_owned();
        let sqlite = Http::new(folder.join("stores/shared.db").to_str().unwrap(), &workspaces, None);
        let postgres = PostgresServer::start().map(|programs| {
            let database = programs.database("conversations");
            let http = Http::new(&database, &workspaces, None);
            Postgres { programs, database, http }
        });
        Self { folder, sqlite, postgres }
    }

    /// Runs a script through every door. Returns what is wrong.
    fn run(&self, script: &Script) -> Vec<String> {
        // All doors use one folder after another, so that paths, and so digests, are equal.
        let place = &Place {
            cwd: self.folder.join("work").join(&script.name),
            config: script.has_own_config().then(|| self.folder.join("configs").join(&script.name)),
            shared_config: self.folder.join("config"),
            hooks: if script.server.is_empty() {
                String::new()
            } else {
                hook_server::start(script.server.clone())
            },
        };
        let mut problems = Vec::new();
        let mut expected: Option<Outcomes> = None;
        let mut through = |door: &str, (outcomes, found): (Outcomes, Vec<String>)| {
            let unequal = expected.as_ref().map_or_else(Vec::new, |expected| compare(expected, &outcomes));
            // What is not as expected is usually unequal, too.
            let found = if found.is_empty() { unequal } else { found };
            problems.extend(found.into_iter().map(|problem| format!("{door}, {problem}")));
            expected.get_or_insert(outcomes);
        };
        let is_run = |door: &str| !script.skip.contains_key(door);
        if is_run("library") {
            let library = Library::new(Arc::new(MemoryStore::new()), place.config.as_deref());
            through("library", run(script, place, &mut { library }));
        }
        if is_run("command") {
            let folder = self.folder.join("stores").join(&script.name);
            through("command", run(script, place, &mut CommandLine::new(&folder, place)));
        }
        if is_run("sqlite") {
            through("sqlite", self.run_on_sqlite(script, place));
        }
        if let Some(postgres) = self.postgres.as_ref().filter(|_| is_run("postgres")) {
            through("postgres", self.run_on_postgres(script, place, postgres));
        }
        for name in package::installed().iter().copied() {
            if !script.skip.contains_key(name) && !script.skip.contains_key("library") {
                through(name, run(script, place, &mut Package::new(name, &self.folder, &script.name, place)));
            }
        }
        problems
    }

    fn run_on_sqlite(&self, script: &Script, place: &Place) -> (Outcomes, Vec<String>) {
        if !script.needs_own_server() {
            return run(script, place, &mut &self.sqlite);
        }
        let store = self.folder.join("stores").join(format!("{}.db", script.name));
        run(script, place, &mut self.own(store.to_str().unwrap(), place))
    }

    fn run_on_postgres(
        &self,
        script: &Script,
        place: &Place,
        postgres: &Postgres,
    ) -> (Outcomes, Vec<String>) {
        if !script.needs_own_server() {
            return run(script, place, &mut &postgres.http);
        }
        let own =
            script.needs_own_store().then(|| postgres.programs.database(&script.name.replace('-', "_")));
        let store = own.as_deref().unwrap_or(&postgres.database);
        run(script, place, &mut self.own(store, place))
    }

    /// Starts a server for one script.
    fn own(&self, store: &str, place: &Place) -> Http {
        Http::new(store, self.workspaces(), place.config.as_deref())
    }

    fn workspaces(&self) -> &str {
        self.sqlite.workspaces()
    }
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
