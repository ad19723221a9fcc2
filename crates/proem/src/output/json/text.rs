//! Strings between quotes.

/// The number of bytes that are scanned together: the width of a common vector register.
const STRIDE: usize = 16;

/// The number of bytes that are scanned together at the end.
const WORD: usize = size_of::<u64>();

/// Each byte of a word 1.
const ONES: u64 = u64::from_le_bytes([1; WORD]);

/// The highest bit of each byte of a word.
const HIGHEST: u64 = u64::from_le_bytes([0x80; WORD]);

/// Writes a text between quotes.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    // The bytes between two escapes are written as a whole.
    while let Some(at) = first_escaped(rest) {
        let (plain, escaped) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((byte, behind)) = escaped.split_first() else { break };
        write_escape(out, *byte);
        rest = behind;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Returns the position of the first byte that must be escaped.
fn first_escaped(text: &[u8]) -> Option<usize> {
    let (strides, rest) = text.as_chunks::<STRIDE>();
    for (index, stride) in strides.iter().enumerate() {
        // Without a branch for each byte, so that they are compared together.
        if stride.iter().fold(false, |found, byte| found | must_be_escaped(*byte)) {
            let at = stride.iter().position(|byte| must_be_escaped(*byte));
            return at.map(|at| index * STRIDE + at);
        }
    }
    if is_plain_rest(text, rest) {
        return None;
    }
    rest.iter().position(|byte| must_be_escaped(*byte)).map(|at| text.len() - rest.len() + at)
}

/// Tells whether the rest of a text needs no escapes. Words may overlap, and reach back into bytes that were scanned.
fn is_plain_rest(text: &[u8], rest: &[u8]) -> bool {
    if let Some(last) = text.last_chunk::<WORD>() {
        let first = rest.first_chunk::<WORD>().unwrap_or(last);
        return is_plain(u64::from_le_bytes(*first)) & is_plain(u64::from_le_bytes(*last));
    }
    if let (Some([a, b, c, d]), Some([w, x, y, z])) = (rest.first_chunk(), rest.last_chunk()) {
        return is_plain(u64::from_le_bytes([*a, *b, *c, *d, *w, *x, *y, *z]));
    }
    !rest.iter().any(|byte| must_be_escaped(*byte))
}

/// Tells whether a word needs no escapes.
fn is_plain(word: u64) -> bool {
    // A byte below a limit borrows from its highest bit. That may also mark bytes after it, but never one in a word
    // without such a byte.
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGHEST;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | is(b'"') | is(b'\\') == 0
}

pub(super) const fn must_be_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0C => out.extend_from_slice(b"\\f"),
        byte => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_the_usual_writer_does() {
        let all: String = (0..0x500).filter_map(char::from_u32).collect();
        let lines = "a \"line\" of\ttext, with \\ and é🦀\r\n".repeat(99);
        for text in ["", "x", "\"", "\u{7f}", all.as_str(), lines.as_str()] {
            // Every place in a stride.
            for skipped in 0..=STRIDE.min(text.chars().count()) {
                let text: String = text.chars().skip(skipped).collect();
                is_written_as_usual(&text);
            }
        }
    }

    /// However long a text is, a byte that must be escaped is found at every position.
    #[test]
    fn every_byte_is_looked_at() {
        for length in 1..=3 * STRIDE {
            for at in 0..length {
                for one in ["\"", "\\", "\n", "\0", "\u{1f}", " ", "!", "#", "[", "]", "\u{7f}", "é"] {
                    let (before, behind) = ("~".repeat(at), "~".repeat(length - at - 1));
                    is_written_as_usual(&[&before, one, &behind].concat());
                }
            }
        }
    }

    fn is_written_as_usual(text: &str) {
        let mut out = Vec::new();
        write_text(&mut out, text);
        assert_eq!(String::from_utf8(out).ok(), serde_json::to_string(text).ok());
    }
}
