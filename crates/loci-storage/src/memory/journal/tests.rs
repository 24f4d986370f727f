use std::fs;

use super::*;
use proptest::prelude::*;

struct World {
    root: tempfile::TempDir,
    env: Env,
    journal: MemoryJournal,
}

fn world() -> World {
    let root = tempfile::tempdir().unwrap();
    let env = Env::for_test(root.path(), root.path());
    let home = ConfigHome::from_env(&env);
    let journal = MemoryJournal::new(&home, &root.path().join("m"));
    World { root, env, journal }
}

fn request(act: ChangeKind) -> ChangeRequest {
    ChangeRequest { act, by: Author::Person, session: Some("s1".to_owned()), message: None }
}

fn some(text: &str) -> Option<MemoryContent> {
    Some(text.into())
}

impl World {
    fn write(&self, file: &str, before: Option<&str>, after: Option<&str>) -> Result<Change, MemoryError> {
        self.change(file, before.map(Into::into), after.map(Into::into))
    }

    fn change(
        &self,
        file: &str,
        before: Option<MemoryContent>,
        after: Option<MemoryContent>,
    ) -> Result<Change, MemoryError> {
        let edit = Edit::memory(file, before, after);
        self.journal.apply(&self.env, &request(ChangeKind::Edit), vec![edit])
    }

    fn read(&self, file: &str) -> Option<MemoryContent> {
        self.journal.content(MemoryArea::Memory, file).unwrap()
    }
}

/// Invariant 7 of `docs/design/memory.md`.
#[test]
fn every_change_and_every_undo_can_be_undone() {
    let world = world();
    world.write("a.md", None, Some("one")).unwrap();
    world.write("a.md", Some("one"), Some("two")).unwrap();
    let gone = world.write("a.md", Some("two"), None).unwrap();
    assert_eq!(world.read("a.md"), None);
    let back = world.journal.undo(&world.env, gone.id).unwrap();
    assert_eq!(world.read("a.md"), some("two"));
    world.journal.undo(&world.env, back.id).unwrap();
    assert_eq!(world.read("a.md"), None);
    assert!(matches!(world.journal.undo(&world.env, gone.id), Err(MemoryError::Undone(3, 4))));
    assert!(matches!(world.journal.undo(&world.env, 99), Err(MemoryError::NoChange(99))));
    let ids: Vec<u64> = world.journal.changes().unwrap().iter().map(|change| change.id).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5]);
}

/// Invariant 6 of `docs/design/memory.md`.
#[test]
fn change_conflicts_with_an_edit_by_hand() {
    let world = world();
    let made = world.write("a.md", None, Some("ours")).unwrap();
    fs::write(world.root.path().join("m/a.md"), "by hand").unwrap();
    for result in [world.write("a.md", Some("ours"), Some("new")), world.journal.undo(&world.env, made.id)] {
        assert!(matches!(result, Err(MemoryError::Conflict { file }) if file == "a.md"));
        assert_eq!(world.read("a.md"), some("by hand"));
    }
    assert!(world.write("a.md", None, Some("new")).is_err(), "nor is a file that has appeared");
    // Of several files none is changed when one cannot be.
    let edits = vec![Edit::memory("b.md", None, some("b")), Edit::memory("a.md", some("ours"), some("new"))];
    assert!(world.journal.apply(&world.env, &request(ChangeKind::Accept), edits).is_err());
    assert_eq!(world.read("b.md"), None);
    assert_eq!(world.journal.changes().unwrap().len(), 1, "and nothing is recorded");
}

/// Invariant 7 of `docs/design/memory.md`.
#[test]
fn change_interrupted_by_a_crash_is_finished() {
    let world = world();
    world.write("a.md", None, Some("one")).unwrap();
    world.write("b.md", None, Some("b")).unwrap();
    // As if the process had died after the journal, with one file of two written.
    let edits = vec![Edit::memory("a.md", some("one"), some("two")), Edit::memory("b.md", some("b"), None)];
    let change = world.journal.numbered(
        &world.env,
        &request(ChangeKind::Edit),
        edits,
        None,
        &world.journal.changes().unwrap(),
    );
    world.journal.append(&change).unwrap();
    fs::write(world.root.path().join("m/a.md"), "two").unwrap();
    world.write("c.md", None, Some("next")).unwrap();
    assert_eq!((world.read("a.md"), world.read("b.md")), (some("two"), None));
    world.journal.undo(&world.env, change.id).unwrap();
    assert_eq!((world.read("a.md"), world.read("b.md")), (some("one"), some("b")));
}

/// Whatever step of an acceptance a crash came after, it is whole afterwards, and can be taken back.
/// Invariant 7 of `docs/design/memory.md`.
#[test]
fn acceptance_killed_at_any_step_is_whole() {
    for n_done in 0..=3 {
        let world = world();
        world.write("MEMORY.md", None, Some("- [z](z.md): z\n")).unwrap();
        let proposed = vec![Edit::pending("a.md", None, some("new"))];
        world.journal.apply(&world.env, &request(ChangeKind::Propose), proposed).unwrap();
        let edits = vec![
            Edit::memory("a.md", None, some("new")),
            Edit::memory("MEMORY.md", some("- [z](z.md): z\n"), some("- [z](z.md): z\n- [a](a.md): a\n")),
            Edit::pending("a.md", some("new"), None),
        ];
        let changes = world.journal.changes().unwrap();
        let change = world.journal.numbered(&world.env, &request(ChangeKind::Accept), edits, None, &changes);
        world.journal.append(&change).unwrap();
        let part = Change { files: change.files[..n_done].to_vec(), ..change.clone() };
        world.journal.carry_out(&part).unwrap();
        world.write("other.md", None, Some("next")).unwrap();
        assert_eq!((world.read("a.md"), world.journal.pending().len()), (some("new"), 0), "after {n_done}");
        assert_eq!(world.read("MEMORY.md").unwrap().to_text_lossy().lines().count(), 2, "after {n_done}");
        world.journal.undo(&world.env, change.id).unwrap();
        assert_eq!((world.read("a.md"), world.journal.pending().len()), (None, 1), "after {n_done}");
        assert_eq!(world.read("MEMORY.md"), some("- [z](z.md): z\n"), "after {n_done}");
    }
}

/// A disk that takes the journal's line and nothing more: the change is not lost, and is made once there is room.
/// Invariant 7 of `docs/design/memory.md`.
#[test]
fn change_on_a_full_disk_is_finished_by_the_next() {
    let world = world();
    let dir = world.root.path().join("m");
    // Nothing can be made there, and nothing is.
    std::os::unix::fs::symlink(world.root.path().join("nowhere"), &dir).unwrap();
    for _ in 0..2 {
        assert!(matches!(world.write("a.md", None, Some("one")), Err(MemoryError::Write { .. })));
    }
    assert_eq!(world.journal.changes().unwrap().len(), 1, "no second is begun before the first is made");
    fs::remove_file(&dir).unwrap();
    world.write("b.md", None, Some("two")).unwrap();
    assert_eq!((world.read("a.md"), world.read("b.md")), (some("one"), some("two")));
    world.journal.undo(&world.env, 1).unwrap();
    assert_eq!(world.read("a.md"), None);
}

/// Invariant 6 of `docs/design/memory.md`. Files by other programs may be in any encoding.
#[test]
fn undo_restores_binary_memory_byte_for_byte() {
    let world = world();
    let path = world.root.path().join("m/a.md");
    let latin = || Some(MemoryContent::from(b"caf\xe9\r\n".to_vec()));
    world.write("a.md", None, Some("caf\u{fffd}\r\n")).unwrap();
    fs::write(&path, b"caf\xe9\r\n").unwrap();
    let alike = world.write("a.md", Some("caf\u{fffd}\r\n"), Some("new"));
    assert!(matches!(alike, Err(MemoryError::Conflict { .. })), "what is shown alike is not the same");
    let replaced = world.change("a.md", latin(), some("new")).unwrap();
    world.journal.undo(&world.env, replaced.id).unwrap();
    let gone = world.change("a.md", latin(), None).unwrap();
    world.journal.undo(&world.env, gone.id).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"caf\xe9\r\n");
    assert_eq!(
        world.journal.text(MemoryArea::Memory, "a.md").unwrap().unwrap(),
        "caf\u{fffd}\r\n",
        "for people"
    );
    // What a tool has made is taken back likewise, its stamp with it.
    fs::write(&path, b"by a tool").unwrap();
    let edit = Edit::memory("a.md", latin(), some("by a tool, stamped"));
    let made = world
        .journal
        .record(&world.env, &request(ChangeKind::Write), vec![(edit, some("by a tool"))])
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"by a tool, stamped");
    world.journal.undo(&world.env, made.id).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"caf\xe9\r\n");
    // Finishing what a crash cut short does not take it for what it looks like.
    let edits = vec![Edit::memory("a.md", some("caf\u{fffd}\r\n"), None)];
    let change = world.journal.numbered(
        &world.env,
        &request(ChangeKind::Edit),
        edits,
        None,
        &world.journal.changes().unwrap(),
    );
    world.journal.append(&change).unwrap();
    world.write("b.md", None, Some("next")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"caf\xe9\r\n");
}

/// Invariant 7 of `docs/design/memory.md`.
#[test]
fn torn_journal_line_costs_only_itself() {
    let world = world();
    world.write("a.md", None, Some("one")).unwrap();
    let journal = world.journal.journal_file();
    let whole = fs::read(&journal).unwrap();
    for n in 1..whole.len() - 1 {
        fs::write(&journal, &whole[..n]).unwrap();
        fs::remove_file(world.journal.mark_file()).ok();
        let file = format!("x{n}.md");
        world.write(&file, None, Some("x")).unwrap();
        assert_eq!(world.journal.changes().unwrap().len(), 1, "cut after {n}");
        assert_eq!(world.read(&file), some("x"));
    }
}

/// Invariant 11 of `docs/design/memory.md`.
#[test]
fn a_change_in_the_archive_is_taken_back_like_any_other() {
    let world = world();
    world.write("a.md", None, Some("old")).unwrap();
    let large = "x".repeat(900 * 1024);
    for n in 0..5 {
        world.write(&format!("{n}.md"), None, Some(&large)).unwrap();
    }
    assert!(world.journal.archive().exists());
    assert!(world.journal.recent_changes().unwrap().iter().all(|change| change.id > 1));
    assert_eq!(world.journal.changes().unwrap().len(), 6);
    let back = world.journal.undo(&world.env, 1).unwrap();
    assert_eq!((back.id, world.read("a.md")), (7, None));
    assert!(matches!(world.journal.undo(&world.env, 1), Err(MemoryError::Undone(1, 7))));
    assert!(matches!(world.journal.undo(&world.env, 99), Err(MemoryError::NoChange(99))));
    assert_eq!(world.write("b.md", None, Some("b")).unwrap().id, 8, "and counting goes on");
}

#[test]
fn proposals_lie_apart_and_move_over_in_one_change() {
    let world = world();
    let proposed = vec![Edit::pending("a.md", None, some("new"))];
    world.journal.apply(&world.env, &request(ChangeKind::Propose), proposed).unwrap();
    assert_eq!(world.journal.pending().len(), 1);
    assert_eq!(world.read("a.md"), None);
    let edits = vec![
        Edit::memory("a.md", None, some("new")),
        Edit::memory("MEMORY.md", None, some("- [a](a.md)\n")),
        Edit::pending("a.md", some("new"), None),
    ];
    let accepted = world.journal.apply(&world.env, &request(ChangeKind::Accept), edits).unwrap();
    assert_eq!((world.journal.pending().len(), world.read("a.md")), (0, some("new")));
    world.journal.undo(&world.env, accepted.id).unwrap();
    assert_eq!((world.journal.pending().len(), world.read("a.md"), world.read("MEMORY.md")), (1, None, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Taking every change back, newest first, leaves what was there at the beginning.
    /// Invariant 7 of `docs/design/memory.md`.
    #[test]
    fn undoing_all_changes_restores_the_beginning(steps in proptest::collection::vec((0..3usize, proptest::option::of(proptest::collection::vec(any::<u8>(), 0..5))), 1..12)) {
        let world = world();
        let mut made = Vec::new();
        for (n, after) in steps {
            let file = ["a.md", "b.md", "logs/c.md"][n];
            let (before, after) = (world.read(file), after.map(MemoryContent::from));
            if before != after {
                made.push(world.change(file, before, after).unwrap().id);
            }
        }
        for id in made.into_iter().rev() {
            world.journal.undo(&world.env, id).unwrap();
        }
        for file in ["a.md", "b.md", "logs/c.md"] {
            prop_assert_eq!(world.read(file), None);
        }
    }
}
