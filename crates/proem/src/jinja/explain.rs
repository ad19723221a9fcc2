//! Explains errors of Jinja templates: the template, the place, and the includes that lead to it.

use crate::error::{ErrorCause, TemplateError, TemplateErrorKind};
use crate::jinja::asset::Assets;
use crate::jinja::ending::Ending;

/// Converts minijinja's error to ours: the innermost cause, and the includes around it.
///
/// `original` maps a byte of the rendered text to the author's own.
pub(super) fn explain(
    error: minijinja::Error,
    assets: &Assets,
    original: &dyn Fn(&str, usize) -> usize,
    known: &[String],
) -> TemplateError {
    let described = describe(&error, assets, original, known);
    TemplateError { cause: ErrorCause::new(error), ..described }
}

fn describe(
    error: &minijinja::Error,
    assets: &Assets,
    original: &dyn Fn(&str, usize) -> usize,
    known: &[String],
) -> TemplateError {
    let mut chain: Vec<&minijinja::Error> = vec![error];
    let mut next = std::error::Error::source(error);
    while let Some(inner) = next.and_then(|source| source.downcast_ref::<minijinja::Error>()) {
        chain.push(inner);
        next = std::error::Error::source(inner);
    }
    let Some((cause, around)) = chain.split_last() else {
        return TemplateError::new("", TemplateErrorKind::Render, "it fails for an unknown reason");
    };
    let name = chain.iter().rev().find_map(|error| error.name()).unwrap_or_default();
    let mut explained = TemplateError::new(name, kind(cause), message(cause));
    if let Some(Ok(asset)) = assets.find(name) {
        let range = cause.range().map(|range| original(name, range.start)..original(name, range.end));
        explained = explained.at(
            &asset.text,
            &asset.origin,
            range.clone().map_or_else(|| line_start(cause, &asset.text), |range| range.start),
        );
        if cause.kind() == minijinja::ErrorKind::UndefinedError {
            let wanted = range.and_then(|range| asset.text.get(range)).unwrap_or_default();
            explained = undefined(explained, wanted, known);
            if let Some(ending) = Ending::from_error(cause) {
                explained.message = ending.to_string();
            }
        }
    }
    explained.included_from = around.iter().rev().map(|outer| place_of(outer)).collect();
    if matches!(explained.kind, TemplateErrorKind::Limit | TemplateErrorKind::Nesting) {
        explained.hint = Some("shorten loops and includes; the limits are listed by `proem config`".into());
    }
    explained
}

fn kind(error: &minijinja::Error) -> TemplateErrorKind {
    use minijinja::ErrorKind as Cause;
    let is_limit = matches!(error.kind(), Cause::OutOfFuel | Cause::WriteFailure)
        || matches!(
            Ending::from_error(error),
            Some(Ending::LargeValue | Ending::Stopped | Ending::LargeTemplate(_))
        );
    match error.kind() {
        _ if is_limit => TemplateErrorKind::Limit,
        _ if is_recursion(error) => TemplateErrorKind::Nesting,
        Cause::SyntaxError => TemplateErrorKind::Syntax,
        Cause::TemplateNotFound => TemplateErrorKind::Missing,
        Cause::UndefinedError
        | Cause::UnknownFilter
        | Cause::UnknownTest
        | Cause::UnknownFunction
        | Cause::UnknownMethod => TemplateErrorKind::Undefined,
        _ => TemplateErrorKind::Render,
    }
}

fn message(error: &minijinja::Error) -> String {
    let kind = error.kind().to_string();
    if let Some(ending) = Ending::from_error(error) {
        return ending.to_string();
    }
    match (error.kind(), error.detail()) {
        (minijinja::ErrorKind::OutOfFuel, _) => Ending::Stopped.to_string(),
        (minijinja::ErrorKind::WriteFailure, _) => "its output is too large".into(),
        (_, Some(detail)) if is_recursion(error) => {
            format!("it includes or calls itself too deeply ({detail})")
        }
        (minijinja::ErrorKind::TemplateNotFound, Some(detail)) => detail.to_owned(),
        (_, Some(detail)) => format!("{kind}: {detail}"),
        (_, None) => kind,
    }
}

/// Tells whether minijinja's limit of nesting ended a render or the parser, which only the text of its errors shows.
fn is_recursion(error: &minijinja::Error) -> bool {
    use minijinja::ErrorKind::{InvalidOperation, SyntaxError};
    matches!(
        (error.kind(), error.detail()),
        (InvalidOperation, Some("recursion limit exceeded"))
            | (SyntaxError, Some("template exceeds maximum recursion limits"))
    )
}

/// Adds the name of the undefined variable, and the defined ones.
fn undefined(error: TemplateError, wanted: &str, known: &[String]) -> TemplateError {
    let wanted = first_unknown(wanted, known);
    let near = proem_core::did_you_mean::nearest(wanted, known.iter().map(String::as_str));
    let message =
        if wanted.is_empty() { error.message.clone() } else { format!("`{wanted}` is not defined") };
    let listed = known.join(", ");
    let hint = match near {
        Some(near) => format!("did you mean `{near}`? defined are: {listed}"),
        None => format!("defined are: {listed}"),
    };
    TemplateError { message, ..error }.with_hint(hint)
}

/// Returns the first undefined name in an expression: `ghost` in `ghost ~ cwd`.
fn first_unknown<'e>(expression: &'e str, known: &[String]) -> &'e str {
    let is_name = |character: char| character.is_alphanumeric() || matches!(character, '_' | '.');
    let names = || expression.split(|character| !is_name(character)).filter(|name| !name.is_empty());
    let is_known = |name: &&str| known.iter().any(|known| known == name);
    names().find(|name| name.starts_with(char::is_alphabetic) && !is_known(name)).unwrap_or(expression)
}

fn place_of(error: &minijinja::Error) -> String {
    let name = error.name().unwrap_or("?");
    error.line().map_or_else(|| name.to_owned(), |line| format!("{name}, line {line}"))
}

/// Returns the byte at which the error's line begins, for errors without an exact place.
fn line_start(error: &minijinja::Error, text: &str) -> usize {
    let line = error.line().unwrap_or(1);
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}
