//! `proem init`: a first configuration and template.

use proem::{Initialised, Workspace};

use crate::arguments::Init;
use crate::failure::Failure;
use crate::terminal::{print, visible};

pub(crate) fn run(arguments: &Init) -> Result<(), Failure> {
    let workspace = Workspace::open(arguments.place.cwd.as_deref())?;
    let mut said = String::new();
    for file in proem::init(&workspace)? {
        said.push_str(&match file {
            Initialised::Written(path) => format!("wrote {}\n", visible(&path.display().to_string())),
            Initialised::Kept(path) => {
                format!("kept  {} (it was there)\n", visible(&path.display().to_string()))
            }
        });
    }
    said.push_str("Try `proem build`, then edit the template.\n");
    print(&said)
}
