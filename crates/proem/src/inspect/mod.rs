//! Inspection of prompts and files: lints, comparisons, reports. A build never imports from here.

pub mod bundle;
pub mod check;
pub mod compare;
pub mod compat;
pub mod directory_listing;
pub mod evidence;
pub mod preview;
pub(crate) mod profile_base;
pub(crate) mod skill_report;
pub mod traffic;
pub(crate) mod variable_report;

pub use profile_base::{ProfileBase, profile_base, takes_stored_template};
pub use skill_report::{SkillReport, skills};
pub use variable_report::{VariableReport, variables};
