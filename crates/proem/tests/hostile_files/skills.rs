//! Special files and other faults in the place of skills.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proem_core::note::Code;

use crate::site::{Put, Site, count, fifo, for_each, is_root, listed, skill, socket, sparse};

struct Case {
    name: &'static str,
    put: Put,
    /// The expected messages about the file: the start of each line.
    said: &'static [&'static str],
}

const MALFORMED: &[&str] = &["considered: malformed"];
const REGULAR: &[&str] = &["not_regular: ", "considered: unreadable"];
const REFUSED: &[&str] = &["secret_path: ", "considered: refused"];
const MISSING: &[&str] = &["considered: missing"];

fn link(target: impl AsRef<Path>, place: &Path) {
    std::os::unix::fs::symlink(target, place).unwrap();
}

fn secret(site: &Site, name: &str, place: &Path) {
    site.write(format!("outside/{name}"), skill("canary"));
    link(site.path(format!("outside/{name}")), place);
}

const CASES: [Case; 20] = [
    Case { name: "FIFO", put: |_, place| fifo(place), said: REGULAR },
    Case { name: "socket", put: |_, place| socket(place), said: &["", "considered: unreadable"] },
    Case { name: "/dev/zero", put: |_, place| link("/dev/zero", place), said: REGULAR },
    Case { name: "/dev/null", put: |_, place| link("/dev/null", place), said: REGULAR },
    Case { name: "link to itself", put: |_, place| link(place, place), said: MISSING },
    Case { name: "dangling", put: |_, place| link("/nowhere/at/all", place), said: MISSING },
    Case { name: "empty", put: |_, place| fs::write(place, "").unwrap(), said: MALFORMED },
    Case { name: "binary", put: |_, place| fs::write(place, b"\x7fELF\xff\0").unwrap(), said: MALFORMED },
    Case { name: "NULs", put: |_, place| sparse(place, "", 100 << 20), said: MALFORMED },
    Case {
        name: "10 GiB of NULs, by link",
        put: |site, place| {
            sparse(&site.path("outside/sparse"), "", 10 << 30);
            link(site.path("outside/sparse"), place);
        },
        said: &["link_outside: ", "considered: malformed"],
    },
    Case {
        name: "not UTF-8",
        put: |_, place| fs::write(place, b"---\nname: x\ndescription: caf\xe9\n---\n").unwrap(),
        said: MALFORMED,
    },
    Case {
        name: "aliases",
        put: |_, place| {
            let lines = (1..9).map(|n| format!("a{n}: &a{n} [*a{m}, *a{m}]\n", m = n - 1));
            let bomb = lines.collect::<String>();
            fs::write(place, format!("---\na0: &a0 [x, x]\n{bomb}description: *a8\n---\n")).unwrap();
        },
        said: MALFORMED,
    },
    Case {
        name: "9 KiB",
        put: |_, place| {
            fs::write(place, format!("---\ndescription: {}\n---\n", "x".repeat(9 << 10))).unwrap();
        },
        said: MALFORMED,
    },
    Case {
        name: "never closed",
        put: |_, place| {
            fs::write(place, format!("---\ndescription: x\n{}", "# x\n".repeat(1 << 20))).unwrap();
        },
        said: MALFORMED,
    },
    Case {
        name: "deep",
        put: |_, place| {
            let deep = "[".repeat(2000) + &"]".repeat(2000);
            fs::write(place, format!("---\ndescription: x\nmetadata: {deep}\n---\n")).unwrap();
        },
        said: MALFORMED,
    },
    Case {
        name: "deep by indentation",
        put: |_, place| {
            let deep: String = (0..100).map(|level| " ".repeat(level) + "a:\n").collect();
            fs::write(place, format!("---\n{deep}description: x\n---\n")).unwrap();
        },
        said: MALFORMED,
    },
    Case {
        name: "tag",
        put: |_, place| fs::write(place, "---\ndescription: !!python/object x\n---\n").unwrap(),
        said: MALFORMED,
    },
    Case {
        name: "twice",
        put: |_, place| fs::write(place, "---\ndescription: x\ndescription: y\n---\n").unwrap(),
        said: MALFORMED,
    },
    Case { name: "id_rsa", put: |site, place| secret(site, "id_rsa", place), said: REFUSED },
    Case { name: "environment", put: |_, place| link("/proc/self/environ", place), said: REFUSED },
];

const PLACES: [&str; 4] = [
    "work/sub/.sf/skills/bad/SKILL.md",
    "work/sub/.sf/skills/bad.md",
    "work/.agents/skills/in/between/SKILL.md",
    "home/.agents/skills/bad/SKILL.md",
];

/// Rows F5, M7 and M8.
#[test]
fn what_is_no_skill_is_named_and_the_others_are_listed() {
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
                let said = site.about(&build, path);
                let is_outside_home =
                    |line: &&&str| !line.starts_with("link_outside") || !path.starts_with("home");
                let expected: Vec<&str> = case.said.iter().filter(is_outside_home).copied().collect();
                let is_said = said.len() == expected.len()
                    && said.iter().zip(&expected).all(|(said, start)| said.starts_with(start));
                assert!(is_said, "{path}: {said:#?}");
                if case.said == MALFORMED {
                    assert_eq!(count(&build, Code::MalformedSkill), 1, "{path}");
                }
            }
        },
    );
}

/// A folder with the name of a skill file is searched like any folder.
#[test]
fn folders_that_are_called_like_files_are_folders() {
    for path in ["bad/SKILL.md", "bad.md"] {
        let site = Site::new();
        let folder = format!("work/sub/.sf/skills/{path}");
        fs::create_dir_all(site.path(&folder)).unwrap();
        let without = site.build();
        assert_eq!(listed(&without), ["aa", "zz", "shared", "own"]);
        site.skill(format!("{folder}/good"), "good");
        assert_eq!(listed(&site.build()), ["aa", "good", "zz", "shared", "own"]);
    }
}

#[test]
fn only_the_head_of_a_file_is_read() {
    for is_link in [false, true] {
        let site = Site::new();
        let place = site.place("work/sub/.sf/skills/good/SKILL.md");
        sparse(&site.path("work/large"), &skill("good"), 100 << 20);
        if is_link {
            link(site.path("work/large"), &place);
        } else {
            fs::rename(site.path("work/large"), &place).unwrap();
        }
        let build = site.build();
        assert_eq!(listed(&build), ["aa", "good", "zz", "shared", "own"]);
        assert_eq!(site.about(&build, "work/sub/.sf/skills/good/SKILL.md"), ["considered: used"]);
    }
}

#[test]
fn ignore_files_that_cannot_be_read_are_named_and_ignore_nothing() {
    let cases: [(&str, Put, &str); 6] = [
        ("FIFO", |_, place| fifo(place), "not_regular"),
        ("huge", |_, place| sparse(place, "aa/\n", 100 << 20), "over_limit"),
        (
            "64 KiB and one byte",
            |_, place| fs::write(place, "aa/\n".repeat(1 << 14) + "#").unwrap(),
            "over_limit",
        ),
        ("/dev/zero", |_, place| link("/dev/zero", place), "not_regular"),
        ("secret", |_, place| link("/proc/self/environ", place), "secret_path"),
        ("directory", |_, place| fs::create_dir(place).unwrap(), "unreadable"),
    ];
    for_each(
        &cases,
        |(name, ..)| (*name).to_owned(),
        |(_, put, code)| {
            for name in [".gitignore", ".ignore", ".fdignore"] {
                for folder in ["work/sub/.sf/skills", "work/sub/.sf/skills/aa"] {
                    let site = Site::new();
                    let without = site.build();
                    let path = format!("{folder}/{name}");
                    put(&site, &site.place(&path));
                    let build = site.build();
                    assert_eq!(build.system(), without.system());
                    assert_eq!(
                        count(&build, Code::ALL.into_iter().find(|known| known.word() == *code).unwrap()),
                        1
                    );
                    assert_eq!(site.about(&build, &path).len(), 2);
                }
            }
        },
    );
}

/// Row M6.
#[test]
fn what_no_pattern_is_does_not_spoil_the_others() {
    for bad in
        [b"\xff\xfe\n".as_slice(), b"\0\n", b"[\n", b"a[!\n", b"{a\n", b"\\\n", b"!\n", b"/\n", b"\r\n"]
    {
        let site = Site::new();
        site.write("work/sub/.sf/skills/.gitignore", [bad, b"zz/\n", bad].concat());
        assert_eq!(listed(&site.build()), ["aa", "shared", "own"], "{}", bad.escape_ascii());
    }
    let site = Site::new();
    let bomb = [b"*a".repeat(8000), b"{a,b}".repeat(2000), b"**/x/".repeat(1000)].join(b"\n".as_slice());
    site.write("work/sub/.sf/skills/.ignore", [b"zz/\n", bomb.as_slice(), b"\n"].concat());
    assert_eq!(listed(&site.build()), ["aa", "shared", "own"]);
}

#[test]
fn what_may_not_be_read_is_named() {
    if is_root() {
        return;
    }
    for closed in ["skills/bad/SKILL.md", "skills/bad", "skills/.gitignore"] {
        let site = Site::new();
        let without = site.build();
        site.skill("work/sub/.sf/skills/bad", "bad");
        site.write("work/sub/.sf/skills/.gitignore", "");
        let path = format!("work/sub/.sf/{closed}");
        fs::set_permissions(site.path(&path), fs::Permissions::from_mode(0o000)).unwrap();
        let build = site.build();
        fs::set_permissions(site.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
        let named = if closed == "skills/bad" { format!("{path}/SKILL.md") } else { path };
        let expected = format!("unreadable: {{root}}/{named} is left out: cannot be read: permission denied");
        assert_eq!(site.about(&build, &named), [expected, "considered: unreadable".to_owned()]);
        if !closed.ends_with(".gitignore") {
            assert_eq!(build.system(), without.system(), "{closed}");
        }
    }
}
