//! Every maximum in one table: whatever comes from outside has one.
//!
//! A limit that is hit leaves a note or an error; none of them cuts in silence.

use core::time::Duration;

/// One row of the table: a name for documentation and messages, and the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The name, unit last.
    pub name: &'static str,
    /// The largest value allowed.
    pub value: u64,
    /// What is limited, in words.
    pub what: &'static str,
}

/// Largest template, in bytes.
pub const TEMPLATE_BYTES_MAX: usize = 1 << 20;
/// Longest name of a template's author, in bytes.
pub const AUTHOR_BYTES_MAX: usize = 200;
/// Most problems of one template that are listed one by one.
pub const DIAGNOSTICS_MAX: usize = 100;
/// Most steps that a Jinja template may take.
pub const JINJA_FUEL_MAX: usize = 100_000;
/// Most words and signs in one tag of a Jinja template: what reads them recurses.
pub const JINJA_TAG_TOKENS_MAX: usize = 1000;
/// Most `elif` branches in one Jinja template.
pub const JINJA_BRANCHES_MAX: usize = 200;
/// Most names that one Jinja template may set.
pub const JINJA_NAMES_MAX: usize = 4096;
/// Most operators, comparisons and other costly expressions in one Jinja template.
pub const JINJA_EXPRESSIONS_MAX: usize = 16_384;
/// Most blocks in one Jinja template.
pub const JINJA_BLOCKS_MAX: usize = 256;
/// Largest value that a Jinja template may make, in bytes.
pub const JINJA_VALUE_BYTES_MAX: usize = 1 << 20;
/// Most bytes that the values of one Jinja template may take together.
pub const JINJA_BYTES_MAX: usize = 64 << 20;
/// Most lists, maps, texts and numbers in one value of a Jinja template, each counted as often as it occurs.
pub const JINJA_VALUE_NODES_MAX: usize = 1 << 17;
/// Deepest nesting of lists and maps in one value of a Jinja template.
pub const JINJA_VALUE_DEPTH_MAX: usize = 32;
/// Most work that the Jinja templates of one build may ask for, in units of one value or 16 bytes that are walked, compared
/// or copied.
pub const JINJA_WORK_MAX: usize = 1 << 25;
/// How deep Jinja templates may nest: an include counts ten, a macro four.
pub const JINJA_DEPTH_MAX: usize = 170;
/// Most CPU time that one build may take, in seconds.
pub const BUILD_CPU_SECONDS_MAX: usize = 4;
/// Most CPU time that one build may take.
pub const BUILD_CPU_MAX: Duration = Duration::from_secs(BUILD_CPU_SECONDS_MAX as u64);
/// Most assets that one template may load.
pub const ASSETS_MAX: usize = 256;
/// Most bytes that a template and the assets that it includes may have together.
pub const ASSETS_BYTES_MAX: usize = 4 << 20;
/// Largest rendered carrier, in bytes.
pub const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// Largest file that `file:` inserts, in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Most bytes that the files named by `file:` may have together in one build.
pub const FILES_BYTES_MAX: usize = 16 << 20;
/// Largest request, in bytes of JSON.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;
/// Largest file of messages, in bytes.
pub const MESSAGES_BYTES_MAX: usize = 64 << 20;
/// Largest file of requests to simulate, in bytes.
pub const TURNS_BYTES_MAX: usize = 512 << 20;
/// Largest profile or configuration file, in bytes.
pub const SETTINGS_BYTES_MAX: usize = 256 << 10;
/// Longest chain of `extends`.
pub const EXTENDS_DEPTH_MAX: usize = 16;
/// Largest front matter, in bytes of YAML.
pub const FRONT_MATTER_BYTES_MAX: usize = 8 << 10;
/// Deepest nesting of lists and maps in front matter, the outermost map included.
pub const FRONT_MATTER_DEPTH_MAX: usize = 8;
/// Most keys, values, lists and maps in one front matter.
pub const FRONT_MATTER_NODES_MAX: usize = 256;
/// Most files of one folder of knowledge or workflows that are read.
pub const RESIDENTS_MAX: usize = 10_000;
/// Largest knowledge or workflow file, in bytes.
pub const RESIDENT_BYTES_MAX: usize = 1 << 20;
/// Most instruction files in one prompt.
pub const DOCUMENTS_MAX: usize = 256;
/// Most bytes that the instruction files of one prompt may have together.
pub const DOCUMENTS_BYTES_MAX: usize = 1 << 20;
/// Most skills in one prompt.
pub const SKILLS_MAX: usize = 20_000;
/// Most folders that are looked into below one directory of skills.
pub const SKILL_FOLDERS_MAX: usize = 20_000;
/// Deepest folder below a directory of skills that is looked into.
pub const SKILL_DEPTH_MAX: usize = 64;
/// Most notes about skills that are written one by one.
pub const SKILL_NOTES_MAX: usize = 200;
/// Largest ignore file, in bytes.
pub const IGNORE_FILE_BYTES_MAX: usize = 64 << 10;
/// Most bytes that the ignore files of one build may have together.
pub const IGNORE_BYTES_MAX: usize = 256 << 10;
/// Most patterns that the ignore files of one build may have together: compiling one takes up to 50 µs.
pub const IGNORE_PATTERNS_MAX: usize = 20_000;
/// Most patterns that the paths of one build are compared with, counted for each path.
pub const IGNORE_COMPARISONS_MAX: usize = 50_000_000;
/// Most entries of one directory that are looked at.
pub const DIRECTORY_ENTRIES_MAX: usize = 200_000;
/// Most entries of a project that `check --all` looks at.
pub const CHECK_ENTRIES_MAX: usize = 2_000_000;
/// Most files of agents in a project that `check --all` reads.
pub const CHECK_FILES_MAX: usize = 20_000;
/// Most bytes that those files may have together.
pub const CHECK_BYTES_MAX: usize = 256 << 20;
/// Most tools in one request.
pub const TOOLS_MAX: usize = 2_000;
/// Most output taken from one hook, in bytes, unless the configuration says otherwise.
pub const HOOK_OUTPUT_BYTES_MAX: usize = 64 << 10;
/// Longest one hook may run, unless the configuration says otherwise.
pub const HOOK_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest path that is looked at, in bytes.
pub const PATH_BYTES_MAX: usize = 4096;
/// Deepest directory from which the walk upwards starts.
pub const ANCESTORS_MAX: usize = 256;
/// Largest `HEAD` or `.git` file, in bytes.
pub const GIT_HEAD_BYTES_MAX: usize = 4 << 10;
/// Largest `packed-refs`, in bytes.
pub const GIT_PACKED_REFS_BYTES_MAX: usize = 16 << 20;
/// Most output taken from one git command, in bytes.
pub const GIT_OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Longest all git commands of a build may run together.
pub const GIT_TIME_MAX: Duration = Duration::from_secs(2);
/// Most memory that one git command may allocate, in bytes.
pub const GIT_MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Largest file that is read from git's objects, in bytes; a larger one counts as too large wherever it is read.
pub const GIT_BLOB_BYTES_MAX: usize = 64 << 20;
/// Largest file that git may write when it lays out a revision, in bytes; otherwise it may write none.
pub const GIT_CHECKOUT_FILE_BYTES_MAX: u64 = 1 << 30;
/// Most connections that a server holds at once, unless it is told otherwise.
pub const CONNECTIONS_MAX: usize = 4096;
/// Most connections of one address that have not shown the token, unless the server is told otherwise.
pub const ADDRESS_CONNECTIONS_MAX: usize = 1024;

/// Returns the table as `proem config` and the documentation print it.
#[must_use]
pub const fn table() -> &'static [Limit] {
    TABLE
}

const TABLE: &[Limit] = &[
    row("template_bytes_max", TEMPLATE_BYTES_MAX, "a template"),
    row("author_bytes_max", AUTHOR_BYTES_MAX, "the name of a template's author"),
    row("diagnostics_max", DIAGNOSTICS_MAX, "problems of a template that are listed"),
    row("jinja_fuel_max", JINJA_FUEL_MAX, "steps of a Jinja template"),
    row("jinja_tag_tokens_max", JINJA_TAG_TOKENS_MAX, "words and signs in one tag of a Jinja template"),
    row("jinja_branches_max", JINJA_BRANCHES_MAX, "`elif` branches of a Jinja template"),
    row("jinja_names_max", JINJA_NAMES_MAX, "names that a Jinja template sets"),
    row(
        "jinja_expressions_max",
        JINJA_EXPRESSIONS_MAX,
        "operators and other costly expressions of a Jinja template",
    ),
    row("jinja_blocks_max", JINJA_BLOCKS_MAX, "blocks of a Jinja template"),
    row("jinja_value_bytes_max", JINJA_VALUE_BYTES_MAX, "one value that a Jinja template makes"),
    row("jinja_bytes_max", JINJA_BYTES_MAX, "all values of a Jinja template together"),
    row("jinja_value_nodes_max", JINJA_VALUE_NODES_MAX, "parts of one value of a Jinja template"),
    row("jinja_value_depth_max", JINJA_VALUE_DEPTH_MAX, "levels of lists and maps in a value"),
    row("jinja_work_max", JINJA_WORK_MAX, "values and 16 bytes that the templates of a build walk"),
    row(
        "jinja_depth_max",
        JINJA_DEPTH_MAX,
        "nesting of Jinja templates: ten for an include, four for a macro",
    ),
    row("build_cpu_seconds_max", BUILD_CPU_SECONDS_MAX, "seconds of CPU time of a build"),
    row("assets_max", ASSETS_MAX, "assets that one template includes"),
    row("assets_bytes_max", ASSETS_BYTES_MAX, "a template and all assets that it includes together"),
    row("output_bytes_max", OUTPUT_BYTES_MAX, "the text of one carrier"),
    row("file_bytes_max", FILE_BYTES_MAX, "a file that `file:` inserts"),
    row("files_bytes_max", FILES_BYTES_MAX, "all files that `file:` inserts in a build together"),
    row("request_bytes_max", REQUEST_BYTES_MAX, "a request"),
    row("messages_bytes_max", MESSAGES_BYTES_MAX, "a file of messages"),
    row("turns_bytes_max", TURNS_BYTES_MAX, "a file of requests to simulate"),
    row("settings_bytes_max", SETTINGS_BYTES_MAX, "a profile or configuration file"),
    row("extends_depth_max", EXTENDS_DEPTH_MAX, "profiles in a chain of `extends`"),
    row("front_matter_bytes_max", FRONT_MATTER_BYTES_MAX, "front matter"),
    row("front_matter_depth_max", FRONT_MATTER_DEPTH_MAX, "levels of lists and maps in front matter"),
    row("front_matter_nodes_max", FRONT_MATTER_NODES_MAX, "keys and values in front matter"),
    row("residents_max", RESIDENTS_MAX, "files in a folder of knowledge or workflows"),
    row("resident_bytes_max", RESIDENT_BYTES_MAX, "a knowledge or workflow file"),
    row("documents_max", DOCUMENTS_MAX, "instruction files in a prompt"),
    row("documents_bytes_max", DOCUMENTS_BYTES_MAX, "all instruction files of a prompt together"),
    row("skills_max", SKILLS_MAX, "skills in a prompt"),
    row("skill_folders_max", SKILL_FOLDERS_MAX, "folders below one directory of skills"),
    row("skill_depth_max", SKILL_DEPTH_MAX, "levels of folders below a directory of skills"),
    row("skill_notes_max", SKILL_NOTES_MAX, "notes about skills that are written one by one"),
    row("ignore_file_bytes_max", IGNORE_FILE_BYTES_MAX, "an ignore file"),
    row("ignore_bytes_max", IGNORE_BYTES_MAX, "all ignore files of a build together"),
    row("ignore_patterns_max", IGNORE_PATTERNS_MAX, "patterns of all ignore files of a build together"),
    row("ignore_comparisons_max", IGNORE_COMPARISONS_MAX, "patterns that paths are compared with in a build"),
    row("directory_entries_max", DIRECTORY_ENTRIES_MAX, "entries of one directory"),
    row("check_entries_max", CHECK_ENTRIES_MAX, "entries of a project that `check --all` looks at"),
    row("check_files_max", CHECK_FILES_MAX, "files that `check --all` reads"),
    row("check_bytes_max", CHECK_BYTES_MAX, "all files that `check --all` reads together"),
    row("tools_max", TOOLS_MAX, "tools in a request"),
    row("hook_output_bytes_max", HOOK_OUTPUT_BYTES_MAX, "the output of one hook, by default"),
    row("path_bytes_max", PATH_BYTES_MAX, "a path"),
    row("ancestors_max", ANCESTORS_MAX, "directories walked upwards"),
    row("git_head_bytes_max", GIT_HEAD_BYTES_MAX, "git's `HEAD`"),
    row("git_packed_refs_bytes_max", GIT_PACKED_REFS_BYTES_MAX, "git's `packed-refs`"),
    row("git_output_bytes_max", GIT_OUTPUT_BYTES_MAX, "the output of one git command"),
    row("git_blob_bytes_max", GIT_BLOB_BYTES_MAX, "a file of a git revision"),
    Limit {
        name: "git_memory_bytes_max",
        value: GIT_MEMORY_BYTES_MAX,
        what: "the memory that one git command allocates",
    },
    row("connections_max", CONNECTIONS_MAX, "connections of a server, by default"),
    row(
        "address_connections_max",
        ADDRESS_CONNECTIONS_MAX,
        "connections of one address that have not shown the token, by default",
    ),
];

const fn row(name: &'static str, value: usize, what: &'static str) -> Limit {
    Limit { name, value: value as u64, what }
}
