//! Remembers the token counts of pieces of text by their digest: an author changes a prompt line by line, and the text
//! around a changed line must not be counted again.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use proem_core::digest::Digest;
use tiktoken::CoreBpe;

/// Most counts that are remembered in each of two generations: about a megabyte in all, for some megabytes of text.
const KEPT_MAX: usize = 8_192;

/// The smallest piece that is remembered. Counting fewer bytes is as fast as a digest of them.
const PIECE_BYTES_MIN: usize = 48;

/// Counts the tokens of a text. The vocabulary is named, because the counts of two differ.
pub(super) fn count(name: &'static str, vocabulary: &CoreBpe, text: &str) -> usize {
    let (mut total, mut asked) = (0, Vec::new());
    for piece in pieces(text) {
        if piece.len() < PIECE_BYTES_MIN {
            total += vocabulary.count(piece);
        } else {
            asked.push((piece, (name, Digest::new(piece.as_bytes()))));
        }
    }
    {
        let mut kept = kept();
        asked.retain(|(_, key)| {
            let known = kept.find(*key);
            total += known.unwrap_or(0);
            known.is_none()
        });
    }
    let counted: Vec<(Key, usize)> =
        asked.iter().map(|(piece, key)| (*key, vocabulary.count(piece))).collect();
    total += counted.iter().map(|(_, count)| count).sum::<usize>();
    let mut kept = kept();
    for (key, count) in counted {
        kept.put(key, count);
    }
    total
}

/// Cuts a text between tokens, at places that depend only on the text right there and not on the text before: then a
/// change moves no other cut.
///
/// Every vocabulary splits a text by a pattern first. In all of them, white space up to its last line break is one
/// piece, or the end of a piece of punctuation, and a letter, a digit or one of these signs begins the next.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let is_cut = move |at: usize| {
        let is_begin = bytes.get(at).is_some_and(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'#' | b'-' | b'*' | b'<' | b'`')
        });
        is_begin && (bytes[..at].ends_with(b"\n\n") || is_chosen(&bytes[at..]))
    };
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1).filter(move |at| is_cut(*at));
    ends.chain([text.len()]).filter_map(move |end| {
        let piece = text.get(start..end);
        start = end;
        piece.filter(|piece| !piece.is_empty())
    })
}

/// Chooses about every eighth line, for texts without paragraphs.
fn is_chosen(line: &[u8]) -> bool {
    const LOOKED_AT: usize = 24;
    line.iter().take(LOOKED_AT).map(|byte| u32::from(*byte)).sum::<u32>().is_multiple_of(8)
}

type Key = (&'static str, Digest);

/// The recent counts, in two generations.
#[derive(Default)]
struct CountCache {
    recent: HashMap<Key, usize>,
    older: HashMap<Key, usize>,
}

impl CountCache {
    fn find(&mut self, key: Key) -> Option<usize> {
        if let Some(count) = self.recent.get(&key) {
            return Some(*count);
        }
        let count = self.older.remove(&key)?;
        self.put(key, count);
        Some(count)
    }

    fn put(&mut self, key: Key, count: usize) {
        if self.recent.len() >= KEPT_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, count);
    }
}

fn kept() -> MutexGuard<'static, CountCache> {
    static KEPT: LazyLock<Mutex<CountCache>> = LazyLock::new(Mutex::default);
    // Every entry is valid by itself, even if the thread that added it panicked.
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Tokenizer;
    use super::*;

    /// Parts of text that patterns treat in different ways, above all beside line breaks.
    const PARTS: [&str; 40] = [
        "\n",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        " ",
        "  ",
        "\t",
        "\u{a0}",
        "\u{2028}",
        "/",
        "//",
        "a",
        "Word",
        "word's",
        "'s",
        "'",
        "1",
        "1234",
        "é",
        "ß",
        "中文",
        "かな",
        "🦀",
        "\u{200d}",
        "\u{301}",
        "-",
        "--",
        "#",
        "# ",
        "*",
        "<",
        "`",
        "```",
        ".",
        "!?",
        "{}",
        "-----",
        "the quick brown fox jumps over it",
        "fn main() { let a = 1; }",
    ];

    #[test]
    fn what_was_not_asked_for_lately_is_forgotten() {
        let (mut kept, key) =
            (CountCache::default(), |number: usize| ("x", Digest::new(&number.to_le_bytes())));
        for number in 0..KEPT_MAX * 4 {
            kept.put(key(number), number);
            assert_eq!(kept.find(key(0)), Some(0));
            assert!(kept.recent.len() <= KEPT_MAX && kept.older.len() <= KEPT_MAX);
        }
        assert_eq!(kept.find(key(1)), None);
    }

    #[test]
    fn an_edit_moves_no_other_cut() {
        let line = |number: usize| format!("- Rule {number}: keep the part as it is, and say why.\n");
        let text: String = (0..200).map(line).collect();
        let edited = format!("{}A new line.\n{}", line(500), text);
        let before: Vec<&str> = pieces(&text).collect();
        let after: Vec<&str> = pieces(&edited).collect();
        assert!(before.len() > 10, "{}", before.len());
        assert_eq!(before[1..], after[after.len() + 1 - before.len()..]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn pieces_have_as_many_tokens_as_the_whole(
            parts in prop::collection::vec(prop::sample::select(&PARTS[..]), 0..200),
        ) {
            let text = parts.concat();
            prop_assert_eq!(pieces(&text).collect::<String>(), text.as_str());
            for name in Tokenizer::NAMES {
                let vocabulary = tiktoken::get_encoding(name).expect("it is compiled in");
                prop_assert_eq!(count(name, vocabulary, &text), vocabulary.count(&text), "{}", name);
                // The second count comes from memory.
                prop_assert_eq!(count(name, vocabulary, &text), vocabulary.count(&text), "{}", name);
            }
        }
    }
}
