#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| proem_fuzz::git_status(input));
