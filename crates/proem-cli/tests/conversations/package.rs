//! The packages for Python and Node as doors: a program of each performs the actions that it is sent, one a line.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use proem_testkit::project_root;
use serde_json::{Value, json};

use super::answer::{Answer, Failure, Outcome};
use super::http::{epochs, plan};
use super::run::{AT_LINE, Door, Place};
use super::script::Action;

/// The variable with the folder of the built packages, and those that their programs need.
const PACKAGES: &str = "PROEM_PACKAGES";
const VARIABLES: [&str; 2] = [PACKAGES, "PROEM_PYTHON"];

/// Returns the packages that are built.
pub(crate) fn installed() -> &'static [&'static str] {
    if std::env::var_os(PACKAGES).is_some() { &["python", "node"] } else { &[] }
}

/// Returns the variables that say where the packages are.
pub(crate) fn variables() -> impl Iterator<Item = (&'static str, OsString)> {
    VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// Starts the program of a package on a store.
pub(crate) fn program(name: &str, store: &str) -> Command {
    let folder = PathBuf::from(std::env::var_os(PACKAGES).unwrap());
    let root = project_root().join("bindings");
    let mut command = if name == "python" {
        let mut command = Command::new(std::env::var_os("PROEM_PYTHON").unwrap_or("python3".into()));
        command.env("PYTHONPATH", folder.join("python")).arg("-B").arg(root.join("python/tests/door.py"));
        command
    } else {
        let mut command = Command::new("node");
        command.arg(folder.join("node/tests/door.mjs"));
        command
    };
    command.arg(store).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A package, and a store of its own for one script.
pub(super) struct Package {
    name: &'static str,
    store: String,
    config: Option<PathBuf>,
    running: Running,
}

/// The program of a package.
pub(crate) struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    /// Sends an action; returns the answer, or the fields of the error.
    pub(crate) fn ask(&mut self, id: &str, action: &str, body: &str) -> Result<String, Value> {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{}", json!({ "id": id, "action": action, "body": body })).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let mut done: Value =
            serde_json::from_str(&line).map_err(|error| format!("{error}: {line:?}")).unwrap();
        match done["ok"].take() {
            Value::String(text) => Ok(text),
            _ => Err(done["error"].take()),
        }
    }

    /// Ends the program, which must succeed.
    pub(crate) fn end(&mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

impl Package {
    pub(super) fn new(name: &'static str, folder: &Path, script: &str, place: &Place) -> Self {
        let store = format!("sqlite:{}", folder.join(format!("stores/{script}.{name}.db")).display());
        let config = place.config.clone();
        let running = Self::start(name, &store, config.as_deref());
        Self { name, store, config, running }
    }

    fn start(name: &str, store: &str, config: Option<&Path>) -> Running {
        let mut command = program(name, store);
        command.envs(config.map(|config| ("PROEM_CONFIG_DIR", config)));
        Running::start(command)
    }
}

impl Door for Package {
    fn perform(&mut self, id: &str, action: &Action) -> Outcome {
        let (name, body) = words(action);
        match self.running.ask(id, name, &body) {
            Ok(text) => Ok(match action {
                Action::Commit(_) => Answer::read(&text).only(&["epoch", "reason", "digest", "pending"]),
                Action::Plan(_) => plan(&text),
                Action::Show => epochs(&text),
                _ => Answer::read(&text),
            }),
            Err(Value::Object(mut fields)) => {
                // The package wrote the body itself, so that its lines and columns are others.
                if let Some(Value::String(message)) = fields.get_mut("message")
                    && let Some(end) = message.find(AT_LINE)
                {
                    message.truncate(end);
                }
                Err(Failure(fields.into_iter().collect()))
            }
            Err(other) => unreachable!("an error has fields, not {other}"),
        }
    }

    fn restart(&mut self) {
        self.running.end();
        self.running = Self::start(self.name, &self.store, self.config.as_deref());
    }
}

/// Returns the word of an action, and its body.
fn words(action: &Action) -> (&'static str, String) {
    match action {
        Action::Turn(body) => ("turn", body.clone()),
        Action::Reload(body) => ("reload", body.clone()),
        Action::ReloadSkills => ("reload_skills", String::new()),
        Action::Plan(body) => ("plan", body.clone()),
        Action::Tools(body) => ("tools", body.clone()),
        Action::Active(names) => ("active", json!(names).to_string()),
        Action::Profile(name) => ("profile", name.clone()),
        Action::Resources(body) => ("resources", body.clone()),
        Action::Fork(body) => ("fork", body.clone()),
        Action::Spawn(body) => ("spawn", body.clone()),
        Action::Begin(body) => ("begin", body.clone()),
        Action::Commit(token) => ("commit", token.clone()),
        Action::Abort(token) => ("abort", token.clone()),
        Action::Template(text) => ("template", text.clone()),
        Action::Show => ("show", String::new()),
        Action::Forget => ("forget", String::new()),
    }
}
