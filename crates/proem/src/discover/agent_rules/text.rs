//! Text of a file without the parts that a recipe removes and trims.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use proem_core::line_map::LineMap;
use proem_core::profile::rules::{RuleStrip, RuleTrim, RulesRecipe};
use proem_core::text::{ForwardSearch, is_javascript_space};

/// Returns the text after the recipe's removals and trimming, and the lines of the file that it consists of.
pub(super) fn treated(text: &str, recipe: &RulesRecipe, trim: RuleTrim) -> (String, LineMap) {
    let mut rest = text;
    if recipe.remove.contains(&RuleStrip::ByteOrderMark) {
        rest = rest.strip_prefix('\u{FEFF}').unwrap_or(rest);
    }
    if recipe.remove.contains(&RuleStrip::FrontMatter) {
        rest = without_front_matter(rest);
    }
    let start = text.len() - rest.len();
    let has_comments = !recipe.remove.contains(&RuleStrip::Comments);
    let mut kept =
        if has_comments { std::iter::once(0..rest.len()).collect() } else { without_comments(rest) };
    for bytes in &mut kept {
        *bytes = start + bytes.start..start + bytes.end;
    }
    if recipe.remove.contains(&RuleStrip::BlankLines) {
        kept = kept.into_iter().flat_map(|bytes| without_blank_lines(text, bytes)).collect();
    }
    let whole: String = kept.iter().filter_map(|bytes| text.get(bytes.clone())).collect();
    let (trimmed, cut) = trimmed(&whole, trim);
    keep(&mut kept, cut..cut + trimmed.len());
    (changed(trimmed, rest, recipe), LineMap::from_kept(text, &kept))
}

/// Returns a text with the recipe's changes of characters. They add and remove no line, so that places stay true.
fn changed(text: &str, whole: &str, recipe: &RulesRecipe) -> String {
    let has = |part| recipe.remove.contains(&part);
    let mut text = text.to_owned();
    if has(RuleStrip::Returns) || (has(RuleStrip::ReturnsBesideComments) && whole.contains("<!--")) {
        text = text.replace("\r\n", "\n");
    }
    if has(RuleStrip::HiddenCharacters) {
        text.retain(|character| !is_hidden(character));
    }
    if has(RuleStrip::Tags) {
        text.retain(|character| !is_tag(character));
    }
    if recipe.composed { text.nfc().collect() } else { text }
}

const fn is_tag(character: char) -> bool {
    matches!(character, '\u{E0000}'..='\u{E007F}')
}

/// Tells whether a character has no width. Joiners, which change how others look, are not among them.
const fn is_hidden(character: char) -> bool {
    is_tag(character)
        || matches!(
            character,
            '\u{AD}'
                | '\u{180E}'
                | '\u{200B}'
                | '\u{200C}'
                | '\u{200E}'
                | '\u{200F}'
                | '\u{202A}'..='\u{202E}'
                | '\u{2060}'..='\u{2064}'
                | '\u{2066}'..='\u{2069}'
                | '\u{FEFF}'
        )
}

/// Splits a range of a text so that no two blank lines follow each other.
fn without_blank_lines(text: &str, bytes: Range<usize>) -> Vec<Range<usize>> {
    let (mut kept, mut start, mut breaks) = (Vec::new(), bytes.start, 0);
    let inside = text.get(bytes.clone()).unwrap_or_default();
    for (at, byte) in inside.bytes().enumerate().map(|(at, byte)| (bytes.start + at, byte)) {
        breaks = if byte == b'\n' { breaks + 1 } else { 0 };
        if breaks > 2 {
            kept.push(start..at);
            start = at + 1;
        }
    }
    kept.push(start..bytes.end);
    kept.retain(|range| !range.is_empty());
    kept
}

/// Limits a text that consists of ranges to `wanted`.
fn keep(ranges: &mut Vec<Range<usize>>, wanted: Range<usize>) {
    let mut passed = 0;
    ranges.retain_mut(|bytes| {
        let own = passed..passed + bytes.len();
        passed = own.end;
        let (from, to) = (own.start.max(wanted.start), own.end.min(wanted.end));
        if from < to {
            *bytes = bytes.start + (from - own.start)..bytes.start + (to - own.start);
        }
        from < to
    });
}

/// Trims white space at the ends of a text; also returns the number of bytes removed from the beginning.
pub(super) fn trimmed(text: &str, trim: RuleTrim) -> (&str, usize) {
    let is_space: fn(char) -> bool = match trim {
        RuleTrim::None => |_| false,
        RuleTrim::Unicode => char::is_whitespace,
        RuleTrim::Javascript => is_javascript_space,
    };
    let rest = text.trim_start_matches(is_space);
    (rest.trim_end_matches(is_space), text.len() - rest.len())
}

/// Returns the text after front matter, which begins with the first byte. Front matter that is never closed is text.
fn without_front_matter(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("---").filter(|rest| rest.starts_with(['\n', '\r', ' '])) else {
        return text;
    };
    let mut passed = text.len() - rest.len();
    let first = rest.split_inclusive('\n').next().unwrap_or_default();
    passed += first.len();
    for line in text.get(passed..).unwrap_or_default().split_inclusive('\n') {
        passed += line.len();
        if line.trim_end() == "---" {
            return text.get(passed..).unwrap_or_default();
        }
    }
    text
}

/// Returns the ranges that remain without comments that begin a block of HTML: at the start of a line, and not in code.
///
/// Text after a comment counts as the beginning of a line.
fn without_comments(text: &str) -> Vec<Range<usize>> {
    let mut kept: Vec<Range<usize>> = Vec::new();
    let (mut breaks, mut closings) = (ForwardSearch::new(text, "\n"), ForwardSearch::new(text, "-->"));
    let (mut at, mut fence, mut is_html) = (0, None, false);
    while at < text.len() {
        // The rest of the line after a comment counts as a line.
        let line_end = breaks.find_from(at).map_or(text.len(), |end| end + 1);
        let line = text.get(at..line_end).unwrap_or_default();
        let indent = line.len() - line.trim_start_matches(' ').len();
        let plain = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| plain.starts_with(mark));
        // A block of HTML goes on to a blank line, with the comments in it.
        is_html = !plain.trim_end().is_empty()
            && (is_html || (fence.is_none() && indent < 4 && is_html_block(plain)));
        let is_block = fence.is_none() && mark.is_none() && indent < 4 && !is_html;
        if is_block
            && plain.starts_with("<!--")
            && let Some(end) = closings.find_from(at)
        {
            at = behind_comment(text, end + 3, &mut breaks);
            continue;
        }
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        match kept.last_mut() {
            Some(last) if last.end == at => last.end = line_end,
            _ => kept.push(at..line_end),
        }
        at = line_end;
    }
    kept
}

/// Names of elements that begin a block of HTML in Markdown.
const HTML_BLOCKS: [&str; 20] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "center",
    "details",
    "dialog",
    "div",
    "footer",
    "form",
    "h1",
    "header",
    "li",
    "main",
    "nav",
    "p",
    "section",
    "table",
    "ul",
];

/// Tells whether a line begins a block of HTML.
fn is_html_block(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('<') else { return false };
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    let name = rest.split(|character: char| !character.is_ascii_alphanumeric()).next().unwrap_or_default();
    let is_ended = rest
        .get(name.len()..)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '>', '/', '\n', '\r']));
    is_ended && HTML_BLOCKS.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns the byte at which the text continues after a comment. A comment at the end of a line takes the line breaks
/// along.
fn behind_comment(text: &str, end: usize, breaks: &mut ForwardSearch<'_>) -> usize {
    let line_end = breaks.find_from(end).unwrap_or(text.len());
    let is_alone = text.get(end..line_end).unwrap_or_default().trim_start().is_empty();
    if !is_alone {
        return end;
    }
    let rest = text.get(end..).unwrap_or_default().trim_start_matches([' ', '\t']);
    text.len() - rest.trim_start_matches(['\n', '\r']).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the same comments by searching from every line to the end.
    fn one_by_one(text: &str) -> String {
        let (mut kept, mut rest) = (String::new(), text);
        let mut fence = None;
        while !rest.is_empty() {
            let line = rest.split_inclusive('\n').next().unwrap_or_default();
            let indent = line.len() - line.trim_start_matches(' ').len();
            let plain = line.trim();
            let mark = ["```", "~~~"].into_iter().find(|mark| plain.starts_with(mark));
            let is_block = fence.is_none() && mark.is_none() && indent < 4;
            if let Some(end) = rest.find("-->").filter(|_| is_block && plain.starts_with("<!--")) {
                let after = rest.get(end + 3..).unwrap_or_default();
                let is_alone = after.lines().next().unwrap_or_default().trim().is_empty();
                let next = after.trim_start_matches([' ', '\t']).trim_start_matches(['\n', '\r']);
                rest = if is_alone { next } else { after };
                continue;
            }
            match (fence, mark) {
                (None, Some(mark)) => fence = Some(mark),
                (Some(open), Some(mark)) if open == mark => fence = None,
                _ => {}
            }
            kept.push_str(line);
            rest = rest.get(line.len()..).unwrap_or_default();
        }
        kept
    }

    #[test]
    fn comments_are_removed_as_if_looked_for_one_by_one() {
        let parts =
            ["<!--", "-->", "\n", " ", "    ", "a", "```", "~~~", "\r\n", "\t", "\u{A0}", "<!-- b -->"];
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(parts[usize::try_from(state >> 33).expect("31 bits fit") % parts.len()]);
            }
            let kept: String =
                without_comments(&text).into_iter().filter_map(|bytes| text.get(bytes)).collect();
            assert_eq!(kept, one_by_one(&text), "{text:?}");
        }
    }
}
