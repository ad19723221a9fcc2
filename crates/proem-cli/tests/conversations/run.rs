//! Runs a script through one door, and checks its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use proem_testkit::git;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{Answer, Outcome};
use super::copy;
use super::expect::{Named, differences};
use super::script::{Action, Content, Event, Script, Step};
use super::turns::Turns;

/// The words before the place in a message about a body.
pub(super) const AT_LINE: &str = ", at line ";

/// A way to hold a conversation.
pub(super) trait Door {
    /// Performs an action in a conversation; a compaction is ended by its token.
    fn perform(&mut self, id: &str, action: &Action) -> Outcome;

    /// Starts the process again, with the same store.
    fn restart(&mut self);
}

/// The surroundings of a script: its workspace, and the configuration of its own if it has one.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) cwd: PathBuf,
    pub(super) config: Option<PathBuf>,
    /// The configuration that all scripts share.
    pub(super) shared_config: PathBuf,
    /// The address of the server of hooks.
    pub(super) hooks: String,
}

/// The outcome of every action of a script, with the number of its step, from 1.
pub(super) type Outcomes = Vec<(usize, Outcome)>;

/// A script that runs.
struct Run<'s> {
    script: &'s Script,
    place: &'s Place,
    cwd: PathBuf,
    /// The conversations that have begun.
    begun: BTreeSet<String>,
    tokens: BTreeMap<String, String>,
    named: Named,
    turns: Turns,
    outcomes: Outcomes,
    problems: Vec<String>,
}

/// Runs a script in a folder that is made for it and removed behind it. Returns the outcomes and the problems.
pub(super) fn run(script: &Script, place: &Place, door: &mut dyn Door) -> (Outcomes, Vec<String>) {
    let cwd = &place.cwd;
    let mut run = Run {
        script,
        place,
        cwd: cwd.clone(),
        begun: BTreeSet::new(),
        tokens: BTreeMap::new(),
        named: Named::new(),
        turns: Turns::default(),
        outcomes: Vec::new(),
        problems: Vec::new(),
    };
    run.lay_out();
    for (index, step) in script.steps.iter().enumerate() {
        run.step(index + 1, step, door);
    }
    fs::remove_dir_all(cwd).unwrap();
    (run.outcomes, run.problems)
}

impl Run<'_> {
    fn lay_out(&self) {
        fs::create_dir_all(&self.cwd).unwrap();
        self.write(&self.script.files);
        self.configure(&self.script.settings);
        if self.script.git {
            for arguments in [
                &["init", "-q", "-b", "main"][..],
                &["add", "-A"],
                &["commit", "-q", "--allow-empty", "-m", "First"],
            ] {
                self.git(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>());
            }
        }
    }

    fn write(&self, files: &BTreeMap<String, String>) {
        for (path, text) in files {
            let path = self.cwd.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// Writes the configuration of the script, if it has one.
    fn configure(&self, lines: &[String]) {
        let Some(config) = &self.place.config else { return };
        if config.exists() {
            fs::remove_dir_all(config).unwrap();
        }
        copy(&self.place.shared_config, config);
        let lines = [("proem.toml".to_owned(), lines.join("\n"))];
        for (path, text) in lines.iter().map(|(path, text)| (path, text)).chain(&self.script.config) {
            let path = config.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = text.replace("{config}", config.to_str().unwrap());
            fs::write(&path, text.replace("{hooks}", &self.place.hooks)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn git(&self, arguments: &[String]) {
        git(&self.cwd, arguments);
    }

    fn step(&mut self, number: usize, step: &Step, door: &mut dyn Door) {
        let id = step
            .conversation
            .as_ref()
            .map_or_else(|| self.script.name.clone(), |name| format!("{}.{name}", self.script.name));
        let cwd = self.cwd.to_str().unwrap().to_owned();
        match step.content(&cwd, !self.begun.contains(&id)) {
            Content::Event(event) => self.happen(&event, door),
            Content::Action(action) => {
                let action = self.with_token(action);
                let mut outcome = door.perform(&id, &action);
                self.remember(&id, &action, step, &mut outcome);
                let mut problems = differences(step, &outcome, &self.named, &cwd);
                if let (Action::Turn(_), Ok(answer)) = (&action, &outcome) {
                    problems.extend(self.turns.check(&id, answer));
                }
                self.problems.extend(problems.iter().map(|problem| format!("step {number}: {problem}")));
                self.outcomes.push((number, outcome));
            }
        }
    }

    fn happen(&self, event: &Event<'_>, door: &mut dyn Door) {
        match event {
            Event::Write(files) => self.write(files),
            Event::Remove(paths) => {
                for path in paths.iter().map(|path| self.cwd.join(path)) {
                    if path.is_dir() {
                        fs::remove_dir_all(path).unwrap();
                    } else {
                        fs::remove_file(path).unwrap();
                    }
                }
            }
            Event::Git(arguments) => self.git(arguments),
            Event::Configure(lines) => self.configure(lines),
            Event::Restart => door.restart(),
        }
    }

    /// Replaces the name of a compaction by its token.
    fn with_token(&self, action: Action) -> Action {
        let token = |name: String| self.tokens.get(&name).cloned().unwrap_or(name);
        match action {
            Action::Commit(name) => Action::Commit(token(name)),
            Action::Abort(name) => Action::Abort(token(name)),
            Action::Turn(body) => Action::Turn(self.with_history(body)),
            other => other,
        }
    }

    /// Replaces `"{history:NAME}"` by the history of a named answer: with notices that were edited, or without those, if
    /// `:edited` or `:cut` follows the name.
    fn with_history(&self, body: String) -> String {
        let Some((before, rest)) = body.split_once("\"{history:") else { return body };
        let (name, after) = rest.split_once("}\"").unwrap();
        let (name, change) = name.split_once(':').unwrap_or((name, ""));
        let history = self.named[name].at("history").unwrap();
        let history = match change {
            "edited" => history.replacen("\\n</notice-", " Edited.\\n</notice-", 1),
            "cut" => {
                let messages: Vec<Box<RawValue>> = serde_json::from_str(&history).unwrap();
                let kept = messages.iter().map(|message| message.get());
                format!("[{}]", kept.filter(|text| !text.contains("<notice-")).collect::<Vec<_>>().join(","))
            }
            _ => history,
        };
        self.with_history(format!("{before}{history}{after}"))
    }

    fn remember(&mut self, id: &str, action: &Action, step: &Step, outcome: &mut Outcome) {
        let Ok(answer) = outcome else { return };
        match action {
            Action::Turn(_) => {
                self.begun.insert(id.to_owned());
            }
            Action::Forget => {
                self.begun.remove(id);
                self.turns.forget(id);
            }
            Action::Begin(_) => {
                let token = answer.take_random("token");
                self.tokens.extend(step.name.clone().map(|name| (name, token)));
            }
            _ => {}
        }
        self.named.extend(step.name.clone().map(|name| (name, answer.clone())));
    }
}

/// Returns the differences between the outcomes of two doors.
pub(super) fn compare(one: &Outcomes, other: &Outcomes) -> Vec<String> {
    let pairs = one.iter().zip(other);
    pairs
        .flat_map(|((number, one), (_, other))| {
            let problems = match (one, other) {
                (Ok(one), Ok(other)) => unequal(one, other),
                (Err(one), Err(other)) => {
                    let both =
                        one.0.iter().filter_map(|(field, value)| Some((field, value, other.0.get(field)?)));
                    let unequal = both.filter(|(_, one, other)| one != other && !is_unplaced(one, other));
                    unequal
                        .map(|(field, one, other)| format!("error.{field} is {other} and not {one}"))
                        .collect()
                }
                (Ok(_), Err(failure)) => vec![format!("it fails: {}", Value::from_iter(failure.0.clone()))],
                (Err(_), Ok(_)) => vec!["it succeeds".to_owned()],
            };
            problems.into_iter().map(|problem| format!("step {number}: {problem}")).collect::<Vec<_>>()
        })
        .collect()
}

/// Tells if a message is another one without the place in a body: packages take objects, which have no lines.
fn is_unplaced(message: &Value, other: &Value) -> bool {
    let texts = message.as_str().zip(other.as_str());
    texts.is_some_and(|(message, other)| message.split(AT_LINE).next() == Some(other))
}

fn unequal(one: &Answer, other: &Answer) -> Vec<String> {
    let fields: BTreeSet<&String> = one.0.keys().chain(other.0.keys()).collect();
    let value =
        |answer: &Answer, field: &String| answer.0.get(field).cloned().unwrap_or_else(|| "absent".to_owned());
    let unequal = fields.into_iter().filter(|field| one.0.get(*field) != other.0.get(*field));
    unequal.map(|field| format!("{field} is {} and not {}", value(other, field), value(one, field))).collect()
}
