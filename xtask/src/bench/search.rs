//! `cargo xtask bench search`: the index over a gigabyte of transcripts, or over many sessions, and ripgrep over the same
//! files.

use super::{machine, page};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const USAGE: &str =
    "Usage: cargo xtask bench search [--write] [--megabytes N] [--sessions N] [--ripgrep PATH]";

struct Args {
    writes: bool,
    megabytes: u32,
    sessions: u32,
    ripgrep: PathBuf,
}

/// Measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let args = parse(words)?;
    let machine = machine::describe();
    let dir = std::env::temp_dir().join(format!("loci-bench-search-{}", std::process::id()));
    let measured = measure(root, &dir, &args).map(|table| match ripgrep(&args.ripgrep, &dir) {
        Some(row) => format!("{table}\n\n{row}"),
        None => format!("{table}\n\nripgrep is not there: `{}`", args.ripgrep.display()),
    });
    std::fs::remove_dir_all(&dir).context("Failed to remove the transcripts")?;
    let table = measured?;
    println!("{table}");
    if args.writes {
        let words = words.join(" ");
        let command = format!("```sh\ncargo xtask bench search {words}\n```");
        page::write(root, page::SEARCH, &[machine, command, table].join("\n\n"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

fn parse(words: &[String]) -> anyhow::Result<Args> {
    let mut args = Args { writes: false, megabytes: 1_000, sessions: 2_000, ripgrep: "rg".into() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (word.as_str(), words.as_slice().first()) {
            ("--write", _) => args.writes = true,
            ("--megabytes", Some(number)) => args.megabytes = number.parse().context(USAGE)?,
            ("--sessions", Some(number)) => args.sessions = number.parse().context(USAGE)?,
            ("--ripgrep", Some(path)) => args.ripgrep = path.into(),
            _ => bail!("{USAGE}"),
        }
        if word != "--write" {
            words.next();
        }
    }
    Ok(args)
}

fn measure(root: &Path, dir: &Path, args: &Args) -> anyhow::Result<String> {
    std::fs::create_dir_all(dir).context("Failed to make a directory for the transcripts")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "-p", "loci-storage", "--example", "search", "--"]);
    command.arg(dir.join("home")).arg(args.megabytes.to_string()).arg(args.sessions.to_string());
    let output =
        command.current_dir(root).stderr(Stdio::inherit()).output().context("Failed to run cargo")?;
    if !output.status.success() {
        bail!("Searching could not be measured");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Counts lines with a common word, as the measure of what plain reading costs.
fn ripgrep(program: &Path, dir: &Path) -> Option<String> {
    let mut times = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let mut command = Command::new(program);
        command
            .args(["--count", "--word-regexp", "the"])
            .arg(dir.join("home/projects"))
            .stdout(Stdio::null());
        command.status().ok()?;
        times.push(began.elapsed());
    }
    times.sort();
    Some(format!(
        "ripgrep counts the lines with `the` in the same files in {:.0} ms.",
        times[2].as_secs_f64() * 1e3
    ))
}
