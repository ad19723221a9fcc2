//! Paths in messages. One rule for every command: relative to the directory that the command was started in, as arguments
//! are, so that a path can be copied into the next command. `--cwd` does not change it.

use std::path::{Path, PathBuf};

use proem::{Request, Workspace};
use proem_core::source::Source;

use crate::failure::Failure;
use crate::terminal::visible_line;

/// The directories that paths are shortened by.
pub(crate) struct Paths {
    /// The directory of the process as the shell names it, and its real path.
    here: [PathBuf; 2],
    /// The git repository that contains it, if any.
    repository: Option<PathBuf>,
    /// The directory that is looked at as it was written, and as it really lies.
    cwd: [PathBuf; 2],
    home: Option<PathBuf>,
}

impl Paths {
    pub(crate) fn from_request(request: &Request) -> Result<Self, Failure> {
        Self::at(request.cwd.as_deref())
    }

    pub(crate) fn at(cwd: Option<&str>) -> Result<Self, Failure> {
        let both = |cwd: Option<&str>| -> Result<[PathBuf; 2], Failure> {
            let written = Workspace::open(cwd)?.path().to_owned();
            let real = written.canonicalize().unwrap_or_else(|_| written.clone());
            Ok([written, real])
        };
        let here = both(None)?;
        let repository = here[1].ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
        Ok(Self { here, repository, cwd: both(cwd)?, home: std::env::home_dir() })
    }

    /// Returns the real path of the directory of `--cwd`.
    pub(crate) fn real_cwd(&self) -> &Path {
        &self.cwd[1]
    }

    /// Shortens a path: relative to the directory of the process, with `..` inside the same repository, or with `~` below the home
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

    /// A sentence in which paths below the directory of the process, or of its repository, are shown in this way.
    pub(crate) fn in_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for folder in self.here.iter().filter(|folder| folder.parent().is_some()) {
            text = text.replace(&format!("{}/", folder.display()), "");
        }
        if let Some(repository) = self.repository.as_deref().filter(|repository| *repository != self.here[1])
        {
            let up = self.here[1].strip_prefix(repository).map_or(0, |below| below.components().count());
            text = text.replace(&format!("{}/", repository.display()), &"../".repeat(up));
        }
        visible_line(&text)
    }

    fn relative(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        if !path.is_absolute() {
            return None;
        }
        let inside = |folder: &Path| path.strip_prefix(folder).ok().map(|rest| rest.display().to_string());
        let here = |rest: String| if rest.is_empty() { ".".to_owned() } else { rest };
        let below = self.here.iter().find_map(|folder| inside(folder)).map(here);
        below.or_else(|| self.above(path)).or_else(|| self.behind_link(path)).or_else(|| {
            let home = self.home.as_deref().filter(|home| *home != Path::new("/"))?;
            Some(format!("~/{}", inside(home)?))
        })
    }

    /// Shortens a path that goes through a link to the directory of `--cwd`.
    fn behind_link(&self, path: &Path) -> Option<String> {
        let [written, real] = &self.cwd;
        let whole = real.join(path.strip_prefix(written).ok().filter(|_| written != real)?);
        let below = whole.strip_prefix(&self.here[1]).ok().map(|rest| rest.display().to_string());
        below.or_else(|| self.above(&whole))
    }

    /// Returns a path of the repository relative to the working directory, with `..`.
    fn above(&self, path: &Path) -> Option<String> {
        let repository = self.repository.as_deref()?;
        let ancestors = self.here[1].ancestors().skip(1).take_while(|folder| folder.starts_with(repository));
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
            here: ["/link/app".into(), "/home/kim/repo/app".into()],
            cwd: ["/other/lib".into(), "/home/kim/repo/lib".into()],
            repository: Some("/home/kim/repo".into()),
            home: Some("/home/kim".into()),
        };
        for (path, expected) in [
            ("/home/kim/repo/app/src/AGENTS.md", "src/AGENTS.md"),
            ("/link/app/AGENTS.md", "AGENTS.md"),
            ("/home/kim/repo/app", "."),
            ("/home/kim/repo/AGENTS.md", "../AGENTS.md"),
            ("/home/kim/repo/lib/x.md", "../lib/x.md"),
            ("/other/lib/x.md", "../lib/x.md"),
            ("/home/kim/.config/proem/SYSTEM.md", "~/.config/proem/SYSTEM.md"),
            ("/home/AGENTS.md", "/home/AGENTS.md"),
            ("/etc/x\u{1b}", "/etc/x<U+001B>"),
            ("t.md", "t.md"),
        ] {
            assert_eq!(paths.shown(path), expected, "{path}");
        }
        assert_eq!(
            paths.in_text("by /home/kim/repo/app/AGENTS.md and /home/kim/repo/CLAUDE.md, not /home/kim/x"),
            "by AGENTS.md and ../CLAUDE.md, not /home/kim/x"
        );
        let place = Some(proem_core::text::Place { line: 3, column: 1 });
        let source = Source::File { path: "/home/kim/repo/AGENTS.md".into(), place };
        assert_eq!(paths.source(&source), "../AGENTS.md:3:1");
    }
}
