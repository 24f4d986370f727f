//! Where the conversation stands: the leaf of the path.
//!
//! `last` is the chain entry written last, carried forward to what hangs below it (entries are sometimes
//! written before their parent). `pointer` is the `leafUuid` of the last `last-prompt` entry.
//!
//! - No pointer, or one to an entry above `last`: the leaf is `last`.
//! - A pointer elsewhere that was written after everything else: the leaf is exactly where it points.
//! - A pointer to the leaf of another branch, with entries of this one written after it: the leaf is where it points,
//!   as for the format's reference. Whoever leaves a branch therefore writes a pointer first.
//! - A pointer into a branch that went on after it, or to an entry before a compaction, is out of date, and the leaf
//!   is `last`. (The reference follows it even then, and loses what a crash kept from being pointed at.)

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
    let is_followed = is_current
        || tree.chain(pointer).contains(&written_last)
        || (is_named(tree, pointer, &leaf) && is_left_branch(tree, line, pointer, &above)?);
    Ok(Some(if is_followed { pointer } else { last }))
}

/// Tells whether a name is a node's own, not that of a link to it.
fn is_named(tree: &Tree<'_>, idx: usize, name: &str) -> bool {
    tree.entry(idx).head().uuid.as_ref().is_some_and(|uuid| uuid.as_str() == name)
}

/// Tells whether the pointer in `line` names the leaf of a branch beside `above` that had ended when it was written.
fn is_left_branch(
    tree: &Tree<'_>,
    line: usize,
    pointer: usize,
    above: &[usize],
) -> Result<bool, MissingEntries> {
    if line < pointer || !tree.children(pointer).is_empty() {
        return Ok(false);
    }
    let beside = tree.chain(pointer);
    let tops = [above.first(), beside.first()];
    match tops.into_iter().flatten().find_map(|top| tree.doubts_about(*top)) {
        Some(names) => Err(MissingEntries::of_entries(names.iter().cloned())),
        None => Ok(above.first() == beside.first()),
    }
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
