//! Signatures: decide whether a running session may be used for a request.

use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use proem_core::frozen::Frozen;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::request::canonical_json::canonical_json;
use crate::request::{Request, Tool};

/// The properties that a session was started with. Two requests may share a session only if all of them are equal; text
/// carried by `first_user` and `turn` is not included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Signature {
    /// The working directory.
    pub cwd: String,
    /// The backend, if one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The SHA-256 of the system carrier's frozen text, as it is delivered.
    pub system: String,
    /// The SHA-256 of the developer carrier's text.
    pub developer: String,
    /// The SHA-256 of backend, settings, tools and servers in canonical form.
    pub configuration: String,
}

impl Signature {
    /// Computes the signature of a prompt and its request; `cwd` is the directory as it was opened.
    #[must_use]
    pub fn new(request: &Request, frozen: &Frozen, cwd: &str) -> Self {
        let digest = |text: &str| Digest::new(text.as_bytes()).hex();
        Self {
            cwd: cwd.to_owned(),
            backend: request.backend.clone(),
            system: frozen.digest().hex(),
            developer: digest(frozen.body().text(Carrier::Developer).unwrap_or_default()),
            configuration: digest(&canonical_json(&configuration(request, frozen.profile()))),
        }
    }

    /// Returns the fields in which two signatures differ.
    ///
    /// ```
    /// use proem::{Caller, Request};
    ///
    /// let build = |text: &str| proem::build(&Request::from_json(text)?, Caller::User);
    /// let a = build(r#"{"profile": "engraving", "cwd": "/", "backend": "codex", "system": "Be calm."}"#)?;
    /// let b = build(r#"{"profile": "engraving", "cwd": "/", "backend": "codex", "system": "Be quick."}"#)?;
    /// assert_eq!(a.signature().differences(b.signature()), ["system"]);
    /// # Ok::<(), proem::Error>(())
    /// ```
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let fields = [
            ("cwd", self.cwd == other.cwd),
            ("backend", self.backend == other.backend),
            ("system", self.system == other.system),
            ("developer", self.developer == other.developer),
            ("configuration", self.configuration == other.configuration),
        ];
        fields.into_iter().filter(|(_, is_equal)| !is_equal).map(|(field, _)| field).collect()
    }
}

/// Returns the settings of a session in canonical order.
fn configuration(request: &Request, profile: &str) -> Value {
    let mut servers = request.mcp_servers.clone().unwrap_or_default();
    servers.sort();
    let mut tools: Vec<&Tool> = request.tools.iter().flatten().collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let tool = |tool: &&Tool| {
        json!({
            "name": tool.name,
            "snippet": tool.snippet,
            "guidelines": tool.guidelines,
            "description": tool.description,
            "input_schema": tool.input_schema,
        })
    };
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    let settings = json!({
        "profile": profile,
        "model": request.model,
        "language": request.language,
        "workspace_id": request.workspace_id,
    });
    json!({ "backend": request.backend, "settings": settings, "tools": tools, "mcp_servers": servers })
}
