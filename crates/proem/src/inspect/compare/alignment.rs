//! Aligns the units of two carriers by their sources.

use similar::DiffOp;

use super::lines::aligned;
use super::snapshot::CarrierText;
use super::units::{Keys, Unit, units};

/// The units of two carriers, and the steps that turn the first list into the second.
pub(super) struct Alignment<'t> {
    pub(super) before: Vec<Unit<'t>>,
    pub(super) after: Vec<Unit<'t>>,
    pub(super) ops: Vec<DiffOp>,
}

impl<'t> Alignment<'t> {
    /// Aligns two carriers.
    pub(super) fn new(a: &'t CarrierText, b: &'t CarrierText) -> Self {
        let (before, after) = (units(a), units(b));
        let ops = aligned(&Keys(&before), 0..before.len(), &Keys(&after), 0..after.len());
        Self { before, after, ops }
    }
}
