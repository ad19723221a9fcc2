//! The answer to a turn that gets an epoch as it is: a [`TurnAnswer`](super::TurnAnswer) in the same bytes, written in
//! one pass over the texts. A prompt is long, and the usual writer looks at it byte by byte.

use proem_store::Kept;

/// How many bytes are looked at together.
const STRIDE: usize = 16;

/// What is written besides texts, about.
const FRAME_BYTES: usize = 512;

/// The answer, as JSON.
pub(crate) fn reused(kept: &Kept) -> Vec<u8> {
    let head = &kept.head;
    let carriers = || kept.frozen.body().carriers();
    let length: usize = carriers().map(|(_, text)| text.len()).sum();
    // Room for the escapes of a text whose lines are short.
    let mut out = Vec::with_capacity(length + length / 16 + FRAME_BYTES);
    out.extend_from_slice(format!("{{\"epoch\":{},\"reason\":", head.number).as_bytes());
    write_text(&mut out, &head.reason);
    out.extend_from_slice(b",\"reused\":true,\"digest\":");
    write_text(&mut out, &head.digest);
    out.extend_from_slice(b",\"fingerprint\":");
    write_text(&mut out, &head.fingerprint);
    out.extend_from_slice(b",\"carriers\":{");
    // As the map of the shape orders them.
    let mut carriers: Vec<(&str, &str)> = carriers().map(|(carrier, text)| (carrier.word(), text)).collect();
    carriers.sort_unstable();
    for (index, (word, text)) in carriers.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(&mut out, word);
        out.push(b':');
        write_text(&mut out, text);
    }
    out.extend_from_slice(b"},\"notes\":[]}");
    out
}

/// Writes a text between quotes.
fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let (strides, rest) = text.as_bytes().as_chunks::<STRIDE>();
    for stride in strides {
        // Without a branch for each byte, so that they are compared together.
        let is_plain = !stride.iter().fold(false, |found, byte| found | must_be_escaped(*byte));
        if is_plain {
            out.extend_from_slice(stride);
        } else {
            write_bytes(out, stride);
        }
    }
    write_bytes(out, rest);
    out.push(b'"');
}

const fn must_be_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn write_bytes(out: &mut Vec<u8>, mut bytes: &[u8]) {
    // What lies between is written as a whole: of most strides, one byte is the end of a line.
    while let Some(at) = bytes.iter().position(|byte| must_be_escaped(*byte)) {
        let (plain, rest) = bytes.split_at(at);
        out.extend_from_slice(plain);
        let Some((byte, rest)) = rest.split_first() else { return };
        bytes = rest;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            0x00..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            byte => out.push(*byte),
        }
    }
    out.extend_from_slice(bytes);
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
                let mut out = Vec::new();
                write_text(&mut out, &text);
                assert_eq!(String::from_utf8(out).ok(), serde_json::to_string(&text).ok());
            }
        }
    }
}
