//! Serves frozen prompts over HTTP. The first turn of a conversation builds and stores its prompt; later turns get the
//! same bytes, from any server that uses the same store.

mod app;
mod connections;
mod error;
mod front;
mod guard;
mod listen;
mod log;
mod metrics;
mod openapi;
mod request_target;
mod room;
mod routes;
mod session;
mod shapes;
mod telemetry;
mod write_health;

pub use app::{App, Options};
pub use connections::ConnectionLimits;
pub use guard::Token;
pub use listen::{Listeners, serve};
pub use log::{Level as LogLevel, line as log_line};
pub use openapi::document;
pub use request_target::PublicUrl;
pub use telemetry::{Telemetry, TelemetryError};
