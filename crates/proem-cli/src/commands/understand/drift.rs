//! `proem drift`: compares the frozen prompt of a conversation with the one that would be built now.

use clap::Args;
use proem::compare::Snapshot;
use proem::{Caller, Engine, Request};
use proem_store::Conversations;
use serde_json::json;

use super::comparison::show_answer;
use super::diff::{LayoutFlags, Report, frozen, layout_conflict, report};
use crate::arguments::store::open;
use crate::arguments::{Format, NameParser, Output, ServerFlags, StoreFlags};
use crate::failure::Failure;
use crate::remote::{Remote, encoded};

/// Compare a frozen prompt with the one that would be built now
///
/// Changes nothing. Exits with code 1 if they differ.
#[derive(Debug, Args)]
pub(crate) struct DriftArguments {
    /// Conversation to compare
    #[arg(value_name = "CONVERSATION")]
    id: String,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    server: ServerFlags,
    /// Model whose prices apply [default: the conversation's model]
    #[arg(long, value_name = "MODEL", conflicts_with = "url", value_parser = NameParser::models(), hide_possible_values = true)]
    model: Option<String>,
    #[command(flatten)]
    layout: LayoutFlags,
    /// Lines of text to show around differences; `0` hides the text
    #[arg(long, value_name = "LINES", default_value_t = 3)]
    context: usize,
    #[command(flatten)]
    output: Output<Format>,
}

pub(crate) fn run(arguments: &DriftArguments) -> Result<(), Failure> {
    if let Some(url) = &arguments.server.url {
        return from_server(arguments, url);
    }
    let conversations = Conversations::new(open(&arguments.store)?.into(), Engine::new());
    let plan =
        conversations.plan_reload(&arguments.id, proem::request::RequestUpdate::default(), Caller::User)?;
    let kept = &plan.kept;
    let name = format!("{}@{}", arguments.id, kept.head.number);
    let a = frozen(&name, kept);
    let b = Snapshot::new(
        "now",
        &plan.next,
        &Request { model: a.model.clone(), tools: plan.tools.clone(), ..kept.request.clone() },
        Some(env!("CARGO_PKG_VERSION")),
    );
    let author = match plan.template_version {
        Some(version) => conversations.store().template_version(version)?,
        None => None,
    };
    let b = b.with_template(plan.template_version, author.and_then(|version| version.author));
    let model = arguments.model.clone().or_else(|| a.model.clone());
    let request = Request { model, ..Request::default() };
    let has_drifted = report(&Report {
        a: &a,
        b: &b,
        request: &request,
        provider: arguments.layout.provider.as_deref(),
        context: arguments.context,
        format: arguments.output.format(),
        prices: Some((json!(plan.notice), json!(plan.rebuild))),
    })?;
    if has_drifted { Err(Failure::Findings) } else { Ok(()) }
}

/// Compares on a server, which has the files of the prompt.
fn from_server(arguments: &DriftArguments, url: &str) -> Result<(), Failure> {
    if arguments.layout.provider.is_some() {
        return Err(layout_conflict());
    }
    let answer = Remote::new(url)?.get(&format!("/conversations/{}/drift", encoded(&arguments.id)))?;
    let (comparison, carriers) = (&answer["comparison"], &answer["plan"]["carriers"]);
    let of_notice = Some((answer["notice"].clone(), answer["rebuild"].clone()));
    let shown = (comparison, carriers, of_notice);
    let has_drifted = show_answer(shown, arguments.context, arguments.output.format())?;
    if has_drifted { Err(Failure::Findings) } else { Ok(()) }
}
