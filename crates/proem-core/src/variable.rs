//! The variables that every template may name: the table behind `proem vars` and the editor.

use crate::stability::Stability;

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// The word before the colon.
    pub kind: &'static str,
    /// What follows the colon; for a dynamic one a placeholder such as `PATH`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub description: &'static str,
    /// How long its value stays the same.
    pub stability: Stability,
    /// Whether any name is valid.
    pub dynamic: bool,
}

/// The table, in the order in which people read it.
pub const TABLE: [Variable; 24] = [
    fixed("system", "time", "time of the build, ISO 8601 in UTC with milliseconds", Stability::Turn),
    fixed("system", "date", "day of the build in UTC, YYYY-MM-DD", Stability::Day),
    fixed("system", "clock", "time of day of the build in UTC, HH:MM:SS", Stability::Turn),
    fixed("system", "datetime", "time of the build in UTC to the second, RFC 3339", Stability::Turn),
    fixed("system", "local_time", "time of the build in the host's zone, in words", Stability::Turn),
    fixed("system", "local_date", "day of the build in the host's zone, YYYY-MM-DD", Stability::Day),
    fixed("system", "os", "platform word: linux, darwin, win32", Stability::Machine),
    fixed(
        "system",
        "os_name",
        "the system's full name, such as a distribution and its version",
        Stability::Machine,
    ),
    fixed("system", "os_version", "kernel release", Stability::Machine),
    fixed("system", "hostname", "the machine's name", Stability::Machine),
    fixed("system", "shell", "the user's shell", Stability::Machine),
    fixed("system", "timezone", "time zone, as an IANA name", Stability::Machine),
    fixed("prompt", "cwd", "working directory of the conversation", Stability::Session),
    fixed("prompt", "model", "model of the conversation", Stability::Session),
    fixed("prompt", "conversation_id", "id of the conversation", Stability::Session),
    fixed("prompt", "workspace_id", "id of the workspace", Stability::Session),
    fixed("prompt", "language", "language in which to answer", Stability::Session),
    fixed("prompt", "backend", "backend that runs the agent", Stability::Session),
    fixed(
        "prompt",
        "mcp_servers",
        "names of the connected MCP servers, joined with commas",
        Stability::Session,
    ),
    fixed("git", "branch", "current branch; HEAD when detached", Stability::Session),
    fixed("git", "status", "short status; empty when clean", Stability::Turn),
    fixed("git", "diff", "summary of unstaged and staged changes", Stability::Turn),
    dynamic("file", "PATH", "text of a file, relative to the working directory", Stability::Project),
    dynamic("env", "NAME", "environment variable that the configuration allows", Stability::Machine),
];

/// The type whose variables stand for a tag that must stay as it is.
pub const LITERAL: &str = "literal";

const fn fixed(
    kind: &'static str,
    name: &'static str,
    description: &'static str,
    stability: Stability,
) -> Variable {
    Variable { kind, name, description, stability, dynamic: false }
}

const fn dynamic(
    kind: &'static str,
    name: &'static str,
    description: &'static str,
    stability: Stability,
) -> Variable {
    Variable { kind, name, description, stability, dynamic: true }
}

/// Splits a key at its first colon into type and name.
///
/// ```
/// assert_eq!(proem_core::variable::split("file:a:b.md"), ("file", "a:b.md"));
/// ```
#[must_use]
pub fn split(key: &str) -> (&str, &str) {
    key.split_once(':').unwrap_or((key, ""))
}

/// Tells whether the table, or the syntax itself, knows this type.
#[must_use]
pub fn is_known_type(kind: &str) -> bool {
    kind == LITERAL || TABLE.iter().any(|variable| variable.kind == kind)
}

/// Finds the row that a key belongs to.
#[must_use]
pub fn find(key: &str) -> Option<&'static Variable> {
    let (kind, name) = split(key);
    TABLE.iter().find(|variable| variable.kind == kind && (variable.dynamic || variable.name == name))
}
