//! Measures the session log: how fast it appends, and what it costs to sync. Prints a table.
//!
//! `cargo run --release -p loci-storage --example append -- DIRECTORY`
#![expect(clippy::print_stdout, reason = "figures are for the person who runs this")]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use loci_core::entry::Entry;
use loci_storage::sessions::SessionLog;

/// Entries appended for each size.
const APPENDS: usize = 20_000;
/// Turns that are synced, each after a few entries.
const TURNS: usize = 200;
/// Entries of a turn.
const ENTRIES_A_TURN: usize = 6;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("name a directory")?;
    println!("| session log | appends a second | megabytes a second | one append |\n|---|---:|---:|---:|");
    for size in [1_000, 10_000] {
        let taken = appends(&Path::new(&dir).join(format!("append-{size}.jsonl")), size)?;
        let a_second = APPENDS as f64 / taken.as_secs_f64();
        println!(
            "| entries of {} kB | {a_second:.0} | {:.0} | {:.1} \u{b5}s |",
            size / 1_000,
            a_second * size as f64 / 1e6,
            1e6 / a_second
        );
    }
    let mut syncs = syncs(&Path::new(&dir).join("sync.jsonl"))?;
    syncs.sort();
    let at = |part: usize| syncs[part].as_secs_f64() * 1e3;
    println!(
        "\n| sync at the end of a turn | median | 95 of 100 |\n|---|---:|---:|\n| {ENTRIES_A_TURN} entries of 1 kB | {:.2} ms | {:.2} ms |",
        at(TURNS / 2),
        at(TURNS * 95 / 100)
    );
    Ok(())
}

fn appends(path: &Path, size: usize) -> Result<Duration, Box<dyn Error>> {
    let entry = entry(size)?;
    let mut log = SessionLog::on_disk(path);
    let began = Instant::now();
    for _ in 0..APPENDS {
        log.append(&[&entry])?;
    }
    Ok(began.elapsed())
}

fn syncs(path: &Path) -> Result<Vec<Duration>, Box<dyn Error>> {
    let entry = entry(1_000)?;
    let mut log = SessionLog::on_disk(path);
    let mut syncs = Vec::new();
    for _ in 0..TURNS {
        for _ in 0..ENTRIES_A_TURN {
            log.append(&[&entry])?;
        }
        let began = Instant::now();
        log.sync()?;
        syncs.push(began.elapsed());
    }
    Ok(syncs)
}

/// An entry whose line has about so many bytes.
fn entry(size: usize) -> Result<Entry, Box<dyn Error>> {
    let line = serde_json::json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": "x".repeat(size - 80)}});
    Ok(Entry::parse(line.to_string())?)
}
