//! Token estimates, with bounds, for models whose vocabulary is not public.
//!
//! A byte of prose and a byte of base64 cost very different shares of a token, and vocabularies differ most for text
//! that is least like English. Bytes are therefore counted by class, and each class has a lowest and a highest rate.
//! The bounds are measured: a test counts texts of every class, and random mixtures, with each compiled-in
//! vocabulary. The likely number is one token per 2.7 bytes, which is within 17 % for English and code on current
//! Claude models, whose vocabulary is not public; public vocabularies need fewer tokens for English.

use core::ops::Add;

use crate::cache_loss::estimated_tokens;

/// The tokens of a text: a likely number with a lower and an upper bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    bytes: usize,
    /// Bytes that look like encoded data.
    dense: usize,
    /// Lower bound in thousandths of a token; `high` has the same unit.
    low: u64,
    high: u64,
    /// Set once the last word has its minimum of one token.
    has_word: bool,
}

/// Rates in thousandths of a token, for one byte or one character.
#[derive(Debug, Clone, Copy)]
struct Rate {
    low: u64,
    high: u64,
}

const fn rate(low: u64, high: u64) -> Rate {
    Rate { low, high }
}

/// A letter of a word. A word has at least one token; see [`WORD_LOW`].
const LETTER: Rate = rate(0, 600);
/// Added for a capital: words in capitals are rare in vocabularies.
const CAPITAL: Rate = rate(0, 200);
/// Added for a letter that is rare in words and frequent in random letters.
const RARE: Rate = rate(0, 450);
/// Added for a letter among digits.
const AMONG_DIGITS: Rate = rate(0, 400);
/// A word of any length has at least one token; a very long one has more.
const WORD_LOW: u64 = 1000;
const LONG_WORD_LETTER_LOW: u64 = 110;
/// A byte of an identifier that contains no words: base64, hexadecimal digits.
const DENSE: Rate = rate(450, 1000);
/// A digit.
const DIGIT: Rate = rate(333, 1000);
/// An ASCII punctuation character, such as a bracket; it may share a token with the word after it.
const SIGN: Rate = rate(50, 1000);
/// A repetition of the same character: rules and indents are single tokens in some vocabularies.
const SIGN_AGAIN: Rate = rate(5, 650);
/// A control character.
const CONTROL: Rate = rate(100, 1000);
/// A space before a letter, which is part of the word's token.
const SPACE_OF_WORD: Rate = rate(0, 200);
/// Other white space.
const SPACE: Rate = rate(0, 1000);
/// A repetition of the same white space.
const SPACE_AGAIN: Rate = rate(0, 550);
/// A letter of an alphabet with two bytes per letter: Cyrillic, Greek, Arabic, Hebrew, accented Latin. A text never
/// has more tokens than bytes, so this upper bound holds for every vocabulary.
const LETTER_OF_TWO: Rate = rate(180, 2000);
/// A character with three bytes: Chinese, Japanese, Korean, Hindi, Thai, and symbols.
const LETTER_OF_THREE: Rate = rate(220, 3000);
/// A character with four bytes: emoji.
const LETTER_OF_FOUR: Rate = rate(400, 4000);
/// A repetition of the same character, of any length.
const AGAIN: Rate = rate(10, 4000);

/// Shorter runs are names, which have the likely rate of words.
const ENCODED_BYTES_MIN: usize = 32;

impl Estimate {
    /// Estimates the tokens of a text.
    ///
    /// ```
    /// use proem_core::estimate::Estimate;
    ///
    /// let estimate = Estimate::from_text("You are a calm assistant.");
    /// assert!(estimate.low() <= 5 && estimate.high() >= 5);
    /// ```
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let mut found = Self { bytes: text.len(), ..Self::default() };
        let mut rest = text;
        let mut previous = '\0';
        while let Some(first) = rest.chars().next() {
            let run = run_of(rest);
            if run.is_empty() {
                let bytes = first.len_utf8();
                let (_, behind) = rest.split_at(bytes);
                found.add_character(first, previous, behind.as_bytes().first().copied());
                rest = behind;
                previous = first;
            } else {
                found.add_run(run, previous);
                rest = rest.get(run.len()..).unwrap_or_default();
                previous = '\0';
            }
        }
        found
    }

    /// Returns the likely number of tokens.
    #[must_use]
    pub fn tokens(self) -> usize {
        // Seven tokens per ten bytes: a third more than the rate of prose.
        (estimated_tokens(self.bytes) + self.dense / 3).clamp(self.low(), self.high())
    }

    /// Returns the bounds as percentages of the likely number: below it and above it.
    #[must_use]
    pub fn error_percent(self) -> (usize, usize) {
        let tokens = self.tokens();
        let (less, more) = (tokens - self.low(), self.high() - tokens);
        ((less * 100).div_ceil(tokens.max(1)), (more * 100).div_ceil(tokens.max(1)))
    }

    /// Returns the lower bound.
    #[must_use]
    pub const fn low(self) -> usize {
        whole(self.low / 1000)
    }

    /// Returns the upper bound.
    #[must_use]
    pub const fn high(self) -> usize {
        whole(self.high.div_ceil(1000))
    }

    /// Adds a run of letters and digits.
    fn add_run(&mut self, run: &str, previous: char) {
        if is_dense(run) {
            self.has_word = true;
            if run.len() >= ENCODED_BYTES_MIN {
                self.dense += run.len();
            }
            return self.add_times(DENSE, run.len());
        }
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        let letters = run.len() - digits;
        self.add_times(DIGIT, digits);
        self.add_times(LETTER, letters);
        self.add_times(CAPITAL, run.bytes().filter(u8::is_ascii_uppercase).count());
        self.add_times(RARE, run.bytes().filter(|byte| is_rare(*byte)).count());
        if digits > 0 {
            self.add_times(AMONG_DIGITS, letters);
        }
        // Text after an apostrophe may share a token with the word before it ("don't"), and so may the rest of a word
        // after an accented letter.
        if letters > 0 && previous != '\'' && previous.is_ascii() {
            self.low += WORD_LOW.max(LONG_WORD_LETTER_LOW * letters as u64);
        }
        self.has_word = letters > 0;
    }

    fn add_character(&mut self, character: char, previous: char, next: Option<u8>) {
        let is_again = character == previous;
        self.has_word &= !character.is_ascii();
        let has_token = self.has_word;
        let rate = match character {
            ' ' if next.is_some_and(|byte| byte.is_ascii_alphabetic()) => SPACE_OF_WORD,
            ' ' | '\t' | '\n' | '\r' if is_again => SPACE_AGAIN,
            ' ' | '\t' | '\n' | '\r' => SPACE,
            '\0'..='\x1f' | '\x7f' => CONTROL,
            '\0'..='\x7f' if is_again => SIGN_AGAIN,
            '\0'..='\x7f' => SIGN,
            _ if is_again => Rate { high: 1000 * character.len_utf8() as u64, ..AGAIN },
            '\u{80}'..='\u{7ff}' => LETTER_OF_TWO,
            '\u{800}'..='\u{ffff}' => LETTER_OF_THREE,
            _ => LETTER_OF_FOUR,
        };
        self.add_times(Rate { low: if has_token { 0 } else { rate.low }, ..rate }, 1);
    }

    fn add_times(&mut self, rate: Rate, count: usize) {
        let count = count as u64;
        self.low += rate.low * count;
        self.high += rate.high * count;
    }
}

impl Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            dense: self.dense + other.dense,
            low: self.low + other.low,
            high: self.high + other.high,
            has_word: other.has_word,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a text has at most as many tokens as bytes")]
const fn whole(tokens: u64) -> usize {
    tokens as usize
}

/// Returns the ASCII letters and digits at the start of a text.
fn run_of(text: &str) -> &str {
    let end = text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Tells whether a letter is one of the seven that make up 5 % of English and 27 % of random letters.
const fn is_rare(byte: u8) -> bool {
    matches!(byte.to_ascii_lowercase(), b'j' | b'k' | b'q' | b'v' | b'w' | b'x' | b'z')
}

/// Tells whether a run looks like encoded bytes: the kind of character changes at least every third byte. A capital
/// at the start of a word does not count as a change.
fn is_dense(run: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let is_change =
        |pair: &&[u8]| kind(pair[0]) != kind(pair[1]) && !(kind(pair[0]) == 1 && kind(pair[1]) == 2);
    let changes = run.as_bytes().windows(2).filter(is_change).count();
    run.len() >= 8 && changes * 3 >= run.len()
}
