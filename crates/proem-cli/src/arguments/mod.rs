//! The command line, as types.

mod help;
mod inspect;
mod keep;
mod manage;
mod prompt;
pub(crate) mod request;
mod values;

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};

pub(crate) use help::{parse, print_help};
pub(crate) use inspect::{Check, Compat, Diff, Drift, Evidence, Simulate, Skills, SkillsCommand};
pub(crate) use keep::{ConversationCommand, ConversationFlags, PRUNE, Serve, StoreCommand, StoreFlags};
pub(crate) use manage::{ConfigCommand, Init, Profile, TrustCommand, TrustList, TrustPlace};
pub(crate) use prompt::{
    Build, DeliveryFlags, Explain, Part, Place, PromptFlags, RequestFlags, Ttl, TurnCommand, Vars, Why,
};
pub(crate) use values::{CheckFormat, Format, PageFormat};

const EXIT_CODES: &str = "\
Exit codes:
  0  fine
  1  the thing looked for was found (a lint, a drift)
  2  the command line, the request, a profile or the configuration is wrong
  3  all of that is right, and it did not work";

/// Names the view that shows the text itself.
const ANNOTATE: &str =
    "`proem build --annotate` prints the text itself, with the source of each line in a margin.";

/// Build the system prompt of an LLM agent, and know where every byte came from.
#[derive(Debug, Parser)]
#[command(name = "proem", version, after_help = EXIT_CODES)]
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
    /// Print the prompt: exactly its bytes; `--annotate` shows the source of each line
    Build(Build),
    /// Show the sections and files of the prompt, with tokens and costs; `--all` shows the source of every byte
    #[command(after_help = ANNOTATE)]
    Explain(Explain),
    /// Say where a text of the prompt comes from, or whether a file is in it and why not
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
    #[command(after_help = INSTALLATION)]
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

/// The places that the shells read completions from.
const INSTALLATION: &str = "\
To install it:
  bash  proem completions bash > ~/.local/share/bash-completion/completions/proem
  zsh   proem completions zsh > ~/.zfunc/_proem   (a folder of `fpath`)
  fish  proem completions fish > ~/.config/fish/completions/proem.fish";

// A command that has commands of its own: what it takes is described when it is asked for, as that of the others is.
#[derive(Debug, Args)]
pub(crate) struct Group<C: Subcommand> {
    #[command(subcommand)]
    pub(crate) command: C,
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
