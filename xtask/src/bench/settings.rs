//! `cargo xtask bench settings`: what a start spends on settings and instruction files.

use super::page;
use super::rows::{Measurement, Row, ms};
use anyhow::bail;

/// What is measured.
pub(crate) const MEASUREMENT: Measurement =
    Measurement { name: "settings", part: page::SETTINGS, example: "load_settings", report };

/// What a typical project may add to a start.
const BUDGET_MS: f64 = 2.0;

fn report(rows: &[Row]) -> anyhow::Result<String> {
    let [empty, typical] = rows else { bail!("Not two rows: {rows:?}") };
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
    use super::super::rows::parse;
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
    fn other_than_two_rows_are_no_report() {
        assert!(report(&[]).is_err());
    }
}
