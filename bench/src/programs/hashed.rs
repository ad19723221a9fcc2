//! Builds a prompt of 160 KB so many times, or hashes one, for a program that counts what the hash function does.
//! `proem-bench hashed build|once TIMES`.

use std::hint::black_box;

use proem::Caller;
use proem_bench::fixture::{prose, request_with, write};
use proem_core::digest::Digest;
use serde_json::json;

pub(crate) fn run() {
    let mut words = std::env::args().skip(2);
    let is_build = words.next().expect("say `build` or `once`") == "build";
    let times: usize = words.next().and_then(|word| word.parse().ok()).expect("say how many times");
    let folder = tempfile::tempdir().expect("there is room");
    write(&folder.path().join("home/.keep"), "");
    let template = prose(160 << 10).replace('[', "(");
    let request = request_with("template", folder.path(), folder.path(), &json!({ "template": template }));
    let prompt = proem::build(&request, Caller::User).expect("it builds").frozen.prefix().to_owned();
    for _ in 0..times {
        if is_build {
            drop(black_box(proem::build(&request, Caller::User).expect("it builds")));
        } else {
            black_box(Digest::new(black_box(prompt.as_bytes())));
        }
    }
}
