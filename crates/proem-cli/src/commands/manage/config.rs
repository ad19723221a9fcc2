//! `proem config`: prints the effective configuration and the source of each value.

use anstyle::Style;
use clap::Args;
use proem::build_shape::NoteShape;
use proem::config::{Config, SettingOrigin};
use proem::hooks::{ConfiguredHandler, ConfiguredHook};
use proem::profiles::Profiles;
use proem::{Host, HostPins, Workspace};
use proem_core::limit;
use serde_json::{Value, json};

use crate::arguments::{Format, Output, Place};
use crate::failure::Failure;
use crate::notes::print_notes;
use crate::paths::Paths;
use crate::table::{Cell, Column, Table, one_line, shortened};
use crate::terminal::{output_columns, print, print_json, visible};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();

const HOOK: &str = "hook";
const HOOK_CHARACTERS_MAX: usize = 60;

/// Print the effective configuration and the source of each value
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: Output<Format>,
}

pub(crate) fn run(arguments: &ConfigArguments) -> Result<(), Failure> {
    let host = Host::new(&HostPins::default())?;
    let workspace = Workspace::find(&host, arguments.place.cwd.as_deref())?;
    let config = Config::load(&host, &workspace)?;
    let user = host.config_dir().map(|folder| folder.display().to_string());
    let folder = workspace.folder().display().to_string();
    let settings = settings(&config);
    let effective = Effective::list(&config, &host, &workspace);
    match arguments.output.format() {
        Format::Json => print_json(&json!({
            "config_dir": user,
            "workspace_dir": folder,
            "settings": settings.iter().map(|setting| shape(setting, &effective)).collect::<Vec<_>>(),
            "notes": config.notes.iter().map(NoteShape::new).collect::<Vec<_>>(),
            "limits": limit::table().iter().map(|row| (row.name, row.value)).collect::<std::collections::BTreeMap<_, _>>(),
        })),
        Format::Text => {
            print_notes(&config.notes);
            let paths = Paths::at(arguments.place.cwd.as_deref())?;
            print(&text(user.as_deref(), &folder, &config, &effective, &paths))
        }
    }
}

fn settings(config: &Config) -> Vec<(&'static str, Value, &SettingOrigin)> {
    let millis = u64::try_from(config.git_time_max.value.as_millis()).unwrap_or(u64::MAX);
    vec![
        ("profile", json!(config.profile.value), &config.profile.origin),
        ("template", json!(config.template.value), &config.template.origin),
        ("env.allow", json!(config.env_allow.value), &config.env_allow.origin),
        ("files.allow", json!(config.files_allow.value), &config.files_allow.origin),
        ("git.timeout_ms", json!(millis), &config.git_time_max.origin),
        ("hosts.allow", json!(config.hosts_allow.value), &config.hosts_allow.origin),
        ("hygiene", json!(config.hygiene.value), &config.hygiene.origin),
        ("secrets", json!(config.secrets.value), &config.secrets.origin),
        ("serve.user_files", json!(config.serve_user_files.value), &config.serve_user_files.origin),
        (HOOK, config.hooks.value.iter().map(hook).collect(), &config.hooks.origin),
    ]
}

/// Formats a setting as JSON; with the effective value if the profile has the setting, too.
fn shape((key, value, origin): &(&str, Value, &SettingOrigin), effective: &[Effective]) -> Value {
    let mut shape = json!({ "key": key, "value": value, "from": origin.describe() });
    if let Some(effective) = effective.iter().find(|one| one.key == *key) {
        shape["effective"] = effective.value.clone();
        shape["profile"] = effective.by_profile.clone();
    }
    shape
}

/// Formats a hook as JSON, with its defaults.
fn hook(hook: &ConfiguredHook) -> Value {
    let mut shape = json!({
        "name": hook.name,
        "event": hook.event.word(),
        "timeout_ms": u64::try_from(hook.time_max.as_millis()).unwrap_or(u64::MAX),
        "output_bytes_max": hook.output_bytes_max,
    });
    match &hook.handler {
        ConfiguredHandler::Command(command) => {
            shape["command"] = json!(command.command);
            shape["env"] = json!(command.env);
        }
        ConfiguredHandler::Url(url) => {
            shape["url"] = json!(url.url.as_str());
            shape["token_file"] = json!(url.token_file);
            shape["allowed"] = json!(url.is_allowed);
        }
    }
    shape
}

/// Formats a hook for people: its event, and its command or address.
fn hook_row(hook: &ConfiguredHook, origin: &SettingOrigin, paths: &Paths) -> Vec<Cell> {
    let most = shortened(HOOK_CHARACTERS_MAX, output_columns());
    let handler = match &hook.handler {
        ConfiguredHandler::Command(command) => Value::from(command.command.clone()).to_string(),
        ConfiguredHandler::Url(url) if url.is_allowed => url.url.as_str().to_owned(),
        ConfiguredHandler::Url(url) => format!("{} (its host is not allowed)", url.url.as_str()),
    };
    let what = format!("{}: {} {handler}", hook.event.word(), hook.name);
    vec![
        Cell::plain(HOOK),
        Cell::plain(one_line(&visible(&what), most)),
        Cell::new(paths.shown(&origin.describe()), DIM),
    ]
}

fn text(user: Option<&str>, folder: &str, config: &Config, effective: &[Effective], paths: &Paths) -> String {
    let width = output_columns();
    let is_hook = |(key, ..): &(&str, Value, &SettingOrigin)| *key == HOOK;
    let settings: Vec<_> = settings(config).into_iter().filter(|setting| !is_hook(setting)).collect();
    let titled = |title: &str, value: String| vec![Cell::new(title, DIM), Cell::plain(value)];
    let folders = Table::new([Column::word("folder"), Column::text("path")]).untitled().with([
        titled("configuration directory", visible(user.unwrap_or("none"))),
        titled("workspace directory", visible(folder)),
    ]);
    let rows = settings.iter().map(|(key, value, origin)| {
        let value = if value.is_null() { "none".to_owned() } else { value.to_string() };
        vec![Cell::plain(*key), Cell::plain(visible(&value)), Cell::new(paths.shown(&origin.describe()), DIM)]
    });
    let hooks = config.hooks.value.iter().map(|hook| hook_row(hook, &config.hooks.origin, paths));
    let columns = || [Column::word("setting"), Column::text("value"), Column::text("from")];
    let settings = Table::new(columns()).with(rows.chain(hooks)).print(width);
    let in_effect: String = effective.iter().map(|one| flow(&one.line(), width, "  ")).collect();
    let limits = limit::table();
    let limits = limits.iter().map(|row| {
        let number = Cell::plain(row.value.to_string()).right();
        vec![Cell::new(row.name, DIM), number, Cell::new(row.what, DIM)]
    });
    let columns = [Column::word("limit"), Column::number("value"), Column::text("about").dispensable(1)];
    let limits = Table::new(columns).with(limits).print(width);
    [folders.print(width), settings + &in_effect, limits].join("\n")
}

/// A setting of both the configuration and the profile. The stricter value applies.
struct Effective {
    key: &'static str,
    configured: Value,
    by_profile: Value,
    value: Value,
    profile: String,
}

impl Effective {
    /// Returns these settings; none if the profile is invalid, which a build reports.
    fn list(config: &Config, host: &Host, workspace: &Workspace) -> Vec<Self> {
        let name = &config.profile.value;
        let Ok(found) = Profiles::new(host, workspace).find(name) else { return Vec::new() };
        let profile = &found.profile;
        let (hygiene, secrets) = (config.hygiene.value, config.secrets.value);
        let row = |key, configured: Value, by_profile: Value, value: Value| Self {
            key,
            configured,
            by_profile,
            value,
            profile: name.clone(),
        };
        vec![
            row("hygiene", json!(hygiene), json!(profile.hygiene), json!(profile.hygiene.max(hygiene))),
            row("secrets", json!(secrets), json!(profile.secrets), json!(profile.secrets.max(secrets))),
        ]
    }

    /// Formats the effective value and the reason for it.
    fn line(&self) -> String {
        let Self { key, configured, by_profile, value, profile } = self;
        let profile = visible(profile);
        let why = if configured == by_profile {
            format!("the configuration and the profile `{profile}` agree")
        } else if value == configured {
            format!("the configuration is stricter than the profile `{profile}`, which has {by_profile}")
        } else {
            format!("the profile `{profile}` is stricter than the configuration, and the stricter one counts")
        };
        format!("{key} in effect: {value}; {why}\n")
    }
}
