//! The first difference of two chains, as a verdict with its place and its owner.

use super::owner::{ChangedText, Pair};
use super::place::{excerpt, first_change};
use crate::inspect::traffic::chain::{Area, Block, Blocks, Chain, Link, LinkKind, json};
use crate::inspect::traffic::rules::CacheFacts;
use crate::inspect::traffic::verdict::{CacheVerdict, ChangeOwner, ChangePlace};

/// A cause that was found, before it is priced.
#[derive(Debug, Clone)]
pub(in crate::inspect::traffic) struct Cause {
    pub(in crate::inspect::traffic) verdict: CacheVerdict,
    pub(in crate::inspect::traffic) why: String,
    pub(in crate::inspect::traffic) place: Option<ChangePlace>,
    pub(in crate::inspect::traffic) owner: Option<ChangeOwner>,
}

impl Cause {
    pub(in crate::inspect::traffic) fn new(verdict: CacheVerdict, why: impl Into<String>) -> Self {
        Self { verdict, why: why.into(), place: None, owner: None }
    }
}

/// Two chains that differ at a link.
pub(in crate::inspect::traffic) struct Difference<'c> {
    pub(in crate::inspect::traffic) pair: Pair<'c>,
    pub(in crate::inspect::traffic) earlier: &'c Chain,
    pub(in crate::inspect::traffic) chain: &'c Chain,
    pub(in crate::inspect::traffic) common: usize,
    pub(in crate::inspect::traffic) facts: &'c CacheFacts,
}

impl Difference<'_> {
    /// Names the change; `None` where one chain only continues the other.
    pub(in crate::inspect::traffic) fn cause(&self) -> Option<Cause> {
        let before = self.earlier.links.get(self.common)?.as_ref();
        let after = self.chain.links.get(self.common)?.as_ref();
        let rank = |area: Area| match (self.facts.is_system_first, area) {
            (true, Area::System) | (false, Area::Tools) => 0,
            (_, Area::Messages) => 2,
            _ => 1,
        };
        let area = if rank(before.area) <= rank(after.area) { before.area } else { after.area };
        Some(match area {
            Area::Tools => self.tools(before, after),
            Area::System => self.system(before, after),
            Area::Messages => self.message(before, after),
        })
    }

    fn tools(&self, before: &Link, after: &Link) -> Cause {
        let names = |chain: &Chain| -> Vec<Option<String>> {
            chain.links.iter().filter(|link| link.area == Area::Tools).map(|link| link.name.clone()).collect()
        };
        let is_tool = |link: &Link| link.area == Area::Tools;
        let had = |link: &Link| names(self.earlier).contains(&link.name);
        let has = |link: &Link| names(self.chain).contains(&link.name);
        let verdict = if !is_tool(before) {
            CacheVerdict::ToolsAdded
        } else if !is_tool(after) {
            CacheVerdict::ToolsRemoved
        } else if before.name == after.name {
            CacheVerdict::ToolsRedefined
        } else if !had(after) {
            CacheVerdict::ToolsAdded
        } else if !has(before) {
            CacheVerdict::ToolsRemoved
        } else {
            CacheVerdict::ToolsReordered
        };
        let (place, changed) = match verdict {
            CacheVerdict::ToolsAdded => (inserted(after), None),
            CacheVerdict::ToolsRemoved => (removed(before), None),
            _ => self.place(before, after),
        };
        let link = if verdict == CacheVerdict::ToolsRemoved { before } else { after };
        let parts = [before.part.as_str(), after.part.as_str()];
        let name = link.name.as_deref();
        // A value that changes by itself inside of a definition says more than the tool's name.
        let own = changed.as_ref().filter(|_| verdict == CacheVerdict::ToolsRedefined).and_then(|texts| {
            super::owner::pattern_of(&texts.around(&texts.before), &texts.around(&texts.after))
        });
        let is_server = name.is_some_and(|name| name.starts_with("mcp__"));
        let owner = match own.filter(|_| !is_server) {
            Some(kind) => ChangeOwner::new(kind),
            None => self.pair.of_tool(verdict, name, &parts),
        };
        let shown = name.unwrap_or("a tool");
        let why = match verdict {
            CacheVerdict::ToolsAdded => format!("the tool `{shown}` is new"),
            CacheVerdict::ToolsRemoved => format!("the tool `{shown}` is missing"),
            CacheVerdict::ToolsReordered => format!("the same tools have another order from `{shown}` on"),
            _ => format!("the tool `{shown}` has another definition"),
        };
        Cause { verdict, why, place: Some(place), owner: Some(owner) }
    }

    fn system(&self, before: &Link, after: &Link) -> Cause {
        let is_system = |link: &Link| link.area == Area::System;
        let later = |chain: &Chain, link: &Link| {
            chain.links.iter().skip(self.common).any(|other| is_system(other) && other.digest == link.digest)
        };
        let is_inserted = !is_system(before) || is_system(after) && later(self.chain, before);
        let is_removed = !is_system(after) || is_system(before) && later(self.earlier, after);
        let (place, changed) = match (is_inserted, is_removed) {
            (true, false) => (inserted(after), self.texts_of(None, Some(after))),
            (false, true) => (removed(before), self.texts_of(Some(before), None)),
            _ => self.place(before, after),
        };
        let parts = [before.part.as_str(), after.part.as_str()];
        let owner =
            self.pair.of_text(changed.as_ref().map(Texts::changed).unwrap_or_default(), &parts, Area::System);
        let why = match (is_inserted, is_removed) {
            (true, false) => format!("{} is new", after.part),
            (false, true) => format!("{} is missing", before.part),
            _ => format!("{} is another text", after.part),
        };
        Cause { verdict: CacheVerdict::SystemChanged, why, place: Some(place), owner: Some(owner) }
    }

    fn message(&self, before: &Link, after: &Link) -> Cause {
        let later = |chain: &Chain, link: &Link| {
            chain.links.iter().skip(self.common + 1).any(|other| other.digest == link.digest)
        };
        let parts = [before.part.as_str(), after.part.as_str()];
        if after.kind == LinkKind::Summary {
            let why = "the conversation was replaced by its summary";
            let cause = Cause::new(CacheVerdict::Compaction, why);
            return Cause { place: Some(inserted(after)), ..cause };
        }
        if self.is_reformed(before, after) {
            let (place, _) = self.place(before, after);
            let why = format!("{} has the same content in another form", after.part);
            let owner = self.pair.of_verdict(CacheVerdict::MessageReformed);
            return Cause { verdict: CacheVerdict::MessageReformed, why, place: Some(place), owner };
        }
        if later(self.earlier, after) && !later(self.chain, before) {
            let owner = self.pair.of_message(Some(before), None, &parts[..1]);
            let why = format!("{} of the earlier request is missing", before.part);
            return Cause {
                verdict: CacheVerdict::MessageRemoved,
                why,
                place: Some(removed(before)),
                owner: Some(owner),
            };
        }
        if later(self.chain, before) && !later(self.earlier, after) {
            let texts = self.texts_of(None, Some(after));
            let owner = self.pair.of_message(Some(after), texts.as_ref().map(Texts::changed), &parts[1..]);
            let why = format!("{} was inserted", after.part);
            return Cause {
                verdict: CacheVerdict::MessageEdited,
                why,
                place: Some(inserted(after)),
                owner: Some(owner),
            };
        }
        let (place, texts) = self.place(before, after);
        let owner = self.pair.of_message(Some(before), texts.as_ref().map(Texts::changed), &parts);
        let why = format!("{} is another text", after.part);
        Cause { verdict: CacheVerdict::MessageEdited, why, place: Some(place), owner: Some(owner) }
    }

    /// Tells if both messages say the same in another form: other blocks, or another spelling of JSON.
    fn is_reformed(&self, before: &Link, after: &Link) -> bool {
        let Some((old, new)) = self.both() else { return false };
        let frame = |part: &str| part.split('.').next().unwrap_or_default().to_owned();
        let joined = |blocks: &Blocks<'_>, part: &str| -> (String, String) {
            let own = blocks.list.iter().filter(|block| frame(&block.part) == frame(part));
            own.fold((String::new(), String::new()), |(text, rest), block| {
                let spelled = json::by_value(&block.text).unwrap_or_else(|| block.text.clone().into_owned());
                let others = json::by_value(&block.rest).unwrap_or_else(|| block.rest.clone());
                (text + &spelled, rest + &others)
            })
        };
        before.role == after.role && joined(&old, &before.part) == joined(&new, &after.part)
    }

    /// Returns the place of a change inside of a block.
    fn place(&self, before: &Link, after: &Link) -> (ChangePlace, Option<Texts>) {
        let mut place = ChangePlace {
            part_before: Some(before.part.clone()),
            part_after: Some(after.part.clone()),
            ..ChangePlace::default()
        };
        let texts = self.texts_of(Some(before), Some(after));
        if let Some(texts) = &texts
            && let Some(change) = first_change(&texts.before, &texts.after)
        {
            (place.byte, place.line, place.column) =
                (Some(change.byte), Some(change.line), Some(change.column));
            (place.before, place.after) = (Some(change.before), Some(change.after));
        }
        (place, texts)
    }

    /// Reads the bodies of both calls again; `None` if one is not kept.
    fn both(&self) -> Option<(Blocks<'_>, Blocks<'_>)> {
        let old = Blocks::read(self.pair.earlier, self.facts)?;
        Some((old, Blocks::read(self.pair.call, self.facts)?))
    }

    /// Returns the texts of the links of both sides at the difference.
    fn texts_of(&self, before: Option<&Link>, after: Option<&Link>) -> Option<Texts> {
        let (old, new) = self.both()?;
        let find = |blocks: &Blocks<'_>, link: Option<&Link>| {
            let block = link.and_then(|link| blocks.list.iter().find(|block| block.part == link.part));
            block.cloned().map(|block: Block<'_>| (block.text.into_owned(), block.rest))
        };
        let (old, new) = (find(&old, before), find(&new, after));
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        // Where the texts are equal, the other fields differ.
        let (before, after) = if old.0 == new.0 { (old.1, new.1) } else { (old.0, new.0) };
        let byte = before.bytes().zip(after.bytes()).take_while(|(old, new)| old == new).count();
        Some(Texts { before, after, byte })
    }
}

struct Texts {
    before: String,
    after: String,
    byte: usize,
}

impl Texts {
    fn changed(&self) -> ChangedText<'_> {
        ChangedText { before: &self.before, after: &self.after, byte: self.byte }
    }

    /// Returns the words around the change: a definition is one long line.
    fn around(&self, text: &str) -> String {
        excerpt(text, self.byte)
    }
}

fn inserted(link: &Link) -> ChangePlace {
    ChangePlace { part_after: Some(link.part.clone()), ..ChangePlace::default() }
}

fn removed(link: &Link) -> ChangePlace {
    ChangePlace { part_before: Some(link.part.clone()), ..ChangePlace::default() }
}
