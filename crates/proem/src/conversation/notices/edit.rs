//! The changed lines of a document, each group below the heading that it belongs to.

use similar::{ChangeTag, TextDiff};

/// The largest number of lines that are compared.
const LINES_MAX: usize = 50_000;

/// Returns the changed lines of a document, if they are shorter than a share of it in percent.
pub(super) fn changed_lines(before: &str, after: &str, percent: u8) -> Option<String> {
    if before.lines().count() + after.lines().count() > LINES_MAX {
        return None;
    }
    let diff = TextDiff::from_lines(before, after);
    let (mut text, mut heading, mut shown) = (String::new(), None, None);
    let mut is_in_code = false;
    let mut was_equal = true;
    for change in diff.iter_all_changes() {
        let line = change.value().trim_end_matches(['\n', '\r']);
        let is_new = change.tag() != ChangeTag::Delete;
        if is_new && is_fence(line) {
            is_in_code = !is_in_code;
        }
        if change.tag() == ChangeTag::Equal {
            if !is_in_code && is_heading(line) {
                heading = Some(line);
            }
            was_equal = true;
            continue;
        }
        if was_equal {
            if !text.is_empty() {
                text.push('\n');
            }
            if let Some(heading) = heading.filter(|_| shown != heading) {
                text.push_str(heading);
                text.push('\n');
            }
            shown = heading;
        }
        was_equal = false;
        text.push_str(if is_new { "+ " } else { "- " });
        text.push_str(line);
        text.push('\n');
        if is_new && !is_in_code && is_heading(line) {
            (heading, shown) = (Some(line), Some(line));
        }
    }
    // A change of line ends alone has no lines to show.
    let is_small = !text.is_empty() && text.len() * 100 < after.len() * usize::from(percent);
    is_small.then_some(text)
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn is_heading(line: &str) -> bool {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&level) && line.as_bytes().get(level).is_some_and(|byte| *byte == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(changed: &str) -> String {
        let filler = |name: &str| format!("## {name}\n\n{}", "A line that stays as it is.\n".repeat(10));
        format!("# All\n\n{}\n{}{changed}\n\n{}", filler("Build"), filler("Test"), filler("Style"))
    }

    #[test]
    fn a_small_edit_of_a_long_document_is_its_lines_below_their_heading() {
        let (before, after) = (document("Run cargo test."), document("Run cargo nextest."));
        let lines = "## Test\n- Run cargo test.\n+ Run cargo nextest.\n";
        assert_eq!(changed_lines(&before, &after, 25).as_deref(), Some(lines));
        assert_eq!(changed_lines(&before, &after, 1), None, "the share is smaller");
        assert_eq!(changed_lines("One.\n", "Two.\n", 25), None, "the document is short");
    }

    #[test]
    fn a_comment_in_code_is_not_a_heading() {
        let code = |word: &str| format!("## Real\n```sh\n# fake\n{word}\n```\n{}", "Stays.\n".repeat(40));
        let lines = changed_lines(&code("a"), &code("b"), 50).expect("it is small");
        assert_eq!(lines, "## Real\n- a\n+ b\n");
    }
}
