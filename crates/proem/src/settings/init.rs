//! Writes a first configuration and template, and never overwrites a file.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use proem_core::builtin;

use crate::error::Error;
use crate::observe::workspace::Workspace;
use crate::settings::config::FILE_NAME;

const CONFIG: &str = include_str!("init/proem.toml");
/// The base that a new user has by default: a text to change instead of a form to fill in.
const TEMPLATE: &str = "default/base";

/// The result for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitOutcome {
    /// The file was written.
    Written(PathBuf),
    /// The file existed and was left unchanged.
    Kept(PathBuf),
}

/// Writes `.proem/proem.toml` and `.proem/template.md`.
pub fn init(workspace: &Workspace) -> Result<Vec<InitOutcome>, Error> {
    let folder = workspace.folder();
    if folder.is_symlink() {
        // Files written through the link would lie elsewhere, and `build` would refuse to read them.
        let why = std::io::Error::other("it is a symbolic link");
        return Err(Error::Write { path: folder.display().to_string(), why });
    }
    fs::create_dir_all(&folder).map_err(|why| Error::Write { path: folder.display().to_string(), why })?;
    [(FILE_NAME, CONFIG), ("template.md", builtin::asset(TEMPLATE).unwrap_or_default())]
        .into_iter()
        .map(|(name, text)| write_new(&folder.join(name), text))
        .collect()
}

/// Writes a file that does not exist. `create_new` also refuses links, dangling ones included.
fn write_new(path: &Path, text: &str) -> Result<InitOutcome, Error> {
    let opened = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(path);
    match opened.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(InitOutcome::Written(path.to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Ok(InitOutcome::Kept(path.to_owned()))
        }
        Err(why) => Err(Error::Write { path: path.display().to_string(), why }),
    }
}
