//! What a change did to a text, as hunks of lines: the `structuredPatch` of the transcript.
//!
//! Only what lies between the first and the last difference is compared, so the cost follows the change and not
//! the file; a comparison that still takes too long is cut short into coarser hunks.

use std::time::Duration;

use memchr::{memchr_iter, memrchr};
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Lines shown around a change.
const CONTEXT: usize = 3;

/// How long a comparison may look for the finest hunks.
const TIMEOUT: Duration = Duration::from_millis(500);

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

/// Returns the hunks that lead from one text to another.
pub(crate) fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let from = common_start(old, new);
    let tail = common_end(&old[from..], &new[from..]);
    let skipped = memchr_iter(b'\n', &old.as_bytes()[..from]).count();
    let (old, new) = (&old[from..old.len() - tail], &new[from..new.len() - tail]);
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(old, new);
    let hunk = |ops: &Vec<similar::DiffOp>| {
        let (first, last) = (ops.first()?, ops.last()?);
        let (old_start, new_start) = (first.old_range().start, first.new_range().start);
        Some(Hunk {
            old_start: skipped + old_start + 1,
            old_lines: last.old_range().end - old_start,
            new_start: skipped + new_start + 1,
            new_lines: last.new_range().end - new_start,
            lines: ops
                .iter()
                .flat_map(|op| diff.iter_changes(op))
                .flat_map(|change| {
                    let sign = match change.tag() {
                        ChangeTag::Equal => ' ',
                        ChangeTag::Delete => '-',
                        ChangeTag::Insert => '+',
                    };
                    let text: &str = change.value();
                    let is_open = !text.ends_with('\n');
                    let line = format!("{sign}{}", text.strip_suffix('\n').unwrap_or(text));
                    std::iter::once(line).chain(is_open.then(|| r"\ No newline at end of file".to_owned()))
                })
                .collect(),
        })
    };
    diff.grouped_ops(CONTEXT).iter().filter_map(hunk).collect()
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
        out.push(format!("... ({n_more} more lines)"));
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
        fn trimming_changes_nothing(
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
