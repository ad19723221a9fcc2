//! Values of flags: output formats, and names that completions offer.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, ValueEnum};
use proem::compat::agents;
use proem::deliver::ProviderName;
use proem::models::Models;
use proem::profiles::Profiles;
use proem::{Caller, Request};

/// Flags for the output format. Every set of formats has `text` and `json`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Output<F: ValueEnum + Clone + Send + Sync + 'static> {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: F,
    /// Same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl<F: ValueEnum + Clone + Send + Sync + 'static> Output<F> {
    /// Returns the format that the flags choose.
    pub(crate) fn format(&self) -> F {
        let json = self.json.then(|| F::from_str("json", false).ok());
        json.flatten().unwrap_or_else(|| self.format.clone())
    }
}

/// Output formats of most commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for a terminal
    Text,
    /// JSON for programs
    Json,
}

/// Parses the name of a provider that requests are built for.
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

/// Accepts any text, and offers names for completion. The names are looked up only for help and completions; the command
/// itself rejects unknown names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameParser(Kind);

#[derive(Debug, Clone, Copy)]
enum Kind {
    Profiles,
    Agents,
    /// Agents, and the word for all of them.
    AgentsOrAll,
    Models,
    Caches,
}

impl NameParser {
    pub(crate) const fn profiles() -> Self {
        Self(Kind::Profiles)
    }

    pub(crate) const fn agents() -> Self {
        Self(Kind::Agents)
    }

    pub(crate) const fn agents_or_all() -> Self {
        Self(Kind::AgentsOrAll)
    }

    pub(crate) const fn models() -> Self {
        Self(Kind::Models)
    }

    /// Offers the providers with cache rules.
    pub(crate) const fn caches() -> Self {
        Self(Kind::Caches)
    }

    /// Returns the names; unreadable profiles, agents or models are left out.
    fn names(self) -> Vec<PossibleValue> {
        let request = Request::default();
        let values = |names: Vec<String>| names.into_iter().map(PossibleValue::new).collect();
        match self.0 {
            Kind::Profiles => Profiles::from_request(&request, Caller::User).map_or_else(
                |_| Vec::new(),
                |profiles| values(profiles.list().into_iter().map(|listed| listed.name).collect()),
            ),
            Kind::Agents => agents(&request, Caller::User)
                .map_or_else(|_| Vec::new(), |agents| values(agents.into_keys().collect())),
            Kind::AgentsOrAll => {
                let mut names = vec![PossibleValue::new("all")];
                names.extend(Self(Kind::Agents).names());
                names
            }
            Kind::Models => Models::load(&request, Caller::User).map_or_else(
                |_| Vec::new(),
                |models| values(models.names().into_iter().map(str::to_owned).collect()),
            ),
            Kind::Caches => providers(|name| name.cache.is_some()).collect(),
        }
    }
}

impl TypedValueParser for NameParser {
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
