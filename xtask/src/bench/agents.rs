//! `cargo xtask bench agents`: what sending out an agent costs, in time before its first request and in memory while it
//! waits for its model.
//!
//! The program is watched from outside. The scripted model calls `Agent`; the time from that answer to the first request of
//! the agent is what its start costs. Then it calls twenty at once, in the background, and keeps all of them waiting: what
//! the process holds by then, less what it held when its own conversation waited alike, is what they take.

use super::page;
use super::program_run::{Args, Measurement, Scratch, median};
use super::turn_model::{Reply, TurnModel};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

const USAGE: &str = "\
Usage: cargo xtask bench agents [options]

  --loci BIN     a loci that is built already; without it, one is built
  --claude BIN   Claude Code, if it is to be measured beside it
  --runs N       runs of each, of which the median counts; default 5
  --write        put the table into docs/benchmarks.md";

/// What starting an agent may take before its first request.
const START_AIM_MS: f64 = 2.0;
const START_AIM_MB: f64 = 1.0;
/// What twenty that wait may take in all.
const IDLE_AIM_MB: f64 = 40.0;
/// How many agents wait at once.
const N_IDLE: usize = 20;
/// How many are sent out one after the other to know what a start takes.
const N_STARTS: usize = 10;
/// How long is waited for agents to come.
const PATIENCE: Duration = Duration::from_secs(60);
/// After how long without a further one no more are expected.
const QUIET: Duration = Duration::from_secs(3);
const PROMPT: &str = "measure the agents of this session";
const TASK: &str = "wait for your model and say so";

/// Measures and prints the table.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    Measurement { name: "agents", usage: USAGE, part: page::AGENTS, inside: measure_inside, report }
        .run(root, words)
}

/// Measures everything and prints a line a figure: program, what, figure.
fn measure_inside(args: &Args) -> anyhow::Result<()> {
    let programs = [("loci", &args.loci), ("claude", &args.claude)];
    for _ in 0..args.runs {
        for (name, path) in programs.iter().filter_map(|(name, path)| Some((name, path.as_ref()?))) {
            println!("{name} start {:.4}", measure_start(path)?);
            let alone = measure_memory(path, 0)?;
            let idle = measure_memory(path, N_IDLE)?;
            println!("{name} alone {:.4}", alone.megabytes);
            println!("{name} idle {:.4}", idle.megabytes);
            println!("{name} agents {}", idle.n_agents);
        }
    }
    Ok(())
}

/// Keeps answers back until it is opened, and counts who waits.
#[derive(Default)]
struct Barrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Default)]
struct BarrierState {
    is_open: bool,
    n_waiting: usize,
}

impl Barrier {
    fn wait(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.n_waiting += 1;
        self.changed.notify_all();
        while !state.is_open {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn open(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_open = true;
        self.changed.notify_all();
    }

    /// Waits until so many wait, or no more come; returns how many do.
    fn wait_for(&self, n: usize) -> usize {
        let began = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let n_before = state.n_waiting;
            let is_over = began.elapsed() > PATIENCE;
            if n_before >= n || is_over {
                return n_before;
            }
            let (next, waited) =
                self.changed.wait_timeout(state, QUIET).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() && n_before > 0 && state.n_waiting == n_before {
                return n_before;
            }
        }
    }
}

fn call(is_background: bool) -> (String, String) {
    let input = format!(
        "{{\"description\":\"wait\",\"prompt\":\"{TASK}\",\"subagent_type\":\"general-purpose\",\"run_in_background\":{is_background}}}"
    );
    ("Agent".to_owned(), input)
}

/// Tells whose request it is: the main conversation's has the prompt, an agent's only its task.
fn is_main(body: &str) -> bool {
    body.contains(PROMPT)
}

fn is_agents(body: &str) -> bool {
    body.contains(TASK) && !is_main(body)
}

/// Sends agents out one after the other; returns the median time from an answer to the agent's first request, in
/// milliseconds.
fn measure_start(program: &Path) -> anyhow::Result<f64> {
    let scratch = Scratch::new("agents")?;
    let (answered, arrived) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (noted, seen) = (Arc::clone(&answered), Arc::clone(&arrived));
    let note = |times: &Mutex<Vec<Instant>>| {
        let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
        times.push(Instant::now());
        times.len()
    };
    let model = TurnModel::start(Box::new(move |body, _| {
        if is_agents(body) {
            note(&seen);
            return Some(Reply::Text("It is so.".to_owned()));
        }
        is_main(body).then(|| match note(&noted) <= N_STARTS {
            true => Reply::Calls(vec![call(false)]),
            false => Reply::Text("Done.".to_owned()),
        })
    }))?;
    let mut command = scratch.command(program, model.base_url());
    let output = command.args(["-p", PROMPT]).output().context("Failed to run the program")?;
    let (answered, arrived) = (
        answered.lock().unwrap_or_else(PoisonError::into_inner),
        arrived.lock().unwrap_or_else(PoisonError::into_inner),
    );
    if !output.status.success() || arrived.len() != N_STARTS {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} agents of {N_STARTS} began: {}", arrived.len(), said.trim());
    }
    let gaps = answered.iter().zip(arrived.iter()).map(|(from, to)| (*to - *from).as_secs_f64() * 1e3);
    Ok(median(gaps.collect()))
}

/// What a process held while so many agents waited.
struct Held {
    megabytes: f64,
    n_agents: usize,
}

/// Keeps a conversation with so many agents waiting; with none, the conversation itself waits after a call.
fn measure_memory(program: &Path, n_agents: usize) -> anyhow::Result<Held> {
    let scratch = Scratch::new("agents")?;
    let barrier = Arc::new(Barrier::default());
    let (held, readme) = (Arc::clone(&barrier), scratch.project().join("README.md"));
    let input = format!("{{\"file_path\":\"{}\"}}", readme.display());
    let model = TurnModel::start(Box::new(move |body, _| {
        if is_agents(body) {
            held.wait();
            return Some(Reply::Text("It is so.".to_owned()));
        }
        let is_first = !body.contains("\"tool_result\"");
        is_main(body).then(|| match (is_first, n_agents) {
            (true, 0) => Reply::Calls(vec![("Read".to_owned(), input.clone())]),
            (true, n) => Reply::Calls((0..n).map(|_| call(true)).collect()),
            (false, 0) => {
                held.wait();
                Reply::Text("Done.".to_owned())
            }
            (false, _) => Reply::Text("Done.".to_owned()),
        })
    }))?;
    let mut command = scratch.command(program, model.base_url());
    let mut child = command.args(["-p", PROMPT]).spawn().context("Failed to start the program")?;
    let n_came = barrier.wait_for(n_agents.max(1));
    // What was needed to send the requests is given back by then.
    std::thread::sleep(Duration::from_millis(300));
    let megabytes = resident_megabytes(&child);
    barrier.open();
    let status = child.wait().context("Failed to wait for the program")?;
    if !status.success() || n_came == 0 {
        bail!("{n_came} of {n_agents} agents came, and the program ended with {status}");
    }
    Ok(Held { megabytes: megabytes?, n_agents: if n_agents == 0 { 0 } else { n_came } })
}

fn resident_megabytes(child: &Child) -> anyhow::Result<f64> {
    let path = format!("/proc/{}/status", child.id());
    let status = std::fs::read_to_string(&path).with_context(|| format!("Failed to read `{path}`"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kilobytes.context("the process says nothing of its memory")? / 1024.0)
}

fn report(names: &[String], lines: &str) -> anyhow::Result<String> {
    let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split_whitespace().collect()).collect();
    let figure = |program: &str, what: &str| -> anyhow::Result<f64> {
        let of = rows.iter().filter(|row| row.len() == 3 && row[0] == program && row[1] == what);
        let figures: Vec<f64> = of.filter_map(|row| row[2].parse().ok()).collect();
        match figures.is_empty() {
            true => bail!("Nothing was measured for `{program} {what}`"),
            false => Ok(median(figures)),
        }
    };
    let programs: Vec<&str> = ["loci", "claude"].into_iter().take(names.len()).collect();
    let mut start = Vec::new();
    let (mut each, mut added, mut alone, mut whole) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for program in &programs {
        let (n_agents, idle, before) =
            (figure(program, "agents")?, figure(program, "idle")?, figure(program, "alone")?);
        start.push((figure(program, "start")?, String::new()));
        let waiting = if n_agents < N_IDLE as f64 { format!(" ({n_agents:.0} came)") } else { String::new() };
        each.push(((idle - before) / n_agents, waiting.clone()));
        added.push((idle - before, waiting));
        alone.push((before, String::new()));
        whole.push((idle, String::new()));
    }
    let row = |label: &str, unit: &str, figures: &[(f64, String)], aim: Option<f64>| {
        let cells: String =
            figures.iter().map(|(figure, note)| format!(" {figure:.2} {unit}{note} |")).collect();
        let verdict = match (aim, figures.first()) {
            (Some(aim), Some((ours, _))) => {
                format!("{aim} {unit}: {}", if *ours <= aim { "met" } else { "missed" })
            }
            _ => "-".to_owned(),
        };
        format!("| {label} |{cells} {verdict} |")
    };
    let lines = [
        format!("| | {} | aim for loci |", names.join(" | ")),
        format!("|---|{}---|", "---:|".repeat(names.len())),
        row(
            "from the answer that calls `Agent` to the agent's first request",
            "ms",
            &start,
            Some(START_AIM_MS),
        ),
        row("what one agent that waits takes", "MB", &each, Some(START_AIM_MB)),
        row(&format!("what {N_IDLE} take"), "MB", &added, Some(IDLE_AIM_MB)),
        row("the process without an agent", "MB", &alone, None),
        row(&format!("the process with {N_IDLE}"), "MB", &whole, None),
    ];
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_a_table_with_verdicts() {
        let lines = "loci start 1.5\nloci start 1.0\nloci start 9.0\nloci alone 20\nloci idle 30\nloci agents 20\n\
                     claude start 30\nclaude alone 200\nclaude idle 240\nclaude agents 10\n";
        let names = ["loci 1".to_owned(), "Claude Code 2".to_owned()];
        let table = report(&names, lines).unwrap();
        for row in [
            "first request | 1.50 ms | 30.00 ms | 2 ms: met |",
            "| what one agent that waits takes | 0.50 MB | 4.00 MB (10 came) | 1 MB: met |",
            "| what 20 take | 10.00 MB | 40.00 MB (10 came) | 40 MB: met |",
            "| the process with 20 | 30.00 MB | 240.00 MB | - |",
        ] {
            assert!(table.contains(row), "{row}\n{table}");
        }
        assert!(report(&names[..1], &lines.replace("idle 30", "idle 70")).unwrap().contains("40 MB: missed"));
        assert!(report(&names, "loci start 1").is_err());
    }

    #[test]
    fn requests_are_told_apart() {
        let agents = format!("{{\"messages\":[\"{TASK}\"]}}");
        let main = format!("{{\"messages\":[\"{PROMPT}\",\"{TASK}\"]}}");
        assert!(is_agents(&agents) && !is_main(&agents) && is_main(&main) && !is_agents(&main));
    }
}
