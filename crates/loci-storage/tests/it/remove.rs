//! Removing sessions and bringing them back.

use std::fs;
use std::process::Command;

use loci_stdx::Timestamp;
use loci_storage::layout::SessionPlace;
use loci_storage::sessions::{RemoveError, remove_session, removed_sessions, restore_session};
use serde_json::{Value, json};

use crate::support::{World, session_id, user};

fn now(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_323_045 + second).unwrap()
}

fn session(world: &World, n: u32) -> SessionPlace {
    let place = world.home.session(world.cwd(), &session_id(n));
    fs::create_dir_all(place.subagents_dir()).unwrap();
    fs::write(place.file(), user("u1", world.cwd()).line()).unwrap();
    fs::write(place.subagents_dir().join("agent-a.jsonl"), "side").unwrap();
    place
}

/// Invariant 20 of `docs/design/session-log.md`.
#[test]
fn removed_session_can_be_restored() {
    let world = World::new();
    let place = session(&world, 1);
    let before = fs::read(place.file()).unwrap();
    let trash = remove_session(&world.home, &place, now(0)).unwrap();
    assert!(trash.starts_with(world.home.loci_dir().join("trash")) && trash.join("origin.json").exists());
    assert!(!place.file().exists() && !place.dir().exists());
    assert_eq!(removed_sessions(&world.home).unwrap(), [session_id(1)]);
    assert_eq!(restore_session(&world.home, &session_id(1), now(1)).unwrap(), place);
    assert_eq!(fs::read(place.file()).unwrap(), before);
    assert_eq!(fs::read_to_string(place.subagents_dir().join("agent-a.jsonl")).unwrap(), "side");
    assert!(!trash.exists());
    let log = fs::read_to_string(world.home.loci_dir().join("audit.log")).unwrap();
    let actions: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> =
        actions.iter().map(|line| (&line["action"], &line["sessionId"], &line["time"])).collect();
    let id = json!(session_id(1).as_str());
    assert_eq!(
        seen,
        [
            (&json!("remove"), &id, &json!("2026-01-02T03:04:05.000Z")),
            (&json!("restore"), &id, &json!("2026-01-02T03:04:06.000Z"))
        ]
    );
}

#[test]
fn restore_takes_the_latest_removal_and_overwrites_nothing() {
    let world = World::new();
    let place = session(&world, 1);
    remove_session(&world.home, &place, now(0)).unwrap();
    fs::write(place.file(), "a second life").unwrap();
    assert!(matches!(restore_session(&world.home, &session_id(1), now(1)), Err(RemoveError::Exists { .. })));
    remove_session(&world.home, &place, now(2)).unwrap();
    restore_session(&world.home, &session_id(1), now(3)).unwrap();
    assert_eq!(fs::read_to_string(place.file()).unwrap(), "a second life");
    assert_eq!(removed_sessions(&world.home).unwrap(), [session_id(1)], "the first is still there");
    let error = restore_session(&world.home, &session_id(9), now(4)).unwrap_err();
    assert!(matches!(error, RemoveError::NotInTrash { .. }));
}

#[test]
fn remove_refuses_a_session_in_use() {
    let world = World::new();
    let place = session(&world, 1);
    let id = session_id(1);
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let lease = format!("loci/leases/{id}.json");
    for (file, claim) in [
        (lease.as_str(), json!({"pid": other.id(), "host": "here"})),
        ("sessions/1.json", json!({"pid": other.id(), "sessionId": id.as_str()})),
    ] {
        let file = world.write(&format!(".claude/{file}"), claim.to_string());
        let error = remove_session(&world.home, &place, now(0)).unwrap_err();
        assert!(matches!(error, RemoveError::InUse { .. }), "{error}");
        assert!(place.file().exists());
        fs::remove_file(file).unwrap();
    }
    let gone = json!({"pid": other.id()}).to_string();
    other.kill().unwrap();
    other.wait().unwrap();
    world.write(&format!(".claude/{lease}"), gone);
    remove_session(&world.home, &place, now(1)).unwrap();
}
