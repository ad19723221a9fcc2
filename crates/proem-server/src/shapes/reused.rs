//! The answer to a turn that gets an epoch as it is: a [`TurnAnswer`](super::TurnAnswer) in the same bytes, written in
//! one pass over the texts. A prompt is long, and the usual writer looks at it byte by byte.

use proem_store::Kept;

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

fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}
