//! `cargo xtask bench skills`: what five hundred skills and fifty plugins add to a start.
//!
//! The program is watched from outside: the time from its start to its first request to the scripted model, with an empty
//! home and with a full one, in turns. All runs have loopback only and a key that is none.

use super::isolation::Isolation;
use super::program_run::{Scratch, existing, median};
use super::turn_model::{Reply, TurnModel};
use super::{build, machine, page};
use crate::bench::figures::Program;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const USAGE: &str = "\
Usage: cargo xtask bench skills [options]

  --loci BIN     a loci that is built already; without it, one is built
  --runs N       runs of each, of which the median counts; default 15
  --write        put the table into docs/benchmarks.md";

/// What all of them may add, in milliseconds.
const AIM: f64 = 5.0;
const N_SKILLS: usize = 500;
const N_PLUGINS: usize = 50;
const PROMPT: &str = "measure the skills of this session";
/// The word with which the chore calls itself where there is no network.
const INSIDE: &str = "--inside";

#[derive(Debug, Default, PartialEq)]
struct Args {
    loci: Option<PathBuf>,
    runs: u32,
    write: bool,
    is_inside: bool,
}

impl Args {
    fn parse(words: &[String]) -> anyhow::Result<Option<Self>> {
        let mut args = Self { runs: 15, ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--loci" => args.loci = Some(PathBuf::from(value()?)),
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
    let name = machine::name(&isolation, Program::Loci, &loci)?;
    let machine = machine::describe();
    let ourselves = std::env::current_exe().context("Failed to find this program")?;
    let mut command = isolation.command(ourselves);
    command.args(["bench", "skills", INSIDE, "--runs", &args.runs.to_string()]).arg("--loci").arg(&loci);
    let output = command.stderr(Stdio::inherit()).output().context("Failed to measure without a network")?;
    if !output.status.success() {
        bail!("The measurement failed");
    }
    let report = report(&name, &String::from_utf8_lossy(&output.stdout))?;
    println!("{machine}\n\n{report}");
    if args.write {
        let command = format!("```sh\ncargo xtask bench skills --runs {} --write\n```", args.runs);
        page::write(root, page::SKILLS, &format!("{machine}\n\n{command}\n\n{report}"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

/// What a home holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Home {
    Empty,
    Skills,
    Plugins,
    Both,
}

impl Home {
    const ALL: [Self; 4] = [Self::Empty, Self::Skills, Self::Plugins, Self::Both];

    fn key(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Skills => "skills",
            Self::Plugins => "plugins",
            Self::Both => "both",
        }
    }

    fn fill(self, config: &Path) -> anyhow::Result<()> {
        if matches!(self, Self::Skills | Self::Both) {
            for n in 0..N_SKILLS {
                write(&config.join(format!("skills/skill-{n}/SKILL.md")), &skill_text(n))?;
            }
        }
        if matches!(self, Self::Plugins | Self::Both) {
            let mut installed = Vec::new();
            for n in 0..N_PLUGINS {
                let root = config.join(format!("plugins/cache/market/plugin-{n}/1.0.0"));
                let manifest = format!("{{\"name\":\"plugin-{n}\",\"version\":\"1.0.0\"}}");
                write(&root.join(".claude-plugin/plugin.json"), &manifest)?;
                write(&root.join("skills/work/SKILL.md"), &skill_text(n))?;
                let agent = format!("---\nname: helper\ndescription: Helps with {n}\n---\nHelp.\n");
                write(&root.join("agents/helper.md"), &agent)?;
                let root = root.display();
                installed.push(format!(
                    "\"plugin-{n}@market\":[{{\"scope\":\"user\",\"installPath\":\"{root}\",\"version\":\"1.0.0\"}}]"
                ));
            }
            let file = format!("{{\"version\":2,\"plugins\":{{{}}}}}", installed.join(","));
            write(&config.join("plugins/installed_plugins.json"), &file)?;
        }
        Ok(())
    }
}

fn skill_text(n: usize) -> String {
    let steps = "- Look at the files first, then change as little as can be.\n".repeat(20);
    format!(
        "---\ndescription: Does the work number {n} whenever it has to be done\nallowed-tools: Read, Grep\n---\n{steps}"
    )
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).context("Failed to make a directory")?;
    }
    std::fs::write(path, text).with_context(|| format!("Failed to write `{}`", path.display()))
}

/// Measures everything and prints a line a figure: what the home holds, milliseconds to the first request.
fn measure_inside(args: &Args) -> anyhow::Result<()> {
    let loci = args.loci.as_deref().context("`--inside` needs `--loci`")?;
    let homes: Vec<(Home, Scratch)> =
        Home::ALL.into_iter().map(|home| Ok((home, prepared(home)?))).collect::<anyhow::Result<_>>()?;
    // The first round warms the disk's cache for all alike.
    for round in 0..=args.runs {
        for (home, scratch) in &homes {
            let first = measure(loci, scratch)?;
            if round > 0 {
                println!("{} {first:.4}", home.key());
            }
        }
    }
    Ok(())
}

fn prepared(home: Home) -> anyhow::Result<Scratch> {
    let scratch = Scratch::new("skills")?;
    std::fs::create_dir_all(scratch.0.join("project")).context("Failed to make an empty project")?;
    std::fs::create_dir_all(scratch.0.join("home/.claude")).context("Failed to make an empty home")?;
    home.fill(&scratch.0.join("home/.claude"))?;
    Ok(scratch)
}

fn measure(program: &Path, scratch: &Scratch) -> anyhow::Result<f64> {
    let model = TurnModel::start(Box::new(move |body, _| {
        let is_main = body.contains(PROMPT) && body.contains("\"tools\":[{");
        is_main.then(|| Reply::Text("Done.".to_owned()))
    }))?;
    let mut command = Command::new(program);
    command.args(["-p", PROMPT, "--model", "claude-sonnet-4-5", "--no-session-persistence"]);
    command.current_dir(scratch.0.join("project")).env_clear().env("HOME", scratch.0.join("home"));
    command.env("TMPDIR", &scratch.0).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("ANTHROPIC_BASE_URL", model.base_url()).env("ANTHROPIC_API_KEY", "sk-ant-none");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let began = Instant::now();
    let output = command.spawn().context("Failed to start the program")?.wait_with_output();
    let output = output.context("Failed to wait for the program")?;
    let exchanges = model.exchanges();
    match exchanges.first().filter(|_| output.status.success()) {
        Some(first) => Ok((first.arrived - began).as_secs_f64() * 1e3),
        None => bail!("No request: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}

fn report(name: &str, lines: &str) -> anyhow::Result<String> {
    let figure = |home: Home| -> anyhow::Result<f64> {
        let of = lines.lines().filter_map(|line| line.split_once(' ')).filter(|(key, _)| *key == home.key());
        let figures: Vec<f64> = of.filter_map(|(_, figure)| figure.parse().ok()).collect();
        match figures.is_empty() {
            true => bail!("Nothing was measured for `{}`", home.key()),
            false => Ok(median(figures)),
        }
    };
    let empty = figure(Home::Empty)?;
    let row = |about: &str, home: Home, aim: &str| -> anyhow::Result<String> {
        let figure = figure(home)?;
        Ok(format!("| {about} | {figure:.2} ms | {:.2} ms | {aim} |", figure - empty))
    };
    let added = figure(Home::Both)? - empty;
    let verdict = if added < AIM { "under 5 ms: met" } else { "under 5 ms: missed" };
    Ok([
        format!("| start to first request, {name} | median | added | aim |"),
        "|---|---:|---:|---|".to_owned(),
        row("an empty home", Home::Empty, "-")?,
        row("500 skills", Home::Skills, "-")?,
        row("50 plugins with a skill and an agent each", Home::Plugins, "-")?,
        row("both", Home::Both, verdict)?,
    ]
    .join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_a_table_with_a_verdict() {
        let lines = "empty 20.0\nempty 22.0\nempty 21.0\nskills 23.5\nplugins 22.0\nboth 24.0\n";
        let text = report("loci 1", lines).unwrap();
        assert!(text.contains("| both | 24.00 ms | 3.00 ms | under 5 ms: met |"), "{text}");
        let slow = report("loci 1", "empty 20\nskills 1\nplugins 1\nboth 26\n").unwrap();
        assert!(slow.contains("| 6.00 ms | under 5 ms: missed |"), "{slow}");
        assert!(report("loci 1", "empty 1\n").is_err());
    }

    #[test]
    fn options_are_read() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let args = Args::parse(&words("--loci x --runs 3 --write")).unwrap().unwrap();
        assert_eq!((args.loci, args.runs, args.write), (Some("x".into()), 3, true));
        assert!(Args::parse(&words("--help")).unwrap().is_none() && Args::parse(&words("--runs 0")).is_err());
    }
}
