//! A prompt before freezing: sections in order, each with its text and origin.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::boundary;
use crate::carrier::Carrier;
use crate::file_outcome::FileOutcome;
use crate::join_sections::join_sections;
use crate::limit::OUTPUT_BYTES_MAX;
use crate::note::Note;
use crate::profile::{Part, Profile, SectionRecipe};
use crate::rendered::Rendered;
use crate::source::Source;
use crate::stability::Stability;

/// One finished section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The section's name in the profile.
    pub id: String,
    /// The channel that carries the section.
    pub carrier: Carrier,
    /// The text with its sources, including the section's `before` and `after`.
    pub rendered: Rendered,
    /// The source of the content as a whole.
    pub source: Source,
    /// Starts the section on a new line.
    pub fresh_line: bool,
    /// The most frequent change of a value that needs no note.
    pub accepts: Stability,
    /// The side of the boundary that the section belongs to.
    pub part: Part,
}

/// A prompt that may still change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub(crate) profile: String,
    pub(crate) sections: Vec<Section>,
    /// Findings about the prompt.
    pub notes: Vec<Note>,
    /// The files that were considered.
    pub considered: Vec<FileOutcome>,
}

/// A carrier whose text would exceed the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooLarge {
    /// The carrier.
    pub carrier: Carrier,
    /// The size that it would have had, in bytes.
    pub bytes: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { carrier, bytes } = self;
        write!(
            formatter,
            "the {carrier} carrier would have {bytes} bytes, and {OUTPUT_BYTES_MAX} are allowed"
        )
    }
}

impl core::error::Error for TooLarge {}

/// Wraps the content of a section in its `before` and `after`, and cuts the content as the profile specifies.
///
/// A section without content gets neither, unless the profile keeps them.
#[must_use]
pub fn wrap(profile: &Profile, recipe: &SectionRecipe, mut content: Rendered) -> Rendered {
    let cut: Vec<char> = recipe.trim_end.chars().collect();
    content.trim_end(&cut);
    if let Some(trim) = recipe.trim {
        content.trim(trim);
    }
    if content.is_empty() && !recipe.keep_empty {
        return content;
    }
    let words = |key: &str| {
        let key = alloc::format!("section.{}.{key}", recipe.id);
        let stability = recipe.stability.unwrap_or_else(|| profile.stability_of(&key));
        (Source::Profile { profile: profile.name.as_str().into(), key: key.into() }, stability)
    };
    let ((lead, lead_stability), (trail, trail_stability)) = (words("lead"), words("trail"));
    content.prepend(&recipe.lead, lead, lead_stability);
    content.push(&recipe.trail, trail, None, trail_stability);
    content
}

/// Creates a draft from finished sections, in their order.
pub fn assemble(profile: &Profile, mut sections: Vec<Section>) -> Result<Draft, TooLarge> {
    let mut notes = join_sections(profile, &mut sections);
    notes.extend(boundary::neutralise(profile, &mut sections));
    for carrier in Carrier::ALL {
        let bytes = sections
            .iter()
            .filter(|section| section.carrier == carrier)
            .fold(0_usize, |sum, section| sum.saturating_add(section.rendered.len()));
        check_bytes(carrier, bytes)?;
    }
    Ok(Draft { profile: profile.name.clone(), sections, notes, considered: Vec::new() })
}

/// Checks that a carrier may have `bytes` bytes, before a text of that size is allocated.
pub const fn check_bytes(carrier: Carrier, bytes: usize) -> Result<(), TooLarge> {
    if bytes > OUTPUT_BYTES_MAX { Err(TooLarge { carrier, bytes }) } else { Ok(()) }
}
