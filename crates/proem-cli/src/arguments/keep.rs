//! The commands that serve prompts and keep them.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use proem_server::PublicUrl;

use super::values::{Format, Output};

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; may be given several times [default: `127.0.0.1:7717` and `[::1]:7717`]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Vec<String>,
    /// Store of the prompts: a file, `sqlite:FILE`, `memory:`, or `postgres://USER@HOST/DATABASE` [default: `PROEM_STORE`,
    /// else the user's own file]
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
    /// Address of a trusted proxy: it connects for many clients, and its `X-Forwarded-Host` and `X-Forwarded-Proto` count; may
    /// be given several times
    #[arg(long, visible_alias = "trusted-proxy", value_name = "ADDRESS")]
    pub(crate) proxy: Vec<IpAddr>,
    /// URL at which a proxy serves the editor, such as `https://prompts.example.com:8443`
    #[arg(long, value_name = "URL", value_parser = PublicUrl::parse)]
    pub(crate) public_url: Option<PublicUrl>,
    /// Folder with the built editor, for those who work on it [default: the one in the binary]
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) web: Option<PathBuf>,
}

// Which server, in place of a store.
#[derive(Debug, Args)]
pub(crate) struct ServerFlags {
    /// Ask a server in place of a store, for example `https://prompts.example.com`; its token is taken from `PROEM_TOKEN`
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub(crate) url: Option<String>,
}

// Which store.
#[derive(Debug, Args)]
pub(crate) struct StoreFlags {
    /// The store: a file, `sqlite:FILE`, or `postgres://USER@HOST/DATABASE` [default: `PROEM_STORE`, else the user's own file]
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
        #[command(flatten)]
        output: Output<Format>,
    },
    /// Write everything as JSON lines
    Export {
        #[command(flatten)]
        flags: StoreFlags,
        /// File to write, for its owner alone; never overwritten; `-` is standard output [default: standard output]
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
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
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
    /// Rebuild the prompt from what is there now
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
