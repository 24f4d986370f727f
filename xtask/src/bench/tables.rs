//! Figures as Markdown: everything measured, the targets, and the growth of the gap.

use super::figures::{Measure, Program, Scenario};

/// A promise: the peer's figure is at least so many times loci's.
struct Target {
    scenario: &'static str,
    measure: Measure,
    peer: Program,
    at_least: f64,
}

const TARGETS: &[Target] = &[
    Target { scenario: "hello", measure: Measure::FirstRequest, peer: Program::Claude, at_least: 30.0 },
    Target { scenario: "hello", measure: Measure::FirstRequest, peer: Program::Codex, at_least: 13.0 },
    Target { scenario: "hello", measure: Measure::PeakMemory, peer: Program::Claude, at_least: 10.0 },
    Target { scenario: "turns:200", measure: Measure::PeakMemory, peer: Program::Claude, at_least: 10.0 },
    Target { scenario: "turns:200", measure: Measure::Gap, peer: Program::Claude, at_least: 40.0 },
];

/// Returns all tables.
pub(crate) fn report(names: &[(Program, String)], measured: &[Scenario], growth: &[Scenario]) -> String {
    [figures_table(names, measured), targets_table(measured), growth_table(growth)].join("\n")
}

fn figures_table(names: &[(Program, String)], measured: &[Scenario]) -> String {
    let header = names.iter().map(|(_, name)| format!(" {name} |")).collect::<String>();
    let rule = "---:|".repeat(names.len());
    let mut table = format!("| scenario | measure |{header}\n|---|---|{rule}\n");
    for scenario in measured {
        for measure in Measure::ALL {
            if scenario.figure(Program::Loci, measure).is_none() {
                continue;
            }
            let cells = names.iter().map(|(program, _)| format!(" {} |", cell(scenario, *program, measure)));
            let cells: String = cells.collect();
            table.push_str(&format!("| {} | {} |{cells}\n", scenario.name, measure.label()));
        }
    }
    table
}

fn cell(scenario: &Scenario, program: Program, measure: Measure) -> String {
    let Some(figure) = scenario.figure(program, measure) else { return "-".to_owned() };
    match scenario.ratio(program, measure) {
        Some(ratio) if program != Program::Loci => format!("{} ({ratio:.1}x)", measure.show(figure)),
        _ => measure.show(figure),
    }
}

fn targets_table(measured: &[Scenario]) -> String {
    let mut table = "| target | at least | measured | |\n|---|---:|---:|---|\n".to_owned();
    for target in TARGETS {
        let scenario = measured.iter().find(|scenario| scenario.name == target.scenario);
        let ratio = scenario.and_then(|scenario| scenario.ratio(target.peer, target.measure));
        let (shown, verdict) = match ratio {
            Some(ratio) if ratio >= target.at_least => (format!("{ratio:.1}x"), "met"),
            Some(ratio) => (format!("{ratio:.1}x"), "missed"),
            None => ("-".to_owned(), "not measured"),
        };
        let (measure, peer) = (target.measure.label(), target.peer.label());
        let row = format!("{}: {measure}, less than {peer}", target.scenario);
        table.push_str(&format!("| {row} | {}x | {shown} | {verdict} |\n", target.at_least));
    }
    table
}

fn growth_table(growth: &[Scenario]) -> String {
    let cells = |of: &dyn Fn(&Scenario) -> String| growth.iter().map(of).collect::<String>();
    let header = cells(&|scenario| format!(" {} |", scenario.name));
    let rule = "---:|".repeat(growth.len());
    let mut table = format!("| loci as a session grows |{header}\n|---|{rule}\n");
    for measure in [Measure::Gap, Measure::PeakMemory] {
        let figures = cells(&|scenario| format!(" {} |", cell(scenario, Program::Loci, measure)));
        table.push_str(&format!("| {} |{figures}\n", measure.label()));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::figures::parse;
    use super::*;

    fn line(program: &str, first: f64, gap: f64, memory: f64) -> String {
        format!(
            "{program} rc=0 wall=1.0ms cpu=1.0ms rss={memory}MB first_request={first}ms gap={gap}ms requests=1"
        )
    }

    #[test]
    fn targets_are_met_missed_or_open() {
        let hello = format!(
            "## hello (x)\n{}\n{}\n",
            line("loci", 10.0, 1.0, 20.0),
            line("claude", 300.0, 1.0, 199.0)
        );
        let table = targets_table(&parse(&hello));
        assert_eq!(
            table,
            "| target | at least | measured | |\n\
             |---|---:|---:|---|\n\
             | hello: exec to first request, less than Claude Code | 30x | 30.0x | met |\n\
             | hello: exec to first request, less than Codex | 13x | - | not measured |\n\
             | hello: peak memory, less than Claude Code | 10x | 9.9x | missed |\n\
             | turns:200: peak memory, less than Claude Code | 10x | - | not measured |\n\
             | turns:200: gap between response and next request, less than Claude Code | 40x | - | not measured |\n"
        );
    }

    #[test]
    fn figures_stand_beside_each_other() {
        let output = format!(
            "## turns:2 (x)\n{}\n{}\n",
            line("loci", 10.0, 0.5, 20.0),
            line("codex", 390.0, 27.0, 155.0)
        );
        let names = [(Program::Loci, "loci 0.1.0".to_owned()), (Program::Codex, "Codex 1".to_owned())];
        let table = figures_table(&names, &parse(&output));
        let rows: Vec<&str> = table.lines().collect();
        assert_eq!(rows[0], "| scenario | measure | loci 0.1.0 | Codex 1 |");
        assert_eq!(rows[2], "| turns:2 | exec to first request | 10.0 ms | 390 ms (39.0x) |");
        assert_eq!(
            rows[3],
            "| turns:2 | gap between response and next request | 0.50 ms | 27.0 ms (54.0x) |"
        );
        assert_eq!(rows[6], "| turns:2 | peak memory | 20.0 MB | 155 MB (7.8x) |");
    }

    #[test]
    fn growth_is_one_row_a_measure() {
        let output = format!(
            "## turns:20 (x)\n{}\n## turns:400 (x)\n{}\n",
            line("loci", 1.0, 0.3, 12.0),
            line("loci", 1.0, 0.4, 14.0)
        );
        assert_eq!(
            growth_table(&parse(&output)),
            "| loci as a session grows | turns:20 | turns:400 |\n\
             |---|---:|---:|\n\
             | gap between response and next request | 0.30 ms | 0.40 ms |\n\
             | peak memory | 12.0 MB | 14.0 MB |\n"
        );
    }
}
