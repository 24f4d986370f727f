//! The whole tree of a session, for people who want to see it: every node, dead branches included.
//!
//! The path is what the model is sent; the outline is what is on disk. Both come from the same tree, so links
//! followed, lost parents replaced and preserved segments moved look here as they count there. A compaction hangs
//! from what it compacted, so that [`history`] goes on where the path stops.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::tree::Tree;
use super::{Conversation, leaf};
use crate::entry::Entry;
use crate::ids::EntryId;

/// Every node of a session file, in file order.
#[derive(Debug, Clone, Default)]
pub struct Outline {
    nodes: Vec<OutlineNode>,
    leaf: Option<usize>,
}

/// One entry of a conversation, with its place.
#[derive(Debug, Clone)]
pub struct OutlineNode {
    /// The entry.
    pub entry: Arc<Entry>,
    /// The node it hangs from, as an index into the outline. A compaction hangs from what it compacted.
    pub parent: Option<usize>,
    /// Whether it leads to the leaf that a resumed session continues, compactions crossed.
    pub is_live: bool,
}

impl Outline {
    /// Builds the outline from the entries of one session file, in file order.
    pub fn build(entries: &[Arc<Entry>]) -> Self {
        let tree = Tree::build(entries);
        let mut index = vec![None; entries.len()];
        let nodes: Vec<usize> = (0..entries.len()).filter(|idx| tree.is_node(*idx)).collect();
        for (place, idx) in nodes.iter().enumerate() {
            index[*idx] = Some(place);
        }
        let parent = |idx: usize| {
            let is_boundary = entries[idx].is_compact_boundary();
            let parent = if is_boundary { compacted_by(&tree, idx) } else { tree.parent(idx) };
            parent.and_then(|parent| index[parent])
        };
        let node = |idx: &usize| OutlineNode {
            entry: Arc::clone(&entries[*idx]),
            parent: parent(*idx),
            is_live: false,
        };
        let leaf = leaf::choose(&tree).unwrap_or_default().and_then(|leaf| index[leaf]);
        let mut outline = Self { nodes: nodes.iter().map(node).collect(), leaf };
        outline.mark_live();
        outline
    }

    /// Returns the nodes in file order.
    pub fn nodes(&self) -> &[OutlineNode] {
        &self.nodes
    }

    /// Returns the node that a resumed session continues.
    pub fn leaf(&self) -> Option<usize> {
        self.leaf
    }

    /// Returns the nodes above `idx`, nearest first; a circle ends it.
    pub fn ancestors(&self, idx: usize) -> impl Iterator<Item = usize> {
        let mut seen = FxHashSet::default();
        std::iter::successors(self.nodes[idx].parent, |at| self.nodes[*at].parent)
            .take_while(move |at| seen.insert(*at))
    }

    fn mark_live(&mut self) {
        let Some(leaf) = self.leaf else { return };
        let live: Vec<usize> = std::iter::once(leaf).chain(self.ancestors(leaf)).collect();
        for idx in live {
            self.nodes[idx].is_live = true;
        }
    }
}

/// Returns everything that was said on the way to the leaf, compactions included, in the order it was said.
///
/// Unlike a conversation's path it does not begin at the last compaction, and calls without a result stay.
pub fn history(entries: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
    let tree = Tree::build(entries);
    let mut stretches = Vec::new();
    let mut seen = FxHashSet::default();
    let mut end = leaf::choose(&tree).unwrap_or_default();
    while let Some(leaf) = end.filter(|leaf| seen.insert(*leaf)) {
        let stretch = Conversation::walk(&tree, leaf);
        let boundary = stretch.first().copied().filter(|idx| entries[*idx].is_compact_boundary());
        end = boundary.and_then(|boundary| compacted_by(&tree, boundary));
        stretches.push(stretch);
    }
    let mut told = FxHashSet::default();
    let in_order = stretches.into_iter().rev().flatten();
    in_order.filter(|idx| told.insert(*idx)).map(|idx| Arc::clone(&entries[idx])).collect()
}

/// Returns everything that was said until a boundary was written, as [`history`] tells it; `None` when there is no such
/// boundary. A session file only grows, so what precedes the boundary's line is the session as it was.
pub fn history_before(entries: &[Arc<Entry>], boundary: &EntryId) -> Option<Vec<Arc<Entry>>> {
    let is_it =
        |entry: &Arc<Entry>| entry.is_compact_boundary() && entry.head().uuid.as_ref() == Some(boundary);
    let at = entries.iter().position(is_it)?;
    Some(history(&entries[..at]))
}

/// Returns the last node that a boundary put behind it.
///
/// The node its line names may be among the preserved ones, which now follow the boundary; then it is the one that
/// the first of those used to hang from.
fn compacted_by(tree: &Tree<'_>, boundary: usize) -> Option<usize> {
    let named = |idx: usize| tree.find(tree.entry(idx).head().parent.as_ref()?.as_str());
    let before = tree.find(tree.entry(boundary).head().logical_parent.as_ref()?.as_str())?;
    let chain = tree.chain(before);
    if chain.first() != Some(&boundary) {
        return Some(before);
    }
    let moved = chain.into_iter().skip(1).find(|idx| named(*idx) != tree.parent(*idx))?;
    named(moved)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entries(lines: &[Value]) -> Vec<Arc<Entry>> {
        lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect()
    }

    fn user(uuid: &str, parent: Value) -> Value {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": uuid}})
    }

    fn answer(uuid: &str, parent: &str) -> Value {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent,
            "message": {"id": uuid, "role": "assistant", "content": [{"type": "text", "text": uuid}]}})
    }

    /// A compaction after `u1 a1 u2 a2 u3`, with `a2 u3` preserved, and a turn after it.
    fn compacted() -> Vec<Arc<Entry>> {
        let kept = json!({"headUuid": "a2", "anchorUuid": "s", "tailUuid": "u3"});
        entries(&[
            user("u1", Value::Null),
            answer("a1", "u1"),
            user("dead", json!("a1")),
            user("u2", json!("a1")),
            answer("a2", "u2"),
            user("u3", json!("a2")),
            json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
                "logicalParentUuid": "u3", "compactMetadata": {"preservedSegment": kept}}),
            json!({"type": "user", "uuid": "s", "parentUuid": "b", "isCompactSummary": true, "message": {"content": "sum"}}),
            answer("a3", "s"),
        ])
    }

    fn name(entry: &Entry) -> &str {
        entry.head().uuid.as_ref().unwrap().as_str()
    }

    #[test]
    fn history_crosses_compactions() {
        let history = history(&compacted());
        let names: Vec<&str> = history.iter().map(|entry| name(entry)).collect();
        assert_eq!(names, ["u1", "a1", "u2", "b", "s", "a2", "u3", "a3"]);
        assert!(super::history(&[]).is_empty());
    }

    #[test]
    fn history_before_a_boundary_is_found() {
        let entries = compacted();
        let before = history_before(&entries, &EntryId::from("b")).unwrap();
        let names: Vec<&str> = before.iter().map(|entry| name(entry)).collect();
        assert_eq!(names, ["u1", "a1", "u2", "a2", "u3"]);
        assert!(history_before(&entries, &EntryId::from("s")).is_none());
    }

    #[test]
    fn every_node_has_its_place() {
        let outline = Outline::build(&compacted());
        let parent = |node: &OutlineNode| node.parent.map(|idx| name(&outline.nodes()[idx].entry));
        let places: Vec<String> = outline
            .nodes()
            .iter()
            .map(|node| {
                let mark = if node.is_live { "" } else { "!" };
                format!("{}<{}{mark}", name(&node.entry), parent(node).unwrap_or("-"))
            })
            .collect();
        assert_eq!(places.join(" "), "u1<- a1<u1 dead<a1! u2<a1 a2<s u3<a2 b<u2 s<b a3<u3");
        assert_eq!(outline.leaf(), Some(8));
        assert_eq!(outline.ancestors(8).count(), 7);
    }
}
