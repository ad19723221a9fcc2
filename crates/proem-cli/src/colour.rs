//! The colours of stability: green for text that stays, red for text that changes with every turn.

use anstyle::{AnsiColor, Style};
use proem_core::stability::Stability;

/// Returns the style of text with this stability.
pub(crate) const fn style(stability: Stability) -> Style {
    match stability {
        Stability::Turn => AnsiColor::Red.on_default(),
        Stability::Day => AnsiColor::Yellow.on_default(),
        _ => AnsiColor::Green.on_default(),
    }
}
