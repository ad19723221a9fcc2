//! The price of a notice against that of a rebuild: tokens for the rest of the conversation, or tokens once.

use schemars::JsonSchema;
use serde::Serialize;

use super::changes::Differences;
use super::{Conversations, Loaded};
use crate::conversation::error::ConversationError;
use crate::conversation::pending::Pending;
use crate::conversation::state::State;
use crate::request::Request;
use crate::request::caller::Caller;
use crate::request::update::without_call;
use crate::settings::models::{Model, Models};
use crate::settings::tokens::Tokenizer;

/// The notice that the next turn would append, and its price.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NoticePrice {
    /// The sections whose sources changed, in the order of the prompt.
    pub sections: Vec<String>,
    /// Its tokens, which are sent once as new ones, and read from the cache in every later turn.
    pub tokens: usize,
    /// True if the tokens are counted with the vocabulary of the model; otherwise they are estimated.
    pub exact: bool,
    /// The dollars of the turn that appends it; `null` if the model has no known prices.
    pub dollars: Option<f64>,
    /// The dollars of every later turn.
    pub dollars_per_turn: Option<f64>,
    /// Its text.
    pub text: String,
}

/// The price of a rebuild of the prompt. The messages after it are read again, too; their tokens are not known here.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RebuildPrice {
    /// The tokens of the prompt that are read again, once.
    pub tokens: usize,
    /// True if the tokens are counted with the vocabulary of the model; otherwise they are estimated.
    pub exact: bool,
    /// The dollars that they cost more than from the cache; `null` if the model has no known prices.
    pub dollars: Option<f64>,
    /// The number of turns after which the rebuild is cheaper than the notice: 0 if it is at once, `null` if it never is or
    /// without a notice.
    pub cheaper_after_turns: Option<u64>,
    /// The unit of that comparison.
    pub compared_by: CheaperAfter,
}

/// The unit in which a notice and a rebuild are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheaperAfter {
    /// The prices of the model.
    Dollars,
    /// Tokens that are sent, because the model has no known prices.
    Tokens,
}

/// Both prices; `None` where there is nothing to announce, or nothing to rebuild.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::conversation) struct Prices {
    pub(in crate::conversation) notice: Option<NoticePrice>,
    pub(in crate::conversation) rebuild: Option<RebuildPrice>,
}

impl Conversations {
    /// Prices the notice of the present changes, and the rebuild. Nothing is stored.
    pub(in crate::conversation) fn prices(
        &self,
        loaded: &Loaded,
        state: &State,
        (pending, next_prefix): (&Pending, &str),
        caller: Caller,
    ) -> Result<Prices, ConversationError> {
        let text = self.planned_notice(loaded, state, caller)?;
        if text.is_none() && pending.is_empty() {
            return Ok(Prices::default());
        }
        let request = &loaded.epoch.request;
        let models = Models::load(request, caller)?;
        let name = state.request.model.as_ref().or(loaded.epoch.head.model.as_ref());
        let model = name.and_then(|name| models.find(name));
        let tokenizer = model.map_or(Tokenizer::Estimate, Model::tokenizer);
        let dollars = |tokens: usize, price: Option<f64>| {
            Some(price? * f64::from(u32::try_from(tokens).unwrap_or(u32::MAX)) / 1e6)
        };
        let write = model.and_then(|model| model.cache_write.or(model.input));
        let read = model.and_then(|model| model.cache_read);
        let notice = text.map(|(sections, text)| {
            let tokens = tokenizer.count(&text);
            NoticePrice {
                sections,
                tokens,
                exact: tokenizer.is_exact(),
                dollars: dollars(tokens, write),
                dollars_per_turn: dollars(tokens, read),
                text,
            }
        });
        let rebuild = (!pending.is_empty()).then(|| {
            let first = if pending.tools { 0 } else { pending.change.map_or(0, |change| change.first_byte) };
            let again = next_prefix.get(first..).unwrap_or(next_prefix);
            let tokens = tokenizer.count(again);
            let extra = write.zip(read).map(|(write, read)| write - read);
            let (cheaper_after_turns, compared_by) =
                compared(notice.as_ref().map(|notice| notice.tokens), tokens, write.zip(read));
            RebuildPrice {
                tokens,
                exact: tokenizer.is_exact(),
                dollars: dollars(tokens, extra),
                cheaper_after_turns,
                compared_by,
            }
        });
        Ok(Prices { notice, rebuild })
    }

    /// Returns the sections and the text of the notice that the next turn would append.
    fn planned_notice(
        &self,
        loaded: &Loaded,
        state: &State,
        caller: Caller,
    ) -> Result<Option<(Vec<String>, String)>, ConversationError> {
        if !super::watches(loaded) {
            return Ok(None);
        }
        let name = self.name(&loaded.epoch.head.conversation);
        let request: Request =
            without_call(&crate::conversation::conversations::turn_request_in(&loaded.epoch, state, name));
        let Differences { changes, .. } = self.observe(loaded, &request, caller, &[])?.differences(loaded);
        if changes.is_empty() {
            return Ok(None);
        }
        let notice = self.rendered(loaded, state, (&request, caller), &changes)?;
        Ok(Some((notice.sections, notice.text)))
    }
}

/// Returns the number of turns after which a rebuild costs less than a notice. `prices` are those of writing and reading.
fn compared(
    notice: Option<usize>,
    rebuild: usize,
    prices: Option<(f64, f64)>,
) -> (Option<u64>, CheaperAfter) {
    let by = if prices.is_some() { CheaperAfter::Dollars } else { CheaperAfter::Tokens };
    let Some(notice) = notice else { return (None, by) };
    let wide = |tokens: usize| f64::from(u32::try_from(tokens).unwrap_or(u32::MAX));
    let (first, later, once) = match prices {
        Some((write, read)) => (wide(notice) * write, wide(notice) * read, wide(rebuild) * (write - read)),
        None => (wide(notice), wide(notice), wide(rebuild)),
    };
    if first >= once {
        return (Some(0), by);
    }
    if later <= 0.0 {
        return (None, by);
    }
    let turns = ((once - first) / later).floor() + 2.0;
    // A number of turns that no conversation has means never.
    let turns = (turns < 1e9).then(|| format!("{turns:.0}").parse().ok()).flatten();
    (turns, by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_notice_is_cheaper_for_many_turns_and_a_large_one_for_none() {
        let prices = Some((6.25, 0.5));
        // 100 tokens cost 625 at first and 50 in each later turn; the rebuild costs 57,500.
        assert_eq!(compared(Some(100), 10_000, prices), (Some(1139), CheaperAfter::Dollars));
        assert_eq!(compared(Some(10_000), 10_000, prices), (Some(0), CheaperAfter::Dollars));
        assert_eq!(compared(Some(100), 1_000, None), (Some(11), CheaperAfter::Tokens));
        assert_eq!(compared(None, 1_000, prices), (None, CheaperAfter::Dollars));
        assert_eq!(compared(Some(100), 10_000, Some((6.25, 0.0))), (None, CheaperAfter::Dollars));
    }
}
