//! The commands that show and change settings.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::prompt::Place;
use super::values::{Format, Output, Suggested};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Profile {
    /// List the profiles that a request can name
    List {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        output: Output<Format>,
    },
    /// Print a profile with everything that it extends, and which file decided each key
    Show {
        /// The profile's name
        #[arg(value_parser = Suggested::profiles(), hide_possible_values = true)]
        name: String,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        output: Output<Format>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ConfigCommand {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
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
    #[command(flatten)]
    pub(crate) output: Output<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    #[command(flatten)]
    pub(crate) place: Place,
}
