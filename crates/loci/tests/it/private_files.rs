//! Whatever loci makes in its own directory is the user's alone, one file at a time.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loci_testkit::{Binary, Step};
use serde_json::json;

use crate::support::{MODEL, World};

/// The binary as a user starts it who lets everybody read what is made.
fn openly(args: &[&str]) -> Binary {
    let script = r#"umask 000; exec "$0" "$@""#;
    Binary::new("/bin/sh").args(["-c", script, env!("CARGO_BIN_EXE_loci")]).args(args.iter().copied())
}

/// Every file and directory below a directory.
fn everything(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            everything(&entry.path(), found);
        }
    }
}

fn assert_private(dir: &Path, expected: &[&str]) {
    let mut found = Vec::new();
    everything(dir, &mut found);
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let open: Vec<(&PathBuf, u32)> =
        found.iter().map(|path| (path, mode(path))).filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:#?}");
    for name in expected {
        let is_there = |path: &&PathBuf| path.strip_prefix(dir).unwrap().to_string_lossy().contains(name);
        assert!(found.iter().any(|path| is_there(&path)), "{name} was not made: {found:#?}");
    }
}

/// As much as is worth an index.
fn long_session(world: &World) {
    let text = "words that fill a megabyte ".repeat(45_000);
    let line = json!({"parentUuid": null, "isSidechain": false, "type": "user", "uuid": "u1",
        "message": {"role": "user", "content": text}, "timestamp": "2026-01-01T00:00:00.000Z"});
    world.home.write_config("projects/-long/0a0a0a0a-0001-4000-8000-000000000001.jsonl", format!("{line}\n"));
}

/// Invariant 9 of `docs/design/doctor.md`.
#[tokio::test]
async fn all_that_loci_makes_in_its_own_directory_is_private() {
    let world = World::with_git([]).await;
    world.home.write("a.txt", "one\n");
    let bash = json!({"command": "echo two > a.txt"});
    let world = world.then([Step::call("Bash", bash), Step::text("Done."), Step::text("More.")]).await;
    let run = |args: &[&str]| {
        let output = world.run(&openly(args));
        assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
    };
    run(&[
        "-p",
        "--model",
        MODEL,
        "--permission-mode",
        "acceptEdits",
        "--allowedTools=Bash",
        "--checkpoint-files",
        "Write it.",
    ]);
    let file = world.home.sessions()[0].clone();
    let id = file.file_stem().unwrap().to_str().unwrap();
    long_session(&world);
    run(&["sessions", "search", "megabyte"]);
    run(&["sessions", "pin", id]);
    run(&["sessions", "rm", id]);
    let loci = world.home.config_home().join("loci");
    assert_private(
        &loci,
        &["index/", ".seg", "blobs/", "tree-history/", "pins.jsonl", "audit.log", "trash/"],
    );
    run(&["sessions", "rm", "--restore", id]);
    run(&["sessions", "pin", "--off", id]);
    run(&["sessions", "archive", id]);
    assert_private(&loci, &["archive/", "/0.gz", "/origin.json"]);
    run(&["sessions", "restore", id]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    run(&["-p", "--model", MODEL, "-r", id, "And more."]);
    run(&["sessions", "doctor", "--repair"]);
    assert_private(&loci, &["doctor.lock"]);
}
