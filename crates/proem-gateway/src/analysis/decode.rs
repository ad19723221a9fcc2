//! Decompression of copied bodies, for the analysis alone.

use std::io::Read;

use proem_core::limit::GATEWAY_BODY_BYTES_MAX;

/// Decompresses a body by its `Content-Encoding`; `None` if that is unknown, wrong, or the result too large.
pub(crate) fn decoded(encoding: Option<&str>, body: Vec<u8>) -> Option<Vec<u8>> {
    let codings = encoding.unwrap_or_default().split(',').map(str::trim).filter(|coding| !coding.is_empty());
    // The last one was applied last.
    codings.rev().try_fold(body, |body, coding| step(coding, body))
}

fn step(coding: &str, body: Vec<u8>) -> Option<Vec<u8>> {
    let bytes = body.as_slice();
    match coding.to_ascii_lowercase().as_str() {
        "identity" => Some(body),
        "gzip" | "x-gzip" => all(flate2::read::MultiGzDecoder::new(bytes)),
        // Some programs leave out the header of zlib.
        "deflate" => all(flate2::read::ZlibDecoder::new(bytes))
            .or_else(|| all(flate2::read::DeflateDecoder::new(bytes))),
        "br" => all(brotli_decompressor::Decompressor::new(bytes, 16 << 10)),
        "zstd" => all(ruzstd::decoding::StreamingDecoder::new(bytes).ok()?),
        _ => None,
    }
}

/// Reads everything. What was decompressed before an error counts: a stream may have ended early.
fn all(reader: impl Read) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let read = reader.take(GATEWAY_BODY_BYTES_MAX as u64 + 1).read_to_end(&mut out);
    let is_good = (read.is_ok() || !out.is_empty()) && out.len() <= GATEWAY_BODY_BYTES_MAX;
    is_good.then_some(out)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory")
    }

    #[test]
    fn bodies_are_decompressed() {
        let text = b"{\"model\": \"m\"}".repeat(100);
        let zstd =
            ruzstd::encoding::compress_to_vec(text.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(decoded(Some("zstd"), zstd.clone()), Some(text.clone()));
        assert_eq!(decoded(Some("gzip"), gzip(&text)), Some(text.clone()));
        assert_eq!(decoded(Some("zstd, GZIP"), gzip(&zstd)), Some(text.clone()));
        assert_eq!(decoded(None, text.clone()), Some(text.clone()));
        assert_eq!(decoded(Some("snappy"), text.clone()), None);
        assert_eq!(decoded(Some("zstd"), text), None);
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = gzip(&vec![0; GATEWAY_BODY_BYTES_MAX + 1]);
        assert!(bomb.len() < 1 << 20);
        assert_eq!(decoded(Some("gzip"), bomb), None);
    }
}
