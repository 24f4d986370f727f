//! The conversation of a session: which entries of its file, in which order, the model is to see.
//!
//! A transcript is a tree kept in a list: entries name their parent, branches and dead ends stay in the file,
//! and file order is not chain order. [`Conversation::build`] makes the tree, chooses the leaf, walks to the
//! root or to the last compaction, and gathers what a single walk misses. The rules are those of the format's
//! reference, with one change of heart: where it would drop history that is still on disk, we keep it.
//!
//! 1. The last of several entries with one uuid counts; sidechains do not count at all.
//! 2. Progress entries, kinds we do not know and a boundary that lost its summary are links: their children
//!    hang from their parent.
//! 3. An entry whose parent is nowhere hangs from the message written at most five seconds before it, else
//!    from the entry before it in the file.
//! 4. A compaction boundary with a summary starts the conversation; what it preserved follows the summary.
//! 5. The leaf is the last entry written, unless the last pointer names the leaf of another branch.
//! 6. The blocks of one response stand together, then the results of its calls in file order, one for each.
//!    A call without a result stays only at the end of the path, where a repair answers it.
//!
//! Building is linear in the number of entries and never fails: whatever the file, there is a path.
//! [`Conversation::from_end`] needs only the end of a file and says when that is not enough.

mod branches;
mod end;
mod facts;
mod faults;
mod gather;
mod leaf;
mod outline;
mod prune;
mod repair;
mod shape;
mod stretches;
mod tree;

use std::sync::Arc;

use crate::entry::Entry;
use crate::ids::EntryId;
use crate::usage::Usage;

pub use branches::{Branches, Leaf};
pub use end::{MissingEntries, TailConversation};
pub use facts::Titles;
pub use faults::{Fault, faults};
pub use outline::{Outline, OutlineNode, history, history_before};
pub use repair::{RESUME_PROMPT, Repair, Under};
pub use stretches::{Stretch, stretches};
pub use tree::millis;

use facts::Facts;
use tree::Tree;

/// The path through a session's tree that a resumed session continues, and what is known from its file.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    path: Vec<Arc<Entry>>,
    leaf: Option<EntryId>,
    repairs: Vec<Repair>,
    facts: Facts,
}

impl Conversation {
    /// Builds the conversation from the entries of one session file, in file order.
    pub fn build(entries: Vec<Arc<Entry>>) -> Self {
        let tree = Tree::build(&entries);
        // Nothing of a whole file is unread, so the choice does not fail.
        let leaf = leaf::choose(&tree).unwrap_or_default();
        let path = leaf.map(|leaf| Self::walk(&tree, leaf)).unwrap_or_default();
        Self::assemble(&tree, leaf, path)
    }

    /// Builds the conversation that ends at one entry, whatever was written later; `None` when the file
    /// does not have it.
    pub fn build_at(entries: Vec<Arc<Entry>>, leaf: &EntryId) -> Option<Self> {
        let tree = Tree::build(&entries);
        let leaf = tree.find(leaf.as_str())?;
        Some(Self::assemble(&tree, Some(leaf), Self::walk(&tree, leaf)))
    }

    fn walk(tree: &Tree<'_>, leaf: usize) -> Vec<usize> {
        gather::with_siblings(tree, &tree.chain(leaf))
    }

    fn assemble(tree: &Tree<'_>, leaf: Option<usize>, path: Vec<usize>) -> Self {
        let facts = Facts::read(tree, &path);
        let path = prune::unpaired(path.into_iter().map(|idx| Arc::clone(tree.entry(idx))).collect());
        Self {
            leaf: leaf.and_then(|leaf| tree.entry(leaf).head().uuid.clone()),
            repairs: repair::repairs(&path),
            path,
            facts,
        }
    }

    /// Returns the entries in sending order: the root or the compaction boundary first.
    pub fn path(&self) -> &[Arc<Entry>] {
        &self.path
    }

    /// Gives the path away.
    pub fn into_path(self) -> Vec<Arc<Entry>> {
        self.path
    }

    /// Returns the entry that the next prompt hangs from when there is nothing to repair.
    pub fn leaf(&self) -> Option<&EntryId> {
        self.leaf.as_ref()
    }

    /// Returns what must be appended, in this order, before the next prompt.
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    /// Returns the model that wrote the last answer on the path.
    pub fn last_model(&self) -> Option<&str> {
        self.facts.model.as_deref()
    }

    /// Returns the usage of the last answer since the last compaction.
    pub fn last_usage(&self) -> Option<&Usage> {
        self.facts.usage.as_ref()
    }

    /// Returns the permission mode that was written last.
    pub fn last_mode(&self) -> Option<&str> {
        self.facts.mode.as_deref()
    }

    /// Returns the names the session was given.
    pub fn titles(&self) -> &Titles {
        &self.facts.titles
    }
}

#[cfg(test)]
mod tests;
