//! Repositories that try to run programs, to hang or to garble the prompt, without success.
//!
//! Most of them are in `proem-testkit`, because the command and the server are tested with them, too. Each has a
//! control, except for a FIFO: plain git would wait there for ever.

#![expect(clippy::unwrap_used, reason = "a site that cannot be laid out must stop the test")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proem::{Caller, Request};
use proem_core::note::Code;
use proem_testkit::hostile::{
    ATTRIBUTES, Ask, BRANCHES, CONFIGURATION, DIFF, ELSEWHERE, HEADS, HOOKS, LEADS, Lead, NAMES, NESTED,
    Nuisance, PATIENT, REMOTES, Reply, SETTINGS, SPECIAL, Site, TEMPLATE, Trap, WHOLE, add_side,
    add_submodule, enrich, for_each, link_away,
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

/// Builds as the user in `cwd`: the prompt, then a line for each fact that is absent.
fn build(site: &Site, cwd: &str, template: &str, time_max: Duration) -> String {
    site.write("config/proem.toml", &format!("[git]\ntimeout_ms = {}\n", time_max.as_millis()));
    let host = json!({
        "now": "2026-03-07T14:55:05.123Z", "timezone": "America/Chicago", "os": "linux",
        "os_name": "Debian GNU/Linux 12 (bookworm)", "os_version": "6.1.0", "hostname": "workbench",
        "shell": "/bin/bash", "env": {}, "home": site.path("home"), "config_dir": site.path("config"),
    });
    let request = json!({"profile": "template", "cwd": site.path(cwd), "template": template, "host": host});
    let request = Request::from_json(&request.to_string()).unwrap();
    let build = proem::build(&request, Caller::User).unwrap();
    let notes = build.notes().iter().filter(|note| note.code != Code::VolatileInPrefix);
    let lines = notes.map(|note| format!("\n{}: {}", note.code, site.in_general(&note.message)));
    let report = build.system().unwrap_or_default().to_owned() + &lines.collect::<String>();
    let is_clean = |character: char| character == '\n' || !character.is_control();
    assert!(report.chars().all(is_clean), "control characters in {report:?}");
    report
}

fn check_nuisances(all: impl Iterator<Item = Nuisance>) {
    let check = |nuisance: &Nuisance| {
        let ask = |site: &Site, ask: &Ask<'_>| build(site, ask.cwd, ask.template, ask.time_max);
        let Reply { said, expected } = nuisance.said(ask);
        assert_eq!(said, expected, "{}", nuisance.name());
    };
    for_each(&all.collect::<Vec<_>>(), Nuisance::name, check);
}

fn check_traps(traps: &[Trap]) {
    for_each(
        traps,
        |trap| trap.name.to_owned(),
        |trap| {
            let report = trap.check(|site| build(site, trap.cwd, TEMPLATE, PATIENT));
            assert_eq!(report, trap.expected.join("|") + trap.absent, "{}", trap.name);
        },
    );
}

/// Row G1.
#[test]
fn a_program_in_the_configuration_does_not_run() {
    check_traps(&CONFIGURATION);
}

/// Row G2.
#[test]
fn a_program_for_the_content_of_files_does_not_run() {
    check_traps(&ATTRIBUTES);
}

/// Row G3.
#[test]
fn a_hook_does_not_run() {
    check_traps(&HOOKS);
}

/// Row G4.
#[test]
fn a_missing_object_is_not_fetched() {
    check_traps(&REMOTES);
}

/// Row G5.
#[test]
fn a_nested_repository_runs_nothing() {
    check_traps(&NESTED);
}

/// Row G6.
#[test]
fn a_repository_kept_elsewhere_runs_nothing() {
    check_traps(&ELSEWHERE);
}

/// Row G6: a remote client may see a working tree; a repository elsewhere only if it names the tree as its own.
#[test]
fn a_repository_kept_elsewhere_is_not_shown_to_strangers_unless_it_names_the_tree() {
    let at = |site: &Site, cwd: &str| {
        let request = json!({"profile": "template", "cwd": site.path(cwd), "template": "[git:branch]"});
        let request = Request::from_json(&request.to_string()).unwrap();
        let build = proem::build(&request, Caller::REMOTE).unwrap();
        let refusals = build.notes().iter().filter(|note| note.code == Code::RootNotAllowed).count();
        (build.system().unwrap_or_default().to_owned(), refusals)
    };
    for trap in ELSEWHERE.iter().take(4) {
        let site = Site::new();
        (trap.set)(&site);
        assert_eq!(site.git("tree", "branch --show-current"), "main", "{}: git shows it", trap.name);
        assert_eq!(at(&site, "tree"), (String::new(), 1), "{}", trap.name);
    }
    for name in ["index", "objects", "refs"] {
        let site = Site::new();
        link_away(&site, name);
        assert_eq!(at(&site, "tree"), (String::new(), 1), "a link for {name}");
    }
    let site = Site::new();
    add_side(&site);
    add_submodule(&site);
    // The author of a `.git` file can name the folder of another working tree, which does not name this one.
    for (cwd, target) in [("third", "tree/.git/worktrees/side"), ("fourth", "tree/.git/modules/sub")] {
        site.write(format!("{cwd}/.git"), &format!("gitdir: {{root}}/{target}\n"));
        assert_eq!(at(&site, cwd), (String::new(), 1), "{cwd}");
    }
    let branch = site.git("tree/sub", "branch --show-current");
    for (cwd, expected) in [("tree", "main"), ("side", "side"), ("tree/sub", branch.as_str())] {
        assert_eq!(at(&site, cwd), (expected.to_owned(), 0), "{cwd}");
    }
}

/// Row G7.
#[test]
fn a_setting_does_not_change_the_answer() {
    check_nuisances(SETTINGS.iter().map(Nuisance::Setting));
}

/// Row G7.
#[test]
fn the_answer_is_plain_text_with_quoted_names() {
    let site = Site::new();
    enrich(&site);
    let diff = "a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\
                \nb                     | 1 +\n folder/old => renamed | 0\n 2 files changed, 1 insertion(+)";
    let in_tree =
        ["main", " M a\nA  b\nR  folder/old -> renamed\n?? folder/\n?? new\n?? \"\\303\\274\"", diff];
    let in_folder =
        ["main", " M ../a\nA  ../b\nR  old -> ../renamed\n?? ./\n?? ../new\n?? \"../\\303\\274\"", diff];
    assert_eq!(build(&site, "tree", TEMPLATE, PATIENT), in_tree.join("|"));
    assert_eq!(build(&site, "tree/folder", TEMPLATE, PATIENT), in_folder.join("|"));
}

/// Row G8: the test passes if it ends.
#[test]
fn a_special_file_does_not_hang_the_build() {
    check_nuisances(SPECIAL.iter().map(Nuisance::Special));
}

/// Row G8: a file of few bytes in the repository that takes gigabytes to compare.
#[cfg(target_os = "linux")]
#[test]
fn a_small_repository_does_not_make_git_take_much_memory() {
    const LINES: usize = 24 << 20;
    let site = Site::new();
    site.write("tree/lines", &"\n".repeat(LINES));
    site.git("tree", "add lines");
    site.git("tree", "commit -q -m lines");
    // The comparison needs a record for every line.
    site.write("tree/lines", &format!("{}x", "\n".repeat(LINES)));
    let objects = site.git("tree", "count-objects -v");
    let kib = objects.lines().find_map(|line| line.strip_prefix("size: ")).unwrap().parse::<u32>().unwrap();
    assert!(kib < 1024, "control: the repository is small: {objects}");
    let limited = ["-c", "ulimit -d 1048576; exec git diff --stat -- lines"];
    let output = site.plain("tree", "sh", limited.into_iter());
    assert!(!output.status.success(), "control: plain git wants more than 1 GiB");
    let report = build(&site, "tree", "[git:status]|[git:diff]", PATIENT);
    // The failure is the memory limit, not the time limit.
    let expected = " M a\n M lines\n?? new|\ngit_failed: `[git:diff]` is absent: git failed: ";
    assert_eq!(report, expected);
}

/// Row G8: refs in a file that is too large are not read, and a large one is searched at once.
#[test]
fn a_large_file_of_refs_has_a_limit() {
    for (mib, expected) in
        [(15, "main"), (17, "\ngit_failed: `[git:branch]` is absent: git failed: packed-refs: over 16 MiB")]
    {
        let site = Site::new();
        site.write("tree/.git/packed-refs", &"\n".repeat(mib << 20));
        assert_eq!(build(&site, "tree", "[git:branch]", PATIENT), expected, "{mib} MiB");
    }
    let site = Site::new();
    let (id, name) = (site.git("tree", "rev-parse HEAD"), "refs/heads/main");
    fs::remove_file(site.path("tree/.git").join(name)).unwrap();
    for (packed, expected) in [
        (format!("# pack-refs with: peeled\n{id} {name}\n"), "main"),
        (format!("{id} {name}"), "main"),
        (format!("{id} {name}-other\n{id} {name}\r\n^{id}\n"), "main"),
        (format!("{id} {name}-other\n"), ""),
        (format!("x{id} {name}\n"), ""),
        (format!(" {name}").repeat(100_000), ""),
    ] {
        site.write("tree/.git/packed-refs", &packed);
        let report = build(&site, "tree", "[git:branch]", PATIENT);
        assert_eq!(report.lines().next().unwrap_or_default(), expected, "{} bytes", packed.len());
    }
}

/// Row G7.
#[test]
fn the_name_of_a_file_brings_no_control_characters() {
    check_nuisances(NAMES.iter().map(Nuisance::Name));
}

#[test]
fn the_name_of_the_directory_brings_no_control_characters() {
    let site = Site::new();
    let cwd = "tree/\u{1b}[2J\n?? forged";
    site.write(Path::new(cwd).join("x"), "x\n");
    let expected = ["main", " M ../a\nA  ../b\n?? ./\n?? ../new", DIFF];
    assert_eq!(build(&site, cwd, TEMPLATE, PATIENT), expected.join("|"));
}

/// A path that the repository chose is escaped in notes.
#[test]
fn the_path_in_a_git_file_brings_no_control_characters() {
    let site = Site::new();
    fs::rename(site.path("tree/.git"), site.path("else\u{1b}[2Jwhere")).unwrap();
    site.write("tree/.git", "gitdir: ../else\u{1b}[2Jwhere\n");
    assert_eq!(build(&site, "tree", TEMPLATE, PATIENT), WHOLE.join("|"));
    site.fifo("else\u{1b}[2Jwhere/index");
    let report = build(&site, "tree", TEMPLATE, PATIENT);
    assert_eq!(report.lines().next(), Some("main||"));
}

/// Row G9.
#[test]
fn the_name_of_a_branch_brings_no_control_characters() {
    check_nuisances(BRANCHES.iter().map(Nuisance::Branch));
}

/// Row G9: a name that git refuses could be any sentence, and a symbolic ref may lead nowhere.
#[test]
fn what_git_takes_for_no_branch_is_none() {
    check_nuisances(HEADS.iter().map(Nuisance::Head));
}

/// A linked working tree keeps its `HEAD` in a `reftable` of its own.
#[test]
fn a_linked_working_tree_with_reftable_has_its_own_branch() {
    let site = Site::new();
    site.git("", "init -q -b main --ref-format=reftable tables");
    site.git("tables", "commit -q --allow-empty -m first");
    site.git("tables", "worktree add -q -b side {root}/side");
    site.write("side/a", "a\n");
    site.git("side", "add a");
    site.git("side", "commit -q -m second");
    let plain = ["rev-parse --abbrev-ref HEAD", "status --short"].map(|words| site.git("side", words));
    assert_eq!(plain, ["side", ""]);
    assert_eq!(build(&site, "side", TEMPLATE, PATIENT), "side||");
}

/// Git walks up from the real path of a directory, not from its spelling.
#[test]
fn a_link_leads_to_the_repository_that_it_points_into() {
    let site = Site::new();
    site.git("", "init -q -b other other");
    site.git("other", "commit -q --allow-empty -m first");
    site.write("other/folder/x", "x\n");
    symlink(site.path("other/folder"), site.path("tree/link")).unwrap();
    let plain = ["rev-parse --abbrev-ref HEAD", "status --short"].map(|words| site.git("tree/link", words));
    assert_eq!(plain, ["other", "?? ./"]);
    assert_eq!(build(&site, "tree/link", TEMPLATE, PATIENT), "other|?? ./|");
}

/// Returns everything that a remote client receives.
fn answer(site: &Site, cwd: &str) -> String {
    let request = json!({"profile": "template", "cwd": site.path(cwd), "template": TEMPLATE});
    let request = Request::from_json(&request.to_string()).unwrap();
    format!("{:?}", proem::build(&request, Caller::REMOTE))
}

/// Row G6.
#[test]
fn no_byte_of_another_repository_is_shown_to_strangers() {
    for_each(
        &LEADS,
        |lead| lead.name.to_owned(),
        |lead| {
            let site = lead.lay_out();
            let answer = answer(&site, "tree");
            assert!(!answer.contains(Lead::SECRET), "{}: {answer}", lead.name);
        },
    );
}

/// Otherwise a link among the refs would be a probe for branches elsewhere.
#[test]
fn what_strangers_are_told_does_not_depend_on_the_refs_of_others() {
    let said = |branch: &str| {
        let site = LEADS.iter().find(|lead| lead.name == "a link for all branches").unwrap().lay_out();
        site.write("tree/.git/HEAD", &format!("ref: refs/heads/{branch}\n"));
        let root = site.path("");
        answer(&site, "tree").replace(root.to_str().unwrap(), "").replace(branch, "")
    };
    let notes = |answer: String| {
        answer.split_once("notes: ").unwrap().1.split_once("considered").unwrap().0.to_owned()
    };
    assert_eq!(notes(said("secret-branch")), notes(said("secret-nothing")));
}

/// Row G6, the control: of a harmless repository, remote clients see the same as the user.
#[test]
fn strangers_see_what_the_tree_is_like() {
    let site = Site::new();
    let request = json!({"profile": "template", "cwd": site.path("tree"), "template": TEMPLATE});
    let request = Request::from_json(&request.to_string()).unwrap();
    let built = proem::build(&request, Caller::REMOTE).unwrap();
    assert_eq!(built.system(), Some(WHOLE.join("|").as_str()), "{:#?}", built.notes());
}

/// Row G6: the time between a check and a read: `.git` is the tree's own at one moment, and a link elsewhere at the
/// next.
#[test]
fn no_flip_lets_a_stranger_see_another_repository() {
    let builds = if std::env::var_os("PROEM_LONG").is_some() { 10_000 } else { 100 };
    let site = LEADS.iter().find(|lead| lead.name == "a link for the whole").unwrap().lay_out();
    let (here, there) = (site.path("tree/.git"), site.path("link"));
    fs::rename(&here, &there).unwrap();
    site.git("tree", "init -q -b main");
    site.git("tree", "commit -q --allow-empty -m first");
    let exchange = || renameat_with(CWD, &here, CWD, &there, RenameFlags::EXCHANGE).unwrap();
    exchange();
    assert!(build(&site, "tree", TEMPLATE, PATIENT).contains(Lead::SECRET), "control: the user sees it");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                exchange();
            }
        });
        let leak = (0..builds).map(|_| answer(&site, "tree")).find(|answer| answer.contains("secret"));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(leak, None);
    });
}

/// The list of attacks cannot be complete; it must not shrink.
#[test]
fn there_are_many_hostile_repositories() {
    assert_eq!((Trap::all().count(), LEADS.len(), Nuisance::all().count()), (31, 11, 66));
    let names: BTreeSet<String> = Nuisance::all().map(|nuisance| nuisance.name()).collect();
    assert_eq!(names.len(), 66, "each has a name of its own");
}
