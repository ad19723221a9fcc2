//! The description of the API, made from the shapes that the routes use.

use proem::Request;
use proem::build_shape::VERSION;
use proem::deliver::ProviderName;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::shapes::{
    CallsAnswer, ChangeAnswer, CompactionAnswer, ConversationAnswer, ConversationsAnswer, DiffAnswer,
    EditorAnswer, EpochAnswer, FilesAnswer, PreviewAnswer, TemplateAnswer, TemplateBody, TurnAnswer,
    ValuesAnswer, VariablesAnswer, VersionShape, VersionsAnswer,
};

/// One operation.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    query: &'static [(&'static str, &'static str, &'static str)],
    body: Option<Value>,
    /// The shape of the answer; none for an answer without a body.
    answer: Option<Value>,
    /// What the answer is written in.
    media: &'static str,
    /// Statuses of errors besides those that every route has.
    errors: &'static [u16],
}

/// The description as JSON, by OpenAPI 3.1.
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

/// The names of the providers, for descriptions.
fn providers() -> String {
    ProviderName::all().map(|name| name.word).collect::<Vec<_>>().join(", ")
}

/// A request with a provider beside it.
fn turn_body(generator: &mut SchemaGenerator) -> Value {
    let mut schema = Request::json_schema(generator).to_value();
    schema["properties"]["provider"] = json!({
        "description": format!("The provider whose request parts are wanted: {}.", providers()),
        "type": ["string", "null"],
    });
    schema
}

/// What the query of a route that can also plan may say.
const PLAN: &[(&str, &str, &str)] = &[("plan", "boolean", "Only say what would change")];

fn operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let mut operations = of_probes();
    operations.extend(of_template(generator));
    operations.extend(of_editor(generator));
    operations.extend(of_conversations(generator));
    operations.extend(of_evidence(generator));
    operations.extend(of_compaction(generator));
    operations
}

/// An operation that takes and gives nothing.
const fn of(method: &'static str, path: &'static str, summary: &'static str) -> Operation {
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

/// For those who watch the server, and sessions of browsers.
fn of_probes() -> Vec<Operation> {
    let any = json!({ "type": "object" });
    vec![
        Operation { answer: Some(any.clone()), ..of("get", "/healthz", "Whether the process lives") },
        Operation {
            answer: Some(any.clone()),
            errors: &[503],
            ..of("get", "/readyz", "Whether the store answers and takes writes")
        },
        Operation {
            answer: Some(json!({ "type": "string" })),
            media: "text/plain",
            ..of("get", "/metrics", "Numbers for Prometheus")
        },
        Operation { answer: Some(any), ..of("get", "/openapi.json", "This description") },
        of("post", "/session", "Give a browser a cookie for the token that it shows"),
        of("delete", "/session", "Take that cookie back"),
    ]
}

/// What an editor asks.
fn of_editor(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let request = reference::<Request>(generator);
    vec![
        Operation {
            query: &[("cwd", "string", "The working directory")],
            answer: Some(reference::<EditorAnswer>(generator)),
            errors: &[422, 503],
            ..of("get", "/editor", "What there is to choose from")
        },
        Operation {
            query: &[
                ("cwd", "string", "The working directory"),
                ("as", "string", "Agents, separated by commas; all of them when there is none"),
            ],
            answer: Some(reference::<proem::compat::CompatShape>(generator)),
            errors: &[422, 503],
            ..of("get", "/compat", "What each agent would see in a directory")
        },
        Operation {
            query: &[("dir", "string", "A directory of a workspace")],
            answer: Some(reference::<FilesAnswer>(generator)),
            errors: &[503],
            ..of("get", "/files", "What lies in a directory of a workspace")
        },
        Operation {
            body: Some(request.clone()),
            answer: Some(reference::<PreviewAnswer<'static>>(generator)),
            errors: &[413, 422, 503],
            ..of("post", "/preview", "Build a prompt and store nothing")
        },
        Operation {
            body: Some(request),
            answer: Some(reference::<ValuesAnswer>(generator)),
            errors: &[413, 422, 503],
            ..of("post", "/preview/variables", "Every variable with its value, where a request works")
        },
    ]
}

/// The template and its versions.
fn of_template(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let template = reference::<TemplateAnswer>(generator);
    vec![
        Operation {
            answer: Some(template.clone()),
            errors: &[503],
            ..of("get", "/system-prompt", "The current template")
        },
        Operation {
            body: Some(reference::<TemplateBody>(generator)),
            answer: Some(template.clone()),
            errors: &[409, 413, 503],
            ..of("put", "/system-prompt", "Store a new version of the template")
        },
        Operation {
            answer: Some(reference::<VariablesAnswer>(generator)),
            ..of("get", "/system-prompt/variables", "The variables that templates may name")
        },
        Operation {
            query: &[
                ("before", "integer", "Only versions below this one"),
                ("limit", "integer", "At most so many"),
                ("text", "boolean", "Whether with their texts"),
            ],
            answer: Some(reference::<VersionsAnswer>(generator)),
            errors: &[503],
            ..of("get", "/system-prompt/versions", "Versions of the template, the newest first")
        },
        Operation {
            answer: Some(template),
            errors: &[404, 503],
            ..of(
                "post",
                "/system-prompt/versions/{version}/restore",
                "Make an earlier version the current one",
            )
        },
        Operation {
            answer: Some(reference::<VersionShape>(generator)),
            errors: &[404, 503],
            ..of("get", "/system-prompt/versions/{version}", "One version of the template")
        },
    ]
}

/// Conversations and their epochs.
fn of_conversations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let change = reference::<ChangeAnswer>(generator);
    let request = reference::<Request>(generator);
    let tool = reference::<proem::Tool>(generator);
    let tools = json!({
        "type": "object",
        "properties": { "tools": { "type": "array", "items": tool } },
        "required": ["tools"],
        "additionalProperties": false,
    });
    vec![
        Operation {
            query: &[
                ("search", "string", "A part of the name or of the working directory"),
                ("after", "string", "Behind this place, which a page before gave"),
                ("limit", "integer", "At most so many"),
            ],
            answer: Some(reference::<ConversationsAnswer>(generator)),
            errors: &[503],
            ..of("get", "/conversations", "Conversations, the one with the newest epoch first")
        },
        Operation {
            answer: Some(reference::<ConversationAnswer>(generator)),
            errors: &[404, 503],
            ..of("get", "/conversations/{id}", "A conversation: its frozen prompt and its epochs")
        },
        Operation { errors: &[404, 503], ..of("delete", "/conversations/{id}", "Forget a conversation") },
        Operation {
            body: Some(turn_body(generator)),
            answer: Some(reference::<TurnAnswer>(generator)),
            errors: &[403, 413, 422, 503],
            ..of(
                "post",
                "/conversations/{id}/turn",
                "What a turn needs; the first one builds and keeps the prompt",
            )
        },
        Operation {
            query: PLAN,
            body: Some(request.clone()),
            answer: Some(change.clone()),
            errors: &[403, 404, 409, 413, 422, 503],
            ..of("post", "/conversations/{id}/reload", "Rebuild the prompt from what is there now")
        },
        Operation {
            query: PLAN,
            body: Some(tools),
            answer: Some(change),
            errors: &[404, 409, 413, 422, 503],
            ..of("put", "/conversations/{id}/tools", "Give a conversation other tools")
        },
    ]
}

/// What is known about a conversation's prompts and calls.
fn of_evidence(generator: &mut SchemaGenerator) -> Vec<Operation> {
    vec![
        Operation {
            answer: Some(reference::<ChangeAnswer>(generator)),
            errors: &[404, 422, 503],
            ..of("get", "/conversations/{id}/drift", "The frozen prompt against what would be built now")
        },
        Operation {
            answer: Some(reference::<CallsAnswer>(generator)),
            errors: &[404, 503],
            ..of(
                "get",
                "/conversations/{id}/calls",
                "What providers said about calls, and whose doing a miss is",
            )
        },
        Operation {
            body: Some(json!({ "type": "object" })),
            answer: Some(reference::<proem::evidence::Judged>(generator)),
            errors: &[404, 413, 503],
            ..of("post", "/conversations/{id}/calls", "Keep what a provider said about a call, and judge it")
        },
        Operation {
            query: &[("provider", "string", "The provider whose request parts are wanted")],
            answer: Some(reference::<EpochAnswer<'static>>(generator)),
            errors: &[404, 422, 503],
            ..of("get", "/conversations/{id}/epochs/{number}", "One epoch, with the origin of every byte")
        },
        Operation {
            query: &[("from", "integer", "The earlier epoch"), ("to", "integer", "The later epoch")],
            answer: Some(reference::<DiffAnswer>(generator)),
            errors: &[404, 503],
            ..of("get", "/conversations/{id}/diff", "Two epochs against each other")
        },
    ]
}

/// Compaction in two steps.
fn of_compaction(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let change = reference::<ChangeAnswer>(generator);
    let request = reference::<Request>(generator);
    vec![
        Operation {
            query: &[("commit", "boolean", "Also end it, in one call")],
            body: Some(request),
            answer: Some(reference::<CompactionAnswer>(generator)),
            errors: &[403, 404, 409, 413, 422, 503],
            ..of("post", "/conversations/{id}/compaction", "Begin a compaction")
        },
        Operation {
            answer: Some(change),
            errors: &[404, 409, 422, 503],
            ..of(
                "post",
                "/conversations/{id}/compaction/{token}/commit",
                "Open the epoch behind a compaction",
            )
        },
        Operation {
            errors: &[404, 503],
            ..of("delete", "/conversations/{id}/compaction/{token}", "End a compaction without an epoch")
        },
    ]
}

fn describe(operation: &Operation, error: &Value) -> Value {
    let in_path = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path.map(path_parameter).collect();
    for (name, kind, description) in operation.query {
        let is_required = matches!(*name, "from" | "to" | "dir");
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

/// What may come back: the answer, the errors of every route, and those of this one.
fn responses(operation: &Operation, error: &Value) -> Map<String, Value> {
    let mut responses: Map<String, Value> = Map::new();
    match &operation.answer {
        Some(answer) => responses.insert(
            "200".into(),
            json!({ "description": "Done", "content": { operation.media: { "schema": answer } } }),
        ),
        None => responses.insert("204".into(), json!({ "description": "Done" })),
    };
    if operation.path == "/conversations/{id}" && operation.method == "get" {
        responses.insert("304".into(), json!({ "description": "As the caller knows it" }));
    }
    if operation.path.ends_with("/turn") {
        let digest = json!({ "type": "string", "pattern": "^\"[0-9a-f]{64}\"$" });
        responses["200"]["headers"] =
            json!({ "ETag": { "description": "The digest", "required": true, "schema": digest } });
    }
    for status in [400, 401, 403, 405, 408, 415, 421, 500].iter().chain(operation.errors) {
        let content = json!({ "application/json": { "schema": error } });
        let mut response = json!({ "description": "Not done", "content": content });
        if *status == 503 {
            let seconds = json!({ "type": "integer", "minimum": 0 });
            response["headers"] =
                json!({ "Retry-After": { "description": "Seconds", "required": true, "schema": seconds } });
        }
        responses.insert(status.to_string(), response);
    }
    responses
}

fn path_parameter(name: &str) -> Value {
    let schema = match name {
        "id" => json!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$" }),
        "version" | "number" => json!({ "type": "integer", "minimum": 1 }),
        _ => json!({ "type": "string" }),
    };
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}
