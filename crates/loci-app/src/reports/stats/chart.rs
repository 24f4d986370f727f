//! Tables with bars, for terminals.

use loci_stdx::single_line;

use super::report::Used;
use crate::reports::display as format;

/// How long the longest bar is.
const BAR: usize = 24;
/// How long a name may be.
const NAME: usize = 48;
const COLUMNS: [&str; 7] = ["SESSIONS", "TURNS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST"];

/// One line of a table.
pub(super) enum Line<'a> {
    /// Figures under a name.
    Figures { name: String, used: &'a Used, has_cost: bool },
    /// Words about what is not shown.
    Note(String),
}

impl Line<'_> {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Figures { name, .. } | Self::Note(name) => name,
        }
    }

    fn amount(&self, measure: Measure) -> f64 {
        match self {
            Self::Figures { used, .. } => measure.amount(used),
            Self::Note(_) => 0.0,
        }
    }

    fn cells(&self) -> [String; 7] {
        let Self::Figures { used, has_cost, .. } = self else { return Default::default() };
        let usage = &used.usage;
        [
            used.n_sessions.to_string(),
            used.n_turns.to_string(),
            short(usage.input_tokens),
            short(usage.output_tokens),
            short(usage.cache_read_input_tokens),
            short(usage.cache_creation_input_tokens),
            if *has_cost { format::dollars(usage.cost_usd) } else { "unknown".to_owned() },
        ]
    }
}

/// What bars stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Cost,
    Tokens,
}

impl Measure {
    /// Takes the cost, unless nothing has one.
    pub(super) fn of(all: &Used) -> Self {
        if all.usage.cost_usd > 0.0 { Self::Cost } else { Self::Tokens }
    }

    fn amount(self, used: &Used) -> f64 {
        match self {
            Self::Cost => used.usage.cost_usd,
            Self::Tokens => used.n_tokens() as f64,
        }
    }
}

/// Draws a table with an empty line before it.
pub(super) fn table(title: &str, lines: &[Line<'_>], measure: Measure) -> String {
    let row = |line: &Line<'_>| (single_line(line.name(), NAME), line.cells());
    let rows: Vec<(String, [String; 7])> = lines.iter().map(row).collect();
    let longest = lines.iter().map(|line| line.amount(measure)).fold(0.0, f64::max);
    let n_name = rows.iter().map(|(name, _)| name.chars().count()).chain([title.len()]).max().unwrap_or(0);
    let mut widths = COLUMNS.map(str::len);
    for (_, cells) in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let draw = |name: &str, cells: [&str; 7], bar: &str| {
        let cells: String =
            cells.iter().zip(widths).map(|(cell, width)| format!("  {cell:>width$}")).collect();
        format!("{name:<n_name$}{cells}  {bar}").trim_end().to_owned() + "\n"
    };
    let mut text = format!("\n{}", draw(title, COLUMNS, ""));
    for (line, (name, cells)) in lines.iter().zip(&rows) {
        let bar = bar(line.amount(measure), longest);
        text.push_str(&draw(name, cells.each_ref().map(String::as_str), &bar));
    }
    text
}

/// Draws a bar in eighths of a character; whatever is there at all is seen.
fn bar(amount: f64, longest: f64) -> String {
    if amount <= 0.0 || longest <= 0.0 {
        return String::new();
    }
    let eighths = ((amount / longest * (BAR * 8) as f64).round() as usize).clamp(1, BAR * 8);
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{part}", "█".repeat(eighths / 8))
}

/// Returns a number in three digits or fewer and a letter.
pub(super) fn short(number: u64) -> String {
    let mut amount = number as f64;
    for unit in ["", "k", "M"] {
        if amount < 999.5 {
            let digits = usize::from(!unit.is_empty() && amount < 9.95);
            return format!("{amount:.digits$}{unit}");
        }
        amount /= 1_000.0;
    }
    format!("{amount:.1}G")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn numbers_are_short_and_bars_are_in_proportion() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (12_345, "12k"),
            (999_700, "1.0M"),
            (3_400_000, "3.4M"),
            (2_000_000_000, "2.0G"),
        ] {
            assert_eq!(short(number), expected);
        }
        assert_eq!((bar(0.0, 10.0), bar(10.0, 10.0).chars().count()), (String::new(), BAR));
        assert_eq!((bar(1.0, 48.0).as_str(), bar(0.001, 48.0).as_str()), ("▌", "▏"));
        assert_eq!(bar(1.0, 0.0), "");
    }

    #[test]
    fn columns_stand_under_one_another() {
        let mut dear = Used::default();
        (dear.n_sessions, dear.n_turns) = (2, 30);
        dear.usage.input_tokens = 12_345;
        dear.usage.cost_usd = 3.0;
        let mut cheap = Used::default();
        (cheap.n_sessions, cheap.n_turns) = (1, 1);
        cheap.usage.cost_usd = 1.5;
        let lines = [
            Line::Figures { name: "sonnet".to_owned(), used: &dear, has_cost: true },
            Line::Figures { name: "other".to_owned(), used: &cheap, has_cost: false },
            Line::Note("(and 3 more; --json)".to_owned()),
        ];
        expect![[r#"

            MODEL                 SESSIONS  TURNS  INPUT  OUTPUT  CACHE READ  CACHE WRITE     COST
            sonnet                       2     30    12k       0           0            0    $3.00  ████████████████████████
            other                        1      1      0       0           0            0  unknown  ████████████
            (and 3 more; --json)
        "#]]
        .assert_eq(&table("MODEL", &lines, Measure::Cost));
    }
}
