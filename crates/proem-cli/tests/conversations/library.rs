//! The library as a door: conversations in a store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proem::conversation::{ConversationError, Conversations};
use proem::hooks::ResourcePaths;
use proem::request::RequestUpdate;
use proem::store::Store;
use proem::turn_shape::TurnShape;
use proem::{Caller, Engine, Tool};
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{Answer, Failure, Outcome};
use super::run::Door;
use super::script::Action;

/// Conversations of the user who runs the process.
pub(super) struct Library {
    store: Arc<dyn Store>,
    conversations: Conversations,
    /// The configuration, if it is not that of this process.
    config: Option<PathBuf>,
}

impl Library {
    pub(super) fn new(store: Arc<dyn Store>, config: Option<&Path>) -> Self {
        let conversations = Conversations::new(Arc::clone(&store), Engine::new());
        Self { store, conversations, config: config.map(Path::to_owned) }
    }

    fn try_perform(&self, id: &str, action: &Action) -> Result<Answer, ConversationError> {
        let all = &self.conversations;
        let caller = Caller::User;
        let changed = match action {
            Action::Turn(body) => {
                let turn = all.turn(id, self.update(body)?, caller)?;
                return Ok(written(&TurnShape::new(&turn)));
            }
            Action::Reload(body) => all.reload(id, self.update(body)?, caller)?,
            Action::ReloadSkills => all.reload_skills(id, caller)?,
            Action::Tools(body) => all.set_tool_registry(id, &parsed::<Vec<Tool>>(body)?, caller)?,
            Action::Active(names) => all.set_active_tools(id, names, caller)?,
            Action::Profile(name) => all.switch_profile(id, name, caller)?,
            Action::Resources(body) => all.add_resources(id, &parsed::<ResourcePaths>(body)?, caller)?,
            other => return self.perform_other(id, other),
        };
        Ok(written(&changed.shape()))
    }

    /// Reads an update. A process has one configuration, so that of the script is pinned.
    fn update(&self, body: &str) -> Result<RequestUpdate, ConversationError> {
        let Some(config) = &self.config else { return Ok(RequestUpdate::from_json(body)?) };
        let pinned = format!("\"host\": {{\"config_dir\": \"{}\", ", config.display());
        Ok(RequestUpdate::from_json(&body.replacen("\"host\": {", &pinned, 1))?)
    }

    fn perform_other(&self, id: &str, action: &Action) -> Result<Answer, ConversationError> {
        let all = &self.conversations;
        let caller = Caller::User;
        match action {
            Action::Begin(body) => {
                let begun = all.begin_compaction(id, RequestUpdate::from_json(body)?, caller)?;
                Ok(written(&begun.shape()))
            }
            Action::Commit(token) => {
                let head = all.commit_compaction(id, token, caller)?.head.clone();
                let pending = all.pending(id)?;
                Ok(written(&json!({
                    "epoch": head.number, "reason": head.reason, "digest": head.digest, "pending": pending,
                })))
            }
            Action::Abort(token) => all.abort_compaction(id, token).map(|()| Answer::default()),
            Action::Plan(body) => {
                let plan = all.plan_reload(id, RequestUpdate::from_json(body)?, caller)?;
                let sections: Vec<&str> =
                    plan.pending.sections.iter().map(|section| section.id.as_str()).collect();
                Ok(written(&json!({
                    "notice": plan.notice, "rebuild": plan.rebuild,
                    "allowed": plan.is_allowed, "changed": !plan.pending.is_empty(),
                    "tools_changed": plan.pending.tools, "sections": sections,
                })))
            }
            Action::Template(text) => {
                self.store.put_template(text, None, None)?;
                Ok(Answer::default())
            }
            Action::Fork(body) => {
                let body = Branch::read(body);
                Ok(written(&all.fork(id, &body.id, body.role.as_deref(), caller)?.shape()))
            }
            Action::Spawn(body) => {
                let branch = Branch::read(body);
                let rest = RequestUpdate::from_json(&serde_json::to_string(&branch.rest).unwrap())?;
                Ok(written(&all.spawn(id, &branch.id, rest, caller)?.shape()))
            }
            Action::Show => self.show(id),
            _ => {
                self.store.remove(id)?;
                Ok(Answer::default())
            }
        }
    }

    fn show(&self, id: &str) -> Result<Answer, ConversationError> {
        let found = self.conversations.history(id)?;
        let (epoch, heads) = found.ok_or_else(|| ConversationError::NoConversation(id.to_owned()))?;
        let carriers: BTreeMap<&str, &str> =
            epoch.frozen.body().carriers().map(|(carrier, text)| (carrier.word(), text)).collect();
        let epochs: Vec<Value> = heads
            .iter()
            .map(|head| {
                json!({"epoch": head.number, "reason": head.reason, "digest": head.digest,
                "fingerprint": head.fingerprint, "profile": head.profile, "model": head.model})
            })
            .collect();
        let branches = self.conversations.branches(id)?;
        Ok(written(&json!({"epoch": epoch.head.number, "carriers": carriers, "epochs": epochs,
            "parents": branches.parents, "children": branches.children})))
    }
}

impl Door for Library {
    fn perform(&mut self, id: &str, action: &Action) -> Outcome {
        self.try_perform(id, action).map_err(|error| failure(&error))
    }

    fn restart(&mut self) {
        *self = Self::new(Arc::clone(&self.store), self.config.as_deref());
    }
}

/// The body of a fork or of a spawn.
#[derive(serde::Deserialize)]
pub(super) struct Branch {
    pub(super) id: String,
    pub(super) role: Option<String>,
    /// The fields of the request.
    #[serde(flatten)]
    pub(super) rest: serde_json::Map<String, Value>,
}

impl Branch {
    pub(super) fn read(body: &str) -> Self {
        serde_json::from_str(body).unwrap()
    }
}

fn written(shape: &impl Serialize) -> Answer {
    Answer::read(&serde_json::to_string(shape).unwrap())
}

/// Reads a body that is not a request.
fn parsed<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, ConversationError> {
    serde_json::from_str(body).map_err(|error| ConversationError::BadCall(error.to_string()))
}

/// Describes an error by the fields that a server sends.
fn failure(error: &ConversationError) -> Failure {
    if let ConversationError::BadCall(_) = error {
        // The library takes lists of tools and of paths, and has no words for invalid JSON.
        return Failure::default();
    }
    let mut fields = BTreeMap::from([("message".to_owned(), json!(error.to_string()))]);
    fields.extend(error.hint().map(|hint| ("hint".to_owned(), json!(hint))));
    if let ConversationError::Build(error) = error
        && let Some(kind) = error.build_failure()
    {
        let place = error.place();
        fields.insert("kind".into(), json!(kind));
        fields.extend(place.path.map(|path| ("path".into(), json!(path))));
        fields.extend(place.field.map(|field| ("field".into(), json!(field))));
        fields.extend(place.place.map(|place| ("line".into(), json!(place.line))));
        fields.extend(place.place.map(|place| ("column".into(), json!(place.column))));
    }
    Failure(fields)
}
