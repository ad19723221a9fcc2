//! `proem config`: the effective configuration and where each value comes from.

use anstyle::Style;
use proem::config::{Config, Origin};
use proem::hooks::CommandHook;
use proem::wire::NoteShape;
use proem::{Host, HostPins, Workspace};
use proem_core::limit;
use serde_json::{Value, json};

use crate::arguments::{ConfigCommand, Format};
use crate::failure::Failure;
use crate::notes::print_notes;
use crate::table::{Cell, layout, one_line};
use crate::terminal::{print, print_json, visible};

const HOOK: &str = "hook";
const HOOK_CHARACTERS_MAX: usize = 60;

pub(super) fn run(arguments: &ConfigCommand) -> Result<(), Failure> {
    let host = Host::new(&HostPins::default())?;
    let workspace = Workspace::open(arguments.place.cwd.as_deref())?;
    let config = Config::load(&host, &workspace)?;
    let user = host.config_dir().map(|folder| folder.display().to_string());
    let folder = workspace.folder().display().to_string();
    let settings = settings(&config);
    match arguments.format {
        Format::Json => print_json(&json!({
            "config_dir": user,
            "workspace_dir": folder,
            "settings": settings.iter().map(|(key, value, origin)| json!({
                "key": key, "value": value, "from": origin.describe(),
            })).collect::<Vec<_>>(),
            "notes": config.notes.iter().map(NoteShape::of).collect::<Vec<_>>(),
            "limits": limit::table().iter().map(|row| (row.name, row.value)).collect::<std::collections::BTreeMap<_, _>>(),
        })),
        Format::Text => {
            print_notes(&config.notes);
            print(&text(user.as_deref(), &folder, &config))
        }
    }
}

fn settings(config: &Config) -> Vec<(&'static str, Value, &Origin)> {
    let millis = u64::try_from(config.git_time_max.value.as_millis()).unwrap_or(u64::MAX);
    vec![
        ("profile", json!(config.profile.value), &config.profile.origin),
        ("template", json!(config.template.value), &config.template.origin),
        ("env.allow", json!(config.env_allow.value), &config.env_allow.origin),
        ("files.allow", json!(config.files_allow.value), &config.files_allow.origin),
        ("git.timeout_ms", json!(millis), &config.git_time_max.origin),
        ("hygiene", json!(config.hygiene.value), &config.hygiene.origin),
        ("secrets", json!(config.secrets.value), &config.secrets.origin),
        (HOOK, config.hooks.value.iter().map(hook).collect(), &config.hooks.origin),
    ]
}

/// A hook with everything decided.
fn hook(hook: &CommandHook) -> Value {
    json!({
        "name": hook.name,
        "event": hook.event.word(),
        "command": hook.command,
        "timeout_ms": u64::try_from(hook.time_max.as_millis()).unwrap_or(u64::MAX),
        "output_bytes_max": hook.output_bytes_max,
        "env": hook.env,
    })
}

/// A hook as people read it: when, and what runs.
fn hook_row(hook: &CommandHook, origin: &Origin) -> Vec<Cell> {
    let command = Value::from(hook.command.clone()).to_string();
    let what = format!("{}: {} {command}", hook.event.word(), hook.name);
    vec![
        Cell::plain("hook"),
        Cell::plain(one_line(&visible(&what), HOOK_CHARACTERS_MAX)),
        Cell::new(visible(&origin.describe()), Style::new().dimmed()),
    ]
}

fn text(user: Option<&str>, folder: &str, config: &Config) -> String {
    let is_hook = |(key, ..): &(&str, Value, &Origin)| *key == HOOK;
    let settings: Vec<_> = settings(config).into_iter().filter(|setting| !is_hook(setting)).collect();
    let dim = Style::new().dimmed();
    let mut rows = vec![
        vec![Cell::new("configuration directory", dim), Cell::plain(visible(user.unwrap_or("none")))],
        vec![Cell::new("workspace directory", dim), Cell::plain(visible(folder))],
        Vec::new(),
    ];
    rows.extend(settings.iter().map(|(key, value, origin)| {
        let value = if value.is_null() { "none".to_owned() } else { value.to_string() };
        vec![Cell::plain(*key), Cell::plain(visible(&value)), Cell::new(visible(&origin.describe()), dim)]
    }));
    rows.extend(config.hooks.value.iter().map(|hook| hook_row(hook, &config.hooks.origin)));
    rows.push(Vec::new());
    rows.extend(limit::table().iter().map(|row| {
        vec![Cell::new(row.name, dim), Cell::plain(row.value.to_string()), Cell::new(row.what, dim)]
    }));
    layout(&rows)
}
