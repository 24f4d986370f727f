//! What the harness printed, as numbers.
//!
//! It prints a headline per scenario and a line per program; ratios we make ourselves:
//!
//! ```text
//! ## hello (median of 5)
//! loci    rc=0 wall=    20.1ms cpu=    10.0ms rss=   12.5MB first_request=    11.0ms gap=    nanms requests=1 lastbody=1B
//! ```

use anyhow::bail;

/// Who was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Loci,
    Claude,
    Codex,
}

impl Program {
    const ALL: [Program; 3] = [Program::Loci, Program::Claude, Program::Codex];

    /// Returns the name the harness knows it by.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Program::Loci => "loci",
            Program::Claude => "claude",
            Program::Codex => "codex",
        }
    }

    /// Returns the name people know it by.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Program::Loci => "loci",
            Program::Claude => "Claude Code",
            Program::Codex => "Codex",
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    FirstRequest,
    Gap,
    Wall,
    Cpu,
    PeakMemory,
}

impl Measure {
    pub(crate) const ALL: [Measure; 5] =
        [Measure::FirstRequest, Measure::Gap, Measure::Wall, Measure::Cpu, Measure::PeakMemory];

    fn key(self) -> &'static str {
        match self {
            Measure::FirstRequest => "first_request=",
            Measure::Gap => "gap=",
            Measure::Wall => "wall=",
            Measure::Cpu => "cpu=",
            Measure::PeakMemory => "rss=",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Measure::FirstRequest => "exec to first request",
            Measure::Gap => "gap between response and next request",
            Measure::Wall => "whole run",
            Measure::Cpu => "CPU time",
            Measure::PeakMemory => "peak memory",
        }
    }

    /// Returns a figure with as many digits as it is worth.
    pub(crate) fn show(self, figure: f64) -> String {
        let unit = if self == Measure::PeakMemory { "MB" } else { "ms" };
        match figure {
            ..10.0 => format!("{figure:.2} {unit}"),
            10.0..100.0 => format!("{figure:.1} {unit}"),
            _ => format!("{figure:.0} {unit}"),
        }
    }
}

/// The medians of one scenario.
#[derive(Debug, PartialEq)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    rows: Vec<Row>,
}

#[derive(Debug, PartialEq)]
struct Row {
    program: Program,
    exit_code: Option<i32>,
    line: String,
}

impl Scenario {
    /// Returns a median, if it was measured.
    pub(crate) fn figure(&self, program: Program, measure: Measure) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.program == program)?;
        number_after(&row.line, measure.key())
    }

    /// Returns how many times loci's figure goes into that of a peer.
    pub(crate) fn ratio(&self, peer: Program, measure: Measure) -> Option<f64> {
        Some(self.figure(peer, measure)? / self.figure(Program::Loci, measure)?)
    }
}

/// Reads the harness's output.
pub(crate) fn parse(output: &str) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("## ").and_then(|line| line.split(' ').next()) {
            scenarios.push(Scenario { name: name.to_owned(), rows: Vec::new() });
        } else if let (Some(row), Some(scenario)) = (parse_row(line), scenarios.last_mut()) {
            scenario.rows.push(row);
        }
    }
    scenarios
}

/// Says when a program failed or is missing: its figures would be worth nothing.
pub(crate) fn ensure_whole(
    measured: &[Scenario],
    programs: impl Iterator<Item = Program> + Clone,
    scenarios: &[String],
) -> anyhow::Result<()> {
    for name in scenarios {
        let Some(scenario) = measured.iter().find(|scenario| scenario.name == *name) else {
            bail!("The harness said nothing of `{name}`");
        };
        for program in programs.clone() {
            match scenario.rows.iter().find(|row| row.program == program) {
                Some(Row { exit_code: Some(0), .. }) => {}
                Some(row) => bail!("{} failed in `{name}`: {}", program.label(), row.line),
                // Codex has no session files of the shared format to resume.
                None if program == Program::Codex && name.starts_with("resume") => {}
                None => bail!("The harness said nothing of {} in `{name}`", program.label()),
            }
        }
    }
    Ok(())
}

fn parse_row(line: &str) -> Option<Row> {
    let first = line.split_whitespace().next()?;
    let program = Program::ALL.into_iter().find(|program| program.key() == first)?;
    let exit_code = number_after(line, "rc=").map(|code| code as i32);
    Some(Row { program, exit_code, line: line.to_owned() })
}

/// Reads the number behind ` key=`, which may be padded; what is not a number was not measured.
fn number_after(line: &str, key: &str) -> Option<f64> {
    let rest = line.split_once(&format!(" {key}"))?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
## hello (median of 5)
loci    rc=0 wall=    20.1ms cpu=    10.0ms rss=   12.5MB first_request=    11.0ms gap=    nanms requests=1 lastbody=9B
claude  rc=0 wall=  1020.1ms cpu=   900.0ms rss=  250.0MB first_request=   880.0ms gap=    nanms requests=1 lastbody=9B
ratio claude/loci wall=50.7x
## turns:200 (median of 5)
loci    rc=1 wall=   200.0ms cpu=   100.0ms rss=   20.0MB first_request=    11.0ms gap=   0.25ms requests=201 lastbody=9B
";

    #[test]
    fn figures_are_read() {
        let scenarios = parse(OUTPUT);
        let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        assert_eq!(names, ["hello", "turns:200"]);
        assert_eq!(scenarios[0].figure(Program::Loci, Measure::FirstRequest), Some(11.0));
        assert_eq!(scenarios[0].figure(Program::Loci, Measure::Gap), None);
        assert_eq!(scenarios[0].figure(Program::Codex, Measure::Wall), None);
        assert_eq!(scenarios[0].ratio(Program::Claude, Measure::FirstRequest), Some(80.0));
        assert_eq!(scenarios[0].ratio(Program::Claude, Measure::PeakMemory), Some(20.0));
        assert_eq!(scenarios[1].figure(Program::Loci, Measure::Gap), Some(0.25));
    }

    #[test]
    fn failed_scenario_is_an_error() {
        let check = |program: Program, scenario: &str| {
            let scenarios = [scenario.to_owned()];
            ensure_whole(&parse(OUTPUT), std::iter::once(program), &scenarios)
                .map_err(|error| error.to_string())
        };
        assert_eq!(check(Program::Loci, "hello"), Ok(()));
        assert!(
            check(Program::Loci, "turns:200").unwrap_err().starts_with("loci failed in `turns:200`: loci")
        );
        assert_eq!(
            check(Program::Codex, "hello").unwrap_err(),
            "The harness said nothing of Codex in `hello`"
        );
        assert_eq!(check(Program::Loci, "resume:1").unwrap_err(), "The harness said nothing of `resume:1`");
    }

    #[test]
    fn figures_have_three_digits() {
        let shown = [0.254, 9.876, 12.34, 123.4].map(|figure| Measure::Gap.show(figure));
        assert_eq!(shown, ["0.25 ms", "9.88 ms", "12.3 ms", "123 ms"]);
        assert_eq!(Measure::PeakMemory.show(300.4), "300 MB");
    }
}
