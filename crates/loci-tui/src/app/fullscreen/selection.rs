//! Text that is selected with the mouse: between two places of the conversation, wherever it is scrolled to.

use super::super::virtual_list::Position;
use crate::text::{Row, Span, cells, clusters};

/// A cell of the conversation: a row of it, and a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) at: Position,
    pub(super) column: usize,
}

/// What is selected: from where it began to where it is drawn to, both cells included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) anchor: Point,
    pub(super) head: Point,
}

impl Selection {
    /// Returns its ends in order.
    pub(super) fn ends(&self) -> (Point, Point) {
        (self.anchor.min(self.head), self.anchor.max(self.head))
    }

    /// Returns the columns of a row that are selected: the first, and the one behind the last.
    pub(super) fn columns(&self, at: Position) -> Option<(usize, usize)> {
        let (first, last) = self.ends();
        if at < first.at || at > last.at {
            return None;
        }
        let from = if at == first.at { first.column } else { 0 };
        let to = if at == last.at { last.column + 1 } else { usize::MAX };
        Some((from, to))
    }
}

/// Shows which columns of a row are selected.
pub(super) fn highlighted(row: &Row, (from, to): (usize, usize)) -> Row {
    let mut out = Row { spans: Vec::new(), is_overlong: row.is_overlong };
    let mut column = 0;
    for span in &row.spans {
        for cluster in clusters(&span.text) {
            let is_selected = (from..to).contains(&column);
            let style =
                crate::text::Style { is_reversed: span.style.is_reversed ^ is_selected, ..span.style };
            out.push(Span { text: cluster.to_owned(), style, link: span.link.clone() });
            column += cells(cluster);
        }
    }
    out
}

/// Returns the text of some columns of a row.
pub(super) fn text_between(row: &Row, (from, to): (usize, usize)) -> String {
    let mut text = String::new();
    let mut column = 0;
    for cluster in row.spans.iter().flat_map(|span| clusters(&span.text)) {
        if (from..to).contains(&column) {
            text.push_str(cluster);
        }
        column += cells(cluster);
    }
    text
}

/// Returns the columns of the word at a column, both ends included; a path or an address is one word.
pub(super) fn word_at(row: &Row, column: usize) -> Option<(usize, usize)> {
    let mut words: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    let mut was_word = false;
    for cluster in row.spans.iter().flat_map(|span| clusters(&span.text)) {
        let is_word = cluster.chars().all(is_word_char);
        let end = at + cells(cluster).max(1) - 1;
        match words.last_mut() {
            Some(last) if is_word && was_word => last.1 = end,
            _ if is_word => words.push((at, end)),
            _ => {}
        }
        was_word = is_word;
        at += cells(cluster);
    }
    words.into_iter().find(|(first, last)| (*first..=*last).contains(&column))
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || "/-_.~:+@%#?&=".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_cells() {
        let row = Row::plain("ab漢字cd 👍🏽 x");
        for ((from, to), expected) in [
            ((0, 2), "ab"),
            ((2, 6), "漢字"),
            ((4, 7), "字c"),
            ((9, 11), "👍🏽"),
            ((0, usize::MAX), "ab漢字cd 👍🏽 x"),
        ] {
            assert_eq!(text_between(&row, (from, to)), expected, "{from} {to}");
            let reversed: String = highlighted(&row, (from, to))
                .spans
                .iter()
                .filter(|span| span.style.is_reversed)
                .map(|span| span.text.as_str())
                .collect();
            assert_eq!(reversed, expected, "{from} {to}");
        }
    }

    #[test]
    fn word_is_a_path_or_an_address_as_a_whole() {
        let row = Row::plain("see src/main.rs:10, https://a.b/c?d=e 漢字");
        for (column, expected) in [
            (0, Some("see")),
            (3, None),
            (6, Some("src/main.rs:10")),
            (30, Some("https://a.b/c?d=e")),
            (39, Some("漢字")),
        ] {
            let word = word_at(&row, column).map(|(first, last)| text_between(&row, (first, last + 1)));
            assert_eq!(word.as_deref(), expected, "{column}");
        }
    }

    #[test]
    fn rows_between_the_ends_are_selected_whole_whichever_way_it_was_drawn() {
        let point = |block, row, column| Point { at: Position { block, row }, column };
        let down = Selection { anchor: point(1, 2, 5), head: point(3, 0, 4) };
        let up = Selection { anchor: down.head, head: down.anchor };
        for selection in [down, up] {
            let columns = |block, row| selection.columns(Position { block, row });
            assert_eq!(columns(1, 1), None);
            assert_eq!(columns(1, 2), Some((5, usize::MAX)));
            assert_eq!(columns(2, 7), Some((0, usize::MAX)));
            assert_eq!(columns(3, 0), Some((0, 5)));
            assert_eq!(columns(3, 1), None);
        }
    }
}
