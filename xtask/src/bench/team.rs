//! `cargo xtask bench team`: how many requests the server of a team's memories answers, with each database.
//!
//! The measuring is done by an example of `loci-team`, which plays the server and fifty members in its own process.

use super::{machine, page};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

const USAGE: &str = "Usage: cargo xtask bench team [--seconds N] [--write]";
const DATABASES: [(&str, &str); 2] = [("sqlite", "SQLite"), ("postgres", "PostgreSQL")];
const WORKS: [(&str, &str); 4] = [
    ("read", "fetch an entry of 2 kB"),
    ("list", "list 200 entries"),
    ("write", "replace an entry of 2 kB"),
    ("mixed", "four fetched, one replaced"),
];

/// One kind of work with one database.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    database: String,
    work: String,
    rate: f64,
    median: f64,
    p99: f64,
}

/// Measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let (seconds, is_written) = arguments(words)?;
    let machine = machine::describe();
    let report = report(&parse(&measure(root, seconds)?)?)?;
    println!("{machine}\n\n{report}");
    if is_written {
        let command = format!("```sh\ncargo xtask bench team --seconds {seconds} --write\n```");
        page::write(root, page::TEAM, &format!("{machine}\n\n{command}\n\n{report}"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

fn arguments(words: &[String]) -> anyhow::Result<(u64, bool)> {
    let (mut seconds, mut is_written) = (5, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--write" => is_written = true,
            "--seconds" => {
                let given = words.next().and_then(|it| it.parse().ok()).filter(|it| (1..=60).contains(it));
                seconds = given.context("`--seconds` needs a number from 1 to 60")?;
            }
            _ => bail!(USAGE),
        }
    }
    Ok((seconds, is_written))
}

fn measure(root: &Path, seconds: u64) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "-p", "loci-team", "--example", "load", "--"]);
    let output =
        command.arg(seconds.to_string()).current_dir(root).output().context("Failed to run cargo")?;
    if !output.status.success() {
        bail!("The measurement failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("The measurement did not print text")
}

/// Reads rows; what is not one is talk.
fn parse(text: &str) -> anyhow::Result<Vec<Row>> {
    let rows =
        text.lines().filter(|line| DATABASES.iter().any(|(key, _)| line.starts_with(&format!("{key} "))));
    rows.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [database, work, rate, median, p99] = words[..] else { bail!("Not a row: `{line}`") };
        let number = |word: &str| word.parse::<f64>().with_context(|| format!("Not a number: `{word}`"));
        Ok(Row {
            database: database.to_owned(),
            work: work.to_owned(),
            rate: number(rate)?,
            median: number(median)?,
            p99: number(p99)?,
        })
    })
    .collect()
}

fn report(rows: &[Row]) -> anyhow::Result<String> {
    let mut lines = vec![
        "| 50 members at once | database | requests a second | half within | 99 of 100 within |".to_owned(),
        "|---|---|---:|---:|---:|".to_owned(),
    ];
    let ms = |us: f64| format!("{:.2} ms", us / 1000.0);
    for (work, about) in WORKS {
        for (database, label) in DATABASES {
            let row = rows.iter().find(|row| row.database == database && row.work == work);
            let figures = match row {
                Some(row) => format!("{:.0} | {} | {}", row.rate, ms(row.median), ms(row.p99)),
                None if database == "sqlite" => bail!("Nothing was measured for `{database} {work}`"),
                None => "not on this machine | - | -".to_owned(),
            };
            lines.push(format!("| {about} | {label} | {figures} |"));
        }
    }
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_table_and_a_database_may_be_missing() {
        let text = "sqlite read 9000 500 2500\nsqlite list 1 1 1\nsqlite write 1 1 1\nsqlite mixed 1 1 1\n\
                    other talk\npostgres read 8000 700 3000\n";
        let table = report(&parse(text).unwrap()).unwrap();
        assert!(table.contains("| fetch an entry of 2 kB | SQLite | 9000 | 0.50 ms | 2.50 ms |"), "{table}");
        assert!(
            table.contains("| fetch an entry of 2 kB | PostgreSQL | 8000 | 0.70 ms | 3.00 ms |"),
            "{table}"
        );
        assert!(table.contains("| list 200 entries | PostgreSQL | not on this machine | - | - |"), "{table}");
        assert!(report(&[]).unwrap_err().to_string().contains("`sqlite read`"));
        assert!(parse("sqlite read 1 2\n").is_err());
    }

    #[test]
    fn arguments_are_checked() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(arguments(&words("")).unwrap(), (5, false));
        assert_eq!(arguments(&words("--seconds 2 --write")).unwrap(), (2, true));
        for bad in ["--seconds", "--seconds 0", "--seconds 99", "--fast"] {
            assert!(arguments(&words(bad)).is_err(), "{bad}");
        }
    }
}
