//! `cargo xtask bench terminal`: what the interface costs the person in front of it, beside its peers.
//!
//! A script (`terminal.py`) gives each program a pseudo terminal and a scripted model, presses keys and watches what is
//! written. This chore builds loci, shuts the network off, runs the script, and holds the figures against the aims.

use super::figures::Program;
use super::isolation::Isolation;
use super::{build, machine, page};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const USAGE: &str = "\
Usage: cargo xtask bench terminal [options]

  --loci BIN     a loci that is built already; without it, one is built
  --claude BIN   Claude Code, if it is to be measured beside it
  --codex BIN    Codex, likewise
  --runs N       starts and resumes of each, of which the median counts; default 3
  --load N       beside so many processes that do nothing but compute
  --only KINDS   of start, session, long, resume, with commas between
  --write        put the table into docs/benchmarks.md";

const SCRIPT: &str = "xtask/src/bench/terminal.py";

/// What is measured, in the order of the table: its unit, and how many times less than each peer is aimed at.
const MEASURES: &[Measure] = &[
    measure("prompt painted", "ms", Some(50.0), Some(3.0), None),
    measure("first key echoed", "ms", Some(50.0), Some(4.0), None),
    measure("key echo idle, median", "ms", None, None, None),
    measure("key echo idle, p95", "ms", Some(4.0), Some(10.0), None),
    measure("key echo streaming, median", "ms", None, None, None),
    measure("key echo streaming, p95", "ms", Some(15.0), Some(7.0), None),
    measure("key echo streaming, slowest", "ms", None, None, Some(20.0)),
    measure("key echo after 300 turns, p95", "ms", Some(8.0), Some(8.0), None),
    measure("bytes a streamed character", "", None, None, Some(2.0)),
    measure("full clears", "", None, None, Some(0.0)),
    measure("CPU streaming", "ms", Some(30.0), Some(15.0), None),
    measure("CPU idle 10 s", "ms", None, None, Some(5.0)),
    measure("bytes idle 10 s", "", None, None, Some(0.0)),
    measure("CPU a key", "ms", None, Some(5.0), None),
    measure("memory after start", "MB", Some(15.0), Some(8.0), None),
    measure("memory after 300 turns", "MB", Some(15.0), Some(7.0), None),
    measure("resume of 2,000 messages", "ms", Some(30.0), None, None),
    measure("paste of 1 MB to the next key", "ms", Some(6.0), Some(2.0), None),
];

/// One row of the table.
struct Measure {
    name: &'static str,
    unit: &'static str,
    /// How many times less than Claude Code it should be.
    claude: Option<f64>,
    /// How many times less than Codex.
    codex: Option<f64>,
    /// What it should be at most, whatever the peers do.
    most: Option<f64>,
}

const fn measure(
    name: &'static str,
    unit: &'static str,
    claude: Option<f64>,
    codex: Option<f64>,
    most: Option<f64>,
) -> Measure {
    Measure { name, unit, claude, codex, most }
}

#[derive(Debug, Default, PartialEq)]
struct Args {
    loci: Option<PathBuf>,
    claude: Option<PathBuf>,
    codex: Option<PathBuf>,
    /// Options that the script takes as they are.
    passed: Vec<String>,
    write: bool,
}

impl Args {
    fn parse(words: &[String]) -> anyhow::Result<Option<Self>> {
        let mut args = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--loci" => args.loci = Some(PathBuf::from(value()?)),
                "--claude" => args.claude = Some(PathBuf::from(value()?)),
                "--codex" => args.codex = Some(PathBuf::from(value()?)),
                "--runs" | "--load" | "--only" => args.passed.extend([word.clone(), value()?.clone()]),
                "--write" => args.write = true,
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
    let isolation = Isolation::find()?;
    let loci = match args.loci.clone() {
        Some(path) => path,
        None => build(root)?,
    };
    let peers = [(Program::Claude, args.claude.clone()), (Program::Codex, args.codex.clone())];
    let peers = peers.into_iter().filter_map(|(program, path)| Some((program, path?)));
    let programs: Vec<(Program, PathBuf)> = std::iter::once((Program::Loci, loci)).chain(peers).collect();
    let names =
        programs.iter().map(|(program, path)| Ok((*program, machine::name(&isolation, *program, path)?)));
    let names: Vec<(Program, String)> = names.collect::<anyhow::Result<_>>()?;
    let machine = machine::describe();

    let mut command = isolation.command("python3");
    command.arg(root.join(SCRIPT)).args(&args.passed);
    for (program, path) in &programs {
        let path = std::path::absolute(path).context("Failed to resolve a program's path")?;
        command.arg(format!("--{}", program.key())).arg(path);
    }
    let output = command.stderr(Stdio::inherit()).output().context("Failed to run the script")?;
    if !output.status.success() {
        bail!("The measurement failed");
    }
    let figures = parse(&String::from_utf8_lossy(&output.stdout))?;
    let report = report(&names, &figures);
    println!("{machine}\n\n{report}");
    if args.write {
        let peers: String = programs[1..]
            .iter()
            .map(|(program, _)| format!(" --{key} PEERS/{key}", key = program.key()))
            .collect();
        let passed: String = args.passed.iter().map(|word| format!(" {word}")).collect();
        let command = format!("```sh\ncargo xtask bench terminal{peers}{passed} --write\n```");
        page::write(root, page::TERMINAL, &format!("{machine}\n\n{command}\n\n{report}"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

/// The values of a measure, by program and name.
type Figures = BTreeMap<(String, String), Vec<f64>>;

fn parse(output: &str) -> anyhow::Result<Figures> {
    let mut figures = Figures::new();
    for line in output.lines() {
        let mut fields = line.split('\t');
        let row = (|| Some((fields.next()?, fields.next()?, fields.next()?.parse::<f64>().ok()?)))();
        let (program, measure, value) = row.with_context(|| format!("The script printed `{line}`"))?;
        figures.entry((program.to_owned(), measure.to_owned())).or_default().push(value);
    }
    Ok(figures)
}

fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn report(names: &[(Program, String)], figures: &Figures) -> String {
    let value = |program: Program, measure: &Measure| {
        median(figures.get(&(program.key().to_owned(), measure.name.to_owned()))?)
    };
    let heads: String = names.iter().map(|(_, name)| format!(" {name} |")).collect();
    let rules: String = names.iter().map(|_| "---:|").collect();
    let mut out = format!("| measure |{heads} aim | |\n|---|{rules}---|---|\n");
    for measure in MEASURES {
        let Some(own) = value(Program::Loci, measure) else { continue };
        let mut cells = String::new();
        let mut misses = Vec::new();
        let mut aims = Vec::new();
        for (program, _) in names {
            let Some(found) = value(*program, measure) else {
                cells.push_str(" |");
                continue;
            };
            let aim = match program {
                Program::Loci => None,
                Program::Claude => measure.claude,
                Program::Codex => measure.codex,
            };
            match program {
                Program::Loci => cells.push_str(&format!(" {} |", shown(found, measure.unit))),
                _ => cells.push_str(&format!(" {} ({}) |", shown(found, measure.unit), ratio(found, own))),
            }
            if let Some(aim) = aim {
                aims.push(format!("{} / {aim}", program.label()));
                misses.push(found < own * aim);
            }
        }
        if let Some(most) = measure.most {
            aims.push(format!("at most {}", shown(most, measure.unit)));
            misses.push(own > most);
        }
        let verdict = match (misses.is_empty(), misses.contains(&true)) {
            (true, _) => "",
            (false, true) => "missed",
            (false, false) => "met",
        };
        out.push_str(&format!("| {} |{cells} {} | {verdict} |\n", measure.name, aims.join(", ")));
    }
    out.trim_end().to_owned()
}

fn shown(value: f64, unit: &str) -> String {
    let digits = if value >= 100.0 || value == 0.0 { 0 } else { 2 };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

fn ratio(peer: f64, own: f64) -> String {
    match own > 0.0 {
        true => format!("{:.1}x", peer / own),
        false => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_held_against_the_aims() {
        let output = "loci\tprompt painted\t10\nloci\tprompt painted\t30\nloci\tprompt painted\t20\n\
                      claude\tprompt painted\t1000\ncodex\tprompt painted\t50\nloci\tfull clears\t0\n";
        let figures = parse(output).unwrap();
        let names = [
            (Program::Loci, "loci".to_owned()),
            (Program::Claude, "cc".to_owned()),
            (Program::Codex, "cx".to_owned()),
        ];
        let report = report(&names, &figures);
        let rows: Vec<&str> = report.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| prompt painted | 20.00 ms | 1000 ms (50.0x) | 50.00 ms (2.5x) | Claude Code / 50, Codex / 3 | missed |",
                "| full clears | 0 | | | at most 0 | met |",
            ]
        );
        assert!(parse("rubbish").is_err());
    }

    #[test]
    fn options_of_the_script_are_passed_on() {
        let words = ["--runs", "2", "--load", "8", "--claude", "c"].map(str::to_owned);
        let args = Args::parse(&words).unwrap().unwrap();
        assert_eq!(args.passed, ["--runs", "2", "--load", "8"]);
        assert_eq!(args.claude, Some(PathBuf::from("c")));
        assert!(Args::parse(&["--wrong".to_owned()]).is_err());
    }
}
