//! Models: their prices, their cache rules and their tokenizers. A dated table.

use std::sync::OnceLock;

use proem_core::limit::SETTINGS_BYTES_MAX;
use serde::Deserialize;

use crate::error::{Error, ErrorCause, FileRole};
use crate::observe::file::{Cap, ReadPolicy, read_text};
use crate::observe::host::Host;
use crate::request::Request;
use crate::request::caller::Caller;
use crate::settings::tokens::Tokenizer;
use crate::settings::toml_file::parse_toml;

/// The user's own table, in the configuration directory.
pub const FILE_NAME: &str = "models.toml";

/// The role of the user's table in errors.
const ROLE: FileRole = FileRole::Models;

const BUILT_IN: &str = include_str!("../../builtin/models.toml");
const CAP: Cap = Cap::new(SETTINGS_BYTES_MAX);

/// The models and cache rules that are known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Models {
    /// The day of the figures.
    pub as_of: String,
    list: Vec<Model>,
    caches: Vec<CacheRules>,
}

/// A model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Its name in requests.
    pub name: String,
    /// The vendor that runs it.
    #[serde(default)]
    pub vendor: String,
    /// USD for a million tokens that are not cached.
    pub input: Option<f64>,
    /// USD for a million tokens read from the cache.
    pub cache_read: Option<f64>,
    /// USD for a million tokens written to the cache; the input's price where writing costs nothing extra.
    pub cache_write: Option<f64>,
    /// USD for a million tokens written to the cache for an hour.
    pub cache_write_1h: Option<f64>,
    /// USD for a million tokens of output.
    pub output: Option<f64>,
    /// The smallest prefix that is cached, in tokens.
    pub min_tokens: Option<usize>,
    /// The vocabulary that counts its tokens exactly.
    pub tokenizer: Option<String>,
    /// True if its API accepts `prompt_cache_breakpoint`.
    pub breakpoints: Option<bool>,
    /// The role of the message that carries the system prompt, in OpenAI's format.
    pub role: Option<String>,
    /// True if its API accepts system messages between the others.
    pub system_messages: Option<bool>,
}

impl Model {
    /// Returns the extra cost, in dollars, of tokens that are not read from the cache; prices are per million.
    #[must_use]
    pub fn cost_of_missing(&self, tokens: usize) -> Option<f64> {
        let millions = f64::from(u32::try_from(tokens).unwrap_or(u32::MAX)) / 1e6;
        Some((self.input? - self.cache_read?) * millions)
    }

    /// Returns the way to count its tokens.
    #[must_use]
    pub fn tokenizer(&self) -> Tokenizer {
        self.tokenizer.as_deref().map_or(Tokenizer::Estimate, Tokenizer::named)
    }
}

/// A row about a cache as it is written; missing keys leave the earlier value.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheKeys {
    name: String,
    kind: Option<CacheKind>,
    lookback: Option<usize>,
    markers_max: Option<usize>,
    marks_last: Option<bool>,
    step: Option<usize>,
    min_tokens: Option<usize>,
    of: Option<Earlier>,
    leaves: Option<usize>,
    seconds: Option<u64>,
    seconds_1h: Option<u64>,
}

/// The rules of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheRules {
    /// The provider or server.
    pub name: String,
    /// The unit of comparison.
    pub kind: CacheKind,
    /// The number of blocks before a marker that are compared, the marked one included.
    pub lookback: usize,
    /// Most markers in a request.
    pub markers_max: usize,
    /// True if the last block counts as marked.
    pub marks_last: bool,
    /// The number of tokens in one step.
    pub step: usize,
    /// The smallest hit, unless the model has its own.
    pub min_tokens: usize,
    /// The earlier requests that are compared.
    pub of: Earlier,
    /// The number of tokens at the end that are always computed.
    pub leaves: usize,
    /// The lifetime of an entry after its last use.
    pub seconds: Option<u64>,
    /// The lifetime of an entry of the longer kind.
    pub seconds_1h: Option<u64>,
}

/// The unit that a cache compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// Blocks at markers.
    Breakpoints,
    /// The longest common beginning.
    Prefix,
    /// The whole text of an earlier request.
    Units,
}

/// The earlier requests that a cache compares with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Earlier {
    /// Every request that is still cached.
    #[default]
    Any,
    /// The previous request.
    Last,
}

/// A table as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    as_of: Option<String>,
    model: Vec<Model>,
    cache: Vec<CacheKeys>,
}

impl Models {
    /// Returns the built-in table, which is parsed once per process.
    pub fn built_in() -> Result<Self, Error> {
        static READ: OnceLock<Models> = OnceLock::new();
        if let Some(models) = READ.get() {
            return Ok(models.clone());
        }
        let mut models = Self { as_of: String::new(), list: Vec::new(), caches: Vec::new() };
        models.lay(BUILT_IN, "built-in models.toml")?;
        Ok(READ.get_or_init(|| models).clone())
    }

    /// Returns the built-in table with the changes of the user's table, for a request.
    pub fn load(request: &Request, caller: Caller) -> Result<Self, Error> {
        let host = Host::observe(request, caller)?;
        let mut models = Self::built_in()?;
        let Some(path) = host.config_dir().map(|folder| folder.join(FILE_NAME)) else { return Ok(models) };
        let policy = ReadPolicy::user(host.home().as_deref(), &[]);
        match read_text(&path, &policy, CAP) {
            Ok(text) => models.lay(&text, &path.display().to_string())?,
            Err(proem_core::fact::Absence::NoSuchFile) => {}
            Err(why) => {
                return Err(Error::File { role: ROLE, path: path.display().to_string(), why });
            }
        }
        Ok(models)
    }

    /// Applies a table to this one: a row with a known name changes the given values, other rows are added.
    fn lay(&mut self, text: &str, path: &str) -> Result<(), Error> {
        let table: Table = parse_toml(text, ROLE, path)?;
        self.as_of = table.as_of.unwrap_or_else(|| self.as_of.clone());
        for row in table.model {
            check(&row, path)?;
            match self.list.iter_mut().find(|known| known.name == row.name) {
                Some(known) => known.take(row),
                None if row.vendor.is_empty() => {
                    let message = format!("the model `{}` has no `vendor`", row.name);
                    return Err(refuse(
                        path,
                        message,
                        "name the vendor that runs it: anthropic, openai, google, deepseek, or another name",
                    ));
                }
                None => self.list.push(row),
            }
        }
        for row in table.cache {
            match self.caches.iter_mut().find(|known| known.name == row.name) {
                Some(known) => known.take(&row),
                None => self.caches.push(CacheRules::from_keys(&row, path)?),
            }
        }
        Ok(())
    }

    /// Finds a model by the name that requests use; accepts a date after it or a region before it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Model> {
        let bare = bare_name(name);
        let is_of = |model: &&Model| bare.strip_prefix(model.name.as_str()).is_some_and(is_version);
        self.list.iter().filter(is_of).max_by_key(|model| model.name.len())
    }

    /// The rules of a cache.
    #[must_use]
    pub fn cache(&self, name: &str) -> Option<&CacheRules> {
        self.caches.iter().find(|rules| rules.name == name)
    }

    /// The names of the caches, for messages.
    #[must_use]
    pub fn cache_names(&self) -> Vec<&str> {
        self.caches.iter().map(|rules| rules.name.as_str()).collect()
    }

    /// The names of the models, for messages.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.list.iter().map(|model| model.name.as_str()).collect()
    }
}

impl Model {
    /// Takes the values that another row has.
    fn take(&mut self, row: Self) {
        if !row.vendor.is_empty() {
            self.vendor = row.vendor;
        }
        self.input = row.input.or(self.input);
        self.cache_read = row.cache_read.or(self.cache_read);
        self.cache_write = row.cache_write.or(self.cache_write);
        self.cache_write_1h = row.cache_write_1h.or(self.cache_write_1h);
        self.output = row.output.or(self.output);
        self.min_tokens = row.min_tokens.or(self.min_tokens);
        self.tokenizer = row.tokenizer.or_else(|| self.tokenizer.take());
        self.breakpoints = row.breakpoints.or(self.breakpoints);
        self.role = row.role.or_else(|| self.role.take());
        self.system_messages = row.system_messages.or(self.system_messages);
    }
}

impl CacheRules {
    /// Returns rules that promise nothing: no minimum, no lifetime.
    pub(crate) const fn unknown() -> Self {
        Self {
            name: String::new(),
            kind: CacheKind::Prefix,
            lookback: 1,
            markers_max: 4,
            marks_last: false,
            step: 1,
            min_tokens: 0,
            of: Earlier::Any,
            leaves: 0,
            seconds: None,
            seconds_1h: None,
        }
    }

    /// Makes the rules of a new row, which must have a kind.
    fn from_keys(row: &CacheKeys, path: &str) -> Result<Self, Error> {
        let kind = row.kind.ok_or_else(|| {
            refuse(
                path,
                format!("the cache `{}` has no `kind`", row.name),
                "say `breakpoints`, `prefix` or `units`",
            )
        })?;
        let mut rules = Self {
            name: row.name.clone(),
            kind,
            lookback: 1,
            markers_max: 4,
            marks_last: false,
            step: 1,
            min_tokens: 0,
            of: Earlier::Any,
            leaves: 0,
            seconds: None,
            seconds_1h: None,
        };
        rules.take(row);
        Ok(rules)
    }

    /// Takes the values that another row has.
    fn take(&mut self, row: &CacheKeys) {
        self.kind = row.kind.unwrap_or(self.kind);
        self.lookback = row.lookback.unwrap_or(self.lookback);
        self.markers_max = row.markers_max.unwrap_or(self.markers_max);
        self.marks_last = row.marks_last.unwrap_or(self.marks_last);
        self.step = row.step.unwrap_or(self.step);
        self.min_tokens = row.min_tokens.unwrap_or(self.min_tokens);
        self.of = row.of.unwrap_or(self.of);
        self.leaves = row.leaves.unwrap_or(self.leaves);
        self.seconds = row.seconds.or(self.seconds);
        self.seconds_1h = row.seconds_1h.or(self.seconds_1h);
    }
}

fn refuse(path: &str, message: String, hint: &str) -> Error {
    let (path, hint) = (path.to_owned(), Some(hint.to_owned()));
    Error::Config { role: ROLE, path, message, hint, excerpt: None, cause: ErrorCause::NONE }
}

/// Refuses rows whose figures would be meaningless.
fn check(model: &Model, path: &str) -> Result<(), Error> {
    /// The highest price that is accepted, a dollar a token.
    const PRICE_MAX: f64 = 1e6;
    let name = &model.name;
    if name.is_empty() {
        return Err(refuse(path, "a model has an empty name".into(), "give it the name that requests use"));
    }
    let prices = [model.input, model.cache_read, model.cache_write, model.cache_write_1h, model.output];
    if prices.iter().flatten().any(|price| !(0.0..=PRICE_MAX).contains(price)) {
        let message = format!("a price of `{name}` is negative, too large or not a number");
        return Err(refuse(path, message, "prices are USD for a million tokens"));
    }
    if let Some(role) = model.role.as_deref().filter(|role| !matches!(*role, "system" | "developer")) {
        let message = format!("the role `{role}` of `{name}` is not known");
        return Err(refuse(path, message, "it is `system` or `developer`"));
    }
    match &model.tokenizer {
        Some(tokenizer) if Tokenizer::named(tokenizer) == Tokenizer::Estimate => Err(refuse(
            path,
            format!("the tokenizer `{tokenizer}` of `{name}` is not known"),
            &format!("the vocabularies are: {}", Tokenizer::NAMES.join(", ")),
        )),
        _ => Ok(()),
    }
}

/// Strips the prefixes of gateways and regions from a model's name.
fn bare_name(name: &str) -> &str {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.rsplit_once("anthropic.").map_or(name, |(_, bare)| bare)
}

/// Tells whether `rest` only names a build of a model: a date, a version, or a tag.
fn is_version(rest: &str) -> bool {
    let (stamp, has_tag) = match rest.split_once([':', '@']) {
        Some((stamp, _)) => (stamp, true),
        None => (rest, false),
    };
    match stamp {
        "" => true,
        "-latest" => !has_tag,
        _ => stamp.strip_prefix('-').is_some_and(is_date),
    }
}

/// Tells whether a text is a date, a build number, or a version behind either: `20260801`, `2024-08-06`, `0613`,
/// `001`, `20251001-v1`. A single digit would be another model.
fn is_date(text: &str) -> bool {
    let mut parts: Vec<&str> = text.split('-').collect();
    let is_version = |part: &&str| {
        part.strip_prefix('v')
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has_version = parts.last().is_some_and(is_version);
    if has_version {
        parts.pop();
    }
    let digits: Option<Vec<usize>> = parts
        .iter()
        .map(|part| part.bytes().all(|byte| byte.is_ascii_digit()).then_some(part.len()))
        .collect();
    match digits.as_deref() {
        Some([]) => has_version,
        Some([3 | 4 | 6 | 8] | [4, 2, 2]) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_the_names_that_requests_use() {
        let models = Models::built_in().unwrap();
        for (asked, found) in [
            ("claude-opus-5", Some("claude-opus-5")),
            ("claude-opus-5-5", Some("claude-opus-5-5")),
            ("claude-opus-4-8-20260801", Some("claude-opus-4-8")),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Some("claude-haiku-4-5")),
            ("anthropic/claude-sonnet-5", Some("claude-sonnet-5")),
            ("claude-sonnet-5@20260901", Some("claude-sonnet-5")),
            ("gpt-4o-2024-08-06", Some("gpt-4o")),
            ("gpt-4o", Some("gpt-4o")),
            ("gpt-5-latest", Some("gpt-5")),
            ("gpt-5-mini", None),
            ("gpt-5.9", None),
            ("claude-opus-6", None),
            ("claude-opus-5-9", None),
            ("claude-opus-5-9-20270101", None),
            ("us.anthropic.claude-sonnet-5-9-20270101-v1:0", None),
            ("claude-opus-5-v", None),
            ("gpt-4-0613", Some("gpt-4")),
            ("gemini-3.8-flash-001", Some("gemini-3.8-flash")),
            ("", None),
        ] {
            assert_eq!(models.find(asked).map(|model| model.name.as_str()), found, "{asked}");
        }
    }

    #[test]
    fn a_row_of_the_user_changes_what_it_says_and_nothing_else() {
        let mut models = Models::built_in().unwrap();
        let text = "as_of = \"2027-01-01\"\n[[model]]\nname = \"gpt-5\"\ninput = 7\n[[model]]\nname = \"own\"\nvendor = \"me\"\n";
        models.lay(text, "models.toml").unwrap();
        let model = models.find("gpt-5").unwrap();
        assert_eq!((model.input, model.cache_read), (Some(7.0), Some(0.125)));
        assert_eq!(models.as_of, "2027-01-01");
        assert!(models.find("own").is_some());
        for wrong in
            ["[[model]]\nname = \"a\"\ninput = -1", "[[model]]\nname = \"a\"\ntokenizer = \"x\"", "x = 1"]
        {
            assert!(models.lay(wrong, "models.toml").is_err(), "{wrong}");
        }
    }
}
