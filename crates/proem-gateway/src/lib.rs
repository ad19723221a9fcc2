//! A reverse proxy for the calls of agents to their providers.
//!
//! Every byte of requests and responses passes as it came and at once; only `Host`, the path's first segment and headers of
//! a single connection change. A copy goes to an analysis, which finds out why a call missed the provider's cache. The
//! analysis never delays or changes the traffic: what it cannot keep up with is dropped and counted.
//!
//! Credentials pass through and are never kept: a call knows its account as a keyed digest.

mod analysis;
mod answer;
mod connect;
mod connection;
mod framing;
mod gateway;
mod guard;
mod head;
mod http2;
mod launch;
mod observe;
mod relay;
mod routes;
mod tap;

pub use analysis::{Analysis, CallJudge, CallReceiver, ObservedCall};
pub use gateway::{Gateway, GatewayListeners, GatewayOptions, raise_descriptor_limit, serve};
pub use guard::GatewayToken;
pub use launch::{Agent, LaunchError, LaunchPlan, Surroundings, agents_as_of};
pub use routes::{BadUpstream, Routes, Upstream};
pub use tap::Counters;
