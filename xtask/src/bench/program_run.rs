//! Measuring loci, and Claude Code beside it, from outside and without a network: what the chores of that kind share.
//!
//! A chore calls itself where there is no network (`--inside`), prints a line a figure there, and makes a table of them here.

use super::figures::Program;
use super::isolation::Isolation;
use super::{build, machine, page};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The word with which a chore calls itself where there is no network.
const INSIDE: &str = "--inside";

/// A measurement: what is done without a network, and what is made of it.
pub(crate) struct Measurement {
    /// What it is called behind `bench`.
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    /// Its part of the page.
    pub(crate) part: &'static str,
    /// Measures, and prints a line a figure.
    pub(crate) inside: fn(&Args) -> anyhow::Result<()>,
    /// Makes the table of the programs' names and the lines.
    pub(crate) report: fn(&[String], &str) -> anyhow::Result<String>,
}

impl Measurement {
    /// Builds, measures without a network, prints, and writes the page if asked to.
    pub(crate) fn run(&self, root: &Path, words: &[String]) -> anyhow::Result<()> {
        let Some(args) = Args::parse(words, self.usage)? else {
            println!("{}", self.usage);
            return Ok(());
        };
        if args.is_inside {
            return (self.inside)(&args);
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
        command.args(["bench", self.name, INSIDE, "--runs", &args.runs.to_string()]).arg("--loci").arg(&loci);
        if let Some(path) = &claude {
            command.arg("--claude").arg(path);
        }
        let output =
            command.stderr(Stdio::inherit()).output().context("Failed to measure without a network")?;
        if !output.status.success() {
            bail!("The measurement failed");
        }
        let report = (self.report)(&names, &String::from_utf8_lossy(&output.stdout))?;
        println!("{machine}\n\n{report}");
        if args.write {
            let peer = if claude.is_some() { " --claude PEERS/claude" } else { "" };
            let command =
                format!("```sh\ncargo xtask bench {}{peer} --runs {} --write\n```", self.name, args.runs);
            page::write(root, self.part, &format!("{machine}\n\n{command}\n\n{report}"))?;
            println!("wrote {}", page::PATH);
        }
        Ok(())
    }
}

/// What a measurement of this kind was asked for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Args {
    pub(crate) loci: Option<PathBuf>,
    pub(crate) claude: Option<PathBuf>,
    pub(crate) runs: u32,
    write: bool,
    is_inside: bool,
}

impl Args {
    fn parse(words: &[String], usage: &str) -> anyhow::Result<Option<Self>> {
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
                other => bail!("Unknown option: `{other}`\n\n{usage}"),
            }
        }
        Ok(Some(args))
    }
}

pub(crate) fn existing(path: &Path) -> anyhow::Result<PathBuf> {
    if !path.is_file() {
        bail!("There is no file `{}`", path.display());
    }
    std::path::absolute(path).with_context(|| format!("Failed to resolve `{}`", path.display()))
}

/// A directory that is removed at the end.
pub(crate) struct Scratch(pub(super) PathBuf);

impl Scratch {
    /// Makes an empty home and a project with one file.
    pub(crate) fn new(what: &str) -> anyhow::Result<Self> {
        let stamp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let name = format!("loci-bench-{what}-{}-{}", std::process::id(), stamp.as_nanos());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).context("Failed to make a temporary directory")?;
        let scratch = Self(path.canonicalize().context("Failed to find the temporary directory")?);
        std::fs::create_dir_all(scratch.home().join(".claude")).context("Failed to make an empty home")?;
        std::fs::create_dir_all(scratch.project()).context("Failed to make an empty project")?;
        std::fs::write(scratch.project().join("README.md"), "# Hello\n").context("Failed to write a file")?;
        Ok(scratch)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.0.join("project")
    }

    /// Returns what starts a program in the project, with a model on loopback and nothing of this machine's.
    pub(crate) fn command(&self, program: &Path, base_url: &str) -> Command {
        let mut command = Command::new(program);
        command.args(["--model", "claude-sonnet-4-5"]);
        command.current_dir(self.project()).env_clear().env("HOME", self.home()).env("TMPDIR", &self.0);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("ANTHROPIC_BASE_URL", base_url).env("ANTHROPIC_API_KEY", "sk-ant-none");
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in the temporary directory, which is emptied anyway.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
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
    fn arguments_are_checked() {
        let parse = |text: &str| Args::parse(&words(text), "usage");
        let args = parse("--runs 3 --write --claude /x").unwrap().unwrap();
        let claude = Some(PathBuf::from("/x"));
        assert_eq!(args, Args { claude, runs: 3, write: true, ..Args::default() });
        assert_eq!(parse("--help").unwrap(), None);
        for bad in ["--runs 0", "--loci", "--fast"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
