//! Instruction files and skills that are fake, change meanwhile, or are too many.
//!
//! A build must succeed, report the files that it left out, and give exactly the bytes that it would give without them.
//! Each refusal has a control in which the same file has an effect.

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
