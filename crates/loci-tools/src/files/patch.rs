//! What a change did to a text, as hunks of lines: the `structuredPatch` of the transcript.
//!
//! Only what lies between the first and the last difference is compared, so the cost follows the change and not
//! the file; where that is very much on both sides, it counts as replaced in whole. The same texts give the same hunks.

use std::ops::Range;

use loci_core::diff::{LineChange, line_changes_within};
use loci_stdx::counted;
use memchr::{memchr_iter, memrchr};
use serde::Serialize;

/// Lines shown around a change.
const CONTEXT: usize = 3;

/// Pairs of lines that are compared at most: two thousand with as many.
const MOST_PAIRS: usize = 4_000_000;

/// Most lines of a snippet.
const MAX_SNIPPET_LINES: usize = 60;

/// Changed lines that lie together, with a few around them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hunk {
    pub(crate) old_start: usize,
    pub(crate) old_lines: usize,
    pub(crate) new_start: usize,
    pub(crate) new_lines: usize,
    /// Each with ` `, `-` or `+` before it; a line without a line feed is followed by a remark.
    pub(crate) lines: Vec<String>,
}

/// A line of either text, as a hunk shows it.
struct Line<'a> {
    sign: char,
    text: &'a str,
    /// Where it stands in the old text and in the new one, or would, counted from zero.
    old_at: usize,
    new_at: usize,
}

/// Returns the hunks that lead from one text to another.
pub(crate) fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let from = common_start(old, new);
    let tail = common_end(&old[from..], &new[from..]);
    let skipped = memchr_iter(b'\n', &old.as_bytes()[..from]).count();
    let lines = lines(&old[from..old.len() - tail], &new[from..new.len() - tail]);
    places(&lines).into_iter().map(|place| Hunk::of(&lines[place], skipped)).collect()
}

/// Returns the lines of both texts in order, those that stay once.
fn lines<'a>(old: &'a str, new: &'a str) -> Vec<Line<'a>> {
    let changes = line_changes_within(old, new, MOST_PAIRS);
    let (mut old, mut new) = (old.split_inclusive('\n'), new.split_inclusive('\n'));
    let (mut old_at, mut new_at) = (0, 0);
    let mut lines = Vec::with_capacity(changes.len());
    for change in changes {
        let (sign, before, after) = match change {
            LineChange::Kept(_) => (' ', old.next(), new.next()),
            LineChange::Gone => ('-', old.next(), None),
            LineChange::New => ('+', None, new.next()),
        };
        lines.extend(before.or(after).map(|text| Line { sign, text, old_at, new_at }));
        old_at += usize::from(before.is_some());
        new_at += usize::from(after.is_some());
    }
    lines
}

/// Returns where changes lie together, with a few lines around them.
fn places(lines: &[Line<'_>]) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = Vec::new();
    for (idx, _) in lines.iter().enumerate().filter(|(_, line)| line.sign != ' ') {
        let place = idx.saturating_sub(CONTEXT)..(idx + CONTEXT + 1).min(lines.len());
        match places.last_mut() {
            Some(last) if place.start <= last.end => last.end = place.end,
            _ => places.push(place),
        }
    }
    places
}

impl Hunk {
    fn of(lines: &[Line<'_>], skipped: usize) -> Self {
        let (old_at, new_at) = lines.first().map_or((0, 0), |line| (line.old_at, line.new_at));
        let shown = |line: &Line<'_>| {
            let is_open = !line.text.ends_with('\n');
            let text = format!("{}{}", line.sign, line.text.strip_suffix('\n').unwrap_or(line.text));
            std::iter::once(text).chain(is_open.then(|| r"\ No newline at end of file".to_owned()))
        };
        Self {
            old_start: skipped + old_at + 1,
            old_lines: lines.iter().filter(|line| line.sign != '+').count(),
            new_start: skipped + new_at + 1,
            new_lines: lines.iter().filter(|line| line.sign != '-').count(),
            lines: lines.iter().flat_map(shown).collect(),
        }
    }
}

/// Returns the changed regions of the new text with line numbers, as Read shows them.
pub(crate) fn snippet(hunks: &[Hunk]) -> String {
    let mut out: Vec<String> = Vec::new();
    for hunk in hunks {
        if !out.is_empty() {
            out.push("...".to_owned());
        }
        let lines = hunk.lines.iter().filter_map(|line| line.strip_prefix([' ', '+']));
        out.extend(lines.enumerate().map(|(n, line)| format!("{}\t{line}", hunk.new_start + n)));
    }
    if out.len() > MAX_SNIPPET_LINES {
        let n_more = out.len() - MAX_SNIPPET_LINES;
        out.truncate(MAX_SNIPPET_LINES);
        out.push(format!("... ({})", counted(n_more as u64, "more line", "more lines")));
    }
    out.join("\n")
}

/// Returns how many bytes both texts begin with, in whole lines, less the context a hunk needs.
fn common_start(old: &str, new: &str) -> usize {
    let n_same = old.bytes().zip(new.bytes()).take_while(|(left, right)| left == right).count();
    let mut at = line_start(old, n_same);
    for _ in 0..CONTEXT {
        at = line_start(old, at.saturating_sub(1));
    }
    at
}

fn line_start(text: &str, at: usize) -> usize {
    memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |feed| feed + 1)
}

/// Returns how many bytes both texts end with, in whole lines, less the context a hunk needs.
fn common_end(old: &str, new: &str) -> usize {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let n_same = old.iter().rev().zip(new.iter().rev()).take_while(|(left, right)| left == right).count();
    let same = &old[old.len() - n_same..];
    // The first line feed ends a line that may differ; as many more are context.
    match memchr_iter(b'\n', same).nth(CONTEXT) {
        Some(feed) => n_same - feed - 1,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use similar::{ChangeTag, TextDiff};

    use super::*;

    fn check(old: &str, new: &str, expected: Expect) {
        let text: Vec<String> = hunks(old, new)
            .iter()
            .map(|hunk| {
                let Hunk { old_start, old_lines, new_start, new_lines, lines } = hunk;
                format!("@ {old_start},{old_lines} {new_start},{new_lines}\n{}", lines.join("\n"))
            })
            .collect();
        expected.assert_eq(&text.join("\n"));
    }

    #[test]
    fn hunks_as_the_format_has_them() {
        let value = serde_json::to_value(hunks("v = 1\n", "v = 2\n")).unwrap();
        let expected = serde_json::json!([
            {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-v = 1", "+v = 2"]}
        ]);
        assert_eq!(value, expected);
        assert_eq!(hunks("same\n", "same\n"), []);
    }

    #[test]
    fn three_lines_of_context() {
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
            expect![[r#"
                @ 2,7 2,7
                 2
                 3
                 4
                -5
                +five
                 6
                 7
                 8"#]],
        );
        check(
            "a",
            "a\nb\n",
            expect![[r#"
                @ 1,1 1,2
                -a
                \ No newline at end of file
                +a
                +b"#]],
        );
        check(
            "",
            "new\n",
            expect![[r#"
                @ 1,0 1,1
                +new"#]],
        );
    }

    #[test]
    fn far_changes_are_hunks_of_their_own() {
        let old: String = (1..=40).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n");
        let hunks = hunks(&old, &new);
        let places: Vec<_> = hunks.iter().map(|hunk| (hunk.old_start, hunk.new_start)).collect();
        assert_eq!(places, [(2, 2), (27, 27)]);
        expect![[r#"
            2	2
            3	3
            4	4
            5	five
            6	6
            7	7
            8	8
            ...
            27	27
            28	28
            29	29
            30	31
            31	32
            32	33"#]]
        .assert_eq(&snippet(&hunks));
    }

    #[test]
    fn a_long_snippet_is_cut() {
        let new: String = (1..=100).map(|n| format!("{n}\n")).collect();
        let text = snippet(&hunks("", &new));
        assert!(text.ends_with("\n60\t60\n... (40 more lines)"), "{text}");
    }

    /// No clock decides what is too much to compare.
    #[test]
    fn very_large_difference_is_one_replacement() {
        let text = |name: &str| -> String { (0..2_001).map(|n| format!("{name}{n}\n")).collect() };
        let (old, new) = (format!("{}same\n", text("a")), format!("{}same\n", text("b")));
        let hunks = hunks(&old, &new);
        assert_eq!((hunks.len(), hunks[0].lines.len()), (1, 2 * 2_001 + 1));
        assert_eq!(apply(&old, &hunks), new);
    }

    /// Applies hunks to an old text of whole lines.
    fn apply(old: &str, hunks: &[Hunk]) -> String {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut out, mut at) = (String::new(), 0);
        for hunk in hunks {
            out.extend(old[at..hunk.old_start - 1].iter().copied());
            at = hunk.old_start - 1 + hunk.old_lines;
            let kept = hunk.lines.iter().filter_map(|line| line.strip_prefix([' ', '+']));
            out.extend(kept.flat_map(|line| [line, "\n"]));
        }
        out.extend(old[at..].iter().copied());
        out
    }

    proptest! {
        #[test]
        fn hunks_lead_from_old_to_new(old in "([abc]\n){0,20}", new in "([abc]\n){0,20}") {
            prop_assert_eq!(apply(&old, &hunks(&old, &new)), new);
        }

        #[test]
        fn hunks_change_as_many_lines_as_a_plain_diff(
            head in "([ab]\n){0,9}", tail in "([ab]\n){0,9}", old in "([cd]\n){0,3}", new in "([cd]\n){0,3}"
        ) {
            let (old, new) = (format!("{head}{old}{tail}"), format!("{head}{new}{tail}"));
            let n_changed = |hunks: &[Hunk]| {
                hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| !line.starts_with(' ')).count()
            };
            let plain = TextDiff::from_lines(old.as_str(), new.as_str());
            let n_plain = plain.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal).count();
            prop_assert_eq!(n_changed(&hunks(&old, &new)), n_plain);
            prop_assert_eq!(apply(&old, &hunks(&old, &new)), new);
        }
    }
}
