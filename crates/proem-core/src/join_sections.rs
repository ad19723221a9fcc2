//! Joins the sections of each carrier: separators, trimmed ends, and size limits.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::cache_loss::estimated_tokens;
use crate::carrier::Carrier;
use crate::draft::Section;
use crate::note::{Code, Note, Severity};
use crate::profile::{Budget, CarrierCut, CarrierRecipe, Profile, Trim};
use crate::rendered::Rendered;
use crate::source::Source;
use crate::text::clip;

/// Adds separators between sections and trims and cuts carriers as the profile specifies.
pub(crate) fn join_sections(profile: &Profile, sections: &mut [Section]) -> Vec<Note> {
    let mut notes = Vec::new();
    for carrier in Carrier::ALL {
        let mut own: Vec<&mut Section> =
            sections.iter_mut().filter(|section| section.carrier == carrier).collect();
        let join = Join { profile, carrier };
        join.line_breaks(&mut own);
        let Some(recipe) = profile.carriers.get(&carrier) else { continue };
        join.separate(&mut own, recipe);
        if let Some(characters) = &recipe.trim_end {
            let characters: Vec<char> = characters.chars().collect();
            trim_end(&mut own, |rendered| rendered.trim_end(&characters));
        }
        if let Some(trim) = recipe.trim {
            trim_both(&mut own, trim);
        }
        notes.extend(recipe.budget.and_then(|budget| join.over_budget(&own, budget)));
        notes.extend(recipe.cut.as_ref().and_then(|cut| join.cut(&mut own, cut)));
    }
    notes
}

struct Join<'p> {
    profile: &'p Profile,
    carrier: Carrier,
}

impl Join<'_> {
    fn words(&self, key: &str) -> Source {
        Source::Profile { profile: self.profile.name.as_str().into(), key: key.into() }
    }

    /// Adds a line break before sections that must start on a new line.
    fn line_breaks(&self, sections: &mut [&mut Section]) {
        let mut ends_line = false;
        for section in sections.iter_mut().filter(|section| !section.rendered.is_empty()) {
            if section.fresh_line && !ends_line {
                let key = format!("section.{}.fresh_line", section.id);
                section.rendered.prepend("\n", self.words(&key), self.profile.stability_of(&key));
            }
            ends_line = section.rendered.text().ends_with('\n');
        }
    }

    fn separate(&self, sections: &mut [&mut Section], recipe: &CarrierRecipe) {
        let Some(separator) = &recipe.separator else { return };
        let key = format!("carrier.{}.separator", self.carrier);
        let (source, stability) = (self.words(&key), self.profile.stability_of(&key));
        for section in sections.iter_mut().filter(|section| !section.rendered.is_empty()).skip(1) {
            section.rendered.prepend(separator, source.clone(), stability);
        }
    }

    /// Reports a carrier that exceeds the profile's budget, with its sections by size.
    fn over_budget(&self, sections: &[&mut Section], budget: Budget) -> Option<Note> {
        let bytes = bytes(sections);
        let tokens = estimated_tokens(bytes);
        let over_bytes = budget.bytes.filter(|most| bytes > *most).map(|most| format!("{most} bytes"));
        let over_tokens = budget.tokens.filter(|most| tokens > *most).map(|most| format!("{most} tokens"));
        let over: Vec<String> = over_bytes.into_iter().chain(over_tokens).collect();
        if over.is_empty() {
            return None;
        }
        let mut sizes: Vec<(&str, usize)> = sections
            .iter()
            .filter(|section| !section.rendered.is_empty())
            .map(|section| (section.id.as_str(), section.rendered.len()))
            .collect();
        sizes.sort_by_key(|(_, bytes)| core::cmp::Reverse(*bytes));
        let sizes: Vec<String> = sizes.iter().map(|(id, bytes)| format!("{id} {bytes}")).collect();
        let message = format!(
            "the {} carrier has {bytes} bytes (about {tokens} tokens), over its budget of {}: {}",
            self.carrier,
            over.join(" and "),
            sizes.join(", "),
        );
        let key = format!("carrier.{}.budget", self.carrier);
        let note = Note::new(Code::OverBudget, Severity::Warning, message)
            .with_hint("shorten its sections, or move one to another carrier")
            .with_source(self.words(&key));
        Some(note)
    }

    /// Cuts a carrier that is too large and adds the marker.
    fn cut(&self, sections: &mut [&mut Section], cut: &CarrierCut) -> Option<Note> {
        let whole = bytes(sections);
        if whole <= cut.bytes_max {
            return None;
        }
        let mut room = cut.bytes_max.saturating_sub(cut.marker.len());
        let mut last = 0;
        for (index, section) in sections.iter_mut().enumerate() {
            let kept = clip(section.rendered.text(), room).len();
            if kept > 0 {
                last = index;
            }
            // No text follows the cut, even if a short section would still fit.
            room = if kept < section.rendered.len() { 0 } else { room - kept };
            section.rendered.truncate(kept);
        }
        let kept = bytes(sections);
        let key = format!("carrier.{}.cut", self.carrier);
        let source = self.words(&key);
        if let Some(section) = sections.get_mut(last) {
            let stability = self.profile.stability_of(&key);
            section.rendered.push(clip(&cut.marker, cut.bytes_max), source.clone(), None, stability);
        }
        let message = format!(
            "the {} carrier is cut: {} of its {whole} bytes are left out, {} are allowed",
            self.carrier,
            whole - kept,
            cut.bytes_max,
        );
        Some(Note::new(Code::OverLimit, Severity::Warning, message).with_source(source))
    }
}

fn bytes(sections: &[&mut Section]) -> usize {
    sections.iter().map(|section| section.rendered.len()).sum()
}

/// Trims the end of the last section that has text left.
fn trim_end(sections: &mut [&mut Section], trim: impl Fn(&mut Rendered)) {
    for section in sections.iter_mut().rev() {
        trim(&mut section.rendered);
        if !section.rendered.is_empty() {
            return;
        }
    }
}

fn trim_both(sections: &mut [&mut Section], trim: Trim) {
    trim_end(sections, |rendered| rendered.trim_end_as(trim));
    for section in sections {
        section.rendered.trim_start(trim);
        if !section.rendered.is_empty() {
            return;
        }
    }
}
