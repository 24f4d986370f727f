//! Preserved segments: what a compaction kept word for word stands behind its summary.
//!
//! The entries stay where they were in the file, before the boundary. `compactMetadata` names them:
//! `preservedSegment {headUuid, anchorUuid, tailUuid}` and `preservedMessages {anchorUuid, uuids}`. Loading
//! hangs the head from the anchor (the summary) and what followed the anchor from the tail. The segment is
//! found by walking from tail to head; the list of uuids is the second source, should a line between be lost.

use rustc_hash::FxHashSet;
use serde::Deserialize;

use super::Tree;

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
    let Some(anchor) = anchor(tree, boundary, &metadata) else { return false };
    let segment = segment(tree, &metadata);
    let (Some(&head), Some(&tail)) = (segment.first(), segment.last()) else { return false };
    let inside: FxHashSet<usize> = segment.iter().copied().collect();
    if inside.contains(&anchor) || inside.contains(&boundary) {
        return false;
    }
    let followers: Vec<usize> =
        tree.children(anchor).iter().copied().filter(|child| !inside.contains(child)).collect();
    for follower in followers {
        tree.parents[follower] = Some(tail);
    }
    for pair in segment.windows(2) {
        tree.parents[pair[1]] = Some(pair[0]);
    }
    tree.parents[head] = Some(anchor);
    true
}

/// Returns the entry that the segment stands behind: the one named, else the summary.
fn anchor(tree: &Tree<'_>, boundary: usize, metadata: &CompactMetadata) -> Option<usize> {
    let segment = metadata.preserved_segment.as_ref().and_then(|segment| segment.anchor_uuid.as_deref());
    let messages = metadata.preserved_messages.as_ref().and_then(|messages| messages.anchor_uuid.as_deref());
    segment.or(messages).and_then(|uuid| tree.find(uuid)).or_else(|| {
        tree.children(boundary).iter().copied().find(|child| tree.entry(*child).head().is_compact_summary)
    })
}

fn segment(tree: &Tree<'_>, metadata: &CompactMetadata) -> Vec<usize> {
    let walked = metadata.preserved_segment.as_ref().and_then(|segment| walk(tree, segment));
    walked.unwrap_or_else(|| {
        let listed = metadata.preserved_messages.as_ref().map(|messages| messages.uuids.as_slice());
        let mut seen = FxHashSet::default();
        let nodes = listed.unwrap_or_default().iter().filter_map(|uuid| tree.find(uuid));
        nodes.filter(|idx| seen.insert(*idx)).collect()
    })
}

/// Walks from tail to head; a head that is lost ends the walk at its child.
fn walk(tree: &Tree<'_>, segment: &PreservedSegment) -> Option<Vec<usize>> {
    let head = tree.find(&segment.head_uuid);
    let mut seen = FxHashSet::default();
    let mut nodes = Vec::new();
    let mut at = tree.find(&segment.tail_uuid);
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
            return Some(nodes);
        }
        at = if tree.entries[idx].is_compact_boundary() { None } else { tree.parent(idx) };
    }
    None
}
