//! `proem profile`: lists profiles, or shows one.

use std::collections::BTreeMap;

use anstyle::{AnsiColor, Style};
use clap::Subcommand;
use proem::build_shape::NoteShape;
use proem::catalog::Catalog;
use proem::profiles::{ProfileEntry, Profiles};
use proem::{Host, HostPins, Workspace};
use proem_core::profile::{Content, Part, Profile as Recipe, SectionRecipe, TemplateRecipe};
use serde_json::json;

use crate::arguments::{Format, NameParser, Output, Place};
use crate::failure::Failure;
use crate::notes::print_notes;
use crate::table::{Cell, Column, Table, one_line};
use crate::terminal::{output_columns, print, print_json, print_raw, visible};

const DESCRIPTION_CHARACTERS_MAX: usize = 200;

/// List profiles, or show one with everything it inherits
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// List the profiles that a request can use
    List {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        output: Output<Format>,
    },
    /// Print a profile with everything it extends, and the file that sets each key
    Show {
        /// Profile to print
        #[arg(value_parser = NameParser::profiles(), hide_possible_values = true)]
        name: String,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        output: Output<Format>,
    },
}

pub(crate) fn run(command: &ProfileCommand) -> Result<(), Failure> {
    match command {
        ProfileCommand::List { place, output } => list(&profiles(place)?, output.format()),
        ProfileCommand::Show { name, place, output } => show(&profiles(place)?, place, name, output.format()),
    }
}

fn profiles(place: &Place) -> Result<Profiles, Failure> {
    let host = Host::new(&HostPins::default())?;
    Ok(Profiles::new(&host, &Workspace::find(&host, place.cwd.as_deref())?))
}

fn catalog(place: &Place, profile: &Recipe) -> Result<Catalog, Failure> {
    let host = Host::new(&HostPins::default())?;
    let workspace = Workspace::find(&host, place.cwd.as_deref())?.seen_by(profile);
    Ok(Catalog::load(&host, &workspace, &[], true)?)
}

fn list(profiles: &Profiles, format: Format) -> Result<(), Failure> {
    let listed = profiles.list();
    match format {
        Format::Text => {
            let columns = [Column::word("profile"), Column::word("from"), Column::text("description")];
            print(&Table::new(columns).untitled().with(listed.iter().map(row)).print(output_columns()))
        }
        Format::Json => {
            let shapes: Vec<_> = listed
                .iter()
                .map(|profile| {
                    json!({
                        "name": profile.name,
                        "from": profile.home.word(),
                        "path": profile.path,
                        "description": profile.description.as_ref().ok(),
                        "error": profile.description.as_ref().err(),
                    })
                })
                .collect();
            print_json(&json!({ "profiles": shapes }))
        }
    }
}

fn row(profile: &ProfileEntry) -> Vec<Cell> {
    let dim = Style::new().dimmed();
    let description = match &profile.description {
        Ok(description) => Cell::plain(one_line(&visible(description), DESCRIPTION_CHARACTERS_MAX)),
        Err(error) => {
            Cell::new(one_line(&visible(error), DESCRIPTION_CHARACTERS_MAX), AnsiColor::Red.on_default())
        }
    };
    vec![Cell::plain(&profile.name), Cell::new(profile.home.word(), dim), description]
}

fn show(profiles: &Profiles, place: &Place, name: &str, format: Format) -> Result<(), Failure> {
    let found = profiles.find(name)?;
    let profile = &found.profile;
    let catalog = &catalog(place, profile)?;
    let is_key = |format: &String| !format.starts_with('$');
    let uses_catalog = profile.sections.iter().any(|section| section.format.as_ref().is_some_and(is_key));
    match format {
        Format::Text => {
            print_notes(&found.notes);
            print_notes(if uses_catalog { catalog.notes() } else { &[] });
            print_raw(&(profile.to_toml() + &if uses_catalog { wording(catalog) } else { String::new() }))
        }
        Format::Json => print_json(&json!({
            "name": profile.name,
            "description": profile.description,
            "rebuild": profile.rebuild,
            "compaction": profile.compaction,
            "stored_template": profile.stored_template,
            "fixed": profile.fixed,
            "append": profile.append,
            "fact_bytes_max": profile.fact_bytes_max,
            "places": profile.places,
            "texts": profile.texts,
            "tools": {
                "default": profile.tools.default,
                "descriptions": profile.tools.descriptions,
                "guidelines": profile.tools.guidelines,
            },
            "bracket": {
                "unknown_type": profile.bracket.unknown_type,
                "absent": profile.bracket.absent,
                "standalone_tags": profile.bracket.standalone_tags,
            },
            "jinja": {
                "trim_blocks": profile.jinja.trim_blocks,
                "lstrip_blocks": profile.jinja.lstrip_blocks,
                "aliases": profile.jinja.aliases,
                "variables": profile.jinja.variables,
                "defaults": profile.jinja.defaults,
            },
            "carriers": profile.carriers,
            "slots": profile.slots,
            "sections": profile.sections.iter().map(section).collect::<Vec<_>>(),
            "origins": profile.origins,
            "catalog": catalog.entries().filter(|_| uses_catalog).map(|(key, entry)| {
                (key, json!({ "template": entry.text, "from": entry.layer }))
            }).collect::<BTreeMap<_, _>>(),
            "notes": found.notes.iter().map(NoteShape::new).collect::<Vec<_>>(),
        })),
    }
}

/// Formats the wording that the sections use as comments: it comes from packs, not from the profile.
fn wording(catalog: &Catalog) -> String {
    let lines = catalog.entries().map(|(key, entry)| {
        let first = entry.text.lines().find(|line| !line.is_empty() && *line != "---").unwrap_or_default();
        format!("# {key} = {}  # {}\n", serde_json::Value::from(first), entry.layer)
    });
    format!(
        "\n# The catalog, by key: the first line of each wording, and the layer that it comes from.\n{}",
        lines.collect::<String>()
    )
}

fn section(section: &SectionRecipe) -> serde_json::Value {
    let content = match &section.content {
        Content::Template(TemplateRecipe::Asset(asset, syntax)) => {
            json!({ "asset": asset, "syntax": syntax })
        }
        Content::Template(TemplateRecipe::Text(text, syntax)) => json!({ "text": text, "syntax": syntax }),
        Content::Given(field) => json!({ "given": field }),
        Content::Collected(collection) => json!({ "collect": collection, "format": section.format }),
    };
    json!({
        "id": section.id,
        "content": content,
        "carrier": section.carrier,
        "stability": section.stability,
        "accepts": section.accepts,
        "files": section.files,
        "when_tool": section.when_tool,
        "lead": section.lead,
        "trail": section.trail,
        "trim_end": section.trim_end,
        "trim": section.trim,
        "boundary": section.part == Part::Boundary,
        "when_project": section.when_project,
        "fresh_line": section.fresh_line,
        "keep_empty": section.keep_empty,
    })
}
