//! What changed between two texts, line by line.
//!
//! Lines that both begin and end with are set aside first. What is left is compared as long as that takes a bounded
//! number of steps; two texts that are large and have little in common count as replaced in whole. The comparing is the crate
//! `similar`'s; the bounds are ours, because it has none but a clock.

use similar::{ChangeTag, TextDiff};

/// Pairs of lines that are compared at most: five thousand with as many.
const MOST_PAIRS: usize = 25_000_000;
/// Lines shown around a change.
const CONTEXT: usize = 3;

/// What became of a line. Lines are counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    /// It stays: where it was.
    Kept(usize),
    /// It is gone.
    Gone,
    /// It is new.
    New,
}

/// Lists what became of the lines of two texts, in order.
pub fn line_changes(old: &str, new: &str) -> Vec<LineChange> {
    line_changes_within(old, new, MOST_PAIRS)
}

/// The same, where at most so many pairs of lines are compared.
pub fn line_changes_within(old: &str, new: &str, most_pairs: usize) -> Vec<LineChange> {
    let parts = DiffParts::new(old, new);
    let before = (0..parts.n_head).map(LineChange::Kept);
    let between = match parts.is_comparable(most_pairs) {
        true => TextDiff::from_lines(parts.old, parts.new)
            .iter_all_changes()
            .map(|change| match (change.tag(), change.old_index()) {
                (ChangeTag::Delete, _) => LineChange::Gone,
                (ChangeTag::Equal, Some(at)) => LineChange::Kept(parts.n_head + at),
                (ChangeTag::Insert | ChangeTag::Equal, _) => LineChange::New,
            })
            .collect(),
        false => [vec![LineChange::Gone; parts.n_old], vec![LineChange::New; parts.n_new]].concat(),
    };
    let first_behind = parts.n_head + parts.n_old;
    let behind = (first_behind..first_behind + parts.n_tail).map(LineChange::Kept);
    before.chain(between).chain(behind).collect()
}

/// Returns the changes as a unified diff without file names, or in a line why there is none.
pub fn unified(old: &str, new: &str) -> String {
    let parts = DiffParts::new(old, new);
    match parts.is_comparable(MOST_PAIRS) {
        true => TextDiff::from_lines(old, new).unified_diff().context_radius(CONTEXT).to_string(),
        false => format!("({} lines became {} others, too many to compare)\n", parts.n_old, parts.n_new),
    }
}

/// Two texts without the lines that both begin and end with.
struct DiffParts<'a> {
    old: &'a str,
    new: &'a str,
    n_head: usize,
    n_tail: usize,
    n_old: usize,
    n_new: usize,
}

impl<'a> DiffParts<'a> {
    fn new(old: &'a str, new: &'a str) -> Self {
        let (n_head, head) = common(old.split_inclusive('\n'), new.split_inclusive('\n'));
        let (old, new) = (&old[head..], &new[head..]);
        let (n_tail, tail) = common(old.split_inclusive('\n').rev(), new.split_inclusive('\n').rev());
        let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
        let n_lines = |text: &str| text.split_inclusive('\n').count();
        Self { n_old: n_lines(old), n_new: n_lines(new), old, new, n_head, n_tail }
    }

    fn is_comparable(&self, most_pairs: usize) -> bool {
        self.n_old.saturating_mul(self.n_new) <= most_pairs
    }
}

/// Counts lines that two texts have in common from one end, and their bytes.
fn common<'a>(old: impl Iterator<Item = &'a str>, new: impl Iterator<Item = &'a str>) -> (usize, usize) {
    let same = old.zip(new).take_while(|(old, new)| old == new);
    same.fold((0, 0), |(lines, bytes), (line, _)| (lines + 1, bytes + line.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with a letter a line; `=` a line that stays, `-` one that is gone, `+` one that is new.
    fn check(old: &str, new: &str, expected: &str) {
        let lines = |text: &str| -> String { text.chars().map(|letter| format!("{letter}\n")).collect() };
        let (old, new) = (lines(old), lines(new));
        let changes = line_changes(&old, &new);
        let told: String = changes
            .iter()
            .map(|change| match change {
                LineChange::Kept(_) => '=',
                LineChange::Gone => '-',
                LineChange::New => '+',
            })
            .collect();
        assert_eq!(told, expected, "{old:?} {new:?}");
        let kept: Vec<usize> = changes
            .iter()
            .filter_map(|change| if let LineChange::Kept(at) = change { Some(*at) } else { None })
            .collect();
        assert!(kept.is_sorted() && kept.iter().all(|at| *at < old.lines().count()), "{kept:?}");
    }

    #[test]
    fn lines_stay_go_and_come() {
        check("abc", "abc", "===");
        check("abc", "axc", "=-+=");
        check("abc", "", "---");
        check("", "ab", "++");
        check("abcd", "acde", "=-==+");
        check("aa", "aaa", "==+");
    }

    #[test]
    fn large_texts_with_little_in_common_are_replaced_in_whole() {
        let text = |name: &str| -> String {
            (0..6_000).map(|n| format!("{name}{n}\n")).chain(["end".to_owned()]).collect()
        };
        let (old, new) = (format!("head\n{}", text("a")), format!("head\n{}", text("b")));
        let changes = line_changes(&old, &new);
        assert_eq!(changes.len(), 12_002);
        assert_eq!((changes[0], changes[12_001]), (LineChange::Kept(0), LineChange::Kept(6_001)));
        assert_eq!(unified(&old, &new), "(6000 lines became 6000 others, too many to compare)\n");
        assert!(unified("a\nb\n", "a\nc\n").ends_with("-b\n+c\n"));
    }
}
