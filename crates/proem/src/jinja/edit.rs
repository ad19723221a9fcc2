//! Insertions into a template's text, with a map from the edited text to the original.

/// A text to insert. Of two at the same place, the lower `rank` comes first.
#[derive(Debug, Clone)]
pub(super) struct Insertion {
    pub(super) offset: usize,
    pub(super) rank: isize,
    pub(super) text: String,
}

/// The record of the insertions into a text.
#[derive(Debug, Clone)]
pub(super) struct EditMap {
    /// The length of the edited text.
    pub(super) bytes: usize,
    /// For each insertion: its start in the edited text, and the number of bytes inserted up to its end.
    inserted: Vec<(usize, usize)>,
}

impl EditMap {
    /// Edits a text.
    pub(super) fn new(original: &str, mut insertions: Vec<Insertion>) -> (String, Self) {
        insertions.sort_by_key(|insertion| (insertion.offset, insertion.rank));
        let added: usize = insertions.iter().map(|insertion| insertion.text.len()).sum();
        let mut text = String::with_capacity(original.len() + added);
        let mut inserted = Vec::with_capacity(insertions.len());
        let (mut copied, mut bytes) = (0, 0);
        for insertion in insertions {
            text.push_str(original.get(copied..insertion.offset).unwrap_or_default());
            copied = insertion.offset;
            bytes += insertion.text.len();
            inserted.push((text.len(), bytes));
            text.push_str(&insertion.text);
        }
        text.push_str(original.get(copied..).unwrap_or_default());
        let edited = Self { bytes: text.len(), inserted };
        (text, edited)
    }

    /// Returns the offset in the original of a byte of the edited text.
    pub(super) fn original(&self, offset: usize) -> usize {
        let count = self.inserted.partition_point(|(start, _)| *start < offset);
        let Some(last) = count.checked_sub(1) else { return offset };
        let (start, bytes) = self.inserted[last];
        let before = last.checked_sub(1).map_or(0, |earlier| self.inserted[earlier].1);
        // Inside an insertion counts as its beginning.
        offset.saturating_sub(bytes).max(start - before)
    }
}
