//! `proem build`: the prompt's bytes on standard output, notes on standard error.

use std::mem::ManuallyDrop;
use std::path::Path;

use proem::build_shape::BuildShape;
use proem::deliver::{Delivered, Lifetime, Options, deliver};
use proem::models::Models;
use proem::stats::{Stats, stats};
use proem::{Build, Caller, RawMessage, Request};
use proem_core::carrier::Carrier;
use proem_core::limit::MESSAGES_BYTES_MAX;
use proem_core::note::Note;

use super::stats::page;
use crate::annotated::annotated;
use crate::arguments::request::prompt_request;
use crate::arguments::{Build as Arguments, DeliveryFlags, Format, Part, Ttl};
use crate::failure::Failure;
use crate::input;
use crate::notes::print_warning;
use crate::terminal::{Reader, print, print_json, print_raw};

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.annotate && arguments.output.format() == Format::Json {
        return Err(Failure::Flags {
            flag: "--annotate",
            other: "--format json",
            hint: "leave `--annotate` out: `spans` in the JSON holds the source of every byte",
        });
    }
    warn_of_idle_flags(arguments);
    let request =
        with_conversation(prompt_request(&arguments.prompt)?, &arguments.delivery, reads_input(arguments))?;
    // The process ends with this command: to take a prompt apart piece by piece would be in vain.
    let build = ManuallyDrop::new(proem::build(&request, Caller::User)?);
    let extras = Extras::of(arguments, &request, &build)?;
    if arguments.output.format() == Format::Json {
        return print_json(&extras.shape(&build, &request));
    }
    arguments.notes.print(build.frozen.notes());
    arguments.notes.print(&extras.notes());
    if let Some((stats, _)) = &extras.stats {
        return print(&page(stats));
    }
    if let Some(delivered) = &extras.delivered {
        return print_json(&delivered.payload);
    }
    print_prompt(arguments, &build)
}

/// Warns of flags that nothing follows from.
fn warn_of_idle_flags(arguments: &Arguments) {
    let DeliveryFlags { provider, ttl, cached_content, .. } = &arguments.delivery;
    if provider.is_some() || arguments.stats {
        return;
    }
    let given = [("--ttl", ttl.is_some()), ("--cached-content", cached_content.is_some())];
    for (flag, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        print_warning(&format!("`{flag}` has no effect without `--for` or `--stats`"));
    }
}

fn print_prompt(arguments: &Arguments, build: &Build) -> Result<(), Failure> {
    if let Some(part) = arguments.part {
        return match part {
            Part::Prefix => print_raw(build.frozen.prefix()),
            Part::Suffix => print_raw(&build.suffix.text(Carrier::System)),
        };
    }
    match (arguments.annotate, Reader::of_standard_output()) {
        (false, _) => print_raw(build.system().unwrap_or_default()),
        (true, Reader::Person) => print(&annotated(build, Reader::Person)),
        (true, Reader::Program) => print_raw(&annotated(build, Reader::Program)),
    }
}

/// What is asked for besides the prompt.
struct Extras {
    delivered: Option<Delivered>,
    stats: Option<(Stats, Vec<Note>)>,
}

impl Extras {
    fn of(arguments: &Arguments, request: &Request, build: &Build) -> Result<Self, Failure> {
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
        let of_delivery = self.delivered.iter().flat_map(|delivered| &delivered.notes);
        of_delivery.chain(self.stats.iter().flat_map(|(_, notes)| notes)).cloned().collect()
    }

    fn shape<'b>(&'b self, build: &'b Build, request: &'b Request) -> BuildShape<'b> {
        let mut shape = BuildShape::of(build).with_request(request);
        if let Some(delivered) = &self.delivered {
            shape = shape.with_delivery(delivered);
        }
        if let Some((stats, notes)) = &self.stats {
            shape = shape.with_stats(stats, notes);
        }
        shape
    }
}

/// Tells whether standard input is the request or the template.
fn reads_input(arguments: &Arguments) -> bool {
    let stdin = Some(Path::new("-"));
    arguments.prompt.request.request.as_deref() == stdin || arguments.prompt.template.as_deref() == stdin
}

/// The request with the conversation that the flags give.
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

fn options(flags: &DeliveryFlags) -> Options {
    let lifetime = match flags.ttl {
        None | Some(Ttl::Short) => Lifetime::Short,
        Some(Ttl::Hour) => Lifetime::Hour,
    };
    Options { lifetime, cached_content: flags.cached_content.clone() }
}
