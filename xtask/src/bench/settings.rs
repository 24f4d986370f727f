//! `cargo xtask bench settings`: what a start spends on settings and instruction files.
//!
//! The measuring is done by an example of `loci-storage`, in its own process and on files of its own making.

use super::{machine, page};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// What a typical project may add to a start.
const BUDGET_MS: f64 = 2.0;

/// One project's times, in microseconds.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    name: String,
    median: f64,
    p95: f64,
    first: f64,
}

/// Measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let is_written = match words {
        [] => false,
        [word] if word == "--write" => true,
        _ => bail!("Usage: cargo xtask bench settings [--write]"),
    };
    let machine = machine::describe();
    let report = report(&parse(&measure(root)?)?)?;
    println!("{machine}\n\n{report}");
    if is_written {
        let command = "```sh\ncargo xtask bench settings --write\n```";
        page::write(root, page::SETTINGS, &format!("{machine}\n\n{command}\n\n{report}"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

fn measure(root: &Path) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "-p", "loci-storage", "--example", "load_settings"]);
    let output = command.current_dir(root).output().context("Failed to run cargo")?;
    if !output.status.success() {
        bail!("The measurement failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("The measurement did not print text")
}

fn parse(text: &str) -> anyhow::Result<Vec<Row>> {
    text.lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, median, p95, first] = words[..] else { bail!("Not a row: `{line}`") };
            let number = |word: &str| word.parse::<f64>().with_context(|| format!("Not a number: `{word}`"));
            Ok(Row {
                name: name.to_owned(),
                median: number(median)?,
                p95: number(p95)?,
                first: number(first)?,
            })
        })
        .collect()
}

fn report(rows: &[Row]) -> anyhow::Result<String> {
    let [empty, typical] = rows else { bail!("Not two rows: {rows:?}") };
    let ms = |us: f64| format!("{:.2} ms", us / 1000.0);
    let ratio = typical.median / empty.median.max(1.0);
    let added = (typical.median - empty.median) / 1000.0;
    let verdict = if added < BUDGET_MS { "met" } else { "missed" };
    let row = |row: &Row, ratio: String| {
        format!("| {} | {}{ratio} | {} | {} |", row.name, ms(row.median), ms(row.p95), ms(row.first))
    };
    Ok([
        "| project | median | 95 of 100 within | first load |".to_owned(),
        "|---|---:|---:|---:|".to_owned(),
        row(empty, String::new()),
        row(typical, format!(" ({ratio:.1}x)")),
        String::new(),
        format!("A typical project adds {added:.2} ms; at most {BUDGET_MS:.0} ms is the aim: {verdict}."),
    ]
    .join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_a_table_with_a_verdict() {
        let rows = parse("empty 100 120 300\ntypical 600 900 1500\n").unwrap();
        let text = report(&rows).unwrap();
        assert!(text.contains("| typical | 0.60 ms (6.0x) | 0.90 ms | 1.50 ms |"), "{text}");
        assert!(text.ends_with("adds 0.50 ms; at most 2 ms is the aim: met."), "{text}");
        let slow = report(&parse("empty 100 1 1\ntypical 2200 1 1\n").unwrap()).unwrap();
        assert!(slow.ends_with("missed."), "{slow}");
    }

    #[test]
    fn what_is_no_row_is_named() {
        for (text, expected) in [("empty 1 2\n", "Not a row"), ("empty a 2 3\n", "Not a number")] {
            assert!(parse(text).unwrap_err().to_string().starts_with(expected));
        }
        assert!(report(&[]).is_err());
    }
}
