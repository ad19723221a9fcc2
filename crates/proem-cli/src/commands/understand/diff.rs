//! `proem diff`: compares two prompts: where they diverge, what caused it, and what it costs.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use proem::compare::{ComparisonShape, Layout, Snapshot, compare_in, lost};
use proem::models::{Model, Models};
use proem::tokens::Tokenizer;
use proem::{Caller, Engine, Error, Request, Revision, RevisionError, Workspace};
use proem_core::carrier::Carrier;
use proem_core::limit::{REQUEST_BYTES_MAX, SAVED_BUILD_BYTES_MAX};
use proem_store::{Conversations, LoadedEpoch};
use serde_json::Value;

use super::comparison::{Page, Texts, prices, show_answer};
use crate::arguments::request::prompt_request;
use crate::arguments::store::open_known;
use crate::arguments::{Format, NameParser, Output, PromptFlags, ServerFlags, StoreFlags};
use crate::failure::Failure;
use crate::input;
use crate::remote::{Remote, encoded};
use crate::terminal::{print, print_json, visible_line};

/// Compare two prompts: where they diverge, what caused it, and what it costs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArguments {
    /// First prompt: `now`, a request file, a saved build (`build --format json`), `CONVERSATION@EPOCH`, `CONVERSATION`, or a
    /// git revision; the prefixes `git:` and `conversation:` tell the last two apart
    #[arg(value_name = "A")]
    a: String,
    /// Second prompt, named in the same way
    #[arg(value_name = "B", default_value = "now")]
    b: String,
    #[command(flatten)]
    prompt: PromptFlags,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    layout: LayoutFlags,
    /// Lines of text to show around differences; `0` hides the text
    #[arg(long, value_name = "LINES", default_value_t = 3)]
    context: usize,
    #[command(flatten)]
    output: Output<Format>,
}

const EXAMPLES: &str = "\
Examples:
  proem diff HEAD~1              Compare the last commit with the present files
  proem diff before.json         Compare a saved build with the present files
  proem diff chat-1@1 chat-1@2   Compare two epochs of a conversation
  proem diff main --for anthropic --model claude-opus-5
                                 Compute the loss for one provider's cache";

/// Flags that choose the cache for which a difference is computed.
#[derive(Debug, Args)]
pub(crate) struct LayoutFlags {
    /// Provider whose cache rules apply [default: a cache that keeps every prefix]
    #[arg(long = "for", value_name = "PROVIDER", value_parser = NameParser::caches())]
    pub(crate) provider: Option<String>,
}

pub(crate) fn run(arguments: &DiffArguments) -> Result<(), Failure> {
    if let Some(url) = &arguments.server.url {
        return from_server(arguments, url);
    }
    let now = || prompt_request(&arguments.prompt);
    let side = |name: &str| side(name, &now, &arguments.store);
    let (a, b) = (side(&arguments.a)?, side(&arguments.b)?);
    let model =
        arguments.prompt.request.model.clone().or_else(|| b.model.clone()).or_else(|| a.model.clone());
    let request = Request { model: model.clone(), ..Request::default() };
    report(&Report {
        a: &a,
        b: &b,
        request: &request,
        provider: arguments.layout.provider.as_deref(),
        context: arguments.context,
        format: arguments.output.format(),
        prices: None,
    })
    .map(drop)
}

/// Compares two epochs of a conversation on a server.
fn from_server(arguments: &DiffArguments, url: &str) -> Result<(), Failure> {
    if arguments.layout.provider.is_some() {
        return Err(layout_conflict());
    }
    let epoch = |name: &str| {
        let (id, number) = name.rsplit_once('@')?;
        Some((id.to_owned(), number.parse::<u64>().ok()?))
    };
    let (Some((a, from)), Some((b, to))) = (epoch(&arguments.a), epoch(&arguments.b)) else {
        return Err(Failure::Usage {
            message: "a server compares two epochs of one conversation".into(),
            hint: "write `proem diff CONVERSATION@1 CONVERSATION@2 --url URL`; `proem drift` compares with what would \
                   be built now"
                .into(),
        });
    };
    if a != b {
        return Err(Failure::Usage {
            message: format!("`{}` and `{}` are two conversations", visible_line(&a), visible_line(&b)),
            hint: "name two epochs of one conversation".into(),
        });
    }
    let answer =
        Remote::new(url)?.get(&format!("/conversations/{}/diff?from={from}&to={to}", encoded(&a)))?;
    let (comparison, carriers) = (&answer["comparison"], &answer["carriers"]);
    show_answer((comparison, carriers, None), arguments.context, arguments.output.format()).map(drop)
}

/// Rejects `--for` for a server, which compares for a cache that keeps every prefix.
pub(crate) const fn layout_conflict() -> Failure {
    Failure::Flags { flag: "--for", other: "--url", hint: "leave `--for` out: the server decides" }
}

/// Resolves the name of a prompt.
fn side(
    name: &str,
    now: &dyn Fn() -> Result<Request, Failure>,
    store: &StoreFlags,
) -> Result<Snapshot, Failure> {
    if name == "now" {
        return built(name, &now()?);
    }
    if let Some(revision) = name.strip_prefix("git:") {
        return from_revision(name, revision, now()?);
    }
    if let Some(id) = name.strip_prefix("conversation:") {
        return epoch(id, store)?.ok_or_else(|| missing(name));
    }
    let path = Path::new(name);
    if path.is_file() || name == "-" {
        let text = input::read(path, "prompt", SAVED_BUILD_BYTES_MAX)?;
        if is_saved(&text) {
            return Snapshot::read(name, &text).map_err(|error| Failure::Input {
                what: "saved build",
                path: name.to_owned(),
                why: error.to_string(),
            });
        }
        if text.len() > REQUEST_BYTES_MAX {
            let why = format!("it is not a saved build, and a request has at most {REQUEST_BYTES_MAX} bytes");
            return Err(Failure::Input { what: "request", path: name.to_owned(), why });
        }
        if !text.trim_start().starts_with('{') {
            return Err(no_prompt(name));
        }
        return built(name, &Request::from_json(&text)?);
    }
    epoch_or_revision(name, now()?, store)
}

/// Resolves a name without a prefix that is not a file: an epoch of a conversation, or a revision. Tries both, because a
/// conversation may have the name of a branch.
fn epoch_or_revision(name: &str, request: Request, store: &StoreFlags) -> Result<Snapshot, Failure> {
    let frozen = epoch(name, store)?;
    let workspace = Workspace::open(request.cwd.as_deref())?;
    match (frozen, Revision::exists(workspace.path(), name)) {
        (Some(_), true) => Err(Failure::Build(Error::Usage {
            message: format!("`{name}` is a conversation of the store and a revision of the repository"),
            hint: format!("write `conversation:{name}` or `git:{name}`"),
        })),
        (Some(frozen), false) => Ok(frozen),
        (None, true) => from_revision(name, name, request),
        (None, false) => Err(missing(name)),
    }
}

/// A file that holds neither a request nor a saved build, such as an instruction file.
fn no_prompt(name: &str) -> Failure {
    let name = visible_line(name);
    Failure::Usage {
        message: format!(
            "`{name}` is neither a request nor a saved build: `proem diff` compares prompts, not files"
        ),
        hint: format!(
            "`proem diff git:REVISION` shows what an edit does to the prompt; `proem compat {name}` says which agents read \
             the file"
        ),
    }
}

fn missing(name: &str) -> Failure {
    Failure::Server {
        message: format!("`{name}` is not a file, a conversation or epoch of the store, or a revision"),
        hint: "name a request file, a saved build, `CONVERSATION@EPOCH`, `git:REVISION`, or `now`".into(),
    }
}

fn is_saved(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Sign {
        #[serde(rename = "carriers")]
        _carriers: serde::de::IgnoredAny,
        #[serde(rename = "prefix_bytes")]
        _prefix_bytes: serde::de::IgnoredAny,
    }
    serde_json::from_str::<Sign>(text).is_ok()
}

/// Builds the prompt from a revision of the repository.
fn from_revision(name: &str, revision: &str, request: Request) -> Result<Snapshot, Failure> {
    let workspace = Workspace::open(request.cwd.as_deref())?;
    let failed = |why: RevisionError| Failure::Server {
        message: format!("cannot build {name} of {}: {why}", workspace.cwd()),
        hint: why.hint(),
    };
    let checkout = Revision::open(workspace.path(), revision).map_err(failed)?;
    let request = Request { cwd: Some(checkout.cwd().display().to_string()), ..request };
    let built = built(name, &request);
    // A missing object explains any other failure.
    match checkout.problem() {
        Some(problem) => Err(failed(problem)),
        None => Ok(built?.without_root(&checkout.root().display().to_string())),
    }
}

fn built(name: &str, request: &Request) -> Result<Snapshot, Failure> {
    let build = proem::build(request, Caller::User)?;
    Ok(Snapshot::new(name, build.frozen(), request, Some(env!("CARGO_PKG_VERSION"))))
}

/// Loads an epoch of a conversation; `None` if the store does not have it.
fn epoch(name: &str, store: &StoreFlags) -> Result<Option<Snapshot>, Failure> {
    let (id, number) = match name.rsplit_once('@') {
        Some((id, number)) => (id, number.parse::<u64>().ok()),
        None => (name, None),
    };
    if name.contains('@') && number.is_none() || !proem_store::is_conversation_id(id) {
        return Ok(None);
    }
    let Some(store) = open_known(store)? else { return Ok(None) };
    let conversations = Conversations::new(store.into(), Engine::new());
    let kept = match number {
        Some(number) => conversations.epoch(id, number)?.map(Arc::new),
        None => conversations.current(id)?,
    };
    Ok(kept.map(|kept| frozen(name, &kept)))
}

/// Makes a side of the comparison from a stored epoch.
pub(crate) fn frozen(name: &str, kept: &LoadedEpoch) -> Snapshot {
    let request = Request { model: kept.head.model.clone(), ..kept.request.clone() };
    Snapshot::new(name, &kept.frozen, &request, Some(&kept.head.engine))
        .with_template(kept.head.template_version, None)
}

/// The input of a report.
pub(crate) struct Report<'r> {
    pub(crate) a: &'r Snapshot,
    pub(crate) b: &'r Snapshot,
    pub(crate) request: &'r Request,
    /// The provider whose cache rules apply.
    pub(crate) provider: Option<&'r str>,
    pub(crate) context: usize,
    pub(crate) format: Format,
    /// The prices of a notice and of a rebuild, for a conversation.
    pub(crate) prices: Option<(Value, Value)>,
}

/// Prints a comparison. Returns `true` if there is a difference.
pub(crate) fn report(report: &Report<'_>) -> Result<bool, Failure> {
    let Report { a, b, request, .. } = report;
    let models = Models::load(request, Caller::User)?;
    let model = request.model.as_deref().and_then(|name| models.find(name));
    let tokenizer = model.map_or(Tokenizer::Estimate, Model::tokenizer);
    let layout = match report.provider {
        None => Layout::default(),
        Some(name) => Layout::for_provider(name, model, &models)?,
    };
    let mut comparison = compare_in(a, b, tokenizer, layout);
    if b.name == "now" {
        comparison.ask_times();
    }
    let lost = lost(&comparison, model);
    let names = (a.name.as_str(), b.name.as_str());
    let shape = ComparisonShape::new(names, &comparison, &lost, request.model.as_deref(), &models.as_of)
        .with_provider(report.provider);
    let differs = shape.first_difference.is_some();
    if report.format == Format::Json && report.prices.is_none() {
        return print_json(&shape).map(|()| differs);
    }
    let mut value = serde_json::to_value(&shape).map_err(|error| Failure::Output(error.into()))?;
    if report.format == Format::Json {
        if let Some((notice, rebuild)) = &report.prices {
            value["notice"] = notice.clone();
            value["rebuild"] = rebuild.clone();
        }
        return print_json(&value).map(|()| differs);
    }
    let page = Page {
        comparison: &value,
        texts: texts(a, b),
        context: report.context,
        without_model: "; name a model with `--model` for its price",
    };
    let prices = report.prices.as_ref().map_or_else(String::new, |(notice, rebuild)| prices(notice, rebuild));
    print(&(page.text() + &prices)).map(|()| differs)
}

/// Returns the carriers that differ.
fn texts<'s>(a: &'s Snapshot, b: &'s Snapshot) -> Vec<Texts<'s>> {
    fn find(side: &Snapshot, carrier: Carrier) -> &str {
        side.carriers.iter().find(|text| text.carrier == carrier).map_or("", |text| text.text.as_str())
    }
    let both = Carrier::ALL.into_iter().map(|carrier| Texts {
        carrier: carrier.word(),
        before: find(a, carrier),
        after: find(b, carrier),
    });
    both.filter(|texts| texts.before != texts.after).collect()
}
