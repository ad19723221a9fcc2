//! The operations of the pages about costs and causes.

use schemars::SchemaGenerator;
use serde_json::json;

use super::{Operation, operation, reference};
use crate::shapes::insight::{HealthAnswer, SourcesAnswer, WhatIfAnswer, WhatIfBody};

/// Returns the routes of events, health, sources and simulations.
pub(super) fn insight_operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    vec![
        Operation {
            answer: Some(reference::<HealthAnswer>(generator)),
            errors: &[503],
            ..operation(
                "get",
                "/health",
                "The state of the server: prices and their day, store, work, latency",
            )
        },
        Operation {
            query: &[("conversation", "string", "Only events of this conversation, and of the template")],
            answer: Some(json!({ "type": "string" })),
            media: "text/event-stream",
            errors: &[503],
            ..operation(
                "get",
                "/events",
                "Server-sent events: `hello`, `epoch`, `call`, `template`, `removed` and `store`",
            )
        },
        Operation {
            query: &[
                ("cwd", "string", "The working directory"),
                ("profile", "string", "The profile of the prompt"),
                ("model", "string", "The model, for prices and tokens"),
            ],
            answer: Some(reference::<SourcesAnswer>(generator)),
            errors: &[404, 422, 503],
            ..operation(
                "get",
                "/sources",
                "Everything that takes part in the prompts of a directory, with its cost and its readers",
            )
        },
        Operation {
            body: Some(reference::<WhatIfBody>(generator)),
            answer: Some(reference::<WhatIfAnswer>(generator)),
            errors: &[403, 404, 413, 422, 503],
            ..operation(
                "post",
                "/conversations/{id}/simulate",
                "Simulate a conversation as it is, and with another model, template or layout",
            )
        },
    ]
}
