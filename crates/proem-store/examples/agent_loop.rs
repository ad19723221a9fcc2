//! An agent loop on the library, with SQLite: `cargo run -p proem-store --example agent_loop`.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::sync::Arc;

use proem::deliver::RawMessage;
use proem::{Caller, Carrier, Engine, Request};
use proem_store::{Conversations, SqliteStore};

/// A placeholder for the call to a provider.
fn model(system: &str, messages: &[RawMessage]) -> RawMessage {
    let text = format!("An answer to {} messages behind {} bytes.", messages.len(), system.len());
    RawMessage::plain("assistant", &text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(&folder.path().join("proem.db"))?;
    let conversations = Conversations::new(Arc::new(store), Engine::new());
    let mut history = Vec::new();
    for number in 0..6 {
        let (prompt, messages) = (Some(format!("Question {number}")), Some(history));
        let request = Request { prompt, messages, ..Request::default() };
        let turn = conversations.turn("example", request, Caller::User)?;
        // Every turn gets the same bytes, even if files change meanwhile.
        println!("{} {} {}", turn.epoch, turn.reason, turn.frozen.digest().hex());
        let answer = model(&turn.system_prompt, &turn.messages);
        history = turn.history;
        history.push(answer);
        if number == 2 {
            // The model summarises the history, and the next prompt is built from the files of that moment.
            let request = Request { messages: Some(history), ..Request::default() };
            let begun = conversations.begin_compaction("example", request, Caller::User)?;
            let system = begun.text(Carrier::System).unwrap_or_default();
            let summary = model(&system, &begun.messages);
            conversations.commit_compaction("example", &begun.token, Caller::User)?;
            history = vec![RawMessage::plain("user", "Summarise it."), summary];
        }
    }
    Ok(())
}
