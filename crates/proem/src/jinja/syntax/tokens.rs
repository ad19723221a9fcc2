//! The relevant tokens of a template, each with its place.

use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use crate::jinja::syntax::RESERVED;

/// A token.
pub(crate) struct Mark {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The bytes of a text between two tags.
    pub(crate) text_bytes: usize,
}

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text outside of tags.
    Text,
    VariableStart,
    VariableEnd,
    BlockStart,
    BlockEnd,
    Elif,
    BracketOpen,
    /// A round or curly bracket.
    Open,
    /// Any bracket.
    Close,
    Comma,
    Assign,
    Times,
    Power,
    /// The first word of `not in`.
    Not,
    If,
    /// A name that only proem itself may write.
    Reserved,
    Other,
}

/// The tokens of a template.
pub(crate) fn tokens(text: &str, syntax: &SyntaxConfig) -> Result<Vec<Mark>, minijinja::Error> {
    let mark = |found: Result<(Token<'_>, Span), minijinja::Error>| {
        let (token, span) = found?;
        let text_bytes = if let Token::TemplateData(text) = token { text.len() } else { 0 };
        let (start, end) = (span.start_offset as usize, span.end_offset as usize);
        Ok(Mark { kind: kind(&token), start, end, text_bytes })
    };
    tokenize(text, false, syntax.clone()).map(mark).collect()
}

fn kind(token: &Token<'_>) -> Kind {
    match token {
        Token::TemplateData(_) => Kind::Text,
        Token::VariableStart => Kind::VariableStart,
        Token::VariableEnd => Kind::VariableEnd,
        Token::BlockStart => Kind::BlockStart,
        Token::BlockEnd => Kind::BlockEnd,
        Token::BracketOpen => Kind::BracketOpen,
        Token::ParenOpen | Token::BraceOpen => Kind::Open,
        Token::BracketClose | Token::ParenClose | Token::BraceClose => Kind::Close,
        Token::Comma => Kind::Comma,
        Token::Assign => Kind::Assign,
        Token::Mul => Kind::Times,
        Token::Pow => Kind::Power,
        Token::Ident("elif") => Kind::Elif,
        Token::Ident("not") => Kind::Not,
        Token::Ident("if") => Kind::If,
        Token::Ident(name) if name.starts_with(RESERVED) => Kind::Reserved,
        _ => Kind::Other,
    }
}
