//! Builds on a kernel without Landlock, where other checks replace the fence. strace makes the system call fail as such a
//! kernel does.

use crate::trace::{bring, check_started, command, text, traced};
use proem_testkit::hostile::{ELSEWHERE, LEADS, Lead, Site, TEMPLATE, Trap, WHOLE, for_each};

/// The arguments of strace.
const NO_LANDLOCK: [&str; 4] =
    ["-e", "trace=execve,landlock_create_ruleset", "-e", "inject=landlock_create_ruleset:error=ENOSYS"];

/// A build without a fence.
struct Unfenced {
    /// Its whole output.
    said: String,
    asks_git: bool,
    /// The build tried to set up the fence, and failed.
    tries_fence: bool,
}

/// Builds with a profile of the workspace, which may read only the working tree. Returns `None` without strace.
fn unfenced(site: &Site, cwd: &str, name: &str) -> Option<Unfenced> {
    bring(&site.path(cwd), TEMPLATE);
    let plain = command(site, cwd, &["build", "-p", "theirs", "--verbose"]);
    let (output, calls) = traced(site, &plain, &NO_LANDLOCK)?;
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    let asks_git = check_started(&calls, name);
    let mut fences = calls.lines().filter(|line| line.contains("landlock_")).peekable();
    let tries_fence = fences.peek().is_some();
    assert!(fences.all(|line| line.contains("ENOSYS")), "{name}: control: the fence must fail: {calls}");
    assert!(tries_fence || !asks_git, "{name}: git runs without an attempt to fence it in");
    Some(Unfenced { said, asks_git, tries_fence })
}

/// Cases that only the replacement for the fence can detect: links among the objects.
const LINKED: [&str; 4] = [
    "a link for the packs",
    "links for each file of a pack",
    "links for folders of objects",
    "links for each object",
];

/// Row G6.
#[test]
fn without_landlock_no_byte_of_another_repository_is_shown() {
    for_each(
        &LEADS,
        |lead| lead.name.to_owned(),
        |lead| {
            let (name, site) = (lead.name, lead.lay_out());
            let Some(Unfenced { said, asks_git, tries_fence }) = unfenced(&site, "tree", name) else {
                return;
            };
            assert!(!said.contains(Lead::SECRET), "{name}: {said}");
            assert_eq!((asks_git, tries_fence), (false, LINKED.contains(&name)), "{name}: {said}");
            site.write("own.md", TEMPLATE);
            let template = site.path("own.md");
            let arguments = ["build", "-p", "template", "--template", template.to_str().unwrap()];
            let own = command(&site, "tree", &arguments).output().unwrap();
            assert!(text(&own.stdout).contains(Lead::SECRET), "{name}: control: the user sees it: {own:?}");
        },
    );
}

/// Row G6: what is refused above is not refused for want of a fence.
#[test]
fn without_landlock_a_tree_with_nothing_wrong_is_shown() {
    let site = Site::new();
    let Some(built) = unfenced(&site, "tree", "a plain one") else { return };
    let [branch, status, diff] = WHOLE;
    let status = status.replacen("?? new", "?? .proem/\n?? new", 1);
    let prompt = [branch, &status, diff].join("|");
    assert!(built.said.starts_with(&prompt), "{}", built.said);
    assert!(built.asks_git && built.tries_fence);
}

/// Rows G1 to G6.
#[test]
fn without_landlock_a_hostile_repository_runs_nothing() {
    let traps: Vec<&Trap> = Trap::all().collect();
    // No repository at all, or kept elsewhere without naming the tree.
    let is_refused = |trap: &Trap| ELSEWHERE.iter().take(4).any(|refused| refused.name == trap.name);
    let is_shown = |trap: &Trap| trap.expected != [""; 3] && !is_refused(trap);
    for_each(
        &traps,
        |trap| trap.name.to_owned(),
        |trap| {
            trap.check(|site| {
                if let Some(built) = unfenced(site, trap.cwd, trap.name) {
                    assert_eq!(built.asks_git, is_shown(trap), "{}: control: {}", trap.name, built.said);
                }
                String::new()
            });
        },
    );
}
