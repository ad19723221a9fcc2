//! `proem build`: the prompt's bytes on standard output, notes on standard error.

use proem::Caller;
use proem::wire::BuildShape;

use super::request::prompt_request;
use crate::annotated::annotated;
use crate::arguments::{Build, Format};
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
    match (arguments.annotate, Reader::of_standard_output()) {
        (false, _) => print_raw(build.system().unwrap_or_default()),
        (true, Reader::Person) => print(&annotated(&build, Reader::Person)),
        (true, Reader::Program) => print_raw(&annotated(&build, Reader::Program)),
    }
}
