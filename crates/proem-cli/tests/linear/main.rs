//! Commands take time that is linear in the text that they read: twice the text takes at most 2.3 times the instructions.
//!
//! Counting instructions takes fifty times as long as running, so there is a sieve before it. Each command runs at two sizes,
//! and the time on the processor decides nothing but which of them are counted: a busy machine makes more of them counted,
//! and none fail. `PROEM_LONG=1` takes texts of up to 1 MiB and every command with every text; `PROEM_LINEAR=counted` leaves
//! the sieve out (`scripts/linear` does both, and prints a table). `PROEM_LINEAR_ONLY` is a part of the name of a text, and
//! `PROEM` another program.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

mod shapes;

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use shapes::{SHAPES, Shape};

/// Most instructions for twice the text, as a multiple.
const GROWTH_MAX: f64 = 2.3;
/// Growth of the time from the smallest size to the largest, four times as large, from which on instructions are counted.
const SUSPICIOUS: f64 = 4.8;
/// Less than this, in nanoseconds, is the start of the program and noise.
const NOTICEABLE: u64 = 40_000_000;

/// The files that have the text.
#[derive(Clone, Copy, PartialEq)]
enum Where {
    /// The instruction files of all agents.
    Files,
    /// Many rules of 4 KiB.
    Rules,
    /// Skills: a body, an open front matter, and a file without one.
    Skills,
    /// The template of the workspace.
    Template,
    /// An instruction file, which changes between two builds.
    Edited,
}

struct Work {
    name: &'static str,
    text: Where,
    arguments: &'static [&'static str],
}

const fn work(name: &'static str, text: Where, arguments: &'static [&'static str]) -> Work {
    Work { name, text, arguments }
}

/// The commands that a text meets most often.
const MAIN: [Work; 9] = [
    work("build", Where::Files, &["build"]),
    work("build -p claude-code", Where::Files, &["build", "-p", "claude-code"]),
    work("build -p claude-code, rules", Where::Rules, &["build", "-p", "claude-code"]),
    work("build -p copilot", Where::Files, &["build", "-p", "copilot"]),
    work("build -p goose", Where::Files, &["build", "-p", "goose"]),
    work("build -p gemini-cli", Where::Files, &["build", "-p", "gemini-cli"]),
    work("check", Where::Files, &["check"]),
    work("build, SYSTEM.md", Where::Template, &["build"]),
    work("diff", Where::Edited, &["diff", "before.json"]),
];

/// Commands that share their handlers with the others.
const MORE: [Work; 11] = [
    work("build -p codex", Where::Files, &["build", "-p", "codex"]),
    work("build -p cursor", Where::Files, &["build", "-p", "cursor"]),
    work("build -p opencode", Where::Files, &["build", "-p", "opencode"]),
    work("build -p zed", Where::Files, &["build", "-p", "zed"]),
    work("build --format json", Where::Files, &["build", "--format", "json"]),
    work("explain", Where::Files, &["explain"]),
    work("compat", Where::Files, &["compat"]),
    work("check --as all", Where::Files, &["check", "--as", "all"]),
    work("check, SYSTEM.md", Where::Template, &["check"]),
    work("skills check", Where::Skills, &["skills", "check"]),
    work("why", Where::Files, &["why", "no such text"]),
];

/// A program and a file that it reads: what is measured.
struct Case {
    folder: tempfile::TempDir,
    program: PathBuf,
    arguments: Vec<String>,
    control: Option<&'static str>,
}

impl Case {
    fn new(program: &Path, work: &Work, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments = work.arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let case = Self { folder, program: program.to_owned(), arguments, control: None };
        fs::create_dir_all(case.folder.path().join("work/.git")).unwrap();
        match work.text {
            Where::Files => {
                for name in
                    ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".goosehints", ".github/copilot-instructions.md"]
                {
                    case.write(name, text);
                }
            }
            Where::Rules => {
                const BYTES: usize = 4096;
                let mut rest = text;
                for number in 0..=text.len() / BYTES {
                    let (rule, others) = rest.split_at(rest.floor_char_boundary(BYTES));
                    case.write(&format!(".claude/rules/{number}.md"), rule);
                    rest = others;
                }
            }
            Where::Skills => {
                case.write(".proem/skills/x/SKILL.md", &format!("---\nname: x\ndescription: y\n---\n{text}"));
                case.write(".proem/skills/y/SKILL.md", &format!("---\nname: y\ndescription: {text}"));
                case.write(".agents/skills/z/SKILL.md", text);
            }
            Where::Template => case.write(".proem/SYSTEM.md", text),
            Where::Edited => {
                case.write("AGENTS.md", text);
                let built = case.command().args(["build", "--format", "json"]).output().unwrap();
                fs::write(case.folder.path().join("work/before.json"), built.stdout).unwrap();
                let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
                case.write("AGENTS.md", &format!("{second}x{first}"));
            }
        }
        case
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join("work").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn command(&self) -> Command {
        self.around(Command::new(&self.program))
    }

    fn around(&self, mut command: Command) -> Command {
        command.current_dir(self.folder.path().join("work")).env_clear().env("HOME", self.folder.path());
        command.envs(self.control.map(|kind| ("PROEM_LINEAR_CONTROL", kind)));
        command.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
        command
    }

    /// The time that its first thread had a processor, in nanoseconds.
    fn time(&self) -> u64 {
        let mut command = self.command();
        command.args(&self.arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let id = Pid::from_child(&child);
        // It must have ended and still be there: its times go with it.
        waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        let kernel =
            |name: &str| fs::read_to_string(format!("/proc/{}/{name}", id.as_raw_nonzero())).unwrap();
        let (times, all) = (kernel("schedstat"), kernel("stat"));
        child.wait().unwrap();
        if self.control.is_some() {
            // A test works on a thread of its own: the time of all threads, in steps of 10 ms.
            let fields = all.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(2);
            return fields.map(|ticks| ticks.parse::<u64>().unwrap() * 10_000_000).sum();
        }
        times.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Counts its instructions.
    fn instructions(&self) -> u64 {
        let mut command = self.around(Command::new("valgrind"));
        command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
        command.arg(&self.program).args(&self.arguments);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let counted = said.lines().find_map(|line| line.split_once("I   refs:")).map(|(_, count)| count);
        assert!(counted.is_some(), "valgrind counted nothing:\n{said}");
        counted.unwrap_or_default().trim().replace(',', "").parse().unwrap()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio needs few digits")]
fn ratio(large: u64, small: u64) -> f64 {
    large as f64 / small.max(1) as f64
}

/// Cases of one program, by the size of their text.
struct Sizes<M> {
    make: M,
    smallest: usize,
}

impl<M: Fn(usize) -> Case> Sizes<M> {
    /// Nearly no text: what the program takes for itself.
    const EMPTY: usize = 16;

    /// Tells whether the time may grow faster than the text, three times in a row.
    fn is_suspicious(&self) -> bool {
        let [empty, small, large] = [Self::EMPTY, self.smallest, 4 * self.smallest].map(&self.make);
        (0..3).all(|_| {
            let start = empty.time();
            let [small, large] = [&small, &large].map(|case| case.time().saturating_sub(start));
            large > NOTICEABLE && ratio(large, small) > SUSPICIOUS
        })
    }

    /// By how much the instructions grow when the text doubles: the larger of two doublings.
    fn growth(&self) -> f64 {
        let start = (self.make)(Self::EMPTY).instructions();
        let count = |times| (self.make)(times * self.smallest).instructions().saturating_sub(start);
        let counts = [1, 2, 4].map(count);
        ratio(counts[1], counts[0]).max(ratio(counts[2], counts[1]))
    }
}

/// Tells whether instructions can be counted here. `scripts/test` wants it so.
fn can_count() -> bool {
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    assert!(
        has_valgrind || std::env::var_os("PROEM_REQUIRE_VALGRIND").is_none(),
        "valgrind is not installed"
    );
    has_valgrind
}

/// Copies a program without its debug information, which valgrind would read at each start.
fn stripped(whole: PathBuf, folder: &Path) -> PathBuf {
    let plain = folder.join("plain");
    let is_done =
        Command::new("strip").arg("-o").arg(&plain).arg(&whole).status().is_ok_and(|status| status.success());
    if is_done { plain } else { whole }
}

/// The command that is measured.
fn program(folder: &Path) -> PathBuf {
    let own = || PathBuf::from(env!("CARGO_BIN_EXE_proem"));
    stripped(std::env::var_os("PROEM").map_or_else(own, PathBuf::from), folder)
}

/// The works that a text is tried with: in the short form the two that have found most, and one of the others by turns.
fn works(number: usize, is_long: bool) -> Vec<&'static Work> {
    const ALWAYS: usize = 2;
    let others = MAIN.len() + MORE.len() - ALWAYS;
    let is_tried = |index: usize| is_long || index < ALWAYS || index == ALWAYS + number % others;
    MAIN.iter().chain(&MORE).enumerate().filter(|(index, _)| is_tried(*index)).map(|(_, work)| work).collect()
}

#[test]
fn twice_the_text_takes_twice_the_instructions() {
    let is_long = std::env::var_os("PROEM_LONG").is_some();
    let is_counted = std::env::var_os("PROEM_LINEAR").is_some_and(|value| value == "counted");
    // Four times that is a little less than 1 MiB: a larger file would not be read.
    let smallest = if is_long { (256 << 10) - 128 } else { 32 << 10 };
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path());
    let only = std::env::var("PROEM_LINEAR_ONLY").unwrap_or_default();
    let all: Vec<(&Shape, &Work)> = SHAPES
        .iter()
        .enumerate()
        .filter(|(_, shape)| shape.name.contains(&only))
        .flat_map(|(number, shape)| works(number, is_long).into_iter().map(move |work| (shape, work)))
        .collect();
    assert!(SHAPES.len() >= 60);
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let try_all = || {
        while let Some((shape, work)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let make = |bytes| Case::new(&program, work, &shape.text(bytes));
            let sizes = Sizes { make, smallest };
            if !is_counted && !sizes.is_suspicious() {
                continue;
            }
            assert!(can_count(), "{}, {}: valgrind must count instructions", work.name, shape.name);
            let growth = sizes.growth();
            println!("{growth:5.2}  {}, {}", work.name, shape.name);
            if growth > GROWTH_MAX {
                wrong.lock().unwrap().push(format!("{}, {}: {growth:.2}", work.name, shape.name));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(try_all))));
    println!("{} commands with texts", all.len());
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "instructions grow faster than the text:\n{}", wrong.join("\n"));
}

/// A search from each line to the end, and one from the end of the last: the first one must be found out by the sieve and by
/// the count, the second one by neither.
#[test]
fn a_quadratic_search_is_found_out_and_a_linear_one_is_not() {
    if let Some(kind) = std::env::var_os("PROEM_LINEAR_CONTROL") {
        let text = fs::read_to_string("text").unwrap();
        let mut from = 0;
        for line in text.split_inclusive('\n') {
            let searched = if kind == "quadratic" { text.get(from..).unwrap() } else { line };
            black_box(searched.find("-->"));
            from += line.len();
        }
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let program = stripped(std::env::current_exe().unwrap(), place.path());
    let control = |kind: &'static str, line: &str, bytes: usize| {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        fs::write(folder.path().join("work/text"), line.repeat(bytes / line.len() + 1)).unwrap();
        let test = "a_quadratic_search_is_found_out_and_a_linear_one_is_not";
        let arguments = vec![test.to_owned(), "--exact".to_owned()];
        Case { folder, program: program.clone(), arguments, control: Some(kind) }
    };
    let line = "a line of eighty bytes, with which nothing is wrong and in which nothing is found";
    let quadratic = |bytes| control("quadratic", &format!("{line}\n"), bytes);
    let linear = |bytes| control("linear", &format!("{line}\n"), bytes);
    assert!(Sizes { make: quadratic, smallest: 128 << 10 }.is_suspicious());
    assert!(!Sizes { make: linear, smallest: 256 << 10 }.is_suspicious());
    if can_count() {
        let quadratic = Sizes { make: quadratic, smallest: 16 << 10 }.growth();
        let linear = Sizes { make: linear, smallest: 256 << 10 }.growth();
        assert!(quadratic > 3.5, "{quadratic}");
        assert!(linear < GROWTH_MAX, "{linear}");
    }
}
