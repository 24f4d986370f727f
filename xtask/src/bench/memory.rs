//! `cargo xtask bench memory`: what ten thousand memories cost a start and `loci memory`.
//!
//! The measuring is done by an example of `loci-storage`, in its own process and on files of its own making.

use super::{machine, page};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// What each piece of work may take, in milliseconds; the list has no budget.
const BUDGETS: [(&str, &str, Option<f64>); 3] = [
    ("index", "the index, at every start", Some(5.0)),
    ("review", "`loci memory review`: 100 proposals, and where they come from", Some(50.0)),
    ("list", "`loci memory list`: every memory, compared with all others", None),
];

/// One piece of work and its times, in microseconds.
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
        _ => bail!("Usage: cargo xtask bench memory [--write]"),
    };
    let machine = machine::describe();
    let report = report(&parse(&measure(root)?)?)?;
    println!("{machine}\n\n{report}");
    if is_written {
        let command = "```sh\ncargo xtask bench memory --write\n```";
        page::write(root, page::MEMORY, &format!("{machine}\n\n{command}\n\n{report}"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

fn measure(root: &Path) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "-p", "loci-storage", "--example", "memories"]);
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
    let mut lines = vec![
        "| with 10,000 memories | median | 95 of 100 within | first | aim |".to_owned(),
        "|---|---:|---:|---:|---:|".to_owned(),
    ];
    let ms = |us: f64| format!("{:.2} ms", us / 1000.0);
    for (name, about, budget) in BUDGETS {
        let row = rows.iter().find(|row| row.name == name);
        let row = row.with_context(|| format!("Nothing was measured for `{name}`"))?;
        let aim = budget.map_or("-".to_owned(), |budget| {
            let verdict = if row.median / 1000.0 < budget { "met" } else { "missed" };
            format!("{budget:.0} ms: {verdict}")
        });
        lines.push(format!("| {about} | {} | {} | {} | {aim} |", ms(row.median), ms(row.p95), ms(row.first)));
    }
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_a_table_with_verdicts() {
        let text = report(&parse("index 100 120 300\nreview 60000 9 9\nlist 70000 9 9\n").unwrap()).unwrap();
        assert!(text.contains("| 0.10 ms | 0.12 ms | 0.30 ms | 5 ms: met |"), "{text}");
        assert!(text.contains("| 50 ms: missed |") && text.ends_with("| - |"), "{text}");
    }

    #[test]
    fn what_is_missing_or_no_row_is_named() {
        assert!(parse("index 1 2\n").is_err() && parse("index a 2 3\n").is_err());
        assert!(report(&[]).unwrap_err().to_string().contains("`index`"));
    }
}
