//! The state of the server for people: prices with their day, workspaces, store, work, latency, version.

use axum::Json;
use axum::extract::State;
use proem::models::{Model, Models};
use proem::{Caller, Request};
use proem_core::limit::{EVENT_STREAMS_MAX, REQUESTS_WAITING_MAX};

use crate::app::App;
use crate::error::ApiError;
use crate::routes::Shared;
use crate::shapes::insight::{HealthAnswer, ModelPrice, StoreHealth, WorkHealth};

/// Returns the state of the server.
pub(in crate::routes) async fn health(State(app): Shared) -> Result<Json<HealthAnswer>, ApiError> {
    // The store may fail: that is a part of the answer.
    let answer = app.work(App::health).await?;
    Ok(Json(answer))
}

impl App {
    fn health(&self) -> Result<HealthAnswer, ApiError> {
        let models = Models::load(&Request::default(), Caller::REMOTE)?;
        let failure = self.store().template_heads(None, 1).err();
        let (latency, requests) = self.metrics.latency();
        Ok(HealthAnswer {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: self.started.elapsed().as_secs(),
            store: StoreHealth {
                place: self.store().describe(),
                answers: failure.is_none(),
                problem: failure.map(|error| error.to_string()),
            },
            workspaces: self.options.workspaces.iter().map(|path| path.display().to_string()).collect(),
            prices_as_of: models.as_of.clone(),
            rules_as_of: proem::traffic::rules_as_of().to_owned(),
            models: models.names().into_iter().filter_map(|name| models.find(name)).map(price).collect(),
            requests,
            latency,
            work: WorkHealth {
                running: self.work_running(),
                running_max: self.options.work_max,
                waiting: self.work_waiting(),
                waiting_max: REQUESTS_WAITING_MAX,
                streams: EVENT_STREAMS_MAX.saturating_sub(self.event_streams.available_permits()),
                streams_max: EVENT_STREAMS_MAX,
            },
        })
    }
}

fn price(model: &Model) -> ModelPrice {
    let Model { name, vendor, input, cache_read, cache_write, cache_write_1h, output, min_tokens, .. } =
        model.clone();
    ModelPrice { name, vendor, input, cache_read, cache_write, cache_write_1h, output, min_tokens }
}
