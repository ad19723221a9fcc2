//! `proem profile list|show`.

use anstyle::{AnsiColor, Style};
use proem::profiles::{Listed, Profiles};
use proem::wire::NoteShape;
use proem::{Host, HostPins, Workspace};
use proem_core::profile::{Content, SectionRecipe, TemplateRecipe};
use serde_json::json;

use crate::arguments::{Format, Place, Profile};
use crate::failure::Failure;
use crate::notes::print_notes;
use crate::table::{Cell, layout, one_line};
use crate::terminal::{print, print_json, print_raw, visible};

const DESCRIPTION_CHARACTERS_MAX: usize = 200;

pub(super) fn run(command: &Profile) -> Result<(), Failure> {
    match command {
        Profile::List { place, format } => list(&profiles(place)?, *format),
        Profile::Show { name, place, format } => show(&profiles(place)?, name, *format),
    }
}

fn profiles(place: &Place) -> Result<Profiles, Failure> {
    let host = Host::new(&HostPins::default())?;
    Ok(Profiles::new(&host, &Workspace::open(place.cwd.as_deref())?))
}

fn list(profiles: &Profiles, format: Format) -> Result<(), Failure> {
    let listed = profiles.list();
    match format {
        Format::Text => print(&layout(&listed.iter().map(row).collect::<Vec<_>>())),
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

fn row(profile: &Listed) -> Vec<Cell> {
    let dim = Style::new().dimmed();
    let description = match &profile.description {
        Ok(description) => Cell::plain(one_line(&visible(description), DESCRIPTION_CHARACTERS_MAX)),
        Err(error) => {
            Cell::new(one_line(&visible(error), DESCRIPTION_CHARACTERS_MAX), AnsiColor::Red.on_default())
        }
    };
    vec![Cell::plain(&profile.name), Cell::new(profile.home.word(), dim), description]
}

fn show(profiles: &Profiles, name: &str, format: Format) -> Result<(), Failure> {
    let found = profiles.find(name)?;
    let profile = &found.profile;
    match format {
        Format::Text => {
            print_notes(&found.notes);
            print_raw(&profile.to_toml())
        }
        Format::Json => print_json(&json!({
            "name": profile.name,
            "description": profile.description,
            "rebuild": profile.rebuild,
            "compaction": profile.compaction,
            "bracket": {
                "unknown_type": profile.bracket.unknown_type,
                "absent": profile.bracket.absent,
                "standalone_tags": profile.bracket.standalone_tags,
            },
            "sections": profile.sections.iter().map(section).collect::<Vec<_>>(),
            "origins": profile.origins,
            "notes": found.notes.iter().map(NoteShape::of).collect::<Vec<_>>(),
        })),
    }
}

fn section(section: &SectionRecipe) -> serde_json::Value {
    let content = match &section.content {
        Content::Template(TemplateRecipe::Asset(asset, syntax)) => {
            json!({ "asset": asset, "syntax": syntax })
        }
        Content::Template(TemplateRecipe::Text(text, syntax)) => json!({ "text": text, "syntax": syntax }),
        Content::Given(field) => json!({ "given": field }),
    };
    json!({
        "id": section.id,
        "content": content,
        "carrier": section.carrier,
        "stability": section.stability,
        "lead": section.lead,
        "trail": section.trail,
    })
}
