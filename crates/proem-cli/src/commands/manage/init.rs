//! `proem init`: writes a first configuration and a template.

use clap::Args;
use proem::{InitOutcome, Workspace};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::terminal::{print, visible};

/// Write a first configuration and a template
///
/// Writes a commented `.proem/proem.toml` and a template below `.proem`. Existing files stay as they are.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: &InitArguments) -> Result<(), Failure> {
    let workspace = Workspace::open(arguments.place.cwd.as_deref())?;
    let mut text = String::new();
    for file in proem::init(&workspace)? {
        text.push_str(&match file {
            InitOutcome::Written(path) => format!("wrote {}\n", visible(&path.display().to_string())),
            InitOutcome::Kept(path) => {
                format!("kept  {} (it exists)\n", visible(&path.display().to_string()))
            }
        });
    }
    text.push_str("Try `proem build`, then edit the template.\n");
    print(&text)
}
