//! Instruction files and skills that are not what they seem, do not stay as they are, or are too many.
//!
//! A build must succeed, say what it left out, and give the very bytes that it would give without that.
//! Whatever refuses something has a control in which the same thing has an effect.

#![expect(clippy::unwrap_used, reason = "a site that cannot be laid out must stop the test")]

mod characters;
mod depths;
mod instructions;
mod moving;
mod names;
mod numbers;
mod profiles;
mod remote;
mod site;
mod skills;
