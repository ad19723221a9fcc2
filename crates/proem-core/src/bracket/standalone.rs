//! The policy `trim`: a line that holds nothing but one block tag goes, as in Mustache.

use super::template::{Action, Step};

/// Shortens the text around every block tag that stands alone on its line.
///
/// Works on the finished steps, because only then is it known which tags are blocks: an `[if]` that
/// is never closed is text, and its line stays.
pub(super) fn trim(source: &str, steps: &mut [Step]) {
    for index in 0..steps.len() {
        let tag = steps[index];
        if !matches!(tag.action, Action::Test { .. } | Action::Leave { .. } | Action::End) {
            continue;
        }
        let Some((start, end)) = whole_line(source.as_bytes(), &tag) else { continue };
        if let Some(before) = index.checked_sub(1).and_then(|before| steps.get_mut(before)) {
            before.end = before.end.min(start).max(before.start);
        }
        if let Some(after) = steps.get_mut(index + 1) {
            after.start = after.start.max(end).min(after.end);
        }
    }
}

/// Returns the bytes of the tag's line with its line break, if nothing else is on it.
fn whole_line(source: &[u8], tag: &Step) -> Option<(usize, usize)> {
    let before = source.get(..tag.start)?;
    let blanks_before = before.iter().rev().take_while(|byte| is_blank(**byte)).count();
    let start = tag.start - blanks_before;
    if start > 0 && source.get(start - 1) != Some(&b'\n') {
        return None;
    }
    let after = source.get(tag.end..)?;
    let blanks_after = after.iter().take_while(|byte| is_blank(**byte)).count();
    let line_break = match after.get(blanks_after..)? {
        [] => 0,
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => return None,
    };
    Some((start, tag.end + blanks_after + line_break))
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
