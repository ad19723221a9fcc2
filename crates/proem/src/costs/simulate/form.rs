//! The form of a payload by its keys. A request that was made for one API says little about the cache of another.

use super::Sent;
use crate::deliver::{Provider, ProviderName};
use crate::request::raw_json::{Fields, field};

/// Doubts about requests that do not have the form of the provider whose cache is followed, the first one named.
pub(super) fn warnings(cache: &str, sent: &[Sent]) -> Vec<String> {
    let forms = forms(cache);
    let other = |(index, request): (usize, &Sent)| {
        let found = form_of(&request.payload.fields().ok()?)?;
        (!forms.is_empty() && !forms.iter().any(|form| found.contains(form))).then_some((index, found))
    };
    let mut others = sent.iter().enumerate().filter_map(other);
    let Some((index, found)) = others.next() else { return Vec::new() };
    let more = match others.count() {
        0 => String::new(),
        1 => ", and 1 more is not either".to_owned(),
        some => format!(", and {some} more are not either"),
    };
    let word = found.first().map_or("", |form| form.word());
    vec![format!(
        "request {} is not in the form of {cache}: it looks like one of {word}{more}; make it with `proem build --for {cache}`",
        index + 1
    )]
}

/// The forms of the requests that a cache is filled by; none for a cache that proem does not know.
fn forms(cache: &str) -> Vec<Provider> {
    let row = ProviderName::find(cache).map_or(Some(cache), |name| name.cache);
    let own = ProviderName::all().filter(|name| name.cache.is_some() && name.cache == row);
    own.map(|name| name.provider).collect()
}

/// The forms that a payload can have by its keys; `None` where they do not tell.
fn form_of(fields: &Fields) -> Option<&'static [Provider]> {
    let has = |key: &str| field(fields, key).is_some();
    if has("contents") || has("systemInstruction") {
        Some(&[Provider::Gemini])
    } else if has("input") || has("instructions") {
        Some(&[Provider::OpenAiResponses])
    } else if has("modelId") || has("toolConfig") || has("inferenceConfig") {
        Some(&[Provider::Bedrock])
    } else if has("system") && has("messages") {
        Some(&[Provider::Anthropic, Provider::Bedrock])
    } else if has("messages") {
        Some(&[Provider::OpenAiChat, Provider::DeepSeek, Provider::Anthropic, Provider::Bedrock])
    } else {
        None
    }
}
