//! The names of all files that profiles search for in a project, derived from the profiles' data: a new profile is
//! covered without a change here.

use std::collections::BTreeSet;
use std::sync::Arc;

use proem_core::profile::{Collection, Content, Profile, RulesRecipe};
use proem_core::text_safety::confusable::is_variant;

/// Folders of agents whose profiles name no file in them.
const MORE_FOLDERS: [&str; 3] = [".codex", ".gemini", ".opencode"];

/// Folders of which profiles name a file, and which also hold unrelated files.
const SHARED_FOLDERS: [&str; 1] = [".github"];

/// Extensions of files that are examined in a folder of an agent.
const TEXT_ENDINGS: [&str; 5] = [".md", ".mdc", ".j2", ".txt", ".prompt"];

/// Folders of test fixtures, whose faults are intended.
const FIXTURES: [&str; 5] = ["__fixtures__", "fixture", "fixtures", "test_data", "testdata"];

const SKILL: &str = "SKILL.md";
const SKILL_ENDING: &str = ".md";

/// The meaning of a file for the agents that read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Instructions that are in the prompt, always or sometimes.
    Instructions,
    /// The `SKILL.md` of a skill, or a file that is a skill by itself.
    Skill,
    /// A text beside a skill or in the folder of an agent, which the model may read.
    Text,
}

impl Role {
    /// Returns the word used in JSON.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Skill => "skill",
            Self::Text => "text",
        }
    }
}

/// Tells whether a file is a test fixture, by the parts of its path.
pub(crate) fn is_fixture<S: AsRef<str>>(path: &[S]) -> bool {
    let folders = path.split_last().map_or(path, |(_, folders)| folders);
    folders.iter().any(|part| FIXTURES.contains(&part.as_ref()))
}

/// A profile, and the name of the agent that it imitates.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) title: String,
    pub(crate) profile: Arc<Profile>,
}

impl Agent {
    /// The rules by which it reads instruction files.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &RulesRecipe> {
        self.profile.sections.iter().filter_map(|section| match &section.content {
            Content::Collected(Collection::Rules(recipe)) => Some(&**recipe),
            _ => None,
        })
    }
}

/// A name, or a folder with all files of an extension below it, relative to any directory of a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Pattern {
    File(Vec<String>),
    Below { folder: Vec<String>, ending: String },
    Skills { folder: Vec<String>, files: bool },
}

/// All names that profiles search for.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    patterns: BTreeSet<Pattern>,
    /// The folders that belong to agents: every text in them is for a model.
    folders: BTreeSet<String>,
}

impl Roster {
    /// Collects the names of some profiles.
    pub(crate) fn from_profiles<'p>(profiles: impl IntoIterator<Item = &'p Profile>) -> Self {
        let mut roster = Self::default();
        roster.folders.extend(MORE_FOLDERS.map(str::to_owned));
        for section in profiles.into_iter().flat_map(|profile| &profile.sections) {
            section.files.iter().flat_map(|files| &files.paths).for_each(|path| roster.add_file(path));
            if let Content::Collected(collection) = &section.content {
                roster.add(collection);
            }
        }
        roster
    }

    fn add(&mut self, collection: &Collection) {
        match collection {
            Collection::AgentsMd => self.add_file("AGENTS.md"),
            Collection::Documents(recipe) => recipe.names.iter().for_each(|name| self.add_file(name)),
            Collection::Skills(recipe) => {
                recipe.directories.iter().for_each(|own| self.add_skills(&own.path, own.files));
            }
            Collection::SkillDirectory(recipe) => {
                recipe.directories.iter().for_each(|path| self.add_skills(path, false));
            }
            Collection::Rules(recipe) => {
                let places = recipe.places.iter().filter(|place| place.walk.is_some());
                places.flat_map(|place| &place.files).for_each(|file| self.add_file(&file.name));
            }
            Collection::Scope | Collection::Knowledge | Collection::Workflows => {}
        }
    }

    fn add_file(&mut self, name: &str) {
        if let Some((folder, ending)) = name.split_once("**/*") {
            let Some(folder) = self.parts(folder) else { return };
            self.patterns.insert(Pattern::Below { folder, ending: ending.to_owned() });
        } else if let Some(parts) = self.parts(name) {
            self.patterns.insert(Pattern::File(parts));
        }
    }

    fn add_skills(&mut self, path: &str, files: bool) {
        let Some(folder) = self.parts(path) else { return };
        self.patterns.insert(Pattern::Skills { folder, files });
    }

    /// Splits a path that is relative to a directory of the project; returns `None` for one of the user's own.
    fn parts(&mut self, path: &str) -> Option<Vec<String>> {
        let is_own = path.starts_with(['~', '/', '{']) || path.split('/').any(|part| part == "..");
        let parts: Vec<String> =
            path.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect();
        if is_own || parts.is_empty() {
            return None;
        }
        if let Some(folder) = parts.first().filter(|_| parts.len() > 1)
            && folder.starts_with('.')
            && !SHARED_FOLDERS.contains(&folder.as_str())
        {
            self.folders.insert(folder.clone());
        }
        Some(parts)
    }

    /// Returns the role of a file, by its path below the project's root; `None` if no agent searches for it.
    pub(crate) fn role(&self, path: &[&str]) -> Option<Role> {
        let role = self.patterns.iter().filter_map(|pattern| pattern.role(path)).min();
        let name = path.last()?;
        let folder = path.split_last()?.1;
        let is_text = || TEXT_ENDINGS.iter().any(|ending| name.ends_with(ending));
        let is_for_models = || self.is_of_agent(folder) || self.is_skill_folder(folder);
        role.or_else(|| (is_for_models() && is_text()).then_some(Role::Text))
    }

    /// Tells whether a folder lies in a directory of skills; only a `SKILL.md` makes it part of one.
    fn is_skill_folder(&self, folder: &[&str]) -> bool {
        self.patterns.iter().any(|pattern| pattern.is_skill_folder(folder))
    }

    /// Tells whether a folder belongs to an agent, or lies in one that does.
    pub(crate) fn is_of_agent(&self, folder: &[&str]) -> bool {
        folder.iter().any(|part| self.folders.contains(*part))
    }

    /// Tells whether a link in place of this folder leads to files that agents search for.
    pub(crate) fn is_folder(&self, folder: &[&str]) -> bool {
        self.is_of_agent(folder) || self.patterns.iter().any(|pattern| pattern.is_folder(folder))
    }

    /// Returns the probable intended name of a misspelt file. Wrong case is reported only in the root and in folders of
    /// skills: elsewhere `agents.md` is a page of documentation.
    pub(crate) fn meant(&self, path: &[&str]) -> Option<&str> {
        if self.role(path).is_some_and(|role| role != Role::Text) {
            return None;
        }
        let (name, folder) = path.split_last()?;
        let is_in_skill = self.is_skill_folder(folder);
        let is_judged =
            |wanted: &str| !name.is_ascii() || folder.is_empty() || (is_in_skill && wanted == SKILL);
        // Searches from the end, where `AGENTS.md` comes before `AGENTS.MD`, which one agent also accepts.
        let names = self.patterns.iter().rev().filter_map(|pattern| match pattern {
            Pattern::File(parts) if parts.len() == 1 => parts.first().map(String::as_str),
            _ => None,
        });
        let mut names = names.chain(is_in_skill.then_some(SKILL));
        names.find(|wanted| *wanted != *name && is_judged(wanted) && is_variant(name, wanted))
    }
}

impl Pattern {
    fn role(&self, path: &[&str]) -> Option<Role> {
        match self {
            Self::File(parts) => ends_with(path, parts).then_some(Role::Instructions),
            Self::Below { folder, ending } => {
                let is_meant = path.last().is_some_and(|name| name.ends_with(ending.as_str()));
                (is_meant && below(path, folder).is_some_and(|rest| !rest.is_empty()))
                    .then_some(Role::Instructions)
            }
            Self::Skills { folder, files } => {
                let rest = below(path, folder)?;
                let (name, above) = rest.split_last()?;
                let is_skill =
                    if above.is_empty() { *files && name.ends_with(SKILL_ENDING) } else { *name == SKILL };
                is_skill.then_some(Role::Skill)
            }
        }
    }

    fn is_folder(&self, path: &[&str]) -> bool {
        match self {
            Self::File(_) => false,
            Self::Below { folder, .. } | Self::Skills { folder, .. } => below(path, folder).is_some(),
        }
    }

    /// Tells whether a folder lies in a directory of skills.
    fn is_skill_folder(&self, path: &[&str]) -> bool {
        match self {
            Self::Skills { folder, .. } => below(path, folder).is_some_and(|rest| !rest.is_empty()),
            _ => false,
        }
    }
}

fn ends_with(path: &[&str], parts: &[String]) -> bool {
    path.len() >= parts.len() && path.iter().rev().zip(parts.iter().rev()).all(|(a, b)| a == b)
}

/// Returns the part of a path after a folder, at any depth.
fn below<'p, 's>(path: &'p [&'s str], folder: &[String]) -> Option<&'p [&'s str]> {
    let starts = 0..(path.len() + 1).saturating_sub(folder.len());
    let mut ends =
        starts.filter(|start| path.iter().skip(*start).zip(folder).all(|(part, wanted)| part == wanted));
    ends.next().and_then(|start| path.get(start + folder.len()..))
}

#[cfg(test)]
mod tests {
    use proem_core::builtin::PROFILES;
    use proem_core::profile::{self, Layer};

    use super::*;

    fn roster() -> Roster {
        let read = |(name, text): (&str, &str)| {
            let file = profile::parse(text, name, name).expect("built-in profiles are valid");
            profile::resolve(name, vec![Layer { origin: name.into(), file }]).expect("they are complete")
        };
        let profiles: Vec<Profile> = PROFILES.into_iter().map(read).collect();
        Roster::from_profiles(&profiles)
    }

    fn role(path: &str) -> Option<Role> {
        roster().role(&path.split('/').collect::<Vec<_>>())
    }

    #[test]
    fn names_come_from_the_built_in_profiles() {
        use Role::{Instructions, Skill, Text};
        for (path, expected) in [
            ("AGENTS.md", Some(Instructions)),
            ("src/deep/AGENTS.override.md", Some(Instructions)),
            ("CLAUDE.local.md", Some(Instructions)),
            ("a/GEMINI.md", Some(Instructions)),
            (".cursorrules", Some(Instructions)),
            (".cursor/rules/a/b.mdc", Some(Instructions)),
            ("web/.cursor/rules/b.mdc", Some(Instructions)),
            (".github/copilot-instructions.md", Some(Instructions)),
            (".github/instructions/a/b.instructions.md", Some(Instructions)),
            (".goosehints", Some(Instructions)),
            (".rules", Some(Instructions)),
            (".claude/rules/a.md", Some(Instructions)),
            (".claude/skills/x/SKILL.md", Some(Skill)),
            (".claude/skills/x/reference/y.md", Some(Text)),
            (".agents/skills/x/SKILL.md", Some(Skill)),
            ("plugins/p/skills/x/SKILL.md", Some(Skill)),
            (".proem/SYSTEM.md", Some(Instructions)),
            (".proem/skills/x.md", Some(Skill)),
            (".proem/notes.md", Some(Text)),
            (".codex/prompts/x.md", Some(Text)),
            (".opencode/command/x.md", Some(Text)),
            (".claude/settings.json", None),
            (".github/pull_request_template.md", None),
            ("skills/README.md", None),
            ("docs/agents.md", None),
            ("README.md", None),
        ] {
            assert_eq!(role(path), expected, "{path}");
        }
    }

    #[test]
    fn a_name_that_is_nearly_right_is_known_where_it_matters() {
        let roster = roster();
        for (path, expected) in [
            ("agents.md", Some("AGENTS.md")),
            ("Claude.md", Some("CLAUDE.md")),
            ("docs/agents.md", None),
            ("src/\u{410}GENTS.md", Some("AGENTS.md")),
            (".agents/skills/x/skill.md", Some("SKILL.md")),
            ("docs/skill.md", None),
            ("AGENTS.md", None),
        ] {
            assert_eq!(roster.meant(&path.split('/').collect::<Vec<_>>()), expected, "{path}");
        }
    }
}
