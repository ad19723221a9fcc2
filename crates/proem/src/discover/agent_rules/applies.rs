//! Files whose front matter limits when they apply.

use proem_core::file_outcome::Outcome;
use proem_core::profile::rules::{AppliesRecipe, RuleDefault};

/// The condition under which a file applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Applies {
    Always,
    /// For files that match patterns.
    ToFiles {
        patterns: String,
        description: String,
    },
    /// At the model's request, by its description.
    OnRequest(String),
    /// On demand, if the user names it.
    Manual,
    /// Never: the required front matter is missing.
    Malformed,
}

impl Applies {
    pub(super) fn from_text(recipe: &AppliesRecipe, text: &str) -> Self {
        let Some(lines) = front_matter(text) else {
            return if recipe.required { Self::Malformed } else { recipe.otherwise.into() };
        };
        let value = |key: &Option<String>| key.as_deref().map(|key| values(&lines, key)).unwrap_or_default();
        if recipe.always.as_deref().is_some_and(|key| raw(&lines, key) == Some("true")) {
            return Self::Always;
        }
        // A key without a value counts: the other one is not read then.
        let mut keys = recipe.patterns.iter().chain(&recipe.or_patterns);
        let patterns = value(&keys.find(|key| raw(&lines, key).is_some()).cloned());
        let is_for_all = |pattern: &String| match &recipe.everything {
            Some(all) => all.contains(pattern),
            None => matches!(pattern.as_str(), "**" | "*" | "**/*"),
        };
        let description = value(&recipe.description).join(", ");
        if !patterns.is_empty() && !patterns.iter().all(is_for_all) {
            let listed = || values(&lines, "description").join(", ");
            let description = if description.is_empty() { listed() } else { description };
            return Self::ToFiles { patterns: patterns.join(", "), description };
        }
        if !patterns.is_empty() {
            return Self::Always;
        }
        if !description.trim().is_empty() {
            return Self::OnRequest(description);
        }
        recipe.otherwise.into()
    }

    pub(super) const fn outcome(&self) -> Outcome {
        match self {
            Self::Malformed => Outcome::Malformed,
            _ => Outcome::Hidden,
        }
    }

    pub(super) fn why(&self) -> String {
        match self {
            Self::Always => "it always applies".into(),
            Self::ToFiles { patterns, .. } => format!("it applies to files that match {patterns}"),
            Self::OnRequest(_) => "it is read when the model asks for it".into(),
            Self::Manual => "it is read when the user names it".into(),
            Self::Malformed => "it has no front matter, and needs one".into(),
        }
    }
}

impl From<RuleDefault> for Applies {
    fn from(otherwise: RuleDefault) -> Self {
        match otherwise {
            RuleDefault::Always => Self::Always,
            RuleDefault::Manual => Self::Manual,
        }
    }
}

/// Returns the lines between the two lines of three hyphens. They are read line by line, as most agents do: invalid
/// YAML must not decide whether a rule applies.
fn front_matter(text: &str) -> Option<Vec<&str>> {
    let text = text.trim_start_matches('\u{FEFF}').trim_start();
    let mut lines = text.lines();
    lines.next().filter(|line| line.trim_end() == "---")?;
    let mut inner = Vec::new();
    for line in lines {
        if line.trim_end() == "---" {
            return Some(inner);
        }
        inner.push(line);
    }
    None
}

/// Returns the text after a key, as it is written.
fn raw<'l>(lines: &[&'l str], key: &str) -> Option<&'l str> {
    lines.iter().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':').map(str::trim))
}

/// Returns the values of a key: one, several with commas, or a list in either form.
fn values(lines: &[&str], key: &str) -> Vec<String> {
    let Some(first) = raw(lines, key) else { return Vec::new() };
    let plain = |text: &str| text.trim().trim_matches(['"', '\'']).trim().to_owned();
    let is_some = |text: &String| !text.is_empty();
    if !first.is_empty() {
        let inner = first.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(first);
        return parts(inner).iter().map(|part| plain(part)).filter(is_some).collect();
    }
    let at = lines
        .iter()
        .position(|line| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':')));
    let rest = lines.iter().skip(at.map_or(0, |at| at + 1));
    let items = rest.map_while(|line| line.trim_start().strip_prefix('-'));
    items.map(plain).filter(is_some).collect()
}

/// Splits at commas outside of braces: `*.{ts,tsx}` is one pattern.
pub(super) fn parts(text: &str) -> Vec<String> {
    let text = text.trim();
    let whole =
        text.strip_prefix(['"', '\'']).and_then(|rest| rest.strip_suffix(['"', '\''])).unwrap_or(text);
    let (mut found, mut depth) = (vec![String::new()], 0_usize);
    for character in whole.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = found.last_mut() {
            last.push(character);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mdc() -> AppliesRecipe {
        AppliesRecipe {
            always: Some("alwaysApply".into()),
            patterns: Some("globs".into()),
            description: Some("description".into()),
            otherwise: RuleDefault::Manual,
            required: true,
            everything: None,
            or_patterns: None,
            imports: false,
        }
    }

    #[test]
    fn front_matter_decides_when_a_rule_applies() {
        let of = |text: &str| Applies::from_text(&mdc(), text);
        assert_eq!(of("---\nalwaysApply: true\nglobs: *.ts\n---\nx"), Applies::Always);
        let files =
            |patterns: &str| Applies::ToFiles { patterns: patterns.into(), description: String::new() };
        assert_eq!(
            of("---\nglobs: *.ts, src/*.{js,jsx}\nalwaysApply: false\n---\n"),
            files("*.ts, src/*.{js,jsx}")
        );
        assert_eq!(of("---\nglobs:\n  - \"*.ts\"\n  - '*.js'\n---\n"), files("*.ts, *.js"));
        assert_eq!(of("---\nglobs: [\"a\", \"b\"]\n---\n"), files("a, b"));
        assert_eq!(of("---\ndescription: About x\nglobs:\n---\n"), Applies::OnRequest("About x".into()));
        assert_eq!(of("---\n---\nx"), Applies::Manual);
        assert_eq!(of("---\nalwaysApply: \"true\"\n---\nx"), Applies::Manual, "a string is not a boolean");
        assert_eq!(of("no front matter"), Applies::Malformed);
        assert_eq!(of("---\nnever closed"), Applies::Malformed);
    }
}
