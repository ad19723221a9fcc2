//! `proem init`: a first configuration and template.

use proem::{InitOutcome, Workspace};

use crate::arguments::Init;
use crate::failure::Failure;
use crate::terminal::{print, visible};

pub(super) fn run(arguments: &Init) -> Result<(), Failure> {
    let workspace = Workspace::open(arguments.place.cwd.as_deref())?;
    let mut said = String::new();
    for file in proem::init(&workspace)? {
        said.push_str(&match file {
            InitOutcome::Written(path) => format!("wrote {}\n", visible(&path.display().to_string())),
            InitOutcome::Kept(path) => {
                format!("kept  {} (it was there)\n", visible(&path.display().to_string()))
            }
        });
    }
    said.push_str("Try `proem build`, then edit the template.\n");
    print(&said)
}
