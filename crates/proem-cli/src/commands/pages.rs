//! `proem completions` and `proem man`: pages made from the command line's own description.

use std::path::Path;

use clap::CommandFactory;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::terminal::print_raw;

pub(super) fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::described(), "proem", &mut script);
    print_raw(&String::from_utf8_lossy(&script))
}

pub(super) fn manual(folder: Option<&Path>) -> Result<(), Failure> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command()).render(&mut page).map_err(Failure::Output)?;
        return print_raw(&String::from_utf8_lossy(&page));
    };
    let refuse = |why| Failure::Write { path: folder.display().to_string(), why };
    std::fs::create_dir_all(folder).map_err(refuse)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(refuse)
}
