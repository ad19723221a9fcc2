//! Paths in messages: relative to the working directory where possible.

use std::path::{Path, PathBuf};

use proem::{Request, Workspace};
use proem_core::source::Source;

use crate::failure::Failure;
use crate::terminal::visible_line;

/// The directories that paths are shortened by.
pub(crate) struct Paths {
    /// The working directory as written, and its real path.
    cwd: [PathBuf; 2],
    /// The git repository that contains it, if any.
    repository: Option<PathBuf>,
    home: Option<PathBuf>,
}

impl Paths {
    pub(crate) fn from_request(request: &Request) -> Result<Self, Failure> {
        Self::at(request.cwd.as_deref())
    }

    pub(crate) fn at(cwd: Option<&str>) -> Result<Self, Failure> {
        let written = Workspace::open(cwd)?.path().to_owned();
        let real = written.canonicalize().unwrap_or_else(|_| written.clone());
        let repository = real.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
        Ok(Self { cwd: [written, real], repository, home: std::env::home_dir() })
    }

    /// Returns the real path of the working directory.
    pub(crate) fn real_cwd(&self) -> &Path {
        &self.cwd[1]
    }

    /// Shortens a path: relative to the working directory, with `..` inside the same repository, or with `~` below the home
    /// directory. Other paths stay absolute.
    pub(crate) fn shown(&self, path: &str) -> String {
        visible_line(&self.relative(path).unwrap_or_else(|| path.to_owned()))
    }

    /// Formats a source with its path shortened.
    pub(crate) fn source(&self, source: &Source) -> String {
        let whole = source.to_string();
        let path = match source {
            Source::File { path, .. } | Source::Pack { path, .. } => Some(path.as_ref()),
            Source::Variable { path, .. } => path.as_deref(),
            _ => None,
        };
        match path.and_then(|path| Some((path, self.relative(path)?))) {
            Some((path, relative)) => visible_line(&whole.replacen(path, &relative, 1)),
            None => visible_line(&whole),
        }
    }

    fn relative(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        if !path.is_absolute() {
            return None;
        }
        let inside = |folder: &Path| path.strip_prefix(folder).ok().map(|rest| rest.display().to_string());
        let here = |rest: String| if rest.is_empty() { ".".to_owned() } else { rest };
        self.cwd.iter().find_map(|cwd| inside(cwd)).map(here).or_else(|| self.above(path)).or_else(|| {
            let home = self.home.as_deref().filter(|home| *home != Path::new("/"))?;
            Some(format!("~/{}", inside(home)?))
        })
    }

    /// Returns a path of the repository relative to the working directory, with `..`.
    fn above(&self, path: &Path) -> Option<String> {
        let repository = self.repository.as_deref()?;
        let ancestors = self.cwd[1].ancestors().skip(1).take_while(|folder| folder.starts_with(repository));
        let (up, rest) =
            ancestors.enumerate().find_map(|(up, folder)| Some((up + 1, path.strip_prefix(folder).ok()?)))?;
        Some(format!("{}{}", "../".repeat(up), rest.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_from_the_nearest_place_on() {
        let paths = Paths {
            cwd: ["/link/app".into(), "/home/kim/repo/app".into()],
            repository: Some("/home/kim/repo".into()),
            home: Some("/home/kim".into()),
        };
        for (path, expected) in [
            ("/home/kim/repo/app/src/AGENTS.md", "src/AGENTS.md"),
            ("/link/app/AGENTS.md", "AGENTS.md"),
            ("/home/kim/repo/app", "."),
            ("/home/kim/repo/AGENTS.md", "../AGENTS.md"),
            ("/home/kim/repo/lib/x.md", "../lib/x.md"),
            ("/home/kim/.config/proem/SYSTEM.md", "~/.config/proem/SYSTEM.md"),
            ("/home/AGENTS.md", "/home/AGENTS.md"),
            ("/etc/x\u{1b}", "/etc/x<U+001B>"),
            ("t.md", "t.md"),
        ] {
            assert_eq!(paths.shown(path), expected, "{path}");
        }
        let place = Some(proem_core::text::Place { line: 3, column: 1 });
        let source = Source::File { path: "/home/kim/repo/AGENTS.md".into(), place };
        assert_eq!(paths.source(&source), "../AGENTS.md:3:1");
    }
}
