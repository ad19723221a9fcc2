//! All limits in one table: every input from outside has a maximum.
//!
//! A limit belongs here if it bounds the size, number, depth or duration of something that proem does not control: files,
//! requests, the output of programs, connections. Constants that tune proem's own work stay beside their code: caches,
//! buffers, retries, and the lengths of lists and lines in messages. Exceeding a limit always leaves a note or an error.

use core::fmt;
use core::time::Duration;

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The name, unit last, as messages and documentation use it.
    pub name: &'static str,
    /// The largest value allowed.
    pub value: u64,
    /// The thing that is limited, in words.
    pub what: &'static str,
}

impl Limit {
    /// Returns the value for people: a size such as `1 MiB`, or the number.
    #[must_use]
    pub fn words(&self) -> alloc::string::String {
        use alloc::string::ToString;
        if self.name.ends_with("_bytes_max") { Size(self.value).to_string() } else { self.value.to_string() }
    }
}

/// A number of bytes that is written in words: `1 MiB`, `256 KiB`, `200 bytes`.
///
/// ```
/// use proem_core::limit::{FILE_BYTES_MAX, Size};
///
/// assert_eq!(Size::new(FILE_BYTES_MAX).to_string(), "1 MiB");
/// assert_eq!(Size(1500).to_string(), "1500 bytes");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Size {
    /// Creates a size from a length.
    #[must_use]
    pub const fn new(bytes: usize) -> Self {
        Self(bytes as u64)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u32, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        let Self(bytes) = self;
        match UNITS.iter().find(|(bits, _)| *bytes > 0 && bytes.trailing_zeros() >= *bits) {
            Some((bits, unit)) => write!(formatter, "{} {unit}", bytes >> bits),
            None if *bytes == 1 => formatter.write_str("1 byte"),
            None => write!(formatter, "{bytes} bytes"),
        }
    }
}

/// Declares a constant and a row of the table for each limit: name, value and description.
macro_rules! limits {
    ($($(#[doc = $why:literal])* $name:ident: $type:ty = $value:expr, $what:literal;)*) => {
        $(
            #[doc = concat!("The limit for ", $what, ".")]
            $(#[doc = ""] #[doc = $why])*
            pub const $name: $type = $value;
        )*

        const TABLE: &[Limit] = &[$(
            Limit {
                name: {
                    const NAME: [u8; stringify!($name).len()] = lower_case(stringify!($name));
                    as_text(&NAME)
                },
                value: $name as u64,
                what: $what,
            },
        )*];
    };
}

limits! {
    TEMPLATE_BYTES_MAX: usize = 1 << 20, "a template";
    AUTHOR_BYTES_MAX: usize = 200, "the name of a template's author";
    VERSION_MESSAGE_BYTES_MAX: usize = 1_000, "the message of a template's version";
    DIAGNOSTICS_MAX: usize = 100, "problems of one template that are listed";
    JINJA_FUEL_MAX: usize = 100_000, "steps of a Jinja template";
    /// The parser recurses over them.
    JINJA_TAG_TOKENS_MAX: usize = 1000, "tokens in one tag of a Jinja template";
    JINJA_BRANCHES_MAX: usize = 200, "`elif` branches of a Jinja template";
    JINJA_NAMES_MAX: usize = 4096, "names that a Jinja template sets";
    JINJA_EXPRESSIONS_MAX: usize = 16_384, "operators and other costly expressions of a Jinja template";
    JINJA_BLOCKS_MAX: usize = 256, "blocks of a Jinja template";
    JINJA_VALUE_BYTES_MAX: usize = 1 << 20, "one value of a Jinja template";
    JINJA_BYTES_MAX: usize = 64 << 20, "all values of a Jinja template together";
    /// A part that occurs several times counts each time.
    JINJA_VALUE_NODES_MAX: usize = 1 << 17, "parts of one value of a Jinja template";
    JINJA_VALUE_DEPTH_MAX: usize = 32, "levels of lists and maps in a value";
    JINJA_WORK_MAX: usize = 1 << 25, "units of work of the templates of a build; a value or 16 bytes of text is one unit";
    JINJA_DEPTH_MAX: usize = 170, "nesting of Jinja templates: ten for an include, four for a macro";
    BUILD_CPU_SECONDS_MAX: usize = 4, "seconds of CPU time of a build";
    ASSETS_MAX: usize = 256, "assets that one template includes";
    ASSETS_BYTES_MAX: usize = 4 << 20, "a template and all assets that it includes together";
    OUTPUT_BYTES_MAX: usize = 8 << 20, "the text of one carrier";
    FILE_BYTES_MAX: usize = 1 << 20, "a file that `file:` inserts";
    FILES_BYTES_MAX: usize = 16 << 20, "all files that `file:` inserts in a build together";
    REQUEST_BYTES_MAX: usize = 16 << 20, "a request";
    WORKSPACE_FILES_MAX: usize = 2000, "files of a workspace that a request brings";
    /// The paths and the facts of git count.
    WORKSPACE_BYTES_MAX: usize = 8 << 20, "the files of a workspace that a request brings, together";
    WORKSPACE_DEPTH_MAX: usize = 32, "levels of folders in a workspace that a request brings";
    WORKSPACE_NAME_BYTES_MAX: usize = 255, "the name of a file or folder in a workspace that a request brings";
    WORKSPACE_UNUSED_DAYS_MAX: usize = 7, "days for which a store keeps an unused workspace that no epoch refers to";
    MESSAGES_BYTES_MAX: usize = 64 << 20, "a file of messages";
    /// A list of millions of empty items would take gigabytes.
    LIST_ITEMS_MAX: usize = 100_000, "items of one list in a conversation";
    TURNS_BYTES_MAX: usize = 512 << 20, "a file of requests to simulate";
    CALL_BYTES_MAX: usize = 128 << 20, "one recorded call of an agent";
    /// The oldest are forgotten; then a change is named by its part, without its byte.
    TRAFFIC_BODIES_BYTES_MAX: usize = 256 << 20, "all requests that the analysis of calls keeps";
    STATUS_BYTES_MAX: usize = 1 << 20, "the status of an agent, for a status line";
    TRAFFIC_THREADS_MAX: usize = 10_000, "threads of conversations that the analysis of calls keeps";
    SETTINGS_BYTES_MAX: usize = 256 << 10, "a profile or configuration file";
    EXTENDS_DEPTH_MAX: usize = 16, "profiles in a chain of `extends`";
    FRONT_MATTER_BYTES_MAX: usize = 8 << 10, "front matter";
    /// The outermost map counts.
    FRONT_MATTER_DEPTH_MAX: usize = 8, "levels of lists and maps in front matter";
    FRONT_MATTER_NODES_MAX: usize = 256, "keys and values in front matter";
    RESIDENTS_MAX: usize = 10_000, "files in a folder of knowledge or workflows";
    RESIDENT_BYTES_MAX: usize = 1 << 20, "a knowledge or workflow file";
    RESIDENT_NAME_BYTES_MAX: usize = 64, "the name of a knowledge or workflow file";
    WORKFLOW_DESCRIPTION_CHARACTERS_MAX: usize = 1024, "characters in the description of a workflow";
    DOCUMENTS_MAX: usize = 256, "instruction files in a prompt";
    DOCUMENTS_BYTES_MAX: usize = 1 << 20, "all instruction files of a prompt together";
    VARIANT_ENTRIES_MAX: usize = 10_000, "entries of a directory that is searched for misspelt file names";
    RULE_FILES_MAX: usize = 2_000, "instruction files that one profile reads";
    RULE_DEPTH_MAX: usize = 16, "levels of folders below a folder of rules";
    RULE_ENTRIES_MAX: usize = 20_000, "entries below one folder of rules";
    RULE_FOLDERS_MAX: usize = 2_000, "folders of a project that one profile searches for instruction files";
    IMPORTS_BYTES_MAX: usize = 1 << 20, "all text that one instruction file imports";
    IMPORT_REFERENCES_MAX: usize = 1_000, "references to imports in one file";
    IMPORT_MATCHES_MAX: usize = 100_000, "matches of the import pattern in one file";
    IMPORT_PATTERN_BYTES_MAX: usize = 1 << 20, "the memory of a compiled import pattern";
    SKILLS_MAX: usize = 20_000, "skills in a prompt";
    SKILL_FOLDERS_MAX: usize = 20_000, "folders below one directory of skills";
    SKILL_DEPTH_MAX: usize = 64, "levels of folders below a directory of skills";
    SKILL_NOTES_MAX: usize = 200, "notes about skills that are listed one by one";
    SKILL_NAME_CHARACTERS_MAX: usize = 64, "characters in the name of a skill";
    SKILL_DESCRIPTION_CHARACTERS_MAX: usize = 1024, "characters in the description of a skill";
    SKILL_COMPATIBILITY_CHARACTERS_MAX: usize = 500, "characters in the compatibility of a skill";
    IGNORE_FILE_BYTES_MAX: usize = 64 << 10, "an ignore file";
    IGNORE_BYTES_MAX: usize = 256 << 10, "all ignore files of a build together";
    /// Compiling a pattern takes up to 50 µs.
    IGNORE_PATTERNS_MAX: usize = 20_000, "patterns of all ignore files of a build together";
    /// Counted for each path.
    IGNORE_COMPARISONS_MAX: usize = 50_000_000, "comparisons of paths with ignore patterns in a build";
    DIRECTORY_ENTRIES_MAX: usize = 200_000, "entries of one directory";
    SEARCH_ENTRIES_MAX: usize = 200_000, "entries that a search for files visits";
    CHECK_ENTRIES_MAX: usize = 2_000_000, "entries of a project that `check --all` visits";
    CHECK_FILES_MAX: usize = 20_000, "files that `check --all` reads";
    CHECK_BYTES_MAX: usize = 256 << 20, "all files that `check --all` reads together";
    NOTICE_TOKENS_MAX: usize = 10_000, "tokens of one notice of changes, by estimate";
    /// Further changes wait for the next epoch.
    NOTICES_MAX: usize = 500, "notices of one epoch";
    NOTICES_BYTES_MAX: usize = 4 << 20, "all notices of one epoch together";
    TOUCHED_MAX: usize = 1_000, "paths that one turn has touched";
    TOUCHED_FOLDERS_MAX: usize = 2_000, "folders that are searched for the touched paths of one turn";
    CHILDREN_MAX: usize = 4_096, "forks and spawned conversations of one conversation";
    TOOLS_MAX: usize = 2_000, "tools in a request";
    HOOK_SECONDS_MAX: usize = 5, "seconds that one hook runs, by default";
    HOOK_OUTPUT_BYTES_MAX: usize = 64 << 10, "the answer of one hook, by default";
    HOOK_PATHS_MAX: usize = 1_000, "paths that one hook adds";
    PROGRAM_ERROR_BYTES_MAX: usize = 4 << 10, "the error output of a program that is kept";
    TRUSTED_SCRIPT_BYTES_MAX: usize = 4 << 20, "a script of a trusted hook";
    PATH_BYTES_MAX: usize = 4096, "a path";
    /// A kernel follows as many.
    LINKS_MAX: usize = 40, "symbolic links on the way to a file";
    ANCESTORS_MAX: usize = 256, "directories on the walk upwards";
    GIT_HEAD_BYTES_MAX: usize = 4 << 10, "git's `HEAD`, or a `.git` file";
    GIT_PACKED_REFS_BYTES_MAX: usize = 16 << 20, "git's `packed-refs`";
    GIT_OUTPUT_BYTES_MAX: usize = 1 << 20, "the output of one git command";
    GIT_SECONDS_MAX: usize = 2, "seconds of all git commands of a build together, by default";
    /// Git follows as many.
    GIT_SYMBOLIC_REFS_MAX: usize = 5, "symbolic refs in a row";
    GIT_OBJECT_ENTRIES_MAX: usize = 1_000_000, "entries among a repository's objects";
    GIT_SHARED_INDEXES_MAX: usize = 64, "shared indexes of a repository";
    GIT_REVISION_SECONDS_MAX: usize = 60, "seconds of git for one revision";
    GIT_REVISION_LINKS_MAX: usize = 2_000, "entries of a folder above the repository that a revision links";
    GIT_SKILL_ENTRIES_MAX: usize = 200_000, "entries of a revision below one directory of skills";
    GIT_MEMORY_BYTES_MAX: u64 = 512 << 20, "the memory that one git command allocates";
    /// A larger file counts as too large wherever it is read.
    GIT_BLOB_BYTES_MAX: usize = 64 << 20, "a file of a git revision";
    /// Other git commands may not write files.
    GIT_CHECKOUT_FILE_BYTES_MAX: u64 = 1 << 30, "a file that git writes when it lays out a revision";
    CONNECTIONS_MAX: usize = 4096, "connections of a server, by default";
    ADDRESS_CONNECTIONS_MAX: usize = 1024, "connections from one address without the token, by default";
    /// The system may allow fewer. The usual 128 are not enough for a thousand clients at once: the others would try again
    /// a second later.
    CONNECTIONS_WAITING_MAX: u32 = 4096, "connections that wait to be accepted";
    HEADER_SECONDS_MAX: usize = 30, "seconds in which a client sends the headers of a request";
    STALL_SECONDS_MAX: usize = 30, "seconds in which a client reads nothing of its response";
    /// Further requests get status 503.
    REQUESTS_WAITING_MAX: usize = 256, "requests that wait for a worker";
    /// Further ones get status 503.
    EVENT_STREAMS_MAX: usize = 64, "streams of events of a server at once";
    EVENTS_SECONDS_MAX: usize = 3600, "seconds after which a stream of events ends; its client connects again";
    SIMULATED_CALLS_MAX: usize = 100, "calls of a conversation that a simulation of a change repeats, the newest ones";
    SIMULATED_BYTES_MAX: usize = 32 << 20, "the requests of a simulation of a change together";
    BODIES_BYTES_MAX: usize = 128 << 20, "the bodies of all requests together";
    CONVERSATION_ID_BYTES_MAX: usize = 128, "the id of a conversation";
    /// The oldest calls are dropped.
    CONVERSATION_CALLS_MAX: u64 = 10_000, "calls that are kept of one conversation";
    SQLITE_LOCK_SECONDS_MAX: usize = 10, "seconds that a write waits for the lock of a SQLite store";
    POSTGRES_CONNECT_SECONDS_MAX: usize = 5, "seconds in which a connection to PostgreSQL is made, by default";
    /// More than a statement may take, so that the error of the server arrives first, and little enough that a request
    /// with three queries is answered in time.
    POSTGRES_ANSWER_SECONDS_MAX: usize = 9, "seconds in which PostgreSQL answers a query";
    POSTGRES_STATEMENT_SECONDS_MAX: usize = 8, "seconds of one statement in a transaction of PostgreSQL";
    POSTGRES_LOCK_SECONDS_MAX: usize = 7, "seconds that a statement of PostgreSQL waits for a lock";
    POSTGRES_PAUSE_SECONDS_MAX: usize = 20, "seconds between two statements of a transaction of PostgreSQL";
    POSTGRES_CANCEL_SECONDS_MAX: usize = 1, "seconds in which PostgreSQL is asked to cancel a query";
    POSTGRES_WRITERS_SECONDS_MAX: usize = 60, "seconds that a prune waits for open transactions of PostgreSQL";
    PASSWORD_FILE_BYTES_MAX: u64 = 1 << 20, "a password file of PostgreSQL";
    CERTIFICATES_BYTES_MAX: u64 = 4 << 20, "a file of certificates";
    TOKEN_FILE_BYTES_MAX: usize = 4096, "a file with a token";
    /// A conversation with all of its texts may be large.
    ANSWER_BYTES_MAX: usize = 64 << 20, "a response of a server to the command line";
    ANSWER_SECONDS_MAX: usize = 60, "seconds in which a server responds to the command line";
    SAVED_BUILD_BYTES_MAX: usize = 64 << 20, "a saved build";
    TRAFFIC_EVENT_BYTES_MAX: usize = 1 << 20, "one event in the answer of a provider";
    TRAFFIC_ANSWER_BYTES_MAX: usize = 64 << 20, "an answer of a provider that is not a stream";
    /// Below a folder that is named for a report.
    COLLECT_FILES_MAX: usize = 1_000_000, "files that a report looks at";
    COLLECT_DEPTH_MAX: usize = 16, "levels of folders below the one that a report reads";
    /// Files of lines may be larger: they are read line by line.
    COLLECT_FILE_BYTES_MAX: usize = 256 << 20, "a recording that a report reads as a whole";
    COLLECT_LINE_BYTES_MAX: usize = 64 << 20, "a line of a recording";
    COLLECT_BODY_BYTES_MAX: usize = 64 << 20, "the body of a request in a recording";
    COLLECT_SESSION_BYTES_MAX: usize = 256 << 20, "the texts from which the requests of one recorded session are put together";
    /// They are held until all records of them have been joined.
    COLLECT_HELD_BYTES_MAX: usize = 256 << 20, "the calls that a report holds at a time";
    COLLECT_CALLS_MAX: usize = 2_000_000, "calls of one source in a report";
    COLLECT_HINTS_MAX: usize = 1000, "statements about owners of texts in one call";
    GATEWAY_HEAD_BYTES_MAX: usize = 128 << 10, "the head of a request or response that passes the gateway";
    GATEWAY_HEADERS_MAX: usize = 256, "headers of a request or response that passes the gateway";
    GATEWAY_CONNECTIONS_MAX: usize = 16_384, "connections of clients to the gateway";
    GATEWAY_CONNECT_SECONDS_MAX: usize = 30, "seconds in which the gateway reaches a provider";
    /// A larger body passes, but is not analysed.
    GATEWAY_BODY_BYTES_MAX: usize = 64 << 20, "a body that the gateway analyses, before and after decompression";
    /// A copy without room is dropped, and the call is counted as unread.
    GATEWAY_QUEUE_BYTES_MAX: usize = 128 << 20, "all copies that wait for the gateway's analysis";
    /// Later requests of the day are not kept.
    GATEWAY_DAY_BYTES_MAX: u64 = 1 << 30, "the requests of one day that `--keep bodies` writes";
    GATEWAY_RESPONSES_BYTES_MAX: usize = 64 << 20, "the inputs that requests over WebSocket may continue";
    COLLECT_NOTES_MAX: usize = 200, "notes about recordings that are listed one by one";
}

/// The most CPU time that one build may take.
pub const BUILD_CPU_MAX: Duration = seconds(BUILD_CPU_SECONDS_MAX);
/// The longest time that one hook may run, unless the configuration sets another.
pub const HOOK_TIME_MAX: Duration = seconds(HOOK_SECONDS_MAX);
/// The longest time of all git commands of a build together, unless the configuration sets another.
pub const GIT_TIME_MAX: Duration = seconds(GIT_SECONDS_MAX);
/// The longest time of git for one revision.
pub const GIT_REVISION_TIME_MAX: Duration = seconds(GIT_REVISION_SECONDS_MAX);

/// The longest time in which a client sends the headers of a request.
pub const HEADER_TIME_MAX: Duration = seconds(HEADER_SECONDS_MAX);
/// The longest time in which the gateway reaches a provider.
pub const GATEWAY_CONNECT_TIME_MAX: Duration = seconds(GATEWAY_CONNECT_SECONDS_MAX);
/// The longest time in which a client reads nothing of its response.
pub const STALL_TIME_MAX: Duration = seconds(STALL_SECONDS_MAX);
/// The longest time in which a server responds to the command line.
pub const ANSWER_TIME_MAX: Duration = seconds(ANSWER_SECONDS_MAX);

/// The longest time that a write waits for the lock of a SQLite store.
pub const SQLITE_LOCK_TIME_MAX: Duration = seconds(SQLITE_LOCK_SECONDS_MAX);
/// The longest time in which a connection to PostgreSQL is made, unless its URL sets another.
pub const POSTGRES_CONNECT_TIME_MAX: Duration = seconds(POSTGRES_CONNECT_SECONDS_MAX);
/// The longest time in which PostgreSQL answers a query.
pub const POSTGRES_ANSWER_TIME_MAX: Duration = seconds(POSTGRES_ANSWER_SECONDS_MAX);
/// The longest time in which PostgreSQL is asked to cancel a query.
pub const POSTGRES_CANCEL_TIME_MAX: Duration = seconds(POSTGRES_CANCEL_SECONDS_MAX);
/// The longest time that a prune waits for open transactions of PostgreSQL.
pub const POSTGRES_WRITERS_TIME_MAX: Duration = seconds(POSTGRES_WRITERS_SECONDS_MAX);

/// Returns the table as `proem config` and the documentation print it.
#[must_use]
pub const fn table() -> &'static [Limit] {
    TABLE
}

const fn seconds(count: usize) -> Duration {
    Duration::from_secs(count as u64)
}

/// Returns the name of a constant in lower case.
const fn lower_case<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
    let mut lower = [0; LENGTH];
    let mut index = 0;
    while index < LENGTH {
        lower[index] = name.as_bytes()[index].to_ascii_lowercase();
        index += 1;
    }
    lower
}

const fn as_text(name: &'static [u8]) -> &'static str {
    // The name of a constant is ASCII, so that the empty text never occurs.
    if let Ok(text) = core::str::from_utf8(name) { text } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn sizes_are_written_in_the_largest_unit_that_divides_them() {
        for (bytes, words) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (200, "200 bytes"),
            (1 << 10, "1 KiB"),
            (256 << 10, "256 KiB"),
            ((1 << 20) + 1, "1048577 bytes"),
            (1536 << 10, "1536 KiB"),
            (16 << 20, "16 MiB"),
            (1 << 30, "1 GiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), words);
        }
    }

    #[test]
    fn rows_are_named_after_their_constants() {
        let first = &table()[0];
        assert_eq!(
            (first.name, first.value, first.words().as_str()),
            ("template_bytes_max", 1 << 20, "1 MiB")
        );
    }
}
