//! Rules for the answers of all turns, whatever a script expects.

use std::collections::BTreeMap;

use proem_core::digest::Digest;

use super::answer::Answer;

/// The fields of a turn: all of them are always there.
const FIELDS: [&str; 24] = [
    "boundary",
    "carriers",
    "changes",
    "conversation",
    "digest",
    "epoch",
    "expected_miss",
    "fingerprint",
    "history",
    "messages",
    "notes",
    "notices",
    "payload",
    "pending",
    "prefix",
    "profile",
    "reason",
    "reused",
    "signature",
    "suffix",
    "system_prompt",
    "tools",
    "turn",
    "version",
];

/// The turns so far: the last one of each conversation.
#[derive(Default)]
pub(super) struct Turns(BTreeMap<String, Last>);

/// The last turn of a conversation.
#[derive(Default)]
struct Last {
    digest: String,
    system_prompt: String,
}

impl Turns {
    /// Forgets a conversation.
    pub(super) fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Returns the rules that the answer to a turn breaks.
    pub(super) fn check(&mut self, id: &str, answer: &Answer) -> Vec<String> {
        let text =
            |path: &str| answer.at(path).and_then(|text| serde_json::from_str::<Option<String>>(&text).ok());
        let text = |path: &str| text(path).flatten();
        let given = |path: &str| text(path).unwrap_or_default();
        let now = Last { digest: given("digest"), system_prompt: given("system_prompt") };
        let last = self.0.insert(id.to_owned(), now);
        // The calls of one prompt of the user have one system prompt.
        let is_continued = last.as_ref().is_some_and(|last| last.system_prompt == given("system_prompt"));
        let miss = last.filter(|last| last.digest != given("digest")).map(|_| given("reason"));
        let whole = [given("prefix"), given("boundary"), given("suffix")].concat();
        let is_hooked = answer.at("changes").as_deref() != Some("[]");
        let rules = [
            (answer.0.keys().eq(FIELDS), "it has all fields"),
            (
                given("digest") == Digest::new(given("prefix").as_bytes()).hex(),
                "`digest` is that of `prefix`",
            ),
            (given("signature.system") == given("digest"), "`signature` has the digest"),
            (text("carriers.system") == text("prefix"), "the system carrier holds the prefix"),
            (
                is_hooked || is_continued || given("system_prompt") == whole,
                "`system_prompt` is prefix, boundary and suffix",
            ),
            (
                text("expected_miss") == miss,
                "`expected_miss` is the reason after a change of the digest, once",
            ),
        ];
        rules.into_iter().filter(|(holds, _)| !holds).map(|(_, rule)| format!("not true: {rule}")).collect()
    }
}
