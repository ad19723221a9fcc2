//! P10 and P16: digests, and counts of tokens.

use std::hint::black_box;

use proem::Caller;
use proem::tokens::Tokenizer;
use proem_bench::fixture::templates::label;
use proem_bench::fixture::{PROSE, prose, request_with, write};
use proem_bench::{Options, Race};
use proem_core::digest::Digest;
use serde_json::json;
use sha2::{Digest as _, Sha256};

pub(crate) fn run(options: &Options) {
    if options.wants("P10") {
        for bytes in options.sizes(&[16 << 10, 160 << 10, 1_600 << 10], 160 << 10) {
            digests(options, bytes);
        }
        remembered(options);
    }
    if options.wants("P16") {
        for bytes in options.sizes(&PROSE, 64_000) {
            tokens(options, bytes);
        }
    }
}

fn digests(options: &Options, bytes: usize) {
    let text = prose(bytes);
    Race::new("P10", format!("digest of {}", label(bytes)))
        .grows("digest", bytes)
        .enter("floor", || Sha256::digest(black_box(text.as_bytes())))
        .enter("blake3", || blake3::hash(black_box(text.as_bytes())))
        .enter("proem", || Digest::new(black_box(text.as_bytes())))
        .run_short(options);
}

/// Asking a frozen prompt for its digest, which was made when it was frozen.
fn remembered(options: &Options) {
    let root = options.path("digest");
    write(&root.join("home/.keep"), "");
    let template = prose(160 << 10);
    let request = request_with("template", &root, &root, &json!({ "template": template.replace('[', "(") }));
    let build = proem::build(&request, Caller::User).expect("it builds");
    Race::new("P10", "digest of a frozen prompt of 160 KB, asked again")
        .enter("floor", || Sha256::digest(black_box(build.frozen.prefix().as_bytes())))
        .enter("proem", || black_box(&build.frozen).digest())
        .run_short(options);
}

/// Counts by o200k, the vocabulary already built. The floor looks at every byte once, to find where words begin.
fn tokens(options: &Options, bytes: usize) {
    let text = prose(bytes);
    let tokenizer = Tokenizer::named("o200k_base");
    let race = Race::new("P16", format!("count the tokens of {} KB", bytes / 1_000))
        .grows("count tokens", bytes)
        .enter("floor", || words(black_box(&text)))
        .enter("proem", || tokenizer.count(black_box(&text)));
    #[cfg(feature = "peers")]
    let peers = proem_bench::peers::tokens::Counters::new(&text, tokenizer.count(&text));
    #[cfg(feature = "peers")]
    let race = race
        .enter("tiktoken-rs", || peers.tiktoken_rs(black_box(&text)))
        .enter("bpe-openai", || peers.bpe_openai(black_box(&text)));
    race.run_short(&options.at_most(100));
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}
