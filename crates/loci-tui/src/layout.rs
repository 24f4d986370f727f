//! Small pieces that dialogs, panels and the status area are laid out with.

use crate::screen::split_row;
use crate::text::{Color, Row, Span, Style, sanitize_line, truncate, width, wrap};
use crate::theme::ThemeToken;

/// What stands before the row, of an answer or of a list, that the keys act on.
pub(crate) const MARK: &str = "❯ ";
/// What stands before the others.
pub(crate) const NO_MARK: &str = "  ";
/// What stands before the first row that is seen of a list that begins further up.
pub(crate) const MORE_ABOVE: &str = "↑ ";
/// What stands before the last row that is seen of a list that goes on.
pub(crate) const MORE_BELOW: &str = "↓ ";

/// Takes from a row of a list what stands before it; none where the text is no such row.
pub(crate) fn without_mark(text: &str) -> Option<&str> {
    let rest = [MARK, NO_MARK, MORE_ABOVE, MORE_BELOW].iter().find_map(|mark| text.strip_prefix(mark));
    rest.filter(|rest| !rest.trim().is_empty())
}

/// Tells whether a text is a row of a list that the keys do not act on.
pub(crate) fn is_unmarked_row(text: &str) -> bool {
    !text.starts_with(MARK) && without_mark(text).is_some()
}

/// Returns the place of the row that the keys act on.
pub(crate) fn marked_row(rows: &[Row]) -> Option<usize> {
    rows.iter().position(|row| row.spans.first().is_some_and(|span| span.text.starts_with(MARK)))
}

/// Returns what stands before a row.
pub(crate) fn mark_of(is_marked: bool) -> &'static str {
    if is_marked { MARK } else { NO_MARK }
}

/// The look of what is meant to be read second.
pub(crate) fn faint() -> Style {
    Style { fg: Color::Themed(ThemeToken::Inactive), is_dim: true, ..Style::default() }
}

/// The look of a title.
pub(crate) fn bold() -> Style {
    Style { is_bold: true, ..Style::default() }
}

/// The look of what the keys act on.
pub(crate) fn marked() -> Style {
    Style { fg: Color::Themed(ThemeToken::Suggestion), is_bold: true, ..Style::default() }
}

/// The look of a command or a path.
pub(crate) fn code() -> Style {
    Style { fg: Color::Themed(ThemeToken::Permission), ..Style::default() }
}

/// The look of what may go wrong.
pub(crate) fn warning() -> Style {
    Style { fg: Color::Themed(ThemeToken::Warning), ..Style::default() }
}

/// Returns how many cells a text takes.
pub(crate) fn cells(text: &str) -> u16 {
    u16::try_from(width(text)).unwrap_or(u16::MAX)
}

/// Makes one row; it is cut where it is drawn.
pub(crate) fn line(text: &str, style: Style) -> Row {
    Row::new(vec![Span::styled(sanitize_line(text), style)])
}

/// Says how many rows of a text are not seen, above and below those that are.
pub(crate) fn unseen_rows(above: usize, below: usize) -> Row {
    let rows = |n: usize| if n == 1 { "row" } else { "rows" };
    let note = match (above, below) {
        (0, below) => format!("… {below} more {} (PgDn)", rows(below)),
        (above, 0) => format!("… {above} {} above (PgUp)", rows(above)),
        (above, below) => format!("… {above} {} above, {below} below", rows(above)),
    };
    line(&note, faint())
}

/// Cuts a row to a width.
pub(crate) fn cut(row: &Row, width: u16) -> Row {
    truncate(row, usize::from(width))
}

/// Makes rows of a text: `lead` stands before the first, the others are indented as far.
pub(crate) fn paragraph(lead: &str, text: &str, style: Style, width: u16) -> Vec<Row> {
    let first = [Span::styled(lead, style)];
    let rest = [Span::plain(" ".repeat(usize::from(cells(lead))))];
    let mut rows = Vec::new();
    for (idx, part) in text.split('\n').enumerate() {
        let span = [Span::styled(sanitize_line(part), style)];
        let lead = if idx == 0 { &first } else { &rest };
        let wrapped = wrap(&span, usize::from(width.max(1)), lead, &rest);
        // Nothing of it may be out of sight: a word that is longer than the row is broken.
        rows.extend(wrapped.iter().flat_map(|row| split_row(row, usize::from(width))));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_list_are_known_by_what_stands_before_them() {
        for (text, rest, is_unmarked) in [
            ("❯ one", Some("one"), false),
            ("  one", Some("one"), true),
            ("↑ one", Some("one"), true),
            ("↓ one", Some("one"), true),
            ("  ", None, false),
            ("", None, false),
            ("↑↓ scroll · Esc close", None, false),
            ("Search: one", None, false),
        ] {
            assert_eq!((without_mark(text), is_unmarked_row(text)), (rest, is_unmarked), "{text}");
        }
    }

    #[test]
    fn word_longer_than_the_row_is_broken_and_shown_whole() {
        let word = format!("https://example.com/{}日本;rm", "x".repeat(60));
        for width in [5, 20, 50] {
            let rows = paragraph("  ", &format!("curl {word} -o f"), Style::default(), width);
            assert!(rows.iter().all(|row| row.width() <= usize::from(width)), "{width}");
            let text: String = rows.iter().map(Row::text).collect();
            assert!(text.replace(' ', "").contains(&word), "{width}: {text}");
        }
    }
}
