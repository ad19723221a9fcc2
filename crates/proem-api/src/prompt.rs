//! A prompt that is not kept: built from the JSON of a request, explained, compared, and delivered.

use std::path::PathBuf;

use proem::build_shape::{BuildShape, SourceShape};
use proem::compare::why::{Elsewhere, PromptPlace, Question, elsewhere, places};
use proem::compare::{ComparisonShape, Layout, Snapshot, compare_in, lost};
use proem::compat::{CompatShape, look};
use proem::deliver::{DeliverOptions, Delivery, Lifetime, ProviderName, deliver};
use proem::models::{Model, Models};
use proem::request::RequestUpdate;
use proem::tokens::Tokenizer;
use proem::{Build, Caller, Request, Ttl, Workspace};
use serde_json::{Value, json};

use crate::failure::Failure;

/// A prompt with the request that it was built for.
#[derive(Debug, Clone)]
pub struct Prompt {
    build: Build,
    request: Request,
}

impl Prompt {
    /// Builds the prompt for a request.
    ///
    /// ```
    /// let prompt = proem_api::Prompt::build(r#"{"profile": "template", "system": "Be brief."}"#)?;
    /// assert_eq!(prompt.system(), Some("Be brief."));
    /// # Ok::<(), proem_api::Failure>(())
    /// ```
    pub fn build(request: &str) -> Result<Self, Failure> {
        let request = Request::from_json(request)?;
        let build = proem::build(&request, Caller::User)?;
        Ok(Self { build, request })
    }

    /// Returns the finished prompt.
    #[must_use]
    pub const fn built(&self) -> &Build {
        &self.build
    }

    /// Returns the system prompt; `None` if it is empty.
    #[must_use]
    pub fn system(&self) -> Option<&str> {
        self.build.system()
    }

    /// Returns the prompt as JSON: that of `proem build --format json`.
    pub fn to_json(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string(&BuildShape::new(&self.build))?)
    }

    /// Returns the prompt as JSON with the sections, files and sources: that of `proem explain --format json`.
    pub fn explain(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string(&BuildShape::new(&self.build).with_request(&self.request))?)
    }

    /// Finds the source of a text, as JSON: that of `proem why --format json`.
    pub fn why(&self, text: &str) -> Result<String, Failure> {
        let found = places(&self.build, &Question::Text(text));
        let others = if found.is_empty() {
            let cwd = PathBuf::from(Workspace::open(self.request.cwd.as_deref())?.cwd());
            elsewhere(&self.build, &cwd, std::env::home_dir().as_deref(), text)
        } else {
            Vec::new()
        };
        Ok(why_json(&found, &others).to_string())
    }

    /// Makes the request body of a provider. The fields of `call` are added to those of the prompt's request: `messages`,
    /// `prompt`, `tools`, `ttl` and the like.
    pub fn deliver(&self, provider: &str, call: &str) -> Result<Delivery, Failure> {
        let provider = ProviderName::find(provider).map_err(|unknown| {
            let failure = Failure::bad_request(unknown.to_string());
            Failure { hint: unknown.hint(), ..failure }
        })?;
        let update = RequestUpdate::from_json(call)?;
        let given = update.given();
        let mut request = update.apply_to(&self.request);
        request.messages = given.messages.clone().or_else(|| self.request.messages.clone());
        request.prompt = given.prompt.clone().or_else(|| self.request.prompt.clone());
        request.images = given.images.clone().or_else(|| self.request.images.clone());
        let lifetime = match given.ttl.or(self.request.ttl) {
            Some(Ttl::Hour) => Lifetime::Hour,
            _ => Lifetime::Short,
        };
        let cached_content = given.cached_content.clone().or_else(|| self.request.cached_content.clone());
        let models = Models::load(&request, Caller::User)?;
        let options = DeliverOptions { lifetime, cached_content };
        Ok(deliver(provider.provider, &self.build, &request, &models, &options)?)
    }

    /// Makes one side of a comparison.
    #[must_use]
    pub fn snapshot(&self, name: &str) -> Snapshot {
        Snapshot::new(name, self.build.frozen(), &self.request, Some(env!("CARGO_PKG_VERSION")))
    }
}

/// Puts the answer to a question about the source of a text into JSON.
#[must_use]
pub fn why_json(found: &[PromptPlace<'_>], others: &[Elsewhere]) -> Value {
    let other = |found: &Elsewhere| json!({ "path": found.path, "line": found.line, "why": found.why });
    json!({
        "places": found.iter().map(place_json).collect::<Vec<_>>(),
        "elsewhere": others.iter().map(other).collect::<Vec<_>>(),
    })
}

/// Puts a place of the prompt into JSON.
#[must_use]
pub fn place_json(place: &PromptPlace<'_>) -> Value {
    let spans = place.spans.iter().map(|span| {
        json!({
            "start": span.bytes.start,
            "end": span.bytes.end,
            "stability": span.stability.word(),
            "source": SourceShape::new(&span.source),
            "template": span.template.as_ref().map(SourceShape::new),
            "included_from": span.included_from.iter().map(SourceShape::new).collect::<Vec<_>>(),
        })
    });
    json!({
        "carrier": place.carrier.word(),
        "start": place.bytes.start,
        "end": place.bytes.end,
        "line": place.line,
        "section": place.section,
        "frozen": place.is_frozen,
        "spans": spans.collect::<Vec<_>>(),
    })
}

/// One side of a comparison.
#[derive(Debug, Clone)]
pub enum Side {
    /// A prompt of this process.
    Prompt(Box<Prompt>),
    /// The JSON of a prompt that was saved, as [`Prompt::to_json`] returns it.
    Saved(String),
}

impl Side {
    fn snapshot(&self, name: &str) -> Result<Snapshot, Failure> {
        match self {
            Self::Prompt(prompt) => Ok(prompt.snapshot(name)),
            Self::Saved(json) => Snapshot::read(name, json).map_err(|error| {
                Failure::bad_request(format!("`{name}` is not a saved prompt: {error}"))
                    .with_hint("give a prompt, or the JSON of one")
            }),
        }
    }
}

/// Compares two prompts, as JSON: that of `proem diff --format json`. With a provider, for its cache.
pub fn diff(a: &Side, b: &Side, model: Option<&str>, provider: Option<&str>) -> Result<String, Failure> {
    let (a, b) = (a.snapshot("a")?, b.snapshot("b")?);
    let name = model.map(str::to_owned).or_else(|| b.model.clone()).or_else(|| a.model.clone());
    let request = Request { model: name.clone(), ..Request::default() };
    let models = Models::load(&request, Caller::User)?;
    let model = name.as_deref().and_then(|name| models.find(name));
    let layout = match provider {
        None => Layout::default(),
        Some(name) => Layout::for_provider(name, model, &models)?,
    };
    let comparison = compare_in(&a, &b, model.map_or(Tokenizer::Estimate, Model::tokenizer), layout);
    let lost = lost(&comparison, model);
    let shape = ComparisonShape::new((&a.name, &b.name), &comparison, &lost, name.as_deref(), &models.as_of);
    Ok(serde_json::to_string(&shape.with_provider(provider))?)
}

/// Shows what each agent reads in a directory, as JSON: that of `proem compat --format json`. All agents if none is named.
pub fn compat(request: &str, agents: &[String]) -> Result<String, Failure> {
    let request = Request::from_json(request)?;
    Ok(serde_json::to_string(&CompatShape::new(&look(&request, agents, Caller::User)?))?)
}
