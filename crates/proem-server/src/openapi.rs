//! The OpenAPI description, generated from the shapes that the routes use.

mod insight;
mod traffic;

use proem::Request;
use proem::build_shape::VERSION;
use proem::deliver::ProviderName;
use proem::turn_shape::{CompactionShape, TurnShape};
use proem_store::BranchShape;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::openapi::insight::insight_operations;
use crate::openapi::traffic::traffic_operations;
use crate::shapes::{
    CallsAnswer, ChangeAnswer, ConversationAnswer, ConversationsAnswer, DiffAnswer, EditorAnswer,
    EpochAnswer, FilesAnswer, LabelBody, PreviewAnswer, TemplateAnswer, TemplateBody, ValuesAnswer,
    VariablesAnswer, VersionShape, VersionsAnswer, WorkspaceAnswer,
};

/// A method of a path.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    query: &'static [(&'static str, &'static str, &'static str)],
    body: Option<Value>,
    /// The shape of the answer; `None` for an answer without a body.
    answer: Option<Value>,
    /// The media type of the answer.
    media: &'static str,
    /// Error statuses besides those of every route.
    errors: &'static [u16],
}

/// Returns the description of the API, as JSON of OpenAPI 3.1.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let error = reference::<ApiError>(&mut generator);
    let operations = operations(&mut generator);
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let entry = paths.entry(operation.path.to_owned()).or_insert_with(|| json!({}));
        entry[operation.method] = describe(&operation, &error);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "proem",
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!("Frozen system prompts for conversations. Shapes of version {VERSION}."),
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{}, { "token": [] }],
    })
}

fn reference<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// Returns the names of the providers, for descriptions.
fn providers() -> String {
    ProviderName::all().map(|name| name.word).collect::<Vec<_>>().join(", ")
}

/// Returns the schema of a request to a conversation, in which `null` removes a field.
fn update_body(generator: &mut SchemaGenerator) -> Value {
    let mut schema = Request::json_schema(generator).to_value();
    for field in ["variables", "host"] {
        let given = schema["properties"][field].take();
        schema["properties"][field] = json!({ "anyOf": [given, { "type": "null" }] });
    }
    schema["properties"]["provider"]["description"] =
        format!("For a turn or a compaction: the provider for which a payload is returned: {}.", providers())
            .into();
    schema
}

/// The query of a route that can also plan.
const PLAN: &[(&str, &str, &str)] = &[("plan", "boolean", "Return the changes without making them")];

/// The query of a reload.
const RELOAD: &[(&str, &str, &str)] = &[
    ("plan", "boolean", "Return the changes without making them"),
    ("only", "string", "`skills`: search for skills again, and keep other files as they were read"),
];

fn operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let mut operations = probe_operations();
    operations.extend(template_operations(generator));
    operations.extend(editor_operations(generator));
    operations.extend(workspace_operations(generator));
    operations.extend(conversation_operations(generator));
    operations.extend(branch_operations(generator));
    operations.extend(evidence_operations(generator));
    operations.extend(compaction_operations(generator));
    operations.extend(insight_operations(generator));
    operations.extend(traffic_operations(generator));
    operations
}

/// Returns an operation without query, bodies and errors of its own.
const fn operation(method: &'static str, path: &'static str, summary: &'static str) -> Operation {
    Operation {
        method,
        path,
        summary,
        query: &[],
        body: None,
        answer: None,
        media: "application/json",
        errors: &[],
    }
}

/// Returns the probes, the metrics, this description, and browser sessions.
fn probe_operations() -> Vec<Operation> {
    let any = json!({ "type": "object" });
    vec![
        Operation {
            answer: Some(any.clone()),
            ..operation("get", "/healthz", "Check that the process runs")
        },
        Operation {
            answer: Some(any.clone()),
            errors: &[503],
            ..operation("get", "/readyz", "Check that the store answers and accepts writes")
        },
        Operation {
            answer: Some(json!({ "type": "string" })),
            media: "text/plain",
            ..operation("get", "/metrics", "Metrics for Prometheus")
        },
        Operation { answer: Some(any), ..operation("get", "/openapi.json", "This description") },
        operation("post", "/session", "Set a session cookie, in exchange for the token"),
        operation("delete", "/session", "Remove the session cookie"),
    ]
}

/// Returns the routes of the web editor.
fn editor_operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let request = reference::<Request>(generator);
    vec![
        Operation {
            query: &[("cwd", "string", "The working directory")],
            answer: Some(reference::<EditorAnswer>(generator)),
            errors: &[422, 503],
            ..operation("get", "/editor", "Profiles, models, providers and limits that the editor offers")
        },
        Operation {
            query: &[
                ("cwd", "string", "The working directory"),
                ("as", "string", "Agents, separated by commas; all if it is missing"),
            ],
            answer: Some(reference::<proem::compat::CompatShape>(generator)),
            errors: &[422, 503],
            ..operation(
                "get",
                "/compat",
                "The instructions and skills that each agent would read in a directory",
            )
        },
        Operation {
            query: &[
                ("dir", "string", "A directory of a workspace; a search without it covers all workspaces"),
                ("search", "string", "Words that the path below it has: the answer has all levels"),
            ],
            answer: Some(reference::<FilesAnswer>(generator)),
            errors: &[503],
            ..operation("get", "/files", "The entries of a directory, or a search for files")
        },
        Operation {
            body: Some(request.clone()),
            answer: Some(reference::<PreviewAnswer<'static>>(generator)),
            errors: &[413, 422, 503],
            ..operation("post", "/preview", "Build a prompt without storing it")
        },
        Operation {
            body: Some(request),
            answer: Some(reference::<ValuesAnswer>(generator)),
            errors: &[413, 422, 503],
            ..operation(
                "post",
                "/preview/variables",
                "Every variable, with its value in the working directory of the request",
            )
        },
    ]
}

/// Returns the routes of the template and its versions.
fn template_operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let template = reference::<TemplateAnswer>(generator);
    vec![
        Operation {
            answer: Some(template.clone()),
            errors: &[422, 503],
            ..operation("get", "/system-prompt", "The current template")
        },
        Operation {
            body: Some(reference::<TemplateBody>(generator)),
            answer: Some(template.clone()),
            errors: &[409, 413, 503],
            ..operation("put", "/system-prompt", "Store a new version of the template")
        },
        Operation {
            answer: Some(reference::<VariablesAnswer>(generator)),
            ..operation("get", "/system-prompt/variables", "The variables that templates may use")
        },
        Operation {
            query: &[
                ("before", "integer", "Return only versions before this one"),
                ("limit", "integer", "Maximum number of versions"),
                ("text", "boolean", "Include the texts; true by default"),
            ],
            answer: Some(reference::<VersionsAnswer>(generator)),
            errors: &[503],
            ..operation("get", "/system-prompt/versions", "Versions of the template, newest first")
        },
        Operation {
            answer: Some(template),
            errors: &[404, 503],
            ..operation(
                "post",
                "/system-prompt/versions/{version}/restore",
                "Store an earlier version again, as the newest one",
            )
        },
        Operation {
            answer: Some(reference::<VersionShape>(generator)),
            errors: &[404, 503],
            ..operation("get", "/system-prompt/versions/{version}", "One version of the template")
        },
        Operation {
            body: Some(reference::<LabelBody>(generator)),
            answer: Some(reference::<VersionShape>(generator)),
            errors: &[404, 409, 413, 503],
            ..operation(
                "put",
                "/system-prompt/versions/{version}/label",
                "Make a version a draft, or a draft live",
            )
        },
    ]
}

/// Returns the operations on workspaces that clients send.
fn workspace_operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let git = reference::<proem::request::bundle::BundleGit>(generator);
    let files = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let workspace = json!({
        "type": "object",
        "properties": {
            "files": files,
            "git": { "anyOf": [git, { "type": "null" }] },
            "cwd": { "type": ["string", "null"] },
        },
        "required": ["files"],
        "additionalProperties": false,
    });
    vec![Operation {
        body: Some(workspace),
        answer: Some(reference::<WorkspaceAnswer>(generator)),
        errors: &[413, 503],
        ..operation(
            "post",
            "/workspaces",
            "Store the files of a workspace; requests refer to it by its digest",
        )
    }]
}

/// The parameters of the list of conversations.
const LIST: &[(&str, &str, &str)] = &[
    ("search", "string", "A part of the id or of the working directory"),
    ("kind", "string", "`proem`, or `observed` for conversations of which only the calls are known"),
    ("agent", "string", "The agent that made the calls"),
    ("model", "string", "The model"),
    ("cwd", "string", "The working directory"),
    ("since", "string", "The earliest activity: a time, a day, or a duration such as `7d`"),
    ("misses", "boolean", "Only conversations with a miss"),
    (
        "sort",
        "string",
        "`opened_at` (the default), `active_at`, `calls`, `read_ratio`, `usd`, `lost_usd`, `epoch` or `conversation`",
    ),
    ("order", "string", "`asc` or `desc`; the default depends on `sort`"),
    ("after", "string", "The `next` of the previous page"),
    ("limit", "integer", "Maximum number of conversations"),
];

/// Returns the routes of conversations.
fn conversation_operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let change = reference::<ChangeAnswer>(generator);
    let request = update_body(generator);
    let tool = reference::<proem::Tool>(generator);
    let tools = object("tools", &json!({ "type": "array", "items": tool }));
    vec![
        Operation {
            query: LIST,
            answer: Some(reference::<ConversationsAnswer>(generator)),
            errors: &[503],
            ..operation("get", "/conversations", "Conversations; the one with the newest epoch is first")
        },
        Operation {
            answer: Some(reference::<ConversationAnswer>(generator)),
            errors: &[404, 503],
            ..operation("get", "/conversations/{id}", "A conversation: its frozen prompt and its epochs")
        },
        Operation {
            errors: &[404, 503],
            ..operation("delete", "/conversations/{id}", "Delete a conversation")
        },
        Operation {
            body: Some(request.clone()),
            answer: Some(reference::<TurnShape<'static>>(generator)),
            errors: &[403, 413, 422, 503],
            ..operation(
                "post",
                "/conversations/{id}/turn",
                "Return the prompt of a turn; the first turn builds and stores it",
            )
        },
        Operation {
            query: RELOAD,
            body: Some(request),
            answer: Some(change.clone()),
            errors: &[403, 404, 409, 413, 422, 503],
            ..operation("post", "/conversations/{id}/reload", "Rebuild the prompt from the current files")
        },
        Operation {
            query: PLAN,
            body: Some(tools),
            answer: Some(change.clone()),
            errors: &[404, 409, 413, 422, 503],
            ..operation("put", "/conversations/{id}/tools", "Replace the tools of a conversation")
        },
        Operation {
            body: Some(object("names", &json!({ "type": "array", "items": { "type": "string" } }))),
            answer: Some(change.clone()),
            errors: &[404, 409, 413, 422, 503],
            ..operation("put", "/conversations/{id}/tools/active", "Set the active tools by name")
        },
        Operation {
            body: Some(object("profile", &json!({ "type": "string" }))),
            answer: Some(change.clone()),
            errors: &[404, 409, 413, 422, 503],
            ..operation("put", "/conversations/{id}/profile", "Go on with another profile")
        },
        Operation {
            body: Some(reference::<proem::hooks::ResourcePaths>(generator)),
            answer: Some(change),
            errors: &[404, 409, 413, 422, 503],
            ..operation("post", "/conversations/{id}/resources", "Add skills, packs and asset folders")
        },
    ]
}

/// Returns the routes by which a conversation begins from another one.
fn branch_operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let answer = reference::<BranchShape>(generator);
    let text = json!({ "type": "string" });
    let fork = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "The id of the fork." },
            "role": {
                "type": ["string", "null"],
                "description": "The role of the fork, delivered before its first prompt.",
            },
        },
        "required": ["id"],
        "additionalProperties": false,
    });
    let spawn = json!({
        "description": "The id and the profile of the child, and other fields of its request.",
        "type": "object",
        "properties": { "id": text, "profile": text },
        "required": ["id", "profile"],
    });
    vec![
        Operation {
            body: Some(fork),
            answer: Some(answer.clone()),
            errors: &[404, 409, 413, 422, 503],
            ..operation(
                "post",
                "/conversations/{id}/fork",
                "Begin a conversation with the prompt of this one",
            )
        },
        Operation {
            body: Some(spawn),
            answer: Some(answer),
            errors: &[404, 409, 413, 422, 503],
            ..operation("post", "/conversations/{id}/spawn", "Begin a conversation with a prompt of its own")
        },
    ]
}

/// Returns the schema of an object with one field.
fn object(field: &str, schema: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { field: schema },
        "required": [field],
        "additionalProperties": false,
    })
}

/// Returns the routes of a conversation's epochs and calls.
fn evidence_operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    vec![
        Operation {
            answer: Some(reference::<ChangeAnswer>(generator)),
            errors: &[404, 422, 503],
            ..operation(
                "get",
                "/conversations/{id}/drift",
                "Compare the frozen prompt with the one that would be built now",
            )
        },
        Operation {
            answer: Some(reference::<CallsAnswer>(generator)),
            errors: &[404, 503],
            ..operation("get", "/conversations/{id}/calls", "Reported calls, with the causes of cache misses")
        },
        Operation {
            body: Some(json!({ "type": "object" })),
            answer: Some(reference::<proem::evidence::JudgedCall>(generator)),
            errors: &[404, 413, 503],
            ..operation(
                "post",
                "/conversations/{id}/calls",
                "Report the usage of a call, and return a verdict on its cache",
            )
        },
        Operation {
            query: &[("provider", "string", "The provider for which a payload is returned")],
            answer: Some(reference::<EpochAnswer<'static>>(generator)),
            errors: &[404, 422, 503],
            ..operation(
                "get",
                "/conversations/{id}/epochs/{number}",
                "One epoch, with the source of every byte",
            )
        },
        Operation {
            query: &[("from", "integer", "The earlier epoch"), ("to", "integer", "The later epoch")],
            answer: Some(reference::<DiffAnswer>(generator)),
            errors: &[404, 503],
            ..operation("get", "/conversations/{id}/diff", "Compare two epochs")
        },
    ]
}

/// Returns the routes of compaction.
fn compaction_operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let change = reference::<ChangeAnswer>(generator);
    let request = update_body(generator);
    vec![
        Operation {
            query: &[("commit", "boolean", "Also commit it, in one call")],
            body: Some(request),
            answer: Some(reference::<CompactionShape>(generator)),
            errors: &[403, 404, 409, 413, 422, 503],
            ..operation("post", "/conversations/{id}/compaction", "Begin a compaction")
        },
        Operation {
            answer: Some(change),
            errors: &[404, 409, 422, 503],
            ..operation(
                "post",
                "/conversations/{id}/compaction/{token}/commit",
                "Open the epoch after a compaction",
            )
        },
        Operation {
            errors: &[404, 503],
            ..operation(
                "delete",
                "/conversations/{id}/compaction/{token}",
                "End a compaction without a new epoch",
            )
        },
    ]
}

fn describe(operation: &Operation, error: &Value) -> Value {
    let in_path = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path.map(|name| path_parameter(name, operation.path)).collect();
    for (name, kind, description) in operation.query {
        let is_required = matches!(*name, "from" | "to");
        let schema = match *kind {
            "integer" => json!({ "type": "integer", "minimum": 0 }),
            kind => json!({ "type": kind }),
        };
        parameters.push(json!({ "name": name, "in": "query", "required": is_required, "description": description, "schema": schema }));
    }
    let mut described = json!({ "summary": operation.summary, "responses": responses(operation, error) });
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some(body) = &operation.body {
        let is_required = matches!(operation.method, "put");
        described["requestBody"] =
            json!({ "required": is_required, "content": { "application/json": { "schema": body } } });
    }
    described
}

/// Returns the responses: the answer, the errors of every route, and those of this one.
fn responses(operation: &Operation, error: &Value) -> Map<String, Value> {
    let mut responses: Map<String, Value> = Map::new();
    match &operation.answer {
        Some(answer) => responses.insert(
            "200".into(),
            json!({ "description": "Success", "content": { operation.media: { "schema": answer } } }),
        ),
        None => responses.insert("204".into(), json!({ "description": "Success" })),
    };
    if operation.path == "/conversations/{id}" && operation.method == "get" {
        responses
            .insert("304".into(), json!({ "description": "Not changed since the answer with this `ETag`" }));
    }
    if operation.path.ends_with("/turn") {
        let digest = json!({ "type": "string", "pattern": "^\"[0-9a-f]{64}\"$" });
        responses["200"]["headers"] = json!({ "ETag": { "description": "The digest of the prefix", "required": true, "schema": digest } });
    }
    for status in [400, 401, 403, 405, 408, 415, 421, 500].iter().chain(operation.errors) {
        let content = json!({ "application/json": { "schema": error } });
        let mut response = json!({ "description": "Error", "content": content });
        if *status == 503 {
            let seconds = json!({ "type": "integer", "minimum": 0 });
            response["headers"] =
                json!({ "Retry-After": { "description": "Seconds", "required": true, "schema": seconds } });
        }
        responses.insert(status.to_string(), response);
    }
    responses
}

fn path_parameter(name: &str, path: &str) -> Value {
    let schema = match name {
        "id" if path.starts_with("/calls") => json!({ "type": "string" }),
        "id" => json!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$" }),
        "version" | "number" => json!({ "type": "integer", "minimum": 1 }),
        _ => json!({ "type": "string" }),
    };
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}
