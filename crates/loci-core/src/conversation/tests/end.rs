//! What the end of a file is enough for, and what is asked for when it is not.

use super::*;

/// Checks what the lines from the `start`th on give: the path, or what is missing.
fn check(table: &str, start: usize, searched: &[&str], expected: &str) {
    let entries = session(table);
    let searched: Vec<EntryId> = searched.iter().map(|name| EntryId::from(*name)).collect();
    let shown = match Conversation::from_end(&entries[start..], &searched) {
        Ok(living) => {
            assert_eq!(show(&living.conversation), show(&Conversation::build(entries)), "{table}");
            show(&living.conversation)
        }
        Err(MissingEntries { mut entries, parents }) => {
            entries.sort();
            let names = |ids: &[EntryId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            format!("entries: {}; parents: {}", names(&entries), names(&parents))
        }
    };
    assert_eq!(shown, expected, "{table}");
}

const COMPACTED: &str = "user u1 -
    assistant a1 u1
    user u2 a1
    boundary b - logical=u2 segment=a1,u2
    user s b summary
    assistant a2 s";

#[test]
fn the_part_after_a_boundary_is_enough() {
    let table = COMPACTED.replace(" segment=a1,u2", "");
    check(&table, 3, &[], "b s a2");
    check(&table, 4, &[], "entries: b; parents: ");
}

#[test]
fn preserved_entries_before_the_tail_are_asked_for() {
    check(COMPACTED, 3, &[], "entries: a1 u2; parents: ");
    check(COMPACTED, 2, &[], "entries: a1; parents: ");
    check(COMPACTED, 1, &[], "b s a1 u2 a2");
}

/// A prompt that was written again behind a compaction which had preserved it: where it hangs depends on what lies before.
#[test]
fn preserved_head_that_was_written_again_is_in_doubt_until_its_segment_is_read() {
    let table = "user u1 -
        assistant a1 u1
        assistant a2 a1
        boundary b - logical=a2 segment=u1,a2
        user s b summary
        user u1 -
        user u2 u1
        assistant a3 u2
        boundary c - logical=a3 segment=s,a3
        user t c summary";
    check(table, 2, &[], "entries: a1; parents: ");
    check(table, 1, &[], "c t s u1 u2 a3");
}

#[test]
fn entry_missing_everywhere_is_asked_for_once() {
    let table = COMPACTED.replace("assistant a1 u1", "attachment x u1");
    check(&table, 1, &[], "entries: a1; parents: ");
    check(&table, 1, &["a1"], "b s u2 a2");
}

#[test]
fn a_pointer_to_an_older_branch_is_followed() {
    let table = format!("{COMPACTED}\npointer a1").replace(" segment=a1,u2", "");
    check(&table, 3, &[], "entries: a1; parents: ");
    check(&table, 1, &[], "entries: u1; parents: ");
    check(&table, 0, &[], "u1 a1");
    check(&table.replace("pointer a1", "pointer nowhere"), 3, &["nowhere"], "b s a2");
}

#[test]
fn a_pointer_to_a_branch_that_was_left_is_followed() {
    let table = format!("{COMPACTED}\nuser u3 a2\npointer u3\nuser u4 a2").replace(" segment=a1,u2", "");
    check(&table, 3, &[], "b s a2 u3 | filler(u3)");
    check(&table, 4, &[], "entries: b; parents: ");
}

#[test]
fn parent_before_the_tail_is_asked_for() {
    let table = format!("{COMPACTED}\nuser x u1\npointer a2").replace(" segment=a1,u2", "");
    check(&table, 3, &[], "entries: u1; parents: ");
}

#[test]
fn a_boundary_without_summary_is_not_the_start() {
    let table = COMPACTED.replace("user s b summary\n", "").replace("a2 s", "a2 b");
    check(&table, 3, &[], "entries: u2; parents: ");
    check(&table, 0, &[], "u1 a1 u2 a2");
}

#[test]
fn children_of_a_rewritten_line_are_asked_for() {
    let table = "user u1 - at=00
        assistant a1 u1 at=01
        user u2 - at=30
        user u1 - at=00";
    check(table, 2, &[], "entries: ; parents: u1");
    check(table, 1, &["u1"], "u1 a1");
}

#[test]
fn an_end_without_messages_is_not_enough() {
    check("user u1 -\npointer u1", 1, &[], "entries: ; parents: ");
}

#[test]
fn a_conversation_up_to_an_entry_asks_for_it() {
    let entries = session(COMPACTED);
    let at = |start: usize, leaf: &str| Conversation::from_end_at(&entries[start..], &leaf.into(), &[]);
    assert_eq!(at(3, "a1").unwrap_err(), MissingEntries { entries: vec!["a1".into()], parents: Vec::new() });
    assert_eq!(show(&at(1, "u2").unwrap().unwrap().conversation), "b s a1 u2 | filler(u2)");
    let nowhere = Conversation::from_end_at(&entries, &"x".into(), &["x".into()]);
    assert!(nowhere.unwrap().is_none());
}
