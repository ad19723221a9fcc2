//! One line of advice for a verdict and its owner.

use crate::inspect::traffic::call::OwnerKind;
use crate::inspect::traffic::verdict::{CacheVerdict, ChangeOwner};

/// Returns the advice; `None` where nothing can be done.
pub(in crate::inspect::traffic) fn advice(
    verdict: CacheVerdict,
    owner: Option<&ChangeOwner>,
) -> Option<String> {
    use CacheVerdict as V;
    let by_verdict = match verdict {
        V::Expired => "a longer cache lifetime pays if pauses like this are common",
        V::BelowMinimum => "nothing to do: the prefix is too short to be cached",
        V::ModelChanged => "switch models between conversations; each model has its own cache",
        V::ParameterChanged => "keep this parameter for the whole conversation",
        V::ToolsAdded => "connect tools before the first message, or let the agent defer them",
        V::ToolsRemoved => "keep the list of tools for the whole conversation",
        V::ToolsReordered => "sort the tools by name",
        V::MessageRemoved | V::MessageReformed => "send earlier messages as they were sent before",
        V::MarkerMoved | V::MarkerMissing => "mark the last block of each request",
        V::LookbackExceeded => "set a second marker where the request before ended",
        V::Routing => "send a conversation to one account, region and cache key",
        V::Provider => "nothing to do here: report it to the provider if it is frequent",
        V::ToolsRedefined | V::SystemChanged | V::MessageEdited => return of_owner(owner),
        V::Hit | V::ColdStart | V::Compaction | V::Fork | V::Unknown => return None,
    };
    Some(by_verdict.to_owned())
}

fn of_owner(owner: Option<&ChangeOwner>) -> Option<String> {
    let owner = owner?;
    let name = owner.name.as_deref().or(owner.path.as_deref());
    let named = |what: &str| name.map_or_else(|| what.to_owned(), |name| format!("{what} {name}"));
    Some(match owner.kind {
        OwnerKind::InstructionFile => format!("edit {} between sessions", named("the file")),
        OwnerKind::Skill => format!("change {} between sessions", named("the skill")),
        OwnerKind::McpServer => {
            format!("{} should describe its tools the same way each time", named("the server"))
        }
        OwnerKind::Tool => format!("{} should have a fixed definition", named("the tool")),
        OwnerKind::Plugin => {
            format!("{} should write a fixed text, or write at the end", named("the plugin"))
        }
        OwnerKind::Hook => format!("{} should write a fixed text", named("the hook")),
        OwnerKind::Clock | OwnerKind::Date => "put the time into the newest message".to_owned(),
        OwnerKind::GitStatus => "put the git status into the newest message".to_owned(),
        OwnerKind::Counter | OwnerKind::RandomId => "put changing values into the newest message".to_owned(),
        OwnerKind::AgentVersion => "update the agent between sessions".to_owned(),
        OwnerKind::User => "an edit of an earlier message costs what follows it".to_owned(),
        OwnerKind::Agent | OwnerKind::Provider | OwnerKind::Time | OwnerKind::Unknown => return None,
    })
}
