//! The end of a message: counts a body's bytes as they pass, and changes none.
//!
//! Chunked bodies are relayed with their own framing: sizes, extensions and trailers stay as they were sent.

use proem_core::limit::GATEWAY_HEAD_BYTES_MAX;

/// Longest line with the size of a chunk and its extensions.
const SIZE_LINE_BYTES_MAX: usize = 16 << 10;

/// The rest of a message's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Framing {
    /// This many bytes.
    Length(u64),
    /// Chunks.
    Chunked(Chunks),
    /// Everything until the connection closes.
    UntilClose,
}

/// The framing of a body is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadFraming;

impl Framing {
    pub(crate) const NONE: Self = Self::Length(0);

    /// Starts a chunked body.
    pub(crate) const fn chunked() -> Self {
        Self::Chunked(Chunks { state: State::Size, left: 0, digits: 0, line: 0, trailers: 0 })
    }

    /// Tells if the body is complete.
    pub(crate) const fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => matches!(chunks.state, State::Done),
            Self::UntilClose => false,
        }
    }

    /// Counts bytes, and passes the content in them to `content`. Returns the number of bytes that belong to the body.
    pub(crate) fn advance(
        &mut self,
        bytes: &[u8],
        content: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, BadFraming> {
        match self {
            Self::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                content(bytes.get(..taken).unwrap_or_default());
                Ok(taken)
            }
            Self::Chunked(chunks) => chunks.advance(bytes, content),
            Self::UntilClose => {
                content(bytes);
                Ok(bytes.len())
            }
        }
    }
}

/// A position in a chunked body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunks {
    state: State,
    /// The bytes of the chunk that are left, or its size so far.
    left: u64,
    /// Digits of the size.
    digits: usize,
    /// Bytes of the line with the size.
    line: usize,
    /// Bytes of all trailers.
    trailers: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the beginning of a line of trailers.
    Trailer,
    TrailerText,
    TrailerLf,
    EndLf,
    Done,
}

impl Chunks {
    fn advance(&mut self, bytes: &[u8], content: &mut dyn FnMut(&[u8])) -> Result<usize, BadFraming> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            if self.state == State::Data {
                let rest = bytes.get(at..).unwrap_or_default();
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(rest.len());
                content(rest.get(..taken).unwrap_or_default());
                self.left -= taken as u64;
                at += taken;
                if self.left == 0 {
                    self.state = State::DataCr;
                }
                continue;
            }
            self.state = self.step(bytes.get(at).copied().unwrap_or_default())?;
            at += 1;
        }
        Ok(at)
    }

    fn step(&mut self, byte: u8) -> Result<State, BadFraming> {
        match (self.state, byte) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                self.digits += 1;
                if self.digits > 15 {
                    return Err(BadFraming);
                }
                self.left = self.left << 4 | u64::from(digit);
                Ok(State::Size)
            }
            (State::Size, b'\r') if self.digits > 0 => Ok(State::SizeLf),
            (State::Size, b';' | b' ' | b'\t') if self.digits > 0 => Ok(State::Extension),
            (State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Extension, byte) if byte != b'\n' && byte != 0 => {
                self.line += 1;
                if self.line > SIZE_LINE_BYTES_MAX { Err(BadFraming) } else { Ok(State::Extension) }
            }
            (State::SizeLf, b'\n') => {
                (self.digits, self.line) = (0, 0);
                Ok(if self.left == 0 { State::Trailer } else { State::Data })
            }
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::Size),
            (State::Trailer, b'\r') => Ok(State::EndLf),
            (State::TrailerText, b'\r') => Ok(State::TrailerLf),
            (State::Trailer | State::TrailerText, byte) if byte != b'\n' && byte != 0 => {
                self.trailers += 1;
                if self.trailers > GATEWAY_HEAD_BYTES_MAX { Err(BadFraming) } else { Ok(State::TrailerText) }
            }
            (State::TrailerLf, b'\n') => Ok(State::Trailer),
            (State::EndLf, b'\n') => Ok(State::Done),
            _ => Err(BadFraming),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that belong to the body, its content, and if it is complete.
    fn read(text: &str, step: usize) -> Result<(usize, String, bool), BadFraming> {
        let (mut framing, mut content, mut taken) = (Framing::chunked(), Vec::new(), 0);
        for piece in text.as_bytes().chunks(step) {
            let of_piece = framing.advance(piece, &mut |bytes| content.extend_from_slice(bytes))?;
            taken += of_piece;
            if of_piece < piece.len() {
                break;
            }
        }
        Ok((taken, String::from_utf8(content).expect("text"), framing.is_done()))
    }

    #[test]
    fn chunks_are_counted_in_pieces_of_any_size() {
        let body = "5;a=\"b\"\r\nhello\r\n00B\r\n, world! \r\n\r\n0\r\nX-Sum: 1\r\nx: y\r\n\r\n";
        for step in [1, 2, 3, 7, 1000] {
            let text = format!("{body}GET /next");
            assert_eq!(read(&text, step), Ok((body.len(), "hello, world! \r\n".into(), true)), "{step}");
            assert_eq!(read(body.split_at(20).0, step).map(|(_, _, is_done)| is_done), Ok(false), "{step}");
        }
    }

    #[test]
    fn wrong_chunks_are_refused() {
        for text in [
            "\r\n",
            "g\r\n",
            "5\nhello",
            "5\r\nhelloX",
            "5\r\nhello\n",
            "-1\r\n",
            "0x5\r\n",
            " 5\r\n",
            "5;\n",
            "1000000000000000\r\n",
            "0\r\n\n",
            "0\r\nx: 1\n",
        ] {
            assert_eq!(read(text, 1000), Err(BadFraming), "{text:?}");
        }
    }
}
