//! `cargo xtask bench replay`: how long it takes to play a session again, by its length.

use super::sessions::synth;
use super::{build, machine, page};
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const USAGE: &str = "\
Usage: cargo xtask bench replay [options]

  --loci BIN       a loci that is built already; without it, one is built
  --write          put the table into docs/benchmarks.md";

/// Turns of the sessions that are played; the last but one has a target.
const TURNS: [u64; 4] = [100, 500, 1_000, 2_000];
/// A promise: so many turns in so many seconds.
const TARGET: (u64, f64) = (1_000, 5.0);
/// Runs of each, of which the median counts.
const RUNS: usize = 5;

/// Makes sessions, plays them, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let mut given: Option<PathBuf> = None;
    let mut writes = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--loci" => given = Some(words.next().context("`--loci` needs a program")?.into()),
            "--write" => writes = true,
            _ => bail!(USAGE),
        }
    }
    let loci = match given {
        Some(path) => std::path::absolute(path).context("Failed to resolve --loci")?,
        None => build(root)?,
    };
    let machine = machine::describe();
    let scratch = std::env::temp_dir().join(format!("loci-bench-replay-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).context("Failed to make a directory")?;
    let table = measure(&loci, &scratch.canonicalize().context("Failed to resolve a directory")?);
    std::fs::remove_dir_all(&scratch).context("Failed to remove the sessions")?;
    let table = table?;
    println!("{table}");
    if writes {
        let command = "```sh\ncargo xtask bench replay --write\n```".to_owned();
        page::write(root, page::REPLAY, &[machine, command, table].join("\n\n"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

fn measure(loci: &Path, scratch: &Path) -> anyhow::Result<String> {
    let mut table = "| turns | requests | time | a request | target |\n|---|---|---|---|---|".to_owned();
    for n_turns in TURNS {
        let home = synth::home(scratch, &format!("{n_turns}-turns"))?;
        let id = synth::turns(&home, n_turns)?;
        let mut seconds: Vec<f64> =
            (0..RUNS).map(|_| play(loci, &home, &id, n_turns)).collect::<anyhow::Result<_>>()?;
        seconds.sort_by(f64::total_cmp);
        let median = seconds[RUNS / 2];
        let target = match TARGET {
            (turns, most) if turns == n_turns => {
                format!("{most} s: {}", if median <= most { "met" } else { "missed" })
            }
            _ => "-".to_owned(),
        };
        let each = median * 1e3 / (2 * n_turns) as f64;
        table.push_str(&format!(
            "\n| {n_turns} | {} | {median:.2} s | {each:.2} ms | {target} |",
            2 * n_turns
        ));
    }
    Ok(table)
}

/// Plays a session once and returns how many seconds that took; every request must be as it was recorded.
fn play(loci: &Path, home: &synth::Home, id: &str, n_turns: u64) -> anyhow::Result<f64> {
    let mut command = Command::new(loci);
    command
        .args(["sessions", "replay", id, "--dry"])
        .current_dir(&home.project)
        .env_clear()
        .env("HOME", &home.root)
        .env("CLAUDE_CODE_TMPDIR", home.root.join("tmp"));
    let started = Instant::now();
    let output = command.output().context("Failed to run loci")?;
    let seconds = started.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = format!("{n} requests: {n} as recorded, 0 not", n = 2 * n_turns);
    ensure!(said.lines().any(|line| line == expected), "The session was not played as recorded:\n{said}");
    Ok(seconds)
}
