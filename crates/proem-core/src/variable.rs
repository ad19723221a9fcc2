//! The variables that every template may use: the table that `proem vars`, the editor and the documentation show.

use crate::stability::Stability;

/// The thing that a variable's value is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// The clock.
    Clock,
    /// The machine, the user's account or the environment.
    Machine,
    /// The request.
    Request,
    /// The git repository.
    Git,
    /// A file.
    File,
}

/// Declares [`Variable`] from one row per variable: variant, type, name, origin, stability, presence, description.
macro_rules! variables {
    ($($variant:ident $kind:literal $name:literal $read_from:ident $stability:ident $presence:ident $description:literal;)*) => {
        /// A variable of the table. The variants are in the order of the documentation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Variable {
            $(#[doc = concat!("`", $kind, ":", $name, "`: ", $description, ".")] $variant,)*
        }

        impl Variable {
            /// All variables, in the order of the documentation.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Returns the type: the word before the colon.
            #[must_use]
            pub const fn kind(self) -> &'static str {
                match self {
                    $(Self::$variant => $kind,)*
                }
            }

            /// Returns the text after the colon; for a dynamic variable a placeholder such as `PATH`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the meaning, in a few words.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $description,)*
                }
            }

            /// Returns the lifetime of the value.
            #[must_use]
            pub const fn stability(self) -> Stability {
                match self {
                    $(Self::$variant => Stability::$stability,)*
                }
            }

            /// Returns the thing that the value is read from.
            #[must_use]
            pub const fn read_from(self) -> ReadFrom {
                match self {
                    $(Self::$variant => ReadFrom::$read_from,)*
                }
            }

            const fn presence(self) -> Presence {
                match self {
                    $(Self::$variant => Presence::$presence,)*
                }
            }
        }
    };
}

/// The builds in which a variable has a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// Every build.
    Always,
    /// Some builds.
    Sometimes,
    /// Some builds, and any name is valid.
    Dynamic,
}

variables! {
    SystemTime "system" "time" Clock Turn Always "time of the build, ISO 8601 in UTC with milliseconds";
    SystemDate "system" "date" Clock Day Always "day of the build in UTC, YYYY-MM-DD";
    SystemClock "system" "clock" Clock Turn Always "time of day of the build in UTC, HH:MM:SS";
    SystemDatetime "system" "datetime" Clock Turn Always "time of the build in UTC to the second, RFC 3339";
    SystemLocalTime "system" "local_time" Clock Turn Sometimes "time of the build in the host's zone, in words";
    SystemLocalDate "system" "local_date" Clock Day Sometimes "day of the build in the host's zone, YYYY-MM-DD";
    SystemOs "system" "os" Machine Machine Always "platform word: linux, darwin, win32";
    SystemOsName "system" "os_name" Machine Machine Sometimes "the system's full name, such as a distribution and its version";
    SystemOsVersion "system" "os_version" Machine Machine Sometimes "kernel release";
    SystemHostname "system" "hostname" Machine Machine Sometimes "the machine's name";
    SystemShell "system" "shell" Machine Machine Sometimes "the user's shell";
    SystemTimezone "system" "timezone" Machine Machine Sometimes "time zone, as an IANA name";
    PromptCwd "prompt" "cwd" Request Session Always "working directory of the conversation";
    PromptModel "prompt" "model" Request Session Sometimes "model of the conversation";
    PromptConversationId "prompt" "conversation_id" Request Session Sometimes "id of the conversation";
    PromptWorkspaceId "prompt" "workspace_id" Request Session Sometimes "id of the workspace";
    PromptLanguage "prompt" "language" Request Session Sometimes "language in which to answer";
    PromptBackend "prompt" "backend" Request Session Sometimes "backend that runs the agent";
    PromptMcpServers "prompt" "mcp_servers" Request Session Sometimes "names of the connected MCP servers, joined with commas";
    GitBranch "git" "branch" Git Session Sometimes "current branch; HEAD when detached";
    GitStatus "git" "status" Git Turn Sometimes "short status; empty when clean";
    GitDiff "git" "diff" Git Turn Sometimes "summary of unstaged and staged changes";
    File "file" "PATH" File Project Dynamic "text of a file, relative to the working directory";
    Env "env" "NAME" Machine Machine Dynamic "environment variable that the configuration allows";
}

impl Variable {
    /// Tells whether any name is valid.
    #[must_use]
    pub const fn is_dynamic(self) -> bool {
        matches!(self.presence(), Presence::Dynamic)
    }

    /// Tells whether the variable has a value in every build.
    #[must_use]
    pub const fn is_always_present(self) -> bool {
        matches!(self.presence(), Presence::Always)
    }
}

/// The type of variables that stand for a tag that must stay as written.
pub const LITERAL: &str = "literal";

/// Splits a key at its first colon into type and name.
///
/// ```
/// assert_eq!(proem_core::variable::split("file:a:b.md"), ("file", "a:b.md"));
/// ```
#[must_use]
pub fn split(key: &str) -> (&str, &str) {
    key.split_once(':').unwrap_or((key, ""))
}

/// Tells whether the table, or the syntax itself, has this type.
#[must_use]
pub fn is_known_type(kind: &str) -> bool {
    kind == LITERAL || Variable::ALL.iter().any(|variable| variable.kind() == kind)
}

/// Finds the variable of a key.
#[must_use]
pub fn find(key: &str) -> Option<Variable> {
    let (kind, name) = split(key);
    Variable::ALL
        .into_iter()
        .find(|variable| variable.kind() == kind && (variable.is_dynamic() || variable.name() == name))
}
