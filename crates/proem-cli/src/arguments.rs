//! The command line, as types.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use proem::deliver::Provider;
use proem_core::note::Note;

use crate::notes::{Wanted, print_wanted};

const EXIT_CODES: &str = "\
Exit codes:
  0  fine
  1  the thing looked for was found (a lint, a drift)
  2  the command line, the request, a profile or the configuration is wrong
  3  all of that is right, and it did not work";

/// Build the system prompt of an LLM agent, and know where every byte came from.
#[derive(Debug, Parser)]
#[command(name = "proem", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// The command line, where those commands are described already that have commands of their own. For scripts: what
    /// stands below `help` is copied before anything is described.
    pub(crate) fn described() -> clap::Command {
        type Describe = fn(clap::Command) -> clap::Command;
        let groups: [(&str, Describe); 5] = [
            ("skills", Group::<Skills>::augment_args),
            ("conversation", Group::<ConversationCommand>::augment_args),
            ("store", Group::<StoreCommand>::augment_args),
            ("profile", Group::<Profile>::augment_args),
            ("trust", Group::<TrustCommand>::augment_args),
        ];
        let mut command = Self::command();
        for group in command.get_subcommands_mut() {
            if let Some((_, describe)) = groups.iter().find(|(name, _)| *name == group.get_name()) {
                // And not once more when it is asked for.
                *group = describe(std::mem::take(group)).defer(|group| group);
            }
        }
        command
    }
}

// What a subcommand takes is described when it is asked for, and not at each start. What its structs say of themselves
// would then take the place of what it is for, so they say it in plain comments.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Print the prompt: exactly its bytes, nothing else
    Build(Build),
    /// Show the prompt as a tree: sections, the source of every byte, files, notes
    Explain(Explain),
    /// Say where a text of the prompt comes from, or why a file's text is not in it
    Why(Why),
    /// Say where two prompts part, whose byte it is, why, and what it costs
    Diff(Diff),
    /// Compare a conversation's frozen prompt with what would be built now; changes nothing
    Drift(Drift),
    /// Look for what will cost, mislead or leak: exit code 1 if there is anything
    Check(Check),
    /// Compare what a provider read from its cache with what it should have read, and say whose doing a miss is
    Evidence(Evidence),
    /// Show what each agent (Codex, Claude Code, Gemini CLI, …) would read here, and what it would not
    Compat(Compat),
    /// Show everything that the model sees in one turn: system prompt, messages, tools
    Turn(TurnCommand),
    /// Follow a conversation through a provider's cache: what is read, written, and paid in full
    Simulate(Simulate),
    /// List skills, or check them
    Skills(Group<Skills>),
    /// Serve prompts over HTTP, and keep them
    Serve(Serve),
    /// List conversations of a store or a server, show one, or change it
    Conversation(Group<ConversationCommand>),
    /// Check a store, or move what it keeps
    Store(Group<StoreCommand>),
    /// List every variable with its value here, or why it has none
    Vars(Vars),
    /// List profiles, or show one with everything decided
    Profile(Group<Profile>),
    /// Print the effective configuration and where each value comes from
    Config(ConfigCommand),
    /// Let a workspace run the programs that it names, list such workspaces, or trust one no more
    Trust(Group<TrustCommand>),
    /// Write a commented `.proem/proem.toml` and a template; never overwrites
    Init(Init),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page for each command
    Man {
        /// Folder to write the pages to
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
}

// A command that has commands of its own: what it takes is described when it is asked for, as that of the others is.
#[derive(Debug, Args)]
pub(crate) struct Group<C: Subcommand> {
    #[command(subcommand)]
    pub(crate) command: C,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// How an explanation is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    /// For people at a terminal
    Text,
    /// For programs
    Json,
    /// For a browser: one page, without scripts
    Html,
}

/// A side of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// What stands before the boundary
    Prefix,
    /// What stands behind it
    Suffix,
}

#[derive(Debug, Args)]
pub(crate) struct Build {
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    /// Output: the prompt's bytes, or everything about it as JSON
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Print every carrier, with the source of each line in a margin on the left
    #[arg(long)]
    pub(crate) annotate: bool,
    /// Print only what is cached, or only what belongs to this turn
    #[arg(long, value_enum, conflicts_with = "annotate")]
    pub(crate) part: Option<Part>,
    #[command(flatten)]
    pub(crate) delivery: DeliveryFlags,
    /// Print tokens by section and carrier, what is cached, and what a turn costs
    #[arg(long, conflicts_with_all = ["annotate", "part"])]
    pub(crate) stats: bool,
    #[command(flatten)]
    pub(crate) notes: NoteFlags,
}

// What goes to a provider.
#[derive(Debug, Args)]
pub(crate) struct DeliveryFlags {
    /// Print the parts of the request that this provider takes, as JSON
    #[arg(long = "for", value_name = "PROVIDER", value_parser = provider, conflicts_with_all = ["annotate", "part"])]
    pub(crate) provider: Option<Provider>,
    /// The conversation so far, the newest message last: a JSON list or JSON lines; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) messages: Option<PathBuf>,
    /// What the user says now
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt_text: Option<String>,
    /// How long the provider keeps the frozen part [default: 5m]
    #[arg(long, value_enum)]
    pub(crate) ttl: Option<Ttl>,
    /// Name of a content that Gemini keeps, with the system prompt and the tools in it
    #[arg(long, value_name = "NAME")]
    pub(crate) cached_content: Option<String>,
}

/// How long a provider keeps the frozen part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ttl {
    /// Five minutes after its last use
    #[value(name = "5m")]
    Short,
    /// An hour
    #[value(name = "1h")]
    Hour,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; may be given several times [default: `127.0.0.1:7717` and `[::1]:7717`]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Vec<String>,
    /// Where prompts are kept: a file, or `postgres://USER@HOST/DATABASE` [default: `PROEM_STORE`, else the user's own file]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Directory that requests may work in, besides the current one; may be given several times
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: Vec<PathBuf>,
    /// File with the token that requests must show [default: `PROEM_TOKEN`]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// Name by which the server may be called, besides addresses; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Most connections at once
    #[arg(long, value_name = "N", default_value = "4096", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,
    /// Most connections of one address that have not shown the token, 0 for any number; this machine and proxies have no such limit
    #[arg(long, value_name = "N", default_value = "1024")]
    pub(crate) connections_per_address: u32,
    /// Address of a proxy, which connects for many clients; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) proxy: Vec<IpAddr>,
    /// Folder with the built editor, for those who work on it [default: the one in the binary]
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) web: Option<PathBuf>,
}

// A text, a byte or a line of a prompt.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Text to look for
    #[arg(value_name = "TEXT", required_unless_present_any = ["byte", "line"], conflicts_with_all = ["byte", "line"])]
    pub(crate) text: Option<String>,
    /// Byte of the carrier, from 0
    #[arg(long, value_name = "N", conflicts_with = "line")]
    pub(crate) byte: Option<usize>,
    /// Line of the carrier, from 1
    #[arg(long, value_name = "N")]
    pub(crate) line: Option<usize>,
    /// Carrier that `--byte` and `--line` count in
    #[arg(long, value_name = "CARRIER", default_value = "system", value_parser = ["system", "developer", "first_user", "turn"])]
    pub(crate) carrier: String,
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

// A prompt, and what is wrong with it.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    /// Also count what is only good to know, and call everything an error: for CI
    #[arg(long)]
    pub(crate) strict: bool,
    /// Mend files of the project where that is safe, then say what is left
    #[arg(long)]
    pub(crate) fix: bool,
    /// Also build under another clock, zone, locale, order of folders, home and environment, and name what moved
    #[arg(long)]
    pub(crate) determinism: bool,
    /// Also look as these agents would, separated by commas; `all` for every one
    #[arg(long = "as", value_name = "NAMES")]
    pub(crate) agents: Option<String>,
    /// List the codes, and what each is about
    #[arg(long, exclusive = true)]
    pub(crate) codes: bool,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: CheckFormat,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// For code hosts: SARIF 2.1.0
    Sarif,
}

// Two prompts.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// First prompt: `now`, a file with a request or with a saved build (`build --format json`),
    /// `CONVERSATION@EPOCH`, `CONVERSATION`, or a revision of git. `git:REVISION` and
    /// `conversation:NAME` mean one of them alone
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// Second prompt, named in the same way
    #[arg(value_name = "B", default_value = "now")]
    pub(crate) b: String,
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    #[command(flatten)]
    pub(crate) layout: LayoutFlags,
    /// How much text to show around differences; `0` leaves the text out
    #[arg(long, value_name = "LINES", default_value_t = 3)]
    pub(crate) context: usize,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

// Whose cache it is.
#[derive(Debug, Args)]
pub(crate) struct LayoutFlags {
    /// Provider whose cache counts: anthropic, bedrock, openai, deepseek, gemini, llama.cpp, vllm, sglang [default: one
    /// that keeps every beginning]
    #[arg(long = "for", value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,
}

// A conversation against the present.
#[derive(Debug, Args)]
pub(crate) struct Drift {
    /// Conversation
    #[arg(value_name = "CONVERSATION")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    /// Model whose prices count [default: the conversation's]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) layout: LayoutFlags,
    /// How much text to show around differences; `0` leaves the text out
    #[arg(long, value_name = "LINES", default_value_t = 3)]
    pub(crate) context: usize,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

// What agents would see.
#[derive(Debug, Args)]
pub(crate) struct Compat {
    /// File: which agents read it, and which never will
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "diff")]
    pub(crate) file: Option<PathBuf>,
    /// Agents, separated by commas [default: all that there are profiles of]
    #[arg(long = "as", value_name = "NAMES", conflicts_with = "diff")]
    pub(crate) agents: Vec<String>,
    /// Two agents whose texts are compared, file by file
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub(crate) diff: Option<Vec<String>>,
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

// What providers said about calls.
#[derive(Debug, Args)]
pub(crate) struct Evidence {
    /// Calls, one on each line: the provider's response, or `{"response": …, "at": …, "request": …}`; `-` is
    /// standard input [default: the calls that a server was told about]
    #[arg(value_name = "CALLS.jsonl", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Conversation of the lines that name none
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) conversation: Option<String>,
    /// Provider of the lines that name none [default: by the shape of the numbers]
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,
    /// Model of the lines that name none
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

// Which store.
#[derive(Debug, Args)]
pub(crate) struct StoreFlags {
    /// The store: a file, or `postgres://USER@HOST/DATABASE` [default: `PROEM_STORE`, else the user's own file]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum StoreCommand {
    /// Look for damage; exit code 1 if there is any
    Check {
        #[command(flatten)]
        flags: StoreFlags,
        /// Also remove texts that no epoch has any more
        #[arg(long)]
        prune: bool,
        /// Go on where an interrupted check has stopped; it prints the place
        #[arg(long, value_name = "PLACE", value_parser = place_of_check)]
        after: Option<String>,
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Write everything as JSON lines
    Export {
        #[command(flatten)]
        flags: StoreFlags,
        /// File to write; never overwritten [default: standard output]
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Read what `export` wrote; what is there already stays
    Import {
        #[command(flatten)]
        flags: StoreFlags,
        /// File to read; `-` is standard input
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Bring the tables to the newest version; every command that opens a store does it, too
    Migrate {
        #[command(flatten)]
        flags: StoreFlags,
    },
}

/// Reads a place at which a check has stopped.
fn place_of_check(text: &str) -> Result<String, &'static str> {
    let is_place = text == PRUNE || proem_store::Cursor::parse(text).is_some();
    is_place.then(|| text.to_owned()).ok_or("an interrupted `proem store check` prints the place")
}

/// The place behind a check: a prune itself knows where it was.
pub(crate) const PRUNE: &str = "prune";

// Which conversations, and how they are shown.
#[derive(Debug, Args)]
pub(crate) struct ConversationFlags {
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    /// Ask a server instead, for example `http://127.0.0.1:7717`
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub(crate) url: Option<String>,
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ConversationCommand {
    /// List conversations, the one with the newest epoch first
    List {
        #[command(flatten)]
        flags: ConversationFlags,
        /// A part of the name or of the working directory
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
    },
    /// Print the frozen prompt: exactly its bytes
    Show {
        /// The conversation
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
    },
    /// List the epochs, and why each was opened
    History {
        /// The conversation
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
    },
    /// Open the epoch behind a compaction
    Compact {
        /// The conversation
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
    },
    /// Build the prompt anew from what is there now
    Reload {
        /// The conversation
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
        /// Only say what would change
        #[arg(long)]
        plan: bool,
    },
    /// Forget a conversation
    Rm {
        /// The conversation
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// Requests, one payload on each line, in the order in which they are sent; `-` is standard input
    #[arg(value_name = "TURNS.jsonl", value_hint = ValueHint::FilePath)]
    pub(crate) turns: PathBuf,
    /// Whose cache: anthropic, bedrock, openai-chat, openai-responses, deepseek, gemini, llama.cpp, vllm, sglang
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: String,
    /// Model, for its prices, its minimum and its vocabulary
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    /// Output: a tree for people, the JSON of `proem build`, or a page that stands alone
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: PageFormat,
    /// Print only the files that were looked at
    #[arg(long)]
    pub(crate) files: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TurnCommand {
    #[command(flatten)]
    pub(crate) prompt: PromptFlags,
    /// What the user says; without it the turn goes on by itself
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt_text: Option<String>,
    /// Output: for people, or everything as JSON
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) notes: NoteFlags,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Skills {
    /// List every skill that was found, and why one is not in the prompt
    List(SkillsCommand),
    /// Print what is wrong with skills; exit code 1 if there is anything
    Check(SkillsCommand),
}

#[derive(Debug, Args)]
pub(crate) struct SkillsCommand {
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    /// Profile that says where skills lie
    #[arg(long, short, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Vars {
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Profile {
    /// List the profiles that a request can name
    List {
        #[command(flatten)]
        place: Place,
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Print a profile with everything that it extends, and which file decided each key
    Show {
        /// The profile's name
        name: String,
        #[command(flatten)]
        place: Place,
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ConfigCommand {
    #[command(flatten)]
    pub(crate) place: Place,
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TrustCommand {
    /// Let a workspace run the hooks of its `.proem/proem.toml`, as they are now
    ///
    /// Look at them first: they run as you. A hook whose command, environment, limits or files are others later does not
    /// run until it is approved again.
    Add(TrustPlace),
    /// List trusted workspaces, and which of their hooks are as they were approved
    List(TrustList),
    /// Trust a workspace no more
    Remove(TrustPlace),
}

#[derive(Debug, Args)]
pub(crate) struct TrustPlace {
    /// The workspace
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct TrustList {
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    #[command(flatten)]
    pub(crate) place: Place,
}

// Which notes are printed to standard error: warnings, unless said otherwise.
#[derive(Debug, Args)]
pub(crate) struct NoteFlags {
    /// Do not print notes
    #[arg(long, short)]
    quiet: bool,
    /// Print every note, also what is only good to know
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
}

impl NoteFlags {
    /// Prints the notes that are wanted.
    pub(crate) fn print(&self, notes: &[Note]) {
        if !self.quiet {
            print_wanted(notes, if self.verbose { Wanted::All } else { Wanted::Warnings });
        }
    }
}

// Where a command looks.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Working directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<String>,
}

// Which prompt: the request, and what only a prompt has.
#[derive(Debug, Args)]
pub(crate) struct PromptFlags {
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    /// Profile: the recipe of the prompt
    #[arg(long, short, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Template file for the base, in the profile's syntax; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) template: Option<PathBuf>,
    /// Asset for the base, for example `$user/greet`
    #[arg(long, value_name = "REFERENCE", conflicts_with = "template")]
    pub(crate) instruction: Option<String>,
    /// Text that replaces the base, or a file that holds it
    #[arg(long, value_name = "TEXT|FILE", conflicts_with_all = ["template", "instruction"])]
    pub(crate) system: Option<String>,
    /// Text to add behind the base, or a file that holds it; may be given several times
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) append: Vec<String>,
    /// Active tools by name, separated by commas; `""` for none
    #[arg(long, value_name = "NAMES")]
    pub(crate) tools: Option<String>,
    /// Pack that replaces wording; later ones win
    #[arg(long = "pack", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) packs: Vec<String>,
}

// The request, field by field. A flag overrides the request file.
#[derive(Debug, Args)]
pub(crate) struct RequestFlags {
    /// Working directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<String>,
    /// Model of the conversation
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Give or override a variable, for example `git:branch=main`
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) variables: Vec<(String, String)>,
    /// Say that a variable is absent
    #[arg(long = "absent", value_name = "KEY")]
    pub(crate) absent: Vec<String>,
    /// The moment of the build, in RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<String>,
    /// Request file in JSON; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) request: Option<PathBuf>,
}

fn provider(word: &str) -> Result<Provider, String> {
    Provider::named(word).ok_or_else(|| {
        let known: Vec<&str> = Provider::ALL.into_iter().map(Provider::word).collect();
        format!("the providers are: {}", known.join(", "))
    })
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => {
            Err("write KEY=VALUE, for example `git:branch=main`; to make one absent use `--absent KEY`"
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For its own help, the manual and completions, as in the list of all.
    #[test]
    fn a_subcommand_says_what_it_is_for_also_when_it_is_asked_for() {
        let (listed, mut asked) = (Arguments::described(), Arguments::described());
        asked.build();
        let (commands, of_them) = compare(&listed, &asked);
        assert!(commands > 15 && of_them > 10, "{commands} {of_them}");
    }

    /// Compares what commands say before and behind a build; counts those of this level and of the next.
    fn compare(listed: &clap::Command, asked: &clap::Command) -> (usize, usize) {
        let said = |command: &clap::Command| {
            let words = |words: Option<&clap::builder::StyledStr>| words.map(ToString::to_string);
            (words(command.get_about()), words(command.get_long_about()))
        };
        let mut counted = (0, 0);
        for one in listed.get_subcommands() {
            let again = asked.find_subcommand(one.get_name()).expect("it is there");
            assert_eq!(said(one), said(again), "{}", one.get_name());
            assert!(one.get_about().is_some(), "{}", one.get_name());
            counted = (counted.0 + 1, counted.1 + compare(one, again).0);
        }
        counted
    }

    #[test]
    fn help_knows_the_commands_of_each_command() {
        let mut described = Arguments::described();
        described.build();
        let help = described.find_subcommand("help").expect("it is there");
        let names = |command: &clap::Command| {
            let names = command.get_subcommands().map(|one| one.get_name().to_owned());
            names.filter(|name| name != "help").collect::<Vec<_>>()
        };
        assert_eq!(names(help), names(&described));
        for one in described.get_subcommands().filter(|one| one.get_name() != "help") {
            let again = help.find_subcommand(one.get_name()).expect("it is there");
            assert_eq!(names(again), names(one), "{}", one.get_name());
        }
    }
}
