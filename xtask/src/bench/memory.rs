//! `cargo xtask bench memory`: what ten thousand memories cost a start and `loci memory`.

use super::page;
use super::rows::{Measurement, Row, ms};
use anyhow::Context;

/// What is measured.
pub(crate) const MEASUREMENT: Measurement =
    Measurement { name: "memory", part: page::MEMORY, example: "memories", report };

/// What each piece of work may take, in milliseconds; the list has no budget.
const BUDGETS: [(&str, &str, Option<f64>); 3] = [
    ("index", "the index, at every start", Some(5.0)),
    ("review", "`loci memory review`: 100 proposals, where they come from, what says otherwise", Some(50.0)),
    ("list", "`loci memory list`: every memory, compared with all others", None),
];

fn report(rows: &[Row]) -> anyhow::Result<String> {
    let mut lines = vec![
        "| with 10,000 memories | median | 95 of 100 within | first | aim |".to_owned(),
        "|---|---:|---:|---:|---:|".to_owned(),
    ];
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
    use super::super::rows::parse;
    use super::*;

    #[test]
    fn times_become_a_table_with_verdicts() {
        let text = report(&parse("index 100 120 300\nreview 60000 9 9\nlist 70000 9 9\n").unwrap()).unwrap();
        assert!(text.contains("| 0.10 ms | 0.12 ms | 0.30 ms | 5 ms: met |"), "{text}");
        assert!(text.contains("| 50 ms: missed |") && text.ends_with("| - |"), "{text}");
    }

    #[test]
    fn missing_figures_are_named() {
        assert!(report(&[]).unwrap_err().to_string().contains("`index`"));
    }
}
