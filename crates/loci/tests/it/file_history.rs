//! What files held before they were changed: kept, recorded, readable by others.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::support::{World, assert_fine, print};
use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

/// The variable by which SDKs ask for it.
const ENABLE: (&str, &str) = ("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");

/// `loci -p` that may edit, and keeps what it edits.
fn keeping<const N: usize>(args: [&str; N]) -> Binary {
    print(["--permission-mode", "acceptEdits"]).args(args).env(ENABLE.0, ENABLE.1)
}

fn write(world: &World, name: &str, content: &str) -> Step {
    Step::call("Write", json!({"file_path": world.path(name), "content": content}))
}

fn read(world: &World, name: &str) -> Step {
    Step::call("Read", json!({"file_path": world.path(name)}))
}

fn snapshots(world: &World) -> Vec<Value> {
    let entries = world.home.only_session();
    entries.into_iter().filter(|entry| entry["type"] == "file-history-snapshot").collect()
}

/// The directory of the only session's backups.
fn backups(world: &World) -> PathBuf {
    let id = world.home.sessions()[0].file_stem().unwrap().to_owned();
    world.home.config_home().join("file-history").join(id)
}

/// Says which version each file has, in short.
fn versions(snapshot: &Value) -> String {
    let tracked = snapshot["snapshot"]["trackedFileBackups"].as_object().unwrap();
    let one = |(key, backup): (&String, &Value)| {
        let is_there = if backup["backupFileName"].is_null() { "none" } else { "kept" };
        format!("{key} {is_there} v{}", backup["version"])
    };
    tracked.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A session of two prompts: the first edits `code.txt` and makes `made.txt`, the second edits `code.txt` again.
async fn two_prompts() -> World {
    let world = World::new([]).await;
    world.home.write("code.txt", "v = 1\n");
    let world = world.then([]).await;
    let script = [
        read(&world, "code.txt"),
        write(&world, "code.txt", "v = 2\n"),
        write(&world, "made.txt", "made\n"),
        Step::text("Changed."),
        write(&world, "code.txt", "v = 3\n"),
        Step::text("Changed again."),
    ];
    let world = world.then(script).await;
    assert_fine(&world.run(&keeping(["Change v to 2"])));
    assert_fine(&world.run(&keeping(["Change v to 3", "-c"])));
    world
}

/// The same scene as the reference recorded it in `file_history.jsonl`. Invariants 1 and 3 of `docs/design/file-history.md`.
#[tokio::test]
async fn snapshots_are_recorded_as_the_reference_does() {
    let world = two_prompts().await;
    let snapshots = snapshots(&world);
    let told: Vec<(bool, String)> =
        snapshots.iter().map(|it| (it["isSnapshotUpdate"] == true, versions(it))).collect();
    let expected = [
        (false, ""),
        (true, "code.txt kept v1"),
        (true, "code.txt kept v1, made.txt none v1"),
        (false, "code.txt kept v2, made.txt kept v2"),
    ];
    assert_eq!(told, expected.map(|(is_update, text)| (is_update, text.to_owned())));

    let entries = world.session();
    let prompts: Vec<&Value> = entries.iter().filter(|entry| entry["promptSource"] == "sdk").collect();
    for (snapshot, prompt) in snapshots.iter().zip([0, 0, 0, 1]) {
        assert_eq!(snapshot["snapshot"]["messageId"], prompts[prompt]["uuid"]);
        let outer = entries.iter().find(|entry| entry["uuid"] == snapshot["messageId"]).unwrap();
        let expected = if snapshot["isSnapshotUpdate"] == true { "assistant" } else { "user" };
        assert_eq!(outer["type"], expected, "{snapshot}");
    }

    let kept = |name: &str, file: &str| {
        let backup = &snapshots[3]["snapshot"]["trackedFileBackups"][name]["backupFileName"];
        assert!(backup.as_str().unwrap().ends_with(file), "{backup}");
        fs::read_to_string(backups(&world).join(backup.as_str().unwrap())).unwrap()
    };
    assert_eq!((kept("code.txt", "@v2"), kept("made.txt", "@v2")), ("v = 2\n".into(), "made\n".into()));
    assert_eq!(fs::read_dir(backups(&world)).unwrap().count(), 3, "v1 and v2 of code.txt, v2 of made.txt");
}

#[tokio::test]
async fn checkpoints_are_off_by_default() {
    for (flags, vars) in [
        (&[][..], &[][..]),
        (&["--settings", r#"{"fileCheckpointingEnabled":false}"#], &[ENABLE]),
        (&[], &[ENABLE, ("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", "1")]),
    ] {
        let world = World::new([]).await;
        let script = [write(&world, "new.txt", "x\n"), Step::text("Done.")];
        let world = world.then(script).await;
        let binary = print(["Make it", "--permission-mode", "acceptEdits"]).args(flags.iter().copied());
        let binary = vars.iter().fold(binary, |binary, (name, value)| binary.env(name, *value));
        assert_fine(&world.run(&binary));
        assert_eq!(world.home.read("new.txt"), "x\n");
        assert!(snapshots(&world).is_empty(), "{flags:?} {vars:?}");
        assert!(!world.home.config_home().join("file-history").exists());
    }
}

/// Invariant 14 of `docs/design/file-history.md`.
#[tokio::test]
async fn a_fork_shares_the_backups_and_goes_on_counting() {
    let world = two_prompts().await;
    let old = backups(&world);
    let script = [write(&world, "code.txt", "v = 4\n"), Step::text("Changed once more.")];
    let world = world.then(script).await;
    assert_fine(&world.run(&keeping(["Change v to 4", "-c", "--fork-session"])));
    let all = fs::read_dir(world.home.config_home().join("file-history")).unwrap();
    let new = all.map(|entry| entry.unwrap().path()).find(|path| *path != old).unwrap();
    let first = |dir: &PathBuf| {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    let (old_names, new_names) = (first(&old), first(&new));
    assert_eq!((old_names.len(), new_names.len()), (3, 4), "the fork kept version 3: {new_names:?}");
    for name in &old_names {
        let inode = |dir: &PathBuf| fs::metadata(dir.join(name)).unwrap().ino();
        assert_eq!(inode(&old), inode(&new), "{name} is one file under two names");
    }
    assert!(new_names.iter().any(|name| name.ends_with("@v3")));
}
