//! `cargo xtask bench search`: the index over a gigabyte of transcripts, or over many sessions, and ripgrep over the same
//! files.

use super::{machine, page};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const USAGE: &str = "Usage: cargo xtask bench search [--write] [--megabytes N] [--sessions N] [--common] \
    [--program PATH] [--ripgrep PATH]";

/// How often the program is started for each query.
const STARTS: usize = 40;
/// What it is asked, as in the example `search` of `loci-storage`.
const QUERIES: [&str; 8] = [
    "needle000000",
    "w9999",
    "the",
    "the error",
    "error w9999",
    "\"the error\"",
    "\"file test error\"",
    "w1999*",
];

struct Args {
    writes: bool,
    megabytes: u32,
    sessions: u32,
    /// Whether nearly every message has the common words.
    is_common: bool,
    /// The `loci` that is started for each query, if one is.
    program: Option<PathBuf>,
    ripgrep: PathBuf,
}

/// Measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let args = parse(words)?;
    let machine = machine::describe();
    let dir = std::env::temp_dir().join(format!("loci-bench-search-{}", std::process::id()));
    let measured = measure(root, &dir, &args);
    let measured = measured.and_then(|table| match &args.program {
        Some(program) => Ok(format!("{table}\n\n{}", started(program, &dir.join("home"))?)),
        None => Ok(table),
    });
    let measured = measured.map(|table| match ripgrep(&args.ripgrep, &dir) {
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
    let mut args = Args {
        writes: false,
        megabytes: 1_000,
        sessions: 2_000,
        is_common: false,
        program: None,
        ripgrep: "rg".into(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (word.as_str(), words.as_slice().first()) {
            ("--write", _) => args.writes = true,
            ("--common", _) => args.is_common = true,
            ("--megabytes", Some(number)) => args.megabytes = number.parse().context(USAGE)?,
            ("--sessions", Some(number)) => args.sessions = number.parse().context(USAGE)?,
            ("--ripgrep", Some(path)) => args.ripgrep = path.into(),
            ("--program", Some(path)) => args.program = Some(path.into()),
            _ => bail!("{USAGE}"),
        }
        if !matches!(word.as_str(), "--write" | "--common") {
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
    if args.is_common {
        command.arg("common");
    }
    let output =
        command.current_dir(root).stderr(Stdio::inherit()).output().context("Failed to run cargo")?;
    if !output.status.success() {
        bail!("Searching could not be measured");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Asks as a person does: the program is started for every search.
fn started(program: &Path, home: &Path) -> anyhow::Result<String> {
    let mut rows = vec!["| the program started anew | median | 95 of 100 |\n|---|---:|---:|".to_owned()];
    for query in QUERIES {
        let mut times = Vec::with_capacity(STARTS);
        for _ in 0..STARTS {
            let began = Instant::now();
            let mut command = Command::new(program);
            command.args(["sessions", "search", "-n", "20", query]).env("CLAUDE_CONFIG_DIR", home);
            let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
            if !status.context("Failed to start the program")?.success() {
                bail!("`{}` could not search for `{query}`", program.display());
            }
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        rows.push(format!(
            "| `{query}` | {:.0} ms | {:.0} ms |",
            times[STARTS / 2],
            times[STARTS * 95 / 100]
        ));
    }
    Ok(rows.join("\n"))
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
