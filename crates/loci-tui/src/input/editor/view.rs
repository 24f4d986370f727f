//! The input as rows: only those that are seen are ever laid out.

use std::ops::Range;

use super::super::buffer::Position;
use super::super::chip::{InputMode, is_chip_mark};
use super::super::layout::cluster_cells;
use super::Editor;
use crate::text::{Color, Row, Span, Style, clusters};
use crate::theme::ThemeToken;

/// How the parts of the input look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputStyles {
    /// What is typed.
    pub text: Style,
    /// Chips.
    pub chip: Style,
    /// The suggestion in an empty input.
    pub ghost: Style,
}

impl Default for InputStyles {
    fn default() -> Self {
        Self {
            text: Style::default(),
            chip: Style { fg: Color::Themed(ThemeToken::Permission), ..Style::default() },
            ghost: Style { is_dim: true, ..Style::default() },
        }
    }
}

/// The rows of the input that are seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputView {
    /// The rows, at least one.
    pub rows: Vec<Row>,
    /// Where the caret stands: row, and column in cells, always below the width.
    pub caret: (usize, u16),
    /// There is more above.
    pub is_cut_above: bool,
    /// There is more below.
    pub is_cut_below: bool,
}

/// The word that asks the model to think hard; it is seen that it is understood.
const KEYWORD: &str = "ultrathink";
/// The colours of its letters.
const RAINBOW: [ThemeToken; 7] = [
    ThemeToken::RainbowRed,
    ThemeToken::RainbowOrange,
    ThemeToken::RainbowYellow,
    ThemeToken::RainbowGreen,
    ThemeToken::RainbowBlue,
    ThemeToken::RainbowIndigo,
    ThemeToken::RainbowViolet,
];

/// Finds the keyword in a part of a line, as a word by itself.
fn keywords(line: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let is_letter =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = line.as_bytes();
    let starts = part.start..=part.end.saturating_sub(KEYWORD.len());
    let word = |start: usize| start..start + KEYWORD.len();
    let is_keyword = |found: &Range<usize>| {
        bytes.get(found.clone()).is_some_and(|it| it.eq_ignore_ascii_case(KEYWORD.as_bytes()))
            && !is_letter(found.start.checked_sub(1).and_then(|at| bytes.get(at)))
            && !is_letter(bytes.get(found.end))
    };
    starts.map(word).filter(is_keyword).collect()
}

/// One row: which line, and which of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct RowPlace {
    line: usize,
    row: usize,
}

/// What is seen of the input.
#[derive(Debug)]
pub(super) struct Viewport {
    /// How many cells a row has, without the one that is left for the caret.
    width: usize,
    /// The first row that is seen.
    top: RowPlace,
}

impl Default for Viewport {
    fn default() -> Self {
        Self { width: 79, top: RowPlace::default() }
    }
}

impl Editor {
    /// Shows the input in rows of this width, at most so many, scrolled so that the caret is seen.
    pub fn rows(&mut self, width: usize, max_height: usize, styles: &InputStyles) -> InputView {
        self.view.width = width.saturating_sub(1).max(1);
        let height = max_height.max(1);
        if let Some(ghost) = self.ghost.as_ref().filter(|_| self.is_empty()) {
            let shown = crate::text::truncate_text(&crate::text::sanitize_line(ghost), self.view.width);
            let rows = vec![Row::new(vec![Span::styled(shown, styles.ghost)])];
            return InputView { rows, caret: (0, 0), is_cut_above: false, is_cut_below: false };
        }
        let (caret_row, column) = self.caret_cell();
        self.scroll(caret_row, height);
        let mut rows = Vec::new();
        let mut caret = 0;
        let mut next = Some(self.view.top);
        while let Some(place) = next.filter(|_| rows.len() < height) {
            if place == caret_row {
                caret = rows.len();
            }
            rows.push(self.row(place, styles));
            next = self.row_below(place);
        }
        let column = u16::try_from(column.min(width.saturating_sub(1))).unwrap_or(u16::MAX);
        let is_cut_above = self.view.top != RowPlace::default();
        InputView { rows, caret: (caret, column), is_cut_above, is_cut_below: next.is_some() }
    }

    /// Moves the first row that is seen, as little as need be.
    fn scroll(&mut self, caret: RowPlace, height: usize) {
        let highest = self.rows_above(caret, height - 1);
        let top = self.view.top.clamp(highest, caret);
        // The rows of the line may be fewer now.
        let top = match self.row_start(top) {
            Some(_) => top,
            None => RowPlace { row: self.last_row(top.line), ..top },
        };
        let mut n_seen = 1;
        let mut last = top;
        while n_seen < height {
            let Some(below) = self.row_below(last) else { break };
            last = below;
            n_seen += 1;
        }
        self.view.top = self.rows_above(top, height - n_seen);
    }

    /// The row so many above, or the first.
    fn rows_above(&mut self, from: RowPlace, n_rows: usize) -> RowPlace {
        let mut place = from;
        for _ in 0..n_rows {
            match self.row_above(place) {
                Some(above) => place = above,
                None => break,
            }
        }
        place
    }

    pub(super) fn row_above(&mut self, place: RowPlace) -> Option<RowPlace> {
        if place.row > 0 {
            return Some(RowPlace { row: place.row - 1, ..place });
        }
        let line = place.line.checked_sub(1)?;
        Some(RowPlace { line, row: self.last_row(line) })
    }

    pub(super) fn row_below(&mut self, place: RowPlace) -> Option<RowPlace> {
        let below = RowPlace { row: place.row + 1, ..place };
        if self.row_start(below).is_some() {
            return Some(below);
        }
        (place.line + 1 < self.buffer.n_lines()).then_some(RowPlace { line: place.line + 1, row: 0 })
    }

    /// The row of the caret, and its column in cells.
    pub(super) fn caret_cell(&mut self) -> (RowPlace, usize) {
        let Position { line, byte } = self.caret;
        let row = self.buffer.row_of(self.caret, self.view.width, &self.chips);
        let place = RowPlace { line, row };
        let start = self.row_start(place).unwrap_or(0);
        let before = &self.buffer.line(line)[start..byte];
        let column = clusters(before).map(|cluster| cluster_cells(cluster, &self.chips).1).sum();
        (place, column)
    }

    /// Puts the caret into a row so many below its own, or above, near a column; false where there is no such row.
    pub fn click(&mut self, n_rows: isize, column: usize) -> bool {
        let (mut place, _) = self.caret_cell();
        for _ in 0..n_rows.unsigned_abs() {
            let next = if n_rows < 0 { self.row_above(place) } else { self.row_below(place) };
            match next {
                Some(next) => place = next,
                None => return false,
            }
        }
        self.caret = self.position_in_row(place, column);
        true
    }

    /// The place in a row that is nearest to a column, not behind it.
    pub(super) fn position_in_row(&mut self, place: RowPlace, column: usize) -> Position {
        let start = self.row_start(place).unwrap_or(0);
        let end = self.row_start(RowPlace { row: place.row + 1, ..place });
        let line = self.buffer.line(place.line);
        let mut byte = start;
        let mut left = column;
        for cluster in clusters(&line[start..end.unwrap_or(line.len())]) {
            let n_cells = cluster_cells(cluster, &self.chips).1;
            // Behind the last cluster of a wrapped row is the next row.
            let is_last = end == Some(byte + cluster.len());
            if n_cells > left || is_last {
                break;
            }
            left -= n_cells;
            byte += cluster.len();
        }
        Position { line: place.line, byte }
    }

    /// Where a row begins, if there is such a row.
    fn row_start(&mut self, place: RowPlace) -> Option<usize> {
        self.buffer.row_start(place.line, place.row, self.view.width, &self.chips)
    }

    fn last_row(&mut self, line: usize) -> usize {
        self.buffer.last_row(line, self.view.width, &self.chips)
    }

    fn row(&mut self, place: RowPlace, styles: &InputStyles) -> Row {
        let start = self.row_start(place).unwrap_or(0);
        let end = self.row_start(RowPlace { row: place.row + 1, ..place });
        let line = self.buffer.line(place.line);
        let mut spans: Vec<Span> = Vec::new();
        let mut column = 0;
        let mut byte = start;
        let keywords = match self.mode {
            InputMode::Prompt => keywords(line, start..end.unwrap_or(line.len())),
            InputMode::Shell => Vec::new(),
        };
        for cluster in clusters(&line[start..end.unwrap_or(line.len())]) {
            let (text, n_cells) = cluster_cells(cluster, &self.chips);
            column += n_cells;
            // A blank that hangs over the edge is not drawn, and neither is a label that is wider than the row.
            if column > self.view.width && cluster == " " {
                break;
            }
            let is_chip = cluster.starts_with(is_chip_mark);
            let style = if is_chip { styles.chip } else { styles.text };
            let at = Position { line: place.line, byte };
            let rainbow = keywords.iter().find(|word| word.contains(&byte)).map(|word| byte - word.start);
            let style = match rainbow.and_then(|letter| RAINBOW.get(letter % RAINBOW.len())) {
                Some(token) => Style { fg: Color::Themed(*token), is_bold: true, ..style },
                None => style,
            };
            byte += cluster.len();
            let is_selected = self.selection.is_some_and(|(from, to)| from <= at && at < to);
            let style = Style { is_reversed: is_selected, ..style };
            let text = if n_cells > self.view.width {
                crate::text::truncate_text(&text, self.view.width)
            } else {
                text.into_owned()
            };
            match spans.last_mut() {
                Some(span) if span.style == style => span.text.push_str(&text),
                _ => spans.push(Span::styled(text, style)),
            }
        }
        Row::new(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyword_is_found_as_a_word_by_itself() {
        let found = |line: &str| keywords(line, 0..line.len()).len();
        for (line, n) in [
            ("ultrathink", 1),
            ("please Ultrathink, and ULTRATHINK", 2),
            ("ultrathinking", 0),
            ("my_ultrathink", 0),
            ("ultra think", 0),
            ("", 0),
            ("日本 ultrathink", 1),
        ] {
            assert_eq!(found(line), n, "{line}");
        }
    }

    #[test]
    fn letters_of_the_keyword_have_the_colours_of_the_rainbow() {
        let mut editor = Editor::default();
        editor.insert("an ultrathink");
        let view = editor.rows(40, 2, &InputStyles::default());
        let spans = &view.rows[0].spans;
        assert_eq!((spans[0].text.as_str(), spans[1].text.as_str()), ("an ", "u"));
        assert_eq!(spans[1].style.fg, Color::Themed(ThemeToken::RainbowRed));
        assert_eq!(
            spans[8].style.fg,
            Color::Themed(ThemeToken::RainbowRed),
            "the eighth letter begins again"
        );
    }
}
