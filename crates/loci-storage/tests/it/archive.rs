//! Putting sessions away and bringing them back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loci_stdx::Timestamp;
use loci_storage::layout::SessionPlace;
use loci_storage::search::{IndexUse, NoObserver, SearchFilter, SearchQuery, search_sessions, update_index};
use loci_storage::sessions::{
    ArchiveError, archive_older, archive_session, archived_sessions, pin_session, pinned_sessions,
    unarchive_session, unpin_session,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{World, session_id};

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    moment("2026-03-01T00:00:00Z")
}

/// A session with a subagent and a spilled result, last used at this time.
fn session(world: &World, n: u32, time: &str, words: &str) -> SessionPlace {
    let file = world.home.projects_dir().join(format!("-p/{}.jsonl", session_id(n)));
    let line = |uuid: &str, words: &str| {
        let entry = json!({"type": "user", "uuid": uuid, "parentUuid": null, "timestamp": time,
            "message": {"role": "user", "content": words}, "cwd": "/p", "sessionId": "s"});
        format!("{entry}\n")
    };
    let dir = file.with_extension("");
    fs::create_dir_all(dir.join("subagents")).unwrap();
    fs::create_dir_all(dir.join("tool-results")).unwrap();
    fs::write(&file, line("u1", words) + "torn \u{0}").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(dir.join("subagents/agent-a.jsonl"), line("s1", "deep water")).unwrap();
    fs::write(dir.join("tool-results/t.txt"), [0, 159, 146, 150]).unwrap();
    SessionPlace::new(file, session_id(n))
}

/// Every file below a directory: content, mode and time.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, u128)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        if metadata.is_dir() {
            found.extend(tree(&path));
        } else {
            let modified = metadata.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
            found.insert(
                path.clone(),
                (fs::read(&path).unwrap(), metadata.permissions().mode(), modified.as_millis()),
            );
        }
    }
    found
}

fn found(world: &World, text: &str) -> Vec<bool> {
    let wish = SearchQuery {
        text: text.to_owned(),
        is_regex: false,
        filter: SearchFilter::default(),
        skip: 0,
        limit: 10,
    };
    let plain = search_sessions(&world.home, &wish, IndexUse::None, "t", &NoObserver).unwrap();
    assert_eq!(search_sessions(&world.home, &wish, IndexUse::AsItIs, "t", &NoObserver).unwrap(), plain);
    plain.hits.iter().map(|hit| hit.is_archived).collect()
}

/// Invariant 8 of `docs/design/index.md`.
#[test]
fn a_session_comes_back_byte_for_byte_and_is_searched_meanwhile() {
    let world = World::new();
    let place = session(&world, 1, "2026-01-01T00:00:00.000Z", "the falcon port");
    let before = tree(&world.home.projects_dir());
    update_index(&world.home, "a", &NoObserver).unwrap();
    assert_eq!(found(&world, "falcon"), [false]);
    archive_session(&world.home, &place, now()).unwrap();
    assert!(tree(&world.home.projects_dir()).is_empty() && !place.dir().exists());
    assert_eq!((found(&world, "falcon"), found(&world, "water")), (vec![true], vec![true]));
    update_index(&world.home, "b", &NoObserver).unwrap();
    assert_eq!((found(&world, "falcon"), found(&world, "water")), (vec![true], vec![true]));
    let archived = archived_sessions(&world.home).unwrap();
    assert_eq!((archived.len(), archived[0].headline.as_deref()), (1, Some("the falcon port")));
    let back = unarchive_session(&world.home, place.id(), now()).unwrap();
    assert_eq!((back, tree(&world.home.projects_dir())), (place.clone(), before));
    assert!(archived_sessions(&world.home).unwrap().is_empty());
    assert_eq!(found(&world, "falcon"), [false]);
    let log = fs::read_to_string(world.home.loci_dir().join("audit.log")).unwrap();
    let actions: Vec<&str> =
        log.lines().map(|line| if line.contains("unarchive") { "back" } else { "away" }).collect();
    assert_eq!(actions, ["away", "back"]);
    assert!(matches!(
        unarchive_session(&world.home, place.id(), now()),
        Err(ArchiveError::NotArchived { .. })
    ));
}

/// By the last thing said, not by the time of the file; pinned ones stay.
/// Invariant 9 of `docs/design/index.md`.
#[test]
fn old_sessions_go_and_pinned_ones_stay() {
    let world = World::new();
    let old = session(&world, 1, "2026-01-01T00:00:00.000Z", "old");
    let pinned = session(&world, 2, "2026-01-01T00:00:00.000Z", "pinned");
    let new = session(&world, 3, "2026-02-27T00:00:00.000Z", "new");
    let silent = session(&world, 4, "not a time", "silent");
    pin_session(&world.home, pinned.id(), now()).unwrap();
    assert_eq!(pinned_sessions(&world.home).unwrap(), [pinned.id().to_string()]);
    let gone: Vec<SessionPlace> =
        archive_older(&world.home, 30, 10, now()).unwrap().into_iter().map(|swept| swept.place).collect();
    assert_eq!(gone, std::slice::from_ref(&old));
    assert!(!old.file().exists() && [&pinned, &new, &silent].iter().all(|place| place.file().exists()));
    assert!(matches!(archive_session(&world.home, &pinned, now()), Err(ArchiveError::Pinned { .. })));
    unpin_session(&world.home, pinned.id(), now()).unwrap();
    assert_eq!(archive_older(&world.home, 30, 10, now()).unwrap().len(), 1);
    assert!(archive_older(&world.home, 30, 10, now()).unwrap().is_empty());
}

/// Class 10 of the sessions' regressions: a process that has had nothing to say for long still has its session.
#[test]
fn a_session_that_is_open_stays() {
    let world = World::new();
    let open = session(&world, 1, "2026-01-01T00:00:00.000Z", "open");
    let closed = session(&world, 2, "2026-01-02T00:00:00.000Z", "closed");
    let mut owner = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let leases = world.home.loci_dir().join("leases");
    fs::create_dir_all(&leases).unwrap();
    fs::write(leases.join(format!("{}.json", open.id())), json!({"pid": owner.id()}).to_string()).unwrap();
    let sweep = || {
        let swept = archive_older(&world.home, 30, 1, now()).unwrap().into_iter();
        swept.map(|swept| (swept.place, swept.result.is_ok())).collect::<Vec<_>>()
    };
    let while_open = [sweep(), sweep()];
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(while_open, [vec![(closed, true)], vec![]]);
    assert_eq!(sweep(), [(open, true)]);
}

#[test]
fn failed_archive_operation_changes_nothing() {
    let world = World::new();
    let place = session(&world, 1, "2026-01-01T00:00:00.000Z", "words");
    let before = tree(&world.home.projects_dir());
    std::os::unix::fs::symlink("/nowhere", place.dir().join("link")).unwrap();
    assert!(matches!(archive_session(&world.home, &place, now()), Err(ArchiveError::Disk { .. })));
    fs::remove_file(place.dir().join("link")).unwrap();
    assert_eq!(tree(&world.home.projects_dir()), before);
    assert!(archived_sessions(&world.home).unwrap().is_empty());

    archive_session(&world.home, &place, now()).unwrap();
    let other = session(&world, 1, "2026-02-01T00:00:00.000Z", "others");
    let kept = tree(&world.home.projects_dir());
    assert!(matches!(unarchive_session(&world.home, place.id(), now()), Err(ArchiveError::Exists { .. })));
    assert_eq!(tree(&world.home.projects_dir()), kept);
    fs::remove_file(other.file()).unwrap();
    fs::remove_dir_all(other.dir()).unwrap();
    assert_eq!(unarchive_session(&world.home, place.id(), now()).unwrap(), place);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// A damaged archive is noticed before anything is written.
    #[test]
    fn damaged_archive_is_detected(at in 0.0_f64..1.0, flip in 1_u8..=255) {
        let world = World::new();
        let place = session(&world, 1, "2026-01-01T00:00:00.000Z", "words and more words");
        let before = tree(&world.home.projects_dir());
        let dir = archive_session(&world.home, &place, now()).unwrap();
        let pack = dir.join("0.gz");
        let mut bytes = fs::read(&pack).unwrap();
        let place_of_damage = ((bytes.len() - 1) as f64 * at) as usize;
        bytes[place_of_damage] ^= flip;
        fs::write(&pack, bytes).unwrap();
        // What is not checked by the format (its time, its flags) may change without harm.
        match unarchive_session(&world.home, place.id(), now()) {
            Ok(_) => prop_assert_eq!(tree(&world.home.projects_dir()), before),
            Err(_) => prop_assert!(tree(&world.home.projects_dir()).is_empty()),
        }
    }
}
