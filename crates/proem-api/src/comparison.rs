//! Comparison of two prompts: the first byte that differs, its source, the cause of the change and its cost.

use proem::compare::{ComparisonShape, Snapshot, compare, lost};
use proem::models::{Model, Models};
use proem::tokens::Tokenizer;
use proem::{Caller, Error, Request};
use proem_store::{LoadedEpoch, Plan};
use serde_json::Value;

/// Makes one side of an epoch.
pub(crate) fn snapshot(kept: &LoadedEpoch) -> Snapshot {
    let request = Request { model: kept.head.model.clone(), ..kept.request.clone() };
    let name = format!("{}@{}", kept.head.conversation, kept.head.number);
    Snapshot::new(&name, &kept.frozen, &request, Some(&kept.head.engine))
}

/// Compares the frozen prompt of a plan with the one that would be built.
pub(crate) fn compare_plan(plan: &Plan, caller: Caller) -> Result<Value, Error> {
    let before = snapshot(&plan.kept);
    let request = Request { model: before.model.clone(), ..plan.kept.request.clone() };
    let after = Snapshot::new("now", &plan.next, &request, Some(env!("CARGO_PKG_VERSION")));
    compare_sides(&before, &after, caller)
}

/// Compares two prompts, with the prices of the second one's model.
pub(crate) fn compare_sides(before: &Snapshot, after: &Snapshot, caller: Caller) -> Result<Value, Error> {
    let models = Models::load(&Request::default(), caller)?;
    let name = after.model.as_deref().or(before.model.as_deref());
    let model = name.and_then(|name| models.find(name));
    let comparison = compare(before, after, model.map_or(Tokenizer::Estimate, Model::tokenizer));
    let lost = lost(&comparison, model);
    let shape = ComparisonShape::new((&before.name, &after.name), &comparison, &lost, name, &models.as_of);
    serde_json::to_value(&shape)
        .map_err(|error| Error::request(format!("the answer cannot be written: {error}")))
}
