//! An agent loop on the library, with SQLite: `cargo run -p proem-store --example agent_loop`.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::error::Error;
use std::fs::write;
use std::sync::Arc;

use proem::{Caller, Engine, Request};
use proem_core::carrier::Carrier;
use proem_store::{Conversations, SqliteStore};
use serde_json::{Value, json};

/// Stands in for a provider: call yours here.
fn model(system: &str, messages: &[Value]) -> String {
    format!("This answers {} messages and a system prompt of {} bytes.", messages.len(), system.len())
}

fn say(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let instructions = folder.path().join("AGENTS.md");
    write(&instructions, "Answer in English.\n")?;
    let store = SqliteStore::open(&folder.path().join("store/proem.db"))?;
    let conversations = Conversations::new(Arc::new(store), Engine::new());
    let request = Request { cwd: Some(folder.path().display().to_string()), ..Request::default() };

    let (mut history, mut digests) = (Vec::new(), Vec::new());
    for turn in 0..6 {
        // The first turn builds the prompt and freezes it; later ones get the same bytes.
        let answer = conversations.turn("example", &request, Caller::User)?;
        digests.push(answer.kept.head.digest.clone());
        history.push(say("user", &format!("Question {turn}")));
        let reply = model(answer.text(Carrier::System).unwrap_or_default(), &history);
        history.push(say("assistant", &reply));
        // Somebody edits a file: it waits until the cache is lost anyway.
        write(&instructions, "Answer in German.\n")?;
        if turn == 2 {
            // The history is long enough: let the model sum it up, then begin again with the summary.
            let begun = conversations.begin_compaction("example", None, Caller::User)?;
            history.push(say("user", &begun.instructions));
            let summary = model(&begun.text(Carrier::System).unwrap_or_default(), &history);
            conversations.commit_compaction("example", &begun.token, Caller::User)?;
            history = vec![say("user", &summary), say("assistant", "I go on from there.")];
        }
    }

    let changed: Vec<bool> = digests.windows(2).map(|pair| pair.first() != pair.last()).collect();
    assert_eq!(changed, [false, false, true, false, false], "it must change once, behind the compaction");
    digests.dedup();
    println!("6 turns, 2 epochs: {}", digests.join(", then "));
    Ok(())
}
