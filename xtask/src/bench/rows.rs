//! Measurements that an example of `loci-storage` makes, in its own process and on files of its own making: it prints a row
//! for each piece of work, and a report turns them into a table.

use super::{machine, page};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// One piece of work and its times, in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) median: f64,
    pub(crate) p95: f64,
    pub(crate) first: f64,
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measurement {
    /// Its word after `cargo xtask bench`.
    pub(crate) name: &'static str,
    /// The part of the page that it writes.
    pub(crate) part: &'static str,
    /// The example that measures.
    pub(crate) example: &'static str,
    /// Makes a table of its rows.
    pub(crate) report: fn(&[Row]) -> anyhow::Result<String>,
}

impl Measurement {
    /// Measures, prints, and writes the page if asked to.
    pub(crate) fn run(&self, root: &Path, words: &[String]) -> anyhow::Result<()> {
        let is_written = match words {
            [] => false,
            [word] if word == "--write" => true,
            _ => bail!("Usage: cargo xtask bench {} [--write]", self.name),
        };
        let machine = machine::describe();
        let report = (self.report)(&parse(&measure(root, self.example)?)?)?;
        println!("{machine}\n\n{report}");
        if is_written {
            let command = format!("```sh\ncargo xtask bench {} --write\n```", self.name);
            page::write(root, self.part, &format!("{machine}\n\n{command}\n\n{report}"))?;
            println!("wrote {}", page::PATH);
        }
        Ok(())
    }
}

/// Shows microseconds as milliseconds.
pub(crate) fn ms(us: f64) -> String {
    format!("{:.2} ms", us / 1000.0)
}

fn measure(root: &Path, example: &str) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "-p", "loci-storage", "--example", example]);
    let output = command.current_dir(root).output().context("Failed to run cargo")?;
    if !output.status.success() {
        bail!("The measurement failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("The measurement did not print text")
}

/// Reads rows.
pub(crate) fn parse(text: &str) -> anyhow::Result<Vec<Row>> {
    text.lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, median, p95, first] = words[..] else { bail!("Not a row: `{line}`") };
            let number = |word: &str| word.parse::<f64>().with_context(|| format!("Not a number: `{word}`"));
            let name = name.to_owned();
            Ok(Row { name, median: number(median)?, p95: number(p95)?, first: number(first)? })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_is_no_row_is_an_error() {
        for (text, expected) in [("empty 1 2\n", "Not a row"), ("empty a 2 3\n", "Not a number")] {
            assert!(parse(text).unwrap_err().to_string().starts_with(expected));
        }
        let row = Row { name: "a".to_owned(), median: 1.0, p95: 2.5, first: 3.0 };
        assert_eq!(parse("a 1 2.5 3\n").unwrap(), [row]);
    }
}
