//! Every variable, with its value here or the reason why it has none.

use proem_core::fact::Fact;
use proem_core::note::Note;
use proem_core::stability::Stability;
use proem_core::variable::{self, Variable};

use crate::error::Error;
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::request::caller::Author;
use crate::request::caller::Caller;
use crate::sections::resolver::Resolver;
use crate::settings::config::Config;

/// One variable as it is here.
#[derive(Debug, Clone)]
pub struct VariableReport {
    /// The key, for example `git:branch`; `file:PATH` stands for all files.
    pub key: String,
    /// What it is.
    pub description: String,
    /// How long its value stays the same.
    pub stability: Stability,
    /// Whether any name is valid.
    pub dynamic: bool,
    /// What was observed; `None` for a dynamic one, which has no value of its own.
    pub fact: Option<Fact>,
}

/// Observes every variable that a template could name, the request's own and allowed ones included.
/// The notes are about the configuration.
pub fn variables(request: &Request, caller: Caller) -> Result<(Vec<VariableReport>, Vec<Note>), Error> {
    let host = Host::observe(request, caller)?;
    let author = if caller.is_remote() { Author::Other } else { Author::User };
    let workspace = Workspace::find(&host, request.cwd.as_deref())?;
    let config = Config::load(&host, &workspace)?;
    let mut resolver = Resolver::new(request, &host, &workspace, &config);
    let mut reports: Vec<VariableReport> = Vec::new();
    for row in &variable::TABLE {
        reports.push(report(row, author, &mut resolver));
        if row.kind == "env" {
            let allowed = config.env_allow.value.iter();
            reports.extend(
                allowed.map(|name| named(&format!("env:{name}"), row.description, author, &mut resolver)),
            );
        }
    }
    let known: Vec<String> = reports.iter().map(|report| report.key.clone()).collect();
    let own = request.variables.keys().filter(|key| !known.contains(key));
    reports.extend(own.map(|key| named(key, "given in the request", author, &mut resolver)));
    Ok((reports, config.notes.clone()))
}

fn report(row: &Variable, author: Author, resolver: &mut Resolver<'_>) -> VariableReport {
    let key = format!("{}:{}", row.kind, row.name);
    if row.dynamic {
        let (description, stability) = (row.description.to_owned(), row.stability);
        return VariableReport { key, description, stability, dynamic: true, fact: None };
    }
    named(&key, row.description, author, resolver)
}

fn named(key: &str, description: &str, author: Author, resolver: &mut Resolver<'_>) -> VariableReport {
    let fact = resolver.fact(key, author);
    VariableReport {
        key: key.to_owned(),
        description: description.to_owned(),
        stability: fact.stability,
        dynamic: false,
        fact: Some(fact),
    }
}
