//! Refuses values that no prompt can be built from, before a conversation remembers them: a change that waits is not built
//! at once, and would break every later build.

use super::wording::messages;
use crate::deliver::turn::provider_of;
use crate::error::Error;
use crate::observe::host::Host;
use crate::request::caller::Caller;
use crate::request::{Request, RequestUpdate};
use crate::sections::{base_text, scope, tools};
use crate::settings::world::World;

/// Checks the given values of a call.
pub(super) fn check_update(update: &RequestUpdate, caller: Caller) -> Result<(), Error> {
    let given = update.given();
    base_text::refuse_two(given)?;
    Host::observe(given, caller)?;
    tools::duplicates(given.tools.as_deref().unwrap_or_default())?;
    given.scope.as_ref().map_or(Ok(()), scope::check)?;
    messages::check(given)?;
    provider_of(given).map(drop)
}

/// Checks that the profile and the working directory of a call exist. `request` is the one after the call.
pub(super) fn check_surroundings(
    update: &RequestUpdate,
    request: &Request,
    caller: Caller,
) -> Result<(), Error> {
    Host::observe(update.given(), caller)?;
    if ["profile", "cwd", "workspace"].into_iter().any(|field| update.names(field)) {
        World::read(request, caller)?;
    }
    Ok(())
}
