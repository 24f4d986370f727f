//! What crashes, other programs and two writers do to a session file, and what is left of it when it is resumed.
//!
//! Every case stands behind a long compacted part, is loaded both whole and from its end, and must give the same.

use std::path::Path;
use std::sync::Arc;

use loci_core::conversation::{Branches, Conversation};
use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_storage::sessions::{LiveLoad, SkipReason, SkippedLine, load_at, load_live, load_transcript};
use serde_json::{Value, json};

use crate::support::World;

/// Returns a chain entry with a text; the uuid and the parent are the two words of `place`.
fn line(kind: &str, place: &str, seconds: u32) -> Value {
    let (uuid, parent) = place.split_once(' ').unwrap();
    json!({
        "parentUuid": if parent == "-" { Value::Null } else { json!(parent) },
        "isSidechain": false,
        "type": kind,
        "message": {"role": kind, "id": format!("msg_{uuid}"), "content": [{"type": "text", "text": uuid}]},
        "uuid": uuid,
        "timestamp": format!("2026-01-02T{:02}:{:02}:{:02}.000Z", seconds / 3600, seconds / 60 % 60, seconds % 60),
        "sessionId": "s",
    })
}

fn user(place: &str) -> Value {
    line("user", place, 40_000)
}

fn answer(place: &str) -> Value {
    line("assistant", place, 40_000)
}

/// Two hundred turns, and a compaction of them with the summary `s`.
fn old_part() -> Vec<u8> {
    let mut lines = Vec::new();
    for n in 0..200 {
        let above = if n == 0 { "-".to_owned() } else { format!("a{}", n - 1) };
        lines.push(line("user", &format!("u{n} {above}"), 10 * n));
        lines.push(line("assistant", &format!("a{n} u{n}"), 10 * n + 2));
    }
    let mut boundary = line("system", "b -", 30_000);
    boundary["subtype"] = json!("compact_boundary");
    boundary["logicalParentUuid"] = json!("a199");
    let mut summary = line("user", "s b", 30_001);
    summary["isCompactSummary"] = json!(true);
    lines.extend([boundary, summary]);
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

/// A part of the file and what is wrong with it, counted from the end of the old part.
type Expected = (usize, usize, SkipReason);

fn check(new_part: impl AsRef<[u8]>, path: &str, skipped: &[Expected]) {
    let live = check_same(new_part.as_ref(), path, skipped);
    assert!(live.start > 0, "the old part is not read");
}

fn check_same(new_part: &[u8], path: &str, skipped: &[Expected]) -> LiveLoad {
    let world = World::new();
    let old = old_part();
    let file = world.write("s.jsonl", [&old, new_part].concat());
    let live = load_live(&file).unwrap();
    assert_eq!(uuids(&live.conversation), path);
    let place = |part: &SkippedLine| ((part.offset as usize) - old.len(), part.len as usize, part.reason);
    assert_eq!(live.skipped.iter().map(place).collect::<Vec<_>>(), skipped);
    let whole = load_transcript(&file).unwrap();
    assert_eq!(whole.skipped, live.skipped, "reported once, with its place in the file");
    let full = Conversation::build(whole.entries);
    assert_eq!((uuids(&full), full.leaf()), (path.to_owned(), live.conversation.leaf()));
    assert_eq!(full.repairs(), live.conversation.repairs());
    every_message_is_on_a_branch(&file);
    live
}

fn every_message_is_on_a_branch(file: &Path) {
    let entries = load_transcript(file).unwrap().entries;
    let branches = Branches::from_entries(&entries);
    let mut reached: Vec<&EntryId> = Vec::new();
    for leaf in branches.leaves() {
        reached.extend(branches.lineage(&leaf.id).iter().filter_map(|entry| entry.head().uuid.as_ref()));
    }
    let is_message = |entry: &&Arc<Entry>| {
        entry.head().kind.is_chain() && !entry.head().is_sidechain && !entry.is_compact_boundary()
    };
    for entry in entries.iter().filter(is_message) {
        assert!(reached.contains(&entry.head().uuid.as_ref().unwrap()), "{}", entry.line());
    }
}

fn uuids(conversation: &Conversation) -> String {
    let uuid = |entry: &Arc<Entry>| entry.head().uuid.as_ref().map_or("?".to_owned(), ToString::to_string);
    conversation.path().iter().map(uuid).collect::<Vec<_>>().join(" ")
}

fn lines(values: &[Value]) -> Vec<u8> {
    values.iter().flat_map(|value| format!("{value}\n").into_bytes()).collect()
}

#[test]
fn missing_parent_loses_no_entry() {
    check_same(
        &lines(&[user("x1 s"), answer("y1 lost"), user("x2 y1"), answer("y2 x2")]),
        "b s x1 y1 x2 y2",
        &[],
    );
}

#[test]
fn parent_cycle_is_broken() {
    let circle = lines(&[user("x1 s"), answer("y1 x2"), user("x2 y1"), answer("y2 x2")]);
    check_same(&circle, "b s x1 y1 x2 y2", &[]);
}

#[test]
fn last_entry_with_a_duplicate_uuid_counts() {
    let mut again = answer("y1 x1");
    again["message"]["content"][0]["text"] = json!("again");
    let world = World::new();
    let file = world.write("s.jsonl", [old_part(), lines(&[user("x1 s"), answer("y1 x1"), again])].concat());
    let live = load_live(&file).unwrap();
    assert_eq!(uuids(&live.conversation), "b s x1 y1");
    assert!(live.conversation.path()[3].line().contains("again"));
}

#[test]
fn a_block_that_was_written_again_is_there_once() {
    let block = lines(&[user("x1 s"), answer("y1 x1"), user("x2 y1"), answer("y2 x2")]);
    check([block.clone(), block].concat(), "b s x1 y1 x2 y2", &[]);
}

#[test]
fn an_old_block_written_again_does_not_hide_what_followed_it() {
    // A replay that a crash cut short: the last line is an old one, and its descendants stand far before.
    let replayed = lines(&[line("user", "u5 a4", 50), line("assistant", "a5 u5", 52)]);
    let world = World::new();
    let file =
        world.write("s.jsonl", [old_part(), lines(&[user("x1 s"), answer("y1 x1")]), replayed].concat());
    let (live, whole) = (load_live(&file).unwrap(), load_transcript(&file).unwrap());
    assert_eq!(uuids(&live.conversation), uuids(&Conversation::build(whole.entries)));
    assert_eq!(live.conversation.leaf().unwrap().as_str(), "a199");
}

#[test]
fn two_writers_at_once_make_two_branches() {
    let file =
        lines(&[user("x1 s"), user("v1 s"), answer("y1 x1"), answer("w1 v1"), user("x2 y1"), user("v2 w1")]);
    check(file, "b s v1 w1 v2", &[]);
}

#[test]
fn sidechains_and_progress_are_not_messages() {
    let mut aside = user("x9 x1");
    aside["isSidechain"] = json!(true);
    let progress = json!({"type": "progress", "uuid": "p1", "parentUuid": "x1", "sessionId": "s"});
    check(lines(&[user("x1 s"), aside, progress, answer("y1 p1")]), "b s x1 y1", &[]);
}

#[test]
fn runs_of_nul_and_other_debris_are_passed_over() {
    let (first, second) = (lines(&[user("x1 s")]), lines(&[answer("y1 x1")]));
    let debris = b"\0\0\0\0\0\0\0\0\nnull\n{\"a\":1}\nwords\n";
    let at = first.len();
    check(
        [&first[..], debris, &second].concat(),
        "b s x1 y1",
        &[
            (at, 8, SkipReason::Nul),
            (at + 9, 4, SkipReason::NotAnEntry),
            (at + 14, 7, SkipReason::NotAnEntry),
            (at + 22, 5, SkipReason::NotJson),
        ],
    );
}

#[test]
fn torn_tail_is_reported_and_the_rest_loaded() {
    let (first, torn) = (lines(&[user("x1 s")]), lines(&[answer("y1 x1")]));
    let torn = &torn[..torn.len() / 2];
    check([&first[..], torn].concat(), "b s x1", &[(first.len(), torn.len(), SkipReason::Torn)]);
}

#[test]
fn entry_glued_to_a_torn_line_is_found() {
    let (first, torn, glued) =
        (lines(&[user("x1 s")]), lines(&[answer("t x1")]), lines(&[answer("y1 x1"), user("x2 y1")]));
    let torn = &torn[..torn.len() / 2];
    check(
        [&first[..], torn, &glued].concat(),
        "b s x1 y1 x2",
        &[(first.len(), torn.len(), SkipReason::NotJson)],
    );
}

#[test]
fn a_line_of_fifty_megabytes_is_a_line() {
    let mut huge = user("x1 s");
    huge["message"]["content"][0]["text"] = json!("x".repeat(50_000_000));
    check(lines(&[huge, answer("y1 x1")]), "b s x1 y1", &[]);
}

#[test]
fn text_that_is_not_unicode_costs_only_those_characters() {
    let mut file = lines(&[user("x1 s"), answer("y1 x1")]);
    let at = file.windows(8).position(|bytes| bytes == b"\"text\":\"").unwrap();
    file.splice(at + 8..at + 10, *b"\xff\xfe");
    check(file, "b s x1 y1", &[]);
    let halved = String::from_utf8(lines(&[user("x1 s"), answer("y1 x1")])).unwrap();
    check(halved.replace(r#""text":"x1""#, r#""text":"\ud83d""#), "b s x1 y1", &[]);
}

#[test]
fn a_pointer_to_a_branch_from_before_the_compaction_is_followed() {
    let pointer = json!({"type": "last-prompt", "leafUuid": "a1", "sessionId": "s"});
    let live = check_same(&lines(&[user("x1 s"), answer("y1 x1"), pointer]), "u0 a0 u1 a1", &[]);
    assert_eq!(live.start, 0);
}

#[test]
fn a_compaction_that_crashed_before_its_summary_costs_nothing() {
    let mut boundary = line("system", "b2 -", 40_001);
    boundary["subtype"] = json!("compact_boundary");
    boundary["logicalParentUuid"] = json!("y1");
    check(lines(&[user("x1 s"), answer("y1 x1"), boundary, user("x2 b2")]), "b s x1 y1 x2", &[]);
}

#[test]
fn a_conversation_can_be_loaded_up_to_any_message() {
    let world = World::new();
    let file =
        world.write("s.jsonl", [old_part(), lines(&[user("x1 s"), answer("y1 x1"), user("x2 y1")])].concat());
    let at = |uuid: &str| load_at(&file, &EntryId::from(uuid)).unwrap().map(|live| uuids(&live.conversation));
    assert_eq!(at("y1").as_deref(), Some("b s x1 y1"));
    assert_eq!(at("a1").as_deref(), Some("u0 a0 u1 a1"));
    assert_eq!(at("nowhere"), None);
}

#[test]
fn titles_and_mode_come_from_the_part_that_is_read() {
    let title = json!({"type": "custom-title", "customTitle": "mine", "sessionId": "s"});
    let mode = json!({"type": "permission-mode", "permissionMode": "plan", "sessionId": "s"});
    let live = check_same(&lines(&[user("x1 s"), title, mode, answer("y1 x1")]), "b s x1 y1", &[]);
    assert_eq!(live.conversation.titles().best(), Some("mine"));
    assert_eq!(live.conversation.last_mode(), Some("plan"));
    let kinds: Vec<&str> = live.metadata.iter().map(|entry| entry.head().type_name.as_ref()).collect();
    assert_eq!(kinds, ["custom-title", "permission-mode"]);
}
