//! Failures of commands: message, hint and exit code.

use std::env;
use std::io;
use std::process::ExitCode;

use proem::{Error, ErrorKind, Excerpt};
use proem_core::text_safety::escape::escape_with;
use proem_store::{StoreError, redacted};

use crate::input::reason;
use crate::notes::{print_error, print_hint};
use crate::terminal::visible;

/// The reason that a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library returned an error.
    Build(Error),
    /// An input file could not be used.
    Input { what: &'static str, path: String, why: String },
    /// Two inputs are read from standard input.
    TwoReaders,
    /// Two flags contradict each other.
    Flags { flag: &'static str, other: &'static str, hint: &'static str },
    /// An argument or an environment variable is invalid.
    Usage { message: String, hint: String },
    /// An operation of a store, a conversation or a server failed.
    Server { message: String, hint: String },
    /// A server refused a request.
    Refused { code: String, message: String, hint: String },
    /// Standard output could not be written.
    Output(io::Error),
    /// A file could not be written.
    Write { path: String, why: io::Error },
    /// A program that was run ended with this code.
    Exit(u8),
    /// The printed result exits with code 1: a finding, a difference, or a text that is not in the prompt.
    Findings,
}

impl Failure {
    /// Prints the failure and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if let Self::Output(error) = self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            // The reader closed the pipe because it has enough.
            return ExitCode::SUCCESS;
        }
        if matches!(self, Self::Findings | Self::Exit(_)) {
            return ExitCode::from(self.code());
        }
        print_error(&visible(&without_credentials(&self.message())));
        if let Self::Build(error) = self {
            for line in error.excerpt().iter().flat_map(excerpt_lines) {
                print_hint(&line);
            }
        }
        if let Some(hint) = self.hint() {
            print_hint(&format!("hint: {}", visible(&without_credentials(&hint))));
        }
        ExitCode::from(self.code())
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Self::Build(error) => error.to_string(),
            Self::Input { what, path, why } => format!("cannot read the {what} {path}: {why}"),
            Self::TwoReaders => {
                "cannot read two of request, template and messages from standard input".into()
            }
            Self::Flags { flag, other, .. } => format!("cannot use `{flag}` together with `{other}`"),
            Self::Server { message, .. } | Self::Refused { message, .. } | Self::Usage { message, .. } => {
                message.clone()
            }
            Self::Output(error) => format!("cannot write to standard output: {}", reason(error)),
            Self::Write { path, why } => format!("cannot write {path}: {}", reason(why)),
            Self::Findings | Self::Exit(_) => String::new(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Build(error) => error.hint(),
            Self::Input { .. } => Some("name a readable UTF-8 file, or `-` for standard input".into()),
            Self::TwoReaders => Some("put one of them into a file".into()),
            Self::Flags { hint, .. } => Some((*hint).into()),
            Self::Server { hint, .. } | Self::Refused { hint, .. } | Self::Usage { hint, .. } => {
                Some(hint.clone()).filter(|hint| !hint.is_empty())
            }
            Self::Output(_) | Self::Write { .. } | Self::Findings | Self::Exit(_) => None,
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Build(error) => match error.kind() {
                ErrorKind::Usage => 2,
                ErrorKind::Failed => 3,
            },
            Self::Input { .. } | Self::TwoReaders | Self::Flags { .. } | Self::Usage { .. } => 2,
            Self::Output(_) | Self::Write { .. } | Self::Server { .. } | Self::Refused { .. } => 3,
            Self::Exit(code) => *code,
            Self::Findings => 1,
        }
    }
}

/// Formats the wrong line, with a caret below the place.
fn excerpt_lines(excerpt: &Excerpt) -> Vec<String> {
    const CHARACTERS_MAX: usize = 120;
    let number = excerpt.place.line.to_string();
    let margin = " ".repeat(number.len());
    let first = excerpt.place.column.saturating_sub(CHARACTERS_MAX / 2).saturating_sub(1);
    let line = escape_with(&excerpt.line, |_| char::REPLACEMENT_CHARACTER.to_string());
    let shown: String = line.chars().skip(first).take(CHARACTERS_MAX).map(as_one_column).collect();
    let caret = " ".repeat(excerpt.place.column.saturating_sub(1).saturating_sub(first));
    vec![format!("{margin} |"), format!("{number} | {shown}"), format!("{margin} | {caret}^")]
}

/// Replaces tabs and control characters, so that the caret stays below its character.
fn as_one_column(character: char) -> char {
    match character {
        '\t' => ' ',
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Build(error)
    }
}

/// Redacts URLs of the command line that contain credentials.
///
/// Messages should not repeat them. But an argument in the wrong place, such as a store URL in place of a file, is quoted by
/// code that does not know its meaning.
pub(crate) fn without_credentials(text: &str) -> String {
    let mut text = text.to_owned();
    let arguments = env::args_os().filter_map(|argument| argument.into_string().ok());
    for argument in arguments.chain(env::var("PROEM_STORE").ok()) {
        let value =
            argument.split_once('=').filter(|(flag, _)| flag.starts_with("--")).map(|(_, value)| value);
        let value = value.unwrap_or(&argument);
        if value.contains("://") && value.contains('@') {
            text = text.replace(value, &redacted(value));
        }
    }
    text
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (message, hint) = (error.to_string(), error.hint().unwrap_or_default());
        match error {
            StoreError::Invalid { .. } => Self::Usage { message, hint },
            _ => Self::Server { message, hint },
        }
    }
}

impl From<proem_store::ConversationError> for Failure {
    fn from(error: proem_store::ConversationError) -> Self {
        match error {
            proem_store::ConversationError::Build(error) => Self::Build(error),
            proem_store::ConversationError::Store(error) => error.into(),
            error => Self::Server { message: error.to_string(), hint: error.hint().unwrap_or_default() },
        }
    }
}
