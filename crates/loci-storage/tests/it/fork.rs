//! Forking a session.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use loci_core::conversation::Conversation;
use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_storage::sessions::{
    ForkError, ForkOrigin, fork_entries, link_backups, load_transcript, write_fork,
};
use serde_json::{Value, json};

use crate::support::{World, fixtures, session_id};

fn fixture(name: &str) -> Vec<Arc<Entry>> {
    load_transcript(&fixtures().join(format!("{name}.jsonl"))).unwrap().entries
}

fn entries(lines: &[Value]) -> Vec<Arc<Entry>> {
    lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect()
}

fn forked(entries: &[Arc<Entry>], trace: ForkOrigin) -> Vec<Arc<Entry>> {
    let conversation = Conversation::build(entries.to_vec());
    fork_entries(entries, &conversation, &session_id(1), &session_id(2), trace).unwrap()
}

fn uuids(entries: &[Arc<Entry>]) -> Vec<String> {
    entries.iter().filter_map(|entry| entry.head().uuid.as_ref()).map(|uuid| uuid.to_string()).collect()
}

/// The reference made `forked` from `resumed_twice`; so do we, line by line.
#[test]
fn a_fork_is_what_the_reference_makes() {
    let theirs = fixture("forked");
    let id: String = theirs[0].fields().read("sessionId").unwrap();
    let id = loci_core::ids::SessionId::parse(&id).unwrap();
    let source = fixture("resumed_twice");
    let conversation = Conversation::build(source.clone());
    let ours = fork_entries(&source, &conversation, &session_id(1), &id, ForkOrigin::None).unwrap();
    let chain: Vec<&str> =
        theirs.iter().filter(|entry| entry.head().kind.is_chain()).map(|entry| entry.line()).collect();
    let ours: Vec<&str> = ours.iter().map(|entry| entry.line()).collect();
    // Theirs goes on with a turn of its own.
    assert_eq!(ours, chain[..chain.len() - 2]);
}

/// Whatever the source, its fork sends the same and is appended to at the same place.
/// Invariant 18 of `docs/design/session-log.md`.
#[test]
fn a_fork_goes_on_like_its_source() {
    let mut seen = 0;
    for file in fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let source = load_transcript(&file).unwrap().entries;
        let before = Conversation::build(source.clone());
        for trace in [ForkOrigin::None, ForkOrigin::Recorded] {
            let after = Conversation::build(forked(&source, trace));
            assert_eq!(uuids(after.path()), uuids(before.path()), "{}", file.display());
            assert_eq!(
                (after.leaf(), after.repairs()),
                (before.leaf(), before.repairs()),
                "{}",
                file.display()
            );
        }
        seen += 1;
    }
    assert!(seen >= 15, "{seen}");
}

/// Any message of the file can be branched from, dead branches included.
#[test]
fn a_branch_may_begin_at_any_message() {
    let source = fixture("branched");
    for at in source.iter().filter(|entry| entry.head().kind.is_chain()) {
        let at: &EntryId = at.head().uuid.as_ref().unwrap();
        let before = Conversation::build_at(source.clone(), at).unwrap();
        let copied =
            fork_entries(&source, &before, &session_id(1), &session_id(2), ForkOrigin::Recorded).unwrap();
        let after = Conversation::build_at(copied, at).unwrap();
        assert_eq!(uuids(after.path()), uuids(before.path()), "{at}");
    }
}

/// Invariant 18 of `docs/design/session-log.md`.
#[test]
fn traces_replacements_and_checkpoints_are_kept() {
    let user = |uuid: &str, parent: Value| json!({"parentUuid": parent, "type": "user", "uuid": uuid, "message": {"content": "x"}, "sessionId": "old"});
    let snapshot = |message: &str, files: Value| json!({"type": "file-history-snapshot", "messageId": message, "snapshot": {"messageId": message, "trackedFileBackups": files}});
    let source = entries(&[
        user("u1", Value::Null),
        snapshot("u1", json!({})),
        snapshot("u1", json!({"a": 1})),
        json!({"type": "content-replacement", "sessionId": "old", "replacements": [{"x": 1}]}),
        user("dead", json!("u1")),
        snapshot("dead", json!({})),
        user("u2", json!("u1")),
        snapshot("u2", json!({})),
        json!({"type": "custom-title", "customTitle": "t", "sessionId": "old"}),
    ]);
    let copied: Vec<Value> = forked(&source, ForkOrigin::Recorded)
        .iter()
        .map(|entry| serde_json::from_str(entry.line()).unwrap())
        .collect();
    let new = session_id(2).to_string();
    let kinds: Vec<&str> = copied.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["user", "user", "content-replacement", "file-history-snapshot", "file-history-snapshot"]
    );
    assert_eq!(copied[1]["forkedFrom"], json!({"sessionId": session_id(1).as_str(), "messageUuid": "u2"}));
    assert_eq!(
        copied[2],
        json!({"type": "content-replacement", "sessionId": new, "replacements": [{"x": 1}]})
    );
    assert_eq!(
        (&copied[3]["messageId"], &copied[4]["snapshot"]["trackedFileBackups"]),
        (&json!("u2"), &json!({"a": 1}))
    );
}

#[test]
fn fork_of_nothing_is_an_error_and_no_file_is_overwritten() {
    let world = World::new();
    let empty = Conversation::build(Vec::new());
    let error = fork_entries(&[], &empty, &session_id(1), &session_id(2), ForkOrigin::None).unwrap_err();
    assert!(matches!(error, ForkError::Nothing));
    let place = world.home.session(world.cwd(), &session_id(2));
    let copied = forked(&fixture("simple"), ForkOrigin::None);
    write_fork(&place, &copied).unwrap();
    assert_eq!(fs::metadata(place.file()).unwrap().mode() & 0o777, 0o600);
    assert_eq!(load_transcript(place.file()).unwrap().entries.len(), copied.len());
    assert!(matches!(write_fork(&place, &copied).unwrap_err(), ForkError::InUse { .. }));
}

/// Invariant 18 of `docs/design/session-log.md`.
#[test]
fn fork_links_file_backups() {
    let world = World::new();
    assert_eq!(link_backups(&world.home, &session_id(1), &session_id(2)).unwrap(), 0);
    assert!(!world.home.file_history_dir(&session_id(2)).exists());
    let old = world.home.file_history_dir(&session_id(1));
    fs::create_dir_all(old.join("a directory")).unwrap();
    fs::write(old.join("abc@v1"), "one").unwrap();
    for _ in 0..2 {
        assert_eq!(link_backups(&world.home, &session_id(1), &session_id(2)).unwrap(), 1);
    }
    let new = world.home.file_history_dir(&session_id(2)).join("abc@v1");
    assert_eq!(fs::metadata(new).unwrap().ino(), fs::metadata(old.join("abc@v1")).unwrap().ino());
}
