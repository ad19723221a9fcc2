//! The form of a payload by its keys. A request that was made for one API says little about the cache of another.

use super::SentRequest;
use crate::deliver::{Provider, ProviderName};
use crate::request::raw_json::field;

/// Doubts about requests that do not have the form of the provider whose cache is followed, the first one named.
pub(super) fn warnings(cache: &str, sent: &[SentRequest]) -> Vec<String> {
    let forms = forms(cache);
    let other = |(index, request): (usize, &SentRequest)| {
        let fields = request.payload.fields().ok()?;
        let found = Provider::by_fields(|key| field(&fields, key).is_some());
        let is_other = !forms.is_empty() && !forms.iter().any(|form| found.contains(form));
        Some((index, *found.first().filter(|_| is_other)?))
    };
    let mut others = sent.iter().enumerate().filter_map(other);
    let Some((index, found)) = others.next() else { return Vec::new() };
    let more = match others.count() {
        0 => String::new(),
        1 => ", and 1 more is not either".to_owned(),
        some => format!(", and {some} more are not either"),
    };
    vec![format!(
        "request {} is not in the form of {cache}: it looks like one of {found}{more}; make it with `proem build --for {cache}`",
        index + 1
    )]
}

/// The forms of the requests that a cache is filled by; none for a cache that proem does not know.
fn forms(cache: &str) -> Vec<Provider> {
    let row = ProviderName::find(cache).map_or(Some(cache), |name| name.cache);
    let own = ProviderName::all().filter(|name| name.cache.is_some() && name.cache == row);
    own.map(|name| name.provider).collect()
}
