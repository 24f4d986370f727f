//! Preserved segments: what a compaction kept word for word stands behind its summary.
//!
//! The entries stay where they were in the file, before the boundary. `compactMetadata` names them:
//! `preservedSegment {headUuid, anchorUuid, tailUuid}` and `preservedMessages {anchorUuid, uuids}`. Loading
//! hangs the head from the anchor (the summary) and what followed the anchor from the tail. The segment is
//! found by walking from tail to head; the list of uuids is the second source, should a line between be lost.
//!
//! When only the end of a file is there and a part of the segment may lie before it, nothing is moved, and
//! everything that would have been is in doubt.

use rustc_hash::FxHashSet;
use serde::Deserialize;

use super::{NodeTarget, Tree};
use crate::ids::EntryId;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CompactMetadata {
    preserved_segment: Option<PreservedSegment>,
    preserved_messages: Option<PreservedMessages>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreservedSegment {
    head_uuid: String,
    anchor_uuid: Option<String>,
    tail_uuid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreservedMessages {
    anchor_uuid: Option<String>,
    uuids: Vec<String>,
}

impl CompactMetadata {
    fn anchor_uuid(&self) -> Option<&str> {
        let segment = self.preserved_segment.as_ref().and_then(|segment| segment.anchor_uuid.as_deref());
        segment.or_else(|| self.preserved_messages.as_ref()?.anchor_uuid.as_deref())
    }

    fn listed(&self) -> &[String] {
        self.preserved_messages.as_ref().map_or(&[], |messages| &messages.uuids)
    }
}

/// Moves the preserved segments of all boundaries, oldest first; returns whether anything moved.
pub(super) fn preserved_segments(tree: &mut Tree<'_>) -> bool {
    let boundaries: Vec<usize> = (0..tree.entries.len())
        .filter(|idx| tree.is_node(*idx) && tree.entries[*idx].is_compact_boundary())
        .collect();
    boundaries.into_iter().filter(|boundary| move_segment(tree, *boundary)).count() > 0
}

fn move_segment(tree: &mut Tree<'_>, boundary: usize) -> bool {
    let metadata: CompactMetadata =
        tree.entries[boundary].fields().read("compactMetadata").unwrap_or_default();
    let mut unread = None;
    let Some(anchor) = anchor(tree, boundary, &metadata, &mut unread) else { return false };
    let segment = segment(tree, &metadata, &mut unread);
    if let Some(names) = unread {
        doubt(tree, boundary, anchor, &segment, &names);
        return false;
    }
    let (Some(&head), Some(&tail)) = (segment.first(), segment.last()) else { return false };
    let inside: FxHashSet<usize> = segment.iter().copied().collect();
    if inside.contains(&anchor) || inside.contains(&boundary) {
        return false;
    }
    for follower in followers(tree, anchor, &inside) {
        tree.hang(follower, tail);
    }
    for pair in segment.windows(2) {
        tree.hang(pair[1], pair[0]);
    }
    tree.hang(head, anchor);
    true
}

fn followers(tree: &Tree<'_>, anchor: usize, inside: &FxHashSet<usize>) -> Vec<usize> {
    tree.children(anchor).iter().copied().filter(|child| !inside.contains(child)).collect()
}

impl Tree<'_> {
    fn hang(&mut self, child: usize, parent: usize) {
        self.parents[child] = Some(parent);
        self.doubts.remove(&child);
    }
}

/// The names of what may lie before the part that was read, once there is something like that.
type Unread = Option<Vec<EntryId>>;

fn doubt(tree: &mut Tree<'_>, boundary: usize, anchor: usize, segment: &[usize], names: &[EntryId]) {
    let moved = followers(tree, anchor, &FxHashSet::default());
    for idx in [boundary].into_iter().chain(segment.iter().copied()).chain(moved) {
        tree.doubt(idx, names);
    }
    tree.doubts_below.entry(anchor).or_default().extend_from_slice(names);
}

/// Returns the entry that the segment stands behind: the one named, else the summary.
fn anchor(
    tree: &Tree<'_>,
    boundary: usize,
    metadata: &CompactMetadata,
    unread: &mut Unread,
) -> Option<usize> {
    let named = metadata.anchor_uuid().and_then(|uuid| find(tree, uuid, unread));
    named.or_else(|| {
        tree.children(boundary).iter().copied().find(|child| tree.entry(*child).head().is_compact_summary)
    })
}

fn find(tree: &Tree<'_>, uuid: &str, unread: &mut Unread) -> Option<usize> {
    match tree.look_up(uuid) {
        NodeTarget::Node(idx) => Some(idx),
        NodeTarget::Nowhere => None,
        NodeTarget::Unread(name) => {
            unread.get_or_insert_default().push(name);
            None
        }
    }
}

/// Returns the segment in order; what there is of it when a part may be unread.
fn segment(tree: &Tree<'_>, metadata: &CompactMetadata, unread: &mut Unread) -> Vec<usize> {
    let walked = metadata.preserved_segment.as_ref().map(|segment| walk(tree, segment, unread));
    let walked = match walked {
        Some(Walk::Whole(nodes)) => return nodes,
        Some(Walk::Broken(nodes)) if unread.is_some() => nodes,
        Some(Walk::Broken(_)) | None => Vec::new(),
    };
    let mut seen: FxHashSet<usize> = walked.iter().copied().collect();
    let mut nodes = walked;
    for uuid in metadata.listed() {
        nodes.extend(find(tree, uuid, unread).filter(|idx| seen.insert(*idx)));
    }
    nodes
}

enum Walk {
    /// The nodes from head to tail.
    Whole(Vec<usize>),
    /// The nodes from the tail up, and the head, which was not met but would be moved too.
    Broken(Vec<usize>),
}

/// Walks from tail to head; a head that is lost ends the walk at its child.
fn walk(tree: &Tree<'_>, segment: &PreservedSegment, unread: &mut Unread) -> Walk {
    let head = find(tree, &segment.head_uuid, unread);
    let mut seen = FxHashSet::default();
    let mut nodes = Vec::new();
    let mut at = find(tree, &segment.tail_uuid, unread);
    while let Some(idx) = at.filter(|idx| seen.insert(*idx)) {
        nodes.push(idx);
        let is_head = match head {
            Some(head) => head == idx,
            None => {
                tree.entries[idx].head().parent.as_ref().is_some_and(|id| id.as_str() == segment.head_uuid)
            }
        };
        if is_head {
            nodes.reverse();
            return Walk::Whole(nodes);
        }
        if let Some(names) = tree.doubts_about(idx) {
            unread.get_or_insert_default().extend_from_slice(names);
        }
        at = if tree.entries[idx].is_compact_boundary() { None } else { tree.parent(idx) };
    }
    nodes.extend(head.filter(|head| seen.insert(*head)));
    Walk::Broken(nodes)
}
