//! Texts of any length that are hard for a handler that searches, counts or compares from the beginning each time.

/// A text that can be made as long as one likes.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    make: Make,
}

enum Make {
    /// One piece again and again.
    Repeated(&'static str),
    /// A beginning, a piece again and again, and an end.
    Between(&'static str, &'static str, &'static str),
    /// Pieces that depend on their number.
    Numbered(fn(usize) -> String),
}

impl Shape {
    /// Makes a text of about this size.
    pub(crate) fn text(&self, bytes: usize) -> String {
        let fill = |piece: &str| piece.repeat(bytes / piece.len() + 1);
        match self.make {
            Make::Repeated(piece) => fill(piece),
            Make::Between(first, piece, last) => format!("{first}{}{last}", fill(piece)),
            Make::Numbered(piece) => {
                let mut text = String::with_capacity(bytes);
                let mut number = 0;
                while text.len() < bytes {
                    text.push_str(&piece(number));
                    number += 1;
                }
                text
            }
        }
    }
}

const fn repeated(name: &'static str, piece: &'static str) -> Shape {
    Shape { name, make: Make::Repeated(piece) }
}

const fn numbered(name: &'static str, piece: fn(usize) -> String) -> Shape {
    Shape { name, make: Make::Numbered(piece) }
}

const fn between(name: &'static str, first: &'static str, piece: &'static str, last: &'static str) -> Shape {
    Shape { name, make: Make::Between(first, piece, last) }
}

pub(crate) const SHAPES: [Shape; 86] = [
    repeated("newlines", "\n"),
    repeated("spaces", "a "),
    repeated("tabs", "\t"),
    repeated("CR LF", "\r\n"),
    repeated("CR", "\r"),
    repeated("blank lines", " \n"),
    repeated("one word", "a"),
    repeated("lines", "a line of text\n"),
    repeated(
        "equal paragraphs",
        "a paragraph that is long enough to be compared with others of the same kind, word by word\n\n",
    ),
    numbered("two symbols", |number| {
        if number.wrapping_mul(2_654_435_761) >> 7 & 1 == 0 { "a\n" } else { "b\n" }.into()
    }),
    repeated("bidi controls", "\u{202E}a"),
    repeated("bidi lines", "\u{202E}a\n"),
    repeated("marks in Hebrew", "\u{5D0}\u{200E}"),
    repeated("marks in Latin", "a\u{200E}"),
    repeated("zero width", "a\u{200B}"),
    repeated("tag characters", "\u{E0061}"),
    repeated("tag characters apart", "a\u{E0061}"),
    repeated("flags", "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}"),
    repeated("flags that do not end", "\u{1F3F4}\u{E0067}"),
    repeated("selectors", "\u{FE0F}"),
    repeated("selectors apart", "a\u{FE0F}"),
    repeated("selectors behind others", "\u{845B}\u{FE00}\u{200B}\u{FE00}"),
    repeated("joiners", "\u{645}\u{200D}"),
    repeated("joined pictures", "\u{1F469}\u{200D}\u{1F680}"),
    repeated("byte order marks", "\u{FEFF}"),
    repeated("bells", "\u{7}a"),
    repeated("escapes", "\u{1B}[31m"),
    repeated("disguised words", "p\u{430}ssword "),
    repeated("disguised headings", "# p\u{430}ssword\n"),
    repeated("one disguised word", "p\u{430}"),
    repeated("open comments", "<!--\n"),
    repeated("closed comments", "-->\n"),
    repeated("comments", "<!-- a -->\n"),
    repeated("comments in a line", "<!-- a -->"),
    between("comments before white space", "<!-- a --><!-- b -->", "<!-- c --> ", "\t\t\t\t"),
    repeated("references in open comments", "<!-- @a.md\n"),
    repeated("fences", "```\n"),
    repeated("fences of two kinds", "~~~\n```\n"),
    repeated("references in fences", "```\n@a\n"),
    repeated("references in indented lines", "    @a\n\n"),
    repeated("references in backticks", "`@a` "),
    repeated("backticks", "`"),
    repeated("lone backticks", "` \n\n"),
    repeated("unequal backticks", "`` ` "),
    numbered("more and more backticks", |number| format!("{} ", "`".repeat(number % 1_400))),
    numbered("fewer and fewer backticks", |number| format!("{} ", "`".repeat(1_400 - number % 1_400))),
    repeated("at signs", "@"),
    repeated("references", "@a.md "),
    repeated("lines with references", "@a.md\n"),
    numbered("references to nothing", |number| format!("@m{number}.md\n")),
    repeated("references to folders", "@./ "),
    repeated("references out of the project", "@../../x.md "),
    repeated("addresses as references", "@http://a.b/c "),
    between("a long reference", "@", "a/", ".md"),
    repeated("escaped references", "@a\\ "),
    repeated("references with dots", "@a.b."),
    repeated("rulers", "---\n"),
    between("front matter that does not end", "---\n", "a: b\n", ""),
    between("front matter", "---\n", "k: v\n", "---\n"),
    repeated("lines that begin a key", "-----BEGIN \n"),
    repeated("keys", "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0123456789abcdef\n"),
    between("a key and white space", "-----BEGIN RSA PRIVATE KEY-----", "\n", ""),
    repeated("assignments", "token="),
    repeated("sentences about tokens", "token is "),
    repeated("tokens", "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB "),
    repeated("tokens with dots", "SG."),
    repeated("web tokens", "eyJ."),
    repeated("bots", "12345678:AA"),
    repeated("bearers", "Bearer "),
    repeated("addresses", "http://a:b@"),
    repeated("webhooks", "hooks.slack.com/services/"),
    repeated("headings", "# a\n"),
    numbered("other headings", |number| format!("# h{number}\n")),
    repeated("contradictions", "- never use tabs\n- always use tabs\n"),
    repeated("labels", "a:\n- b c\n"),
    repeated("brackets", "["),
    repeated("variables", "[system:os]"),
    numbered("files that are not there", |number| format!("[file:m{number}.md]\n")),
    numbered("names that are not known", |number| format!("[systen:o{number}] ")),
    repeated("unknown tags", "[if x]"),
    repeated("braces", "{{"),
    repeated("open tags of XML", "<a>"),
    repeated("quotes", "\""),
    between("accents on one letter", "a", "\u{301}", ""),
    repeated("line separators", "\u{2028}"),
    repeated("backslashes", "\\"),
];
