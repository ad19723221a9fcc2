//! Repositories with a special file where git expects a regular one.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::time::{Duration, SystemTime};

use super::nuisances::{Ask, PATIENT, Reply};
use super::{NO_REPOSITORY, Site, TEMPLATE, WHOLE, embed_repository};

/// A special file where git expects a regular one; opening it may block forever.
#[derive(Debug)]
pub struct Special {
    /// The path.
    pub path: &'static str,
    /// The kind of file.
    pub kind: &'static str,
    /// Creates the file and makes git look there.
    set: fn(&Site, &str),
    /// The query.
    pub template: &'static str,
    time_max: Duration,
    expected: &'static [&'static str],
    /// The expected notes for absent facts.
    absent: &'static str,
}

/// A FIFO that git never sees.
const UNSEEN: Special = Special {
    path: "",
    kind: "FIFO",
    set: Site::fifo,
    template: TEMPLATE,
    time_max: PATIENT,
    expected: &WHOLE,
    absent: "",
};

/// A FIFO that is not even copied for git.
const REFUSED: Special = Special {
    template: "[git:branch]|[git:status]",
    expected: &["main", ""],
    absent: "\ngit_failed: `[git:status]` is absent: \
             git failed: {root}/{path}: is a {kind}, not a regular file",
    ..UNSEEN
};

/// A FIFO that git opens. Git is stopped as soon as it blocks, not at its time limit.
const STOPPED: Special = Special {
    template: "[git:status]",
    expected: &[""],
    absent: "\ngit_failed: `[git:status]` is absent: git failed: a file of the repository that it reads is a FIFO",
    ..UNSEEN
};

/// Replaces a file that the repository's configuration names with a FIFO.
fn name_fifo(site: &Site, key: &str, path: &str) {
    site.fifo(path);
    site.git("tree", &format!("config {key} {{root}}/{path}"));
}

/// Replaces a path with a link to an endless device.
fn link_to_zero(site: &Site, path: &str) {
    fs::remove_file(site.path(path)).unwrap();
    symlink("/dev/zero", site.path(path)).unwrap();
}

/// Creates a folder with a FIFO and a regular file.
fn deep_fifo(site: &Site, path: &str) {
    let place = site.path(path);
    let folder = place.parent().unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("file"), "").unwrap();
    site.fifo(path);
}

/// Puts a FIFO into a repository below the tree.
fn embed_fifo(site: &Site, path: &str) {
    embed_repository(site);
    site.fifo(path);
}

/// Makes the attributes a FIFO, and a tracked file look changed: git reads the attributes only to hash a file again.
fn attributes_fifo(site: &Site, path: &str) {
    site.fifo(path);
    let kept = fs::File::options().write(true).open(site.path("tree/kept")).unwrap();
    kept.set_modified(SystemTime::UNIX_EPOCH + Duration::from_hours(24)).unwrap();
}

/// All cases.
pub const SPECIAL: [Special; 25] = [
    Special { path: "tree/.git/config", ..UNSEEN },
    Special { path: "tree/.git/config", kind: "character device", set: link_to_zero, ..UNSEEN },
    Special { path: "tree/.git/commondir", ..UNSEEN },
    Special { path: "tree/.git/info/attributes", ..UNSEEN },
    Special { path: "tree/.git/info/sparse-checkout", ..UNSEEN },
    Special { path: "tree/.gitmodules", ..UNSEEN },
    Special { path: "tree/pipe", ..UNSEEN },
    Special { path: "included", set: |site, path| name_fifo(site, "include.path", path), ..UNSEEN },
    Special { path: "excludes", set: |site, path| name_fifo(site, "core.excludesFile", path), ..UNSEEN },
    Special { path: "attributes", set: |site, path| name_fifo(site, "core.attributesFile", path), ..UNSEEN },
    Special { path: "order", set: |site, path| name_fifo(site, "diff.orderFile", path), ..UNSEEN },
    Special {
        path: "tree/kept",
        expected: &["main", " M a\nA  b\n M kept\n?? new", ""],
        absent: "\ngit_failed: `[git:diff]` is absent: git failed: ",
        ..UNSEEN
    },
    Special {
        path: "tree/.git",
        set: |site, path| {
            fs::rename(site.path(path), site.path("elsewhere")).unwrap();
            site.fifo(path);
        },
        expected: &["", "", ""],
        absent: NO_REPOSITORY,
        ..UNSEEN
    },
    Special {
        path: "tree/.git/HEAD",
        template: "[git:branch]",
        expected: &[""],
        absent: "\ngit_failed: `[git:branch]` is absent: git failed: HEAD: is a FIFO, not a regular file",
        ..UNSEEN
    },
    Special { path: "tree/.git/HEAD", template: "[git:status]", expected: &[""], ..REFUSED },
    Special { path: "tree/.git/index", ..REFUSED },
    Special { path: "tree/.git/index", kind: "character device", set: link_to_zero, ..REFUSED },
    Special { path: "tree/.git/info/exclude", ..REFUSED },
    Special { path: "tree/.git/packed-refs", template: "[git:status]", expected: &[""], ..REFUSED },
    Special { path: "tree/.gitignore", ..STOPPED },
    Special { path: "tree/.gitattributes", set: attributes_fifo, ..STOPPED },
    Special { path: "tree/deep/er/.gitignore", set: deep_fifo, ..STOPPED },
    Special { path: "tree/sub/.git/HEAD", set: embed_fifo, ..STOPPED },
    Special { path: "tree/.git/objects/info/alternates", ..STOPPED },
    Special { path: "tree/.git/refs/heads/main", ..STOPPED },
];

impl Special {
    pub(super) fn said(&self, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Reply {
        let site = Site::new();
        (self.set)(&site, self.path);
        // Plain git would block forever, so there is no other control.
        let found = fs::metadata(site.path(self.path)).unwrap().file_type();
        let is_special = if self.kind == "FIFO" { found.is_fifo() } else { found.is_char_device() };
        assert!(is_special, "{} is not a {}", self.path, self.kind);
        let absent = self.absent.replace("{path}", self.path).replace("{kind}", self.kind);
        let said = ask(&site, &Ask { cwd: "tree", template: self.template, time_max: self.time_max });
        Reply { said, expected: self.expected.join("|") + &absent }
    }
}
