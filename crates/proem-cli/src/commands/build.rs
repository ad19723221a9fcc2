//! `proem build`: the prompt's bytes on standard output, notes on standard error.

use std::path::Path;

use proem::Caller;
use proem::wire::BuildShape;
use proem_core::limit::TEMPLATE_BYTES_MAX;

use super::request::request;
use crate::arguments::{Build, Format};
use crate::failure::Failure;
use crate::input;
use crate::notes::print_notes;
use crate::terminal::{print_json, print_raw};

pub(super) fn run(arguments: &Build) -> Result<(), Failure> {
    let stdin = Some(Path::new("-"));
    if arguments.request.request.as_deref() == stdin && arguments.template.as_deref() == stdin {
        return Err(Failure::TwoReaders);
    }
    let mut request = request(&arguments.request)?;
    if arguments.profile.is_some() {
        request.profile.clone_from(&arguments.profile);
    }
    if let Some(path) = &arguments.template {
        request.template = Some(input::read(path, "template", TEMPLATE_BYTES_MAX)?);
        let is_stdin = Some(path.as_path()) == stdin;
        request.template_path =
            Some(if is_stdin { "standard input".into() } else { path.display().to_string() });
        // A flag overrides the request file, whichever way that file replaces the base.
        request.system = None;
        request.instruction = None;
    }
    let build = proem::build(&request, Caller::User)?;
    match arguments.format {
        Format::Json => print_json(&BuildShape::of(&build)),
        Format::Text => {
            if !arguments.quiet {
                print_notes(build.frozen.notes());
            }
            print_raw(build.system().unwrap_or_default())
        }
    }
}
