//! Every variable, with its value here or the reason why it has none.

use proem_core::fact::Fact;
use proem_core::note::Note;
use proem_core::stability::Stability;
use proem_core::variable::Variable;

use crate::error::Error;
use crate::request::Request;
use crate::request::caller::Author;
use crate::request::caller::Caller;
use crate::sections::resolver::Resolver;
use crate::settings::config::Config;
use crate::settings::world::Place;

/// One variable as it is here.
#[derive(Debug, Clone)]
pub struct VariableReport {
    /// The key, for example `git:branch`; `file:PATH` means all files.
    pub key: String,
    /// The description.
    pub description: String,
    /// The stability of its value.
    pub stability: Stability,
    /// True if any name is valid.
    pub dynamic: bool,
    /// The observed value; `None` for a dynamic one, which has no value of its own.
    pub fact: Option<Fact>,
}

/// Observes every variable that a template could name, the request's own and allowed ones included.
/// The notes are about the configuration.
pub fn variables(request: &Request, caller: Caller) -> Result<(Vec<VariableReport>, Vec<Note>), Error> {
    let Place { host, workspace, view: _in_force } = Place::read(request, caller)?;
    let author = if host.caller().is_remote() { Author::Other } else { Author::User };
    let config = Config::load(&host, &workspace)?;
    let mut resolver = Resolver::new(request, &host, &workspace, &config);
    let mut reports: Vec<VariableReport> = Vec::new();
    for variable in Variable::ALL {
        reports.push(report(variable, author, &mut resolver));
        if variable == Variable::Env {
            let allowed = config.env_allow.value.iter();
            reports
                .extend(allowed.map(|name| {
                    named(&format!("env:{name}"), variable.description(), author, &mut resolver)
                }));
        }
    }
    let known: Vec<String> = reports.iter().map(|report| report.key.clone()).collect();
    let own = request.variables.keys().filter(|key| !known.contains(key));
    reports.extend(own.map(|key| named(key, "given in the request", author, &mut resolver)));
    Ok((reports, config.notes.clone()))
}

fn report(variable: Variable, author: Author, resolver: &mut Resolver<'_>) -> VariableReport {
    let key = format!("{}:{}", variable.kind(), variable.name());
    if variable.is_dynamic() {
        let (description, stability) = (variable.description().to_owned(), variable.stability());
        return VariableReport { key, description, stability, dynamic: true, fact: None };
    }
    named(&key, variable.description(), author, resolver)
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
