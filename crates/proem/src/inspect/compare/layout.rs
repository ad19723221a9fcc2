//! The layout of a prompt in a provider's cache: the order of its parts, and the pieces in which it is kept.

use crate::costs::simulate::rules;
use crate::error::Error;
use crate::settings::models::{CacheKind, Model, Models};

/// The layout of a prompt in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    /// True if the tools follow the system prompt, as chat templates print them.
    pub is_system_first: bool,
    /// The granularity with which a shared beginning is kept.
    pub grain: Grain,
}

/// The granularity with which a cache keeps the shared beginning of two prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grain {
    /// All of it.
    #[default]
    Whole,
    /// Whole pieces, each with a marker at its end: tools, and the text of each carrier.
    Pieces,
    /// A fixed number of tokens at a time, and nothing below a minimum.
    Steps {
        /// The step.
        step: usize,
        /// The minimum.
        least: usize,
    },
}

impl Layout {
    /// The layout of a provider or server, by name.
    pub fn for_provider(provider: &str, model: Option<&Model>, models: &Models) -> Result<Self, Error> {
        let rules = rules(provider, model, models)?;
        // Servers of open models cache everything, whatever the model is called.
        let of_model = model.and_then(|model| model.min_tokens).filter(|_| rules.min_tokens > 0);
        let least = of_model.unwrap_or(rules.min_tokens);
        let grain = match rules.kind {
            CacheKind::Breakpoints => Grain::Pieces,
            CacheKind::Prefix | CacheKind::Units => Grain::Steps { step: rules.step.max(1), least },
        };
        Ok(Self { is_system_first: rules.is_chat_template(), grain })
    }

    /// The tokens that are read, of `common` ones that both share and `pieces` in whole pieces.
    #[must_use]
    pub(super) const fn kept(self, common: usize, pieces: usize, all: usize) -> usize {
        match self.grain {
            Grain::Whole => common,
            Grain::Pieces => pieces,
            // A prefix that is too short to be cached is never lost.
            Grain::Steps { least, .. } if all < least => all,
            Grain::Steps { step, least } => {
                let whole = common / step * step;
                if whole < least { 0 } else { whole }
            }
        }
    }
}
