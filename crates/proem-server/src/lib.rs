//! Serves frozen prompts over HTTP: the first turn of a conversation builds and keeps its prompt, later ones get
//! the same bytes, from whichever of several servers on one store they ask.

mod app;
mod error;
mod front;
mod guard;
mod listen;
mod log;
mod metrics;
mod openapi;
mod outside;
mod places;
mod room;
mod routes;
mod session;
mod shapes;
mod telemetry;
mod writes;

pub use app::{App, Options};
pub use guard::Token;
pub use listen::{Listening, serve};
pub use log::line as log_line;
pub use openapi::document;
pub use outside::PublicUrl;
pub use places::Connections;
pub use telemetry::{Telemetry, TelemetryError};
