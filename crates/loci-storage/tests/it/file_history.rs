//! File history in the shared format, as a running session uses it.

use std::fs;
use std::path::Path;

use loci_core::file_history::{Snapshot, snapshots_of};
use loci_core::ids::{EntryId, SessionId};
use loci_stdx::Env;
use loci_storage::history::FileHistory;
use loci_storage::layout::ConfigHome;

struct Scene {
    root: tempfile::TempDir,
    home: ConfigHome,
    id: SessionId,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("p")).unwrap();
        let home = ConfigHome::from_env(&Env::for_test(root.path(), root.path().join("p")));
        Self { root, home, id: SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap() }
    }

    fn cwd(&self) -> std::path::PathBuf {
        self.root.path().join("p")
    }

    fn history(&self, known: Vec<Snapshot>) -> FileHistory {
        FileHistory::new(&self.home, &self.id, &self.cwd(), known)
    }

    fn names(&self) -> Vec<String> {
        let Ok(dir) = fs::read_dir(self.home.file_history_dir(&self.id)) else { return Vec::new() };
        let mut names: Vec<String> =
            dir.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn prompt(history: &mut FileHistory, n: usize) -> Snapshot {
    let (entry, problems) = history.begin_prompt(&EntryId::new(format!("u-{n}")), &format!("t-{n}"));
    assert!(problems.is_empty(), "{problems:?}");
    entry.snapshot
}

fn version(snapshot: &Snapshot, key: &str) -> (u64, bool) {
    let backup = snapshot.find(key).unwrap();
    (backup.version, backup.file_name.is_some())
}

/// Invariant 2 of `docs/design/file-history.md`.
#[test]
fn backup_version_grows_only_with_changes() {
    let scene = Scene::new();
    let file = scene.cwd().join("a.txt");
    let mut history = scene.history(Vec::new());
    assert_eq!(history.track(&file, "t").unwrap(), None, "no prompt, nothing to belong to");
    prompt(&mut history, 1);
    assert_eq!(version(&history.track(&file, "t").unwrap().unwrap(), "a.txt"), (1, false));
    assert_eq!(history.track(&file, "t").unwrap(), None, "tracked already");
    fs::write(&file, "one").unwrap();
    assert_eq!(version(&prompt(&mut history, 2), "a.txt"), (2, true));
    let same = prompt(&mut history, 3);
    assert_eq!((version(&same, "a.txt"), same.find("a.txt").unwrap().time.as_str()), ((2, true), "t-2"));
    fs::remove_file(&file).unwrap();
    assert_eq!(version(&prompt(&mut history, 4), "a.txt"), (3, false));
    fs::write(&file, "two").unwrap();
    let last = prompt(&mut history, 5);
    assert_eq!(version(&last, "a.txt"), (4, true));
    // Another process goes on from what the transcript says.
    fs::write(&file, "three!").unwrap();
    assert_eq!(version(&prompt(&mut scene.history(vec![last]), 6), "a.txt"), (5, true));
    assert_eq!(scene.names().len(), 3);
}

#[test]
fn the_oldest_snapshots_go_and_first_versions_stay() {
    let scene = Scene::new();
    let file = scene.cwd().join("a.txt");
    let mut history = scene.history(Vec::new());
    fs::write(&file, "first").unwrap();
    prompt(&mut history, 0);
    history.track(&file, "t").unwrap();
    for n in 1..=110 {
        fs::write(&file, "x".repeat(n)).unwrap();
        prompt(&mut history, n);
    }
    let names = scene.names();
    assert_eq!(names.len(), 101, "the last hundred versions and the first");
    assert!(names.iter().any(|name| name.ends_with("@v1")));
    assert!(
        !names.iter().any(|name| name.ends_with("@v2")) && names.iter().any(|name| name.ends_with("@v111"))
    );
}

#[test]
fn file_history_fixture_is_read() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions/file_history.jsonl");
    let entries = loci_storage::sessions::load_transcript(&fixture).unwrap().entries;
    let snapshots = snapshots_of(&entries);
    let told: Vec<Vec<(&str, u64)>> = snapshots
        .iter()
        .map(|snapshot| snapshot.backups.iter().map(|(key, backup)| (key.as_str(), backup.version)).collect())
        .collect();
    assert_eq!(told, [vec![("code.txt", 1), ("made.txt", 1)], vec![("made.txt", 2), ("code.txt", 2)]]);
}
