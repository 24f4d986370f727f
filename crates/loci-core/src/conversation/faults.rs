//! What is wrong with the tree of a session file: parents that are nowhere, circles, two messages under one name.
//!
//! A conversation is made of such a file all the same ([`super::Conversation::build`]); here it is said where the file
//! needed help, and what the help was, so that the file can be mended into saying it itself.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::tree::Tree;
use crate::entry::{Entry, EntryKind};
use crate::ids::EntryId;

/// What is wrong with the place of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Its parent is nowhere in the file.
    LostParent {
        /// The parent that it names.
        missing: EntryId,
        /// The entry it hangs from instead; none at the beginning of a file.
        found: Option<EntryId>,
    },
    /// It is the first of entries that are each other's parents.
    Circle {
        /// The entry it hangs from instead.
        found: Option<EntryId>,
    },
    /// A later entry has its id and says something else; only the later one counts.
    Double,
}

/// Returns what is wrong with the tree of a whole file, by the number of the entry, in file order.
pub fn faults(entries: &[Arc<Entry>]) -> Vec<(usize, Fault)> {
    let (tree, misplaced) = Tree::with_misplaced(entries);
    let found = |idx: usize| tree.parent(idx).and_then(|parent| tree.entry(parent).head().uuid.clone());
    let mut faults: Vec<(usize, Fault)> = Vec::new();
    for idx in misplaced.lost {
        let head = entries[idx].head();
        let fault = match head.parent.clone().filter(|parent| Some(parent) != head.uuid.as_ref()) {
            Some(missing) => Fault::LostParent { missing, found: found(idx) },
            None => Fault::Circle { found: found(idx) },
        };
        faults.push((idx, fault));
    }
    faults.extend(misplaced.cut.into_iter().map(|idx| (idx, Fault::Circle { found: found(idx) })));
    faults.extend(doubles(entries).into_iter().map(|idx| (idx, Fault::Double)));
    faults.sort_by_key(|(idx, _)| *idx);
    faults
}

/// Returns the entries whose id a later one has that says something else.
fn doubles(entries: &[Arc<Entry>]) -> Vec<usize> {
    let named = || {
        let chain = entries.iter().enumerate();
        let chain = chain.filter(|(_, entry)| entry.head().kind.is_chain() && !entry.head().is_sidechain);
        chain.filter_map(|(idx, entry)| Some((entry.head().uuid.as_ref()?.as_str(), idx)))
    };
    let last: FxHashMap<&str, usize> = named().collect();
    let is_double = |uuid: &str, idx: usize| {
        let counts = last.get(uuid).copied().unwrap_or(idx);
        counts != idx && content_of(&entries[counts]) != content_of(&entries[idx])
    };
    named().filter(|(uuid, idx)| is_double(uuid, *idx)).map(|(_, idx)| idx).collect()
}

/// Returns what an entry says, apart from where and when.
fn content_of(entry: &Entry) -> (EntryKind, Option<String>) {
    let key = match entry.head().kind {
        EntryKind::User | EntryKind::Assistant => "message",
        EntryKind::Attachment => "attachment",
        EntryKind::System | EntryKind::Progress | EntryKind::Metadata => "content",
    };
    (entry.head().kind, entry.fields().get(key).map(|value| value.get().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(uuid: &str, parent: &str, second: u32, text: &str) -> Arc<Entry> {
        let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
        let line = format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"timestamp":"2026-01-01T00:00:{second:02}.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        );
        Arc::new(Entry::parse(line).unwrap())
    }

    fn check(entries: &[Arc<Entry>], expected: &[(usize, Fault)]) {
        assert_eq!(faults(entries), expected);
    }

    fn id(text: &str) -> EntryId {
        EntryId::from(text)
    }

    #[test]
    fn a_whole_tree_has_no_faults() {
        check(&[], &[]);
        // A parent may come after its child, branches are fine, and a prompt may be written twice.
        let entries = [
            entry("b", "a", 2, "two"),
            entry("a", "", 1, "one"),
            entry("c", "a", 3, "three"),
            entry("c", "b", 3, "three"),
        ];
        check(&entries, &[]);
    }

    #[test]
    fn a_lost_parent_is_named_with_what_stands_in_for_it() {
        let entries = [entry("b", "gone", 1, "x"), entry("c", "b", 2, "y"), entry("d", "away", 3, "z")];
        check(
            &entries,
            &[
                (0, Fault::LostParent { missing: id("gone"), found: None }),
                (2, Fault::LostParent { missing: id("away"), found: Some(id("c")) }),
            ],
        );
    }

    #[test]
    fn parent_cycles_are_cut_once() {
        let entries = [
            entry("r", "", 1, "r"),
            entry("a", "c", 2, "a"),
            entry("b", "a", 3, "b"),
            entry("c", "b", 4, "c"),
        ];
        check(&entries, &[(1, Fault::Circle { found: Some(id("r")) })]);
        check(&[entry("a", "a", 1, "x")], &[(0, Fault::Circle { found: None })]);
    }

    #[test]
    fn duplicate_message_id_is_a_fault() {
        let entries = [entry("a", "", 1, "one"), entry("b", "a", 2, "two"), entry("a", "", 1, "another")];
        check(&entries, &[(0, Fault::Double)]);
    }
}
