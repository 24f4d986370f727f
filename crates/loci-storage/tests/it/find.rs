//! Finding sessions by directory, id and path.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use loci_storage::{FindError, by_id, newest_here, resolve};

use crate::support::{World, session_id, user};

/// Puts a session into the directory of `cwd`, written `age` minutes ago in `recorded`.
fn session(world: &World, cwd: &Path, recorded: &Path, n: u32, age: u64) -> PathBuf {
    let file = world.home.session(cwd, &session_id(n)).file().to_owned();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("{{\"type\":\"mode\"}}\n{}\n", user("u1", recorded).line())).unwrap();
    aged(&file, age);
    file
}

fn aged(file: &Path, minutes: u64) {
    let modified = SystemTime::now() - Duration::from_secs(minutes * 60);
    File::options().append(true).open(file).unwrap().set_modified(modified).unwrap();
}

#[test]
fn the_newest_session_of_the_directory_is_continued() {
    let world = World::new();
    let cwd = world.cwd();
    session(&world, cwd, cwd, 1, 30);
    let newest = session(&world, cwd, cwd, 2, 10);
    session(&world, cwd, cwd, 3, 20);
    let found = newest_here(&world.home, cwd).unwrap();
    assert_eq!((found.file(), found.id()), (newest.as_path(), &session_id(2)));
}

#[test]
fn a_directory_with_the_same_slug_is_another_one() {
    let world = World::new();
    let (dotted, dashed) = (world.env.home.join("a.b"), world.env.home.join("a-b"));
    assert_eq!(world.home.project_dir(&dotted), world.home.project_dir(&dashed));
    let ours = session(&world, &dotted, &dotted, 1, 30);
    session(&world, &dashed, &dashed, 2, 10);
    assert_eq!(newest_here(&world.home, &dotted).unwrap().file(), ours);
}

#[test]
fn files_in_which_nothing_was_said_are_no_sessions() {
    let world = World::new();
    let cwd = world.cwd();
    let empty = session(&world, cwd, cwd, 1, 0);
    fs::write(&empty, "{\"type\":\"mode\"}\n").unwrap();
    fs::write(empty.with_file_name("notes.jsonl"), user("u1", cwd).line()).unwrap();
    let error = newest_here(&world.home, cwd).unwrap_err();
    assert_eq!(error.to_string(), "No conversation found to continue");
    assert!(error.hint().unwrap().contains(cwd.to_str().unwrap()));
    assert!(matches!(by_id(&world.home, cwd, &session_id(1)), Err(FindError::NoSuchId { .. })));
}

#[test]
fn nothing_is_found_before_the_first_session() {
    let world = World::new();
    assert!(matches!(newest_here(&world.home, world.cwd()), Err(FindError::NoneHere { .. })));
    let error = by_id(&world.home, world.cwd(), &session_id(1)).unwrap_err();
    assert_eq!(error.to_string(), format!("No conversation found with session ID: {}", session_id(1)));
}

#[test]
fn an_id_is_looked_up_here_first_and_then_everywhere() {
    let world = World::new();
    let (here, there, third) = (world.cwd(), world.env.home.join("other"), world.env.home.join("third"));
    let elsewhere = session(&world, &there, &there, 1, 0);
    assert_eq!(by_id(&world.home, here, &session_id(1)).unwrap().file(), elsewhere);
    session(&world, &third, &third, 1, 0);
    let error = by_id(&world.home, here, &session_id(1)).unwrap_err();
    assert!(matches!(&error, FindError::Ambiguous { files, .. } if files.len() == 2), "{error}");
    assert!(error.hint().unwrap().contains(elsewhere.to_str().unwrap()));
    let ours = session(&world, here, here, 1, 0);
    assert_eq!(by_id(&world.home, here, &session_id(1)).unwrap().file(), ours);
}

#[test]
fn a_person_may_name_an_id_or_a_file() {
    let world = World::new();
    let cwd = world.cwd();
    let file = session(&world, cwd, cwd, 1, 0);
    let upper = session_id(1).as_str().to_uppercase();
    assert_eq!(resolve(&world.home, cwd, &upper).unwrap().file(), file);
    assert_eq!(resolve(&world.home, Path::new("/"), file.to_str().unwrap()).unwrap().id(), &session_id(1));
    assert!(matches!(resolve(&world.home, cwd, "a title"), Err(FindError::NoSuchId { .. })));
    assert!(matches!(resolve(&world.home, cwd, "none.jsonl"), Err(FindError::Read { .. })));
    let stray = world.write("project/stray.jsonl", "{\"type\":\"mode\"}\n");
    assert!(matches!(resolve(&world.home, cwd, stray.to_str().unwrap()), Err(FindError::NotASession { .. })));
}

#[test]
fn a_copy_under_another_name_keeps_the_recorded_id() {
    let world = World::new();
    let line = user("u1", world.cwd())
        .line()
        .replace(r#""sessionId":"s""#, &format!(r#""sessionId":"{}""#, session_id(7)));
    let copy = world.write("project/copy.jsonl", line);
    let found = resolve(&world.home, world.cwd(), "copy.jsonl").unwrap();
    assert_eq!((found.file(), found.id()), (copy.as_path(), &session_id(7)));
}

#[test]
fn long_paths_are_found_under_any_hash() {
    let world = World::new();
    let long = PathBuf::from(format!("/{}", "d".repeat(250)));
    let file = session(&world, &long, &long, 1, 0);
    let dir = file.parent().unwrap();
    let other_hash =
        dir.with_file_name(format!("{}-other", &dir.file_name().unwrap().to_str().unwrap()[..200]));
    fs::rename(dir, &other_hash).unwrap();
    assert_eq!(newest_here(&world.home, &long).unwrap().file().parent().unwrap(), other_hash);
    let neighbour = PathBuf::from(format!("/{}", "d".repeat(251)));
    assert!(newest_here(&world.home, &neighbour).is_err());
}
