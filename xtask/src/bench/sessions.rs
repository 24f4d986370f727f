//! `cargo xtask bench sessions`: what a session costs to resume, to list and to write, by its size.
//!
//! loci alone, no peer and no harness: files are made here, the model is played here, and the program is watched
//! from outside. Everything lies in a temporary directory that is removed at the end.

mod model;
mod process;
pub(super) mod synth;

use super::{build, machine, page};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const USAGE: &str = "\
Usage: cargo xtask bench sessions [options]

  --loci BIN       a loci that is built already; without it, one is built
  --sizes A,B,..   megabytes of the sessions to resume; default 1,50,200,1000
  --list N         how many sessions to list; default 10000
  --runs N         runs of each, of which the median counts; default 7
  --write          put the tables into docs/benchmarks.md";

/// A promise about a resume: of so many megabytes, so much later than a fresh start, so much memory.
const TARGETS: [(u64, f64, Option<f64>); 2] = [(200, 10.0, None), (1000, 300.0, Some(150.0))];
/// Promises about the list, in seconds: when nothing is known yet, and when nothing has changed.
const COLD_LIST_TARGET: f64 = 1.0;
const WARM_LIST_TARGET: f64 = 0.1;

/// Makes files, measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let Some(args) = Args::parse(words)? else {
        println!("{USAGE}");
        return Ok(());
    };
    let loci = match &args.loci {
        Some(path) => std::path::absolute(path).context("Failed to resolve --loci")?,
        None => build(root)?,
    };
    let machine = machine::describe();
    let scratch = Scratch::new()?;
    let resumes = resumes(&loci, scratch.path(), &args)?;
    println!("{resumes}");
    let list = list(&loci, scratch.path(), &args)?;
    println!("{list}");
    let appends = appends(root, scratch.path())?;
    println!("{appends}");
    if args.write {
        let command = format!("```sh\n{}\n```", args.command());
        page::write(root, page::SESSIONS, &[machine, command, resumes, list, appends].join("\n\n"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Args {
    loci: Option<PathBuf>,
    sizes: Vec<u64>,
    n_listed: u32,
    runs: u32,
    write: bool,
}

impl Args {
    fn parse(words: &[String]) -> anyhow::Result<Option<Self>> {
        let mut args =
            Self { loci: None, sizes: vec![1, 50, 200, 1000], n_listed: 10_000, runs: 7, write: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = || -> anyhow::Result<u32> {
                let number = words.next().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
                number.with_context(|| format!("`{word}` needs a number, at least 1"))
            };
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--loci" => args.loci = Some(words.next().context("`--loci` needs a program")?.into()),
                "--list" => args.n_listed = number()?,
                "--runs" => args.runs = number()?,
                "--sizes" => {
                    let sizes = words.next().context("`--sizes` needs a list of megabytes")?;
                    let sizes: Result<Vec<u64>, _> = sizes.split(',').map(str::parse).collect();
                    args.sizes = sizes.context("`--sizes` needs numbers, separated by commas")?;
                }
                "--write" => args.write = true,
                other => bail!("Unknown option: `{other}`\n\n{USAGE}"),
            }
        }
        Ok(Some(args))
    }

    fn command(&self) -> String {
        let sizes: Vec<String> = self.sizes.iter().map(u64::to_string).collect();
        let (sizes, n, runs) = (sizes.join(","), self.n_listed, self.runs);
        format!("cargo xtask bench sessions --sizes {sizes} --list {n} --runs {runs} --write")
    }
}

/// A directory that goes away with its value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("loci-bench-sessions-{}", std::process::id()));
        std::fs::create_dir_all(&path).context("Failed to make a directory")?;
        Ok(Self(path.canonicalize().context("Failed to resolve a directory")?))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("Failed to remove `{}`: {error}", self.0.display());
        }
    }
}

/// One run up to its first request: how long it took, for how long it computed, and the most memory it had.
#[derive(Debug, Clone, Copy)]
struct Start {
    first_request: Duration,
    cpu_ms: f64,
    peak_mb: f64,
}

fn resumes(loci: &Path, scratch: &Path, args: &Args) -> anyhow::Result<String> {
    let mut table = "| resume | later than a fresh start | more CPU time | exec to first request | peak memory | target |\n\
                     |---|---:|---:|---:|---:|---|\n"
        .to_owned();
    for size in &args.sizes {
        let home = synth::home(scratch, &format!("resume-{size}"))?;
        let session = synth::session(&home, *size * 1_000_000)?;
        let (mut fresh, mut resumed) = (Vec::new(), Vec::new());
        for _ in 0..args.runs {
            // A copy each time would cost more than it is worth: a turn adds a kilobyte to the file.
            resumed.push(start(loci, &home, &["-r", &session])?);
            fresh.push(start(loci, &home, &["--no-session-persistence"])?);
        }
        let first = median_of(&resumed, |it| it.first_request.as_secs_f64() * 1e3);
        let later = first - median_of(&fresh, |it| it.first_request.as_secs_f64() * 1e3);
        let more_cpu = median_of(&resumed, |it| it.cpu_ms) - median_of(&fresh, |it| it.cpu_ms);
        let peak = median_of(&resumed, |it| it.peak_mb);
        let verdict = verdict(*size, later, peak);
        table.push_str(&format!(
            "| {size} MB | {later:.1} ms | {more_cpu:.1} ms | {first:.1} ms | {peak:.1} MB | {verdict} |\n"
        ));
        std::fs::remove_dir_all(&home.root).context("Failed to remove a home")?;
    }
    Ok(table)
}

fn verdict(size: u64, later_ms: f64, peak_mb: f64) -> String {
    let Some((_, most_ms, most_mb)) = TARGETS.iter().find(|(target, ..)| *target == size) else {
        return String::new();
    };
    let is_met = later_ms <= *most_ms && most_mb.is_none_or(|most| peak_mb <= most);
    let memory = most_mb.map(|most| format!(", {most} MB")).unwrap_or_default();
    format!("{most_ms} ms{memory}: {}", if is_met { "met" } else { "missed" })
}

/// Starts loci with one prompt, and measures until its first request arrives.
fn start(loci: &Path, home: &synth::Home, more: &[&str]) -> anyhow::Result<Start> {
    let model = model::Model::start()?;
    let mut command = program(loci, home);
    command.args(["-p", "do it", "--model", "claude-sonnet-4-5"]).args(more);
    command.env("ANTHROPIC_BASE_URL", model.base_url()).env("ANTHROPIC_API_KEY", "none");
    let began = Instant::now();
    let mut child = command.spawn().context("Failed to start loci")?;
    let Some(arrived) = model.first_request() else {
        let status = child.wait().context("Failed to wait for loci")?;
        bail!("loci sent no request: {status}");
    };
    let (cpu_ms, peak_mb) = (process::cpu_ms(child.id())?, process::peak_mb(child.id())?);
    model.answer();
    if !child.wait().context("Failed to wait for loci")?.success() {
        bail!("loci failed");
    }
    Ok(Start { first_request: arrived - began, cpu_ms, peak_mb })
}

fn program(loci: &Path, home: &synth::Home) -> Command {
    let mut command = Command::new(loci);
    command.current_dir(&home.project).env_clear().env("HOME", &home.root).env("TMPDIR", &home.root);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn list(loci: &Path, scratch: &Path, args: &Args) -> anyhow::Result<String> {
    let home = synth::home(scratch, "list")?;
    let bytes = synth::many(&home, args.n_listed)?;
    let about = format!("{} sessions, {:.0} MB", args.n_listed, bytes as f64 / 1e6);
    let kept = home.root.join(".claude/loci/listing.bin");
    let cold = list_times(loci, &home, args, &["--all", "--json"], Some(&kept))?;
    let mut rows = vec![list_row(&format!("{about}, for the first time"), cold, COLD_LIST_TARGET)];
    for (options, name) in [(&["--all", "--json"][..], "again, as JSON"), (&["--all"], "again, as a table")] {
        let warm = list_times(loci, &home, args, options, None)?;
        rows.push(list_row(&format!("{about}, {name}"), warm, WARM_LIST_TARGET));
    }
    Ok(format!("| list | time | CPU time | target |\n|---|---:|---:|---|\n{}", rows.concat()))
}

/// Lists so many times and returns the medians of seconds and of milliseconds of CPU time.
fn list_times(
    loci: &Path,
    home: &synth::Home,
    args: &Args,
    options: &[&str],
    forgets: Option<&Path>,
) -> anyhow::Result<(f64, f64)> {
    let (mut seconds, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        if let Some(kept) = forgets {
            drop(std::fs::remove_file(kept));
        }
        let cpu_before = process::children_cpu_ms()?;
        let began = Instant::now();
        let mut command = program(loci, home);
        command.args(["sessions", "list"]).args(options).stdout(Stdio::piped());
        let output = command.output().context("Failed to run loci")?;
        seconds.push(began.elapsed().as_secs_f64());
        cpu.push(process::children_cpu_ms()? - cpu_before);
        let text = String::from_utf8_lossy(&output.stdout);
        let listed = match options.contains(&"--json") {
            true => text.matches("\"sessionId\"").count(),
            false => text.lines().count().saturating_sub(1),
        };
        if listed != args.n_listed as usize {
            bail!("{listed} of {} sessions were listed", args.n_listed);
        }
    }
    Ok((median(seconds), median(cpu)))
}

fn list_row(about: &str, (seconds, cpu): (f64, f64), target: f64) -> String {
    let verdict = if seconds <= target { "met" } else { "missed" };
    format!("| {about} | {:.0} ms | {cpu:.0} ms | {target} s: {verdict} |\n", seconds * 1e3)
}

/// Lets the storage crate measure its own log.
fn appends(root: &Path, scratch: &Path) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "--package", "loci-storage", "--example", "append", "--"]);
    let output = command.arg(scratch).current_dir(root).stderr(Stdio::inherit()).output();
    let output = output.context("Failed to run cargo")?;
    if !output.status.success() {
        bail!("The log could not be measured");
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn median_of(starts: &[Start], figure: impl Fn(&Start) -> f64) -> f64 {
    median(starts.iter().map(figure).collect())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Option<Args>> {
        Args::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let args = parsed("--sizes 1,2 --runs 3 --write").unwrap().unwrap();
        assert_eq!(args, Args { loci: None, sizes: vec![1, 2], n_listed: 10_000, runs: 3, write: true });
        assert_eq!(args.command(), "cargo xtask bench sessions --sizes 1,2 --list 10000 --runs 3 --write");
        assert_eq!(parsed("--help").unwrap(), None);
        for wrong in ["--runs 0", "--sizes a", "--sizes", "--fast"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn targets_are_judged() {
        assert_eq!(verdict(200, 9.9, 999.0), "10 ms: met");
        assert_eq!(verdict(200, 10.1, 1.0), "10 ms: missed");
        assert_eq!(verdict(1000, 1.0, 151.0), "300 ms, 150 MB: missed");
        assert_eq!(verdict(7, 1.0, 1.0), "");
    }

    #[test]
    fn the_middle_counts() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    }
}
