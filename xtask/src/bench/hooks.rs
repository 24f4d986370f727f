//! `cargo xtask bench hooks`: what hooks cost a call, and what they cost a session that has none.
//!
//! The program is watched from outside: the time between an answer of the scripted model, which calls `Read`, and the
//! next request. What one hook adds to it, less what starting the very same process costs here, is the program's own
//! share. All runs have loopback only, an empty home and a key that is none; so does Claude Code, where it is named.

use super::page;
use super::program_run::{Args, Measurement, Scratch, median};
use super::turn_model::{Reply, TurnModel};
use anyhow::{Context, bail};
use std::io::{Read, Write};
use std::path::Path;
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

/// Builds, measures without a network, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    Measurement { name: "hooks", usage: USAGE, part: page::HOOKS, inside: measure_inside, report }
        .run(root, words)
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
    let (home, project) = (scratch.home(), scratch.project());
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
    let mut command = scratch.command(program, model.base_url());
    command.args(["-p", PROMPT, "--permission-mode", "acceptEdits"]);
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn settings_of_each_scenario_are_json_with_different_handlers() {
        let settings = Scenario::TenSlow.settings().unwrap();
        assert_eq!(settings.matches("sleep 0.1").count(), 10);
        assert!(settings.contains("; : 9") && settings.ends_with("]}]}}"), "{settings}");
        assert_eq!(Scenario::NoHooks.settings(), None);
    }
}
