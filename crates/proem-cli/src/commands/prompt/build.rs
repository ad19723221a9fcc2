//! `proem build`: prints the bytes of the prompt to standard output, and notes to standard error.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use proem::build_shape::BuildShape;
use proem::deliver::{DeliverOptions, Delivery, Lifetime, ProviderName, deliver};
use proem::models::Models;
use proem::stats::{Stats, stats};
use proem::{Build, Caller, Engine, RawMessage, Request};
use proem_core::carrier::Carrier;
use proem_core::limit::MESSAGES_BYTES_MAX;
use proem_core::note::Note;
use proem_store::Conversations;

use super::stats::page;
use crate::annotated::annotated;
use crate::arguments::request::prompt_request;
use crate::arguments::store::open;
use crate::arguments::{Format, NoteFlags, Output, PromptFlags, Providers, StoreFlags};
use crate::failure::Failure;
use crate::input;
use crate::notes::print_warning;
use crate::paths::Paths;
use crate::table::grouped;
use crate::terminal::{Reader, output_columns, print, print_json, print_raw};

/// Print the prompt, byte for byte
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BuildArguments {
    #[command(flatten)]
    prompt: PromptFlags,
    #[command(flatten)]
    output: Output<Format>,
    /// Print the text of every carrier, with the source of each line in the left margin
    #[arg(long)]
    annotate: bool,
    /// Print only one side of the boundary
    #[arg(long, value_enum, conflicts_with = "annotate")]
    part: Option<Part>,
    #[command(flatten)]
    delivery: DeliveryFlags,
    /// Print tokens by section and carrier, what is cached, and the cost of a turn
    #[arg(long, conflicts_with_all = ["annotate", "part"])]
    stats: bool,
    /// Store whose template is the base, where the profile takes it: a file, `sqlite:FILE`, or `postgres://USER@HOST/DATABASE`
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    #[command(flatten)]
    notes: NoteFlags,
}

const EXAMPLES: &str = "\
Examples:
  proem build                  Print the prompt of this directory
  proem build --annotate       Print it with the source of each line
  proem build --stats --model claude-opus-5
                               Print tokens, cached parts and costs
  proem build --for anthropic --prompt 'Fix the tests'
                               Print a request for a provider as JSON";

/// A side of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The frozen text before the boundary
    Prefix,
    /// The text of this turn after the boundary
    Suffix,
}

/// Flags for a request to a provider.
#[derive(Debug, Args)]
struct DeliveryFlags {
    /// Print the parts of a request to this provider, as JSON
    #[arg(long = "for", value_name = "PROVIDER", value_parser = Providers, conflicts_with_all = ["annotate", "part"])]
    provider: Option<&'static ProviderName>,
    /// Earlier messages, newest last, as a JSON list or JSON lines; `-` reads standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    messages: Option<PathBuf>,
    /// Message of the user in this turn
    #[arg(long, visible_alias = "prompt", value_name = "TEXT")]
    prompt_text: Option<String>,
    /// Lifetime of the frozen part in the provider's cache [default: 5m]
    #[arg(long, value_enum)]
    ttl: Option<TtlFlag>,
    /// Name of the cached content at Gemini that holds the system prompt and the tools
    #[arg(long, value_name = "NAME")]
    cached_content: Option<String>,
}

/// Lifetimes of the frozen part in a provider's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TtlFlag {
    /// Five minutes after the last use
    #[value(name = "5m")]
    Short,
    /// One hour
    #[value(name = "1h")]
    Hour,
}

pub(crate) fn run(arguments: &BuildArguments) -> Result<(), Failure> {
    if arguments.annotate && arguments.output.format() == Format::Json {
        return Err(Failure::Flags {
            flag: "--annotate",
            other: "--format json",
            hint: "leave `--annotate` out: `spans` in the JSON holds the source of every byte",
        });
    }
    warn_about_idle_flags(arguments);
    let request =
        with_conversation(prompt_request(&arguments.prompt)?, &arguments.delivery, reads_input(arguments))?;
    let build = match &arguments.store {
        Some(store) => {
            let store = open(&StoreFlags { store: Some(store.clone()) })?;
            Conversations::new(store.into(), Engine::new()).prompt(&request, Caller::User)?
        }
        None => proem::build(&request, Caller::User)?,
    };
    let extras = Extras::new(arguments, &request, &build)?;
    if arguments.output.format() == Format::Json {
        return print_json(&extras.shape(&build, &request));
    }
    arguments.notes.print(build.notes());
    arguments.notes.print(&extras.notes());
    if let Some((stats, _)) = &extras.stats {
        return print(&page(stats));
    }
    if let Some(delivered) = &extras.delivered {
        return print_json(&delivered.payload);
    }
    print_prompt(arguments, &build, &request)
}

/// Warns about flags that have no effect.
fn warn_about_idle_flags(arguments: &BuildArguments) {
    let DeliveryFlags { provider, ttl, cached_content, .. } = &arguments.delivery;
    if provider.is_some() || arguments.stats {
        return;
    }
    let given = [("--ttl", ttl.is_some()), ("--cached-content", cached_content.is_some())];
    for (flag, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        print_warning(&format!("`{flag}` has no effect without `--for` or `--stats`"));
    }
}

fn print_prompt(arguments: &BuildArguments, build: &Build, request: &Request) -> Result<(), Failure> {
    if !arguments.annotate && arguments.part.is_none() {
        arguments.notes.print_always(empty_system(build).as_deref());
    }
    if let Some(part) = arguments.part {
        return match part {
            Part::Prefix => print_raw(build.frozen().prefix()),
            Part::Suffix => print_raw(&build.suffix().text(Carrier::System)),
        };
    }
    if !arguments.annotate {
        return print_raw(build.system().unwrap_or_default());
    }
    let paths = Paths::from_request(request)?;
    match Reader::from_stdout() {
        reader @ Reader::Person => print(&annotated(build, reader, &paths, output_columns())),
        reader @ Reader::Program => print_raw(&annotated(build, reader, &paths, None)),
    }
}

/// Says where the prompt is when the system carrier, which is all that is printed, has no text.
fn empty_system(build: &Build) -> Option<String> {
    let has_system = build.system().is_some_and(|text| !text.is_empty());
    let sized = |(carrier, text): (Carrier, &str)| format!("{carrier} ({} bytes)", grouped(text.len()));
    let others: Vec<String> =
        build.whole().carriers().filter(|(_, text)| !text.is_empty()).map(sized).collect();
    if has_system || others.is_empty() {
        return None;
    }
    Some(format!(
        "the system carrier is empty, and nothing else is printed: the prompt is on {}; `--annotate` shows its text, \
         `--format json` has every carrier, and `--for PROVIDER` the request",
        others.join(" and ")
    ))
}

/// Results of `--for` and `--stats`.
struct Extras {
    delivered: Option<Delivery>,
    stats: Option<(Stats, Vec<Note>)>,
}

impl Extras {
    fn new(arguments: &BuildArguments, request: &Request, build: &Build) -> Result<Self, Failure> {
        let flags = &arguments.delivery;
        if flags.provider.is_none() && !arguments.stats {
            return Ok(Self { delivered: None, stats: None });
        }
        let models = Models::load(request, Caller::User)?;
        let options = options(flags);
        let delivered = flags.provider.map(|name| deliver(name.provider, build, request, &models, &options));
        let stats = arguments.stats.then(|| stats(build, request, flags.provider, &models, &options));
        Ok(Self { delivered: delivered.transpose()?, stats: stats.transpose()? })
    }

    fn notes(&self) -> Vec<Note> {
        let delivery = self.delivered.iter().flat_map(|delivered| &delivered.notes);
        delivery.chain(self.stats.iter().flat_map(|(_, notes)| notes)).cloned().collect()
    }

    fn shape<'b>(&'b self, build: &'b Build, request: &'b Request) -> BuildShape<'b> {
        let mut shape = BuildShape::new(build).with_request(request);
        if let Some(delivered) = &self.delivered {
            shape = shape.with_delivery(delivered);
        }
        if let Some((stats, notes)) = &self.stats {
            shape = shape.with_stats(stats, notes);
        }
        shape
    }
}

/// Returns `true` if standard input is the request or the template.
fn reads_input(arguments: &BuildArguments) -> bool {
    let stdin = Some(Path::new("-"));
    arguments.prompt.request.request.as_deref() == stdin || arguments.prompt.template.as_deref() == stdin
}

/// Adds the messages of the flags to the request.
fn with_conversation(
    mut request: Request,
    flags: &DeliveryFlags,
    reads_input: bool,
) -> Result<Request, Failure> {
    if let Some(path) = &flags.messages {
        if path == Path::new("-") && reads_input {
            return Err(Failure::TwoReaders);
        }
        let text = input::read(path, "messages", MESSAGES_BYTES_MAX)?;
        request.messages = Some(RawMessage::list(&text)?);
    }
    if flags.prompt_text.is_some() {
        request.prompt.clone_from(&flags.prompt_text);
    }
    Ok(request)
}

fn options(flags: &DeliveryFlags) -> DeliverOptions {
    let lifetime = match flags.ttl {
        None | Some(TtlFlag::Short) => Lifetime::Short,
        Some(TtlFlag::Hour) => Lifetime::Hour,
    };
    DeliverOptions { lifetime, cached_content: flags.cached_content.clone() }
}
