//! Two prompts against each other: how far they agree, where they part, and whose bytes differ.

use std::collections::BTreeSet;

use proem_core::carrier::Carrier;
use proem_core::source::Source;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::cause::{Cause, Reason};
use super::snapshot::{CarrierText, Snapshot, ToolSet};
use super::units::{Key, Unit, units};
use crate::models::Model;
use crate::tokens::Tokenizer;

/// What two prompts have in common, and what not.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The bytes of the cached prefix that both share: tools, then carriers, in the order in which a provider reads them.
    pub common_bytes: usize,
    /// The same in tokens.
    pub common_tokens: usize,
    /// The tokens of the second prompt behind that.
    pub lost_tokens: usize,
    /// What differs, the first one first. Empty when the bytes are the same.
    pub differences: Vec<Difference>,
}

/// Something that differs.
#[derive(Debug, Clone)]
pub struct Difference {
    /// In which way.
    pub kind: Kind,
    /// Where: a carrier, or the tools.
    pub carrier: Option<Carrier>,
    /// The first byte of the first prompt's carrier, or tools, that differs.
    pub byte: usize,
    /// Whose bytes stand there in the first prompt.
    pub a: Option<Owner>,
    /// Whose bytes stand there in the second prompt.
    pub b: Option<Owner>,
    /// Why.
    pub cause: Cause,
    /// The provider's word for it.
    pub reason: Reason,
}

impl Difference {
    /// The carrier, or `tools`.
    #[must_use]
    pub fn place(&self) -> &'static str {
        self.carrier.map_or("tools", Carrier::word)
    }
}

impl Owner {
    /// The source with its line, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        match (&self.source, self.line) {
            (Source::Variable { key, path: Some(path) }, Some(line)) => format!("[{key}] from {path}:{line}"),
            (source, Some(line)) => format!("{source}:{line}"),
            (source, None) => source.to_string(),
        }
    }
}

/// In which way something differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is on both sides, with other text.
    Changed,
    /// It is on the second side only.
    Added,
    /// It is on the first side only.
    Removed,
    /// It is on both sides, at another place.
    Moved,
}

impl Kind {
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

/// Whose bytes they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The section, where there is one.
    pub section: Option<String>,
    /// The source, with its line where that is known.
    pub source: Source,
    /// The line of the source, from 1, where it has lines.
    pub line: Option<usize>,
}

/// What a miss costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Lost {
    /// Tokens that are not read from the cache.
    pub tokens: usize,
    /// What they cost more because of that, in dollars, for one call.
    pub usd: Option<f64>,
}

/// What one call loses with a model.
#[must_use]
pub fn lost(comparison: &Comparison, model: Option<&Model>) -> Lost {
    let tokens = if comparison.differences.is_empty() { 0 } else { comparison.lost_tokens };
    let more = model.and_then(|model| Some(model.input? - model.cache_read?));
    let millions = f64::from(u32::try_from(tokens).unwrap_or(u32::MAX)) / 1e6;
    Lost { tokens, usd: more.map(|more| more * millions) }
}

/// Compares two prompts.
#[must_use]
pub fn compare(a: &Snapshot, b: &Snapshot, tokenizer: Tokenizer) -> Comparison {
    let mut differences = Vec::new();
    let is_other_model = a.model.is_some() && b.model.is_some() && a.model != b.model;
    if is_other_model {
        differences.push(Difference {
            kind: Kind::Changed,
            carrier: None,
            byte: 0,
            a: Some(of_request("model")),
            b: Some(of_request("model")),
            cause: Cause::Model,
            reason: Reason::Model,
        });
    }
    differences.extend(tools(&a.tools, &b.tools));
    for carrier in Carrier::ALL {
        differences.extend(of_carrier(find(a, carrier), find(b, carrier), (a, b)));
    }
    let (common, rest) = agreement(a, b);
    let common = if is_other_model { String::new() } else { common };
    let lost = if is_other_model { whole(b) } else { rest };
    Comparison {
        common_bytes: common.len(),
        common_tokens: tokenizer.count(&common),
        lost_tokens: tokenizer.count(&lost),
        differences,
    }
}

fn of_request(field: &str) -> Owner {
    Owner { section: None, source: Source::Request { field: field.to_owned(), place: None }, line: None }
}

fn find(snapshot: &Snapshot, carrier: Carrier) -> Option<&CarrierText> {
    snapshot.carriers.iter().find(|text| text.carrier == carrier)
}

/// Everything that is cached, in order.
fn whole(snapshot: &Snapshot) -> String {
    let carriers = snapshot.carriers.iter().map(|carrier| carrier.text.as_str());
    std::iter::once(snapshot.tools.text().as_str()).chain(carriers).collect()
}

/// The beginning that both share, and what follows in the second.
fn agreement(a: &Snapshot, b: &Snapshot) -> (String, String) {
    let (a, b) = (whole(a), whole(b));
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let same = b.floor_char_boundary(same);
    let (common, rest) = b.split_at(same);
    (common.to_owned(), rest.to_owned())
}

fn tools(a: &ToolSet, b: &ToolSet) -> Vec<Difference> {
    let difference = |kind: Kind, byte: usize, cause: Cause| Difference {
        kind,
        carrier: None,
        byte,
        a: (kind != Kind::Added).then(|| of_request("tools")),
        b: (kind != Kind::Removed).then(|| of_request("tools")),
        cause,
        reason: Reason::Tools,
    };
    let byte = a.text().bytes().zip(b.text().bytes()).take_while(|(a, b)| a == b).count();
    let (ToolSet::Known(before), ToolSet::Known(after)) = (a, b) else {
        let is_same = a == b;
        return if is_same { Vec::new() } else { vec![difference(Kind::Changed, byte, Cause::Tools)] };
    };
    if before == after {
        return Vec::new();
    }
    let of = |tools: &[(String, String)], name: &str| tools.iter().find(|(own, _)| own == name).cloned();
    let mut found = Vec::new();
    for (name, text) in before {
        match of(after, name) {
            None => found.push(difference(Kind::Removed, byte, Cause::ToolRemoved(name.clone()))),
            Some((_, other)) if other != *text => {
                found.push(difference(Kind::Changed, byte, Cause::ToolEdited(name.clone())));
            }
            Some(_) => {}
        }
    }
    let new = after.iter().filter(|(name, _)| of(before, name).is_none());
    found.extend(new.map(|(name, _)| difference(Kind::Added, byte, Cause::ToolAdded(name.clone()))));
    if found.is_empty() {
        found.push(difference(Kind::Moved, byte, Cause::ToolsReordered));
    }
    found
}

/// What differs in one carrier.
fn of_carrier(
    a: Option<&CarrierText>,
    b: Option<&CarrierText>,
    sides: (&Snapshot, &Snapshot),
) -> Vec<Difference> {
    let text = |side: Option<&CarrierText>| side.map(|carrier| carrier.text.clone()).unwrap_or_default();
    let Some(carrier) = a.or(b).map(|text| text.carrier).filter(|_| text(a) != text(b)) else {
        return Vec::new();
    };
    let (before, after) = (a.map(units).unwrap_or_default(), b.map(units).unwrap_or_default());
    let mut found = Aligned::new(&before, &after).differences(carrier);
    let byte = text(a).bytes().zip(text(b).bytes()).take_while(|(a, b)| a == b).count();
    if let Some(first) = found.first_mut() {
        // Aligned by source, the first one may begin with bytes that happen to be the same.
        first.byte = byte;
        decided(first, sides);
        if sides.0.profile != sides.1.profile {
            first.cause = Cause::Profile { before: sides.0.profile.clone(), after: sides.1.profile.clone() };
        }
    }
    found
}

/// Where only text of a template came or went, a condition decided that: if one file alone came or went, too, it is that
/// file's doing.
fn decided(first: &mut Difference, (a, b): (&Snapshot, &Snapshot)) {
    let is_there =
        |side: &Snapshot, path: &str| side.considered.get(path).is_some_and(|outcome| outcome == "used");
    let is_template = matches!(
        first.cause,
        Cause::SectionAppeared(_)
            | Cause::SectionGone(_)
            | Cause::Request(_)
            | Cause::Wording(_)
            | Cause::FileEdited(_)
            | Cause::FileAppeared(_)
            | Cause::FileGone(_)
    );
    let paths: BTreeSet<&String> = a.considered.keys().chain(b.considered.keys()).collect();
    let other: Vec<&String> =
        paths.into_iter().filter(|path| is_there(a, path) != is_there(b, path)).collect();
    let [path] = other.as_slice() else { return };
    let is_owner =
        |owner: &Option<Owner>| owner.as_ref().is_some_and(|owner| owner.source.to_string() == **path);
    if !is_template || is_owner(&first.a) || is_owner(&first.b) {
        return;
    }
    let source = Source::File { path: (*path).clone(), place: None };
    let is_new = is_there(b, path);
    first.cause = Cause::one_sided(&source, None, is_new);
    let owner = Owner { section: None, source, line: None };
    (first.kind, first.a, first.b) = if is_new {
        (Kind::Added, first.a.take(), Some(owner))
    } else {
        (Kind::Removed, Some(owner), first.b.take())
    };
}

/// Two lists of units, aligned by their sources.
struct Aligned<'u, 't> {
    before: &'u [Unit<'t>],
    after: &'u [Unit<'t>],
    known_before: BTreeSet<&'u Key>,
    known_after: BTreeSet<&'u Key>,
}

impl<'u, 't> Aligned<'u, 't> {
    fn new(before: &'u [Unit<'t>], after: &'u [Unit<'t>]) -> Self {
        let keys = |units: &'u [Unit<'t>]| units.iter().map(|unit| &unit.key).collect();
        Self { before, after, known_before: keys(before), known_after: keys(after) }
    }

    fn differences(&self, carrier: Carrier) -> Vec<Difference> {
        let keys = |units: &[Unit<'_>]| units.iter().map(|unit| unit.key.clone()).collect::<Vec<_>>();
        let mut found = Vec::new();
        for op in capture_diff_slices(Algorithm::Myers, &keys(self.before), &keys(self.after)) {
            let (old, new) = (&self.before[op.old_range()], &self.after[op.new_range()]);
            if matches!(op, DiffOp::Equal { .. }) {
                let pairs = old.iter().zip(new).filter(|(old, new)| old.text != new.text);
                found.extend(pairs.map(|(old, new)| changed(carrier, old, new)));
            } else {
                found.extend(self.replaced(carrier, old, new));
            }
        }
        found
    }

    /// Units of one side that have no partner at their place on the other. Content is told first; what stands around
    /// it only when there is none.
    fn replaced(&self, carrier: Carrier, old: &[Unit<'_>], new: &[Unit<'_>]) -> Vec<Difference> {
        let gone = old.iter().filter(|unit| unit.is_content());
        let gone =
            gone.map(|unit| one_sided(carrier, Some(unit), None, self.known_after.contains(&unit.key)));
        let come = new.iter().filter(|unit| unit.is_content() && !self.known_before.contains(&unit.key));
        let come = come.map(|unit| one_sided(carrier, None, Some(unit), false));
        let content: Vec<Difference> = gone.chain(come).collect();
        if !content.is_empty() {
            return content;
        }
        let mut left: Vec<&Unit<'_>> = new.iter().collect();
        let mut found = Vec::new();
        for unit in old {
            let partner = left.iter().position(|other| is_same_source(unit, other));
            found.push(match partner {
                Some(index) => changed(carrier, unit, left.remove(index)),
                None => one_sided(carrier, Some(unit), None, self.known_after.contains(&unit.key)),
            });
        }
        let new = left.into_iter().filter(|unit| !self.known_before.contains(&unit.key));
        found.extend(new.map(|unit| one_sided(carrier, None, Some(unit), false)));
        found
    }
}

fn is_same_source(one: &Unit<'_>, other: &Unit<'_>) -> bool {
    one.key.section == other.key.section && one.key.source == other.key.source
}

const fn reason(carrier: Carrier) -> Reason {
    match carrier {
        Carrier::System | Carrier::Developer => Reason::System,
        Carrier::FirstUser | Carrier::Turn => Reason::Messages,
    }
}

fn owner(unit: &Unit<'_>, inside: usize) -> Owner {
    let passed = unit.text.get(..unit.text.floor_char_boundary(inside)).unwrap_or_default();
    let breaks = passed.matches('\n').count();
    let begin = match &unit.first.source {
        Source::Variable { path: Some(_), .. } => Some(1),
        other => other.place().map(|place| place.line),
    };
    Owner {
        section: unit.key.section.clone(),
        source: unit.first.source.without_place(),
        line: begin.map(|line| line + breaks),
    }
}

fn changed(carrier: Carrier, old: &Unit<'_>, new: &Unit<'_>) -> Difference {
    let inside = old.text.bytes().zip(new.text.bytes()).take_while(|(a, b)| a == b).count();
    Difference {
        kind: Kind::Changed,
        carrier: Some(carrier),
        byte: old.bytes.start + inside,
        a: Some(owner(old, inside)),
        b: Some(owner(new, inside)),
        cause: Cause::edited(
            &old.first.source,
            old.first.stability.max(new.first.stability),
            old.text,
            new.text,
        ),
        reason: reason(carrier),
    }
}

fn one_sided(carrier: Carrier, old: Option<&Unit<'_>>, new: Option<&Unit<'_>>, is_moved: bool) -> Difference {
    let unit = old.or(new);
    let source = unit.map(|unit| unit.first.source.clone());
    let section = unit.and_then(|unit| unit.key.section.clone());
    let cause = match &source {
        Some(source) if is_moved => Cause::Reordered(source.without_place().to_string()),
        Some(source) => Cause::one_sided(source, section.as_deref(), new.is_some()),
        None => Cause::Wording(String::new()),
    };
    Difference {
        kind: match (is_moved, new) {
            (true, _) => Kind::Moved,
            (false, Some(_)) => Kind::Added,
            (false, None) => Kind::Removed,
        },
        carrier: Some(carrier),
        byte: unit.map_or(0, |unit| unit.bytes.start),
        a: old.map(|unit| owner(unit, 0)),
        b: new.map(|unit| owner(unit, 0)),
        cause,
        reason: reason(carrier),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::engine::{Caller, build};
    use crate::request::Request;

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
        Snapshot::of("one", &built.frozen, &request, Some("1"))
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
        assert_eq!((found.kind, found.cause), (Kind::Changed, Cause::FileEdited(path.clone())));
        let owner = found.a.expect("it was there before");
        assert_eq!((owner.section.as_deref(), owner.line), (Some("context"), Some(2)));
        fs::write(&path, "one\r\ntwo\r\n")?;
        let found = first(&before, &snapshot(folder.path(), &none));
        assert_eq!(found.cause, Cause::LineEndings(path.clone()));
        fs::remove_file(&path)?;
        let found = first(&before, &snapshot(folder.path(), &none));
        assert_eq!((found.kind, found.cause), (Kind::Removed, Cause::FileGone(path)));
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
        assert_eq!((found.cause, found.reason), (Cause::Request("template".into()), Reason::System));
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
        assert_eq!((found.common_bytes, found.differences[0].reason), (0, Reason::Model));
        Ok(())
    }
}
