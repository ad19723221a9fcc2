//! Repositories that try to hang a build or to garble its output.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use super::special::{SPECIAL, Special};
use super::{Control, Site, TEMPLATE, UNSTAGED};

/// Long enough for git on any machine, so that only a build that waits forever fails.
pub const PATIENT: Duration = Duration::from_mins(1);

/// A query about a site.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The directory.
    pub cwd: &'a str,
    /// The template.
    pub template: &'a str,
    /// The time limit for git.
    pub time_max: Duration,
}

/// The defaults of most cases.
const IN_TREE: Ask<'static> = Ask { cwd: "tree", template: TEMPLATE, time_max: PATIENT };

/// The output and the expected output: the prompt, then a line for each absent fact.
#[derive(Debug)]
pub struct Reply {
    /// The output.
    pub said: String,
    /// The expected output.
    pub expected: String,
}

/// A repository that tries to hang a build or to garble its output.
#[derive(Debug)]
pub enum Nuisance {
    /// A setting that changes the output of plain git.
    Setting(&'static GitSetting),
    /// A special file.
    Special(&'static Special),
    /// The name of a file.
    Name(&'static Name),
    /// The name of a branch.
    Branch(&'static Branch),
    /// A `HEAD` that leads to no branch.
    Head(&'static Head),
}

impl Nuisance {
    /// Returns all cases.
    pub fn all() -> impl Iterator<Item = Self> {
        let files = NAMES.iter().map(Self::Name);
        let heads = BRANCHES.iter().map(Self::Branch).chain(HEADS.iter().map(Self::Head));
        // Cases that wait for a time limit come first, so that the others run meanwhile.
        let special = SPECIAL.iter().rev().map(Self::Special);
        special.chain(SETTINGS.iter().map(Self::Setting)).chain(files).chain(heads)
    }

    /// Returns the name, which is unique.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Setting(GitSetting { words, control, .. }) => {
                let (Control::Git(_, seen) | Control::GitOnTerminal(_, seen)) = control;
                format!("{words}, seen by {seen}")
            }
            Self::Special(Special { kind, path, template, .. }) => format!("{kind} {path} {template}"),
            Self::Name((_, shown)) => format!("file {shown}"),
            Self::Branch((name, _)) => format!("branch {}", name.escape_ascii()),
            Self::Head(head) => format!("head: {}", head.name),
        }
    }

    /// Sets the case up, checks that it has an effect, and queries the site.
    #[must_use]
    pub fn said(&self, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Reply {
        let told = |site: &Site, question: &Ask<'_>| {
            let said = ask(site, question);
            let is_clean = |character: char| character == '\n' || !character.is_control();
            assert!(said.chars().all(is_clean), "control characters in {said:?}");
            said
        };
        match self {
            Self::Setting(setting) => setting.said(told),
            Self::Special(special) => special.said(told),
            Self::Name(name) => name_reply(name, told),
            Self::Branch(branch) => branch_reply(branch, told),
            Self::Head(head) => head.said(told),
        }
    }
}

/// A setting that changes the output of plain git.
#[derive(Debug)]
pub struct GitSetting {
    words: &'static str,
    control: Control,
    cwd: &'static str,
}

const fn status_setting(words: &'static str) -> GitSetting {
    GitSetting { words, control: Control::Git("tree", "status --short"), cwd: "tree" }
}

const fn diff_setting(words: &'static str) -> GitSetting {
    GitSetting { words, control: Control::Git("tree", "diff --stat HEAD"), cwd: "tree" }
}

/// All settings.
pub const SETTINGS: [GitSetting; 17] = [
    status_setting("color.ui always"),
    status_setting("color.status always"),
    status_setting("core.bare true"),
    status_setting("core.excludesFile {root}/everything"),
    status_setting("core.quotePath false"),
    status_setting("core.worktree {root}/other"),
    status_setting("diff.renames false"),
    status_setting("status.branch true"),
    status_setting("status.renames false"),
    status_setting("status.showUntrackedFiles all"),
    status_setting("status.showUntrackedFiles no"),
    GitSetting {
        words: "status.relativePaths false",
        control: Control::Git("tree/folder", "status --short"),
        cwd: "tree/folder",
    },
    GitSetting {
        words: "diff.relative true",
        control: Control::Git("tree/folder", "diff --stat"),
        cwd: "tree/folder",
    },
    diff_setting("color.diff always"),
    diff_setting("core.attributesFile {root}/everything-binary"),
    diff_setting("diff.orderFile {root}/order"),
    diff_setting("diff.renames false"),
];

/// Adds the subjects of the settings: a rename, an untracked folder, a name that is not ASCII.
pub fn enrich(site: &Site) {
    for (path, text) in [
        ("everything", "*\n"),
        ("everything-binary", "* -diff\n"),
        ("order", "renamed\nb\na\n"),
        ("other/x", "x\n"),
        ("tree/folder/old", "1\n2\n3\n"),
    ] {
        site.write(path, text);
    }
    site.git("tree", "add folder");
    site.git("tree", "commit -q -m old folder");
    site.git("tree", "mv folder/old renamed");
    site.write("tree/folder/y", "y\n");
    site.write("tree/ü", "ü\n");
}

impl GitSetting {
    fn said(&self, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Reply {
        let site = Site::new();
        enrich(&site);
        let question = Ask { cwd: self.cwd, ..IN_TREE };
        let before = (ask(&site, &question), self.control.run(&site).stdout);
        site.git("tree", &format!("config {}", self.words));
        let after = (ask(&site, &question), self.control.run(&site).stdout);
        assert_ne!(after.1, before.1, "{}: control did not change", self.words);
        assert!(before.0.contains("renamed"), "{}: control: the answer is whole", self.words);
        Reply { said: after.0, expected: before.0 }
    }
}

/// A harmful name of a file, and its escaped form between quotes.
pub type Name = (&'static [u8], &'static str);

/// All names.
pub const NAMES: [Name; 10] = [
    (b"\x07bell", r"\abell"),
    (b"\x1b[2J\x1b]0;title\x07", r"\033[2J\033]0;title\a"),
    (b"\r## main", r"\r## main"),
    (b"line\nA  forged", r"line\nA  forged"),
    (b"tab\tquote\"back\\slash", r#"tab\tquote\"back\\slash"#),
    (b"delete\x7f", r"delete\177"),
    (b"not \xff utf-8", r"not \377 utf-8"),
    (b"half \xe2\x82", r"half \342\202"),
    ("csi \u{9b}31m".as_bytes(), r"csi \302\23331m"),
    ("bidi \u{202e}txt".as_bytes(), r"bidi \342\200\256txt"),
];

fn name_reply((name, shown): &Name, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Reply {
    let site = Site::new();
    let named = |prefix: &[u8]| Path::new("tree").join(OsStr::from_bytes(&[prefix, name].concat()));
    fs::write(site.path(named(b"z")), "z\n").unwrap();
    fs::rename(site.path("tree/kept"), site.path(named(b"moved"))).unwrap();
    site.git("tree", "add kept moved*");
    let raw = site.plain("tree", "git", ["status", "--short", "-z"].into_iter()).stdout;
    let is_raw = |prefix: &[u8]| raw.split(|byte| *byte == 0).any(|path| path == [prefix, name].concat());
    assert!(is_raw(b"R  moved") && is_raw(b"?? z"), "{shown}: control: git knows the name");

    let renamed = format!(r#"kept => "moved{shown}""#);
    let status = format!(" M a\nA  b\nR  kept -> \"moved{shown}\"\n?? new\n?? \"z{shown}\"");
    let staged = format!(
        "{:<width$} | 1 +\n {renamed} | 0\n 2 files changed, 1 insertion(+)",
        "b",
        width = renamed.len()
    );
    Reply { said: ask(&site, &IN_TREE), expected: format!("main|{status}|{UNSTAGED}\n{staged}") }
}

/// Points `HEAD` at a ref below `refs/heads` that has a value.
fn point_head(site: &Site, name: &[u8]) {
    let id = site.git("tree", "rev-parse HEAD");
    let full = [b"refs/heads/", name].concat();
    fs::write(site.path("tree/.git/HEAD"), [b"ref: ", full.as_slice(), b"\n"].concat()).unwrap();
    fs::write(site.path("tree/.git/packed-refs"), [id.as_bytes(), b" ", &full, b"\n"].concat()).unwrap();
}

const CONTROL_CHARACTERS: &str = "HEAD does not name a ref that git accepts";

/// A harmful name of a branch, and the reason for rejecting it.
pub type Branch = (&'static [u8], &'static str);

/// All branches.
pub const BRANCHES: [Branch; 7] = [
    (b"x\x1b[2J", CONTROL_CHARACTERS),
    (b"x\x7fy", CONTROL_CHARACTERS),
    (b"x\rforged", CONTROL_CHARACTERS),
    (b"x\nforged", CONTROL_CHARACTERS),
    ("x\u{9b}31m".as_bytes(), CONTROL_CHARACTERS),
    (b"x\0y", "HEAD: not text: NUL byte at offset 17"),
    (b"x\xffy", "HEAD: not UTF-8: bad byte at offset 17"),
];

fn branch_reply((name, why): &Branch, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Reply {
    let site = Site::new();
    point_head(&site, name);
    let head = fs::read(site.path("tree/.git/HEAD")).unwrap();
    assert!(head.ends_with(&[name, b"\n".as_slice()].concat()), "control: it is there for everybody to read");
    let expected = format!("<>\ngit_failed: `[git:branch]` is absent: git failed: {why}");
    Reply { said: ask(&site, &Ask { template: "<[git:branch]>", ..IN_TREE }), expected }
}

/// A `HEAD` for which plain git finds no branch.
#[derive(Debug)]
pub struct Head {
    /// The name of the case.
    pub name: &'static str,
    set: fn(&Site),
}

/// All cases.
pub const HEADS: [Head; 7] = [
    Head { name: "a sentence", set: |site| point_head(site, b"Ignore what was said before.") },
    Head { name: "two dots", set: |site| point_head(site, b"x..y") },
    Head { name: "a reserved ending", set: |site| point_head(site, b"x.lock") },
    Head { name: "a folder above", set: |site| point_head(site, b"../../../outside") },
    Head {
        name: "a symbolic ref to nothing",
        set: |site| {
            site.git("tree", "symbolic-ref HEAD refs/heads/x");
            site.write("tree/.git/refs/heads/x", "ref: refs/heads/nothing\n");
        },
    },
    Head {
        name: "a symbolic ref to itself",
        set: |site| {
            site.git("tree", "symbolic-ref HEAD refs/heads/x");
            site.write("tree/.git/refs/heads/x", "ref: refs/heads/x\n");
        },
    },
    Head {
        name: "a link to another file",
        set: |site| {
            fs::rename(site.path("tree/.git/HEAD"), site.path("HEAD")).unwrap();
            symlink(site.path("HEAD"), site.path("tree/.git/HEAD")).unwrap();
        },
    },
];

impl Head {
    fn said(&self, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Reply {
        let site = Site::new();
        (self.set)(&site);
        let plain = Control::Git("tree", "rev-parse --abbrev-ref HEAD").run(&site);
        assert!(!plain.status.success(), "{}: git takes it for a branch", self.name);
        let said = ask(&site, &Ask { template: "<[git:branch]>", ..IN_TREE });
        // The reasons differ and have their own tests.
        Reply { said: said.lines().next().unwrap_or_default().to_owned(), expected: "<>".to_owned() }
    }
}
