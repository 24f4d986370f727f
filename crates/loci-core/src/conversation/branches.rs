//! All branches of a session, for those who look at it as a tree.
//!
//! Here nothing is cut: a compaction boundary hangs from the entry it followed (`logicalParentUuid`), and what it
//! preserved stays where it was written. Every message of the main thread lies on the lineage of some leaf. The
//! results of parallel calls hang beside the path and are no branches; they belong to the leaf that goes on
//! from their response.

use std::sync::Arc;

use super::gather;
use super::shape::Shape;
use super::tree::Tree;
use crate::entry::{Entry, EntryKind};
use crate::ids::EntryId;

/// The tree of a session file, uncut.
pub struct Branches<'a> {
    tree: Tree<'a>,
    leaves: Vec<Leaf>,
}

/// The end of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The last entry.
    pub id: EntryId,
    /// How many entries lead from the root to it, itself included.
    pub n_entries: usize,
    /// When it was written.
    pub timestamp: Option<Box<str>>,
    /// The entry at which the branch leaves an equally long or longer one; `None` for one with a root of its own.
    pub fork: Option<EntryId>,
}

impl<'a> Branches<'a> {
    /// Finds the branches of a whole file.
    pub fn from_entries(entries: &'a [Arc<Entry>]) -> Self {
        let tree = Tree::as_written(entries);
        let leaves = leaves(&tree);
        Self { tree, leaves }
    }

    /// Returns the leaves in the order they were written.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Returns the entries from the root to `id`, compactions and the results of parallel calls included; nothing
    /// when there is no such entry.
    pub fn lineage(&self, id: &EntryId) -> Vec<&'a Arc<Entry>> {
        let Some(leaf) = self.tree.find(id.as_str()) else { return Vec::new() };
        let chain = chain(&self.tree, leaf, |_| true);
        gather::with_siblings(&self.tree, &chain).into_iter().map(|idx| self.tree.entry(idx)).collect()
    }
}

/// Returns the nodes from the root down to `leaf`, as far up as `goes_on` lets.
fn chain(tree: &Tree<'_>, leaf: usize, mut goes_on: impl FnMut(usize) -> bool) -> Vec<usize> {
    let mut chain: Vec<usize> =
        std::iter::successors(Some(leaf), |idx| tree.parent(*idx).filter(|_| goes_on(*idx))).collect();
    chain.reverse();
    chain
}

/// Finds the leaves: the longest branch first, then whatever none of the longer ones leads through. Ends that are
/// but the answer to a call come last, because most of them stand beside a path.
fn leaves(tree: &Tree<'_>) -> Vec<Leaf> {
    let depths = depths(tree);
    let n_entries = tree.entries().len();
    let mut ends: Vec<usize> =
        (0..n_entries).filter(|idx| tree.is_node(*idx) && tree.children(*idx).is_empty()).collect();
    ends.sort_by_cached_key(|idx| {
        let is_answer = tree.kind(*idx) != EntryKind::Assistant && is_within_response(tree, *idx);
        (is_answer, std::cmp::Reverse((depths[*idx], *idx)))
    });
    let mut is_covered = vec![false; n_entries];
    let mut leaves = Vec::new();
    for end in ends {
        if is_covered[end] {
            continue;
        }
        // A response may have begun above the fork, and its results are told from branches by all of its calls.
        let part = chain(tree, end, |idx| !is_covered[idx] || is_within_response(tree, idx));
        let fork = part.iter().rev().copied().find(|idx| is_covered[*idx]);
        for idx in gather::with_siblings(tree, &part) {
            is_covered[idx] = true;
        }
        leaves.push((end, fork));
    }
    leaves.sort_unstable();
    let uuid = |idx: usize| tree.entry(idx).head().uuid.clone();
    let leaf = |(end, fork): (usize, Option<usize>)| {
        let timestamp = tree.entry(end).head().timestamp.clone();
        Some(Leaf { id: uuid(end)?, n_entries: depths[end], timestamp, fork: fork.and_then(uuid) })
    };
    leaves.into_iter().filter_map(leaf).collect()
}

/// Returns true for everything between the first block of a response and what follows its results.
fn is_within_response(tree: &Tree<'_>, idx: usize) -> bool {
    let head = tree.entry(idx).head();
    match head.kind {
        EntryKind::User => Shape::from_entry(tree.entry(idx)).is_only_results(),
        EntryKind::Attachment => true,
        EntryKind::Assistant => tree.parent(idx).is_some_and(|parent| {
            let above = tree.entry(parent).head();
            above.kind == EntryKind::Assistant && above.message_id == head.message_id
        }),
        EntryKind::System | EntryKind::Progress | EntryKind::Metadata => false,
    }
}

/// Counts the nodes from the root to each node; parents may stand behind their children in the file.
fn depths(tree: &Tree<'_>) -> Vec<usize> {
    let mut depths = vec![0; tree.entries().len()];
    let mut unknown = Vec::new();
    for idx in (0..depths.len()).filter(|idx| tree.is_node(*idx)) {
        let mut at = Some(idx);
        while let Some(node) = at.filter(|node| depths[*node] == 0) {
            unknown.push(node);
            at = tree.parent(node);
        }
        let mut depth = at.map_or(0, |known| depths[known]);
        while let Some(node) = unknown.pop() {
            depth += 1;
            depths[node] = depth;
        }
    }
    depths
}
