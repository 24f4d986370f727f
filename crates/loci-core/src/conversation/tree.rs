//! The tree of a session: which entries are nodes, and which node each hangs from.
//!
//! Everything is an index into the list of entries. A parent is found in three steps: links are followed,
//! lost parents replaced, preserved segments moved behind the summary of their compaction.
//!
//! A tree can also be made of the end of a file ([`ReadExtent::End`]). Then a node whose place depends on what was not
//! read is in doubt, and the doubt says what to look for.

mod orphans;
mod splice;
mod time;

pub use time::millis;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::entry::{Entry, EntryKind};
use crate::ids::EntryId;

/// How much of a file the entries are.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadExtent<'a> {
    /// All of it.
    Whole,
    /// Its end. These names are known to be nowhere in the part before: no entry has them, none hangs from one.
    End(&'a FxHashSet<&'a str>),
}

/// Where a name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeTarget {
    /// To a node.
    Node(usize),
    /// To nothing.
    Nowhere,
    /// To an entry that may lie in the part of the file that was not read.
    Unread(EntryId),
}

/// What an entry is to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeRole {
    /// An entry of the conversation.
    Node,
    /// An entry that only passes its children on to its parent.
    Link,
    /// An entry without a place: metadata, sidechains, rewritten duplicates.
    Nothing,
}

/// Where a parent's name leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParentLink<'a> {
    To(usize),
    Root,
    Lost,
    Unread(&'a str),
}

/// The nodes that do not hang from what their lines say.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    /// Their parents are nowhere.
    pub(super) lost: Vec<usize>,
    /// They were on a circle of parents.
    pub(super) cut: Vec<usize>,
}

/// The entries of one file with their places.
pub(super) struct Tree<'a> {
    entries: &'a [Arc<Entry>],
    index: FxHashMap<&'a str, usize>,
    roles: Vec<NodeRole>,
    parents: Vec<Option<usize>>,
    children: Children,
    extent: ReadExtent<'a>,
    /// The nodes in doubt, and the entries that would settle it; none when only more of the file would.
    doubts: FxHashMap<usize, Vec<EntryId>>,
    /// The nodes that others may come to hang from, and the entries that would settle it.
    doubts_below: FxHashMap<usize, Vec<EntryId>>,
}

impl<'a> Tree<'a> {
    /// Builds the tree of a whole file.
    pub(super) fn build(entries: &'a [Arc<Entry>]) -> Self {
        Self::from_entries(entries, ReadExtent::Whole)
    }

    /// Builds the tree of a file or of its end.
    pub(super) fn from_entries(entries: &'a [Arc<Entry>], extent: ReadExtent<'a>) -> Self {
        let mut tree = Self::unlinked(entries, extent);
        tree.link(|_| None);
        if splice::preserved_segments(&mut tree) {
            tree.children = Children::from_parents(&tree.parents);
        }
        tree
    }

    /// Builds the tree of a whole file, and returns the nodes that do not hang from what their lines say.
    pub(super) fn with_misplaced(entries: &'a [Arc<Entry>]) -> (Self, Orphans) {
        let mut tree = Self::unlinked(entries, ReadExtent::Whole);
        let misplaced = tree.link(|_| None);
        (tree, misplaced)
    }

    /// Builds the tree of a whole file with nothing cut or moved: boundaries hang from what they followed.
    pub(super) fn as_written(entries: &'a [Arc<Entry>]) -> Self {
        let mut tree = Self::unlinked(entries, ReadExtent::Whole);
        tree.link(|boundary| boundary.head().logical_parent.as_ref());
        tree
    }

    fn unlinked(entries: &'a [Arc<Entry>], extent: ReadExtent<'a>) -> Self {
        let index = index(entries);
        Self {
            roles: roles(entries, &index),
            index,
            entries,
            parents: vec![None; entries.len()],
            children: Children::default(),
            extent,
            doubts: FxHashMap::default(),
            doubts_below: FxHashMap::default(),
        }
    }

    pub(super) fn entries(&self) -> &'a [Arc<Entry>] {
        self.entries
    }

    pub(super) fn entry(&self, idx: usize) -> &'a Arc<Entry> {
        &self.entries[idx]
    }

    pub(super) fn kind(&self, idx: usize) -> EntryKind {
        self.entries[idx].head().kind
    }

    pub(super) fn is_node(&self, idx: usize) -> bool {
        self.roles[idx] == NodeRole::Node
    }

    /// Returns true for a boundary without a summary.
    pub(super) fn is_open_boundary(&self, idx: usize) -> bool {
        self.roles[idx] == NodeRole::Link && self.entries[idx].is_compact_boundary()
    }

    fn is_placed(&self, idx: usize) -> bool {
        self.roles[idx] != NodeRole::Nothing && self.kind(idx).is_chain()
    }

    pub(super) fn parent(&self, idx: usize) -> Option<usize> {
        self.parents[idx]
    }

    /// Returns the nodes that hang from `idx`, in file order.
    pub(super) fn children(&self, idx: usize) -> &[usize] {
        self.children.of_node(idx)
    }

    /// Returns the node with this uuid, or the node a link of this uuid stands for.
    pub(super) fn find(&self, uuid: &str) -> Option<usize> {
        match self.look_up(uuid) {
            NodeTarget::Node(idx) => Some(idx),
            NodeTarget::Nowhere | NodeTarget::Unread(_) => None,
        }
    }

    /// Returns where a uuid leads, through links.
    pub(super) fn look_up(&self, uuid: &str) -> NodeTarget {
        let mut seen = FxHashSet::default();
        let mut uuid = uuid;
        loop {
            match self.index.get(uuid) {
                None if self.may_be_before(uuid) => return NodeTarget::Unread(EntryId::from(uuid)),
                None => return NodeTarget::Nowhere,
                Some(&at) if self.is_node(at) => return NodeTarget::Node(at),
                Some(&at) => match link_target(&self.entries[at]) {
                    Some(target) if seen.insert(at) => uuid = target,
                    Some(_) | None => return NodeTarget::Nowhere,
                },
            }
        }
    }

    /// Returns what must be read before the place of a node is certain; `None` when it is.
    pub(super) fn doubts_about(&self, idx: usize) -> Option<&[EntryId]> {
        self.doubts.get(&idx).map(Vec::as_slice)
    }

    /// Returns what must be read before it is certain what hangs from a node; `None` when it is.
    pub(super) fn doubts_below(&self, idx: usize) -> Option<&[EntryId]> {
        self.doubts_below.get(&idx).map(Vec::as_slice)
    }

    /// Tells for every entry whether it was written long after its time.
    pub(super) fn late(&self) -> Vec<bool> {
        time::late(self)
    }

    /// Returns true when the part of the file that was not read may have an entry of this name.
    pub(super) fn may_be_before(&self, uuid: &str) -> bool {
        match self.extent {
            ReadExtent::Whole => false,
            ReadExtent::End(searched) => !searched.contains(uuid),
        }
    }

    fn is_whole(&self) -> bool {
        matches!(self.extent, ReadExtent::Whole)
    }

    fn doubt(&mut self, idx: usize, names: &[EntryId]) {
        self.doubts.entry(idx).or_default().extend_from_slice(names);
    }

    /// Returns when an entry was written, in milliseconds since 1970.
    fn time(&self, idx: usize) -> Option<i64> {
        time::millis(self.entries[idx].head().timestamp.as_deref()?)
    }

    /// Returns the nodes from the root, or from the last boundary, down to `leaf`.
    pub(super) fn chain(&self, leaf: usize) -> Vec<usize> {
        let mut seen = vec![false; self.entries.len()];
        let mut chain = Vec::new();
        let mut at = Some(leaf);
        while let Some(idx) = at.filter(|idx| !std::mem::replace(&mut seen[*idx], true)) {
            chain.push(idx);
            at = if self.entries[idx].is_compact_boundary() { None } else { self.parents[idx] };
        }
        chain.reverse();
        chain
    }

    /// Finds every node its parent; whatever the line of a boundary says, `above` says what it hangs from.
    fn link(&mut self, above: impl Fn(&'a Entry) -> Option<&'a EntryId>) -> Orphans {
        let lost = self.follow_parents(above);
        let cut = self.cut_circles();
        let mut homeless = [lost.as_slice(), cut.as_slice()].concat();
        homeless.sort_unstable();
        orphans::adopt(self, &homeless);
        self.children = Children::from_parents(&self.parents);
        Orphans { lost, cut }
    }

    /// Sets every node's parent as its line says and returns the nodes whose parent is nowhere.
    fn follow_parents(&mut self, above: impl Fn(&'a Entry) -> Option<&'a EntryId>) -> Vec<usize> {
        let mut links = FxHashMap::default();
        let mut lost = Vec::new();
        for idx in 0..self.entries.len() {
            if !self.is_node(idx) {
                continue;
            }
            let entry: &'a Entry = &self.entries[idx];
            let parent =
                if entry.is_compact_boundary() { above(entry) } else { entry.head().parent.as_ref() };
            let lead = match parent {
                None => ParentLink::Root,
                Some(parent) => self.lead(parent.as_str(), &mut links),
            };
            match lead {
                ParentLink::To(parent) if parent != idx => self.parents[idx] = Some(parent),
                ParentLink::Root => {}
                ParentLink::Unread(name) => self.doubt(idx, &[EntryId::from(name)]),
                ParentLink::To(_) | ParentLink::Lost => lost.push(idx),
            }
        }
        lost
    }

    /// Takes the parent from the first entry of every circle of parents, and returns these entries.
    fn cut_circles(&mut self) -> Vec<usize> {
        const NEW: usize = usize::MAX;
        let mut met_by = vec![NEW; self.entries.len()];
        let mut cut = Vec::new();
        for start in 0..self.entries.len() {
            let mut at = start;
            while met_by[at] == NEW {
                met_by[at] = start;
                let Some(parent) = self.parents[at] else { break };
                at = parent;
            }
            if met_by[at] == start && self.parents[at].is_some() {
                // The walk came round: `at` lies on a circle.
                let first = self.circle(at).min().unwrap_or(at);
                self.parents[first] = None;
                cut.push(first);
            }
        }
        cut
    }

    /// Goes once round the circle that `start` lies on.
    fn circle(&self, start: usize) -> impl Iterator<Item = usize> {
        let next = move |at: &usize| self.parents[*at].filter(|parent| *parent != start);
        std::iter::successors(Some(start), next)
    }

    /// Follows a name through links; what a link leads to is remembered, so long runs of links stay linear.
    fn lead(&self, uuid: &'a str, known: &mut FxHashMap<usize, ParentLink<'a>>) -> ParentLink<'a> {
        let mut trail = Vec::new();
        let mut uuid = uuid;
        let lead = loop {
            let Some(&at) = self.index.get(uuid) else {
                break if self.may_be_before(uuid) { ParentLink::Unread(uuid) } else { ParentLink::Lost };
            };
            match self.roles[at] {
                NodeRole::Node => break ParentLink::To(at),
                NodeRole::Nothing => break ParentLink::Lost,
                NodeRole::Link => {}
            }
            if let Some(lead) = known.get(&at) {
                break *lead;
            }
            // Should the links run in a circle, this is what the second round meets.
            known.insert(at, ParentLink::Lost);
            trail.push(at);
            match link_target(&self.entries[at]) {
                Some(next) => uuid = next,
                None if self.kind(at) == EntryKind::Progress => break ParentLink::Root,
                None => break ParentLink::Lost,
            }
        };
        for link in trail {
            known.insert(link, lead);
        }
        lead
    }
}

/// Maps each uuid to its last entry, a message before a link; sidechains are left out.
fn index(entries: &[Arc<Entry>]) -> FxHashMap<&str, usize> {
    let named = || {
        let main = entries.iter().enumerate().filter(|(_, entry)| !entry.head().is_sidechain);
        main.filter_map(|(idx, entry)| Some((entry.head().uuid.as_ref()?.as_str(), idx)))
    };
    let is_chain = |idx: usize| entries[idx].head().kind.is_chain();
    let links = named().filter(|(_, idx)| !is_chain(*idx));
    links.chain(named().filter(|(_, idx)| is_chain(*idx))).collect()
}

fn roles(entries: &[Arc<Entry>], index: &FxHashMap<&str, usize>) -> Vec<NodeRole> {
    let mut roles = vec![NodeRole::Nothing; entries.len()];
    for &idx in index.values() {
        roles[idx] = if entries[idx].head().kind.is_chain() { NodeRole::Node } else { NodeRole::Link };
    }
    let summarised: FxHashSet<&str> = entries
        .iter()
        .filter(|entry| entry.head().is_compact_summary && !entry.head().is_sidechain)
        .filter_map(|entry| Some(entry.head().parent.as_ref()?.as_str()))
        .collect();
    for &idx in index.values().filter(|idx| entries[**idx].is_compact_boundary()) {
        let uuid = entries[idx].head().uuid.as_ref().map_or("", |uuid| uuid.as_str());
        if !summarised.contains(uuid) {
            roles[idx] = NodeRole::Link;
        }
    }
    roles
}

/// Returns the name of what a link stands for: the parent, for a boundary the entry before the compaction.
fn link_target(entry: &Entry) -> Option<&str> {
    let head = entry.head();
    let target = if entry.is_compact_boundary() { &head.logical_parent } else { &head.parent };
    target.as_ref().map(|id| id.as_str())
}

/// The children of every node in file order, in two flat lists.
#[derive(Debug, Default)]
struct Children {
    starts: Vec<usize>,
    nodes: Vec<usize>,
}

impl Children {
    fn from_parents(parents: &[Option<usize>]) -> Self {
        let mut starts = vec![0; parents.len() + 1];
        for parent in parents.iter().flatten() {
            starts[parent + 1] += 1;
        }
        for idx in 1..starts.len() {
            starts[idx] += starts[idx - 1];
        }
        let mut next = starts.clone();
        let mut nodes = vec![0; starts.last().copied().unwrap_or(0)];
        for (idx, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                nodes[next[*parent]] = idx;
                next[*parent] += 1;
            }
        }
        Self { starts, nodes }
    }

    fn of_node(&self, idx: usize) -> &[usize] {
        &self.nodes[self.starts[idx]..self.starts[idx + 1]]
    }
}
