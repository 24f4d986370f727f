//! What `cargo xtask bench` was asked for.

use super::figures::Program;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

pub(crate) const USAGE: &str = "\
Usage: cargo xtask bench [options] [scenario]...
       cargo xtask bench sessions [options]      what sessions cost by their size; --help says more
       cargo xtask bench agents [options]        what sending out agents costs; --help says more
       cargo xtask bench hooks [options]         what hooks cost a call; --help says more
       cargo xtask bench permissions [--write]   what a permission decision costs with a thousand rules
       cargo xtask bench terminal [options]      what the interface costs; --help says more

  --harness PATH   the measuring script; or LOCI_BENCH_HARNESS; default ../shared/bench/peers.py
  --claude BIN     Claude Code, if it is to be measured; or LOCI_BENCH_CLAUDE
  --codex BIN      Codex, if it is to be measured; or LOCI_BENCH_CODEX
  --runs N         runs of each scenario, of which the median counts; default 5
  --write          put the tables into docs/benchmarks.md

Scenarios: hello (one text turn), turns:N (N turns that read a file), resume:MB (resume a session of MB
megabytes). Default: hello turns:200. All runs have loopback only, an empty home and a key that is none.";

const DEFAULT_SCENARIOS: [&str; 2] = ["hello", "turns:200"];

/// The arguments, checked.
#[derive(Debug, PartialEq)]
pub(crate) struct Args {
    pub(crate) harness: PathBuf,
    pub(crate) peers: Vec<(Program, PathBuf)>,
    pub(crate) runs: u32,
    pub(crate) write: bool,
    pub(crate) scenarios: Vec<String>,
}

impl Args {
    /// Reads the words of the command line; `None` asks for help. Files that are named must exist.
    pub(crate) fn parse(root: &Path, words: Vec<String>) -> anyhow::Result<Option<Args>> {
        let Some(written) = Written::parse(words)? else { return Ok(None) };
        written.resolve(root, |name| std::env::var(name).ok()).map(Some)
    }

    /// Returns how to do it again, without paths of this machine.
    pub(crate) fn command_for_page(&self) -> String {
        let peers =
            self.peers.iter().map(|(program, _)| format!(" --{key} PEERS/{key}", key = program.key()));
        let peers: String = peers.collect();
        let scenarios = self.scenarios.join(" ");
        format!(
            "```sh\ncargo xtask bench --harness peers.py{peers} --runs {} {scenarios} --write\n```",
            self.runs
        )
    }
}

/// The arguments as written, before the machine is looked at.
#[derive(Debug, Default, PartialEq)]
struct Written {
    harness: Option<String>,
    claude: Option<String>,
    codex: Option<String>,
    runs: Option<u32>,
    write: bool,
    scenarios: Vec<String>,
}

impl Written {
    fn parse(words: Vec<String>) -> anyhow::Result<Option<Written>> {
        let mut written = Written::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--harness" => written.harness = Some(value()?),
                "--claude" => written.claude = Some(value()?),
                "--codex" => written.codex = Some(value()?),
                "--runs" => {
                    let runs = value()?;
                    let runs = runs.parse().ok().filter(|runs| *runs > 0);
                    written.runs = Some(runs.context("`--runs` needs a number, at least 1")?);
                }
                "--write" => written.write = true,
                option if option.starts_with('-') => bail!("Unknown option: `{option}`\n\n{USAGE}"),
                scenario => written.scenarios.push(scenario.to_owned()),
            }
        }
        Ok(Some(written))
    }

    fn resolve(self, root: &Path, var: impl Fn(&str) -> Option<String>) -> anyhow::Result<Args> {
        let set = |name| var(name).filter(|value| !value.is_empty());
        let harness = self.harness.or_else(|| set("LOCI_BENCH_HARNESS")).map(PathBuf::from);
        let harness = harness.unwrap_or_else(|| root.join("../shared/bench/peers.py"));
        let claude = self.claude.or_else(|| set("LOCI_BENCH_CLAUDE")).map(|path| (Program::Claude, path));
        let codex = self.codex.or_else(|| set("LOCI_BENCH_CODEX")).map(|path| (Program::Codex, path));
        let peers =
            claude.into_iter().chain(codex).map(|(program, path)| Ok((program, existing(path.as_ref())?)));
        let defaults = || DEFAULT_SCENARIOS.map(str::to_owned).to_vec();
        Ok(Args {
            harness: existing(&harness).context("Failed to find the harness; name it with --harness PATH")?,
            peers: peers.collect::<anyhow::Result<_>>()?,
            runs: self.runs.unwrap_or(5),
            write: self.write,
            scenarios: if self.scenarios.is_empty() { defaults() } else { self.scenarios },
        })
    }
}

/// Makes a path absolute, for the harness changes directories; a symlink stays what it is.
fn existing(path: &Path) -> anyhow::Result<PathBuf> {
    if !path.is_file() {
        bail!("There is no file `{}`", path.display());
    }
    std::path::absolute(path).with_context(|| format!("Failed to resolve `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> anyhow::Result<Option<Written>> {
        Written::parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn options_and_scenarios_mix() {
        let written = parse("hello --runs 3 --claude /x/claude turns:20 --write").unwrap().unwrap();
        let expected = Written {
            claude: Some("/x/claude".to_owned()),
            runs: Some(3),
            write: true,
            scenarios: vec!["hello".to_owned(), "turns:20".to_owned()],
            ..Written::default()
        };
        assert_eq!(written, expected);
        assert_eq!(parse("hello --help").unwrap(), None);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            ("--runs", "`--runs` needs a value"),
            ("--runs 0", "`--runs` needs a number, at least 1"),
            ("--fast", "Unknown option: `--fast`"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
    }

    #[test]
    fn flags_win_over_variables_and_files_must_exist() {
        let root = crate::workspace_root();
        let [here, other] = ["Cargo.toml", "Cargo.lock"].map(|name| root.join(name).display().to_string());
        let resolve = |written: Written, vars: &[(&str, &str)]| {
            let vars: Vec<(String, String)> =
                vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            written.resolve(&root, |name| {
                vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
            })
        };
        let written = Written { harness: Some(here.clone()), ..Written::default() };
        let args =
            resolve(written, &[("LOCI_BENCH_HARNESS", "/none"), ("LOCI_BENCH_CODEX", &other)]).unwrap();
        assert_eq!(args.harness, Path::new(&here));
        assert_eq!(args.peers, [(Program::Codex, PathBuf::from(&other))]);
        assert_eq!(args.scenarios, ["hello", "turns:200"]);
        let error =
            resolve(Written { harness: Some("/none/peers.py".to_owned()), ..Written::default() }, &[]);
        assert_eq!(
            format!("{:#}", error.unwrap_err()),
            "Failed to find the harness; name it with --harness PATH: There is no file `/none/peers.py`"
        );
    }
}
