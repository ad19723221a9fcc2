//! `proem trust`: manages the workspaces that may run hooks, and whose links may leave them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use proem::trust::{self, Approval, HookState, TrustedWorkspace};
use proem::{Host, HostPins, Workspace};
use serde_json::{Value, json};

use crate::arguments::{Format, Output};
use crate::failure::Failure;
use crate::terminal::{output_columns, print, print_json, visible};
use crate::wrap::flow;

/// Allow workspaces to run their hooks, list them, or revoke it
#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Allow a workspace to run the hooks in its `.proem/proem.toml`, as they are now
    ///
    /// Read them first: they run with your permissions. If the command, the environment, the limits or the files of a hook
    /// change later, the hook does not run until you approve it again.
    Add(TrustPlace),
    /// List trusted workspaces, and which of their hooks changed
    List(TrustList),
    /// Revoke the trust in a workspace
    Remove(TrustPlace),
}

/// A workspace to trust or not.
#[derive(Debug, Args)]
pub(crate) struct TrustPlace {
    /// Workspace
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

/// Flags of the list.
#[derive(Debug, Args)]
pub(crate) struct TrustList {
    #[command(flatten)]
    output: Output<Format>,
}

pub(crate) fn run(command: &TrustCommand) -> Result<(), Failure> {
    let host = Host::new(&HostPins::default())?;
    match command {
        TrustCommand::Add(place) => add(&host, place),
        TrustCommand::List(arguments) => list(&host, arguments),
        TrustCommand::Remove(place) => remove(&host, place),
    }
}

fn add(host: &Host, place: &TrustPlace) -> Result<(), Failure> {
    let workspace = Workspace::open(place.directory.to_str())?;
    let trusted = trust::add(host, &workspace)?;
    let path = visible(&trusted.path);
    let links = format!("trusted {path}: links and imports that lead out of it are followed\n");
    if trusted.hook.is_empty() {
        let above = Workspace::find(host, place.directory.to_str())?.root();
        let above = Some(above).filter(|root| root != workspace.path() && root.join(".proem").is_dir());
        let more = above.map_or_else(String::new, |root| {
            let root = visible(&root.display().to_string());
            format!("the settings of {root} count there; `proem trust add {root}` lets their hooks run\n")
        });
        return print(&format!("{links}it names no hook in .proem/proem.toml, so nothing runs\n{more}"));
    }
    let hooks: String = trusted.hook.iter().map(described).collect();
    print(&format!("{links}these hooks run as you:\n{hooks}{NOT_PINNED}"))
}

/// A remark on the files that an approval does not cover.
const NOT_PINNED: &str = "\
files that a program or script opens or starts by itself are not pinned: a change of those is not noticed\n";

/// Formats a hook and its approved files.
fn described(hook: &Approval) -> String {
    let handler = match &hook.url {
        Some(url) => format!("gets events at {url}"),
        None => Value::from(hook.command.clone()).to_string(),
    };
    let mut text = visible(&format!("  {} ({}): {handler}", hook.name, hook.event.word())) + "\n";
    if let Some(file) = &hook.token_file {
        text += &format!("    gets the content of {} as its token\n", visible(&file.display().to_string()));
    }
    if !hook.env.is_empty() {
        text += &format!("    gets {}\n", visible(&hook.env.join(", ")));
    }
    for (name, what) in &hook.files {
        text += &format!("    {}\n", visible(&format!("{name}  {what}")));
    }
    if hook.is_open_ended() {
        text += "    runs a command line: files that it names in other words than these are not pinned\n";
    }
    text
}

fn list(host: &Host, arguments: &TrustList) -> Result<(), Failure> {
    let all = trust::list(host)?;
    if arguments.output.format() == Format::Json {
        let shapes: Vec<Value> = all.iter().map(shape).collect();
        return print_json(&json!({ "workspaces": shapes }));
    }
    if all.is_empty() {
        return print("no workspace is trusted\n");
    }
    let mut text = String::new();
    for trusted in &all {
        text += &format!("{}\n", visible(&trusted.path));
        for (name, state) in states(trusted) {
            let line = format!("  {}: {}\n", visible(&name), visible(&words(state.as_ref())));
            text += &flow(&line, output_columns(), "    ");
        }
    }
    print(&text)
}

/// Returns each hook with its state: those of the workspace, and approved ones that no longer exist.
fn states(trusted: &TrustedWorkspace) -> Vec<(String, Option<HookState>)> {
    let now = trusted.states().unwrap_or_default();
    let gone = trusted.hook.iter().filter(|hook| !now.iter().any(|(name, _)| *name == hook.name));
    let gone: Vec<_> = gone.map(|hook| (hook.name.clone(), None)).collect();
    now.iter().map(|(name, state)| (name.clone(), Some(state.clone()))).chain(gone).collect()
}

fn words(state: Option<&HookState>) -> String {
    match state {
        Some(HookState::Approved) => "runs".to_owned(),
        Some(HookState::Changed(what)) => format!("does not run; changed: {}", what.join(", ")),
        Some(HookState::Unknown) => "does not run; it was not approved".to_owned(),
        None => "is gone".to_owned(),
    }
}

fn shape(trusted: &TrustedWorkspace) -> Value {
    let hooks: Vec<Value> = states(trusted)
        .into_iter()
        .map(|(name, state)| {
            let approved = trusted.hook.iter().find(|hook| hook.name == name);
            let word = match &state {
                Some(HookState::Approved) => "approved",
                Some(HookState::Changed(_)) => "changed",
                Some(HookState::Unknown) => "unknown",
                None => "gone",
            };
            let changed = match state {
                Some(HookState::Changed(what)) => what,
                _ => Vec::new(),
            };
            json!({ "name": name, "state": word, "changed": changed, "approved": approved })
        })
        .collect();
    json!({ "path": trusted.path, "hooks": hooks })
}

fn remove(host: &Host, place: &TrustPlace) -> Result<(), Failure> {
    let path = std::path::absolute(&place.directory).unwrap_or_else(|_| place.directory.clone());
    let shown = visible(&path.display().to_string());
    if trust::remove(host, &path)? {
        print(&format!("{shown} is no longer trusted\n"))
    } else {
        print(&format!("{shown} was not trusted\n"))
    }
}
