//! `proem drift`: a conversation's frozen prompt against what would be built now.

use proem::doctor::Snapshot;
use proem::{Caller, Engine, Request};
use proem_store::Conversations;

use super::diff::{Report, frozen, report};
use super::store::open;
use crate::arguments::Drift;
use crate::failure::Failure;

pub(super) fn run(arguments: &Drift) -> Result<(), Failure> {
    let conversations = Conversations::new(open(&arguments.store)?.into(), Engine::new());
    let plan = conversations.plan_reload(&arguments.id, None, Caller::User)?;
    let kept = &plan.kept;
    let name = format!("{}@{}", arguments.id, kept.head.number);
    let a = frozen(&name, kept);
    let b = Snapshot::of(
        "now",
        &plan.next,
        &Request { model: a.model.clone(), ..kept.request.clone() },
        Some(env!("CARGO_PKG_VERSION")),
    );
    let model = arguments.model.clone().or_else(|| a.model.clone());
    let request = Request { model, ..Request::default() };
    let has_drifted = report(&Report {
        a: &a,
        b: &b,
        request: &request,
        provider: arguments.layout.provider.as_deref(),
        context: arguments.context,
        format: arguments.output.format(),
    })?;
    if has_drifted { Err(Failure::Found) } else { Ok(()) }
}
