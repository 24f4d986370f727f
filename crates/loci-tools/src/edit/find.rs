//! Finding the piece to replace, and helping when it is not there.

use std::borrow::Cow;

use loci_core::agent::unescape_our_tags;

use crate::files::text_file::to_lf;

/// Returns where a piece begins in a text, overlaps left out, and the piece as it was looked for: with line feeds
/// only, should it have come with carriage returns that the text does not show.
pub(super) fn places<'a>(text: &str, piece: &'a str) -> (Cow<'a, str>, Vec<usize>) {
    let exact: Vec<usize> = starts(text, piece);
    if exact.is_empty() && piece.contains("\r\n") {
        let piece = to_lf(piece);
        let found = starts(text, &piece);
        return (piece, found);
    }
    // Elements that only we write are shown escaped, and come back so.
    if exact.is_empty()
        && let Cow::Owned(plain) = unescape_our_tags(piece)
    {
        let found = starts(text, &plain);
        return (Cow::Owned(plain), found);
    }
    (Cow::Borrowed(piece), exact)
}

fn starts(text: &str, piece: &str) -> Vec<usize> {
    if piece.is_empty() {
        // Only an empty file is ever asked for an empty piece.
        return vec![0];
    }
    memchr::memmem::find_iter(text.as_bytes(), piece.as_bytes()).collect()
}

/// Names the lines of the first few places.
pub(super) fn describe_lines(text: &str, places: &[usize]) -> String {
    const SHOWN: usize = 5;
    let lines: Vec<String> = places.iter().take(SHOWN).map(|at| line_number(text, *at).to_string()).collect();
    let more = if places.len() > SHOWN { ", ..." } else { "" };
    format!("lines {}{more}", lines.join(", "))
}

/// Says what may be wrong with a piece that is not in the text, and what to do.
pub(super) fn explain_missing(text: &str, piece: &str) -> String {
    let piece = to_lf(piece);
    if let Some(bare) = without_line_numbers(&piece)
        && let Some(at) = text.find(&bare)
    {
        return format!(
            "It begins its lines with the line numbers that Read shows, which are not part of the file. Without them \
             it is at line {}: leave them out.",
            line_number(text, at)
        );
    }
    if let Some(line) = find_by_lines(text, &piece, squash) {
        return format!(
            "With other white space it would be at line {line}: copy indentation, spaces and line breaks exactly as \
             Read shows them there."
        );
    }
    if let Some(line) = find_by_lines(text, &piece, |line| squash(&plain_marks(line))) {
        return format!(
            "With other quotation marks or dashes it would be at line {line}: copy them exactly as Read shows them there."
        );
    }
    let first = piece.lines().map(str::trim).find(|line| line.len() > 3);
    match first.and_then(|first| text.find(first)) {
        Some(at) if piece.trim().contains('\n') => format!(
            "Its first line is at line {}, but what follows there is different. Read that part again and copy it exactly.",
            line_number(text, at)
        ),
        _ => "Read the part to change again and copy it exactly.".to_owned(),
    }
}

fn line_number(text: &str, at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1
}

/// Removes a number and a tab from every line, if all lines have them.
fn without_line_numbers(piece: &str) -> Option<String> {
    let bare = |line: &str| {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        let has_number = rest.len() < line.trim_start().len();
        rest.strip_prefix(['\t', '→']).filter(|_| has_number).map(str::to_owned)
    };
    let trailing = if piece.ends_with('\n') { "\n" } else { "" };
    let lines: Option<Vec<String>> = piece.lines().map(bare).collect();
    lines.filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n") + trailing)
}

/// Finds a piece when lines are compared in another form; returns the first line of the place.
fn find_by_lines(text: &str, piece: &str, form: impl Fn(&str) -> String) -> Option<usize> {
    let piece: Vec<String> = piece.trim().lines().map(&form).filter(|line| !line.is_empty()).collect();
    let (first, rest) = piece.split_first()?;
    let lines: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .map(|(n, line)| (n + 1, form(line)))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let fits = |at: &usize| match rest.split_last() {
        None => lines[*at].1.contains(first.as_str()),
        Some((last, middle)) => {
            let here = |n: usize| lines.get(at + n).map(|(_, line)| line.as_str());
            here(0).is_some_and(|line| line.ends_with(first.as_str()))
                && middle.iter().enumerate().all(|(n, line)| here(n + 1) == Some(line.as_str()))
                && here(rest.len()).is_some_and(|line| line.starts_with(last.as_str()))
        }
    };
    (0..lines.len()).find(fits).map(|at| lines[at].0)
}

/// Returns a line with single spaces for all its white space.
fn squash(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a text with typewriter marks for typographic ones.
fn plain_marks(text: &str) -> String {
    let plain = |character| match character {
        '“' | '”' | '„' | '«' | '»' => '"',
        '‘' | '’' | '‚' => '\'',
        '–' | '—' | '−' | '‑' => '-',
        other => other,
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_exact_and_do_not_overlap() {
        for (text, piece, expected) in [
            ("aXbXc", "X", vec![1, 3]),
            ("aaaa", "aa", vec![0, 2]),
            ("abc", "d", vec![]),
            ("a.c abc", "a.c", vec![0]),
            ("a\nb", "a\r\nb", vec![0]),
            ("", "", vec![0]),
        ] {
            assert_eq!(places(text, piece).1, expected, "{text:?} {piece:?}");
        }
    }

    #[test]
    fn missing_old_string_is_explained() {
        let text = "fn main() {\n    let a = \"1\";\n\n    let b = 2;\n}\n";
        for (piece, says) in [
            ("2\t    let a = \"1\";\n3\t\n4\t    let b = 2;", "line numbers that Read shows"),
            ("     2→    let a = \"1\";", "at line 2: leave them out"),
            ("let a = \"1\";\nlet b = 2;", "With other white space it would be at line 2"),
            ("\tlet b = 2;", "white space it would be at line 4"),
            ("let  b = 2", "white space it would be at line 4"),
            ("let a = “1”;", "quotation marks or dashes it would be at line 2"),
            ("fn main() {\n    let c = 3;", "Its first line is at line 1"),
            ("nothing of the kind", "Read the part to change again"),
            ("    ", "Read the part to change again"),
        ] {
            let help = explain_missing(text, piece);
            assert!(help.contains(says), "{piece:?}: {help}");
        }
    }
}
