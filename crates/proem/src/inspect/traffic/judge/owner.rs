//! The owner of a change: a file, a server, a clock, the agent, the user.

use std::sync::OnceLock;

use proem_core::text::Places;
use regex::Regex;

use super::place::line_at;
use crate::inspect::traffic::call::{Call, HintPlace, OwnerHint, OwnerKind};
use crate::inspect::traffic::chain::{Area, Link, LinkKind};
use crate::inspect::traffic::rules::TrafficRules;
use crate::inspect::traffic::verdict::{CacheVerdict, ChangeOwner};

/// Bytes before a change that are searched for the name of an owner.
const SEARCHED_BYTES: usize = 64 << 10;

/// A changed block with the texts of both sides.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChangedText<'t> {
    pub(super) before: &'t str,
    pub(super) after: &'t str,
    pub(super) byte: usize,
}

/// Two consecutive calls.
#[derive(Clone, Copy)]
pub(super) struct Pair<'c> {
    pub(super) earlier: &'c Call,
    pub(super) call: &'c Call,
    /// The attribution blocks, where they are not part of the prompt.
    pub(super) attributions: (Option<&'c str>, Option<&'c str>),
}

impl Pair<'_> {
    fn agent_name(&self) -> Option<String> {
        self.call.agent.as_ref().map(|agent| agent.name.clone())
    }

    fn agent(&self) -> ChangeOwner {
        ChangeOwner { by: self.agent_name(), ..ChangeOwner::new(OwnerKind::Agent) }
    }

    /// Returns the agent's new version, if it has one.
    pub(super) fn new_version(&self) -> Option<ChangeOwner> {
        static VERSION: OnceLock<Option<Regex>> = OnceLock::new();
        let pattern = VERSION.get_or_init(|| Regex::new(r"cc_version=(\d+\.\d+\.\d+)").ok()).as_ref()?;
        let told = |call: &Call| call.agent.as_ref().and_then(|agent| agent.version.clone());
        let attributed = |text: Option<&str>| {
            text.and_then(|text| Some(pattern.captures(text)?.get(1)?.as_str().to_owned()))
        };
        let before = told(self.earlier).or_else(|| attributed(self.attributions.0))?;
        let after = told(self.call).or_else(|| attributed(self.attributions.1))?;
        let owner = ChangeOwner { by: self.agent_name(), ..ChangeOwner::new(OwnerKind::AgentVersion) };
        (before != after).then(|| owner.with_name(after))
    }

    /// Returns the owner of a verdict that is not about a text.
    pub(super) fn of_verdict(&self, verdict: CacheVerdict) -> Option<ChangeOwner> {
        use CacheVerdict as V;
        Some(match verdict {
            V::Hit | V::ColdStart => return None,
            V::Expired => ChangeOwner::new(OwnerKind::Time),
            V::ModelChanged | V::ParameterChanged | V::Fork => ChangeOwner::new(OwnerKind::User),
            V::Routing | V::Provider => ChangeOwner::new(OwnerKind::Provider),
            V::Unknown => ChangeOwner::new(OwnerKind::Unknown),
            _ => self.agent(),
        })
    }

    /// Returns the owner of a change of tools.
    pub(super) fn of_tool(&self, verdict: CacheVerdict, name: Option<&str>, parts: &[&str]) -> ChangeOwner {
        let server = name.and_then(|name| name.strip_prefix("mcp__")?.split("__").next());
        if let Some(server) = server {
            return ChangeOwner::new(OwnerKind::McpServer).with_name(server);
        }
        if let Some(owner) = self.hinted(parts, None) {
            return owner;
        }
        if let Some(version) = self.new_version() {
            return version;
        }
        match (verdict, name) {
            (CacheVerdict::ToolsRemoved, _) => ChangeOwner::new(OwnerKind::User),
            (CacheVerdict::ToolsReordered, _) => self.agent(),
            (_, Some(name)) => ChangeOwner::new(OwnerKind::Tool).with_name(name),
            (_, None) => ChangeOwner::new(OwnerKind::Tool),
        }
    }

    /// Returns the owner of a changed text.
    pub(super) fn of_text(&self, changed: ChangedText<'_>, parts: &[&str], area: Area) -> ChangeOwner {
        let known = self.hinted(parts, Some(changed)).or_else(|| named_before(changed));
        let pattern =
            || pattern_of(line_at(changed.before, changed.byte), line_at(changed.after, changed.byte));
        let status = || is_in_git_status(changed).then(|| ChangeOwner::new(OwnerKind::GitStatus));
        let found = known.or_else(status).or_else(|| pattern().map(ChangeOwner::new));
        let found = found.or_else(|| self.new_version());
        found.unwrap_or_else(|| match area {
            Area::Messages => ChangeOwner::new(OwnerKind::User),
            _ => ChangeOwner::new(OwnerKind::Unknown),
        })
    }

    /// Returns the owner of an earlier message that was edited, removed or inserted.
    pub(super) fn of_message(
        &self,
        link: Option<&Link>,
        changed: Option<ChangedText<'_>>,
        parts: &[&str],
    ) -> ChangeOwner {
        let is_from_agent = link.is_some_and(|link| {
            matches!(link.role.as_str(), "assistant" | "model" | "tool")
                || matches!(
                    link.kind,
                    LinkKind::Thinking | LinkKind::ToolUse | LinkKind::ToolResult | LinkKind::Other
                )
        });
        let known = match changed {
            Some(changed) if is_from_agent => self.hinted(parts, Some(changed)),
            Some(changed) => return self.of_text(changed, parts, Area::Messages),
            None => self.hinted(parts, None),
        };
        known.unwrap_or_else(|| if is_from_agent { self.agent() } else { ChangeOwner::new(OwnerKind::User) })
    }

    /// Returns what the sources say about a place or a text.
    fn hinted(&self, parts: &[&str], changed: Option<ChangedText<'_>>) -> Option<ChangeOwner> {
        let hints = || self.call.hints.iter().chain(&self.earlier.hints);
        let mut texts = hints().filter_map(|hint| match &hint.place {
            HintPlace::Text(text) => Some((hint, text.as_ref())),
            HintPlace::Part(_) => None,
        });
        let of_text =
            changed.and_then(|changed| texts.find_map(|(hint, text)| stands_in(hint, text, changed)));
        of_text.or_else(|| {
            let is_here = |hint: &&OwnerHint| matches!(&hint.place, HintPlace::Part(part) if parts.contains(&part.as_str()));
            hints().find(is_here).map(|hint| owner_of(hint, None))
        })
    }
}

fn owner_of(hint: &OwnerHint, line: Option<usize>) -> ChangeOwner {
    ChangeOwner { kind: hint.kind, name: hint.name.clone(), path: hint.path.clone(), line, by: None }
}

/// Finds the changed line of either side in a text with a known owner.
fn stands_in(hint: &OwnerHint, text: &str, changed: ChangedText<'_>) -> Option<ChangeOwner> {
    const SHORT: usize = 3;
    [changed.after, changed.before].into_iter().find_map(|side| {
        let line = line_at(side, changed.byte).trim();
        if line.len() < SHORT {
            return None;
        }
        let at = text.find(line)?;
        Some(owner_of(hint, Some(Places::new(text).at(at).line)))
    })
}

/// Finds a name of an owner in the text before the change.
fn named_before(changed: ChangedText<'_>) -> Option<ChangeOwner> {
    let side = if changed.after.len() > changed.byte { changed.after } else { changed.before };
    let line_end = changed.byte + side.get(side.floor_char_boundary(changed.byte)..)?.find('\n').unwrap_or(0);
    let end = side.floor_char_boundary(line_end.min(side.len()));
    let start = side.floor_char_boundary(end.saturating_sub(SEARCHED_BYTES));
    let head = side.get(start..end)?;
    let mut nearest: Option<(usize, ChangeOwner)> = None;
    for origin in TrafficRules::built_in().origins() {
        if origin.within.as_ref().is_some_and(|within| !within.is_match(head)) {
            continue;
        }
        let Some(found) = origin.pattern.captures_iter(head).last() else { continue };
        let Some(whole) = found.get(0) else { continue };
        if nearest.as_ref().is_some_and(|(at, _)| *at >= whole.start()) {
            continue;
        }
        let text = |group: &str| found.name(group).map(|text| text.as_str().to_owned());
        let path = text("path");
        // The header of a file is followed by its text.
        let line = path.as_ref().and_then(|_| line_after(head.get(whole.end()..)?));
        nearest = Some((
            whole.start(),
            ChangeOwner { kind: origin.kind, name: text("name"), path, line, by: None },
        ));
    }
    nearest.map(|(_, owner)| owner)
}

/// Returns the line of a file for the end of the text that follows its header.
fn line_after(text: &str) -> Option<usize> {
    let body = text.split_once('\n')?.1;
    let blank = body.len() - body.trim_start_matches('\n').len();
    Some(body.get(blank..)?.matches('\n').count() + 1)
}

/// Tells if a change stands below the heading of a git status.
fn is_in_git_status(changed: ChangedText<'_>) -> bool {
    const LINES: usize = 40;
    let side = if changed.after.len() > changed.byte { changed.after } else { changed.before };
    let end = side.floor_char_boundary(changed.byte.min(side.len()));
    let head = side.get(..end).unwrap_or_default();
    let is_heading = |line: &str| {
        let line = line.trim().to_ascii_lowercase();
        line.contains("git status")
            || line.contains("gitstatus")
            || line == "status:"
            || line.starts_with("## ") && line.contains("...")
            || line.starts_with("current branch:")
            || line == "recent commits:"
    };
    let is_status = |line: &str| {
        let line = line.trim_start();
        ["M ", "A ", "D ", "R ", "?? ", "MM ", "AM "].iter().any(|sign| line.starts_with(sign))
    };
    let lines = [line_at(changed.before, changed.byte), line_at(changed.after, changed.byte)];
    // The first line of the change may be a heading itself, or a line of the status.
    let own = line_at(side, changed.byte);
    let above =
        head.lines().rev().take(LINES).take_while(|line| !line.starts_with("# ") && !line.starts_with("</"));
    is_heading(own) || lines.iter().any(|line| is_status(line)) || above.into_iter().any(is_heading)
}

/// Recognises a value that changes by itself: masking it must make both lines equal.
pub(super) fn pattern_of(before: &str, after: &str) -> Option<OwnerKind> {
    static MASKS: OnceLock<Vec<(OwnerKind, Regex)>> = OnceLock::new();
    const CLOCK: &str = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s?[AaPp]\.?[Mm]\.?)?(?:Z|[+-]\d{2}:?\d{2})?";
    const DATE: &str = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? )?(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}(?:,? \d{4})?|\d{1,2}\.? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?(?: \d{4})?)";
    const RANDOM: &str = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|(?:/private)?/(?:tmp|var/folders|var/tmp)/[^\s'<>:,)]+|\b(?:[a-z]{2,8}_)?[0-9a-zA-Z]*\d[0-9a-zA-Z]*[a-zA-Z][0-9a-zA-Z]*\b|\b[0-9a-f]{8,}\b";
    let masks = MASKS.get_or_init(|| {
        let both = format!("{DATE}[T ]?(?:at )?{CLOCK}|{CLOCK}|{DATE}");
        let list = [
            (OwnerKind::Clock, CLOCK.to_owned()),
            (OwnerKind::Date, DATE.to_owned()),
            (OwnerKind::Clock, both),
            (OwnerKind::Counter, r"\d+(?:[.,]\d+)*".to_owned()),
            (OwnerKind::RandomId, RANDOM.to_owned()),
        ];
        list.into_iter().filter_map(|(kind, pattern)| Some((kind, Regex::new(&pattern).ok()?))).collect()
    });
    if before == after {
        return None;
    }
    let epoch = |line: &str| line.contains("17") && line.chars().filter(char::is_ascii_digit).count() >= 10;
    let is_equal = |mask: &Regex| {
        mask.is_match(before) && mask.replace_all(before, "\u{0}") == mask.replace_all(after, "\u{0}")
    };
    let kind = masks.iter().find(|(_, mask)| is_equal(mask)).map(|(kind, _)| *kind)?;
    // Digits that are as long as seconds since 1970 are a clock.
    let is_epoch = kind == OwnerKind::Counter && epoch(before) && epoch(after) && before.len() == after.len();
    Some(if is_epoch { OwnerKind::Clock } else { kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_change_by_themselves_are_recognised() {
        for (before, after, kind) in [
            ("It is 10:00:01.", "It is 10:00:59.", Some(OwnerKind::Clock)),
            ("Time: 2026-11-15T10:00:00Z", "Time: 2026-11-16T11:00:00Z", Some(OwnerKind::Clock)),
            ("Today's date: Tue Nov 17", "Today's date: Wed Nov 18", Some(OwnerKind::Date)),
            ("Today is 2026-11-15", "Today is 2026-11-16", Some(OwnerKind::Date)),
            ("Tokens left: 10000", "Tokens left: 9000", Some(OwnerKind::Counter)),
            (
                "id 4f9e1623-eec9-4c95-bd9c-ad74f0245200",
                "id 50eb0351-06c0-4918-a792-3d58bb1f7b04",
                Some(OwnerKind::RandomId),
            ),
            ("in /tmp/abc.x1Y", "in /tmp/def.z2Q", Some(OwnerKind::RandomId)),
            ("Use tabs.", "Use spaces.", None),
        ] {
            assert_eq!(pattern_of(before, after), kind, "{before}");
        }
    }
}
