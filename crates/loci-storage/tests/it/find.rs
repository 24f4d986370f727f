//! Finding sessions by directory, id and path.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use loci_storage::project::{Project, find_repository};
use loci_storage::sessions::{FindError, list_project, newest_session, resolve_session, session_by_id};

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
    let found = newest_session(&world.home, cwd).unwrap();
    assert_eq!((found.file(), found.id()), (newest.as_path(), &session_id(2)));
}

#[test]
fn a_directory_with_the_same_slug_is_another_one() {
    let world = World::new();
    let (dotted, dashed) = (world.env.home.join("a.b"), world.env.home.join("a-b"));
    assert_eq!(world.home.project_dir(&dotted), world.home.project_dir(&dashed));
    let ours = session(&world, &dotted, &dotted, 1, 30);
    session(&world, &dashed, &dashed, 2, 10);
    assert_eq!(newest_session(&world.home, &dotted).unwrap().file(), ours);
}

#[test]
fn files_in_which_nothing_was_said_are_no_sessions() {
    let world = World::new();
    let cwd = world.cwd();
    let empty = session(&world, cwd, cwd, 1, 0);
    fs::write(&empty, "{\"type\":\"mode\"}\n").unwrap();
    fs::write(empty.with_file_name("notes.jsonl"), user("u1", cwd).line()).unwrap();
    let error = newest_session(&world.home, cwd).unwrap_err();
    assert_eq!(error.to_string(), "No conversation found to continue");
    assert!(error.hint().unwrap().contains(cwd.to_str().unwrap()));
    assert!(matches!(session_by_id(&world.home, cwd, &session_id(1)), Err(FindError::NoSuchId { .. })));
}

#[test]
fn find_without_sessions_is_an_error() {
    let world = World::new();
    assert!(matches!(newest_session(&world.home, world.cwd()), Err(FindError::NoneHere { .. })));
    let error = session_by_id(&world.home, world.cwd(), &session_id(1)).unwrap_err();
    assert_eq!(error.to_string(), format!("No conversation found with session ID: {}", session_id(1)));
}

#[test]
fn session_by_id_prefers_this_directory() {
    let world = World::new();
    let (here, there, third) = (world.cwd(), world.env.home.join("other"), world.env.home.join("third"));
    let elsewhere = session(&world, &there, &there, 1, 0);
    assert_eq!(session_by_id(&world.home, here, &session_id(1)).unwrap().file(), elsewhere);
    session(&world, &third, &third, 1, 0);
    let error = session_by_id(&world.home, here, &session_id(1)).unwrap_err();
    assert!(matches!(&error, FindError::Ambiguous { candidates, .. } if candidates.len() == 2), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains(&format!("  loci -r {}  # prompt u1", elsewhere.display())), "{hint}");
    let ours = session(&world, here, here, 1, 0);
    assert_eq!(session_by_id(&world.home, here, &session_id(1)).unwrap().file(), ours);
}

#[test]
fn resolve_session_takes_an_id_or_a_file() {
    let world = World::new();
    let cwd = world.cwd();
    let file = session(&world, cwd, cwd, 1, 0);
    let upper = session_id(1).as_str().to_uppercase();
    assert_eq!(resolve_session(&world.home, cwd, &upper).unwrap().file(), file);
    assert_eq!(
        resolve_session(&world.home, Path::new("/"), file.to_str().unwrap()).unwrap().id(),
        &session_id(1)
    );
    assert!(matches!(resolve_session(&world.home, cwd, "a title"), Err(FindError::NoSuchName { .. })));
    assert!(matches!(resolve_session(&world.home, cwd, "none.jsonl"), Err(FindError::Read { .. })));
    let stray = world.write("project/stray.jsonl", "{\"type\":\"mode\"}\n");
    assert!(matches!(
        resolve_session(&world.home, cwd, stray.to_str().unwrap()),
        Err(FindError::NotASession { .. })
    ));
}

#[test]
fn a_copy_under_another_name_keeps_the_recorded_id() {
    let world = World::new();
    let line = user("u1", world.cwd())
        .line()
        .replace(r#""sessionId":"s""#, &format!(r#""sessionId":"{}""#, session_id(7)));
    let copy = world.write("project/copy.jsonl", line);
    let found = resolve_session(&world.home, world.cwd(), "copy.jsonl").unwrap();
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
    assert_eq!(newest_session(&world.home, &long).unwrap().file().parent().unwrap(), other_hash);
    let neighbour = PathBuf::from(format!("/{}", "d".repeat(251)));
    assert!(newest_session(&world.home, &neighbour).is_err());
}

/// Gives the session in `file` a title line of this kind.
fn titled(file: &Path, kind: &str, field: &str, title: &str) {
    let line = format!("{{\"type\":\"{kind}\",\"{field}\":\"{title}\",\"sessionId\":\"s\"}}\n");
    fs::OpenOptions::new().append(true).open(file).unwrap().write_all(line.as_bytes()).unwrap();
}

#[test]
fn resolve_session_takes_a_title() {
    let world = World::new();
    let cwd = world.cwd();
    let there = world.env.home.join("other");
    for (n, kind, field, title) in [
        (1, "custom-title", "customTitle", "one"),
        (2, "ai-title", "aiTitle", "two"),
        (3, "agent-name", "agentName", "three"),
    ] {
        titled(&session(&world, cwd, cwd, n, 0), kind, field, title);
        let found = resolve_session(&world.home, cwd, title).unwrap();
        assert_eq!(found.id(), &session_id(n), "{title}");
    }
    let far = session(&world, &there, &there, 4, 0);
    titled(&far, "custom-title", "customTitle", "far away");
    assert_eq!(resolve_session(&world.home, cwd, " far away ").unwrap().file(), far, "then everywhere");
    titled(&far, "custom-title", "customTitle", "one");
    assert_eq!(
        resolve_session(&world.home, cwd, "one").unwrap().id(),
        &session_id(1),
        "what is near comes first"
    );
}

#[test]
fn ambiguous_session_title_is_an_error() {
    let world = World::new();
    let cwd = world.cwd();
    for n in [1, 2] {
        titled(&session(&world, cwd, cwd, n, 0), "custom-title", "customTitle", "same");
    }
    let error = resolve_session(&world.home, cwd, "same").unwrap_err();
    let hint = error.hint().unwrap();
    for n in [1, 2] {
        assert!(hint.contains(&format!("  loci -r {}  # same", session_id(n))), "{hint}");
    }
    let error = resolve_session(&world.home, cwd, "SAM").unwrap_err();
    assert_eq!(error.to_string(), "No conversation found with this id or title: `SAM`");
    assert!(error.hint().unwrap().starts_with("Did you mean:\n  loci -r "), "{:?}", error.hint());
    let error = resolve_session(&world.home, cwd, &session_id(1).as_str()[..8]).unwrap_err();
    assert!(error.hint().unwrap().contains(session_id(1).as_str()));
    let error = resolve_session(&world.home, cwd, "nothing like it").unwrap_err();
    assert!(error.hint().unwrap().contains("sessions list"));
}

/// Class 3: a title that lies in the middle of a long file.
#[test]
fn title_in_the_middle_of_a_file_is_found() {
    let world = World::new();
    let cwd = world.cwd();
    let padding = format!("{}\n", user("u2", cwd).line()).repeat(1_000);
    for (n, name, title) in [
        (1, "hidden", "{\"type\":\"custom-title\",\"customTitle\":\"hidden\"}\n"),
        (2, "spaced", "{ \"type\" : \"custom-title\", \"customTitle\": \"spaced\" }\n"),
    ] {
        let file = session(&world, cwd, cwd, n, 0);
        for text in [&padding, title, &padding] {
            fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(text.as_bytes()).unwrap();
        }
        assert_eq!(resolve_session(&world.home, cwd, name).unwrap().file(), file);
    }
}

/// Class 4: what was touched or renamed last is not what was used last.
#[test]
fn newest_session_is_the_last_used() {
    let world = World::new();
    let cwd = world.cwd();
    let stamped = |n, age, time: &str| {
        let file = session(&world, cwd, cwd, n, 0);
        let line = user("u1", cwd).with_field("timestamp", &time.into()).unwrap();
        fs::write(&file, format!("{}\n", line.line())).unwrap();
        aged(&file, age);
        file
    };
    stamped(1, 0, "2026-01-01T00:00:00.000Z");
    let used = stamped(2, 10, "2026-01-02T00:00:00.000Z");
    stamped(3, 20, "2025-01-01T00:00:00.000Z");
    assert_eq!(newest_session(&world.home, cwd).unwrap().file(), used);
}

/// Makes a repository with a worktree by hand, as git lays them out.
fn repository(world: &World) -> (PathBuf, PathBuf) {
    let (main, tree) = (world.env.home.join("repo"), world.env.home.join("tree"));
    let administration = main.join(".git/worktrees/tree");
    fs::create_dir_all(&administration).unwrap();
    fs::create_dir_all(main.join("sub/deep")).unwrap();
    fs::create_dir_all(&tree).unwrap();
    fs::write(main.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(administration.join("gitdir"), format!("{}/.git\n", tree.display())).unwrap();
    fs::write(administration.join("commondir"), "../..\n").unwrap();
    fs::write(administration.join("HEAD"), "ref: refs/heads/tree\n").unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}\n", administration.display())).unwrap();
    (main, tree)
}

#[test]
fn a_repository_knows_its_worktrees() {
    let world = World::new();
    let (main, tree) = repository(&world);
    for dir in [main.join("sub/deep"), tree.clone()] {
        let found = find_repository(&dir).unwrap();
        assert_eq!(found.worktrees, [main.clone(), tree.clone()], "{}", dir.display());
    }
    assert_eq!(find_repository(&tree).unwrap().root, tree);
    assert_eq!(find_repository(world.cwd()), None);
}

#[test]
fn a_repository_is_one_project() {
    let world = World::new();
    let (main, tree) = repository(&world);
    let deep = main.join("sub/deep");
    let at_root = session(&world, &main, &main, 1, 30);
    titled(&at_root, "custom-title", "customTitle", "root");
    let in_tree = session(&world, &tree, &tree, 2, 5);
    titled(&in_tree, "custom-title", "customTitle", "tree");
    for dir in [&main, &deep, &tree] {
        assert_eq!(resolve_session(&world.home, dir, "root").unwrap().file(), at_root);
        assert_eq!(resolve_session(&world.home, dir, "tree").unwrap().file(), in_tree);
    }
    assert_eq!(newest_session(&world.home, &deep).unwrap().file(), at_root, "of the same working tree");
    let in_deep = session(&world, &deep, &deep, 3, 60);
    assert_eq!(newest_session(&world.home, &deep).unwrap().file(), in_deep, "this directory comes first");
    let listed = list_project(&world.home, &Project::repository(&tree)).unwrap();
    assert_eq!(listed.len(), 3);
    let elsewhere = world.env.home.join("other");
    session(&world, &elsewhere, &elsewhere, 1, 0);
    assert_eq!(
        session_by_id(&world.home, &tree, &session_id(1)).unwrap().file(),
        at_root,
        "worktrees before all"
    );
}

/// A neighbour whose name begins like ours is another project.
#[test]
fn project_with_a_longer_name_is_another_project() {
    let world = World::new();
    let (main, _) = repository(&world);
    let neighbour = world.env.home.join("repo-two");
    session(&world, &neighbour, &neighbour, 1, 0);
    assert!(list_project(&world.home, &Project::repository(&main)).unwrap().is_empty());
    assert!(newest_session(&world.home, &main).is_err());
}

/// Class 5, and a project folder that was renamed together with its directory of sessions.
#[test]
fn sessions_outlive_their_directory() {
    let world = World::new();
    let (old, new) = (world.env.home.join("old"), world.env.home.join("new"));
    let file = session(&world, &old, &old, 1, 0);
    assert_eq!(
        session_by_id(&world.home, world.cwd(), &session_id(1)).unwrap().file(),
        file,
        "the directory never was"
    );
    fs::rename(file.parent().unwrap(), world.home.project_dir(&new)).unwrap();
    let moved = world.home.session(&new, &session_id(1));
    assert_eq!(newest_session(&world.home, &new).unwrap(), moved);
    assert_eq!(list_project(&world.home, &Project::directory(&new)).unwrap().len(), 1);
}

/// Class 17: a symlinked directory is the directory it leads to.
#[cfg(unix)]
#[test]
fn a_session_of_elsewhere_that_was_last_used_here_is_continued() {
    let world = World::new();
    let (here, gone) = (world.cwd().join("here"), world.cwd().join("gone"));
    fs::create_dir_all(&here).unwrap();
    let moved = session(&world, &gone, &gone, 1, 5);
    session(&world, &gone, &gone, 2, 1);
    assert!(matches!(newest_session(&world.home, &here), Err(FindError::NoneHere { .. })));
    let mut text = fs::read_to_string(&moved).unwrap();
    text.push_str(&format!(
        "{}\n{{\"type\":\"last-prompt\",\"leafUuid\":\"u9\"}}\n",
        user("u9", &here).line()
    ));
    fs::write(&moved, text).unwrap();
    assert_eq!(newest_session(&world.home, &here).unwrap().file(), moved);
    let own = session(&world, &here, &here, 3, 9);
    assert_eq!(newest_session(&world.home, &here).unwrap().file(), own, "what began here comes first");
}

#[test]
fn a_recorded_symlink_is_followed() {
    let world = World::new();
    let (real, link) = (world.env.home.join("a.b"), world.env.home.join("a-b"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let file = session(&world, &real, &link, 1, 0);
    assert_eq!(newest_session(&world.home, &real).unwrap().file(), file);
}

/// An entry records a name that is not UTF-8 with the bytes that are none replaced.
#[cfg(target_os = "linux")]
#[test]
fn sessions_of_a_directory_that_is_not_utf8_are_found() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let dir = world.env.home.join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir_all(dir.join("sub")).unwrap();
    let recorded = PathBuf::from(dir.to_string_lossy().into_owned());
    let ours = session(&world, &dir, &recorded, 1, 30);
    assert_eq!(newest_session(&world.home, &dir).unwrap().file(), ours);
    let listed = list_project(&world.home, &Project::directory(&dir)).unwrap();
    assert_eq!(listed.len(), 1);
    let plain = world.env.home.join("caf-");
    assert!(newest_session(&world.home, &plain).is_err(), "another directory of the same slug");
}
