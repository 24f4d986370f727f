//! New parents for entries whose own is nowhere in the file.
//!
//! A line that was torn or never written leaves its children without a parent. The format's reference takes
//! the user or assistant entry written at most five seconds before, and drops all history when there is
//! none; we then take the entry before the orphan in the file, so nothing is dropped. An orphan never comes
//! to hang from its own descendant.

use rustc_hash::FxHashMap;

use super::Tree;
use crate::entry::EntryKind;

/// The longest gap, in milliseconds, across which time alone names a parent.
const NEAR_MS: i64 = 5_000;
/// How many entries before the orphan are tried; more than one only when its own descendants precede it.
const TRIES: usize = 64;

/// Gives each of the `lost` nodes a parent where there is one to be had.
pub(super) fn adopt(tree: &mut Tree<'_>, lost: &[usize]) {
    if lost.is_empty() {
        return;
    }
    let mut families = Families::of(&tree.parents);
    let timeline = timeline(tree);
    let nodes: Vec<usize> = (0..tree.entries.len()).filter(|idx| tree.is_node(*idx)).collect();
    let mut adopted: FxHashMap<&str, usize> = FxHashMap::default();
    for &orphan in lost {
        let missing = tree.entries[orphan].head().parent.as_ref().map_or("", |id| id.as_str());
        let parent = by_time(tree, &timeline, orphan)
            .filter(|parent| families.root(*parent) != orphan)
            .or_else(|| adopted.get(missing).copied().filter(|parent| families.root(*parent) != orphan))
            .or_else(|| by_place(&nodes, &mut families, orphan));
        if let Some(parent) = parent {
            tree.parents[orphan] = Some(parent);
            families.join(orphan, parent);
            adopted.entry(missing).or_insert(parent);
        }
    }
}

/// Returns the messages of the file in order of time; among equals the later line is later.
fn timeline(tree: &Tree<'_>) -> Vec<(i64, usize)> {
    let is_message =
        |idx: &usize| tree.is_node(*idx) && matches!(tree.kind(*idx), EntryKind::User | EntryKind::Assistant);
    let mut timeline: Vec<(i64, usize)> =
        (0..tree.entries.len()).filter(is_message).filter_map(|idx| Some((time(tree, idx)?, idx))).collect();
    timeline.sort_unstable();
    timeline
}

fn by_time(tree: &Tree<'_>, timeline: &[(i64, usize)], orphan: usize) -> Option<usize> {
    let written = time(tree, orphan)?;
    let upto = timeline.partition_point(|(at, _)| *at <= written);
    let (at, idx) = *timeline[..upto].iter().rev().find(|(_, idx)| *idx != orphan)?;
    (written - at <= NEAR_MS).then_some(idx)
}

fn by_place(nodes: &[usize], families: &mut Families, orphan: usize) -> Option<usize> {
    let before = nodes.partition_point(|idx| *idx < orphan);
    nodes[..before].iter().rev().take(TRIES).copied().find(|idx| families.root(*idx) != orphan)
}

fn time(tree: &Tree<'_>, idx: usize) -> Option<i64> {
    millis(tree.entries[idx].head().timestamp.as_deref()?)
}

/// Reads `YYYY-MM-DDTHH:MM:SS[.fff]Z` as milliseconds since 1970.
fn millis(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z')?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let bytes = seconds.as_bytes();
    let shape = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if bytes.len() != 19 || !seconds.is_ascii() || shape.iter().any(|(at, byte)| bytes[*at] != *byte) {
        return None;
    }
    let number = |from: usize, to: usize| seconds[from..to].parse::<u32>().ok().map(i64::from);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let thousandths = fraction
        .bytes()
        .chain(*b"000")
        .take(3)
        .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))?;
    let of_day = (hour * 60 + minute) * 60 + second;
    Some((days_from_civil(year, month, day) * 86_400 + of_day) * 1_000 + thousandths)
}

/// Counts days from 1970-01-01 in the proleptic Gregorian calendar (years from March, eras of 400 years).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Which root each node descends from, kept while orphans find new parents (a union-find without ranks: the
/// root of a family must stay its topmost node).
struct Families {
    above: Vec<usize>,
}

impl Families {
    fn of(parents: &[Option<usize>]) -> Self {
        let mut families = Self { above: (0..parents.len()).collect() };
        for (idx, parent) in parents.iter().enumerate() {
            // In a circle of parents the last one stays on top.
            if let Some(parent) = parent.filter(|parent| families.root(*parent) != idx) {
                families.above[idx] = parent;
            }
        }
        families
    }

    fn join(&mut self, child: usize, parent: usize) {
        self.above[child] = parent;
    }

    fn root(&mut self, idx: usize) -> usize {
        let mut root = idx;
        while self.above[root] != root {
            root = self.above[root];
        }
        let mut at = idx;
        while self.above[at] != root {
            at = std::mem::replace(&mut self.above[at], root);
        }
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_as_milliseconds() {
        for (text, expected) in [
            ("1970-01-01T00:00:00.000Z", Some(0)),
            ("1970-01-02T00:00:01.5Z", Some(86_401_500)),
            ("2026-01-02T03:04:05.678Z", Some(1_767_323_045_678)),
            ("2024-02-29T23:59:59Z", Some(1_709_251_199_000)),
            ("2024-02-29T23:59:59+00:00", None),
            ("2024-02-29", None),
            ("2024-0x-29T23:59:59Z", None),
            ("", None),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }
}
