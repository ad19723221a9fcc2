//! `proem drift`: a conversation's frozen prompt against what would be built now.

use proem::compare::Snapshot;
use proem::{Caller, Engine, Request};
use proem_store::Conversations;

use super::comparison::show_answer;
use super::diff::{Report, frozen, layout_of_server, report};
use crate::arguments::Drift;
use crate::commands::server::conversation::encoded;
use crate::commands::server::store::open;
use crate::failure::Failure;
use crate::remote::Remote;

pub(crate) fn run(arguments: &Drift) -> Result<(), Failure> {
    if let Some(url) = &arguments.server.url {
        return of_server(arguments, url);
    }
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

/// Asks a server, which has the files that the prompt is built from.
fn of_server(arguments: &Drift, url: &str) -> Result<(), Failure> {
    if arguments.layout.provider.is_some() {
        return Err(layout_of_server());
    }
    let answer = Remote::new(url)?.get(&format!("/conversations/{}/drift", encoded(&arguments.id)))?;
    let (comparison, carriers) = (&answer["comparison"], &answer["plan"]["carriers"]);
    let has_drifted = show_answer(comparison, carriers, arguments.context, arguments.output.format())?;
    if has_drifted { Err(Failure::Found) } else { Ok(()) }
}
