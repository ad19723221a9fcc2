//! Values of flags: forms of the output, and names that completions offer.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, ValueEnum};
use proem::compat::agents;
use proem::deliver::ProviderName;
use proem::models::Models;
use proem::profiles::Profiles;
use proem::{Caller, Request};

// The form of the output. Each form has `text` and `json`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Output<F: ValueEnum + Clone + Send + Sync + 'static> {
    /// Form of the output
    #[arg(long, value_enum, default_value = "text")]
    format: F,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl<F: ValueEnum + Clone + Send + Sync + 'static> Output<F> {
    /// The form that the flags ask for.
    pub(crate) fn format(&self) -> F {
        let json = self.json.then(|| F::from_str("json", false).ok());
        json.flatten().unwrap_or_else(|| self.format.clone())
    }
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// How an explanation is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    /// For people at a terminal
    Text,
    /// For programs
    Json,
    /// For a browser: one page, without scripts
    Html,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// For code hosts: SARIF 2.1.0
    Sarif,
}

/// Reads the name of a provider that requests are made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Providers;

impl TypedValueParser for Providers {
    type Value = &'static ProviderName;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        ProviderName::find(&value.to_string_lossy()).map_err(|unknown| {
            let hint = unknown.hint().map_or_else(String::new, |hint| format!("\nhint: {hint}"));
            clap::Error::raw(ErrorKind::InvalidValue, format!("{unknown}{hint}\n")).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(providers(|_| true)))
    }
}

fn providers(is_wanted: fn(&&'static ProviderName) -> bool) -> impl Iterator<Item = PossibleValue> {
    ProviderName::all()
        .filter(is_wanted)
        .map(|name| PossibleValue::new(name.word).aliases(name.aliases.iter().copied()).help(name.about))
}

/// Reads any text, and offers names for it. The names are looked up when help or a completion asks for them; the command
/// itself says which names it does not know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suggested(Names);

#[derive(Debug, Clone, Copy)]
enum Names {
    Profiles,
    Agents,
    /// Agents, and the word for all of them.
    AgentsOrAll,
    Models,
    Caches,
}

impl Suggested {
    pub(crate) const fn profiles() -> Self {
        Self(Names::Profiles)
    }

    pub(crate) const fn agents() -> Self {
        Self(Names::Agents)
    }

    pub(crate) const fn agents_or_all() -> Self {
        Self(Names::AgentsOrAll)
    }

    pub(crate) const fn models() -> Self {
        Self(Names::Models)
    }

    /// The providers whose caches are known.
    pub(crate) const fn caches() -> Self {
        Self(Names::Caches)
    }

    /// The names; those that cannot be read here are left out.
    fn names(self) -> Vec<PossibleValue> {
        let request = Request::default();
        let values = |names: Vec<String>| names.into_iter().map(PossibleValue::new).collect();
        match self.0 {
            Names::Profiles => Profiles::from_request(&request, Caller::User).map_or_else(
                |_| Vec::new(),
                |profiles| values(profiles.list().into_iter().map(|listed| listed.name).collect()),
            ),
            Names::Agents => agents(&request, Caller::User)
                .map_or_else(|_| Vec::new(), |agents| values(agents.into_keys().collect())),
            Names::AgentsOrAll => {
                let mut names = vec![PossibleValue::new("all")];
                names.extend(Self(Names::Agents).names());
                names
            }
            Names::Models => Models::load(&request, Caller::User).map_or_else(
                |_| Vec::new(),
                |models| values(models.names().into_iter().map(str::to_owned).collect()),
            ),
            Names::Caches => providers(|name| name.cache.is_some()).collect(),
        }
    }
}

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        value
            .to_str()
            .map(str::to_owned)
            .ok_or_else(|| clap::Error::new(ErrorKind::InvalidUtf8).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names().into_iter()))
    }
}
