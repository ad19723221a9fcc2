//! Insertions into a template's text, with the way back from the edited text to the original.

/// Something to insert. Of two at the same place, the lower `rank` comes first.
#[derive(Debug, Clone)]
pub(super) struct Insertion {
    pub(super) offset: usize,
    pub(super) rank: isize,
    pub(super) text: String,
}

/// An edited text.
#[derive(Debug, Clone)]
pub(super) struct Edited {
    pub(super) text: String,
    /// For each insertion: where it begins in the edited text, and how many bytes were inserted up to
    /// its end.
    inserted: Vec<(usize, usize)>,
}

impl Edited {
    pub(super) fn new(original: &str, mut insertions: Vec<Insertion>) -> Self {
        insertions.sort_by_key(|insertion| (insertion.offset, insertion.rank));
        let added: usize = insertions.iter().map(|insertion| insertion.text.len()).sum();
        let mut edited = Self { text: String::with_capacity(original.len() + added), inserted: Vec::new() };
        let (mut copied, mut bytes) = (0, 0);
        for insertion in insertions {
            edited.text.push_str(original.get(copied..insertion.offset).unwrap_or_default());
            copied = insertion.offset;
            bytes += insertion.text.len();
            edited.inserted.push((edited.text.len(), bytes));
            edited.text.push_str(&insertion.text);
        }
        edited.text.push_str(original.get(copied..).unwrap_or_default());
        edited
    }

    /// Where a byte of the edited text stands in the original.
    pub(super) fn original(&self, offset: usize) -> usize {
        let count = self.inserted.partition_point(|(start, _)| *start < offset);
        let Some(last) = count.checked_sub(1) else { return offset };
        let (start, bytes) = self.inserted[last];
        let before = last.checked_sub(1).map_or(0, |earlier| self.inserted[earlier].1);
        // Inside an insertion counts as its beginning.
        offset.saturating_sub(bytes).max(start - before)
    }
}
