//! The operations of the calls of agents.

use proem::conversation::{RecordedCall, UsageReport};
use schemars::SchemaGenerator;
use serde_json::json;

use super::{Operation, operation, reference};
use crate::shapes::{CallsPage, RecordedAnswer};

/// The times of queries.
const SINCE: (&str, &str, &str) = (
    "since",
    "string",
    "The earliest time: RFC 3339, a day, milliseconds since 1970, or a duration such as `7d`",
);
const UNTIL: (&str, &str, &str) = ("until", "string", "The time before which calls were made");

/// Returns the routes of the calls of agents.
pub(super) fn traffic_operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let call = reference::<RecordedCall>(generator);
    let any = json!({ "type": "object" });
    vec![
        Operation {
            query: &[
                ("conversation", "string", "The id of the conversation, or the session in it"),
                SINCE,
                UNTIL,
                ("verdict", "string", "Verdicts, separated by commas"),
                ("model", "string", "The model"),
                ("cwd", "string", "The working directory"),
                ("owner", "string", "The kind of the owner of the change"),
                ("alarming", "boolean", "Only misses that a report shows unasked, or only others"),
                ("after", "string", "The `next` of the previous page"),
                ("limit", "integer", "Maximum number of calls"),
            ],
            answer: Some(reference::<CallsPage>(generator)),
            errors: &[503],
            ..operation("get", "/calls", "Calls of agents with their verdicts, the newest first")
        },
        Operation {
            body: Some(any.clone()),
            answer: Some(reference::<RecordedAnswer>(generator)),
            errors: &[413, 503],
            ..operation(
                "post",
                "/calls",
                "Record calls: one object, a list, or JSON lines, as `proem report` reads them",
            )
        },
        Operation {
            answer: Some(call),
            errors: &[404, 503],
            ..operation("get", "/calls/{id}", "One call with its verdict")
        },
        Operation {
            query: &[
                SINCE,
                UNTIL,
                ("by", "string", "`day` (the default), `model`, `cwd`, `profile`, `version` or `owner`"),
            ],
            answer: Some(reference::<UsageReport>(generator)),
            errors: &[503],
            ..operation("get", "/usage", "Sums of calls: tokens, money, and losses; of 30 days by default")
        },
        Operation {
            body: Some(any.clone()),
            answer: Some(any),
            errors: &[413, 503],
            ..operation("post", "/v1/logs", "Record the calls of telemetry events: logs of OTLP as JSON")
        },
    ]
}
