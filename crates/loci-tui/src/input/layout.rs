//! Where the rows of a line begin, when it is wrapped to a width.
//!
//! A row breaks behind the last blank that fits, else at the last cluster that does. One blank may hang over the edge:
//! the caller leaves a column for it and for the caret. The starts of rows are found as far as somebody asks and kept;
//! an edit forgets those behind it. So the cost of a key does not depend on the length of the line, but for the one that
//! goes to its end after an edit far before it.
//!
//! By hand, because `textwrap` wraps a whole text at once; where clusters end and how wide they are is said by
//! `unicode-segmentation` and `unicode-width`.

use std::borrow::Cow;

use super::chip::{Chips, is_chip_mark};
use crate::text::{cells, clusters, sanitize, width};

/// How wide a tab is shown.
const TAB: &str = "    ";

/// Where the rows of one line begin, as far as that is known.
#[derive(Debug, Clone, Default)]
pub(super) struct RowStarts {
    /// For this width; zero before the first time.
    width: usize,
    starts: Vec<usize>,
    /// There are no more.
    is_complete: bool,
}

impl RowStarts {
    /// Forgets what a change at this place may have changed: the two breaks before it too, since a shorter word may fit there,
    /// and since a row may have ended where it did for the sake of a wide cluster that begins the row after the next.
    pub(super) fn note_change(&mut self, at: usize) {
        let row = self.starts.partition_point(|start| *start <= at).saturating_sub(2);
        self.starts.truncate(row.max(1));
        self.is_complete = false;
    }

    /// Returns where a row begins, if there is such a row.
    pub(super) fn start(&mut self, text: &str, width: usize, chips: &Chips, row: usize) -> Option<usize> {
        self.find_until(text, width, chips, |starts| starts.len() > row);
        self.starts.get(row).copied()
    }

    /// Returns the row that a byte is in.
    pub(super) fn row_of(&mut self, text: &str, width: usize, chips: &Chips, byte: usize) -> usize {
        self.find_until(text, width, chips, |starts| starts.last().is_some_and(|start| *start > byte));
        self.starts.partition_point(|start| *start <= byte).saturating_sub(1)
    }

    /// Returns the last row.
    pub(super) fn last_row(&mut self, text: &str, width: usize, chips: &Chips) -> usize {
        self.find_until(text, width, chips, |_| false);
        self.starts.len() - 1
    }

    fn find_until(&mut self, text: &str, width: usize, chips: &Chips, is_enough: impl Fn(&[usize]) -> bool) {
        if self.width != width {
            *self = Self { width, starts: vec![0], is_complete: false };
        }
        while !self.is_complete && !is_enough(&self.starts) {
            let start = self.starts.last().copied().unwrap_or(0);
            let (end, hangs) = row_end(text, start, width, chips);
            self.is_complete = end == text.len();
            if !self.is_complete || hangs {
                self.starts.push(end);
            }
        }
    }
}

/// Returns where the row that begins at `start` ends, and whether a blank hangs over its edge.
fn row_end(text: &str, start: usize, width: usize, chips: &Chips) -> (usize, bool) {
    let mut column = 0;
    let mut at = start;
    let mut last_break = None;
    for cluster in clusters(&text[start..]) {
        count_cluster();
        let n_cells = cluster_cells(cluster, chips).1;
        let end = at + cluster.len();
        if column + n_cells > width {
            if cluster == " " {
                return (end, true);
            }
            // A cluster that is wider than the row has a row to itself.
            let forced = if at == start { end } else { at };
            return (last_break.unwrap_or(forced), false);
        }
        column += n_cells;
        at = end;
        if matches!(cluster, " " | "\t") || n_cells > 1 {
            last_break = Some(at);
        }
    }
    (at, false)
}

/// Returns how a cluster is shown and how many cells that takes.
pub(super) fn cluster_cells<'a>(cluster: &'a str, chips: &'a Chips) -> (Cow<'a, str>, usize) {
    let first = cluster.chars().next().unwrap_or(' ');
    if cluster.len() == 1 && first != '\t' {
        return (Cow::Borrowed(cluster), 1);
    }
    if let Some(chip) = Some(first).filter(|first| is_chip_mark(*first)).and_then(|first| chips.of(first)) {
        return (Cow::Borrowed(&chip.label), width(&chip.label));
    }
    if first == '\t' {
        return (Cow::Borrowed(TAB), TAB.len());
    }
    match sanitize(cluster) {
        Cow::Borrowed(cluster) => (Cow::Borrowed(cluster), cells(cluster)),
        Cow::Owned(marked) => {
            let n_cells = width(&marked);
            (Cow::Owned(marked), n_cells)
        }
    }
}

#[cfg(test)]
thread_local! {
    /// How many clusters were looked at, for tests that hold the cost of a key.
    pub(super) static N_CLUSTERS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn count_cluster() {
    N_CLUSTERS.with(|count| count.set(count.get() + 1));
}

#[cfg(not(test))]
fn count_cluster() {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_starts(rows: &mut RowStarts, text: &str, width: usize) -> Vec<usize> {
        rows.last_row(text, width, &Chips::default());
        rows.starts.clone()
    }

    fn rows(text: &str, width: usize) -> Vec<String> {
        let starts = all_starts(&mut RowStarts::default(), text, width);
        let ends = starts[1..].iter().copied().chain([text.len()]);
        starts.iter().zip(ends).map(|(start, end)| text[*start..end].to_owned()).collect()
    }

    #[test]
    fn lines_break_behind_blanks() {
        assert_eq!(rows("one two three", 8), ["one two ", "three"]);
        assert_eq!(rows("one two three", 7), ["one two ", "three"]);
        assert_eq!(rows("one two three", 6), ["one ", "two ", "three"]);
        assert_eq!(rows("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(rows("", 3), [""]);
        assert_eq!(rows("abc", 3), ["abc"]);
        assert_eq!(rows("abc ", 3), ["abc ", ""]);
        assert_eq!(rows("a  b", 1), ["a ", " ", "b"]);
        assert_eq!(rows("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(rows("漢", 1), ["漢"]);
        assert_eq!(rows("ab 漢字", 4), ["ab ", "漢字"]);
        assert_eq!(rows("\tx", 4), ["\t", "x"]);
    }

    #[test]
    fn blank_in_the_place_of_a_wide_cluster_reaches_two_rows_back() {
        let mut rows = RowStarts::default();
        assert_eq!(all_starts(&mut rows, " aaa漢b", 4), [0, 1, 4]);
        rows.note_change(4);
        assert_eq!(all_starts(&mut rows, " aaa b", 4), [0, 5]);
    }

    proptest! {
        #[test]
        fn rows_after_edits_are_the_rows_of_the_whole(
            words in proptest::collection::vec("[ab漢 ]{0,9}", 1..12),
            edits in proptest::collection::vec((any::<proptest::sample::Index>(), 0_usize..12, "[xy 漢]{0,6}"), 1..6),
            width in 1_usize..12,
            n_rows in 0_usize..9,
        ) {
            let chips = Chips::default();
            let mut text = words.concat();
            let mut rows = RowStarts::default();
            rows.last_row(&text, width, &chips);
            for (at, n_removed, inserted) in edits {
                let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
                let from = at.index(places.len());
                let to = (from + n_removed).min(places.len() - 1);
                text.replace_range(places[from]..places[to], &inserted);
                rows.note_change(places[from]);
                rows.start(&text, width, &chips, n_rows);
            }
            let fresh = all_starts(&mut RowStarts::default(), &text, width);
            prop_assert_eq!(all_starts(&mut rows, &text, width), fresh);
        }
    }
}
