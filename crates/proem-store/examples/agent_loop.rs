//! An agent loop on the library, with SQLite: `cargo run -p proem-store --example agent_loop`.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::sync::Arc;

use proem::{Caller, Engine, Request};
use proem_core::carrier::Carrier;
use proem_store::{Conversations, SqliteStore};

/// A placeholder for the call to a provider.
fn model(system: Option<&str>, messages: &[String]) -> String {
    format!("An answer to {} messages behind {} bytes.", messages.len(), system.map_or(0, str::len))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(&folder.path().join("proem.db"))?;
    let conversations = Conversations::new(Arc::new(store), Engine::new());
    let (request, mut history) = (Request::default(), Vec::new());
    for turn in 0..6 {
        let answer = conversations.turn("example", &request, Caller::User)?;
        // Every turn gets the same bytes, even if files change meanwhile.
        println!("{} {} {}", answer.kept.head.number, answer.kept.head.reason, answer.kept.head.digest);
        history.push(format!("Question {turn}"));
        history.push(model(answer.text(Carrier::System), &history));
        if turn == 2 {
            // The model summarises the history, and the next prompt is built from the files of that moment.
            let begun = conversations.begin_compaction("example", None, Caller::User)?;
            history.push(begun.instructions.clone());
            let summary = model(begun.text(Carrier::System).as_deref(), &history);
            conversations.commit_compaction("example", &begun.token, Caller::User)?;
            history = vec![summary, "I go on from there.".to_owned()];
        }
    }
    Ok(())
}
