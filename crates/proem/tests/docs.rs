//! Checks that lists in the documentation are complete.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::collections::BTreeMap;

use proem_core::builtin::PROFILES;
use proem_core::limit;
use proem_core::note::Code;
use proem_core::profile::{
    self, AgentRecipe, Collection, Content, Layer, Profile, Seen, SkillName, SkillsRecipe, WithoutDescription,
};
use proem_core::variable::Variable;
use proem_testkit::project_root;
use serde::Deserialize;
use serde_json::Value;

fn page(name: &str) -> String {
    std::fs::read_to_string(project_root().join("docs").join(name)).unwrap()
}

#[test]
fn every_note_code_has_its_heading() {
    let page = page("notes.md");
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let headings: Vec<&str> = headings.iter().map(|heading| heading.trim_matches('`')).collect();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.word()).collect();
    assert_eq!(headings, codes);
}

#[test]
fn every_note_code_is_listed_with_its_meaning() {
    let row = |code: &Code| format!("| [`{code}`](#{code}) | {} |\n", code.about());
    check_part("notes.md", "codes", "| code | meaning |\n|---|---|\n", Code::ALL.iter().map(row));
}

#[test]
fn every_limit_is_listed_with_its_value() {
    let row = |limit: &limit::Limit| format!("| `{}` | {} | {} |\n", limit.name, limit.words(), limit.what);
    check_part(
        "configuration.md",
        "limits",
        "| limit | value | about |\n|---|--:|---|\n",
        limit::table().iter().map(row),
    );
}

/// Compares the part of a page between two markers with rows of a table, or writes it when blessing.
fn check_part(page_name: &str, part: &str, head: &str, rows: impl Iterator<Item = String>) {
    let (begin, end) = (format!("<!-- {part}: begin -->\n"), format!("<!-- {part}: end -->"));
    let page = page(page_name);
    let (before, rest) = page.split_once(&begin).unwrap();
    let (found, behind) = rest.split_once(&end).unwrap();
    let expected = head.to_owned() + &rows.collect::<String>();
    if std::env::var_os("PROEM_BLESS").is_some() {
        let page = [before, &begin, &expected, &end, behind].concat();
        std::fs::write(project_root().join("docs").join(page_name), page).unwrap();
    } else {
        assert_eq!(found, expected, "{page_name}: PROEM_BLESS=1 writes the table");
    }
}

#[test]
fn every_variable_is_documented_with_its_stability() {
    let page = page("templates.md");
    for variable in Variable::ALL {
        let key = format!("| `{}:{}` ", variable.kind(), variable.name());
        let line = page.lines().find(|line| line.contains(&key)).unwrap_or_default();
        assert!(line.contains(variable.stability().word()), "{key} is {}: {line}", variable.stability());
    }
}

/// Returns the built-in profiles that imitate an agent.
fn agents() -> Vec<(Profile, AgentRecipe)> {
    let read = |(name, text): (&str, &str)| {
        let file = profile::parse(text, name, name).unwrap();
        profile::resolve(name, vec![Layer { origin: name.into(), file }]).unwrap()
    };
    let agents = PROFILES.into_iter().map(read).filter_map(|profile| {
        let agent = profile.agent.clone()?;
        Some((profile, agent))
    });
    agents.collect()
}

fn cases(profile: &str) -> Vec<Value> {
    let path = project_root().join(format!("corpus/agents/{profile}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_agent_is_listed_with_its_evidence() {
    let row = |(profile, agent): &(Profile, AgentRecipe)| {
        let mut carriers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for section in &profile.sections {
            carriers.entry(section.carrier.word()).or_default().push(&section.id);
        }
        let carriers: Vec<String> = carriers
            .iter()
            .map(|(carrier, sections)| format!("`{carrier}`: {}", sections.join(", ")))
            .collect();
        let seen = match agent.seen {
            Seen::Prompt => "the request to the model",
            Seen::Client => "what the client sends to the vendor's server",
        };
        let seen = if agent.known_by.word() == "run" { seen } else { "-" };
        format!(
            "| `{}` | {} | {} | {} | {} | {seen} | {} | {} |\n",
            profile.name,
            agent.title,
            agent.version,
            agent.as_of,
            agent.known_by.word(),
            cases(&profile.name).len(),
            carriers.join("; "),
        )
    };
    let head = "| profile | agent | version | as of | known | seen | cases | sections by carrier |\n|---|---|---|---|---|---|--:|---|\n";
    check_part("compat.md", "agents", head, agents().iter().map(row));
}

fn skills_of(profile: &Profile) -> Option<&SkillsRecipe> {
    profile.sections.iter().find_map(|section| match &section.content {
        Content::Collected(Collection::Skills(recipe)) => Some(recipe),
        _ => None,
    })
}

#[test]
fn skills_of_every_agent_are_listed() {
    let row = |(profile, agent): &(Profile, AgentRecipe)| {
        let Some(recipe) = skills_of(profile) else {
            return format!(
                "| {} | {} | unknown | unknown | unknown | unknown |\n",
                agent.title, agent.version
            );
        };
        let folders = |is_own: bool| {
            let own = recipe.directories.iter().filter(|directory| directory.path.starts_with('~') == is_own);
            let words = own.map(|directory| {
                let above = if directory.upwards { " and above" } else { "" };
                let depth = directory.depth_max.map_or(String::new(), |_| " (flat)".to_owned());
                let files = if directory.files { " (`*.md` too)" } else { "" };
                format!("`{}`{above}{depth}{files}", directory.path)
            });
            let words: Vec<String> = words.collect();
            if words.is_empty() { "none".to_owned() } else { words.join(", ") }
        };
        let hidden = match &recipe.hidden_by {
            None => "`disable-model-invocation: true`".to_owned(),
            Some(keys) if keys.is_empty() => "nothing".to_owned(),
            Some(keys) => keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "),
        };
        let name = match recipe.name {
            SkillName::Either => "`name`, else the folder",
            SkillName::Folder => "the folder",
            SkillName::Required => "`name`, required",
        };
        let text = match recipe.without_description {
            WithoutDescription::Required => "`description`, required",
            WithoutDescription::Body => "`description`, else the body's first line",
            WithoutDescription::BodyAlone => {
                "`description`, else the body's first line, also without front matter"
            }
            WithoutDescription::Empty => "`description`, or nothing",
        };
        let cut = match (recipe.description_characters_max, &recipe.description_cut) {
            (Some(max), Some(_)) => format!(", cut to {max} characters"),
            (Some(max), None) => format!(", of at most {max} characters"),
            (None, _) => String::new(),
        };
        format!(
            "| {} | {} | {} | {} | {hidden} | {name}; {text}{cut} |\n",
            agent.title,
            agent.version,
            folders(false),
            folders(true),
        )
    };
    let head = "| agent | version | folders of the project | folders of the user | hidden by | name and text |\n|---|---|---|---|---|---|\n";
    check_part("compat.md", "skills", head, agents().iter().map(row));
}

/// The results of `scripts/agents compare`.
#[derive(Debug, Deserialize)]
struct Agreement {
    agent: String,
    version: String,
    as_of: String,
    trees: usize,
    before: Equal,
    after: Equal,
}

/// The number of trees in which an agent and its profile are equal.
#[derive(Debug, Deserialize)]
struct Equal {
    files: usize,
    order: Option<usize>,
    bytes: usize,
    skills: usize,
}

#[test]
fn agreement_is_listed_as_it_was_measured() {
    let path = project_root().join("corpus/agents/agreement.json");
    let all: Vec<Agreement> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let row = |one: &Agreement| {
        let equal = |equal: &Equal| {
            let order = equal.order.map_or_else(|| "-".to_owned(), |order| order.to_string());
            format!("{} / {order} / {} / {}", equal.files, equal.bytes, equal.skills)
        };
        let percent = 100.0 * f64::from(u32::try_from(one.after.bytes).unwrap())
            / f64::from(u32::try_from(one.trees).unwrap());
        format!(
            "| {} | {} | {} | {} | {} | {} | {percent:.1} % |\n",
            one.agent,
            one.version,
            one.as_of,
            one.trees,
            equal(&one.before),
            equal(&one.after),
        )
    };
    let head = "| agent | version | on | trees | before: files / order / bytes / skills | after | bytes equal |\n|---|---|---|--:|---|---|--:|\n";
    check_part("compat.md", "agreement", head, all.iter().map(row));
}
