//! Commands in an untrusted workspace: it may contribute text and nothing else. Rows T1, F1 to F6, F8, M11 and those of
//! git.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::desk::Desk;
use crate::trace::{bring, check_started, command, text, traced};
use proem_testkit::hidden::{HIDDEN, Hidden};
use proem_testkit::hostile::{Ask, LEADS, Lead, Nuisance, Reply, Site, TEMPLATE, Trap, for_each};
use rustix::fs::{CWD, FileType, RenameFlags, mknodat, renameat_with};

/// Rows T1 and G1 to G6.
#[test]
fn a_hostile_repository_runs_nothing() {
    let traps: Vec<&Trap> = Trap::all().collect();
    for_each(
        &traps,
        |trap| trap.name.to_owned(),
        |trap| {
            let said = trap.check(|site| {
                site.write("template.md", TEMPLATE);
                let template = site.path("template.md");
                let arguments = ["build", "-p", "template", "--template", template.to_str().unwrap()];
                let mut plain = command(site, trap.cwd, &arguments);
                let seen = traced(site, &plain, &["-e", "trace=execve"]);
                if let Some((_, calls)) = &seen {
                    check_started(calls, trap.name);
                }
                let output = seen.map_or_else(|| plain.output().unwrap(), |(output, _)| output);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                text(&output.stdout)
            });
            assert_eq!(said, trap.expected.join("|"), "{}", trap.name);
        },
    );
}

/// Builds as the user does: the prompt, then a line for each fact that is absent.
fn report(site: &Site, ask: &Ask<'_>) -> String {
    site.write(
        "home/.config/proem/proem.toml",
        &format!("[git]\ntimeout_ms = {}\n", ask.time_max.as_millis()),
    );
    site.write("template.md", ask.template);
    let template = site.path("template.md");
    let template = template.to_str().unwrap();
    let arguments = ["build", "-p", "template", "--template", template, "--verbose"];
    let output = command(site, ask.cwd, &arguments).output().unwrap();
    let notes = text(&output.stderr);
    assert!(output.status.success(), "{notes}");
    // Two of the facts change with every turn, which is said of each that is there.
    let is_of_strangers =
        |line: &&str| !line.starts_with("hint: ") && !line.contains("] changes with every turn");
    let lines = notes.lines().filter(is_of_strangers);
    let told = lines.map(|line| {
        let line = line.split_once(&format!(" ({template}:")).map_or(line, |(said, _)| said);
        // By the severity of the two that there are; a message says neither's name.
        let (word, message) = line.split_once(": ").unwrap_or_default();
        let code = if word == "note" { "absent" } else { "git_failed" };
        format!("\n{code}: {}", site.in_general(message))
    });
    text(&output.stdout) + &told.collect::<String>()
}

/// Rows G7, G8 and G9. That this test ends is a part of it: many of them want to be waited for.
#[test]
fn a_hostile_repository_neither_hangs_nor_garbles() {
    let all: Vec<Nuisance> = Nuisance::all().collect();
    for_each(&all, Nuisance::name, |nuisance| {
        let Reply { said, expected } = nuisance.said(report);
        assert_eq!(said, expected, "{}", nuisance.name());
    });
}

/// Row G6.
#[test]
fn a_profile_of_the_workspace_sees_no_other_repository() {
    for_each(
        &LEADS,
        |lead| lead.name.to_owned(),
        |lead| {
            let site = lead.lay_out();
            bring(&site.path("tree"), TEMPLATE);
            let output = command(&site, "tree", &["build", "-p", "theirs"]).output().unwrap();
            let said = text(&output.stdout) + &text(&output.stderr);
            assert!(output.status.success(), "{}: {said}", lead.name);
            assert!(!said.contains(Lead::SECRET), "{}: {said}", lead.name);
        },
    );
}

/// Runs a template of the workspace: what it gives, and the notes about it.
fn theirs(desk: &Desk, template: &str) -> (String, String) {
    bring(&desk.work(), template);
    let output = desk.run(&["build", "-p", "theirs", "--verbose"]);
    let Output { status, stdout, stderr } = output;
    assert!(status.success(), "{}", desk.said(&stderr));
    (desk.said(&stdout), desk.said(&stderr))
}

/// Rows F1 to F4 and F8: what lies outside, however it is named.
#[test]
fn a_template_of_the_workspace_reads_nothing_outside() {
    let desk = Desk::new();
    let outside = desk.root.path().join("outside");
    fs::write(&outside, "CANARY").unwrap();
    for (name, target) in [
        ("link", outside.as_path()),
        ("relative", Path::new("../outside")),
        ("chain", Path::new("link")),
        ("loop", Path::new("loop")),
        ("root", Path::new("/proc/self/root")),
        ("environ", Path::new("/proc/self/environ")),
    ] {
        symlink(target, desk.work().join(name)).unwrap();
    }
    let long = "x/".repeat(2500);
    let through = format!("root{}", outside.display());
    for (row, path) in [
        ("F1", "../outside"),
        ("F1", "sub/../../outside"),
        ("F1", "../../../../../../etc/passwd"),
        ("F1", "//etc/passwd"),
        ("F1", long.as_str()),
        ("F2", "/etc/passwd"),
        ("F2", "/etc/shadow"),
        ("F2", outside.to_str().unwrap()),
        ("F3", "link"),
        ("F3", "relative"),
        ("F3", "chain"),
        ("F3", "loop"),
        ("F3", "environ"),
        ("F3", "root/etc/passwd"),
        ("F3", through.as_str()),
        ("F3", "/proc/self/root/etc/passwd"),
    ] {
        let (prompt, notes) = theirs(&desk, &format!("<[file:{path}]>"));
        assert_eq!(prompt, "<>", "{row} {path}");
        assert!(!notes.contains("CANARY") && !notes.contains("root:x:0"), "{row} {path}: {notes}");
    }
    desk.write("mine.md", format!("<[file:{}]>", outside.display()).as_bytes());
    let own = desk.run(&["build", "-p", "template", "--template", "mine.md"]);
    assert_eq!(desk.said(&own.stdout), "<CANARY>", "control: the user's own template reads it");
}

/// Row F4: the same, for a file that is the workspace's own at one moment and a link to the outside at the next.
#[test]
fn no_flip_lets_a_byte_from_outside_in() {
    let desk = Desk::new();
    bring(&desk.work(), "<[file:flip]>");
    desk.write("flip", b"own");
    let (here, there) = (desk.work().join("flip"), desk.root.path().join("link"));
    fs::write(desk.root.path().join("outside"), "CANARY").unwrap();
    symlink(desk.root.path().join("outside"), &there).unwrap();
    let exchange = || renameat_with(CWD, &here, CWD, &there, RenameFlags::EXCHANGE).unwrap();
    exchange();
    assert_eq!(fs::read_to_string(&here).unwrap(), "CANARY", "control: a read by name gets it");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                exchange();
            }
        });
        let said = |_| {
            let Output { stdout, stderr, .. } = desk.run(&["build", "-p", "theirs", "--verbose"]);
            (desk.said(&stdout), desk.said(&stderr).contains("CANARY"))
        };
        let prompts: BTreeSet<(String, bool)> = (0..50).map(said).collect();
        is_over.store(true, Ordering::Relaxed);
        let is_good = |(prompt, leaks): &(String, bool)| !leaks && ["<>", "<own>"].contains(&prompt.as_str());
        assert!(prompts.iter().all(is_good), "{prompts:?}");
    });
}

type Put = fn(&Path);

/// Rows F5 and F6: special files and files that are too large, and the text of the note.
const ODD: [(&str, Put, &str); 6] = [
    ("FIFO", |path| mknodat(CWD, path, FileType::Fifo, 0o644.into(), 0).unwrap(), "is a FIFO"),
    ("socket", |path| drop(UnixListener::bind(path).unwrap()), "is a socket"),
    ("device", |path| symlink("/dev/zero", path).unwrap(), "is a character device"),
    ("directory", |path| fs::create_dir(path).unwrap(), "is a directory"),
    ("10 GiB", |path| File::create(path).unwrap().set_len(10 << 30).unwrap(), "over 1 MiB"),
    ("kernel's", |path| symlink("/proc/self/status", path).unwrap(), "file of the kernel"),
];

/// Rows F5 and F6.
#[test]
fn what_is_no_file_is_absent_and_told() {
    for (name, put, why) in ODD {
        let desk = Desk::of("template");
        desk.write("t.md", b"<[file:odd]>");
        put(&desk.work().join("odd"));
        let output = desk.run(&["build", "--template", "t.md", "--verbose"]);
        let notes = desk.said(&output.stderr);
        assert_eq!(desk.said(&output.stdout), "<>", "{name}: {notes}");
        assert!(notes.contains(why), "{name}: {notes}");
    }
}

/// Row M11: what a file is called is shown to people: nothing of it is hidden, and nothing turns the rest
/// round.
#[test]
fn names_of_files_hide_nothing() {
    for (name, hidden) in [
        ("bidi", '\u{202E}'),
        ("mark", '\u{200F}'),
        ("zero width", '\u{200B}'),
        ("tag", '\u{E0041}'),
        ("selector", '\u{FE00}'),
        ("separator", '\u{2028}'),
        ("escape", '\u{1B}'),
    ] {
        let desk = Desk::of("layers");
        let folder = desk.work().join(format!(".sf/skills/x{hidden}y"));
        fs::create_dir_all(&folder).unwrap();
        mknodat(CWD, folder.join("SKILL.md"), FileType::Fifo, 0o644.into(), 0).unwrap();
        for arguments in
            [&["build", "--verbose"][..], &["explain"], &["check"], &["skills", "list"], &["skills", "check"]]
        {
            let output = desk.run(arguments);
            let said = desk.said(&output.stderr) + &desk.said(&output.stdout);
            assert!(!said.contains(hidden), "{name}, {arguments:?}: {said:?}");
        }
        let output = desk.run(&["build", "--verbose"]);
        let spelt = format!("x\\u{{{:x}}}y", u32::from(hidden));
        assert!(desk.said(&output.stderr).contains(&spelt), "{name}: {}", desk.said(&output.stderr));
        let control = fs::read_dir(desk.work().join(".sf/skills")).unwrap().next().unwrap().unwrap();
        assert!(control.file_name().to_str().unwrap().contains(hidden), "{name}: control");
    }
}

/// Rows C1 to C4 and C6.
#[test]
fn hidden_text_is_made_harmless_and_told() {
    for Hidden { row, text, treated, code } in HIDDEN {
        let desk = Desk::new();
        desk.write("AGENTS.md", format!("first\n{text}\nlast\n").as_bytes());
        let said = |arguments: &[&str]| desk.said(&desk.run(arguments).stdout);
        let prompt = said(&["build", "-p", "default"]);
        assert!(prompt.contains(&format!("first\n{treated}\nlast")), "{row}: {prompt}");
        assert!(said(&["build", "-p", "default", "--format", "json"]).contains(code), "{row}");
        let verbatim = said(&["build", "-p", "layers"]);
        assert!(verbatim.contains(&format!("first\n{text}\nlast")), "{row}, control: {verbatim}");
    }
}

/// Row M6: patterns that explode elsewhere are read in no time.
#[test]
fn patterns_of_a_stranger_do_no_harm() {
    let desk = Desk::of("layers");
    for name in ["kept", "hidden"] {
        let text = format!("---\nname: {name}\ndescription: the {name} one\n---\n");
        desk.write(&format!(".sf/skills/{name}/SKILL.md"), text.as_bytes());
    }
    let prompt = || desk.said(&desk.run(&["build"]).stdout);
    assert!(prompt().contains("the hidden one"), "control");
    let bomb = ["*a".repeat(8000), "{a,b}".repeat(2000), "**/x/".repeat(1000)].join("\n");
    desk.write(".sf/skills/.ignore", format!("hidden/\n{bomb}\n").as_bytes());
    assert!(prompt().contains("the kept one") && !prompt().contains("the hidden one"), "{}", prompt());
}
