//! The conversation from the end of a file alone.
//!
//! The path ends at the last compaction on it, so the lines after that are enough, most of the time. Whether they
//! are is decided here: [`Conversation::from_end`] gives the conversation that the whole file gives, or a
//! [`MissingEntries`] that says what to look for in the part before. It is given back what was looked for in vain.
//!
//! This rests on two facts about files. Entries are appended after their parents, give or take a few lines, so
//! nothing far before hangs from a node of the end (the caller keeps a margin before [`TailConversation::start`]); and where a line was written again long after (its
//! timestamp tells), what hangs from it is asked for by name. And a link never has the uuid of a message.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::tree::{NodeTarget, ReadExtent, Tree};
use super::{Conversation, leaf};
use crate::entry::Entry;
use crate::ids::EntryId;

/// Why the end of a file is not enough, and what must be found in the part before it.
///
/// With neither list filled, more of the file is needed, whatever it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MissingEntries {
    /// Entries that the path may lead through.
    pub entries: Vec<EntryId>,
    /// Entries of the end from which others in the part before may hang.
    pub parents: Vec<EntryId>,
}

/// A conversation built from the end of a file.
#[derive(Debug, Clone)]
pub struct TailConversation {
    /// The conversation.
    pub conversation: Conversation,
    /// The first of the entries that is on its path.
    pub start: usize,
}

impl MissingEntries {
    pub(super) fn of_entries(names: impl IntoIterator<Item = EntryId>) -> Self {
        Self { entries: names.into_iter().collect(), parents: Vec::new() }
    }
}

impl Conversation {
    /// Builds the conversation from the last entries of a file, in file order.
    ///
    /// `searched` names what the part before is known not to have: no entry of that name, and none whose
    /// parent it is.
    pub fn from_end(
        entries: &[Arc<Entry>],
        searched: &[EntryId],
    ) -> Result<TailConversation, MissingEntries> {
        let searched = names(searched);
        let tree = Tree::from_entries(entries, ReadExtent::End(&searched));
        let leaf = leaf::choose(&tree)?.ok_or_else(MissingEntries::default)?;
        Self::from_tree(&tree, leaf)
    }

    /// Builds the conversation that ends at one entry from the last entries of a file; `None` when the file
    /// does not have it.
    pub fn from_end_at(
        entries: &[Arc<Entry>],
        leaf: &EntryId,
        searched: &[EntryId],
    ) -> Result<Option<TailConversation>, MissingEntries> {
        let searched = names(searched);
        let tree = Tree::from_entries(entries, ReadExtent::End(&searched));
        match tree.look_up(leaf.as_str()) {
            NodeTarget::Node(leaf) => Self::from_tree(&tree, leaf).map(Some),
            // A boundary is nothing without its summary, which may stand before it.
            NodeTarget::Nowhere if tree.may_be_before(leaf.as_str()) => {
                Err(MissingEntries { entries: Vec::new(), parents: vec![leaf.clone()] })
            }
            NodeTarget::Nowhere => Ok(None),
            NodeTarget::Unread(name) => Err(MissingEntries::of_entries([name])),
        }
    }

    fn from_tree(tree: &Tree<'_>, leaf: usize) -> Result<TailConversation, MissingEntries> {
        let path = Self::walk(tree, leaf);
        let start = path.iter().copied().min().unwrap_or_default();
        match gap(tree, start, &path) {
            None => Ok(TailConversation { conversation: Self::assemble(tree, Some(leaf), path), start }),
            Some(gap) => Err(gap),
        }
    }
}

fn names(ids: &[EntryId]) -> FxHashSet<&str> {
    ids.iter().map(EntryId::as_str).collect()
}

/// Returns what must be read before the path is certain.
///
/// Nodes beside the path count as well: one whose parent is truly lost would find a new one, perhaps on it.
fn gap(tree: &Tree<'_>, start: usize, path: &[usize]) -> Option<MissingEntries> {
    let doubts = || {
        let above = (start..tree.entries().len()).filter_map(|idx| tree.doubts_about(idx));
        above.chain(path.iter().filter_map(|idx| tree.doubts_below(*idx)))
    };
    let entries: FxHashSet<EntryId> = doubts().flatten().cloned().collect();
    let parents = written_again(tree, path);
    let is_open = doubts().next().is_some() || !parents.is_empty();
    is_open.then(|| MissingEntries { entries: entries.into_iter().collect(), parents })
}

/// Returns the entries whose children may lie far before them: those written long after their time that are on the
/// path, or would be if there were a summary.
fn written_again(tree: &Tree<'_>, path: &[usize]) -> Vec<EntryId> {
    let late = tree.late();
    let boundaries = (0..late.len()).filter(|idx| tree.is_open_boundary(*idx));
    let late = path.iter().copied().chain(boundaries).filter(|idx| late[*idx]);
    let uuids = late.filter_map(|idx| tree.entry(idx).head().uuid.clone());
    uuids.filter(|uuid| tree.may_be_before(uuid.as_str())).collect()
}
