//! The colours of stability: what stays is calm, what changes with every turn is red.

use anstyle::{AnsiColor, Style};
use proem_core::stability::Stability;

/// How text of this stability looks.
pub(crate) const fn of(stability: Stability) -> Style {
    match stability {
        Stability::Turn => AnsiColor::Red.on_default(),
        Stability::Day => AnsiColor::Yellow.on_default(),
        _ => AnsiColor::Green.on_default(),
    }
}
