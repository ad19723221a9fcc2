//! Comparison of two prompts: the first byte that differs, its source, the cause of the change and its cost.

use proem::compare::{Cause, ComparisonShape, Snapshot, SnapshotTools, compare, lost};
use proem::models::{Model, Models};
use proem::tokens::Tokenizer;
use proem::{Caller, Error, Request};
use proem_store::{LoadedEpoch, Plan};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A tool that differs.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolDiff {
    /// The name of the tool.
    pub name: String,
    /// `added`, `removed` or `changed`.
    pub kind: &'static str,
    /// The earlier definition, as JSON on several lines; missing for a new tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The later definition; missing for a tool that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Two prompts against each other.
pub(crate) struct Compared {
    /// The comparison in the shape of the command line.
    pub(crate) shape: Value,
    /// The tools that differ.
    pub(crate) tools: Vec<ToolDiff>,
    /// True if something differs, and all of it changes by itself, as clocks do.
    pub(crate) is_volatile: bool,
}

/// Makes one side of an epoch.
pub(crate) fn snapshot(kept: &LoadedEpoch) -> Snapshot {
    let request = Request { model: kept.head.model.clone(), ..kept.request.clone() };
    let name = format!("{}@{}", kept.head.conversation, kept.head.number);
    Snapshot::new(&name, &kept.frozen, &request, Some(&kept.head.engine))
        .with_template(kept.head.template_version, None)
}

/// Compares the frozen prompt of a plan with the one that would be built. `author` saved the template that it begins with.
pub(crate) fn compare_plan(plan: &Plan, author: Option<String>, caller: Caller) -> Result<Compared, Error> {
    let before = snapshot(&plan.kept);
    let (model, tools) = (before.model.clone(), plan.tools.clone());
    let request = Request { model, tools, ..plan.kept.request.clone() };
    let after = Snapshot::new("now", &plan.next, &request, Some(env!("CARGO_PKG_VERSION")));
    compare_sides(&before, &after.with_template(plan.template_version, author), caller)
}

/// Compares two prompts, with the prices of the second one's model.
pub(crate) fn compare_sides(before: &Snapshot, after: &Snapshot, caller: Caller) -> Result<Compared, Error> {
    let models = Models::load(&Request::default(), caller)?;
    let name = after.model.as_deref().or(before.model.as_deref());
    let model = name.and_then(|name| models.find(name));
    let comparison = compare(before, after, model.map_or(Tokenizer::Estimate, Model::tokenizer));
    let lost = lost(&comparison, model);
    let shape = ComparisonShape::new((&before.name, &after.name), &comparison, &lost, name, &models.as_of);
    let mut causes = comparison.differences.iter().map(|one| &one.cause);
    let is_volatile = !comparison.differences.is_empty() && causes.all(Cause::is_volatile);
    let shape = serde_json::to_value(&shape)
        .map_err(|error| Error::request(format!("the answer cannot be written: {error}")))?;
    Ok(Compared { shape, tools: tools(&before.tools, &after.tools), is_volatile })
}

/// Returns the tools that differ: those that are gone, then the others in the order of the second prompt.
fn tools(before: &SnapshotTools, after: &SnapshotTools) -> Vec<ToolDiff> {
    let (SnapshotTools::Known { tools: before, .. }, SnapshotTools::Known { tools: after, .. }) =
        (before, after)
    else {
        return Vec::new();
    };
    let find = |tools: &[(String, String)], wanted: &str| {
        tools.iter().find(|(name, _)| name == wanted).map(|(_, text)| text.clone())
    };
    let gone = before.iter().filter(|(name, _)| find(after, name).is_none()).map(|(name, text)| ToolDiff {
        name: name.clone(),
        kind: "removed",
        before: Some(readable(text)),
        after: None,
    });
    let others = after.iter().filter_map(|(name, text)| {
        let earlier = find(before, name);
        if earlier.as_ref() == Some(text) {
            return None;
        }
        let kind = if earlier.is_some() { "changed" } else { "added" };
        let before = earlier.as_deref().map(readable);
        Some(ToolDiff { name: name.clone(), kind, before, after: Some(readable(text)) })
    });
    gone.chain(others).collect()
}

/// Breaks the canonical JSON of a definition into lines.
fn readable(json: &str) -> String {
    let parsed = serde_json::from_str::<Value>(json).and_then(|value| serde_json::to_string_pretty(&value));
    parsed.unwrap_or_else(|_| json.to_owned())
}
