//! A preview of a prompt while its template is edited: the result of each tag, and its cost.

use std::ops::Range;

use proem_core::bracket::outline::Outline;
use proem_core::carrier::Carrier;
use proem_core::rendered::Span;
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::Offsets;

use crate::build::Build;
use crate::engine::Engine;
use crate::error::Error;
use crate::request::Request;
use crate::request::caller::Caller;
use crate::sections::build_state::BuildState;
use crate::settings::models::Model;
use crate::settings::tokens::Tokenizer;

/// The most values whose cost is reported.
const BREAKS_MAX: usize = 50;

/// A prompt, and the structure of the template that the request brings.
#[derive(Debug)]
pub struct Preview {
    /// The prompt.
    pub build: Build,
    /// The structure; empty when the request brings no bracket template.
    pub outline: Outline,
}

impl Engine {
    /// Builds a prompt and keeps the structure of the request's template.
    pub fn preview(&self, request: &Request, caller: Caller) -> Result<Preview, Error> {
        let mut memory = BuildState { outline: Some(Outline::default()), ..BuildState::default() };
        let build = self.build_with(request, caller, &mut memory)?;
        Ok(Preview { build, outline: memory.outline.unwrap_or_default() })
    }
}

/// Finds the bytes of the request's template that sources name.
pub struct Ranges<'t> {
    offsets: Offsets<'t>,
    outline: &'t Outline,
}

impl<'t> Ranges<'t> {
    /// Looks in a template and its structure.
    #[must_use]
    pub const fn new(template: &'t str, outline: &'t Outline) -> Self {
        Self { offsets: Offsets::new(template), outline }
    }

    /// The bytes that put a span where it is: a tag, or text that was copied.
    pub fn of_span(&mut self, span: &Span) -> Option<Range<usize>> {
        if let Some(template) = &span.template {
            return self.tag(template);
        }
        let start = self.offset(&span.source)?;
        Some(start..start + span.bytes.len())
    }

    /// The tag at a place; just the place when no tag begins there.
    pub fn tag(&mut self, source: &Source) -> Option<Range<usize>> {
        let start = self.offset(source)?;
        let found = self.outline.tags.binary_search_by_key(&start, |tag| tag.bytes.start);
        let tag = found.ok().and_then(|index| self.outline.tags.get(index));
        Some(tag.map_or(start..start, |tag| tag.bytes.clone()))
    }

    fn offset(&mut self, source: &Source) -> Option<usize> {
        match source {
            Source::Request { field, place: Some(place) } if **field == *"template" => {
                self.offsets.at(*place)
            }
            _ => None,
        }
    }
}

/// A value that changes more often than the prefix may.
#[derive(Debug, Clone, PartialEq)]
pub struct Break {
    /// The origin.
    pub source: Source,
    /// The tag that put it there.
    pub template: Option<Source>,
    /// The stability.
    pub stability: Stability,
    /// The carrier.
    pub carrier: Carrier,
    /// The position in the carrier's text, in bytes.
    pub byte: usize,
    /// The position in tokens.
    pub token: usize,
    /// The tokens from there to the end of the carrier.
    pub lost_tokens: usize,
    /// The additional cost in dollars when they are not read from the cache.
    pub usd: Option<f64>,
}

impl Break {
    /// Returns the message for the author.
    #[must_use]
    pub fn message(&self) -> String {
        format!(
            "{} stands at token {} and changes {}: rebuilding the prompt then loses {} cached tokens; move \
             it to the turn carrier, or as far down as possible",
            self.source,
            self.token,
            self.stability.rhythm(),
            self.lost_tokens,
        )
    }
}

/// Finds the values of a frozen prompt that change too often, and their cost with a model.
#[must_use]
pub fn breaks(build: &Build, model: Option<&Model>) -> Vec<Break> {
    let tokenizer = model.map_or(Tokenizer::Estimate, Model::tokenizer);
    let body = build.frozen().body();
    let found = body.volatile().take(BREAKS_MAX).map(|(carrier, span)| {
        let text = body.text(carrier).unwrap_or_default();
        let (before, behind) = text.split_at_checked(span.bytes.start).unwrap_or((text, ""));
        let lost_tokens = tokenizer.count(behind);
        Break {
            source: span.source.without_place(),
            template: span.template.clone(),
            stability: span.stability,
            carrier,
            byte: span.bytes.start,
            token: tokenizer.count(before),
            lost_tokens,
            usd: model.and_then(|model| model.cost_of_missing(lost_tokens)),
        }
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::request::Request;
    use crate::request::caller::Caller;

    fn previewed(template: &str) -> Preview {
        let json = serde_json::json!({ "profile": "template", "template": template, "cwd": "/" });
        let request = Request::from_json(&json.to_string()).expect("the request is well-formed");
        Engine::new().preview(&request, Caller::User).expect("nothing is refused")
    }

    /// An editor sends the profile's own template back until it is edited.
    #[test]
    fn the_profiles_own_template_stays_the_same_from_release_to_release() {
        let own = include_str!("../../../proem-core/builtin/template/base.md");
        let stability = |template: &str| {
            let Preview { build, .. } = previewed(template);
            build.whole().spans(Carrier::System).first().map(|span| span.stability)
        };
        assert_eq!(stability(own), Some(Stability::Release));
        assert_eq!(stability(&format!("{own}more")), Some(Stability::Session));
    }

    #[test]
    fn spans_lead_back_to_the_bytes_of_the_template() {
        let template = "Grüße 🦀 [system:clock]\n[if git:branch]on[else]off[endif] end";
        let Preview { build, outline } = previewed(template);
        let mut ranges = Ranges::new(template, &outline);
        let spans = build.whole().spans(Carrier::System).iter();
        let made: Vec<&str> = spans.filter_map(|span| template.get(ranges.of_span(span)?)).collect();
        assert_eq!(made, ["Grüße 🦀 ", "[system:clock]", "\n", "off", " end"]);
        assert_eq!(outline.unused.first().and_then(|range| template.get(range.clone())), Some("on"));
    }

    #[test]
    fn a_clock_costs_what_stands_behind_it() {
        let Preview { build, .. } = previewed("Twelve bytes[system:clock] and text");
        let found = breaks(&build, None);
        let [one] = found.as_slice() else { panic!("one value changes, not {found:?}") };
        assert_eq!((one.byte, one.token, one.usd), (12, Tokenizer::Estimate.count("Twelve bytes"), None));
        assert!(one.message().starts_with("[system:clock] stands at token 5 and changes with every turn"));
    }
}
