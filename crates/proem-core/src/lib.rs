//! The pure core of proem: turns observed facts into prompt bytes.
//!
//! Nothing in this crate observes the world. It is `no_std`, so the compiler rejects files, clocks, environment
//! variables, processes and unordered maps. The core names the values that it needs
//! ([`Template::wanted`](bracket::Template::wanted)) and the caller provides them ([`fact::Facts`]). Equal inputs
//! therefore give equal bytes on every machine and in every build.
//!
//! ```
//! use proem_core::bracket::{self, Policies, Template};
//! use proem_core::fact::{Fact, Facts};
//! use proem_core::stability::Stability;
//!
//! let template = Template::parse("Hello [team:name][if team:lead], led by [team:lead][endif].");
//! let mut facts = Facts::new();
//! facts.insert("team:name", Fact::given("Blue", Stability::Session));
//! let bound = bracket::bind(&template, &facts, &Policies::SEED).expect("no policy is `error`");
//! assert_eq!(bracket::render(&template, &bound), "Hello Blue.");
//! ```
#![no_std]
#![cfg_attr(test, allow(clippy::string_slice, reason = "tests cut text at known places"))]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod boundary;
pub mod brace_slots;
pub mod bracket;
pub mod builtin;
pub mod cache_loss;
pub mod carrier;
pub mod did_you_mean;
pub mod digest;
pub mod draft;
pub mod estimate;
pub mod fact;
pub mod file_outcome;
pub mod front_matter;
pub mod frozen;
mod join_sections;
pub mod limit;
pub mod line_map;
pub mod note;
pub mod profile;
pub mod rendered;
pub mod source;
pub mod stability;
pub mod text;
pub mod text_safety;
pub mod variable;
