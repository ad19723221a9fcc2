//! The plan of a launch: variables, arguments and temporary files that send an agent's calls to the gateway.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempPath;

use super::Agent;
use super::data::{AgentData, Extension, JsonConfig, Known, OptionRow, TomlFile};
use super::files;
use crate::routes::{Routes, Upstream};

/// The world of a launch, as the user has it.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// The version of the agent, if it is known.
    pub version: Option<String>,
}

/// The reason why an agent cannot be launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchError {
    /// A base URL of the user cannot be an upstream: its place, and the reason.
    BadUrl(String, &'static str),
    /// A temporary file cannot be written.
    Temporary(String),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadUrl(place, why) => write!(formatter, "the URL in {place} cannot be an upstream: {why}"),
            Self::Temporary(why) => write!(formatter, "cannot write a temporary file: {why}"),
        }
    }
}

impl std::error::Error for LaunchError {}

/// The plan of a launch.
#[derive(Debug, Default)]
pub struct LaunchPlan {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables that are set.
    pub env: BTreeMap<String, String>,
    /// The routes to the upstreams that the user had before.
    pub routes: Routes,
    /// True if anything is redirected.
    pub is_redirected: bool,
    /// Files that exist until the plan is dropped.
    files: Vec<TempPath>,
    gateway: String,
    taken: Vec<String>,
}

impl Agent {
    /// Plans a launch. `command` is the program with its arguments, `gateway` the URL of the gateway.
    pub fn plan(
        &self,
        command: &[String],
        gateway: &str,
        routes: Routes,
        surroundings: &Surroundings,
    ) -> Result<LaunchPlan, LaunchError> {
        let (given, arguments) =
            command.split_first().map_or(("", &[] as &[String]), |(name, rest)| (name, rest));
        let own = self.0.program.as_deref().filter(|_| !given.contains('/'));
        let mut plan = LaunchPlan {
            program: own.unwrap_or(given).to_owned(),
            arguments: arguments.to_vec(),
            routes,
            gateway: gateway.trim_end_matches('/').to_owned(),
            ..LaunchPlan::default()
        };
        plan.set_variables(self.0, surroundings)?;
        for option in &self.0.options {
            plan.add_option(option, self.0.toml.as_ref(), surroundings)?;
        }
        if let Some(config) = &self.0.json {
            plan.add_config(config, surroundings)?;
        }
        if let Some(extension) = &self.0.extension {
            plan.add_extension(extension, surroundings)?;
        }
        plan.pass_proxies(surroundings);
        Ok(plan)
    }
}

impl LaunchPlan {
    fn set_variables(&mut self, agent: &AgentData, around: &Surroundings) -> Result<(), LaunchError> {
        let mut had_url = false;
        for variable in &agent.variables {
            let own = around.env.get(&variable.name).filter(|url| !url.trim().is_empty());
            if own.is_none() && variable.only_set {
                continue;
            }
            had_url |= own.is_some();
            let url = match (own, &variable.default) {
                (Some(own), _) => self.upstream_for(&variable.route, own, &variable.name)?,
                (None, Some(default)) => self.upstream_for(&variable.route, default, &variable.name)?,
                (None, None) => self.route_to(&variable.route, &variable.suffix),
            };
            self.env.insert(variable.name.clone(), url);
        }
        let unset = |name: &String| !around.env.contains_key(name);
        let set = agent.set.iter().filter(|(name, _)| unset(name));
        self.env.extend(set.map(|(name, value)| (name.clone(), value.clone())));
        if let Some(before) = &agent.set_before
            && let Some(version) = around.version.as_deref()
            && number(version) < number(&before.version)
            && unset(&before.name)
            && !had_url
        {
            self.env.insert(before.name.clone(), before.value.clone());
        }
        Ok(())
    }

    /// Returns the URL of a built-in route.
    fn route_to(&mut self, route: &str, suffix: &str) -> String {
        self.is_redirected = true;
        format!("{}/{route}{suffix}", self.gateway)
    }

    /// Makes a URL of the user the upstream of a route, and returns the URL of that route.
    fn upstream_for(&mut self, route: &str, url: &str, place: &str) -> Result<String, LaunchError> {
        self.is_redirected = true;
        let upstream =
            Upstream::parse(url.trim()).map_err(|why| LaunchError::BadUrl(place.to_owned(), why.reason()))?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let mut name: String =
            route.bytes().map(|byte| if is_plain(byte) { char::from(byte) } else { '-' }).collect();
        while self.taken.contains(&name) {
            name.push('-');
        }
        self.taken.push(name.clone());
        let is_built_in = self.routes.names().contains(&name.as_str());
        self.routes.set(&name, Arc::clone(&upstream));
        Ok(if is_built_in {
            format!("{}/{name}", self.gateway)
        } else {
            format!("{}/custom/{name}", self.gateway)
        })
    }

    /// Adds options after those of the user, because the last one counts.
    fn add_option(
        &mut self,
        option: &OptionRow,
        file: Option<&TomlFile>,
        around: &Surroundings,
    ) -> Result<(), LaunchError> {
        let config = file.map_or_else(toml::Table::new, |file| self.user_toml(option, file, around));
        let own = config.get(&option.key).and_then(toml::Value::as_str);
        let base = match own {
            Some(own) => self.upstream_for(&option.route, own, &option.key)?,
            None => self.route_to(&option.route, &option.suffix),
        };
        let mut added = vec![option.flag.clone(), format!("{}={}", option.key, quoted(&base))];
        if let Some(file) = file
            && let Some(name) = config.get(&file.provider).and_then(toml::Value::as_str)
            && let Some(url) = at(&config, &[&file.providers, name, &file.url])
        {
            let to = self.upstream_for(name, &url, &format!("{}.{name}", file.providers))?;
            let key = format!("{}.{name}.{}", file.providers, file.url);
            added.extend([option.flag.clone(), format!("{key}={}", quoted(&to))]);
        }
        let end = self.arguments.iter().position(|word| word == "--").unwrap_or(self.arguments.len());
        let last = self
            .arguments
            .iter()
            .take(end)
            .rposition(|word| *word == option.flag)
            .map_or(0, |place| place + 2);
        let place = last.min(self.arguments.len());
        self.arguments.splice(place..place, added);
        Ok(())
    }

    /// Returns the configuration of the user: the file, and the options on the command line.
    fn user_toml(&self, option: &OptionRow, file: &TomlFile, around: &Surroundings) -> toml::Table {
        let folder = around.env.get(&file.home).map(PathBuf::from);
        let folder = folder.or_else(|| Some(around.home.as_ref()?.join(&file.folder)));
        let text = folder.and_then(|folder| files::text(&folder.join(&file.file)));
        let mut config: toml::Table = text.and_then(|text| text.parse().ok()).unwrap_or_default();
        let pairs = self.arguments.windows(2).filter(|pair| pair.first() == Some(&option.flag));
        for (key, value) in pairs.filter_map(|pair| pair.get(1)?.split_once('=')) {
            let parsed = format!("value = {value}").parse::<toml::Table>().ok();
            let value = parsed.and_then(|mut table| table.remove("value"));
            put(
                &mut config,
                key,
                value.unwrap_or_else(|| toml::Value::String(value_text(key, &self.arguments))),
            );
        }
        config
    }

    fn add_config(&mut self, config: &JsonConfig, around: &Surroundings) -> Result<(), LaunchError> {
        let own = around.env.get(&config.variable).and_then(|text| files::json(text));
        let mut merged = json!({});
        let folders: Vec<&std::path::Path> = around.cwd.ancestors().collect();
        let at_home = around.home.iter().flat_map(|home| config.home.iter().map(|file| home.join(file)));
        let named = around.env.get(&config.file_variable).map(PathBuf::from);
        let in_folders =
            folders.iter().rev().flat_map(|folder| config.files.iter().map(|file| folder.join(file)));
        for path in at_home.chain(named).chain(in_folders) {
            if let Some(found) = files::text(&path).and_then(|text| files::json(&text)) {
                files::merge(&mut merged, found);
            }
        }
        if let Some(own) = &own {
            files::merge(&mut merged, own.clone());
        }
        let urls = files::urls(&merged, &config.providers, &config.url);
        let logins = around.home.as_ref().and_then(|home| files::text(&home.join(&config.logins)));
        let logins = logins.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let has_key = |known: &Known| {
            known.keys.iter().any(|key| around.env.contains_key(key))
                || logins.as_ref().is_some_and(|logins| logins.get(&known.provider).is_some())
        };
        let mut added = own.unwrap_or_else(|| json!({}));
        for (name, url) in self.redirected(&urls, &config.known, has_key)? {
            let inner = config.url.iter().rev().fold(json!(url), |value, key| json!({ (key): value }));
            files::merge(&mut added, json!({ (&config.providers): { (name): inner } }));
        }
        self.env.insert(config.variable.clone(), added.to_string());
        Ok(())
    }

    /// Returns the new URLs of providers: those with a URL of the user, and the known ones that are in use.
    fn redirected(
        &mut self,
        urls: &BTreeMap<String, Option<String>>,
        known: &[Known],
        is_used: impl Fn(&Known) -> bool,
    ) -> Result<BTreeMap<String, String>, LaunchError> {
        let mut to = BTreeMap::new();
        for (name, url) in urls.iter().filter_map(|(name, url)| Some((name, url.as_ref()?))) {
            let route = known.iter().find(|known| known.provider == *name).map_or(name, |known| &known.route);
            to.insert(name.clone(), self.upstream_for(route, url, name)?);
        }
        for known in known {
            if !to.contains_key(&known.provider) && (urls.contains_key(&known.provider) || is_used(known)) {
                to.insert(known.provider.clone(), self.route_to(&known.route, &known.suffix));
            }
        }
        Ok(to)
    }

    fn add_extension(&mut self, extension: &Extension, around: &Surroundings) -> Result<(), LaunchError> {
        let folder = around.env.get(&extension.home).map(PathBuf::from);
        let folder = folder.or_else(|| Some(around.home.as_ref()?.join(&extension.folder)));
        let config = folder.and_then(|folder| files::text(&folder.join(&extension.file)));
        let config = config.and_then(|text| files::json(&text)).unwrap_or(Value::Null);
        let urls = files::urls(&config, &extension.providers, std::slice::from_ref(&extension.url));
        let to = self.redirected(&urls, &extension.known, |_| true)?;
        let call = |(name, url): (&String, &String)| {
            format!("  pi.registerProvider({}, {{ {}: {} }});\n", json!(name), extension.url, json!(url))
        };
        let calls: Vec<String> = to.iter().map(call).collect();
        let calls = calls.concat();
        let code = format!(
            "// Sends the calls of this run through proem's gateway.\nexport default function (pi) {{\n{calls}}}\n"
        );
        let failed = |error: std::io::Error| LaunchError::Temporary(error.to_string());
        let mut file = tempfile::Builder::new().prefix("proem-").suffix(".js").tempfile().map_err(failed)?;
        file.write_all(code.as_bytes()).map_err(failed)?;
        let path = file.into_temp_path();
        self.arguments.splice(0..0, [extension.flag.clone(), path.display().to_string()]);
        self.files.push(path);
        Ok(())
    }

    /// Keeps calls to the gateway away from proxies.
    fn pass_proxies(&mut self, around: &Surroundings) {
        const PROXIES: [&str; 6] =
            ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
        if !PROXIES.iter().any(|name| around.env.contains_key(*name)) {
            return;
        }
        for name in ["no_proxy", "NO_PROXY"] {
            let own = around.env.get(name).filter(|list| !list.is_empty());
            let list = own.map_or_else(String::new, |list| format!("{list},"));
            self.env.insert(name.to_owned(), format!("{list}127.0.0.1,localhost"));
        }
    }
}

fn value_text(key: &str, arguments: &[String]) -> String {
    let found = arguments.iter().rev().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_default().to_owned()
}

/// Sets a value below keys that are separated by dots.
fn put(config: &mut toml::Table, key: &str, value: toml::Value) {
    let Some((first, rest)) = key.split_once('.') else {
        config.insert(key.to_owned(), value);
        return;
    };
    let inner = config.entry(first).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    if let toml::Value::Table(inner) = inner {
        put(inner, rest, value);
    }
}

fn at(config: &toml::Table, keys: &[&str]) -> Option<String> {
    let (first, rest) = keys.split_first()?;
    let found = rest.iter().try_fold(config.get(*first)?, |value, key| value.get(*key))?;
    found.as_str().map(str::to_owned)
}

/// Writes a string in TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns a version as numbers.
fn number(version: &str) -> Vec<u64> {
    let digits = version
        .split(|character: char| !character.is_ascii_digit() && character != '.')
        .find(|part| part.contains('.'));
    digits.unwrap_or_default().split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY: &str = "http://127.0.0.1:9";

    struct Planned {
        plan: LaunchPlan,
        upstreams: Vec<(String, String)>,
    }

    fn plan(command: &[&str], env: &[(&str, &str)], home: Option<&std::path::Path>) -> Planned {
        let around = Surroundings {
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            cwd: PathBuf::from("/nowhere/at/all"),
            home: home.map(Into::into),
            version: Some("2.1.288 (Claude Code)".to_owned()),
        };
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let agent = Agent::of_command(&command[0]).expect("there is one");
        let plan = agent.plan(&command, GATEWAY, Routes::built_in(), &around).expect("it can be planned");
        let built_in = Routes::built_in().list();
        let upstreams = plan.routes.list().into_iter().filter(|row| !built_in.contains(row)).collect();
        Planned { plan, upstreams }
    }

    fn env(planned: &Planned) -> Vec<(&str, &str)> {
        planned.plan.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    #[test]
    fn the_data_is_valid() {
        let data: super::super::data::AgentsData =
            toml::from_str(super::super::data::BUILT_IN).expect("it is valid");
        assert_eq!(data.agents.len(), Agent::all().count());
        let built_in = Routes::built_in();
        for agent in &data.agents {
            assert!(agent.impossible.is_some() || !agent.means().is_empty(), "{}", agent.name);
            let known = agent
                .json
                .iter()
                .flat_map(|json| &json.known)
                .chain(agent.extension.iter().flat_map(|it| &it.known));
            assert!(
                known.into_iter().all(|known| built_in.names().contains(&known.route.as_str())),
                "{}",
                agent.name
            );
        }
    }

    #[test]
    fn variables_redirect_and_a_url_that_is_set_becomes_the_upstream() {
        let planned = plan(&["claude", "-p", "x"], &[], None);
        let expected = [
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/anthropic"),
            ("CLAUDE_CODE_GATEWAY_HINT_HEADERS", "1"),
            ("ENABLE_TOOL_SEARCH", "true"),
        ];
        assert_eq!(
            (env(&planned).as_slice(), planned.plan.arguments.join(" ")),
            (expected.as_slice(), "-p x".into())
        );
        let own = [
            ("ANTHROPIC_BASE_URL", "https://proxy.example/anthropic/"),
            ("CLAUDE_CODE_GATEWAY_HINT_HEADERS", "0"),
        ];
        let planned = plan(&["/usr/bin/claude"], &own, None);
        assert_eq!(planned.plan.program, "/usr/bin/claude");
        assert_eq!(env(&planned), [("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/anthropic")]);
        assert!(
            planned.upstreams.contains(&("/anthropic/".into(), "https://proxy.example/anthropic".into()))
        );
        let planned = plan(
            &["my-agent"],
            &[
                ("OPENAI_BASE_URL", "http://127.0.0.1:1/v9"),
                ("OPENAI_HOST", "http://127.0.0.1:2"),
                ("HTTP_PROXY", "http://p"),
            ],
            None,
        );
        let expected = [
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/anthropic"),
            ("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9/gemini"),
            ("NO_PROXY", "127.0.0.1,localhost"),
            ("OPENAI_BASE_URL", "http://127.0.0.1:9/openai"),
            ("OPENAI_HOST", "http://127.0.0.1:9/custom/openai-"),
            ("no_proxy", "127.0.0.1,localhost"),
        ];
        assert_eq!(env(&planned), expected);
        assert!(planned.upstreams.contains(&("/openai/".into(), "http://127.0.0.1:1/v9".into())));
    }

    #[test]
    fn codex_is_redirected_by_options_after_those_of_the_user() {
        let home = tempfile::tempdir().expect("a folder");
        let planned = plan(&["codex", "exec", "-c", "model=\"m\"", "hello"], &[], Some(home.path()));
        let arguments = planned.plan.arguments.join(" ");
        assert_eq!(
            arguments,
            "exec -c model=\"m\" -c openai_base_url=\"http://127.0.0.1:9/openai/v1\" hello"
        );
        std::fs::create_dir(home.path().join(".codex")).expect("a folder");
        let config = "openai_base_url = \"https://one.example/v1\"\nmodel_provider = \"x\"\n[model_providers.x]\nbase_url = \"https://two.example/api\"\n";
        std::fs::write(home.path().join(".codex/config.toml"), config).expect("a file");
        let planned = plan(&["codex"], &[], Some(home.path()));
        let arguments = planned.plan.arguments.join(" ");
        assert_eq!(
            arguments,
            "-c openai_base_url=\"http://127.0.0.1:9/openai\" -c model_providers.x.base_url=\"http://127.0.0.1:9/custom/x\""
        );
        assert!(planned.upstreams.contains(&("/custom/x/".into(), "https://two.example/api".into())));
        assert!(planned.upstreams.contains(&("/openai/".into(), "https://one.example/v1".into())));
        let options = [
            "codex",
            "-c",
            "model_provider=y",
            "-c",
            "model_providers.y={base_url=\"http://127.0.0.1:3/v1\"}",
            "--",
            "-c",
        ];
        let planned = plan(&options, &[], None);
        assert!(
            planned.upstreams.contains(&("/custom/y/".into(), "http://127.0.0.1:3/v1".into())),
            "{:?}",
            planned.upstreams
        );
        assert_eq!(planned.plan.arguments.last().map(String::as_str), Some("-c"));
    }

    #[test]
    fn opencode_is_redirected_by_a_configuration_that_adds_to_that_of_the_user() {
        let own = r#"{"model": "stub/m", "provider": {"stub": {"npm": "x", "options": {"baseURL": "http://127.0.0.1:4/v1"}}}}"#;
        let planned =
            plan(&["opencode", "run"], &[("OPENCODE_CONFIG_CONTENT", own), ("ANTHROPIC_API_KEY", "k")], None);
        let config: Value = serde_json::from_str(&planned.plan.env["OPENCODE_CONFIG_CONTENT"]).expect("JSON");
        let expected = json!({"model": "stub/m", "provider": {
            "stub": {"npm": "x", "options": {"baseURL": "http://127.0.0.1:9/custom/stub"}},
            "anthropic": {"options": {"baseURL": "http://127.0.0.1:9/anthropic/v1"}},
        }});
        assert_eq!(config, expected);
        assert!(planned.upstreams.contains(&("/custom/stub/".into(), "http://127.0.0.1:4/v1".into())));
    }

    #[test]
    fn pi_is_redirected_by_a_temporary_extension() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(home.path().join(".pi/agent")).expect("a folder");
        let models = r#"{"providers": {"stub": {"baseUrl": "http://127.0.0.1:5/v1"}}}"#;
        std::fs::write(home.path().join(".pi/agent/models.json"), models).expect("a file");
        let planned = plan(&["pi", "-p", "x"], &[], Some(home.path()));
        let [flag, path, ..] = planned.plan.arguments.as_slice() else { unreachable!("there are arguments") };
        let code = std::fs::read_to_string(path).expect("a file");
        assert_eq!(flag, "-e");
        assert!(
            code.contains(
                "pi.registerProvider(\"anthropic\", { baseUrl: \"http://127.0.0.1:9/anthropic\" });"
            ),
            "{code}"
        );
        assert!(
            code.contains("pi.registerProvider(\"stub\", { baseUrl: \"http://127.0.0.1:9/custom/stub\" });"),
            "{code}"
        );
        let path = PathBuf::from(path);
        drop(planned);
        assert!(!path.exists(), "it is removed");
    }

    #[test]
    fn a_url_with_a_password_is_refused_without_being_shown() {
        let around = Surroundings {
            env: BTreeMap::from([("ANTHROPIC_BASE_URL".to_owned(), "https://me:secret@x".to_owned())]),
            ..Surroundings::default()
        };
        let agent = Agent::of_command("claude").expect("it is known");
        let error = agent
            .plan(&["claude".to_owned()], GATEWAY, Routes::built_in(), &around)
            .expect_err("it is refused");
        assert_eq!(
            error.to_string(),
            "the URL in ANTHROPIC_BASE_URL cannot be an upstream: it must not hold a user name or password"
        );
    }
}
