//! Measurements that a script makes from outside: this builds loci, shuts the network off, runs the script, and holds the
//! figures that it prints against the aims.

use super::figures::Program;
use super::isolation::Isolation;
use super::{build, machine, page};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// One row of the table.
pub(crate) struct Measure {
    name: &'static str,
    unit: &'static str,
    /// How many times less than Claude Code it should be.
    claude: Option<f64>,
    /// How many times less than Codex.
    codex: Option<f64>,
    /// What it should be at most, whatever the peers do.
    most: Option<f64>,
}

pub(crate) const fn measure(
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
    fn parse(bench: &ScriptBench, words: &[String]) -> anyhow::Result<Option<Self>> {
        let mut args = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--loci" => args.loci = Some(PathBuf::from(value()?)),
                "--claude" => args.claude = Some(PathBuf::from(value()?)),
                "--codex" => args.codex = Some(PathBuf::from(value()?)),
                "--write" => args.write = true,
                other if bench.passed.contains(&other) => {
                    args.passed.extend([word.clone(), value()?.clone()]);
                }
                other => bail!("Unknown option: `{other}`\n\n{}", bench.usage),
            }
        }
        Ok(Some(args))
    }
}

/// A measurement that a script makes.
pub(crate) struct ScriptBench {
    /// The word behind `cargo xtask bench`.
    pub(crate) verb: &'static str,
    /// The script, from the root of the repository.
    pub(crate) script: &'static str,
    pub(crate) usage: &'static str,
    /// Options that the script takes as they are, with a value each.
    pub(crate) passed: &'static [&'static str],
    /// The rows of the table, in order.
    pub(crate) measures: &'static [Measure],
    /// The part of the page that the table goes to.
    pub(crate) page: &'static str,
}

impl ScriptBench {
    /// Builds, measures without a network, prints, and writes the page if asked to.
    pub(crate) fn run(&self, root: &Path, words: &[String]) -> anyhow::Result<()> {
        let Some(args) = Args::parse(self, words)? else {
            println!("{}", self.usage);
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
        command.arg(root.join(self.script)).args(&args.passed);
        for (program, path) in &programs {
            let path = std::path::absolute(path).context("Failed to resolve a program's path")?;
            command.arg(format!("--{}", program.key())).arg(path);
        }
        let output = command.stderr(Stdio::inherit()).output().context("Failed to run the script")?;
        if !output.status.success() {
            bail!("The measurement failed");
        }
        let figures = parse(&String::from_utf8_lossy(&output.stdout))?;
        let report = report(self.measures, &names, &figures);
        println!("{machine}\n\n{report}");
        if args.write {
            let peers: String = programs[1..]
                .iter()
                .map(|(program, _)| format!(" --{key} PEERS/{key}", key = program.key()))
                .collect();
            // Where somebody keeps a program is nobody else's business.
            let name =
                |word: &String| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
            let passed: String =
                args.passed.iter().map(|word| format!(" {}", name(word).unwrap_or_default())).collect();
            let command = format!("```sh\ncargo xtask bench {}{peers}{passed} --write\n```", self.verb);
            page::write(root, self.page, &format!("{machine}\n\n{command}\n\n{report}"))?;
            println!("wrote {}", page::PATH);
        }
        Ok(())
    }
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

fn report(measures: &[Measure], names: &[(Program, String)], figures: &Figures) -> String {
    let value = |program: Program, measure: &Measure| {
        median(figures.get(&(program.key().to_owned(), measure.name.to_owned()))?)
    };
    let heads: String = names.iter().map(|(_, name)| format!(" {name} |")).collect();
    let rules: String = names.iter().map(|_| "---:|").collect();
    let mut out = format!("| measure |{heads} aim | |\n|---|{rules}---|---|\n");
    for measure in measures {
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
                Program::Loci => cells.push_str(&format!(" {} |", format_value(found, measure.unit))),
                _ => cells.push_str(&format!(
                    " {} ({}) |",
                    format_value(found, measure.unit),
                    ratio(found, own)
                )),
            }
            if let Some(aim) = aim {
                aims.push(format!("{} / {aim}", program.label()));
                misses.push(found < own * aim);
            }
        }
        if let Some(most) = measure.most {
            aims.push(format!("at most {}", format_value(most, measure.unit)));
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

fn format_value(value: f64, unit: &str) -> String {
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
    use crate::bench::terminal::MEASUREMENT as BENCH;

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
        let report = report(BENCH.measures, &names, &figures);
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
        let args = Args::parse(&BENCH, &words).unwrap().unwrap();
        assert_eq!(args.passed, ["--runs", "2", "--load", "8"]);
        assert_eq!(args.claude, Some(PathBuf::from("c")));
        assert!(Args::parse(&BENCH, &["--wrong".to_owned()]).is_err());
    }
}
