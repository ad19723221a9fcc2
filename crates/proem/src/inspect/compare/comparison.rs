//! Compares two prompts: how far they agree, where they diverge, and which sources differ.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use proem_core::cache_loss::between;
use proem_core::carrier::Carrier;
use proem_core::source::Source;

use super::alignment::Alignment;
use super::cause::{Cause, MissReason};
use super::differences::Differences;
use super::layout::{Grain, Layout};
use super::snapshot::{CarrierText, Snapshot, SnapshotTools};
use crate::settings::models::Model;
use crate::settings::tokens::{TokenBounds, Tokenizer};

/// The agreement of two prompts, and their differences.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The bytes of the cached prefix that both share: tools, then carriers, in the order in which a provider reads them.
    pub common_bytes: usize,
    /// The same in tokens.
    pub common_tokens: usize,
    /// The tokens of the second prompt after that.
    pub lost_tokens: usize,
    /// The way in which tokens are counted, for people.
    pub counted: String,
    /// The least and the most tokens of `lost_tokens`, where they are estimated.
    pub lost_bounds: Option<TokenBounds>,
    /// True if the tokens of the tools are missing: a saved build of an older version has only their digest.
    pub lacks_tools: bool,
    /// The differences in order. Empty when the bytes are the same.
    pub differences: Vec<Difference>,
}

/// Something that differs.
#[derive(Debug, Clone)]
pub struct Difference {
    /// In which way.
    pub kind: DifferenceKind,
    /// The place: a carrier, or the tools.
    pub carrier: Option<Carrier>,
    /// The first byte of the first prompt's carrier, or tools, that differs.
    pub byte: usize,
    /// The owner of the bytes in the first prompt.
    pub a: Option<Owner>,
    /// The owner of the bytes in the second prompt.
    pub b: Option<Owner>,
    /// The cause.
    pub cause: Cause,
    /// The provider's word for it.
    pub reason: MissReason,
    /// The time at which the second prompt's file was written, if known.
    pub edited_at: Option<String>,
}

impl Comparison {
    /// Queries the file system for the modification times of the files that differ: for a second prompt that was
    /// built just now.
    pub fn ask_times(&mut self) {
        for difference in &mut self.differences {
            let (Cause::FileEdited(path)
            | Cause::LineEndings(path)
            | Cause::ByteOrderMark(path)
            | Cause::TrailingSpace(path)
            | Cause::FileAppeared(path)) = &difference.cause
            else {
                continue;
            };
            let written = std::fs::metadata(path).and_then(|found| found.modified());
            let written = written.ok().and_then(|time| Timestamp::try_from(time).ok());
            difference.edited_at = written.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
    }
}

impl Difference {
    /// The carrier, or `tools`.
    #[must_use]
    pub fn place(&self) -> &'static str {
        self.carrier.map_or("tools", Carrier::word)
    }
}

impl Owner {
    /// Describes the source with its line.
    #[must_use]
    pub fn describe(&self) -> String {
        let named = match &self.source {
            Source::Variable { key, path: Some(path) } if self.line.is_some() => {
                format!("[{key}] from {path}")
            }
            source => source.to_string(),
        };
        match (self.line, self.is_end) {
            (Some(line), true) => format!("end of {named} (after line {line})"),
            (None, true) => format!("end of {named}"),
            (Some(line), false) => format!("{named}:{line}"),
            (None, false) => named,
        }
    }
}

/// In which way something differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// It is on both sides, with other text.
    Changed,
    /// It is on the second side only.
    Added,
    /// It is on the first side only.
    Removed,
    /// It is on both sides, at another place.
    Moved,
}

impl DifferenceKind {
    /// The word used in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Moved => "moved",
        }
    }
}

/// The owner of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The section, where there is one.
    pub section: Option<String>,
    /// The source, with its line where that is known.
    pub source: Source,
    /// The line of the source, from 1, where it has lines.
    pub line: Option<usize>,
    /// True if the byte is the first one after the source's text: the other side continues where this one ends.
    pub is_end: bool,
}

/// The cost of a miss.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// Tokens that are not read from the cache.
    pub tokens: usize,
    /// The additional cost in dollars for one call.
    pub usd: Option<f64>,
}

/// Returns the loss of one call with a model.
#[must_use]
pub fn lost(comparison: &Comparison, model: Option<&Model>) -> Loss {
    let tokens = if comparison.differences.is_empty() { 0 } else { comparison.lost_tokens };
    Loss { tokens, usd: model.and_then(|model| model.cost_of_missing(tokens)) }
}

/// Compares two prompts, for a cache that keeps every beginning.
#[must_use]
pub fn compare(a: &Snapshot, b: &Snapshot, tokenizer: Tokenizer) -> Comparison {
    compare_in(a, b, tokenizer, Layout::default())
}

/// Compares two prompts as they lie in a cache.
#[must_use]
pub fn compare_in(a: &Snapshot, b: &Snapshot, tokenizer: Tokenizer, layout: Layout) -> Comparison {
    let mut differences = Vec::new();
    let is_other_model = a.model.is_some() && b.model.is_some() && a.model != b.model;
    if is_other_model {
        differences.push(Difference {
            kind: DifferenceKind::Changed,
            carrier: None,
            byte: 0,
            a: Some(of_request("model")),
            b: Some(of_request("model")),
            cause: Cause::Model,
            reason: MissReason::Model,
            edited_at: None,
        });
    }
    let of_tools = tools(&a.tools, &b.tools);
    let of_carriers =
        Carrier::ALL.into_iter().flat_map(|carrier| of_carrier(find(a, carrier), find(b, carrier), (a, b)));
    if layout.is_system_first {
        differences.extend(of_carriers.chain(of_tools));
    } else {
        differences.extend(of_tools.into_iter().chain(of_carriers));
    }
    name_template(&mut differences, (a, b));
    // An older saved build knows only the digest of its tools: when it is the same, so are they.
    let is_known = |tools: &SnapshotTools| matches!(tools, SnapshotTools::Known { .. });
    let has_same_tools = a.tools.digest() == b.tools.digest();
    let (tools_a, tools_b) = match (is_known(&a.tools), is_known(&b.tools)) {
        (false, true) if has_same_tools => (b.tools.text(), b.tools.text()),
        (true, false) if has_same_tools => (a.tools.text(), a.tools.text()),
        _ => (a.tools.text(), b.tools.text()),
    };
    let lacks_tools = !(is_known(&b.tools) || has_same_tools && is_known(&a.tools));
    let agreement = if is_other_model {
        Agreement { rest: pieces(b, &tools_b, Layout::default()), ..Agreement::default() }
    } else {
        agreement(&pieces(a, &tools_a, layout), &pieces(b, &tools_b, layout))
    };
    let (common_tokens, rest) =
        (tokenizer.count_joined(&agreement.common), tokenizer.count_joined(&agreement.rest));
    let in_pieces =
        if layout.grain == Grain::Pieces { tokenizer.count_joined(&agreement.pieces) } else { common_tokens };
    let kept = layout.kept(common_tokens, in_pieces, common_tokens + rest);
    let lost_tokens = if layout.grain == Grain::Whole { rest } else { common_tokens + rest - kept };
    let all = || agreement.common.iter().chain(&agreement.rest).copied();
    Comparison {
        common_bytes: agreement.bytes,
        common_tokens,
        lost_tokens,
        counted: tokenizer.describe(all()),
        lost_bounds: match layout.grain {
            Grain::Whole => tokenizer.bounds(agreement.rest.iter().copied()),
            Grain::Pieces => {
                tokenizer.bounds(pieces(b, &tools_b, layout).into_iter().skip(agreement.pieces.len()))
            }
            Grain::Steps { .. } => {
                tokenizer.bounds(all()).map(|bounds| bounds.part(lost_tokens, common_tokens + rest))
            }
        },
        lacks_tools,
        differences,
    }
}

fn of_request(field: &str) -> Owner {
    Owner {
        section: None,
        source: Source::Request { field: field.into(), place: None },
        line: None,
        is_end: false,
    }
}

fn find(snapshot: &Snapshot, carrier: Carrier) -> Option<&CarrierText> {
    snapshot.carriers.iter().find(|text| text.carrier == carrier)
}

/// Everything that is cached, piece by piece in order.
fn pieces<'s>(snapshot: &'s Snapshot, tools: &'s str, layout: Layout) -> Vec<&'s str> {
    let carrier = |carrier: Carrier| find(snapshot, carrier).map_or("", |text| text.text.as_str());
    let mut pieces: Vec<&str> = std::iter::once(tools).chain(Carrier::ALL.into_iter().map(carrier)).collect();
    if layout.is_system_first {
        pieces.swap(0, 1);
    }
    pieces
}

/// The beginning that two prompts share, and the rest of the second.
#[derive(Default)]
struct Agreement<'s> {
    bytes: usize,
    common: Vec<&'s str>,
    /// As much of it as are whole pieces.
    pieces: Vec<&'s str>,
    rest: Vec<&'s str>,
}

/// The beginning that both share. Where a piece ends, the next one begins in both.
fn agreement<'s>(a: &[&'s str], b: &[&'s str]) -> Agreement<'s> {
    let mut found = Agreement::default();
    let mut is_same = true;
    for (a, b) in a.iter().zip(b) {
        let same = if is_same { between(a, b).first_byte } else { 0 };
        found.bytes += same;
        found.common.push(b.get(..b.floor_char_boundary(same)).unwrap_or_default());
        found.rest.push(b.get(b.ceil_char_boundary(same)..).unwrap_or_default());
        is_same &= same == a.len() && same == b.len();
        if is_same {
            found.pieces.push(b);
        }
    }
    found
}

fn tools<'t>(a: &'t SnapshotTools, b: &'t SnapshotTools) -> Vec<Difference> {
    let difference = |kind: DifferenceKind, byte: usize, cause: Cause| Difference {
        kind,
        carrier: None,
        byte,
        a: (kind != DifferenceKind::Added).then(|| of_request("tools")),
        b: (kind != DifferenceKind::Removed).then(|| of_request("tools")),
        cause,
        reason: MissReason::Tools,
        edited_at: None,
    };
    let (SnapshotTools::Known { tools: before, .. }, SnapshotTools::Known { tools: after, .. }) = (a, b)
    else {
        let is_same = a.digest() == b.digest();
        return if is_same { Vec::new() } else { vec![difference(DifferenceKind::Changed, 0, Cause::Tools)] };
    };
    if before == after {
        return Vec::new();
    }
    let byte = between(&a.text(), &b.text()).first_byte;
    let by_name = |tools: &'t [(String, String)]| -> HashMap<&'t str, &'t str> {
        tools.iter().rev().map(|(name, text)| (name.as_str(), text.as_str())).collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    let mut found = Vec::new();
    for (name, text) in before {
        match new.get(name.as_str()) {
            None => found.push(difference(DifferenceKind::Removed, byte, Cause::ToolRemoved(name.clone()))),
            Some(other) if other != text => {
                found.push(difference(DifferenceKind::Changed, byte, Cause::ToolEdited(name.clone())));
            }
            Some(_) => {}
        }
    }
    let added = after.iter().filter(|(name, _)| !old.contains_key(name.as_str()));
    found.extend(
        added.map(|(name, _)| difference(DifferenceKind::Added, byte, Cause::ToolAdded(name.clone()))),
    );
    if found.is_empty() {
        found.push(difference(DifferenceKind::Moved, byte, Cause::ToolsReordered));
    }
    found
}

/// Names the versions of the stored template, where a difference is that of two versions: the base of such a prompt comes
/// as the template of its request.
fn name_template(differences: &mut [Difference], (a, b): (&Snapshot, &Snapshot)) {
    let (Some(before), Some(after)) = (a.template_version, b.template_version) else { return };
    if before == after {
        return;
    }
    for difference in differences {
        if matches!(&difference.cause, Cause::Request(field) if field == "template") {
            difference.cause = Cause::Template { before, after, author: b.template_author.clone() };
        }
    }
}

/// Finds the differences in one carrier.
pub(super) fn of_carrier(
    a: Option<&CarrierText>,
    b: Option<&CarrierText>,
    sides: (&Snapshot, &Snapshot),
) -> Vec<Difference> {
    let Some(carrier) = a.or(b).map(|text| text.carrier) else { return Vec::new() };
    let none = CarrierText { carrier, text: String::new(), spans: Vec::new(), sections: Vec::new() };
    let texts = (a.unwrap_or(&none), b.unwrap_or(&none));
    if texts.0.text == texts.1.text {
        return Vec::new();
    }
    let byte = between(&texts.0.text, &texts.1.text).first_byte;
    let alignment = Alignment::new(texts.0, texts.1);
    let differences = Differences::new(byte, texts, &alignment, sides);
    let (mut found, mut told) = (Vec::new(), HashSet::new());
    for difference in differences.all() {
        // A file consists of a path and a text, a skill of three pieces: each is one event. A value appears at each
        // of its tags.
        let is_value = matches!(
            difference.cause,
            Cause::Clock(_)
                | Cause::Day(_)
                | Cause::Git(_)
                | Cause::Variable(_)
                | Cause::VariableAppeared(_)
                | Cause::VariableGone(_)
        );
        if is_value || told.insert(difference.cause.clone()) {
            found.push(difference);
        }
    }
    if let Some(first) = found.first_mut() {
        // Aligned by source, the first one may begin with bytes that happen to be the same.
        first.byte = byte;
        if sides.0.profile != sides.1.profile {
            first.cause = Cause::Profile { before: sides.0.profile.clone(), after: sides.1.profile.clone() };
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::engine::build;
    use crate::request::Request;
    use crate::request::caller::Caller;

    fn snapshot(folder: &Path, more: &serde_json::Value) -> Snapshot {
        let mut json = serde_json::json!({
            "cwd": folder.to_str(),
            "host": { "home": "/nowhere", "config_dir": "/nowhere/proem", "now": "2026-03-07T14:55:05Z", "env": {} },
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            match value.as_object() {
                Some(inner) if key == "host" => {
                    for (name, value) in inner {
                        json["host"][name] = value.clone();
                    }
                }
                _ => json[key] = value.clone(),
            }
        }
        let request = Request::from_json(&json.to_string()).expect("the request is well-formed");
        let built = build(&request, Caller::User).expect("it can be built");
        Snapshot::new("one", built.frozen(), &request, Some("1"))
    }

    fn first(a: &Snapshot, b: &Snapshot) -> Difference {
        let found = compare(a, b, Tokenizer::Estimate);
        found.differences.into_iter().next().expect("something differs")
    }

    #[test]
    fn an_edited_file_is_named_with_its_line() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("AGENTS.md");
        fs::write(&path, "one\ntwo\n")?;
        let none = serde_json::json!({});
        let before = snapshot(folder.path(), &none);
        fs::write(&path, "one\ntoo\n")?;
        let found = first(&before, &snapshot(folder.path(), &none));
        let path = path.display().to_string();
        assert_eq!((found.kind, found.cause), (DifferenceKind::Changed, Cause::FileEdited(path.clone())));
        let owner = found.a.expect("it was there before");
        assert_eq!((owner.section.as_deref(), owner.line), (Some("context"), Some(2)));
        fs::write(&path, "one\r\ntwo\r\n")?;
        let found = first(&before, &snapshot(folder.path(), &none));
        assert_eq!(found.cause, Cause::LineEndings(path.clone()));
        fs::remove_file(&path)?;
        let found = first(&before, &snapshot(folder.path(), &none));
        assert_eq!((found.kind, found.cause), (DifferenceKind::Removed, Cause::FileGone(path)));
        Ok(())
    }

    #[test]
    fn clocks_days_tools_and_models_are_told_apart() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let template = |text: &str, now: &str| {
            let more = serde_json::json!({ "profile": "template", "template": text, "host": { "now": now } });
            snapshot(folder.path(), &more)
        };
        let (early, late) = ("2026-03-07T14:55:05Z", "2026-03-08T14:55:06Z");
        let found = first(&template("It is [system:clock]", early), &template("It is [system:clock]", late));
        assert_eq!((found.byte, found.cause), (12 + 1, Cause::Clock("system:clock".into())));
        let found = first(&template("[system:date]!", early), &template("[system:date]!", late));
        assert_eq!(found.cause, Cause::Day("system:date".into()));
        let found = first(&template("Be calm.", early), &template("Be quick.", early));
        assert_eq!((found.cause, found.reason), (Cause::Request("template".into()), MissReason::System));
        let with = |more: serde_json::Value| snapshot(folder.path(), &more);
        let tools = |names: [&str; 2]| {
            with(serde_json::json!({ "tools": names.map(|name| serde_json::json!({ "name": name })) }))
        };
        let found = compare(&tools(["a", "b"]), &tools(["a", "c"]), Tokenizer::Estimate);
        let causes: Vec<&Cause> = found.differences.iter().map(|one| &one.cause).take(2).collect();
        assert_eq!(causes, [&Cause::ToolRemoved("b".into()), &Cause::ToolAdded("c".into())]);
        assert_eq!(first(&tools(["a", "b"]), &tools(["b", "a"])).cause, Cause::ToolsReordered);
        let model = |name: &str| with(serde_json::json!({ "model": name }));
        let found = compare(&model("x"), &model("y"), Tokenizer::Estimate);
        assert_eq!((found.common_bytes, found.differences[0].reason), (0, MissReason::Model));
        Ok(())
    }
}
