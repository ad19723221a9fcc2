//! Reads the messages of a WebSocket connection from a copy of its bytes.
//!
//! Frames are parsed, unmasked and, with permessage-deflate, decompressed. After anything that is not understood the copy
//! is given up; the connection itself goes on.

use flate2::{Decompress, FlushDecompress, Status};
use proem_core::limit::GATEWAY_BODY_BYTES_MAX;

/// The end of a compressed message that senders leave out.
const TAIL: [u8; 4] = [0x00, 0x00, 0xFF, 0xFF];

/// The messages of one direction.
pub(crate) struct Messages {
    /// Bytes of a frame that is not complete.
    held: Vec<u8>,
    /// The message so far.
    message: Vec<u8>,
    is_compressed: bool,
    is_text: bool,
    /// The window stays from message to message. A sender that does not use it can be read in the same way.
    inflate: Decompress,
    is_given_up: bool,
}

struct Frame {
    is_final: bool,
    is_compressed: bool,
    opcode: u8,
    mask: Option<[u8; 4]>,
    /// The place of the content.
    start: usize,
    end: usize,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            held: Vec::new(),
            message: Vec::new(),
            is_compressed: false,
            is_text: false,
            inflate: Decompress::new(false),
            is_given_up: false,
        }
    }
}

impl Messages {
    /// Tells if the copy was given up.
    pub(crate) const fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// Reads bytes, and passes every complete text message to `visit`.
    pub(crate) fn feed(&mut self, bytes: &[u8], visit: &mut dyn FnMut(&str)) {
        if self.is_given_up {
            return;
        }
        self.held.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            match frame(self.held.get(at..).unwrap_or_default()) {
                Ok(Some(frame)) => {
                    let mut content =
                        self.held.get(at + frame.start..at + frame.end).unwrap_or_default().to_vec();
                    if let Some(mask) = frame.mask {
                        content.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
                    }
                    at += frame.end;
                    if self.add(&frame, &content, visit).is_none() {
                        return self.give_up();
                    }
                }
                Ok(None) => break,
                Err(()) => return self.give_up(),
            }
        }
        self.held.drain(..at);
        if self.held.is_empty() && self.held.capacity() > 64 << 10 {
            self.held = Vec::new();
        }
    }

    fn give_up(&mut self) {
        (self.held, self.message, self.is_given_up) = (Vec::new(), Vec::new(), true);
    }

    fn add(&mut self, frame: &Frame, content: &[u8], visit: &mut dyn FnMut(&str)) -> Option<()> {
        match frame.opcode {
            0 => {}
            1 | 2 => {
                self.message.clear();
                (self.is_compressed, self.is_text) = (frame.is_compressed, frame.opcode == 1);
            }
            // Close, ping, pong.
            _ => return Some(()),
        }
        if self.is_compressed {
            self.inflate(content)?;
            if frame.is_final {
                self.inflate(&TAIL)?;
            }
        } else {
            self.message.extend_from_slice(content);
        }
        if self.message.len() > GATEWAY_BODY_BYTES_MAX {
            return None;
        }
        if frame.is_final && self.is_text {
            visit(std::str::from_utf8(&self.message).ok()?);
        }
        if frame.is_final {
            self.message = Vec::new();
        }
        Some(())
    }

    fn inflate(&mut self, mut content: &[u8]) -> Option<()> {
        loop {
            if self.message.len() > GATEWAY_BODY_BYTES_MAX {
                return None;
            }
            self.message.reserve(content.len().saturating_mul(4).clamp(1 << 10, 1 << 20));
            let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
            let status =
                self.inflate.decompress_vec(content, &mut self.message, FlushDecompress::Sync).ok()?;
            let taken = usize::try_from(self.inflate.total_in() - read).ok()?;
            let has_written = self.inflate.total_out() > written;
            content = content.get(taken..)?;
            if status == Status::StreamEnd {
                self.inflate.reset(false);
            }
            let has_room = self.message.len() < self.message.capacity();
            if content.is_empty() && (has_room || !has_written) {
                return Some(());
            }
            if taken == 0 && !has_written && has_room {
                return None;
            }
        }
    }
}

/// Parses the head of a frame; `None` if the frame is not complete.
fn frame(bytes: &[u8]) -> Result<Option<Frame>, ()> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (size, length) = match second & 0x7F {
        126 => (2, rest.get(..2).map(number)),
        127 => (8, rest.get(..8).map(number)),
        short => (0, Some(u64::from(short))),
    };
    let Some(length) = length else { return Ok(None) };
    let length = usize::try_from(length).map_err(|_| ())?;
    if length > GATEWAY_BODY_BYTES_MAX || first & 0x30 != 0 {
        return Err(());
    }
    let is_masked = second & 0x80 != 0;
    let mask = if is_masked {
        let Some(mask) = rest.get(size..size + 4) else { return Ok(None) };
        <[u8; 4]>::try_from(mask).ok()
    } else {
        None
    };
    let start = 2 + size + if is_masked { 4 } else { 0 };
    if bytes.len() < start + length {
        return Ok(None);
    }
    Ok(Some(Frame {
        is_final: first & 0x80 != 0,
        is_compressed: first & 0x40 != 0,
        opcode: first & 0x0F,
        mask,
        start,
        end: start + length,
    }))
}

#[cfg(test)]
mod tests {
    use flate2::{Compress, Compression, FlushCompress};

    use super::*;

    /// Builds a frame; with a mask if `mask` is not zero.
    fn framed(first: u8, content: &[u8], mask: u8) -> Vec<u8> {
        let masked = u8::from(mask != 0) << 7;
        let mut out = vec![first];
        match u16::try_from(content.len()) {
            Ok(short @ 0..126) => out.push(masked | u8::try_from(short).expect("it is short")),
            Ok(middle) => {
                out.push(masked | 0x7E);
                out.extend(middle.to_be_bytes());
            }
            Err(_) => {
                out.push(masked | 0x7F);
                out.extend((content.len() as u64).to_be_bytes());
            }
        }
        if mask != 0 {
            out.extend([mask; 4]);
        }
        out.extend(content.iter().map(|byte| byte ^ mask));
        out
    }

    fn deflated(compress: &mut Compress, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() + 1024);
        compress.compress_vec(text, &mut out, FlushCompress::Sync).expect("memory");
        assert!(out.ends_with(&TAIL));
        out.truncate(out.len() - TAIL.len());
        out
    }

    fn read(bytes: &[u8], step: usize) -> (Vec<String>, bool) {
        let (mut messages, mut texts) = (Messages::default(), Vec::new());
        for piece in bytes.chunks(step) {
            messages.feed(piece, &mut |text| texts.push(text.to_owned()));
        }
        (texts, messages.is_given_up())
    }

    #[test]
    fn messages_are_read_in_pieces_of_any_size() {
        let mut compress = Compress::new(Compression::fast(), false);
        let long = "long text ".repeat(20_000);
        let mut bytes = framed(0x81, b"plain", 7);
        bytes.extend(framed(0xC1, &deflated(&mut compress, b"first message"), 9));
        bytes.extend(framed(0x89, b"ping", 9));
        // The second message refers to the window of the first.
        bytes.extend(framed(0xC1, &deflated(&mut compress, b"first message, again"), 0));
        let parts = deflated(&mut compress, long.as_bytes());
        bytes.extend(framed(0x41, &parts[..10], 3));
        bytes.extend(framed(0x80, &parts[10..], 3));
        bytes.extend(framed(0x82, &[0xFF; 200], 3));
        bytes.extend(framed(0x81, long.as_bytes(), 5));
        for step in [1, 5, 1000, usize::MAX] {
            let expected = ["plain", "first message", "first message, again", &long, &long];
            let (texts, is_given_up) = read(&bytes, step);
            assert!(texts == expected && !is_given_up, "{step}: {} messages", texts.len());
        }
    }

    #[test]
    fn what_is_not_understood_is_given_up() {
        for bytes in [framed(0xA1, b"x", 0), framed(0xC1, &[0xFF; 20], 0), framed(0x81, &[0xFF], 0), {
            let mut huge = vec![0x81, 127];
            huge.extend(u64::MAX.to_be_bytes());
            huge
        }] {
            let (texts, is_given_up) = read(&[bytes, framed(0x81, b"later", 0)].concat(), 1000);
            assert!(texts.is_empty() && is_given_up);
        }
    }
}
