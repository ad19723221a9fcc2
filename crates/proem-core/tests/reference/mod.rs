//! A slow, simple renderer, written from the grammar with characters, copies and recursion.

use std::collections::BTreeMap;

use proem_core::bracket::{Policies, StandaloneTags, UnknownType};

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Text(String),
    Variable(String, String),
    If(String, String, bool),
    Else(String),
    EndIf(String),
}

pub(crate) fn render(source: &str, values: &BTreeMap<&str, Option<String>>, policies: &Policies) -> String {
    let mut tokens = tokens(&source.chars().collect::<Vec<_>>());
    unblock(&mut tokens);
    if policies.standalone_tags == StandaloneTags::Trim {
        tokens = without_lonely_tags(tokens);
    }
    print(&tokens, values, policies)
}

fn is_space(c: char) -> bool {
    "\t\n\u{b}\u{c}\r \u{a0}\u{1680}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}".contains(c)
        || ('\u{2000}'..='\u{200a}').contains(&c)
}

fn tokens(source: &[char]) -> Vec<Token> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let close = source[at..].iter().position(|c| *c == ']').map(|close| at + close);
        if source[at] == '['
            && let Some(close) = close
        {
            let written: String = source[at..=close].iter().collect();
            let inside: String = source[at + 1..close].iter().collect();
            if let Some(token) = token(inside.trim_matches(is_space), &written) {
                found.push(token);
                at = close + 1;
                continue;
            }
        }
        found.push(Token::Text(source[at].to_string()));
        at += 1;
    }
    found
}

fn token(inside: &str, written: &str) -> Option<Token> {
    match inside {
        "else" => return Some(Token::Else(written.into())),
        "endif" => return Some(Token::EndIf(written.into())),
        _ => {}
    }
    if let Some(rest) = inside.strip_prefix("if")
        && rest.starts_with(is_space)
    {
        let condition = rest.trim_start_matches(is_space);
        let (negated, key) = match condition.strip_prefix('!') {
            Some(key) => (true, key),
            None => (false, condition),
        };
        return is_key(key).then(|| Token::If(written.into(), key.into(), negated));
    }
    is_key(inside).then(|| Token::Variable(written.into(), inside.into()))
}

fn is_key(text: &str) -> bool {
    let Some((word, rest)) = text.split_once(':') else { return false };
    !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !rest.contains(['\n', '\r', '\u{2028}', '\u{2029}'])
}

/// Turns every tag that belongs to no complete block into text.
fn unblock(tokens: &mut [Token]) {
    let mut open: Vec<(usize, Option<usize>)> = Vec::new();
    let mut text: Vec<usize> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::If(..) => open.push((index, None)),
            Token::Else(_) => match open.last_mut() {
                Some((_, other @ None)) => *other = Some(index),
                _ => text.push(index),
            },
            Token::EndIf(_) => {
                if open.pop().is_none() {
                    text.push(index);
                }
            }
            Token::Text(_) | Token::Variable(..) => {}
        }
    }
    for (opened, other) in open {
        text.push(opened);
        if let Some(other) = other {
            tokens[other] = Token::Text("[else]".into());
        }
    }
    for index in text {
        let (Token::If(written, ..) | Token::Else(written) | Token::EndIf(written)) = &tokens[index] else {
            continue;
        };
        tokens[index] = Token::Text(written.clone());
    }
}

/// Splits the tokens into lines and drops the white space of lines that contain only one block tag.
fn without_lonely_tags(tokens: Vec<Token>) -> Vec<Token> {
    let mut lines: Vec<Vec<Token>> = vec![Vec::new()];
    for token in tokens {
        let is_break = token == Token::Text("\n".into());
        lines.last_mut().unwrap().push(token);
        if is_break {
            lines.push(Vec::new());
        }
    }
    lines.into_iter().flat_map(without_white_space_if_lonely).collect()
}

fn without_white_space_if_lonely(line: Vec<Token>) -> Vec<Token> {
    let is_block = |token: &&Token| matches!(token, Token::If(..) | Token::Else(_) | Token::EndIf(_));
    let Some(tag) = line.iter().find(is_block).cloned() else { return line };
    let blank: String = line
        .iter()
        .map(|token| match token {
            Token::Text(text) => text.as_str(),
            token if is_block(&token) => "|",
            _ => "x",
        })
        .collect();
    let trimmed =
        blank.strip_suffix('\n').map_or(blank.as_str(), |rest| rest.strip_suffix('\r').unwrap_or(rest));
    if trimmed.trim_matches([' ', '\t']) == "|" { vec![tag] } else { line }
}

/// Prints tokens, entering only the active branches.
fn print(tokens: &[Token], values: &BTreeMap<&str, Option<String>>, policies: &Policies) -> String {
    let Some((first, rest)) = tokens.split_first() else { return String::new() };
    match first {
        Token::Text(text) => text.clone() + &print(rest, values, policies),
        Token::Variable(written, key) => {
            insert(written, key, values, policies) + &print(rest, values, policies)
        }
        Token::If(_, key, negated) => {
            let (yes, no, after) = branches(rest);
            let taken = if exists(key, values) == *negated { no } else { yes };
            print(taken, values, policies) + &print(after, values, policies)
        }
        Token::Else(_) | Token::EndIf(_) => unreachable!("only blocks are left"),
    }
}

fn branches(tokens: &[Token]) -> (&[Token], &[Token], &[Token]) {
    let (mut depth, mut other) = (0, None);
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::If(..) => depth += 1,
            Token::Else(_) if depth == 0 => other = Some(index),
            Token::EndIf(_) if depth == 0 => {
                let yes = &tokens[..other.unwrap_or(index)];
                let no = other.map_or(&[][..], |other| &tokens[other + 1..index]);
                return (yes, no, &tokens[index + 1..]);
            }
            Token::EndIf(_) => depth -= 1,
            _ => {}
        }
    }
    unreachable!("every block is closed")
}

fn exists(key: &str, values: &BTreeMap<&str, Option<String>>) -> bool {
    values.get(key).map_or_else(|| key.starts_with("literal:"), Option::is_some)
}

fn insert(written: &str, key: &str, values: &BTreeMap<&str, Option<String>>, policies: &Policies) -> String {
    match (values.get(key), key.strip_prefix("literal:")) {
        (Some(value), _) => value.clone().unwrap_or_default(),
        (None, Some(name)) => format!("[{name}]"),
        (None, None) if policies.unknown_type == UnknownType::Literal => written.to_owned(),
        (None, None) => String::new(),
    }
}
