//! What the disk never took: kept elsewhere at the end, and brought back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loci_storage::layout::{ConfigHome, SessionPlace};
use loci_storage::sessions::{Lease, LogWarning, SessionLog, load_transcript, recover_unsaved};

use crate::support::{World, session_id, user};

/// A home whose temporary directory is its own.
fn world() -> World {
    let mut world = World::new();
    world.env.vars = world.env.vars.with("TMPDIR", world.env.home.join("tmp").display().to_string());
    world.home = ConfigHome::from_env(&world.env);
    world
}

/// Appends entries while a file stands where the directory of projects should be.
fn close_without_a_disk(world: &World, uuids: &[&str]) -> (SessionPlace, PathBuf) {
    let place = world.home.session(world.cwd(), &session_id(1));
    world.write(".claude/projects", "in the way");
    let mut log = SessionLog::on_disk(place.file()).with_fallback(&world.home, &place);
    for uuid in uuids {
        assert!(log.append(&[&user(uuid, world.cwd())]).is_err());
    }
    assert!(log.close().is_err());
    let said = log.take_warning();
    assert!(matches!(said, Some(LogWarning::Kept { .. })), "{said:?}");
    let kept = PathBuf::from(format!("{said:?}").split('`').nth(1).unwrap());
    assert!(!log.has_unsaved());
    (place, kept)
}

fn uuids(place: &SessionPlace) -> Vec<String> {
    let entries = load_transcript(place.file()).unwrap().entries;
    entries.iter().map(|entry| entry.head().uuid.as_ref().unwrap().to_string()).collect()
}

/// Invariant 10 of `docs/design/session-log.md`.
#[test]
fn unsaved_lines_are_recovered_in_order() {
    let world = world();
    let (place, kept) = close_without_a_disk(&world, &["u1", "u2"]);
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    let (_, again) = close_without_a_disk(&world, &["u3"]);
    assert_eq!(kept, again, "a second run adds to it");
    assert_eq!(recover_unsaved(&world.home, &world.env), [], "the way is still blocked");
    fs::remove_file(world.home.projects_dir()).unwrap();
    assert_eq!(recover_unsaved(&world.home, &world.env), std::slice::from_ref(&place));
    assert_eq!(uuids(&place), ["u1", "u2", "u3"]);
    assert!(!kept.exists());
    assert_eq!(recover_unsaved(&world.home, &world.env), []);
}

#[test]
fn unsaved_lines_wait_for_the_writer_of_the_session() {
    let world = world();
    let (place, kept) = close_without_a_disk(&world, &["u1"]);
    fs::remove_file(world.home.projects_dir()).unwrap();
    let lease = Lease::acquire(&world.home, place.id(), &world.env).unwrap();
    assert_eq!(recover_unsaved(&world.home, &world.env), []);
    assert!(kept.exists());
    drop(lease);
    assert_eq!(recover_unsaved(&world.home, &world.env), [place]);
}

#[test]
fn recover_unsaved_writes_only_transcripts_of_this_home() {
    let world = world();
    let (place, kept) = close_without_a_disk(&world, &["u1"]);
    fs::remove_file(world.home.projects_dir()).unwrap();
    let line = fs::read_to_string(&kept).unwrap();
    let other = |file: &Path| line.replace(&place.file().display().to_string(), &file.display().to_string());
    let victim = world.env.home.join(".bashrc");
    let elsewhere = world.env.home.join("x/projects/y").join(place.file().file_name().unwrap());
    for text in [other(&victim), other(&elsewhere), "not JSON\n".to_owned(), String::new()] {
        fs::write(&kept, &text).unwrap();
        assert_eq!(recover_unsaved(&world.home, &world.env), [], "{text}");
        assert!(kept.exists() && !victim.exists() && !elsewhere.exists(), "{text}");
    }
}

#[test]
fn recover_unsaved_does_not_follow_symlinks() {
    let world = world();
    let (_, kept) = close_without_a_disk(&world, &["u1"]);
    fs::remove_file(world.home.projects_dir()).unwrap();
    let moved = world.env.home.join("moved");
    fs::rename(&kept, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &kept).unwrap();
    assert_eq!(recover_unsaved(&world.home, &world.env), []);
}
