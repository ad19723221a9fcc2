//! `proem diff`: where two prompts part, whose byte it is, why, and what it costs.

use std::path::Path;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use proem::doctor::{
    ChangedLine, Comparison, ComparisonShape, Difference, Layout, Lost, Owner, Side, Snapshot, changed_lines,
    compare_in, lost,
};
use proem::models::{Model, Models};
use proem::tokens::Tokenizer;
use proem::{Caller, Engine, Error, Request, Revision, RevisionError, Workspace};
use proem_core::carrier::Carrier;
use proem_core::limit::REQUEST_BYTES_MAX;
use proem_store::{Conversations, Kept};

use super::compared;
use super::conversation::encoded;
use super::request::prompt_request;
use super::store::open_known;
use crate::arguments::{Diff, Format, StoreFlags};
use crate::failure::Failure;
use crate::input;
use crate::remote::Remote;
use crate::terminal::{output_columns, print, print_json, visible, visible_line};
use crate::wrap::flow;

/// Largest saved build: a prompt and the sources of its bytes.
const SAVED_BYTES_MAX: usize = 64 << 20;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

pub(super) fn run(arguments: &Diff) -> Result<(), Failure> {
    if let Some(url) = &arguments.server.url {
        return of_server(arguments, url);
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
    })
    .map(drop)
}

/// Asks a server to compare two epochs of one of its conversations.
fn of_server(arguments: &Diff, url: &str) -> Result<(), Failure> {
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
            message: format!("`{}` and `{}` are of two conversations", visible_line(&a), visible_line(&b)),
            hint: "name two epochs of one conversation".into(),
        });
    }
    let answer =
        Remote::new(url)?.get(&format!("/conversations/{}/diff?from={from}&to={to}", encoded(&a)))?;
    compared::show(&answer["comparison"], arguments.output.format()).map(drop)
}

/// One prompt, by what the user calls it.
fn side(
    name: &str,
    now: &dyn Fn() -> Result<Request, Failure>,
    store: &StoreFlags,
) -> Result<Snapshot, Failure> {
    if name == "now" {
        return built(name, &now()?);
    }
    if let Some(revision) = name.strip_prefix("git:") {
        return of_revision(name, revision, now()?);
    }
    if let Some(id) = name.strip_prefix("conversation:") {
        return epoch(id, store)?.ok_or_else(|| missing(name));
    }
    let path = Path::new(name);
    if path.is_file() || name == "-" {
        let text = input::read(path, "prompt", SAVED_BYTES_MAX)?;
        if is_saved(&text) {
            return Snapshot::read(name, &text).map_err(|error| Failure::Input {
                what: "saved build",
                path: name.to_owned(),
                why: error.to_string(),
            });
        }
        if text.len() > REQUEST_BYTES_MAX {
            let why = format!("it is no saved build, and a request has at most {REQUEST_BYTES_MAX} bytes");
            return Err(Failure::Input { what: "request", path: name.to_owned(), why });
        }
        if !text.trim_start().starts_with('{') {
            return Err(no_prompt(name));
        }
        return built(name, &Request::from_json(&text)?);
    }
    stored_or_committed(name, now()?, store)
}

/// A name without a prefix that is not a file: an epoch of a conversation, or a revision. Both are looked for, because a
/// conversation is easily called like a branch.
fn stored_or_committed(name: &str, request: Request, store: &StoreFlags) -> Result<Snapshot, Failure> {
    let frozen = epoch(name, store)?;
    let workspace = Workspace::open(request.cwd.as_deref())?;
    match (frozen, Revision::exists(workspace.path(), name)) {
        (Some(_), true) => Err(Failure::Build(Error::Usage {
            message: format!("`{name}` is a conversation of the store and a revision of the repository"),
            hint: format!("write `conversation:{name}` or `git:{name}`"),
        })),
        (Some(frozen), false) => Ok(frozen),
        (None, true) => of_revision(name, name, request),
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

/// What would have been built at a revision of the repository.
fn of_revision(name: &str, revision: &str, request: Request) -> Result<Snapshot, Failure> {
    let workspace = Workspace::open(request.cwd.as_deref())?;
    let failed = |why: RevisionError| Failure::Server {
        message: format!("cannot build {name} of {}: {why}", workspace.cwd()),
        hint: why.hint(),
    };
    let laid = Revision::open(workspace.path(), revision).map_err(failed)?;
    let request = Request { cwd: Some(laid.cwd().display().to_string()), ..request };
    let built = built(name, &request);
    // An object that is missing explains whatever else went wrong.
    match laid.problem() {
        Some(problem) => Err(failed(problem)),
        None => Ok(built?.without_root(&laid.root().display().to_string())),
    }
}

fn built(name: &str, request: &Request) -> Result<Snapshot, Failure> {
    let build = proem::build(request, Caller::User)?;
    Ok(Snapshot::of(name, &build.frozen, request, Some(env!("CARGO_PKG_VERSION"))))
}

/// An epoch of a conversation; `None` where the store has none of that name.
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

/// A kept epoch as one side.
pub(super) fn frozen(name: &str, kept: &Kept) -> Snapshot {
    let request = Request { model: kept.head.model.clone(), ..kept.request.clone() };
    Snapshot::of(name, &kept.frozen, &request, Some(&kept.head.engine))
}

/// What is to be told.
pub(super) struct Report<'r> {
    pub(super) a: &'r Snapshot,
    pub(super) b: &'r Snapshot,
    pub(super) request: &'r Request,
    /// Whose cache it is.
    pub(super) provider: Option<&'r str>,
    pub(super) context: usize,
    pub(super) format: Format,
}

/// Prints what is to be told; tells whether anything differs.
pub(super) fn report(report: &Report<'_>) -> Result<bool, Failure> {
    let Report { a, b, request, .. } = report;
    let models = Models::load(request, Caller::User)?;
    let model = request.model.as_deref().and_then(|name| models.find(name));
    let tokenizer = model.map_or(Tokenizer::Estimate, Model::tokenizer);
    let layout = match report.provider {
        None => Layout::default(),
        Some(name) => Layout::of(name, model, &models)?,
    };
    let mut comparison = compare_in(a, b, tokenizer, layout);
    if b.name == "now" {
        comparison.ask_times();
    }
    let lost = lost(&comparison, model);
    if report.format == Format::Json {
        let names = (a.name.as_str(), b.name.as_str());
        let shape = ComparisonShape::of(names, &comparison, &lost, request.model.as_deref(), &models.as_of);
        let differs = shape.first_difference.is_some();
        return print_json(&shape.with_provider(report.provider)).map(|()| differs);
    }
    let mut text = summary(report, &comparison, &lost, &models.as_of);
    if report.context > 0 {
        text.push_str(&texts(a, b, report.context));
    }
    print(&text).map(|()| !comparison.differences.is_empty())
}

fn summary(report: &Report<'_>, comparison: &Comparison, lost: &Lost, as_of: &str) -> String {
    let (a, b) = (visible_line(&report.a.name), visible_line(&report.b.name));
    let Some(first) = comparison.differences.first() else {
        return format!(
            "{a} and {b} are the same: {} bytes that a cache can hold\n",
            comparison.common_bytes
        );
    };
    let cause = visible_line(&capitalised(&first.cause.to_string()));
    let mut text = flow(&format!("{BOLD}{cause}{BOLD:#}\n\n"), output_columns(), "");
    let width = output_columns();
    let mut row = |title: &str, value: &str| {
        text.push_str(&flow(&format!("{DIM}{title:<14}{DIM:#}  {value}\n"), width, "                "));
    };
    row("common prefix", &format!("{} bytes, {} tokens", comparison.common_bytes, comparison.common_tokens));
    row("parts at", &format!("byte {} of the {}", first.byte, place(first)));
    row("in A", &described(first.a.as_ref(), &a));
    row("in B", &described(first.b.as_ref(), &b));
    if let Some(time) = &first.edited_at {
        row("written at", time);
    }
    row("reason", first.reason.word());
    let money = match (lost.usd, &report.request.model) {
        (Some(usd), Some(model)) => format!(", ${usd:.6} with {model} (prices of {as_of})"),
        (None, Some(model)) => format!(", no price is known for {}", visible_line(model)),
        (_, None) => "; name a model with `--model` for its price".to_owned(),
    };
    let cache =
        report.provider.map_or_else(String::new, |name| format!(" of {}'s cache", visible_line(name)));
    let least = if comparison.lacks_tools { "at least " } else { "" };
    row("lost per call", &format!("{least}{} tokens{cache}{money}", lost.tokens));
    row("counted", &comparison.counted);
    if comparison.lacks_tools {
        row("", "without the tools, of which a saved build of an older proem has only the digest");
    }
    if comparison.differences.len() > 1 {
        text.push_str(&format!("\n{DIM}further{DIM:#}\n"));
        for further in comparison.differences.iter().skip(1) {
            let cause = visible_line(&further.cause.to_string());
            let (kind, place) = (further.kind.word(), place(further));
            let line = format!("  {kind:<8}  {place} at byte {}: {cause}\n", further.byte);
            text.push_str(&flow(&line, width, "            "));
        }
    }
    text
}

fn place(difference: &Difference) -> String {
    match difference.carrier {
        Some(carrier) => format!("{} carrier", carrier.word()),
        None => "tools".into(),
    }
}

fn described(owner: Option<&Owner>, side: &str) -> String {
    match owner {
        None => format!("nothing of it ({side})"),
        Some(owner) => {
            let section = owner.section.as_ref().map_or_else(String::new, |id| format!(", section {id}"));
            visible_line(&format!("{}{section}", owner.describe()))
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().filter(char::is_ascii_lowercase);
    first
        .map_or_else(|| text.to_owned(), |first| first.to_ascii_uppercase().to_string() + characters.as_str())
}

/// The texts that differ, line by line.
fn texts(a: &Snapshot, b: &Snapshot, context: usize) -> String {
    fn find(side: &Snapshot, carrier: Carrier) -> &str {
        side.carriers.iter().find(|text| text.carrier == carrier).map_or("", |text| text.text.as_str())
    }
    let mut shown = String::new();
    for carrier in Carrier::ALL {
        let (before, after) = (find(a, carrier), find(b, carrier));
        if before != after {
            shown.push_str(&format!("\n{DIM}--- {}{DIM:#}\n", carrier.word()));
            shown.push_str(&hunks(before, after, context));
        }
    }
    shown
}

fn hunks(before: &str, after: &str, context: usize) -> String {
    let mut shown = String::new();
    for (index, group) in changed_lines(before, after, context).iter().enumerate() {
        if index > 0 {
            shown.push_str(&format!("{DIM}…{DIM:#}\n"));
        }
        for ChangedLine { side, text } in group {
            let (sign, style) = match side {
                Side::Before => ("-", AnsiColor::Red.on_default()),
                Side::After => ("+", AnsiColor::Green.on_default()),
                Side::Both => (" ", Style::new()),
            };
            let end = if text.ends_with('\n') { "" } else { " (no line break)" };
            shown.push_str(&format!("{style}{sign}{}{end}{style:#}\n", visible(text.trim_end_matches('\n'))));
        }
    }
    shown
}
