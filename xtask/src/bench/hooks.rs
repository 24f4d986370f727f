//! `cargo xtask bench hooks`: what hooks cost a call, and what they cost a session that has none.
//!
//! The program is watched from outside: the time between an answer of the scripted model, which calls `Read`, and the
//! next request. What one hook adds to it, less what starting the very same process costs here, is the program's own
//! share. All runs have loopback only, an empty home and a key that is none; so does Claude Code, where it is named.

use super::figures::Program;
use super::isolation::Isolation;
use super::turn_model::{Reply, TurnModel};
use super::{build, machine, page};
use anyhow::{Context, bail};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const USAGE: &str = "\
Usage: cargo xtask bench hooks [options]

  --loci BIN     a loci that is built already; without it, one is built
  --claude BIN   Claude Code, if it is to be measured beside it
  --runs N       runs of each, of which the median counts; default 5
  --write        put the table into docs/benchmarks.md";

/// What one hook may cost beyond starting its process, in milliseconds.
const OWN_SHARE_AIM: f64 = 1.0;
/// How long each of the slow handlers takes.
const SLOW: Duration = Duration::from_millis(100);
/// How often a process is started to know what that costs.
const N_STARTS: usize = 200;
const PROMPT: &str = "measure the hooks of this session";
/// The word with which the chore calls itself where there is no network.
const INSIDE: &str = "--inside";

#[derive(Debug, Default, PartialEq)]
struct Args {
    loci: Option<PathBuf>,
    claude: Option<PathBuf>,
    runs: u32,
    write: bool,
    is_inside: bool,
}

impl Args {
    fn parse(words: &[String]) -> anyhow::Result<Option<Self>> {
        let mut args = Self { runs: 5, ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--loci" => args.loci = Some(PathBuf::from(value()?)),
                "--claude" => args.claude = Some(PathBuf::from(value()?)),
                "--runs" => {
                    let runs = value()?.parse().ok().filter(|runs| *runs > 0);
                    args.runs = runs.context("`--runs` needs a number, at least 1")?;
                }
                "--write" => args.write = true,
                INSIDE => args.is_inside = true,
                other => bail!("Unknown option: `{other}`\n\n{USAGE}"),
            }
        }
        Ok(Some(args))
    }
}

/// Builds, measures without a network, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let Some(args) = Args::parse(words)? else {
        println!("{USAGE}");
        return Ok(());
    };
    if args.is_inside {
        return measure_inside(&args);
    }
    let isolation = Isolation::find()?;
    let loci = match &args.loci {
        Some(path) => existing(path)?,
        None => build(root)?,
    };
    let claude = args.claude.as_deref().map(existing).transpose()?;
    let mut names = vec![machine::name(&isolation, Program::Loci, &loci)?];
    if let Some(path) = &claude {
        names.push(machine::name(&isolation, Program::Claude, path)?);
    }
    let machine = machine::describe();
    let ourselves = std::env::current_exe().context("Failed to find this program")?;
    let mut command = isolation.command(ourselves);
    command.args(["bench", "hooks", INSIDE, "--runs", &args.runs.to_string()]).arg("--loci").arg(&loci);
    if let Some(path) = &claude {
        command.arg("--claude").arg(path);
    }
    let output = command.stderr(Stdio::inherit()).output().context("Failed to measure without a network")?;
    if !output.status.success() {
        bail!("The measurement failed");
    }
    let report = report(&names, &String::from_utf8_lossy(&output.stdout))?;
    println!("{machine}\n\n{report}");
    if args.write {
        let peer = if claude.is_some() { " --claude PEERS/claude" } else { "" };
        let command = format!("```sh\ncargo xtask bench hooks{peer} --runs {} --write\n```", args.runs);
        page::write(root, page::HOOKS, &format!("{machine}\n\n{command}\n\n{report}"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

pub(super) fn existing(path: &Path) -> anyhow::Result<PathBuf> {
    if !path.is_file() {
        bail!("There is no file `{}`", path.display());
    }
    std::path::absolute(path).with_context(|| format!("Failed to resolve `{}`", path.display()))
}

/// One arrangement of hooks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scenario {
    /// No settings at all.
    NoHooks,
    /// Hooks of another event alone.
    OtherEvent,
    /// One command before each call that ends at once.
    One,
    /// One command before each call that takes a while.
    OneSlow,
    /// Ten such commands.
    TenSlow,
}

impl Scenario {
    const ALL: [Self; 5] = [Self::NoHooks, Self::OtherEvent, Self::One, Self::OneSlow, Self::TenSlow];

    fn key(self) -> &'static str {
        match self {
            Self::NoHooks => "none",
            Self::OtherEvent => "other",
            Self::One => "one",
            Self::OneSlow => "slow",
            Self::TenSlow => "ten-slow",
        }
    }

    fn n_calls(self) -> usize {
        match self {
            Self::NoHooks | Self::OtherEvent | Self::One => 30,
            Self::OneSlow | Self::TenSlow => 6,
        }
    }

    fn settings(self) -> Option<String> {
        let slow = |idx: u32| format!("sleep {}; : {idx}", SLOW.as_secs_f64());
        let (event, commands) = match self {
            Self::NoHooks => return None,
            Self::OtherEvent => ("PostToolUseFailure", vec!["exit 0".to_owned()]),
            Self::One => ("PreToolUse", vec!["exit 0".to_owned()]),
            Self::OneSlow => ("PreToolUse", vec![slow(0)]),
            Self::TenSlow => ("PreToolUse", (0..10).map(slow).collect()),
        };
        let handler = |command: &String| format!("{{\"type\":\"command\",\"command\":\"{command}\"}}");
        let handlers = commands.iter().map(handler).collect::<Vec<_>>().join(",");
        Some(format!("{{\"hooks\":{{\"{event}\":[{{\"matcher\":\"Read\",\"hooks\":[{handlers}]}}]}}}}"))
    }
}

/// Measures everything and prints a line a figure: program, scenario, milliseconds of a gap, of the first request.
fn measure_inside(args: &Args) -> anyhow::Result<()> {
    println!("process start {:.4} 0", process_start()?);
    let programs = [("loci", &args.loci), ("claude", &args.claude)];
    for _ in 0..args.runs {
        for (name, path) in programs.iter().filter_map(|(name, path)| Some((name, path.as_ref()?))) {
            for scenario in Scenario::ALL {
                let (gap, first) = measure(path, scenario)?;
                println!("{name} {} {gap:.4} {first:.4}", scenario.key());
            }
        }
    }
    Ok(())
}

/// Returns what starting the process of a hook costs, with what it reads and what is read of it.
fn process_start() -> anyhow::Result<f64> {
    let mut times = Vec::new();
    let payload = vec![b'x'; 500];
    for _ in 0..N_STARTS {
        let began = Instant::now();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exit 0"]).env_clear().env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("Failed to start a shell")?;
        if let Some(mut stdin) = child.stdin.take() {
            // It ends without reading.
            drop(stdin.write_all(&payload));
        }
        let mut said = Vec::new();
        if let Some(stdout) = child.stdout.as_mut() {
            stdout.read_to_end(&mut said).context("Failed to read from a shell")?;
        }
        child.wait().context("Failed to wait for a shell")?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(times))
}

/// Plays one session; returns the median gap and the time to the first request, in milliseconds.
fn measure(program: &Path, scenario: Scenario) -> anyhow::Result<(f64, f64)> {
    let scratch = Scratch::new("hooks")?;
    let (home, project) = (scratch.0.join("home"), scratch.0.join("project"));
    std::fs::create_dir_all(home.join(".claude")).context("Failed to make an empty home")?;
    std::fs::create_dir_all(&project).context("Failed to make an empty project")?;
    std::fs::write(project.join("README.md"), "# Hello\n").context("Failed to write a file")?;
    if let Some(settings) = scenario.settings() {
        std::fs::write(home.join(".claude/settings.json"), settings).context("Failed to write settings")?;
    }
    let input = format!("{{\"file_path\":\"{}/README.md\"}}", project.display());
    let n_calls = scenario.n_calls();
    let model = TurnModel::start(Box::new(move |body, n| {
        let is_main = body.contains(PROMPT) && body.contains("\"tools\":[{");
        is_main.then(|| match n < n_calls {
            true => Reply::Calls(vec![("Read".to_owned(), input.clone())]),
            false => Reply::Text("Done.".to_owned()),
        })
    }))?;
    let mut command = Command::new(program);
    command.args(["-p", PROMPT, "--model", "claude-sonnet-4-5", "--permission-mode", "acceptEdits"]);
    command.current_dir(&project).env_clear().env("HOME", &home).env("TMPDIR", &scratch.0);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("ANTHROPIC_BASE_URL", model.base_url()).env("ANTHROPIC_API_KEY", "sk-ant-none");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let began = Instant::now();
    let output = command.spawn().context("Failed to start the program")?.wait_with_output();
    let output = output.context("Failed to wait for the program")?;
    let exchanges = model.exchanges();
    if !output.status.success() || exchanges.len() != n_calls + 1 {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} requests of {}: {}", exchanges.len(), n_calls + 1, said.trim());
    }
    let gaps = exchanges.windows(2).map(|pair| (pair[1].arrived - pair[0].answered).as_secs_f64() * 1e3);
    Ok((median(gaps.collect()), (exchanges[0].arrived - began).as_secs_f64() * 1e3))
}

/// A directory that is removed at the end.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(bench: &str) -> anyhow::Result<Self> {
        let stamp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let name = format!("loci-bench-{bench}-{}-{}", std::process::id(), stamp.as_nanos());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).context("Failed to make a temporary directory")?;
        Ok(Self(path.canonicalize().context("Failed to find the temporary directory")?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in the temporary directory, which is emptied anyway.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The medians of a program.
struct Medians {
    none: f64,
    one: f64,
    slow: f64,
    ten_slow: f64,
    first: f64,
    first_other: f64,
}

fn report(names: &[String], lines: &str) -> anyhow::Result<String> {
    let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split_whitespace().collect()).collect();
    let figure = |program: &str, scenario: &str, column: usize| -> anyhow::Result<f64> {
        let of = rows.iter().filter(|row| row.len() == 4 && row[0] == program && row[1] == scenario);
        let figures: Vec<f64> = of.filter_map(|row| row[column].parse().ok()).collect();
        match figures.is_empty() {
            true => bail!("Nothing was measured for `{program} {scenario}`"),
            false => Ok(median(figures)),
        }
    };
    let start = figure("process", "start", 2)?;
    let medians = |program: &str| -> anyhow::Result<Medians> {
        Ok(Medians {
            none: figure(program, "none", 2)?,
            one: figure(program, "one", 2)?,
            slow: figure(program, "slow", 2)?,
            ten_slow: figure(program, "ten-slow", 2)?,
            first: figure(program, "none", 3)?,
            first_other: figure(program, "other", 3)?,
        })
    };
    let programs = ["loci", "claude"].into_iter().take(names.len());
    let programs: Vec<Medians> = programs.map(medians).collect::<anyhow::Result<_>>()?;
    let row = |about: &str, of: &dyn Fn(&Medians) -> f64, aim: &str| {
        let cells: String = programs.iter().map(|it| format!(" {:.2} ms |", of(it))).collect();
        format!("| {about} |{cells} {aim} |")
    };
    let own = |it: &Medians| it.one - it.none - start;
    let verdict = match programs.first().map(own) {
        Some(share) if share <= OWN_SHARE_AIM => "1 ms: met",
        _ => "1 ms: missed",
    };
    let lines = [
        format!("| | {} | aim |", names.join(" | ")),
        format!("|---|{}---|", "---:|".repeat(names.len())),
        row("from an answer with a call to the next request, no hooks", &|it| it.none, "-"),
        row("the same, one command before the call", &|it| it.one, "-"),
        row(&format!("what it adds, less starting the process ({start:.2} ms)"), &own, verdict),
        row("ten commands of 100 ms each, beyond one of them", &|it| it.ten_slow - it.slow, "-"),
        row("start to first request, no hooks", &|it| it.first, "-"),
        row("the same, with hooks of an event that does not happen", &|it| it.first_other, "-"),
    ];
    Ok(lines.join("\n"))
}

pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn figures_become_a_table_with_a_verdict() {
        let lines = "process start 1.0 0\nloci none 2.0 15.0\nloci other 2.0 15.5\nloci one 3.5 16\n\
                     loci slow 103 16\nloci ten-slow 108 16\n";
        let table = report(&["loci 1".to_owned()], lines).unwrap();
        assert!(
            table.contains("| what it adds, less starting the process (1.00 ms) | 0.50 ms | 1 ms: met |"),
            "{table}"
        );
        assert!(
            table.contains("| ten commands of 100 ms each, beyond one of them | 5.00 ms | - |"),
            "{table}"
        );
        let slower = lines.replace("one 3.5", "one 4.5");
        assert!(report(&["loci 1".to_owned()], &slower).unwrap().contains("1 ms: missed"));
        let error = report(&["loci 1".to_owned(), "Claude Code 2".to_owned()], lines).unwrap_err();
        assert_eq!(error.to_string(), "Nothing was measured for `claude none`");
    }

    #[test]
    fn arguments_are_checked() {
        let args = Args::parse(&words("--runs 3 --write --claude /x")).unwrap().unwrap();
        let claude = Some(PathBuf::from("/x"));
        assert_eq!(args, Args { claude, runs: 3, write: true, ..Args::default() });
        assert_eq!(Args::parse(&words("--help")).unwrap(), None);
        for bad in ["--runs 0", "--loci", "--fast"] {
            assert!(Args::parse(&words(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn settings_of_each_scenario_are_json_with_different_handlers() {
        let settings = Scenario::TenSlow.settings().unwrap();
        assert_eq!(settings.matches("sleep 0.1").count(), 10);
        assert!(settings.contains("; : 9") && settings.ends_with("]}]}}"), "{settings}");
        assert_eq!(Scenario::NoHooks.settings(), None);
    }
}
