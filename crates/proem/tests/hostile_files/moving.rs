//! Files that change while they are read. Guarantees: every build succeeds, the text taken from a file comes from one
//! file, and a forbidden file is not read at any moment.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proem::Caller;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::site::{Site, fifo, listed, skill};

/// Makes another thread stop, also when a check fails.
struct End<'e>(&'e AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Builds repeatedly while another thread calls `disturb` repeatedly.
fn meanwhile(builds: usize, disturb: impl Fn() + Sync, check: impl Fn(usize)) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = End(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                disturb();
            }
        });
        (0..builds).for_each(check);
    });
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// Returns the prompt with `MARK` in place of the moving file's text.
fn marked(site: &Site, path: &str) -> (String, String) {
    site.write(path, "MARK");
    let prompt = site.build().system().unwrap().to_owned();
    let (before, after) = prompt.split_once("MARK").unwrap();
    (before.to_owned(), after.to_owned())
}

#[test]
fn a_file_that_is_replaced_is_the_old_or_the_new_one() {
    let site = Site::new();
    let (before, after) = marked(&site, "work/sub/AGENTS.md");
    let (old, new) = ("old\n".repeat(50_000), "NEW LINE\n".repeat(30_000));
    let (here, there) = (site.path("work/sub/AGENTS.md"), site.path("outside/other"));
    fs::write(&here, &old).unwrap();
    fs::write(&there, &new).unwrap();
    let disturb = || exchange(&here, &there);
    meanwhile(300, disturb, |_| {
        let build = site.build();
        let prompt = build.system().unwrap();
        let content = prompt.strip_prefix(&before).and_then(|rest| rest.strip_suffix(&after)).unwrap();
        // Not `assert_eq`: it would print all of it.
        assert!(content == old || content == new, "{} bytes of something else", content.len());
    });
}

/// Row F6: a file that is written in place can be seen half-written; but the text is never more than was written, it
/// ends at the limit, and the rest of the prompt is unchanged.
#[test]
fn a_file_that_is_written_in_place_is_a_beginning_of_it() {
    let site = Site::new();
    let (before, after) = marked(&site, "work/sub/AGENTS.md");
    let whole = "0123456789abcde\n".repeat(1 << 17);
    // Over its own limit another file is used; over the common limit none is.
    let others = [2 << 20, 1 << 20].map(|bytes| {
        fs::write(site.path("work/sub/AGENTS.md"), &whole.as_bytes()[..bytes]).unwrap();
        site.build().system().unwrap().to_owned()
    });
    let disturb = || {
        let mut file = File::create(site.path("work/sub/AGENTS.md")).unwrap();
        whole.as_bytes().chunks(100_000).for_each(|chunk| file.write_all(chunk).unwrap());
        file.set_len(7).unwrap();
    };
    disturb();
    meanwhile(300, disturb, |_| {
        let build = site.build();
        let prompt = build.system().unwrap();
        let content = prompt.strip_prefix(&before).and_then(|rest| rest.strip_suffix(&after));
        let is_beginning = content.is_some_and(|content| whole.starts_with(content));
        assert!(is_beginning || others.iter().any(|other| other == prompt), "{} bytes", prompt.len());
    });
}

/// Row F5.
#[test]
fn a_file_that_is_sometimes_a_fifo_never_keeps_anybody_waiting() {
    let site = Site::new();
    site.write("work/sub/AGENTS.md", "A file.\n");
    let file = site.build().system().unwrap().to_owned();
    site.skill("work/sub/.sf/skills/mm", "mm");
    let with_skill = site.build().system().unwrap().to_owned();
    let pairs = ["work/sub/AGENTS.md", "work/sub/.sf/skills/mm/SKILL.md"].map(|path| {
        let other = site.path(format!("outside/{}", path.len()));
        fifo(&other);
        (site.path(path), other)
    });
    let others = [file.clone(), with_skill.clone()]
        .map(|prompt| prompt.replace("sub/AGENTS.md\n\nA file.", "sub/CLAUDE.md\n\nThe folder's."));
    let disturb = || pairs.iter().for_each(|(here, there)| exchange(here, there));
    meanwhile(500, disturb, |_| {
        let prompt = site.build().system().unwrap().to_owned();
        assert!(prompt == file || prompt == with_skill || others.contains(&prompt), "{prompt}");
    });
}

#[test]
fn skills_that_come_and_go_are_there_or_not() {
    let site = Site::new();
    let disturb = || {
        for number in 0..20 {
            site.skill(format!("work/sub/.sf/skills/mm/{number:02}"), &format!("m{number:02}"));
        }
        fs::remove_dir_all(site.path("work/sub/.sf/skills/mm")).unwrap();
    };
    meanwhile(300, disturb, |_| {
        let build = site.build();
        let listed = listed(&build);
        let (moving, still): (Vec<&str>, Vec<&str>) = listed.iter().partition(|name| name.starts_with('m'));
        assert_eq!(still, ["aa", "zz", "shared", "own"]);
        assert!(moving.is_sorted(), "{moving:?}");
    });
}

/// Row C10: a link to a secret, while the secret is replaced again and again, as editors do.
#[test]
fn a_secret_that_is_replaced_stays_one() {
    let site = Site::new();
    let without = site.build().system().unwrap().to_owned();
    let replace = || {
        site.write("outside/.env.new.tmp", "CANARY=1\n");
        fs::rename(site.path("outside/.env.new.tmp"), site.path("outside/.env")).unwrap();
    };
    replace();
    site.link(site.path("outside/.env"), "work/sub/AGENTS.md");
    meanwhile(500, replace, |_| assert_eq!(site.build().system(), Some(without.as_str())));
}

/// Returns the number of builds with a changing file: `PROEM_LONG=1` makes enough of them to see a gap of a
/// microsecond.
fn flips() -> usize {
    if std::env::var_os("PROEM_LONG").is_some() { 100_000 } else { 300 }
}

/// Checks a path in the workspace that alternates between the workspace's own file and a link to the outside.
fn check_flipper(own: impl Fn(&Site, &str), outside: impl Fn(&Site), path: &str, target: &str) {
    let site = Site::new();
    own(&site, path);
    outside(&site);
    site.link(site.path(target), "outside/link");
    let prompt = |caller| site.build_as(caller).system().unwrap().to_owned();
    let expected = prompt(site.remote());
    assert!(!expected.contains("CANARY"));
    let (here, there) = (site.path(path), site.path("outside/link"));
    exchange(&here, &there);
    assert!(prompt(Caller::User).contains("CANARY"), "control: the user gets it by the link");
    let refused = prompt(site.remote());
    assert!(!refused.contains("CANARY"));
    let disturb = || exchange(&here, &there);
    meanwhile(flips(), disturb, |number| {
        let prompt = prompt(site.remote());
        assert!(!prompt.contains("CANARY"), "bytes from outside in build {number}");
    });
}

/// Row F4.
#[test]
fn no_flip_lets_a_remote_caller_read_an_instruction_file_outside() {
    let outside = |site: &Site| site.write("outside/target", "CANARY\n");
    check_flipper(|site, path| site.write(path, "Own.\n"), outside, "work/sub/AGENTS.md", "outside/target");
    check_flipper(
        |site, path| site.write(path, "Own.\n"),
        outside,
        "work/sub/.sf/SYSTEM.md",
        "outside/target",
    );
}

/// Row F4.
#[test]
fn no_flip_lets_a_remote_caller_read_a_skill_file_outside() {
    let outside = |site: &Site| site.write("outside/target.md", skill("CANARY"));
    let own = |site: &Site, path: &str| site.write(path, skill("mm"));
    check_flipper(own, outside, "work/sub/.sf/skills/mm.md", "outside/target.md");
    check_flipper(own, outside, "work/sub/.sf/skills/mm/SKILL.md", "outside/target.md");
}

/// Row F4.
#[test]
fn no_flip_lets_a_remote_caller_read_a_folder_of_skills_outside() {
    let outside = |site: &Site| site.skill("outside/target", "CANARY");
    let own = |site: &Site, path: &str| site.skill(path, "mm");
    check_flipper(own, outside, "work/sub/.sf/skills/mm", "outside/target");
}

/// Row F4.
#[test]
fn no_flip_lets_a_remote_caller_read_below_a_folder_outside() {
    let outside = |site: &Site| site.skill("outside/target/deeper", "CANARY");
    let own = |site: &Site, path: &str| site.skill(format!("{path}/deeper"), "mm");
    check_flipper(own, outside, "work/sub/.sf/skills/mm", "outside/target");
}

/// Row F4.
#[test]
fn no_flip_lets_a_remote_caller_read_a_directory_of_skills_outside() {
    let outside = |site: &Site| site.skill("outside/target/mm", "CANARY");
    let own = |_: &Site, _: &str| {};
    check_flipper(own, outside, "work/sub/.sf/skills", "outside/target");
    let outside = |site: &Site| site.skill("outside/target/skills/mm", "CANARY");
    check_flipper(own, outside, "work/sub/.sf", "outside/target");
}
