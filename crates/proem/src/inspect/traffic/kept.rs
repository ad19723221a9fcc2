//! The chain of a call as a store keeps it, so that another process can compare later calls with it.
//!
//! It holds digests and numbers, and no text of a request. A chain is written as its difference from an earlier one of its
//! thread; each 64th of a thread is written in full, so that the oldest can be removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::call::{Call, CallUsage, CallingAgent, Purpose, Route, Wire};
use super::chain::{Area, Chain, Form, Link, LinkKind, Marker, ShortDigest, join};
use super::thread::{Past, Thread};

/// The version of the stored shape.
const VERSION: u32 = 1;

/// Calls of a thread between two chains that are written in full.
const FULL_EVERY: u64 = 64;

/// A stored chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptChain {
    version: u32,
    pub(super) id: String,
    at: Option<i64>,
    /// The thread, empty for the main one.
    pub thread: String,
    pub(super) is_aside: bool,
    /// True if the source names no conversation.
    pub(super) is_unnamed: bool,
    model: String,
    purpose: Purpose,
    wire: Wire,
    usage: [Option<u64>; 5],
    route: [Option<String>; 3],
    agent: Option<(String, Option<String>)>,
    body_model: Option<String>,
    attribution: Option<String>,
    parameters: BTreeMap<String, String>,
    /// The id of an earlier call of the thread, and the number of its links that begin this chain.
    base: Option<(String, usize)>,
    links: Vec<KeptLink>,
    /// One letter for each link of the whole chain.
    forms: String,
    markers: Vec<(usize, Option<u64>)>,
}

/// Part, area, kind, role, name, bytes, tokens, digest.
type KeptLink = (String, Area, LinkKind, String, Option<String>, usize, usize, String);

/// Writes bytes as hexadecimal digits.
pub(super) fn hex(digest: &ShortDigest) -> String {
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn from_hex(text: &str) -> Option<ShortDigest> {
    let mut digest = ShortDigest::default();
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(digest)
}

impl KeptChain {
    /// Creates the stored form of a call that a thread is about to get.
    pub(super) fn new(call: &Call, model: &str, chain: &Chain, thread: Option<&Thread>) -> Self {
        let base = thread.and_then(|thread| base_of(chain, thread));
        let common = base.as_ref().map_or(0, |(_, common)| *common);
        let link = |link: &Arc<Link>| {
            let Link { part, area, kind, role, name, bytes, tokens, digest, .. } = link.as_ref();
            (part.clone(), *area, *kind, role.clone(), name.clone(), *bytes, *tokens, hex(digest))
        };
        let CallUsage { read, written, written_1h, uncached, output } = call.usage;
        let Route { host, region, account } = call.route.clone();
        Self {
            version: VERSION,
            id: call.id.clone(),
            at: call.at,
            thread: String::new(),
            is_aside: false,
            is_unnamed: false,
            model: model.to_owned(),
            purpose: call.purpose,
            wire: chain.wire,
            usage: [read, written, written_1h, uncached, output],
            route: [host, region, account],
            agent: call.agent.clone().map(|agent| (agent.name, agent.version)),
            body_model: chain.model.clone(),
            attribution: chain.attribution.clone(),
            parameters: chain.parameters.clone(),
            base,
            links: chain.links.iter().skip(common).map(link).collect(),
            forms: chain.forms.iter().map(|form| if *form == Form::Text { 't' } else { 'l' }).collect(),
            markers: chain.markers.iter().map(|marker| (marker.link, marker.seconds)).collect(),
        }
    }

    /// Returns a name of the thread that titles and probes beside it do not share.
    #[must_use]
    pub fn stored_thread(&self) -> String {
        if self.is_aside { format!("{} (aside)", self.thread) } else { self.thread.clone() }
    }

    /// Tells if it can be read without an earlier chain.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.base.is_none()
    }

    /// Rebuilds the call without its body; `None` if the chain that it continues is not known, or for a later version.
    pub(super) fn past(self, thread: &Thread) -> Option<(Call, String, Chain)> {
        if self.version > VERSION {
            return None;
        }
        let mut links: Vec<Arc<Link>> = match &self.base {
            None => Vec::new(),
            Some((id, common)) => {
                let base = thread.calls.iter().rev().find(|past| past.call.id == *id)?.chain.as_ref()?;
                base.links.get(..*common)?.to_vec()
            }
        };
        let mut upto = links.last().map(|link| link.upto).unwrap_or_default();
        for (part, area, kind, role, name, bytes, tokens, digest) in self.links {
            let digest = from_hex(&digest)?;
            upto = join(&upto, &digest);
            links.push(Arc::new(Link { part, area, kind, role, name, bytes, tokens, digest, upto }));
        }
        let chain = Chain {
            links,
            forms: self
                .forms
                .chars()
                .map(|letter| if letter == 't' { Form::Text } else { Form::List })
                .collect(),
            markers: self.markers.into_iter().map(|(link, seconds)| Marker { link, seconds }).collect(),
            parameters: self.parameters,
            model: self.body_model,
            attribution: self.attribution,
            wire: self.wire,
        };
        let [read, written, written_1h, uncached, output] = self.usage;
        let [host, region, account] = self.route;
        let call = Call {
            id: self.id,
            at: self.at,
            purpose: self.purpose,
            wire: self.wire,
            usage: CallUsage { read, written, written_1h, uncached, output },
            route: Route { host, region, account },
            agent: self.agent.map(|(name, version)| CallingAgent { name, version }),
            ..Call::default()
        };
        Some((call, self.model, chain))
    }
}

/// Returns the call whose chain begins this one, unless a full chain is due.
fn base_of(chain: &Chain, thread: &Thread) -> Option<(String, usize)> {
    if thread.count.saturating_sub(thread.full) + 1 >= FULL_EVERY {
        return None;
    }
    let known = thread.calls.iter().filter(|past| past.index >= thread.full);
    let known = known.filter_map(|past: &Past| Some((past, chain.common(past.chain.as_ref()?))));
    let (past, common) = known.max_by_key(|(past, common)| (*common, past.index))?;
    (common > 0).then(|| (past.call.id.clone(), common))
}

#[cfg(test)]
mod tests {
    use super::super::rules::CacheFacts;
    use super::*;

    fn call(id: &str, messages: usize) -> Call {
        let message = |index| format!(r#"{{"role": "user", "content": "message {index}"}}"#);
        let messages: Vec<String> = (0..messages).map(message).collect();
        let body =
            format!(r#"{{"model": "claude-opus-5", "system": "s", "messages": [{}]}}"#, messages.join(","));
        Call { id: id.into(), body: Some(body.as_str().into()), ..Call::default() }
    }

    #[test]
    fn a_thread_is_the_same_after_it_was_stored() {
        let (mut thread, mut again) = (Thread::default(), Thread::default());
        for number in 1..200 {
            let call = call(&number.to_string(), number);
            let chain = Chain::of_call(&call, &CacheFacts::default()).expect("it has blocks");
            let kept = KeptChain::new(&call, "claude-opus-5", &chain, Some(&thread));
            assert_eq!(kept.is_full(), (number - 1) % 64 == 0, "{number}");
            assert!(kept.is_full() || kept.links.len() == 1, "a difference has one link");
            let stored = serde_json::to_string(&kept).expect("it is JSON");
            assert!(!stored.contains("message 1"), "no text of the request is stored");
            let kept: KeptChain = serde_json::from_str(&stored).expect("it reads back");
            let is_full = kept.is_full();
            let (old, model, rebuilt) = kept.past(&again).expect("its base is known");
            assert_eq!((&rebuilt.links, &rebuilt.forms), (&chain.links, &chain.forms));
            again.push(old, model, Some(rebuilt), is_full);
            thread.push(call, "claude-opus-5".into(), Some(chain), is_full);
        }
    }
}
