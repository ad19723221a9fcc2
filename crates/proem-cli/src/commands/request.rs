//! Puts the request together: the file first, then the flags over it.

use proem::{Pin, Request};
use proem_core::limit::REQUEST_BYTES_MAX;

use crate::arguments::RequestFlags;
use crate::failure::Failure;
use crate::input;

/// The request that the flags describe.
pub(super) fn request(flags: &RequestFlags) -> Result<Request, Failure> {
    let mut request = match &flags.request {
        Some(path) => Request::from_json(&input::read(path, "request", REQUEST_BYTES_MAX)?)?,
        None => Request::default(),
    };
    let over = |own: &mut Option<String>, said: &Option<String>| {
        if said.is_some() {
            own.clone_from(said);
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
    Ok(request)
}
