//! `loci sessions search` by several processes on one store, killed at work, and with somebody looking on.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loci_testkit::{Binary, Output, Step};
use serde_json::{Value, json};

use crate::support::{World, loci};

/// How many search at once.
const PROCESSES: usize = 4;
/// Enough for what was scanned to be indexed afterwards.
const BYTES: usize = 1_200_000;
/// Enough for a search to wait until it is indexed.
const INDEXED_FIRST: usize = 8_800_000;
const SESSIONS: usize = 6;

fn search(word: &str) -> Binary {
    loci().args(["sessions", "search", "--json", word])
}

/// A line in which somebody says something.
fn line(uuid: &str, text: &str) -> String {
    let entry = json!({"type": "user", "uuid": uuid, "parentUuid": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": text}, "sessionId": "s", "cwd": "/p"});
    format!("{entry}\n")
}

async fn store() -> (World, Vec<PathBuf>) {
    store_of(BYTES).await
}

async fn store_of(n_bytes: usize) -> (World, Vec<PathBuf>) {
    let world = World::new(Step::text("unused")).await;
    let words: String = (0..2_000).map(|n| format!("word{} ", n % 700)).collect();
    let files = (0..SESSIONS).map(|n| {
        let name = format!("projects/-p/0a0a0a0a-0001-4000-8000-{n:012}.jsonl");
        let mut text = String::new();
        for m in 0.. {
            if text.len() >= n_bytes / SESSIONS {
                break;
            }
            text.push_str(&line(&format!("u{n}-{m}"), &format!("needle {words}")));
        }
        world.home.write_config(name, text)
    });
    let files = files.collect();
    (world, files)
}

fn append(file: &Path, text: &str) {
    let mut out = fs::OpenOptions::new().append(true).open(file).unwrap();
    out.write_all(text.as_bytes()).unwrap();
}

fn found(output: &Output) -> Value {
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

fn index_files(world: &World, ending: &str) -> usize {
    let dir = world.home.config_home().join("loci/index");
    let paths = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|it| it == ending)).count()
}

/// Every process finds what was written before it began, whoever of them indexes.
/// Invariants 3, 5 and 13 of `docs/design/index.md`.
#[tokio::test]
async fn several_processes_search_and_index_one_store() {
    let (world, files) = store().await;
    for (round, file) in files.iter().enumerate().take(3) {
        let word = format!("fresh{round}");
        append(file, &line(&word, &format!("{word} and a needle")));
        let running: Vec<_> = (0..PROCESSES).map(|_| world.start_closed(&search(&word))).collect();
        let counts = running.into_iter().map(|process| found(&process.finish()));
        for found in counts {
            assert_eq!(found["found"], json!({"number": 1, "isExact": true}), "{found}");
            assert_eq!(found["hits"][0]["uuid"], json!(word), "{found}");
        }
    }
    assert!(index_files(&world, "seg") > 0 && index_files(&world, "new") == 0, "it was indexed on the way");
    let plain = found(&world.run(&search("needle").arg("--no-index")));
    assert_eq!(found(&world.run(&search("needle"))), plain);
    let doctor = world.run(&loci().args(["sessions", "doctor", "--json"]));
    assert!(!doctor.stdout.contains("stale-index") && !doctor.stdout.contains("leftover"), "{doctor:?}");
}

/// Invariant 13 of `docs/design/index.md`.
#[tokio::test]
async fn a_search_that_is_killed_while_it_indexes_leaves_nothing_wrong() {
    let (world, _) = store().await;
    let lock = world.home.config_home().join("loci/index/lock");
    for _ in 0..3 {
        let running = world.start(&search("needle"));
        let deadline = Instant::now() + Duration::from_secs(30);
        while !lock.exists() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        drop(running); // Kills it.
        drop(fs::remove_file(&lock));
    }
    let plain = found(&world.run(&search("needle").arg("--no-index")));
    assert_eq!(found(&world.run(&search("needle"))), plain);
    assert!(
        index_files(&world, "seg") > 0 && index_files(&world, "new") == 0,
        "the next one goes on and tidies"
    );
    assert_eq!(found(&world.run(&search("needle"))), plain);
}

#[cfg(unix)]
#[tokio::test]
async fn a_bar_is_shown_while_the_index_is_built() {
    let (world, _) = store().await;
    let mut terminal = world.start_at_terminal(&search("needle"));
    terminal.wait_for("Indexing sessions [");
    let output = terminal.finish();
    assert_eq!(output.code, Some(0), "{output:?}");
    let drawn = output.stderr.split('\r').rfind(|row| !row.is_empty()).unwrap_or_default();
    let wiped = output.stderr.ends_with('\r') && drawn.trim().is_empty();
    assert!(wiped, "the bar is wiped away: {output:?}");
    let again = world.start_at_terminal(&search("needle")).finish();
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""), "nothing is left to index");
}

/// Ctrl-C writes what was read before the program ends. One that is done by then says what it found.
/// Invariant 14 of `docs/design/index.md`.
#[cfg(unix)]
#[tokio::test]
async fn an_interrupt_keeps_what_was_indexed() {
    let (world, _) = store_of(INDEXED_FIRST).await;
    let mut terminal = world.start_at_terminal(&search("needle"));
    terminal.wait_for("Indexing sessions [");
    terminal.type_key('\u{3}');
    let output = terminal.finish();
    match output.code {
        Some(130) => {
            assert!(output.stderr.contains("Interrupted; what was indexed so far is kept"), "{output:?}");
        }
        code => assert!(code == Some(0) && output.stdout.contains("\"found\""), "{output:?}"),
    }
    assert!(index_files(&world, "seg") > 0 && index_files(&world, "new") == 0, "{output:?}");
}

/// What an index does not notice, a file that was changed in its middle and has grown since, is found once it was made anew.
#[tokio::test]
async fn index_is_made_anew_where_that_is_asked_for() {
    let (world, files) = store_of(INDEXED_FIRST).await;
    assert_eq!(found(&world.run(&search("needle")))["found"]["isExact"], true);
    let text = fs::read_to_string(&files[0]).unwrap();
    fs::write(&files[0], text.replacen("word1 ", "sword ", 1)).unwrap();
    append(&files[0], &line("later", "said since then"));
    assert_eq!(found(&world.run(&search("sword")))["found"]["number"], 0);

    let rebuild = || loci().args(["sessions", "search", "--rebuild"]);
    let lock = world.home.config_home().join("loci/index/lock");
    let held = loci_stdx::FileLock::try_acquire(&lock).unwrap().unwrap();
    let refused = world.run(&rebuild());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("Another process is writing the index"), "{refused:?}");
    drop(held);
    assert!(index_files(&world, "seg") > 0, "it was left as it is");

    let done = world.run(&rebuild());
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""), "{done:?}");
    assert!(done.stderr.contains("made anew"), "{done:?}");
    assert_eq!(found(&world.run(&search("sword")))["found"]["number"], 1);
    let both = world.run(&rebuild().args(["--json", "sword"]));
    assert!(both.stdout.contains("\"number\":1"), "{both:?}");
}
