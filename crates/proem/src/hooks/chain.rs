//! Runs all handlers of an event, one after another.

use std::path::{Path, PathBuf};

use proem_core::cache_loss::{self, CacheLoss};
use proem_core::limit::{HOOK_PATHS_MAX, MESSAGES_BYTES_MAX, OUTPUT_BYTES_MAX};
use proem_core::note::{Code, Note, Severity};
use serde::Serialize;
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
        match handler.resources_discover(event).and_then(few) {
            Ok(Some(paths)) => resources.add(&paths, Path::new(&event.cwd), home),
            Ok(None) => {}
            Err(why) => failures.push(handler.failure(HookEvent::ResourcesDiscover, why)),
        }
    }
    (resources, failures)
}

/// Refuses more paths than a search can use.
fn few(paths: Option<super::ResourcePaths>) -> Result<Option<super::ResourcePaths>, HookFailureReason> {
    let count = |paths: &super::ResourcePaths| {
        paths.skill_paths.len() + paths.prompt_paths.len() + paths.asset_paths.len()
    };
    match paths.as_ref().map_or(0, count) {
        count if count > HOOK_PATHS_MAX => {
            Err(HookFailureReason::plain(format!("it gave {count} paths, and {HOOK_PATHS_MAX} are allowed")))
        }
        _ => Ok(paths),
    }
}

/// The results of all handlers for one prompt of the user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Start {
    pub(crate) system_prompt: String,
    pub(crate) messages: Vec<Message>,
    /// Each change of the system prompt, compared with the frozen one.
    pub(crate) changes: Vec<StartChange>,
    pub(crate) notes: Vec<Note>,
    pub(crate) failures: Vec<HookFailure>,
}

/// A change of the system prompt for one prompt of the user.
#[derive(Debug, Clone)]
pub(crate) struct StartChange {
    /// The hook's name; `per_prompt` for a change of the caller's own.
    pub(crate) hook: String,
    /// True if the caller made it.
    pub(crate) is_own: bool,
    pub(crate) loss: CacheLoss,
}

/// The name of a change by the caller.
const OWN: &str = "per_prompt";

/// Lets every handler change the system prompt, each starting from the result of the previous one, and then the caller:
/// `own` is the caller's system prompt. If the final text is empty, the frozen prompt is used.
pub(crate) fn start(
    handlers: &[Handler],
    event: BeforeAgentStart,
    caller: Caller,
    own: Option<&str>,
) -> Start {
    let frozen = event.system_prompt.clone();
    let mut event = event;
    let mut start = Start::default();
    for handler in handlers {
        match handler.before_agent_start(&event).and_then(bounded) {
            Ok(Some(AgentStart { system_prompt, message })) => {
                if let Some(changed) = system_prompt {
                    start.change(&frozen, &mut event.system_prompt, (handler.name(), changed), false);
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
    if let Some(own) = own {
        start.change(&frozen, &mut event.system_prompt, (OWN.to_owned(), own.to_owned()), true);
    }
    if event.system_prompt.is_empty() && !frozen.is_empty() {
        start.changes.clear();
        start.notes.push(emptied(own.is_some()));
        event.system_prompt = frozen;
    }
    start.system_prompt = event.system_prompt;
    start
}

impl Start {
    /// Replaces the system prompt, and measures what that costs.
    fn change(&mut self, frozen: &str, now: &mut String, (hook, changed): (String, String), is_own: bool) {
        if *now != changed {
            let loss = own_change(frozen, now, &changed);
            self.changes.push(StartChange { hook, is_own, loss });
            *now = changed;
        }
    }
}

/// Refuses an answer that no carrier can hold: each handler gets the text of the one before, which could grow for ever.
fn bounded(answer: Option<AgentStart>) -> Result<Option<AgentStart>, HookFailureReason> {
    let Some(start) = &answer else { return Ok(None) };
    let prompt = start.system_prompt.as_ref().map_or(0, String::len);
    let message = match &start.message {
        None => 0,
        Some(InjectedMessage::Text(text)) => text.len(),
        Some(InjectedMessage::Content(content)) => written_bytes(content),
    };
    for (what, bytes) in [("system prompt", prompt), ("message", message)] {
        if bytes > OUTPUT_BYTES_MAX {
            return Err(too_large(what, bytes, OUTPUT_BYTES_MAX));
        }
    }
    Ok(answer)
}

fn too_large(what: &str, bytes: usize, bytes_max: usize) -> HookFailureReason {
    HookFailureReason::plain(format!("its {what} has {bytes} bytes, and {bytes_max} are allowed"))
}

/// Counts the bytes of a value as JSON, without writing them down.
fn written_bytes(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // A value can always be written.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// Measures the change of one handler: the byte at which it begins, and the part of the frozen prompt that is lost by
/// it and not by earlier handlers.
fn own_change(frozen: &str, before: &str, now: &str) -> CacheLoss {
    let kept = |text: &str| cache_loss::between(frozen, text).first_byte;
    let lost_bytes = kept(before).saturating_sub(kept(now));
    CacheLoss { first_byte: cache_loss::between(before, now).first_byte, lost_bytes }
}

fn emptied(is_own: bool) -> Note {
    let message = if is_own {
        "`per_prompt.system_prompt` is empty: the frozen one is used"
    } else {
        "the hooks left an empty system prompt: the frozen one is used"
    };
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

/// Checks that every message has a role, and that they are not too large together.
fn check(messages: &[Message]) -> Result<(), HookFailureReason> {
    let is_bad = |message: &Message| !message.get("role").is_some_and(Value::is_string);
    match messages.iter().position(is_bad) {
        Some(index) => Err(HookFailureReason::plain(format!("its `messages[{index}]` has no `role`"))),
        None => match written_bytes(&messages) {
            bytes if bytes > MESSAGES_BYTES_MAX => Err(too_large("answer", bytes, MESSAGES_BYTES_MAX)),
            _ => Ok(()),
        },
    }
}

fn injected(message: InjectedMessage) -> Message {
    let content = match message {
        InjectedMessage::Text(text) => Value::from(text),
        InjectedMessage::Content(content) => content,
    };
    crate::request::message::message("user", content)
}
