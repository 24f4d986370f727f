//! One line of the result: `path:12:text` for a match, `path-11-text` for its surroundings.

use std::borrow::Cow;

/// How many characters of a line are shown.
pub(super) const MAX_COLUMNS: usize = 500;
/// How much of a long line is shown in front of a match that lies far to the right.
const LEAD: usize = 100;

/// What a line is there for; it decides the separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It matches.
    Match,
    /// It stands near one that does.
    Context,
}

/// Renders a line of a file. `focus` is where in the bytes the match starts; a long line is cut around it.
pub(super) fn render(path: &str, number: Option<u64>, role: Role, bytes: &[u8], focus: usize) -> String {
    let mark = match role {
        Role::Match => ':',
        Role::Context => '-',
    };
    let text = cut(without_line_end(bytes), focus);
    match number {
        Some(number) => format!("{path}{mark}{number}{mark}{text}"),
        None => format!("{path}{mark}{text}"),
    }
}

/// Returns the bytes in front of `\n` or `\r\n`.
pub(super) fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// Returns at most [`MAX_COLUMNS`] characters and says so when there are more.
fn cut(bytes: &[u8], focus: usize) -> Cow<'_, str> {
    if bytes.len() <= MAX_COLUMNS {
        return String::from_utf8_lossy(bytes);
    }
    let start = start_of_window(bytes, focus);
    // No character takes more than four bytes, so this is always enough, however long the line is.
    let end = bytes.len().min(start + 4 * MAX_COLUMNS);
    let window = String::from_utf8_lossy(&bytes[start..end]);
    let length = window.char_indices().nth(MAX_COLUMNS).map_or(window.len(), |(idx, _)| idx);
    if start == 0 && end == bytes.len() && length == window.len() {
        return window;
    }
    let before = if start > 0 { "[…] " } else { "" };
    Cow::Owned(format!("{before}{} […] (cut: {} bytes)", &window[..length], bytes.len()))
}

fn start_of_window(bytes: &[u8], focus: usize) -> usize {
    if focus <= MAX_COLUMNS - LEAD {
        return 0;
    }
    let start = focus.min(bytes.len()) - LEAD;
    let is_inside_char = |idx: &usize| bytes.get(*idx).is_some_and(|byte| byte & 0xC0 == 0x80);
    (start..start + 4).find(|idx| !is_inside_char(idx)).unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_marked_and_trimmed() {
        for (number, role, bytes, expected) in [
            (Some(7), Role::Match, &b"text\n"[..], "p:7:text"),
            (Some(7), Role::Context, b"text\r\n", "p-7-text"),
            (None, Role::Match, b"text", "p:text"),
            (None, Role::Context, b"\n", "p-"),
            (Some(1), Role::Match, b"a\xffb\n", "p:1:a\u{fffd}b"),
        ] {
            assert_eq!(render("p", number, role, bytes, 0), expected);
        }
    }

    #[test]
    fn long_lines_are_cut_at_500_columns() {
        let shown = |text: &str, focus: usize| cut(text.as_bytes(), focus).into_owned();
        assert_eq!(shown(&"x".repeat(500), 0), "x".repeat(500));
        assert_eq!(shown(&"x".repeat(501), 0), format!("{} […] (cut: 501 bytes)", "x".repeat(500)));
        // Columns are characters, not bytes.
        assert_eq!(shown(&"é".repeat(500), 0), "é".repeat(500));
        assert_eq!(shown(&"é".repeat(501), 0), format!("{} […] (cut: 1002 bytes)", "é".repeat(500)));
    }

    #[test]
    fn a_match_far_to_the_right_is_shown() {
        let text = format!("{}needle{}", "é".repeat(5_000), "z".repeat(5_000));
        let shown = cut(text.as_bytes(), 10_000);
        assert!(shown.starts_with("[…] é") && shown.contains("éneedlez"), "{shown}");
        assert!(!shown.contains('\u{fffd}'));
    }
}
