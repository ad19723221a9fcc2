//! The price of a call, and of the tokens that it did not read.

use crate::inspect::traffic::call::CallUsage;
use crate::settings::models::Model;

#[expect(clippy::cast_precision_loss, reason = "a call has less than 2^52 tokens")]
const fn millions(tokens: u64) -> f64 {
    tokens as f64 / 1e6
}

/// Prices per million tokens.
struct Prices {
    input: f64,
    read: f64,
    write: f64,
    write_1h: f64,
}

impl Prices {
    fn of(model: &Model) -> Option<Self> {
        let input = model.input?;
        let write = model.cache_write.unwrap_or(input);
        let (read, write_1h) = (model.cache_read.unwrap_or(input), model.cache_write_1h.unwrap_or(write));
        Some(Self { input, read, write, write_1h })
    }
}

/// Returns the price of a call in USD.
pub(in crate::inspect::traffic) fn price(usage: &CallUsage, model: Option<&Model>) -> Option<f64> {
    let prices = Prices::of(model?)?;
    usage.input()?;
    let written = usage.written.unwrap_or(0);
    let hour = usage.written_1h.unwrap_or(0).min(written);
    let output = model?.output.unwrap_or(0.0) * millions(usage.output.unwrap_or(0));
    Some(
        prices.input * millions(usage.uncached.unwrap_or(0))
            + prices.read * millions(usage.read.unwrap_or(0))
            + prices.write * millions(written - hour)
            + prices.write_1h * millions(hour)
            + output,
    )
}

/// Returns the price of a call without a cache, less its price: negative if writing cost more than reading saved.
pub(in crate::inspect::traffic) fn saved(usage: &CallUsage, model: Option<&Model>) -> Option<f64> {
    let (prices, price) = (Prices::of(model?)?, price(usage, model)?);
    let output = model?.output.unwrap_or(0.0) * millions(usage.output.unwrap_or(0));
    Some(prices.input * millions(usage.input()?) + output - price)
}

/// Returns the price of tokens that were written or paid in full instead of being read.
pub(in crate::inspect::traffic) fn loss(lost: u64, usage: &CallUsage, model: Option<&Model>) -> Option<f64> {
    let prices = Prices::of(model?)?;
    let written = usage.written.unwrap_or(0).min(lost);
    let hour = usage.written_1h.unwrap_or(0).min(written);
    let paid = prices.write_1h * millions(hour)
        + prices.write * millions(written - hour)
        + prices.input * millions(lost - written);
    Some((paid - prices.read * millions(lost)).max(0.0))
}
