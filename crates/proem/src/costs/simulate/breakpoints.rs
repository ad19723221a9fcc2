//! Caches with breakpoints: entries are written at marked blocks, and found from marked blocks, looking a
//! number of blocks back.

use std::collections::HashMap;

use proem_core::digest::Digest;

use super::pieces::{CacheMark, Pieces};
use super::{Cache, Figures, Miss, SentRequest, lifetime};
use crate::settings::models::{CacheRules, Model};

pub(super) struct Breakpoints {
    rules: CacheRules,
    min_tokens: usize,
    entries: HashMap<Digest, CacheEntry>,
    /// The end of the bytes that the last request read or wrote.
    last: Option<(Digest, usize)>,
}

struct CacheEntry {
    lives_until: f64,
    seconds: f64,
}

impl Breakpoints {
    pub(super) fn new(rules: &CacheRules, model: Option<&Model>) -> Self {
        let min_tokens = model.and_then(|model| model.min_tokens).unwrap_or(rules.min_tokens);
        Self { rules: rules.clone(), min_tokens, entries: HashMap::new(), last: None }
    }

    fn seconds(&self, mark: CacheMark) -> f64 {
        lifetime(match mark {
            CacheMark::Short => self.rules.seconds,
            CacheMark::Hour => self.rules.seconds_1h.or(self.rules.seconds),
        })
    }

    /// Returns the reason for reading less than the last request left.
    fn miss(
        &self,
        ends: &[(Digest, usize)],
        marks: &[(usize, CacheMark)],
        read: usize,
        now: f64,
    ) -> Option<Miss> {
        let Some((digest, tokens)) = self.last else {
            let longest = marks.last().and_then(|(index, _)| ends.get(*index)).map(|(_, tokens)| *tokens);
            return match longest {
                None => Some(Miss::NoMarker),
                Some(tokens) if tokens < self.min_tokens => Some(Miss::TooShort),
                Some(_) => None,
            };
        };
        if read >= tokens {
            return None;
        }
        let is_there = self.entries.get(&digest).is_some_and(|entry| entry.lives_until >= now);
        Some(match marks.last() {
            None => Miss::NoMarker,
            Some(_) if is_there => Miss::BeyondLookback,
            Some(_) => Miss::Expired,
        })
    }

    /// The marked blocks, in order; some providers mark the last one by themselves.
    fn marks(&self, pieces: &Pieces) -> Result<Vec<(usize, CacheMark)>, String> {
        let own = pieces.list.iter().enumerate();
        let mut marks: Vec<(usize, CacheMark)> =
            own.filter_map(|(index, piece)| Some((index, piece.mark?))).collect();
        if self.rules.marks_last
            && let Some(last) = pieces.list.len().checked_sub(1)
            && marks.last().is_none_or(|(index, _)| *index < last)
        {
            marks.push((last, CacheMark::Short));
        }
        let most = self.rules.markers_max;
        if marks.len() > most {
            return Err(format!("it has {} cache markers, and {most} are allowed", marks.len()));
        }
        let is_wrong =
            |pair: &[(usize, CacheMark)]| matches!(pair, [(_, CacheMark::Short), (_, CacheMark::Hour)]);
        if marks.windows(2).any(is_wrong) {
            return Err("a marker with the longer lifetime follows one with the shorter".into());
        }
        Ok(marks)
    }

    /// The highest block that is in the cache and can be found from a marker.
    fn hit(&self, ends: &[(Digest, usize)], marks: &[(usize, CacheMark)], now: f64) -> Option<usize> {
        let is_there = |index: &usize| {
            let end = ends.get(*index).and_then(|(digest, _)| self.entries.get(digest));
            end.is_some_and(|entry| entry.lives_until >= now)
        };
        let found = marks.iter().filter_map(|(mark, _)| {
            let lowest = (mark + 1).saturating_sub(self.rules.lookback.max(1));
            (lowest..=*mark).rev().find(is_there)
        });
        found.max()
    }
}

impl Cache for Breakpoints {
    fn take(
        &mut self,
        _: &SentRequest,
        pieces: &Pieces,
        now: f64,
    ) -> Result<(Figures, Option<Miss>), String> {
        let (ends, marks) = (pieces.ends(), self.marks(pieces)?);
        let tokens_at = |index: usize| ends.get(index).map_or(0, |(_, tokens)| *tokens);
        let hit = self.hit(&ends, &marks, now);
        let read = hit.map_or(0, tokens_at);
        let miss = self.miss(&ends, &marks, read, now);
        for (digest, _) in ends.iter().take(hit.map_or(0, |hit| hit + 1)) {
            if let Some(entry) = self.entries.get_mut(digest).filter(|entry| entry.lives_until >= now) {
                entry.lives_until = now + entry.seconds;
            }
        }
        // A prefix below the minimum is not written, and the provider does not report that.
        let is_new = |index: usize| hit.is_none_or(|hit| index > hit) && tokens_at(index) >= self.min_tokens;
        let new: Vec<(usize, CacheMark)> = marks.into_iter().filter(|(index, _)| is_new(*index)).collect();
        let end_of = |wanted: &[CacheMark]| {
            let own =
                new.iter().filter(|(_, mark)| wanted.contains(mark)).map(|(index, _)| tokens_at(*index));
            own.max().unwrap_or(read)
        };
        let (hour, last) = (end_of(&[CacheMark::Hour]), end_of(&[CacheMark::Hour, CacheMark::Short]));
        let end = new.last().map(|(index, _)| *index).or(hit);
        self.last = end.and_then(|index| ends.get(index)).copied();
        for (index, mark) in &new {
            let seconds = self.seconds(*mark);
            if let Some((digest, _)) = ends.get(*index) {
                self.entries.insert(*digest, CacheEntry { lives_until: now + seconds, seconds });
            }
        }
        let input_tokens = pieces.tokens();
        let figures = Figures {
            input_tokens,
            read,
            written: last - hour,
            written_1h: hour - read,
            uncached: input_tokens - last,
            usd: None,
        };
        Ok((figures, miss))
    }
}
