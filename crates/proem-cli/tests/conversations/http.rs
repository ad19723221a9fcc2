//! `proem serve` as a door, on a store of any kind.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::answer::{Answer, Failure, Outcome};
use super::run::Door;
use super::script::Action;
use crate::served::Server;

/// A server on a store. A client of it is a remote caller.
pub(super) struct Http {
    store: String,
    /// The directory that holds all workspaces.
    workspaces: String,
    /// The configuration, if it is not that of this process.
    config: Option<PathBuf>,
    server: Server,
}

impl Http {
    pub(super) fn new(store: &str, workspaces: &str, config: Option<&Path>) -> Self {
        Self {
            store: store.to_owned(),
            workspaces: workspaces.to_owned(),
            config: config.map(Path::to_owned),
            server: start(store, workspaces, config),
        }
    }

    pub(super) fn workspaces(&self) -> &str {
        &self.workspaces
    }

    /// Performs an action.
    fn ask(&self, id: &str, action: &Action) -> Outcome {
        let (method, path, body) = request(action);
        let path = if let Action::Template(_) = action { path } else { format!("/conversations/{id}{path}") };
        let (status, text) = self.server.ask(method, &path, &body);
        if status >= 300 {
            let mut fields: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
            fields.insert("status".to_owned(), json!(status));
            return Err(Failure(fields.into_iter().collect()));
        }
        Ok(match action {
            Action::Commit(_) => Answer::read(&text).only(&["epoch", "reason", "digest", "pending"]),
            Action::Plan(_) => plan(&text),
            Action::Show => epochs(&text),
            Action::Template(_) => Answer::default(),
            _ => Answer::read(&text),
        })
    }
}

impl Door for &Http {
    fn perform(&mut self, id: &str, action: &Action) -> Outcome {
        self.ask(id, action)
    }

    fn restart(&mut self) {
        unreachable!("a server that is shared is not restarted");
    }
}

impl Door for Http {
    fn perform(&mut self, id: &str, action: &Action) -> Outcome {
        self.ask(id, action)
    }

    fn restart(&mut self) {
        let next = start(&self.store, &self.workspaces, self.config.as_deref());
        assert_eq!(std::mem::replace(&mut self.server, next).stop(), Some(0));
    }
}

fn start(store: &str, workspaces: &str, config: Option<&Path>) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proem"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", store, "--workspace", workspaces]);
    command.envs(config.map(|config| ("PROEM_CONFIG_DIR", config)));
    Server::spawn(command.current_dir(workspaces))
}

/// Returns the method, the path below the conversation, and the body.
fn request(action: &Action) -> (&'static str, String, String) {
    let (method, path, body) = match action {
        Action::Turn(body) => ("POST", "/turn", body.clone()),
        Action::Reload(body) => ("POST", "/reload", body.clone()),
        Action::ReloadSkills => ("POST", "/reload?only=skills", String::new()),
        Action::Plan(body) => ("POST", "/reload?plan=true", body.clone()),
        Action::Tools(body) => ("PUT", "/tools", format!("{{\"tools\": {body}}}")),
        Action::Active(names) => ("PUT", "/tools/active", json!({ "names": names }).to_string()),
        Action::Profile(name) => ("PUT", "/profile", json!({ "profile": name }).to_string()),
        Action::Resources(body) => ("POST", "/resources", body.clone()),
        Action::Fork(body) => ("POST", "/fork", body.clone()),
        Action::Spawn(body) => ("POST", "/spawn", body.clone()),
        Action::Begin(body) => ("POST", "/compaction", body.clone()),
        Action::Commit(token) => return ("POST", format!("/compaction/{token}/commit"), String::new()),
        Action::Abort(token) => return ("DELETE", format!("/compaction/{token}"), String::new()),
        Action::Template(text) => ("PUT", "/system-prompt", json!({ "template": text }).to_string()),
        Action::Show => ("GET", "", String::new()),
        Action::Forget => ("DELETE", "", String::new()),
    };
    (method, path.to_owned(), body)
}

/// Takes what every door says about a plan.
pub(super) fn plan(text: &str) -> Answer {
    let answer: Value = serde_json::from_str(text).unwrap();
    let plan = &answer["plan"];
    let sections: Vec<&Value> =
        plan["sections"].as_array().unwrap().iter().map(|section| &section["id"]).collect();
    let common = json!({
        "notice": answer["notice"], "rebuild": answer["rebuild"],
        "allowed": plan["allowed"], "changed": plan["changed"], "tools_changed": plan["tools_changed"], "sections": sections,
    });
    Answer::read(&common.to_string())
}

/// Takes what every door says about a conversation: everything but times and places.
pub(super) fn epochs(text: &str) -> Answer {
    let answer: Value = serde_json::from_str(text).unwrap();
    let epoch = |epoch: &Value| {
        json!({
            "epoch": epoch["epoch"], "reason": epoch["reason"], "digest": epoch["digest"],
            "fingerprint": epoch["fingerprint"], "profile": epoch["profile"], "model": epoch["model"],
        })
    };
    let epochs: Vec<Value> = answer["epochs"].as_array().unwrap().iter().map(epoch).collect();
    let common = json!({ "epoch": answer["epoch"], "carriers": answer["carriers"], "epochs": epochs,
        "parents": answer["parents"], "children": answer["children"] });
    Answer::read(&common.to_string())
}
