//! New parents for entries whose own is nowhere in the file.
//!
//! A line that was torn or never written leaves its children without a parent. The format's reference takes
//! the user or assistant entry written at most five seconds before, and drops all history when there is
//! none; we then take the entry before the orphan in the file, so nothing is dropped. An orphan never comes
//! to hang from its own descendant.
//!
//! When only the end of a file is there, an orphan that was written long after its time, or so near the
//! start that its new parent may lie before, is left for a larger part of the file to decide.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Tree;
use super::time::{self, NEAR_MS};
use crate::entry::EntryKind;

/// How many entries before the orphan are tried; more than one only when its own descendants precede it.
const TRIES: usize = 64;

/// Gives each of the `lost` nodes a parent where there is one to be had.
pub(super) fn adopt(tree: &mut Tree<'_>, lost: &[usize]) {
    if lost.is_empty() {
        return;
    }
    let mut families = Families::from_parents(&tree.parents);
    let timeline = timeline(tree);
    let nodes: Vec<usize> = (0..tree.entries.len()).filter(|idx| tree.is_node(*idx)).collect();
    let undecided = undecided(tree, &nodes, lost);
    let mut adopted: FxHashMap<&str, usize> = FxHashMap::default();
    for &orphan in lost {
        if undecided.contains(&orphan) {
            tree.doubt(orphan, &[]);
            continue;
        }
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

/// Returns the orphans for which the part that was read is too small.
fn undecided(tree: &Tree<'_>, nodes: &[usize], lost: &[usize]) -> FxHashSet<usize> {
    if tree.is_whole() {
        return FxHashSet::default();
    }
    let late = time::late(tree);
    let is_near_start = |orphan: usize| nodes.partition_point(|idx| *idx < orphan) < TRIES;
    lost.iter().copied().filter(|orphan| late[*orphan] || is_near_start(*orphan)).collect()
}

/// Returns the messages of the file in order of time; among equals the later line is later.
fn timeline(tree: &Tree<'_>) -> Vec<(i64, usize)> {
    let is_message =
        |idx: &usize| tree.is_node(*idx) && matches!(tree.kind(*idx), EntryKind::User | EntryKind::Assistant);
    let mut timeline: Vec<(i64, usize)> =
        (0..tree.entries.len()).filter(is_message).filter_map(|idx| Some((tree.time(idx)?, idx))).collect();
    timeline.sort_unstable();
    timeline
}

fn by_time(tree: &Tree<'_>, timeline: &[(i64, usize)], orphan: usize) -> Option<usize> {
    let written = tree.time(orphan)?;
    let upto = timeline.partition_point(|(at, _)| *at <= written);
    let (at, idx) = *timeline[..upto].iter().rev().find(|(_, idx)| *idx != orphan)?;
    (written - at <= NEAR_MS).then_some(idx)
}

fn by_place(nodes: &[usize], families: &mut Families, orphan: usize) -> Option<usize> {
    let before = nodes.partition_point(|idx| *idx < orphan);
    nodes[..before].iter().rev().take(TRIES).copied().find(|idx| families.root(*idx) != orphan)
}

/// Which root each node descends from, kept while orphans find new parents (a union-find without ranks: the
/// root of a family must stay its topmost node).
struct Families {
    above: Vec<usize>,
}

impl Families {
    fn from_parents(parents: &[Option<usize>]) -> Self {
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
