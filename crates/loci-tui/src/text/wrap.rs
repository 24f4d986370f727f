//! Text into rows of a width: by words, by clusters where a script has no blanks, and never inside a word.
//!
//! A word longer than a row (an address, a path, a hash) becomes a row of its own that is left to the terminal to wrap:
//! only then is it copied whole.

use super::{Row, Span, cells, clusters, width};

/// Wraps text to a width. Rows begin with `first`, and from the second on with `rest`.
///
/// The text is clean and has no tabs; a newline in it starts a row.
pub fn wrap(spans: &[Span], row_width: usize, first: &[Span], rest: &[Span]) -> Vec<Row> {
    let mut wrapping = Wrapping::new(row_width, first, rest);
    let mut last: Option<char> = None;
    for span in spans {
        let mut rest = span.text.as_str();
        while let Some(c) = rest.chars().next() {
            let (part, part_cells) = match plain_run(rest) {
                0 => {
                    let cluster = clusters(rest).next().unwrap_or(rest);
                    (cluster, cells(cluster))
                }
                n_bytes => (&rest[..n_bytes], n_bytes),
            };
            rest = &rest[part.len()..];
            match c {
                '\n' => {
                    wrapping.end_word();
                    wrapping.break_row();
                    last = None;
                }
                ' ' => {
                    wrapping.end_word();
                    wrapping.blanks.add(span, &part[..1], 1);
                    last = None;
                }
                _ => {
                    if last.is_some_and(|last| may_break(last, c)) {
                        wrapping.end_word();
                    }
                    wrapping.word.add(span, part, part_cells);
                    last = part.chars().next_back();
                }
            }
        }
    }
    wrapping.end_word();
    wrapping.finish()
}

/// Returns how many bytes at the start are letters of ASCII that nothing parts or joins: each is a cluster and a cell, and no
/// row ends between two of them.
fn plain_run(text: &str) -> usize {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|byte| !(0x21..0x7f).contains(byte)).unwrap_or(bytes.len());
    // What is behind the last one may be a mark on it.
    let may_join = bytes.get(end).is_some_and(|byte| !byte.is_ascii());
    end.saturating_sub(usize::from(may_join))
}

/// Returns a row that fits, with an ellipsis where something was left out.
pub fn truncate(row: &Row, row_width: usize) -> Row {
    if row.width() <= row_width {
        return Row { spans: row.spans.clone(), is_overlong: false };
    }
    let mut out = Row::default();
    let mut room = row_width.saturating_sub(1);
    'spans: for span in &row.spans {
        for cluster in clusters(&span.text) {
            if cells(cluster) > room {
                break 'spans;
            }
            room -= cells(cluster);
            out.push(piece(span, cluster));
        }
    }
    if row_width > 0 {
        let style = out.spans.last().map(|span| span.style).unwrap_or_default();
        out.push(Span::styled("…", style));
    }
    out
}

/// Returns a path that fits: what is left out is in its middle, so that the name of the file stays.
pub fn truncate_path(path: &str, row_width: usize) -> String {
    if width(path) <= row_width {
        return path.to_owned();
    }
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let tail = format!("…/{name}");
    let Some(room) = row_width.checked_sub(width(&tail)).filter(|_| !dir.is_empty()) else {
        return truncate_text(name, row_width);
    };
    let mut begin = String::new();
    for part in dir.split('/') {
        let longer = format!("{begin}{part}/");
        if width(&longer) > room {
            break;
        }
        begin = longer;
    }
    format!("{begin}{tail}")
}

/// Returns a text that fits, with an ellipsis where something was left out.
pub fn truncate_text(text: &str, row_width: usize) -> String {
    truncate(&Row::plain(text), row_width).text()
}

fn piece(span: &Span, text: &str) -> Span {
    Span { text: text.to_owned(), style: span.style, link: span.link.clone() }
}

/// Text that waits for its row, and how many cells it takes.
#[derive(Default)]
struct Pending<'a> {
    parts: Vec<(&'a Span, &'a str)>,
    cells: usize,
}

impl<'a> Pending<'a> {
    fn add(&mut self, span: &'a Span, text: &'a str, n_cells: usize) {
        self.cells += n_cells;
        self.parts.push((span, text));
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.cells = 0;
    }

    /// Puts it at the end of a row.
    fn move_to(&mut self, row: &mut Row) {
        self.parts.drain(..).for_each(|(span, text)| row.push_part(span, text));
        self.cells = 0;
    }
}

struct Wrapping<'a> {
    row_width: usize,
    rest: &'a [Span],
    rows: Vec<Row>,
    row: Row,
    /// Cells of `row`, blanks that wait not counted.
    used: usize,
    /// Whether `row` has more than its prefix.
    has_text: bool,
    /// Blanks before the next word; those at the end of a row are left out.
    blanks: Pending<'a>,
    /// The word that is being read.
    word: Pending<'a>,
}

impl<'a> Wrapping<'a> {
    fn new(row_width: usize, first: &'a [Span], rest: &'a [Span]) -> Self {
        let row = Row::new(first.to_vec());
        let used = row.width();
        let (blanks, word) = (Pending::default(), Pending::default());
        Self { row_width, rest, rows: Vec::new(), row, used, has_text: false, blanks, word }
    }

    fn end_word(&mut self) {
        if self.word.parts.is_empty() {
            return;
        }
        let word_width = self.word.cells;
        if self.has_text && self.used + self.blanks.cells + word_width > self.row_width {
            self.break_row();
        }
        // Blanks at the start of a text are kept, as far as they leave room.
        if self.used + self.blanks.cells + word_width > self.row_width {
            self.blanks.clear();
        }
        self.used += self.blanks.cells + word_width;
        self.blanks.move_to(&mut self.row);
        self.word.move_to(&mut self.row);
        self.has_text = true;
        if self.used > self.row_width {
            self.row.is_overlong = true;
        }
    }

    fn break_row(&mut self) {
        let next = Row::new(self.rest.to_vec());
        self.used = next.width();
        self.rows.push(std::mem::replace(&mut self.row, next));
        self.has_text = false;
        self.blanks.clear();
    }

    fn finish(mut self) -> Vec<Row> {
        self.rows.push(self.row);
        self.rows
    }
}

/// Whether a row may end between two characters that no blank parts.
fn may_break(before: char, after: char) -> bool {
    // Rows of scripts without blanks do not begin with what closes, nor end with what opens.
    const CLOSES: &str = "、。，．！？；：）」』】》〉〕］｝’”…‥・ー々〻っゃゅょッャュョ％!?,.:;)]}";
    const OPENS: &str = "（「『【《〈〔［｛‘“([{";
    if before == '-' || before == '–' || before == '—' {
        return before != '-' && after.is_alphabetic();
    }
    let is_wide = |c: char| unicode_width::UnicodeWidthChar::width(c).unwrap_or(0) > 1;
    (is_wide(before) || is_wide(after)) && !CLOSES.contains(after) && !OPENS.contains(before)
}

impl Row {
    /// Returns how many cells it takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    /// Adds a part of a piece, joined to the last one where they look alike.
    pub(crate) fn push_part(&mut self, span: &Span, text: &str) {
        match self.spans.last_mut() {
            Some(last) if last.style == span.style && last.link == span.link => last.text.push_str(text),
            _ => self.spans.push(piece(span, text)),
        }
    }

    /// Adds a piece, joined to the last one where they look alike.
    pub fn push(&mut self, span: Span) {
        match self.spans.last_mut() {
            Some(last) if last.style == span.style && last.link == span.link => {
                last.text.push_str(&span.text);
            }
            _ => self.spans.push(span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, row_width: usize, expected: &[&str]) {
        let rows = wrap(&[Span::plain(text)], row_width, &[], &[]);
        let texts: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(texts, expected, "{text:?} at {row_width}");
        for row in rows {
            assert_eq!(row.is_overlong, row.width() > row_width, "{row:?}");
        }
    }

    #[test]
    fn path_keeps_the_name_of_its_file() {
        let path = "packages/frontend/src/organisation/settings/InvitationDialog.tsx";
        for (width, expected) in [
            (80, path),
            (50, "packages/frontend/src/…/InvitationDialog.tsx"),
            (40, "packages/frontend/…/InvitationDialog.tsx"),
            (30, "…/InvitationDialog.tsx"),
            (12, "InvitationD…"),
        ] {
            assert_eq!(truncate_path(path, width), expected, "{width}");
        }
        assert_eq!(truncate_path("/home/u/deep/a.rs", 14), "/home/u/…/a.rs");
        assert_eq!(truncate_path("漢字漢字漢字/字.rs", 9), "…/字.rs");
    }

    #[test]
    fn wrap_breaks_between_words_and_drops_blanks_there() {
        check("one two three", 7, &["one two", "three"]);
        check("one two three", 8, &["one two", "three"]);
        check("one  two", 20, &["one  two"]);
        check("  indented text", 10, &["  indented", "text"]);
        check("a\nb\n\nc", 10, &["a", "b", "", "c"]);
        check("", 10, &[""]);
        check("trailing   ", 20, &["trailing"]);
    }

    #[test]
    fn wrap_leaves_a_long_word_to_the_terminal() {
        check(
            "see https://example.com/a/long/path now",
            12,
            &["see", "https://example.com/a/long/path", "now"],
        );
        check("0123456789abcdef", 8, &["0123456789abcdef"]);
        check("run --long-option-name", 12, &["run", "--long-option-name"]);
    }

    #[test]
    fn wrap_breaks_scripts_without_blanks_by_clusters() {
        check("漢字漢字漢字", 5, &["漢字", "漢字", "漢字"]);
        check("漢字。漢字", 4, &["漢", "字。", "漢字"]);
        check("「漢字」", 4, &["「漢", "字」"]);
        check("go漢字go", 4, &["go漢", "字go"]);
        check("👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧", 4, &["👨‍👩‍👧👨‍👩‍👧", "👨‍👩‍👧"]);
        check("e\u{301}e\u{301}e\u{301} x", 3, &["e\u{301}e\u{301}e\u{301}", "x"]);
    }

    #[test]
    fn wrap_puts_prefixes_before_rows() {
        let rows = wrap(&[Span::plain("one two three")], 9, &[Span::plain("- ")], &[Span::plain("  ")]);
        let texts: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(texts, ["- one two", "  three"]);
    }

    #[test]
    fn truncate_ends_with_an_ellipsis_only_where_something_is_missing() {
        for (text, row_width, expected) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("漢字漢字", 4, "漢…"),
            ("漢字漢字", 5, "漢字…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(truncate_text(text, row_width), expected, "{text:?} at {row_width}");
        }
    }
}
