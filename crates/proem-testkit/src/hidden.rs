//! Texts with invisible characters, and the result of the profile `default` for each.

/// A text with invisible characters.
#[derive(Debug)]
pub struct Hidden {
    /// The row of the security ledger and the subject.
    pub row: &'static str,
    /// The text.
    pub text: &'static str,
    /// The result of `neutralise`.
    pub treated: &'static str,
    /// The code of the note that reports it.
    pub code: &'static str,
}

/// Rows C1 to C4 and C6.
pub const HIDDEN: [Hidden; 12] = [
    Hidden { row: "C1 tags", text: "a\u{E0068}\u{E0069}b", treated: "ab", code: "hidden_text" },
    Hidden { row: "C2 override", text: "a\u{202E}b", treated: "a<U+202E>b", code: "bidi_control" },
    Hidden {
        row: "C2 isolate",
        text: "a\u{2066}b\u{2069}",
        treated: "a<U+2066>b<U+2069>",
        code: "bidi_control",
    },
    Hidden { row: "C3 zero width", text: "a\u{200B}b", treated: "ab", code: "hidden_text" },
    Hidden { row: "C3 joiner between letters", text: "a\u{200D}b", treated: "ab", code: "hidden_text" },
    Hidden { row: "C3 soft hyphen", text: "a\u{AD}b", treated: "ab", code: "hidden_text" },
    Hidden { row: "C3 filler", text: "a\u{3164}b", treated: "ab", code: "hidden_text" },
    Hidden { row: "C3 mark in the middle", text: "a\u{FEFF}b", treated: "ab", code: "hidden_text" },
    Hidden {
        row: "C4 selectors",
        text: "a\u{FE00}\u{FE01}\u{FE02}\u{FE03}b",
        treated: "ab",
        code: "hidden_text",
    },
    Hidden { row: "C6 escape", text: "a\u{1B}[2Jb", treated: "a<U+001B>[2Jb", code: "control_character" },
    Hidden { row: "C6 C1", text: "a\u{9B}2Jb", treated: "a<U+009B>2Jb", code: "control_character" },
    Hidden { row: "C6 lone return", text: "a\rb", treated: "a<U+000D>b", code: "control_character" },
];
