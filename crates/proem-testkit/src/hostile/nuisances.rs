//! Repositories that want to hang a build, or to garble what it says.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use super::special::{SPECIAL, Special};
use super::{Control, Site, TEMPLATE, UNSTAGED};

/// Long enough for git on any machine, so that only a build that waits for ever is late.
pub const PATIENT: Duration = Duration::from_mins(1);

/// What is asked about a site.
#[derive(Debug)]
pub struct Ask<'a> {
    /// Where.
    pub cwd: &'a str,
    /// The template.
    pub template: &'a str,
    /// How long git may take.
    pub time_max: Duration,
}

/// What most of them ask.
const IN_TREE: Ask<'static> = Ask { cwd: "tree", template: TEMPLATE, time_max: PATIENT };

/// What was said, and what the user must be told. Both are the prompt, then a line for each fact that is absent.
#[derive(Debug)]
pub struct Said {
    /// What was said.
    pub said: String,
    /// What must be.
    pub expected: String,
}

/// A repository that wants to hang a build, or to garble what it says.
#[derive(Debug)]
pub enum Nuisance {
    /// A setting that changes what plain git says.
    Setting(&'static Setting),
    /// Something that is no regular file.
    Special(&'static Special),
    /// The name of a file.
    Name(&'static Name),
    /// The name of a branch.
    Branch(&'static Branch),
    /// A `HEAD` with no branch behind it.
    Head(&'static Head),
}

impl Nuisance {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let files = NAMES.iter().map(Self::Name);
        let heads = BRANCHES.iter().map(Self::Branch).chain(HEADS.iter().map(Self::Head));
        // Those that wait until they are stopped come first: the others are done meanwhile.
        let special = SPECIAL.iter().rev().map(Self::Special);
        special.chain(SETTINGS.iter().map(Self::Setting)).chain(files).chain(heads)
    }

    /// What it is; no two have the same name.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Setting(Setting { words, control, .. }) => {
                let (Control::Git(_, seen) | Control::GitOnTerminal(_, seen)) = control;
                format!("{words}, seen by {seen}")
            }
            Self::Special(Special { kind, path, template, .. }) => format!("{kind} {path} {template}"),
            Self::Name((_, shown)) => format!("file {shown}"),
            Self::Branch((name, _)) => format!("branch {}", name.escape_ascii()),
            Self::Head(head) => format!("head: {}", head.name),
        }
    }

    /// Lays it out, shows that it has an effect, and asks.
    #[must_use]
    pub fn said(&self, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Said {
        let told = |site: &Site, question: &Ask<'_>| {
            let said = ask(site, question);
            let is_clean = |character: char| character == '\n' || !character.is_control();
            assert!(said.chars().all(is_clean), "control characters in {said:?}");
            said
        };
        match self {
            Self::Setting(setting) => setting.said(told),
            Self::Special(special) => special.said(told),
            Self::Name(name) => of_name(name, told),
            Self::Branch(branch) => of_branch(branch, told),
            Self::Head(head) => head.said(told),
        }
    }
}

/// A setting that changes what plain git says.
#[derive(Debug)]
pub struct Setting {
    words: &'static str,
    control: Control,
    cwd: &'static str,
}

const fn of_status(words: &'static str) -> Setting {
    Setting { words, control: Control::Git("tree", "status --short"), cwd: "tree" }
}

const fn of_diff(words: &'static str) -> Setting {
    Setting { words, control: Control::Git("tree", "diff --stat HEAD"), cwd: "tree" }
}

/// All of them.
pub const SETTINGS: [Setting; 17] = [
    of_status("color.ui always"),
    of_status("color.status always"),
    of_status("core.bare true"),
    of_status("core.excludesFile {root}/everything"),
    of_status("core.quotePath false"),
    of_status("core.worktree {root}/other"),
    of_status("diff.renames false"),
    of_status("status.branch true"),
    of_status("status.renames false"),
    of_status("status.showUntrackedFiles all"),
    of_status("status.showUntrackedFiles no"),
    Setting {
        words: "status.relativePaths false",
        control: Control::Git("tree/folder", "status --short"),
        cwd: "tree/folder",
    },
    Setting {
        words: "diff.relative true",
        control: Control::Git("tree/folder", "diff --stat"),
        cwd: "tree/folder",
    },
    of_diff("color.diff always"),
    of_diff("core.attributesFile {root}/everything-binary"),
    of_diff("diff.orderFile {root}/order"),
    of_diff("diff.renames false"),
];

/// Adds what the settings are about: a rename, an unknown folder, a name that is not ASCII.
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

impl Setting {
    fn said(&self, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Said {
        let site = Site::new();
        enrich(&site);
        let question = Ask { cwd: self.cwd, ..IN_TREE };
        let before = (ask(&site, &question), self.control.run(&site).stdout);
        site.git("tree", &format!("config {}", self.words));
        let after = (ask(&site, &question), self.control.run(&site).stdout);
        assert_ne!(after.1, before.1, "{}: control did not change", self.words);
        assert!(before.0.contains("renamed"), "{}: control: the answer is whole", self.words);
        Said { said: after.0, expected: before.0 }
    }
}

/// A name of a file that does harm as it is, and the form in which it is shown between quotes.
pub type Name = (&'static [u8], &'static str);

/// All of them.
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

fn of_name((name, shown): &Name, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Said {
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
    Said { said: ask(&site, &IN_TREE), expected: format!("main|{status}|{UNSTAGED}\n{staged}") }
}

/// Makes `HEAD` name a ref below `refs/heads` that has a value.
fn point_head(site: &Site, name: &[u8]) {
    let id = site.git("tree", "rev-parse HEAD");
    let full = [b"refs/heads/", name].concat();
    fs::write(site.path("tree/.git/HEAD"), [b"ref: ", full.as_slice(), b"\n"].concat()).unwrap();
    fs::write(site.path("tree/.git/packed-refs"), [id.as_bytes(), b" ", &full, b"\n"].concat()).unwrap();
}

const CONTROL_CHARACTERS: &str = "HEAD names no ref that git would accept";

/// A name of a branch that would do harm, and why it is not taken.
pub type Branch = (&'static [u8], &'static str);

/// All of them.
pub const BRANCHES: [Branch; 7] = [
    (b"x\x1b[2J", CONTROL_CHARACTERS),
    (b"x\x7fy", CONTROL_CHARACTERS),
    (b"x\rforged", CONTROL_CHARACTERS),
    (b"x\nforged", CONTROL_CHARACTERS),
    ("x\u{9b}31m".as_bytes(), CONTROL_CHARACTERS),
    (b"x\0y", "HEAD: not text: NUL byte at offset 17"),
    (b"x\xffy", "HEAD: not UTF-8: bad byte at offset 17"),
];

fn of_branch((name, why): &Branch, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Said {
    let site = Site::new();
    point_head(&site, name);
    let head = fs::read(site.path("tree/.git/HEAD")).unwrap();
    assert!(head.ends_with(&[name, b"\n".as_slice()].concat()), "control: it is there for everybody to read");
    let expected = format!("<>\ngit_failed: `[git:branch]` is absent: git failed: {why}");
    Said { said: ask(&site, &Ask { template: "<[git:branch]>", ..IN_TREE }), expected }
}

/// A `HEAD` that plain git finds no branch behind.
#[derive(Debug)]
pub struct Head {
    /// What it is.
    pub name: &'static str,
    set: fn(&Site),
}

/// All of them.
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
    fn said(&self, ask: impl Fn(&Site, &Ask<'_>) -> String) -> Said {
        let site = Site::new();
        (self.set)(&site);
        let plain = Control::Git("tree", "rev-parse --abbrev-ref HEAD").run(&site);
        assert!(!plain.status.success(), "{}: git takes it for a branch", self.name);
        let said = ask(&site, &Ask { template: "<[git:branch]>", ..IN_TREE });
        // Why there is none differs between them, and has tests of its own.
        Said { said: said.lines().next().unwrap_or_default().to_owned(), expected: "<>".to_owned() }
    }
}
