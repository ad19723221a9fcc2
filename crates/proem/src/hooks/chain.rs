//! Runs all handlers of an event, one after another.

use std::path::{Path, PathBuf};

use proem_core::cache_loss::{self, CacheLoss};
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use serde_json::Value;

use super::handler::Handler;
use super::{
    AgentStart, BeforeAgentStart, ContextEvent, HookEvent, HookFailure, HookFailureReason, InjectedMessage,
    Message, ResourcesDiscover,
};
use crate::observe::file::without_dots;
use crate::request::caller::Caller;

/// Paths that handlers add to the search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) skills: Vec<PathBuf>,
    pub(crate) packs: Vec<PathBuf>,
    pub(crate) assets: Vec<PathBuf>,
}

impl Resources {
    /// Adds paths after the existing ones; skips duplicates.
    pub(crate) fn add(&mut self, paths: &super::ResourcePaths, cwd: &Path, home: Option<&Path>) {
        let lists = [
            (&mut self.skills, &paths.skill_paths),
            (&mut self.packs, &paths.prompt_paths),
            (&mut self.assets, &paths.asset_paths),
        ];
        for (own, more) in lists {
            for path in more.iter().map(|path| resolved(path, cwd, home)) {
                if !own.contains(&path) {
                    own.push(path);
                }
            }
        }
    }
}

impl Resources {
    /// Adds resources after the existing ones; skips duplicates.
    pub(crate) fn extend(&mut self, more: Self) {
        let lists =
            [(&mut self.skills, more.skills), (&mut self.packs, more.packs), (&mut self.assets, more.assets)];
        for (own, more) in lists {
            for path in more {
                if !own.contains(&path) {
                    own.push(path);
                }
            }
        }
    }
}

fn resolved(path: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let joined = match (path.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => cwd.join(path),
    };
    without_dots(&joined)
}

/// Collects resources from every handler.
pub(crate) fn discover(
    handlers: &[Handler],
    event: &ResourcesDiscover,
    home: Option<&Path>,
) -> (Resources, Vec<HookFailure>) {
    let (mut resources, mut failures) = (Resources::default(), Vec::new());
    for handler in handlers {
        match handler.resources_discover(event) {
            Ok(Some(paths)) => resources.add(&paths, Path::new(&event.cwd), home),
            Ok(None) => {}
            Err(why) => failures.push(handler.failure(HookEvent::ResourcesDiscover, why)),
        }
    }
    (resources, failures)
}

/// The results of all handlers for one prompt of the user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Start {
    pub(crate) system_prompt: String,
    pub(crate) messages: Vec<Message>,
    /// Each change of the system prompt, compared with the frozen one.
    pub(crate) changes: Vec<(String, CacheLoss)>,
    pub(crate) notes: Vec<Note>,
    pub(crate) failures: Vec<HookFailure>,
}

/// Lets every handler change the system prompt, each starting from the result of the previous one. If the final text is
/// empty, the frozen prompt is used.
pub(crate) fn start(handlers: &[Handler], event: BeforeAgentStart, caller: Caller) -> Start {
    let frozen = event.system_prompt.clone();
    let mut event = event;
    let mut start = Start::default();
    for handler in handlers {
        match handler.before_agent_start(&event) {
            Ok(Some(AgentStart { system_prompt, message })) => {
                if let Some(changed) = system_prompt.filter(|changed| *changed != event.system_prompt) {
                    let change = own_change(&frozen, &event.system_prompt, &changed);
                    start.notes.push(changed_prefix(handler, &change));
                    start.changes.push((handler.name(), change));
                    event.system_prompt = changed;
                }
                start.messages.extend(message.map(injected));
            }
            Ok(None) => {}
            Err(why) => {
                let failure = handler.failure(HookEvent::BeforeAgentStart, why);
                start.notes.push(failure.note(caller));
                start.failures.push(failure);
            }
        }
    }
    if event.system_prompt.is_empty() && !frozen.is_empty() {
        start.changes.clear();
        start.notes.retain(|note| note.code != Code::PrefixChanged);
        start.notes.push(emptied());
        event.system_prompt = frozen;
    }
    start.system_prompt = event.system_prompt;
    start
}

/// Measures the change of one handler: the byte at which it begins, and the part of the frozen prompt that is lost by
/// it and not by earlier handlers.
fn own_change(frozen: &str, before: &str, now: &str) -> CacheLoss {
    let kept = |text: &str| cache_loss::between(frozen, text).first_byte;
    let lost_bytes = kept(before).saturating_sub(kept(now));
    CacheLoss { first_byte: cache_loss::between(before, now).first_byte, lost_bytes }
}

fn emptied() -> Note {
    let message = "the hooks left an empty system prompt: the frozen one is used";
    Note::new(Code::HookFailed, Severity::Warning, message)
}

/// Lets every handler rewrite a copy of the messages.
pub(crate) fn context(
    handlers: &[Handler],
    messages: &[Message],
    cwd: &str,
) -> (Vec<Message>, Vec<HookFailure>) {
    let mut event = ContextEvent { messages: messages.to_vec(), cwd: cwd.to_owned() };
    let mut failures = Vec::new();
    for handler in handlers {
        let answer = handler.context(&event).and_then(|answer| match answer {
            Some(messages) => check(&messages).map(|()| Some(messages)),
            None => Ok(None),
        });
        match answer {
            Ok(Some(messages)) => event.messages = messages,
            Ok(None) => {}
            Err(why) => failures.push(handler.failure(HookEvent::Context, why)),
        }
    }
    (event.messages, failures)
}

/// Checks that every message has a role.
fn check(messages: &[Message]) -> Result<(), HookFailureReason> {
    let is_bad = |message: &Message| !message.get("role").is_some_and(Value::is_string);
    match messages.iter().position(is_bad) {
        Some(index) => Err(HookFailureReason::plain(format!("its `messages[{index}]` has no `role`"))),
        None => Ok(()),
    }
}

fn injected(message: InjectedMessage) -> Message {
    let content = match message {
        InjectedMessage::Text(text) => Value::from(text),
        InjectedMessage::Content(content) => content,
    };
    crate::request::message::message("user", content)
}

fn changed_prefix(handler: &Handler, change: &CacheLoss) -> Note {
    let name = handler.name();
    let message = format!("the hook `{name}` changed the system prompt {change}");
    Note::new(Code::PrefixChanged, Severity::Warning, message)
        .with_hint("return a `message` instead: it follows everything that is cached")
        .with_source(Source::Hook { name: name.into() })
}
