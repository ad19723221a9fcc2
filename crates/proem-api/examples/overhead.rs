//! Measures a build and a later turn, beside which `scripts/overhead` puts the same calls of the packages.
//!
//! `overhead ROUNDS REQUEST STORE` prints the least nanoseconds of each call as JSON.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that cannot be made must stop")]

use std::hint::black_box;
use std::time::Instant;

use proem_api::{Conversation, Prompt, Store};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rounds, request, name] = arguments.as_slice() else {
        println!("usage: overhead ROUNDS REQUEST STORE");
        return;
    };
    let rounds: u32 = rounds.parse().unwrap();
    let build = least(rounds / 10, || drop(black_box(Prompt::build(request).unwrap())));
    let store = Store::open(name).unwrap();
    let conversation = Conversation::new(&store, "c-1", request).unwrap();
    conversation.turn(r#"{"prompt": "Hello", "provider": "anthropic"}"#).unwrap();
    let later = r#"{"prompt": "And now?", "provider": "anthropic"}"#;
    let turn = least(rounds, || drop(black_box(conversation.turn(later).unwrap())));
    println!("{{\"build\": {build}, \"turn\": {turn}}}");
}

/// Returns the least time of a call.
fn least(rounds: u32, work: impl Fn()) -> u128 {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos()
    };
    (0..rounds).map(time).min().unwrap()
}
