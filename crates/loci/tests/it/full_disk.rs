//! A disk that is full, read-only or gone while a session runs: the turn goes on, the user is told once, and
//! what could not be written is written as soon as it can be.
//!
//! The disk is a real one: a small tmpfs over the config home, in a mount namespace of the program's own, which
//! the test reaches through `/proc`. Where such a namespace may not be made, the tests say so and do nothing.

use crate::support::{World, assert_calls_answered, is_result, print, stream, user};
use loci_testkit::{Binary, Session, Step};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long to wait for something to be saved.
const PATIENCE: Duration = Duration::from_secs(30);

/// A run of loci whose config home is a disk of 256 KiB.
struct Run {
    world: World,
    session: Session,
}

impl Run {
    /// Starts it with a disk mounted so, unless this machine does not let us mount.
    #[expect(clippy::print_stdout, reason = "a test that does nothing says why")]
    async fn start(options: &str, steps: Vec<Step>) -> Option<Self> {
        if !may_mount() {
            println!("skipped: no mount namespace can be made here");
            return None;
        }
        let world = World::new(steps).await;
        let mount = r#"mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@""#;
        let loci = stream(["--allowedTools", "Bash,Edit(ran.log)"]);
        let binary = Binary::new("unshare")
            .args(["--mount", "--map-root-user", "sh", "-c", mount, "sh", options])
            .arg(world.home.config_home().display().to_string())
            .args(loci.command_line());
        let session = world.start(&binary);
        Some(Self { world, session })
    }

    /// Says a prompt and waits for its answer.
    fn send_prompt(&mut self, prompt: &str) -> Value {
        self.session.write_json(&user(prompt));
        self.session.wait_for_json(is_result)["result"].clone()
    }

    /// The config home as the program sees it.
    fn config_home(&self) -> PathBuf {
        let path = self.world.home.config_home();
        Path::new(&format!("/proc/{}/root", self.session.id())).join(path.strip_prefix("/").unwrap())
    }

    /// Leaves no room on the disk; what is there stays.
    fn fill(&self) {
        let ballast = self.config_home().join("ballast");
        for size in [64 * 1024, 4 * 1024, 1] {
            for n in 0..100 {
                let file = ballast.with_extension(format!("{size}-{n}"));
                if fs::write(&file, vec![b'x'; size]).is_err() {
                    break;
                }
            }
        }
        assert!(fs::write(ballast, [b'x'; 4096]).is_err(), "the disk is full");
    }

    fn make_room(&self) {
        for entry in fs::read_dir(self.config_home()).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_str().unwrap().starts_with("ballast") {
                fs::remove_file(path).unwrap();
            }
        }
    }

    /// Mounts the disk again with this option, from inside.
    fn remount(&self, option: &str) {
        let id = self.session.id().to_string();
        let status = Command::new("nsenter")
            .args(["--user", "--preserve-credentials", "--mount", "--target", &id])
            .args(["mount", "-o", &format!("remount,{option}")])
            .arg(self.world.home.config_home())
            .status();
        assert!(status.unwrap().success());
    }

    /// Waits until the session file holds so many prompts, and returns its entries.
    fn saved(&self, n_prompts: usize) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let entries = self.entries();
            let prompts = entries.iter().filter(|entry| entry["promptSource"] == "sdk").count();
            if prompts >= n_prompts && entries.last().is_some_and(|entry| entry["type"] == "last-prompt") {
                return entries;
            }
            assert!(Instant::now() < deadline, "only {prompts} prompts are saved");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Every entry of the only session, each once: the last of those with one uuid counts.
    fn entries(&self) -> Vec<Value> {
        let Some(file) = session_files(&self.config_home().join("projects")).pop() else { return Vec::new() };
        let text = fs::read_to_string(file).unwrap_or_default();
        let entries: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let is_last = |(n, entry): &(usize, &Value)| {
            entry["uuid"].is_null() || !entries[n + 1..].iter().any(|later| later["uuid"] == entry["uuid"])
        };
        entries.iter().enumerate().filter(is_last).map(|(_, entry)| entry.clone()).collect()
    }

    /// Ends the run and returns what it said to people.
    fn finish(self) -> String {
        let output = self.session.finish();
        assert_eq!(output.code, Some(0), "{output:?}");
        self.world.normaliser().text(&output.stderr)
    }
}

fn session_files(projects: &Path) -> Vec<PathBuf> {
    let Ok(dirs) = fs::read_dir(projects) else { return Vec::new() };
    let files = dirs.filter_map(|dir| fs::read_dir(dir.ok()?.path()).ok()).flatten();
    files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect()
}

fn may_mount() -> bool {
    let script = "mount -t tmpfs none /mnt";
    let unshare = Command::new("unshare").args(["--mount", "--map-root-user", "sh", "-c", script]).output();
    unshare.is_ok_and(|output| output.status.success())
}

fn working() -> Vec<Step> {
    let call = || Step::call("Bash", json!({"command": "echo out; echo ran >> ran.log"}));
    vec![Step::text("first"), call(), Step::text("second"), call(), Step::text("third"), Step::text("fourth")]
}

/// Invariant 9 of `docs/design/session-log.md`.
#[tokio::test]
async fn full_disk_is_reported_and_the_turn_goes_on() {
    let Some(mut run) = Run::start("size=256k", working()).await else { return };
    assert_eq!(run.send_prompt("one"), "first");
    run.fill();
    assert_eq!((run.send_prompt("two"), run.send_prompt("three")), (json!("second"), json!("third")));
    let n_before = run.entries().iter().filter(|entry| entry["promptSource"] == "sdk").count();
    assert!(n_before < 3, "the disk was full");
    run.make_room();
    // Nobody says anything; what waited is written all the same.
    let entries = run.saved(3);
    assert_calls_answered(&entries);
    assert_eq!(run.send_prompt("four"), "fourth");
    run.saved(4);
    assert_eq!(run.world.home.read("ran.log"), "ran\nran\n", "nothing is run twice");
    let said = run.finish();
    let lines: Vec<&str> = said.lines().collect();
    let [began, hint, ended] = lines.as_slice() else { panic!("{said}") };
    assert!(began.starts_with("Failed to save the session (No space left on device"), "{said}");
    assert!(hint.starts_with("Free some space"), "{said}");
    assert_eq!(*ended, "The session is being saved again");
}

/// The disk is full when a conversation is compacted: it goes on from the summary, and the boundary is written whole, once, when
/// there is room.
/// Invariant 27 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_boundary_that_finds_the_disk_full_is_written_later() {
    // Longer than what is left of the last page of the file.
    let summary = format!("<summary>The ports were compared. {}</summary>", "More words. ".repeat(2_000));
    let steps = vec![
        Step::text("first"),
        Step::text("second"),
        Step::text(summary),
        Step::text("third"),
        Step::text("fourth"),
    ];
    let Some(mut run) = Run::start("size=256k", steps).await else { return };
    run.send_prompt("The falcon port is 48213.");
    run.send_prompt("two");
    run.fill();
    assert_eq!(run.send_prompt("/compact"), "The conversation goes on from its summary.");
    assert_eq!(run.send_prompt("three"), "third");
    let sent = run.world.last_request().json["messages"].to_string();
    assert!(sent.contains("The ports were compared.") && !sent.contains("48213") && sent.contains("three"));
    let is_summary = |entry: &&Value| entry["isCompactSummary"] == true;
    assert_eq!(run.entries().iter().filter(is_summary).count(), 0, "the disk was full");
    run.make_room();
    let entries = run.saved(3);
    let at = |is_it: &dyn Fn(&Value) -> bool| {
        let found: Vec<usize> = (0..entries.len()).filter(|idx| is_it(&entries[*idx])).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]
    };
    let boundary = at(&|entry| entry["subtype"] == "compact_boundary");
    let summary = at(&|entry| entry["isCompactSummary"] == true);
    assert_eq!(entries[summary]["parentUuid"], entries[boundary]["uuid"]);
    assert!(boundary < summary && summary < at(&|entry| entry["message"]["content"] == "three"));
    assert_eq!(run.send_prompt("four"), "fourth");
    let said = run.finish();
    assert!(said.contains("Failed to save the session (No space left on device"), "{said}");
    assert!(said.ends_with("The session is being saved again\n"), "{said}");
}

/// Invariant 9 of `docs/design/session-log.md`.
#[tokio::test]
async fn read_only_home_is_reported_and_the_turn_goes_on() {
    let Some(mut run) = Run::start("size=256k,ro", working()).await else { return };
    run.session.write_json(&user("one"));
    let result = run.session.wait_for_json(is_result);
    assert_eq!((&result["result"], &result["loci"]["session_saved"]), (&json!("first"), &json!(false)));
    for (prompt, answer) in [("two", "second"), ("three", "third")] {
        assert_eq!(run.send_prompt(prompt), answer);
    }
    assert_eq!(run.entries(), Vec::<Value>::new());
    run.remount("rw");
    assert_calls_answered(&run.saved(3));
    let said = run.finish();
    assert!(said.starts_with("Failed to save the session (Read-only file system"), "{said}");
    assert!(said.ends_with("\nThe session is being saved again\n") && said.lines().count() == 3, "{said}");
}

/// Lines that find no place at all are lost, and the exit code says so; those that find another do not count as lost.
/// Invariant 9 of `docs/design/session-log.md`.
#[tokio::test]
async fn lines_that_could_be_written_nowhere_fail_the_run() {
    for (has_tmp, code) in [(true, 0), (false, 1)] {
        let world = World::new([Step::text("answer")]).await;
        // A file in the place of the directory that sessions lie in, and in the place of the temporary one.
        world.home.write_config("projects", "in the way");
        let tmp = world.home.project().with_file_name("tmp");
        fs::create_dir_all(&tmp).unwrap();
        let tmp = if has_tmp { tmp } else { world.home.write("no-directory", "") };
        let binary =
            print(["--output-format", "json", "hi"]).env("CLAUDE_CODE_TMPDIR", tmp.display().to_string());
        let output = binary.run(&world.home, world.model.base_url(), "");
        assert_eq!(output.code, Some(code), "{output:?}");
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((&result["result"], &result["loci"]["session_saved"]), (&json!("answer"), &json!(false)));
        let says =
            if has_tmp { "What could not be saved is kept in" } else { "What could not be saved is lost" };
        assert!(output.stderr.contains(says), "{output:?}");
    }
}

#[tokio::test]
async fn saved_session_is_not_called_unsaved() {
    let world = World::new([Step::text("answer")]).await;
    let output = world.print(["--output-format", "json", "hi"]);
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, &result["loci"]["session_saved"]), (Some(0), &Value::Null), "{output:?}");
}

/// Invariant 11 of `docs/design/session-log.md`.
#[tokio::test]
async fn a_config_home_that_vanishes_is_made_anew_with_the_whole_session() {
    let world = World::new(working()).await;
    let mut session = world.start(&stream(["--allowedTools", "Bash,Edit(ran.log)"]));
    for (prompt, answer) in [("one", "first"), ("two", "second"), ("three", "third")] {
        session.write_json(&user(prompt));
        assert_eq!(session.wait_for_json(is_result)["result"], answer);
        if prompt != "three" {
            fs::remove_dir_all(world.home.config_home()).unwrap();
        }
    }
    let output = session.finish();
    assert_eq!(output.code, Some(0));
    let prompts = world.session().iter().filter(|entry| entry["promptSource"] == "sdk").count();
    assert_eq!(prompts, 3);
    let said = world.normaliser().text(&output.stderr);
    let line = "The session file was removed by another program and has been written again: \
                `<home>/.claude/projects/<project>/<uuid-1>.jsonl`\n";
    assert_eq!(said, line.repeat(2), "once for each time");
}
