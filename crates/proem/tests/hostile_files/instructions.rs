//! Special files and other faults in the place of instruction files.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proem::Caller;
use proem_core::note::Code;

use crate::site::{Put, Site, count, fifo, for_each, is_root, skill, socket, sparse};

/// A file in the place of an instruction file.
struct Case {
    name: &'static str,
    put: Put,
    /// The code and the reason of the note; `None` if the file counts as missing.
    note: Option<(&'static str, &'static str)>,
    outcome: &'static str,
}

fn link(target: impl AsRef<Path>, place: &Path) {
    std::os::unix::fs::symlink(target, place).unwrap();
}

const fn unreadable(name: &'static str, put: Put, why: &'static str) -> Case {
    Case { name, put, note: Some(("unreadable", why)), outcome: "unreadable" }
}

const fn special(name: &'static str, put: Put, why: &'static str) -> Case {
    Case { name, put, note: Some(("not_regular", why)), outcome: "unreadable" }
}

const fn binary(name: &'static str, put: Put, why: &'static str) -> Case {
    Case { name, put, note: Some(("not_utf8", why)), outcome: "unreadable" }
}

const fn large(name: &'static str, put: fn(&Site, &Path)) -> Case {
    Case { name, put, note: Some(("over_limit", "over 1 MiB")), outcome: "unreadable" }
}

const fn secret(name: &'static str, put: fn(&Site, &Path)) -> Case {
    let why = "refused: its name says that it holds a secret";
    Case { name, put, note: Some(("secret_path", why)), outcome: "refused" }
}

const fn missing(name: &'static str, put: fn(&Site, &Path)) -> Case {
    Case { name, put, note: None, outcome: "missing" }
}

const FIFO: &str = "is a FIFO, not a regular file";
const DEVICE: &str = "is a character device, not a regular file";
const LOOP: &str = "cannot be read: too many levels of symbolic links";

/// Writes a secret outside the workspace, and links to it.
fn link_to_secret(site: &Site, name: &str, place: &Path) {
    site.write(format!("outside/{name}"), "CANARY\n");
    link(site.path(format!("outside/{name}")), place);
}

const CASES: [Case; 27] = [
    special("FIFO", |_, place| fifo(place), FIFO),
    special(
        "link to a FIFO",
        |site, place| {
            fifo(&site.path("outside/fifo"));
            link(site.path("outside/fifo"), place);
        },
        FIFO,
    ),
    special("socket", |_, place| socket(place), "is a socket, not a regular file"),
    special("/dev/zero", |_, place| link("/dev/zero", place), DEVICE),
    special("/dev/null", |_, place| link("/dev/null", place), DEVICE),
    special("/dev/full by way of /proc", |_, place| link("/proc/self/root/dev/full", place), DEVICE),
    unreadable("directory", |_, place| fs::create_dir(place).unwrap(), "is a directory"),
    unreadable("link to a directory", |_, place| link("..", place), "is a directory"),
    unreadable("link to /", |_, place| link("/", place), "is a directory"),
    unreadable("link to itself", |_, place| link(place.file_name().unwrap(), place), LOOP),
    unreadable(
        "loop of links",
        |site, place| {
            link(site.path("outside/b"), &site.path("outside/a"));
            link(place, &site.path("outside/b"));
            link(site.path("outside/a"), place);
        },
        LOOP,
    ),
    missing("dangling link", |_, place| link("/nowhere/at/all", place)),
    missing("link below a file", |_, place| link("/dev/null/x", place)),
    large("100 MB of nothing", |_, place| sparse(place, "# Head\n", 100 << 20)),
    large("10 GiB of nothing, by link", |site, place| {
        sparse(&site.path("outside/sparse"), "", 10 << 30);
        link(site.path("outside/sparse"), place);
    }),
    large("one byte over", |_, place| fs::write(place, vec![b'x'; (1 << 20) + 1]).unwrap()),
    binary(
        "not UTF-8",
        |_, place| fs::write(place, b"caf\xe9\n").unwrap(),
        "not UTF-8: bad byte at offset 3",
    ),
    binary("UTF-16", |_, place| fs::write(place, b"\xff\xfea\0").unwrap(), "not UTF-8: bad byte at offset 0"),
    binary(
        "half a letter",
        |_, place| fs::write(place, b"x\xc3").unwrap(),
        "not UTF-8: bad byte at offset 1",
    ),
    binary(
        "ELF",
        |_, place| fs::write(place, b"\x7fELF\x02\x01\0\0\xff").unwrap(),
        "not UTF-8: bad byte at offset 8",
    ),
    secret("/proc/self/environ", |_, place| link("/proc/self/environ", place)),
    secret("environment of a thread", |_, place| link("/proc/thread-self/environ", place)),
    secret("id_rsa", |site, place| link_to_secret(site, "id_rsa", place)),
    secret(".env", |site, place| link_to_secret(site, ".env", place)),
    secret("key", |site, place| link_to_secret(site, "deep/Server.PEM", place)),
    secret("in .ssh", |site, place| {
        site.write("home/.ssh/notes", "CANARY\n");
        link(site.path("home/.ssh/notes"), place);
    }),
    secret("chain of links", |site, place| {
        link_to_secret(site, ".netrc", &site.path("outside/plain"));
        link("../outside/../outside/plain", &site.path("work/plain"));
        link(site.path("work/plain"), place);
    }),
];

/// Every place that instructions are read from; for each there is another file that is used instead.
const PLACES: [&str; 5] = [
    "work/sub/AGENTS.md",
    "home/.sf/agent/AGENTS.md",
    "work/sub/.sf/SYSTEM.md",
    "work/sub/.sf/APPEND_SYSTEM.md",
    "AGENTS.md",
];

/// Rows C5, C10 and F5.
#[test]
fn what_cannot_be_read_is_named_and_the_next_file_counts() {
    for_each(
        &CASES,
        |case| case.name.to_owned(),
        |case| {
            for path in PLACES {
                let site = Site::new();
                let without = site.build();
                (case.put)(&site, &site.place(path));
                let build = site.build();
                assert_eq!(build.system(), without.system(), "{path}");
                let mut expected = vec![format!("considered: {}", case.outcome)];
                expected.splice(
                    0..0,
                    case.note.map(|(code, why)| format!("{code}: {{root}}/{path} is left out: {why}")),
                );
                assert_eq!(site.about(&build, path), expected);
                assert_eq!(build.notes().len() - case.note.iter().count(), without.notes().len());
            }
        },
    );
}

/// Rows C5, C7 and F5, the control: at each of these places a plain file, or a link to one, changes the
/// prompt.
#[test]
fn what_can_be_read_counts_at_every_place() {
    for path in PLACES {
        for is_link in [false, true] {
            let site = Site::new();
            let without = site.build();
            let place = site.place(path);
            site.write("outside/plain", "CANARY\n");
            if is_link {
                link(site.path("outside/plain"), &place);
            } else {
                fs::copy(site.path("outside/plain"), &place).unwrap();
            }
            let build = site.build();
            assert_ne!(build.system(), without.system(), "{path}");
            assert!(build.system().unwrap().contains("CANARY"));
            let is_noted = is_link && path.starts_with("work/");
            assert_eq!(count(&build, Code::LinkOutside), usize::from(is_noted), "{path}");
        }
    }
}

/// Row F6: files of size 0 that still have content, different each time: they are not instructions.
#[test]
fn files_of_the_kernel_are_no_instructions() {
    let cases =
        ["/proc/self/status", "/proc/self/cmdline", "/proc/self/maps", "/proc/uptime", "/proc/self/mem"];
    for_each(
        &cases,
        |target| (*target).to_owned(),
        |target| {
            let site = Site::new();
            let without = site.build();
            link(target, &site.place("work/sub/AGENTS.md"));
            let build = site.build();
            assert_eq!(build.system(), without.system());
            assert!(!site.about(&build, "work/sub/AGENTS.md").is_empty());
        },
    );
}

/// Row M1.
#[test]
fn instructions_are_taken_byte_for_byte() {
    for content in
        ["a\0b\n", "\u{feff}x\r\n\r\n", "[prompt:cwd] {{ cwd }} {% raw %} [if", "</x>\u{1b}[2J\u{202e}", " "]
    {
        let site = Site::new();
        site.write("work/sub/AGENTS.md", "MARK");
        let marked = site.build().system().unwrap().replace("MARK", content);
        site.write("work/sub/AGENTS.md", content);
        assert_eq!(site.build().system(), Some(marked.as_str()));
    }
}

/// Rows C10 and T2.
#[test]
fn a_secret_is_read_when_its_exact_path_is_allowed() {
    let site = Site::new();
    site.write("outside/.env", "CANARY\n");
    link(site.path("outside/.env"), &site.place("work/sub/AGENTS.md"));
    assert!(!site.build().system().unwrap().contains("CANARY"));
    let allowed = format!("[files]\nallow = [{:?}]\n", site.path("outside/.env"));
    site.write("work/sub/.proem/proem.toml", &allowed);
    assert!(!site.build().system().unwrap().contains("CANARY"), "the workspace cannot allow it");
    site.write("config/proem.toml", &allowed);
    assert!(site.build().system().unwrap().contains("CANARY"));
}

#[test]
fn what_may_not_be_read_is_named() {
    if is_root() {
        return;
    }
    // In a closed folder these are `SYSTEM.md`, `APPEND_SYSTEM.md` and the skills.
    for (closed, expected) in [("work/sub/AGENTS.md", 1), ("work/sub/.sf", 3)] {
        let site = Site::new();
        site.write("work/sub/AGENTS.md", "CANARY\n");
        fs::set_permissions(site.path(closed), fs::Permissions::from_mode(0o000)).unwrap();
        let build = site.build();
        fs::set_permissions(site.path(closed), fs::Permissions::from_mode(0o755)).unwrap();
        let notes = build.notes().iter();
        let denied = notes.filter(|note| note.message.ends_with("cannot be read: permission denied")).count();
        assert_eq!(denied, expected, "{closed}");
        assert!(build.system().unwrap().contains("The project's."));
    }
}

/// Row F5: data in a FIFO is for another reader.
#[test]
fn a_fifo_is_not_consumed() {
    for path in [
        "work/sub/AGENTS.md",
        "work/sub/.sf/SYSTEM.md",
        "work/sub/.sf/skills/bad/SKILL.md",
        "work/sub/.sf/skills/bad.md",
        "work/sub/.sf/skills/.gitignore",
    ] {
        let site = Site::new();
        fifo(&site.place(path));
        let mut both_ends = fs::File::options().read(true).write(true).open(site.path(path)).unwrap();
        both_ends.write_all(skill("MINE").as_bytes()).unwrap();
        let builds = [Caller::User, site.remote()].map(|caller| site.build_as(caller));
        assert!(builds.iter().all(|build| !build.system().unwrap().contains("MINE")), "{path}");
        let mut rest = vec![0; skill("MINE").len()];
        both_ends.read_exact(&mut rest).unwrap();
        assert_eq!(rest, skill("MINE").as_bytes(), "{path}");
    }
}
