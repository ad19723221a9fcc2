//! The chain of a request: one link for each block, in the order in which the provider's cache reads them.

mod blocks;
pub(crate) mod json;

use std::collections::BTreeMap;
use std::sync::Arc;

use proem_core::digest::Digest;
use proem_core::text_safety::secret::Scanner;
use serde::{Deserialize, Serialize};

use super::call::{Call, Wire};
use super::rules::{CacheFacts, TrafficRules};
pub(super) use blocks::{Block, Blocks};

/// Half of a digest.
pub type ShortDigest = [u8; 16];

/// The part of a request that a link belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// The definitions of tools.
    Tools,
    /// The system prompt.
    System,
    /// The conversation.
    Messages,
}

/// The form in which a text was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A string.
    Text,
    /// A list of blocks.
    List,
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// The definition of a tool.
    Tool,
    /// Text.
    Text,
    /// A call of a tool.
    ToolUse,
    /// The result of a tool.
    ToolResult,
    /// An image or another file.
    Image,
    /// Thoughts of the model.
    Thinking,
    /// A message without content.
    Empty,
    /// The summary of a compaction, in a provider's own form.
    Summary,
    /// Anything else.
    Other,
}

/// One block of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The place, as on the wire: `tools[3]`, `system[1]`, `messages[14].content[2]`.
    pub part: String,
    /// The part of the request.
    pub area: Area,
    /// The kind of block.
    pub kind: LinkKind,
    /// The role of its message, or empty.
    pub role: String,
    /// The name of a tool.
    pub name: Option<String>,
    /// Its bytes.
    pub bytes: usize,
    /// Its tokens, estimated.
    pub tokens: usize,
    /// The digest of the block.
    pub digest: ShortDigest,
    /// The digest of everything up to here.
    pub upto: ShortDigest,
}

/// A cache marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// The index of the marked link.
    pub link: usize,
    /// The lifetime that the request asks for, in seconds; `None` is the provider's default.
    pub seconds: Option<u64>,
}

/// A request as a chain of digests, and the rest of its cache key.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    /// The links. Equal links of consecutive requests are shared.
    pub links: Vec<Arc<Link>>,
    /// The form of each link.
    pub forms: Vec<Form>,
    /// The markers, in order.
    pub markers: Vec<Marker>,
    /// The parameters that are part of a cache key, by name.
    pub parameters: BTreeMap<String, String>,
    /// The model that the body names.
    pub model: Option<String>,
    /// The agent's attribution block, where it is not part of the prompt.
    pub attribution: Option<String>,
    /// The recognised format.
    pub wire: Wire,
}

impl Chain {
    /// Reads the body of a call.
    ///
    /// Returns `None` for a body that is not an object or has no block at all.
    pub(super) fn of_call(call: &Call, facts: &CacheFacts) -> Option<Self> {
        let blocks = Blocks::read(call, facts)?;
        let mut chain = Self {
            model: blocks.model.clone(),
            attribution: blocks.attribution.clone(),
            wire: blocks.wire,
            parameters: parameters(call, &blocks),
            ..Self::default()
        };
        let mut upto = ShortDigest::default();
        for (index, block) in blocks.list.iter().enumerate() {
            let digest = block.digest();
            upto = join(&upto, &digest);
            if let Some(seconds) = block.marker {
                chain.markers.push(Marker { link: index, seconds });
            }
            chain.forms.push(block.form);
            chain.links.push(Arc::new(Link {
                part: block.part.clone(),
                area: block.area,
                kind: block.kind,
                role: block.role.to_string(),
                name: block.name.clone(),
                bytes: block.bytes(),
                tokens: block.tokens(),
                digest,
                upto,
            }));
        }
        (!chain.links.is_empty()).then_some(chain)
    }

    /// Returns the number of links at the beginning that are equal.
    #[must_use]
    pub fn common(&self, other: &Self) -> usize {
        let most = self.links.len().min(other.links.len());
        let is_equal = |count: &usize| {
            *count == 0
                || self.links.get(count - 1).map(|link| link.upto)
                    == other.links.get(count - 1).map(|link| link.upto)
        };
        // The digests are cumulative, so equality has one border.
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if is_equal(&middle) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }

    /// Returns the number of messages' links at the beginning that are equal, whatever stands before the messages.
    #[must_use]
    pub fn common_messages(&self, other: &Self) -> usize {
        let equal =
            self.messages().zip(other.messages()).take_while(|(own, theirs)| own.digest == theirs.digest);
        equal.count()
    }

    /// Iterates over the links of messages.
    pub fn messages(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| link.area == Area::Messages).map(AsRef::as_ref)
    }

    /// Returns the estimated tokens of the first `count` links.
    #[must_use]
    pub fn tokens(&self, count: usize) -> usize {
        self.links.iter().take(count).map(|link| link.tokens).sum()
    }

    /// Shares equal links with an earlier chain, so that a conversation is kept as its differences.
    pub(super) fn share(&mut self, earlier: &Self) {
        for (own, theirs) in self.links.iter_mut().zip(&earlier.links) {
            if own == theirs {
                *own = Arc::clone(theirs);
            }
        }
    }
}

/// Returns the digest of everything up to a block.
pub(super) fn join(upto: &ShortDigest, block: &ShortDigest) -> ShortDigest {
    let mut joined = [0; 32];
    joined.iter_mut().zip(upto.iter().chain(block)).for_each(|(byte, own)| *byte = *own);
    Digest::new(&joined).half()
}

/// Returns a value as it is compared and stored: a long one, or one with a secret, as its digest.
fn comparable(value: String) -> String {
    const BYTES_MAX: usize = 120;
    if value.len() <= BYTES_MAX && Scanner::new().scan(&value).is_empty() {
        return value;
    }
    format!(
        "{} bytes with the digest {}",
        value.len(),
        super::kept::hex(&Digest::new(value.as_bytes()).half())
    )
}

/// Collects the parameters of the cache key, from the body and the headers.
fn parameters(call: &Call, blocks: &Blocks<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for rule in TrafficRules::built_in().parameters(blocks.wire) {
        let of_header = rule.header.as_deref().and_then(|header| call.headers.get(header));
        let value = of_header.map(ordered).or_else(|| blocks.parameter(&rule.name));
        if let Some(value) = value {
            found.insert(rule.name.clone(), comparable(value));
        }
    }
    found
}

/// A list in a header is a set.
fn ordered(header: &str) -> String {
    let mut words: Vec<&str> = header.split(',').map(str::trim).collect();
    words.sort_unstable();
    words.join(",")
}
