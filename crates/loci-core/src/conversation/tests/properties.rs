//! What holds for any file, however broken.

use proptest::prelude::*;
use rustc_hash::FxHashSet;

use super::*;
use crate::conversation::shape::Shape;

/// One line of a random table: few ids, so that duplicates, circles and lost parents are frequent.
fn line() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec![
        "user",
        "user",
        "user",
        "assistant",
        "assistant",
        "attachment",
        "system",
        "progress",
        "future",
        "boundary",
    ]);
    let options = prop::sample::select(vec![
        "",
        "",
        "",
        "call=t1",
        "call=t2",
        "result=t1",
        "result=t2",
        "msg=m call=t3",
        "msg=m",
        "summary",
        "side",
        "error",
        "thinking",
        "segment=n1,n4",
        "logical=n2",
        "listed=n3,n1",
    ]);
    let id = || (0..12_u32).prop_map(|n| format!("n{n}"));
    let parent = prop_oneof![4 => id(), 1 => Just("-".to_owned()), 1 => Just("lost".to_owned())];
    let entry = (kind, id(), parent, options, 0..60_u32)
        .prop_map(|(kind, id, parent, options, at)| format!("{kind} {id} {parent} {options} at={at:02}"));
    prop_oneof![12 => entry, 1 => id().prop_map(|id| format!("pointer {id}"))]
}

fn table() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..30).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn any_file_has_a_sound_path(table in table()) {
        let conversation = Conversation::build(session(&table));
        let mut seen = FxHashSet::default();
        let mut open: FxHashSet<String> = FxHashSet::default();
        for entry in conversation.path() {
            prop_assert!(seen.insert(id(entry)), "twice on the path: {}", id(entry));
            let shape = Shape::from_entry(entry);
            for call in shape.calls {
                open.insert(call.to_string());
            }
            for result in shape.results {
                prop_assert!(open.remove(result.as_str()), "result without an open call: {}", result);
            }
        }
        let closed = conversation.repairs().iter().filter(|repair| matches!(repair, Repair::CloseCall { .. })).count();
        prop_assert_eq!(open.len(), closed, "open calls are closed: {}", show(&conversation));
    }

    /// Invariant 8 of `docs/design/session-log.md`.
    #[test]
    fn repairs_are_made_once(table in table()) {
        let mended = Conversation::build(repaired(session(&table)));
        prop_assert_eq!(mended.repairs(), [], "{}", show(&mended));
    }

    /// Invariant 7 of `docs/design/session-log.md`.
    #[test]
    fn last_message_is_on_the_path(table in table()) {
        let entries = session(&table);
        let Some(last) = last_words(&entries) else { return Ok(()) };
        let has_pointer_after = entries.iter().rev().take_while(|entry| !Arc::ptr_eq(entry, last)).any(is_pointer);
        let conversation = Conversation::build(entries.clone());
        if !has_pointer_after && !is_pointed_at(&entries, &conversation) {
            prop_assert!(conversation.path().iter().any(|entry| id(entry) == id(last)), "{}", show(&conversation));
        }
    }

    /// Invariant 7 of `docs/design/session-log.md`.
    #[test]
    fn every_message_is_on_some_branch(table in table()) {
        let entries = session(&table);
        let branches = Branches::from_entries(&entries);
        let mut reached: FxHashSet<&str> = FxHashSet::default();
        for leaf in branches.leaves() {
            let lineage = branches.lineage(&leaf.id);
            prop_assert!(lineage.iter().any(|entry| entry.head().uuid.as_ref() == Some(&leaf.id)));
            reached.extend(lineage.into_iter().map(|entry| id(entry)));
            prop_assert!(Conversation::build_at(entries.clone(), &leaf.id).is_some());
        }
        for entry in entries.iter().filter(|entry| entry.head().kind.is_chain() && !entry.head().is_sidechain) {
            // The last of one uuid counts, and a boundary without a summary is only a link.
            let last = entries.iter().rfind(|other| id(other) == id(entry) && other.head().kind.is_chain() && !other.head().is_sidechain);
            let is_link = last.is_some_and(|last| is_open_boundary(&entries, last));
            prop_assert!(is_link || reached.contains(id(entry)), "{} is lost", id(entry));
        }
    }

    #[test]
    fn a_growing_chain_stays_whole(n_entries in 1..60_usize, lost in 0..60_usize) {
        // Every entry hangs from the one before; one line is lost.
        let lines: Vec<String> = (0..n_entries)
            .map(|n| {
                let kind = if n % 2 == 0 { "user" } else { "assistant" };
                let parent = if n == 0 { "-".to_owned() } else { format!("e{}", n - 1) };
                format!("{kind} e{n} {parent}")
            })
            .enumerate()
            .filter(|(n, _)| *n != lost || n_entries == 1)
            .map(|(_, line)| line)
            .collect();
        let conversation = Conversation::build(session(&lines.join("\n")));
        prop_assert_eq!(conversation.path().len(), lines.len());
    }
}

fn is_pointer(entry: &Arc<Entry>) -> bool {
    entry.head().type_name.as_ref() == "last-prompt"
}

/// Tells whether the conversation stands where the last pointer says.
fn is_pointed_at(entries: &[Arc<Entry>], conversation: &Conversation) -> bool {
    let pointer = entries.iter().rfind(|entry| is_pointer(entry));
    let leaf = pointer.and_then(|pointer| pointer.fields().read::<String>("leafUuid"));
    leaf.is_some() && leaf.as_deref() == conversation.leaf().map(EntryId::as_str)
}

/// Returns the last chain entry that is more than a result or a call, which may lack their other half.
fn last_words(entries: &[Arc<Entry>]) -> Option<&Arc<Entry>> {
    let last = entries.iter().rev().find(|entry| {
        entry.head().kind.is_chain() && !entry.head().is_sidechain && !is_open_boundary(entries, entry)
    })?;
    let is_rewritten = entries.iter().any(|entry| id(entry) == id(last) && entry.is_compact_boundary());
    if is_rewritten && !last.is_compact_boundary() {
        return None;
    }
    let shape = Shape::from_entry(last);
    (shape.calls.is_empty() && shape.results.is_empty() && !shape.has_unusable).then_some(last)
}

fn is_open_boundary(entries: &[Arc<Entry>], boundary: &Entry) -> bool {
    let has_summary = entries.iter().any(|entry| {
        entry.head().is_compact_summary
            && !entry.head().is_sidechain
            && entry.head().parent == boundary.head().uuid
    });
    boundary.is_compact_boundary() && !has_summary
}

#[test]
fn long_files_take_linear_time() {
    const N: usize = 4_000;
    // A chain of links, a chain of messages, many orphans, many children of one node: each was once quadratic
    // somewhere.
    let mut entries = vec![Arc::new(entry("user n0 -"))];
    for n in 1..N {
        entries.push(Arc::new(entry(&format!("progress p{n} p{}", n - 1))));
        entries.push(Arc::new(entry(&format!("assistant n{n} n{} call=t{n}", n - 1))));
        entries.push(Arc::new(entry(&format!("user o{n} lost{n}"))));
        entries.push(Arc::new(entry(&format!("attachment c{n} n0"))));
        entries.push(Arc::new(entry(&format!("user q{n} p{n}"))));
    }
    assert!(Branches::from_entries(&entries).leaves().len() > N);
    assert!(!Conversation::build(entries).path().is_empty());
}
