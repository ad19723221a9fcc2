//! The operations of proem on JSON text, and the shapes of their answers.
//!
//! The server answers with these shapes, and the packages for Python and Node call these operations: the same request gets
//! the same answer through each of them.
//!
//! ```
//! use proem_api::{Conversation, Store, turn_json};
//!
//! let store = Store::open("memory:")?;
//! let conversation = Conversation::new(&store, "c-1", r#"{"profile": "template", "system": "Be brief."}"#)?;
//! let turn = conversation.turn(r#"{"prompt": "Hello"}"#)?;
//! assert!(turn_json(&turn)?.contains("Be brief."));
//! # Ok::<(), proem_api::Failure>(())
//! ```

mod check;
mod comparison;
mod conversation;
mod epoch;
mod failure;
mod fields;
mod hook;
mod prompt;
mod report;
mod shapes;
mod sqlite_calls;
mod store;

pub use check::{CheckCounts, CheckOptions, check, check_json};
pub use conversation::{Conversation, messages_json, turn_json};
pub use epoch::EpochAnswer;
pub use failure::{Failure, FailurePlace};
pub use hook::Callable;
pub use prompt::{Prompt, Side, compat, diff, place_json, why_json};
pub use report::{LinesError, ReadCalls, ReportOptions, calls_of_lines, calls_of_places, report};
pub use shapes::{
    CarrierDiff, ChangeAnswer, ConversationAnswer, ConversationShape, ConversationsAnswer, DiffAnswer,
    EpochShape, PlanSection, PlanShape, PricesShape, carriers,
};
pub use store::{Store, Warning};
