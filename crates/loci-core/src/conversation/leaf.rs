//! Where the conversation stands: the leaf of the path.
//!
//! `last` is the chain entry written last, carried forward to what hangs below it (entries are sometimes
//! written before their parent). `pointer` is the `leafUuid` of the last `last-prompt` entry.
//!
//! - No pointer, or one to an entry above `last`: the leaf is `last`.
//! - A pointer elsewhere that was written after everything else: the leaf is exactly where it points.
//! - A pointer elsewhere with entries written after it is out of date, and the leaf is `last`. (The format's
//!   reference follows it even then, and loses the turn that a crash kept from writing its own pointer.)

use crate::entry::EntryKind;

use super::end::MissingEntries;
use super::tree::{NodeTarget, Tree};

/// Chooses the leaf; `None` when there is no chain entry. An error says what must be read to choose.
pub(super) fn choose(tree: &Tree<'_>) -> Result<Option<usize>, MissingEntries> {
    let Some(written_last) = (0..tree.entries().len()).rev().find(|idx| tree.is_node(*idx)) else {
        return Ok(None);
    };
    let last = forward(tree, written_last);
    let Some((line, leaf)) = pointer(tree) else { return Ok(Some(last)) };
    let is_current = line > written_last;
    let pointer = match tree.look_up(&leaf) {
        NodeTarget::Node(pointer) => pointer,
        NodeTarget::Unread(name) if is_current => return Err(MissingEntries::of_entries([name])),
        NodeTarget::Unread(_) | NodeTarget::Nowhere => return Ok(Some(last)),
    };
    let above = tree.chain(last);
    if above.contains(&pointer) {
        return Ok(Some(last));
    }
    if let Some(names) = above.first().and_then(|top| tree.doubts_about(*top)).filter(|_| is_current) {
        return Err(MissingEntries::of_entries(names.iter().cloned()));
    }
    Ok(Some(if is_current || tree.chain(pointer).contains(&written_last) { pointer } else { last }))
}

/// Goes down from `idx` to a leaf, at each step to the child written last.
fn forward(tree: &Tree<'_>, idx: usize) -> usize {
    let mut seen = vec![false; tree.entries().len()];
    for above in tree.chain(idx) {
        seen[above] = true;
    }
    let mut at = idx;
    while let Some(&child) = tree.children(at).last() {
        if std::mem::replace(&mut seen[child], true) {
            break;
        }
        at = child;
    }
    at
}

/// Returns the line of the last pointer and the name it holds.
fn pointer(tree: &Tree<'_>) -> Option<(usize, String)> {
    let is_pointer = |idx: &usize| {
        let head = tree.entry(*idx).head();
        head.kind == EntryKind::Metadata && head.type_name.as_ref() == "last-prompt"
    };
    let line = (0..tree.entries().len()).rev().find(is_pointer)?;
    Some((line, tree.entry(line).fields().read("leafUuid")?))
}
