//! Builds the request from the request file and the flags, which override it.

use std::path::Path;

use proem::request::RequestUpdate;
use proem::{OneOrMany, Pin, Request, Tool};
use proem_core::limit::{REQUEST_BYTES_MAX, TEMPLATE_BYTES_MAX};

use crate::arguments::{PromptFlags, RequestFlags};
use crate::failure::Failure;
use crate::input;
use crate::notes::print_warning;
use crate::terminal::visible_line;

/// Builds the request for a prompt: the fields of every request, then profile, base, tools and packs.
pub(crate) fn prompt_request(flags: &PromptFlags) -> Result<Request, Failure> {
    check_stdin(flags)?;
    with_prompt_flags(request(&flags.request)?, flags)
}

/// Builds the update of a conversation: the fields of the request file, in which `null` removes one, then the flags.
pub(crate) fn prompt_update(flags: &PromptFlags) -> Result<RequestUpdate, Failure> {
    check_stdin(flags)?;
    let update = update(flags.request.request.as_deref())?;
    let request = with_request_flags(update.given().clone(), &flags.request);
    Ok(update.with_given(with_prompt_flags(request, flags)?))
}

/// Reads the update of a conversation from a file, if one is named.
pub(crate) fn update(file: Option<&Path>) -> Result<RequestUpdate, Failure> {
    Ok(match file {
        Some(path) => RequestUpdate::from_json(&input::read(path, "request", REQUEST_BYTES_MAX)?)?,
        None => RequestUpdate::default(),
    })
}

fn check_stdin(flags: &PromptFlags) -> Result<(), Failure> {
    let stdin = Some(Path::new("-"));
    if flags.request.request.as_deref() == stdin && flags.template.as_deref() == stdin {
        return Err(Failure::TwoReaders);
    }
    Ok(())
}

fn with_prompt_flags(mut request: Request, flags: &PromptFlags) -> Result<Request, Failure> {
    let stdin = Some(Path::new("-"));
    if flags.profile.is_some() {
        request.profile.clone_from(&flags.profile);
    }
    if let Some(path) = &flags.template {
        request.template = Some(input::read(path, "template", TEMPLATE_BYTES_MAX)?);
        let is_stdin = Some(path.as_path()) == stdin;
        request.template_path =
            Some(if is_stdin { "standard input".into() } else { path.display().to_string() });
        // The flag overrides every field of the request file that replaces the base.
        request.system = None;
        request.instruction = None;
    }
    if flags.instruction.is_some() {
        request.instruction.clone_from(&flags.instruction);
        request.system = None;
        request.template = None;
    }
    if let Some(text) = &flags.system {
        request.system = Some(text_or_file(text, "base")?);
        request.template = None;
        request.instruction = None;
    }
    if !flags.append.is_empty() {
        let texts = flags.append.iter().map(|text| text_or_file(text, "text to append"));
        request.append = Some(OneOrMany::Many(texts.collect::<Result<_, _>>()?));
    }
    if let Some(names) = &flags.tools {
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        request.tools = Some(names.map(|name| Tool { name: name.to_owned(), ..Tool::default() }).collect());
    }
    if !flags.packs.is_empty() {
        request.packs = Some(flags.packs.clone());
    }
    Ok(request)
}

/// Reads the file of this name if there is one; otherwise returns the value itself.
fn text_or_file(value: &str, what: &'static str) -> Result<String, Failure> {
    let path = Path::new(value);
    if path.is_file() {
        return input::read(path, what, TEMPLATE_BYTES_MAX);
    }
    let is_one_word = !value.contains(char::is_whitespace);
    if is_one_word && (value.contains('/') || path.extension().is_some_and(|extension| !extension.is_empty()))
    {
        print_warning(&format!("`{}` is not a file; it is used as text", visible_line(value)));
    }
    Ok(value.to_owned())
}

/// Builds the request that the flags describe.
pub(crate) fn request(flags: &RequestFlags) -> Result<Request, Failure> {
    let request = match &flags.request {
        Some(path) => Request::from_json(&input::read(path, "request", REQUEST_BYTES_MAX)?)?,
        None => Request::default(),
    };
    Ok(with_request_flags(request, flags))
}

fn with_request_flags(mut request: Request, flags: &RequestFlags) -> Request {
    let over = |own: &mut Option<String>, flag: &Option<String>| {
        if flag.is_some() {
            own.clone_from(flag);
        }
    };
    over(&mut request.cwd, &flags.cwd);
    over(&mut request.model, &flags.model);
    if let Some(now) = &flags.now {
        request.host.now = Pin::Given(now.clone());
    }
    for (key, value) in &flags.variables {
        request.variables.insert(key.clone(), Some(value.clone()));
    }
    for key in &flags.absent {
        request.variables.insert(key.clone(), None);
    }
    request
}
