//! `proem build`: the prompt's bytes on standard output, notes on standard error.

use proem::Caller;
use proem::wire::BuildShape;
use proem_core::carrier::Carrier;

use super::request::prompt_request;
use crate::annotated::annotated;
use crate::arguments::{Build, Format, Part};
use crate::failure::Failure;
use crate::terminal::{Reader, print, print_json, print_raw};

pub(super) fn run(arguments: &Build) -> Result<(), Failure> {
    if arguments.annotate && arguments.format == Format::Json {
        return Err(Failure::Flags {
            flag: "--annotate",
            other: "--format json",
            hint: "leave `--annotate` out: `spans` in the JSON holds the source of every byte",
        });
    }
    let build = proem::build(&prompt_request(&arguments.prompt)?, Caller::User)?;
    if arguments.format == Format::Json {
        return print_json(&BuildShape::of(&build));
    }
    arguments.notes.print(build.frozen.notes());
    if let Some(part) = arguments.part {
        return match part {
            Part::Prefix => print_raw(build.frozen.prefix()),
            Part::Suffix => print_raw(&build.suffix.text(Carrier::System)),
        };
    }
    match (arguments.annotate, Reader::of_standard_output()) {
        (false, _) => print_raw(build.system().unwrap_or_default()),
        (true, Reader::Person) => print(&annotated(&build, Reader::Person)),
        (true, Reader::Program) => print_raw(&annotated(&build, Reader::Program)),
    }
}
