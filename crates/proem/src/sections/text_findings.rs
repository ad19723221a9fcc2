//! What is wrong with a text by itself: hidden characters, disguised words, secrets, line endings.

use std::ops::Range;
use std::sync::LazyLock;

use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::text::{Place, Places};
use proem_core::text_safety::confusable::disguised_word;
use proem_core::text_safety::hygiene::{self, Oddity, OddityKind};
use proem_core::text_safety::secret::{Scanner, masked};

/// Most findings of one kind that are listed for one text.
const LISTED_MAX: usize = 20;

/// How much of a disguised word is shown.
const DISGUISED_CHARACTERS_MAX: usize = 16;

/// How much of a hidden text is shown.
const DECODED_CHARACTERS_MAX: usize = 200;

/// Looks for secrets in every text of a check.
pub(crate) static SECRETS: LazyLock<Scanner> = LazyLock::new(Scanner::new);

/// A text, and where it comes from.
#[derive(Debug, Clone)]
pub(crate) struct ScannedText<'t> {
    pub(crate) text: &'t str,
    /// Places are counted from its first character.
    pub(crate) source: Source,
    /// Whether it is a whole file, so that bytes of the text are bytes of the file.
    pub(crate) is_file: bool,
}

/// The odd characters of a text, as findings.
pub(crate) fn odd_characters(text: &str, source: &Source) -> Vec<Note> {
    let mut notes = Vec::new();
    if !is_plain(text) {
        ScannedText { text, source: source.clone(), is_file: false }.characters(&mut notes);
    }
    notes
}

/// What looks like a secret in a text, as findings.
pub(crate) fn secrets(text: &str, source: &Source) -> Vec<Note> {
    let mut notes = Vec::new();
    // Nearly no text has any, and there are many texts: nothing is made ready for those.
    if SECRETS.scan(text).is_empty() {
        return notes;
    }
    ScannedText { text, source: source.clone(), is_file: false }.secrets(&mut notes);
    notes
}

impl ScannedText<'_> {
    fn slice(&self, bytes: &Range<usize>) -> &str {
        self.text.get(bytes.clone()).unwrap_or_default()
    }

    fn at(&self, place: Place) -> Source {
        self.source.at(place)
    }

    /// Everything that is wrong with it.
    pub(crate) fn lints(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        if !is_plain(self.text) {
            self.characters(&mut notes);
            self.headings(&mut notes);
            self.line_endings(&mut notes);
        }
        self.secrets(&mut notes);
        notes
    }

    /// Odd characters: one finding for each kind in a line.
    fn characters(&self, notes: &mut Vec<Note>) {
        let mut places = Places::new(self.text);
        let mut runs: Vec<Run> = Vec::new();
        let mut line = Line::default();
        for oddity in hygiene::scan(self.text) {
            let place = places.at(oddity.bytes.start);
            let is_mark =
                oddity.kind == OddityKind::Bidi && self.is_mark_beside_script(&oddity.bytes, &mut line);
            match runs
                .iter_mut()
                .rev()
                .take_while(|run| run.place.line == place.line)
                .find(|run| run.first.kind == oddity.kind && run.is_mark == is_mark)
            {
                Some(run) => run.take(&oddity),
                None => runs.push(Run { first: oddity, place, is_mark }),
            }
        }
        let more = runs.len().saturating_sub(LISTED_MAX);
        for run in runs.iter().take(LISTED_MAX) {
            let note = run.note(self.slice(&run.first.bytes), self.is_file).with_source(self.at(run.place));
            let can_be_mended = self.is_file && run.first.kind.is_removable();
            notes.push(if can_be_mended { note.with_fix(run.first.bytes.clone(), "") } else { note });
        }
        if more > 0 {
            let message = format!("{more} more lines with such characters are not listed");
            let note = Note::new(Code::HiddenText, Severity::Warning, message);
            notes.push(note.with_source(self.source.without_place()));
        }
    }

    /// Marks of direction, which change nothing but the order of signs, in a line that is written from right to left.
    fn is_mark_beside_script(&self, bytes: &Range<usize>, line: &mut Line) -> bool {
        let is_mark = |character: char| matches!(character, '\u{200E}' | '\u{200F}' | '\u{61C}');
        self.slice(bytes).chars().all(is_mark) && line.around(self.text, bytes.start).is_right_to_left
    }

    fn headings(&self, notes: &mut Vec<Note>) {
        let lines = self.text.lines().enumerate().filter(|(_, line)| !line.is_ascii());
        let disguised = lines.filter_map(|(index, line)| Some((index, line, disguised_word(line)?)));
        for (index, line, (word, seen)) in disguised.take(LISTED_MAX) {
            let is_heading = line.trim_start().starts_with('#');
            let (severity, what) = (Severity::Warning, if is_heading { "heading" } else { "text" });
            let spelt: String = word.chars().take(DISGUISED_CHARACTERS_MAX).map(spell).collect();
            let seen: String = seen.chars().take(DISGUISED_CHARACTERS_MAX).collect();
            let message = format!(
                "a word of the {what} reads as `{seen}` and has letters of another script: `{spelt}`"
            );
            let column = line.split(word).next().map_or(1, |before| before.chars().count() + 1);
            let note = Note::new(Code::DisguisedText, severity, message)
                .with_hint("write it with letters of one script")
                .with_source(self.at(Place { line: index + 1, column }));
            notes.push(note);
        }
    }

    fn line_endings(&self, notes: &mut Vec<Note>) {
        if !self.is_file {
            return;
        }
        let with_return = memchr::memmem::find_iter(self.text.as_bytes(), "\r\n").count();
        let all = memchr::memchr_iter(b'\n', self.text.as_bytes()).count();
        let (severity, message) = match with_return {
            0 => return,
            some if some < all => {
                (Severity::Warning, format!("{some} of {all} lines end with CR LF, the others with LF"))
            }
            _ => (
                Severity::Info,
                "its lines end with CR LF: another checkout has other bytes, and another cache".to_owned(),
            ),
        };
        let note = Note::new(Code::LineEndings, severity, message)
            .with_hint("use LF, and say `* text=auto eol=lf` in .gitattributes")
            .with_source(self.source.without_place())
            .with_fix(0..self.text.len(), self.text.replace("\r\n", "\n"));
        notes.push(note);
    }

    fn secrets(&self, notes: &mut Vec<Note>) {
        let mut places = Places::new(self.text);
        for found in SECRETS.scan(self.text).into_iter().take(LISTED_MAX) {
            let place = places.at(found.bytes.start);
            let message = format!("this looks like {}: {}", found.what, masked(self.slice(&found.bytes)));
            let note = Note::new(Code::LooksSecret, Severity::Error, message)
                .with_hint(
                    "take it out and replace it where it is valid: what is in a prompt is sent to the provider",
                )
                .with_source(self.at(place));
            notes.push(note);
        }
    }
}

/// Tells whether a text has nothing but what everybody sees.
fn is_plain(text: &str) -> bool {
    const STRIDE: usize = 64;
    let is_plain = |byte: u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    let (strides, rest) = text.as_bytes().as_chunks::<STRIDE>();
    // Without a branch for each byte, so that they are compared together.
    let are_plain = |stride: &[u8]| stride.iter().fold(true, |all, byte| all & is_plain(*byte));
    strides.iter().all(|stride| are_plain(stride)) && are_plain(rest)
}

/// A line of a text, looked at once however many characters of it are asked about.
#[derive(Default)]
struct Line {
    bytes: Range<usize>,
    is_right_to_left: bool,
}

impl Line {
    /// The line that has a byte.
    fn around(&mut self, text: &str, byte: usize) -> &Self {
        if !self.bytes.contains(&byte) {
            let is_right_to_left = |character: char| {
                matches!(character, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}')
                    && character.is_alphabetic()
            };
            let (before, behind) = text.split_at_checked(byte).unwrap_or_default();
            let start = before.rfind('\n').map_or(0, |at| at + 1);
            let end = behind.find('\n').map_or(text.len(), |at| byte + at);
            let line = text.get(start..end).unwrap_or_default();
            *self = Self { bytes: start..end, is_right_to_left: line.contains(is_right_to_left) };
        }
        self
    }
}

/// Characters of one kind in one line.
struct Run {
    first: Oddity,
    place: Place,
    /// Whether they are marks that the script of the line needs.
    is_mark: bool,
}

impl Run {
    fn take(&mut self, other: &Oddity) {
        self.first.characters += other.characters;
        match (&mut self.first.decoded, &other.decoded) {
            (Some(text), Some(more)) => text.push_str(more),
            (none @ None, Some(_)) => none.clone_from(&other.decoded),
            _ => {}
        }
    }

    fn note(&self, run: &str, is_file: bool) -> Note {
        let Oddity { kind, characters: count, decoded, .. } = &self.first;
        let what = if *count == 1 {
            kind.words().replacen("characters", "character", 1)
        } else {
            kind.words().to_owned()
        };
        let what = if *count == 1 { what.trim_end_matches('s') } else { &what };
        let (code, hint) = match kind {
            OddityKind::Bidi => {
                (Code::BidiControl, "remove it, unless the text is in a script that needs it")
            }
            OddityKind::Control => (Code::ControlCharacter, "remove it: it can change what a terminal shows"),
            _ if is_file => (Code::HiddenText, "remove it, or add `--fix` to the command"),
            _ => (Code::HiddenText, "remove it"),
        };
        let (severity, said) = match decoded {
            Some(text) => (Severity::Error, format!(", in clear text: «{}»", shortened(text))),
            None => (Severity::Warning, format!(": {}", run.chars().take(4).map(spell).collect::<String>())),
        };
        let is_harmless = *kind == OddityKind::ByteOrderMark || self.is_mark;
        let severity = if is_harmless { Severity::Info } else { severity };
        Note::new(code, severity, format!("{count} {what}{said}")).with_hint(hint)
    }
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(DECODED_CHARACTERS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// A character that can be told from one that looks the same.
fn spell(character: char) -> String {
    if character.is_ascii_graphic() {
        character.to_string()
    } else {
        format!("<U+{:04X}>", u32::from(character))
    }
}
