//! Trees that change at random between builds: what is known from before must never show.

use std::fs::{self, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::memory;
use crate::observe::file_stamp;
use crate::request::Request;
use crate::{Caller, build};

/// Longer than a tick of the clock that stamps files, and short enough that a test needs no pause.
const MARGIN: Duration = Duration::from_millis(50);
const SKILLS: usize = 12;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % sides
    }
}

struct Tree {
    folder: tempfile::TempDir,
    dice: Dice,
}

impl Tree {
    fn new(seed: u64) -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir_all(folder.path().join("tree/.git"))?;
        fs::create_dir(folder.path().join("home"))?;
        let mut tree = Self { folder, dice: Dice(seed) };
        for number in 0..SKILLS {
            tree.write(&tree.skill(number))?;
        }
        Ok(tree)
    }

    fn skills(&self) -> PathBuf {
        self.folder.path().join("tree/.agents/skills")
    }

    fn skill(&self, number: usize) -> PathBuf {
        self.skills().join(format!("skill-{number:02}"))
    }

    /// Every description has the same length: the size of the file never tells.
    fn write(&mut self, skill: &Path) -> std::io::Result<()> {
        fs::create_dir_all(skill)?;
        let name = skill.file_name().unwrap_or_default().to_string_lossy();
        let text = format!("---\nname: {name}\ndescription: Does {:04}.\n---\n", self.dice.below(10_000));
        fs::write(skill.join("SKILL.md"), text)
    }

    /// Changes something; that what was to be changed is not there is as good.
    fn change(&mut self) -> std::io::Result<()> {
        let (one, other) = (self.dice.below(SKILLS), self.dice.below(SKILLS));
        let (one, other) = (self.skill(one), self.skill(other));
        let file = one.join("SKILL.md");
        match self.dice.below(12) {
            0..=2 => self.write(&one),
            3 => self.write_with_old_times(&one),
            4 => fs::rename(&file, other.join("SKILL.md")),
            5 => fs::rename(&one, one.with_extension("away")),
            6 => fs::rename(one.with_extension("away"), &one),
            7 => fs::write(one.join(".gitignore"), "SKILL.md\n"),
            8 => fs::remove_file(one.join(".gitignore")),
            9 => fs::hard_link(&file, other.join("SKILL.md")),
            10 => fs::remove_file(&file).and_then(|()| symlink(other.join("SKILL.md"), &file)),
            _ => fs::write(self.skills().join(".ignore"), format!("skill-0{}\n", self.dice.below(10))),
        }
    }

    /// As an archive does when it is unpacked: the new text has the times of the old one.
    fn write_with_old_times(&mut self, skill: &Path) -> std::io::Result<()> {
        let written = fs::metadata(skill.join("SKILL.md"))?.modified()?;
        self.write(skill)?;
        let file = fs::File::options().write(true).open(skill.join("SKILL.md"))?;
        file.set_times(FileTimes::new().set_modified(written).set_accessed(SystemTime::now()))
    }

    fn request(&self) -> Request {
        let (cwd, home) = (self.folder.path().join("tree"), self.folder.path().join("home"));
        let json = serde_json::json!({
            "profile": "layers", "cwd": cwd,
            "host": { "home": home, "config_dir": home, "timezone": "UTC", "env": {}, "now": "2026-01-01T00:00:00Z" },
        });
        Request::from_json(&json.to_string()).expect("the request is well formed")
    }
}

/// Everything that a build says, notes and files included.
fn said(request: &Request) -> String {
    format!("{:#?}", build(request, Caller::User).expect("it can be built"))
}

#[test]
fn a_warm_build_is_a_cold_build_whatever_changed() {
    file_stamp::with_margin(MARGIN, || {
        let known_before = memory::uses();
        for seed in 0..3 {
            let mut tree = Tree::new(seed).expect("the tree can be made");
            let request = tree.request();
            for step in 0..80 {
                let _ = tree.change();
                let warm = said(&request);
                let cold = file_stamp::without(|| said(&request));
                assert!(warm == cold, "seed {seed}, step {step}: {}", tree.folder.path().display());
            }
        }
        assert!(memory::uses() > known_before, "nothing was ever known, so nothing was tried");
    });
}

#[test]
fn what_was_written_just_now_is_read_again() {
    let mut tree = Tree::new(1).expect("the tree can be made");
    let request = tree.request();
    for _ in 0..20 {
        let before = memory::uses();
        tree.write(&tree.skill(0)).expect("the skill can be written");
        assert!(said(&request) == file_stamp::without(|| said(&request)));
        assert_eq!(memory::uses(), before, "its times may not tell yet");
    }
}
