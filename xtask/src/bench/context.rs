//! `cargo xtask bench context`: what the steps before a request cost, by the size of the conversation, and what a compaction
//! adds between a response and the next request of a real process.

use super::{machine, page};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const USAGE: &str = "Usage: cargo xtask bench context [--write] [--loci PATH]";

/// Measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let Wanted { writes, loci } = parse(words)?;
    let machine = machine::describe();
    let steps = measure(root, "loci-context", "pipeline", &[])?;
    println!("{steps}\n");
    let loci = loci.map_or_else(|| super::build(root), Ok)?;
    let whole = measure(root, "loci-testkit", "compacting", &[&loci])?;
    println!("{whole}");
    if writes {
        let command = "```sh\ncargo xtask bench context --write\n```".to_owned();
        page::write(root, page::CONTEXT, &[machine, command, steps, whole].join("\n\n"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

#[derive(Debug, Default, PartialEq)]
struct Wanted {
    /// Whether the page is written.
    writes: bool,
    /// A loci that is built already.
    loci: Option<PathBuf>,
}

fn parse(words: &[String]) -> anyhow::Result<Wanted> {
    let mut wanted = Wanted::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--write" => wanted.writes = true,
            "--loci" => wanted.loci = Some(words.next().context(USAGE)?.into()),
            _ => bail!(USAGE),
        }
    }
    Ok(wanted)
}

fn measure(root: &Path, package: &str, example: &str, args: &[&Path]) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["run", "--quiet", "--release", "--package", package, "--example", example, "--"])
        .args(args);
    let output =
        command.current_dir(root).stderr(Stdio::inherit()).output().context("Failed to run cargo")?;
    if !output.status.success() {
        bail!("The measurement `{example}` failed: see above");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_or_refused() {
        let parsed = |line: &str| parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parsed("").unwrap(), Wanted::default());
        let both = Wanted { writes: true, loci: Some("some/loci".into()) };
        assert_eq!(parsed("--write --loci some/loci").unwrap(), both);
        for line in ["--loci", "--read", "some/loci"] {
            assert!(parsed(line).unwrap_err().to_string().starts_with("Usage:"), "{line}");
        }
    }
}
