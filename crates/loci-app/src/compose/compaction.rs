//! When the conversation is compacted: settings and variables.

use loci_engine::CompactionConfig;
use loci_settings::Settings;
use loci_stdx::{Env, Vars};

/// The variable that names the window; it wins over flag, command and settings.
pub const WINDOW_VARIABLE: &str = "CLAUDE_CODE_AUTO_COMPACT_WINDOW";

/// The smallest window worth having.
const LEAST_WINDOW: u64 = 4_000;

/// Bare numbers that mean thousands of tokens.
const THOUSANDS: std::ops::RangeInclusive<u64> = 100..=1_000;

/// The window to compact within, as a flag, a command or the variable names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactWindow {
    /// The model's own, whatever the settings say.
    Model,
    /// So many tokens.
    Tokens(u64),
}

impl CompactWindow {
    /// Reads `auto`, `200000`, `200k`, `0.5M`, or `200` for 200,000; returns `None` for what is no window.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase().replace(['_', ','], "");
        if text == "auto" {
            return Some(Self::Model);
        }
        let (digits, unit) = match text.strip_suffix('k') {
            Some(digits) => (digits, Some(1e3)),
            None => text.strip_suffix('m').map_or((text.as_str(), None), |digits| (digits, Some(1e6))),
        };
        let number: f64 = digits.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)?;
        let tokens = (number * unit.unwrap_or(1.0)).round() as u64;
        let tokens = match unit.is_none() && THOUSANDS.contains(&tokens) {
            true => tokens * 1_000,
            false => tokens,
        };
        (tokens >= LEAST_WINDOW).then_some(Self::Tokens(tokens))
    }

    /// Returns the window of the variable, where it names one.
    pub fn of_variable(vars: &Vars) -> Option<Self> {
        vars.non_empty(WINDOW_VARIABLE).and_then(Self::parse)
    }
}

/// Reads what settings and environment say about compaction; `model` is the id of the main model, `flag` the window of
/// this run, where one was named.
///
/// `CLAUDE_CODE_MAX_CONTEXT_TOKENS` declares the window of a model that is not ours to know.
pub fn compaction_config(
    env: &Env,
    settings: &Settings,
    model: &str,
    flag: Option<CompactWindow>,
) -> CompactionConfig {
    let number = |name: &str| env.vars.non_empty(name).and_then(|text| text.trim().parse::<u64>().ok());
    let is_on = !env.vars.is_truthy("DISABLE_COMPACT");
    let declared = number("CLAUDE_CODE_MAX_CONTEXT_TOKENS").filter(|_| !model.starts_with("claude-"));
    let window = match CompactWindow::of_variable(&env.vars).or(flag) {
        Some(CompactWindow::Tokens(tokens)) => Some(tokens),
        Some(CompactWindow::Model) => declared,
        None => settings.auto_compact_window.or(declared),
    };
    let percent = number("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE").filter(|percent| (1..=100).contains(percent));
    let collapses = match env.vars.non_empty("LOCI_CONTEXT_COLLAPSE") {
        Some(_) => env.vars.is_truthy("LOCI_CONTEXT_COLLAPSE"),
        None => settings.context_collapse_enabled == Some(true),
    };
    let clears = is_on && !env.vars.is_truthy("LOCI_DISABLE_CLEARING");
    let steps = settings.compaction_steps;
    let wanted = |step: Option<bool>| step != Some(false);
    CompactionConfig {
        is_on,
        is_automatic: is_on
            && settings.auto_compact_enabled != Some(false)
            && !env.vars.is_truthy("DISABLE_AUTO_COMPACT"),
        window: window.filter(|window| *window >= LEAST_WINDOW),
        window_cap: None,
        percent: percent.and_then(|percent| u8::try_from(percent).ok()),
        is_reactive: wanted(steps.reactive),
        budgets_results: wanted(steps.result_budget),
        snips: clears && wanted(steps.snip),
        clears_cold: clears && wanted(steps.cold_clearing),
        server_clears: clears && server_clears(env, steps.server_clearing),
        collapses: is_on && collapses,
    }
}

/// Whether the server is asked to clear results: where it is the one that is known to do so, or somebody says it can.
fn server_clears(env: &Env, setting: Option<bool>) -> bool {
    match env.vars.non_empty("LOCI_CONTEXT_EDITING") {
        Some(_) => env.vars.is_truthy("LOCI_CONTEXT_EDITING"),
        None => setting.unwrap_or_else(|| env.vars.non_empty("ANTHROPIC_BASE_URL").is_none()),
    }
}

#[cfg(test)]
mod tests {
    use loci_settings::CompactionSteps;

    use super::*;

    fn read(vars: &[(&str, &str)], settings: &Settings, model: &str) -> CompactionConfig {
        let mut env = Env::for_test("/home", "/p");
        env.vars = vars.iter().copied().collect();
        compaction_config(&env, settings, model, None)
    }

    #[test]
    fn windows_are_read_as_people_write_them() {
        for (text, expected) in [
            ("auto", Some(CompactWindow::Model)),
            (" Auto ", Some(CompactWindow::Model)),
            ("200000", Some(CompactWindow::Tokens(200_000))),
            ("200k", Some(CompactWindow::Tokens(200_000))),
            ("1M", Some(CompactWindow::Tokens(1_000_000))),
            ("0.5m", Some(CompactWindow::Tokens(500_000))),
            ("200_000", Some(CompactWindow::Tokens(200_000))),
            ("50k", Some(CompactWindow::Tokens(50_000))),
            // A bare number of three digits means thousands, and so does 1000.
            ("100", Some(CompactWindow::Tokens(100_000))),
            ("200", Some(CompactWindow::Tokens(200_000))),
            ("1000", Some(CompactWindow::Tokens(1_000_000))),
            ("1001", None),
            ("99", None),
            ("2k", None),
            ("many", None),
            ("-5", None),
            ("inf", None),
            ("", None),
        ] {
            assert_eq!(CompactWindow::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn variable_wins_over_flag_and_flag_over_setting() {
        let own = Settings { auto_compact_window: Some(150_000), ..Settings::default() };
        let tokens = |tokens| Some(CompactWindow::Tokens(tokens));
        for (variable, flag, expected) in [
            ("", None, Some(150_000)),
            ("", tokens(200_000), Some(200_000)),
            ("", Some(CompactWindow::Model), None),
            ("120000", tokens(200_000), Some(120_000)),
            ("500k", Some(CompactWindow::Model), Some(500_000)),
            ("many", tokens(200_000), Some(200_000)),
        ] {
            let mut env = Env::for_test("/home", "/p");
            env.vars = [(WINDOW_VARIABLE, variable)].into_iter().collect();
            let config = compaction_config(&env, &own, "claude-x", flag);
            assert_eq!(config.window, expected, "{variable} {flag:?}");
        }
    }

    #[test]
    fn variables_and_settings_configure_compaction() {
        let plain = Settings::default();
        let own = Settings {
            auto_compact_window: Some(150_000),
            auto_compact_enabled: Some(false),
            ..Settings::default()
        };
        let folding = Settings { context_collapse_enabled: Some(true), ..Settings::default() };
        let usual = CompactionConfig { server_clears: true, ..CompactionConfig::default() };
        let none = CompactionConfig { snips: false, clears_cold: false, server_clears: false, ..usual };
        for (vars, settings, model, expected) in [
            (&[][..], &plain, "claude-x", usual),
            (
                &[("DISABLE_COMPACT", "1")],
                &plain,
                "claude-x",
                CompactionConfig { is_on: false, is_automatic: false, ..none },
            ),
            (
                &[("DISABLE_AUTO_COMPACT", "1")],
                &plain,
                "claude-x",
                CompactionConfig { is_automatic: false, ..usual },
            ),
            (
                &[("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000")],
                &own,
                "claude-x",
                CompactionConfig { is_automatic: false, window: Some(100_000), ..usual },
            ),
            (&[], &own, "claude-x", CompactionConfig { is_automatic: false, window: Some(150_000), ..usual }),
            (
                &[("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "50")],
                &plain,
                "claude-x",
                CompactionConfig { percent: Some(50), ..usual },
            ),
            (&[("LOCI_DISABLE_CLEARING", "1")], &plain, "claude-x", none),
            (
                &[("LOCI_CONTEXT_COLLAPSE", "1")],
                &plain,
                "claude-x",
                CompactionConfig { collapses: true, ..usual },
            ),
            (&[], &folding, "claude-x", CompactionConfig { collapses: true, ..usual }),
            (&[("LOCI_CONTEXT_COLLAPSE", "0")], &folding, "claude-x", usual),
            // Whoever else answers is not asked for what it may not know, unless somebody says so.
            (
                &[("ANTHROPIC_BASE_URL", "http://gateway")],
                &plain,
                "claude-x",
                CompactionConfig { server_clears: false, ..usual },
            ),
            (
                &[("ANTHROPIC_BASE_URL", "http://gateway"), ("LOCI_CONTEXT_EDITING", "1")],
                &plain,
                "claude-x",
                usual,
            ),
            (
                &[("LOCI_CONTEXT_EDITING", "0")],
                &plain,
                "claude-x",
                CompactionConfig { server_clears: false, ..usual },
            ),
            (&[("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "500")], &plain, "claude-x", usual),
            (&[("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "many")], &plain, "claude-x", usual),
            (&[("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "7")], &plain, "claude-x", usual),
            (&[("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "32000")], &plain, "claude-x", usual),
            (
                &[("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "32000")],
                &plain,
                "local",
                CompactionConfig { window: Some(32_000), ..usual },
            ),
        ] {
            assert_eq!(read(vars, settings, model), expected, "{vars:?} {model}");
        }
    }

    /// Each step has a switch of its own, and a variable for all clearing has the last word.
    #[test]
    fn each_step_has_its_switch() {
        let usual = CompactionConfig { server_clears: true, ..CompactionConfig::default() };
        let off = Some(false);
        let steps = CompactionSteps::default();
        for (steps, expected) in [
            (
                CompactionSteps { result_budget: off, ..steps },
                CompactionConfig { budgets_results: false, ..usual },
            ),
            (CompactionSteps { snip: off, ..steps }, CompactionConfig { snips: false, ..usual }),
            (
                CompactionSteps { cold_clearing: off, ..steps },
                CompactionConfig { clears_cold: false, ..usual },
            ),
            (
                CompactionSteps { server_clearing: off, ..steps },
                CompactionConfig { server_clears: false, ..usual },
            ),
            (CompactionSteps { reactive: off, ..steps }, CompactionConfig { is_reactive: false, ..usual }),
        ] {
            let settings = Settings { compaction_steps: steps, ..Settings::default() };
            assert_eq!(read(&[], &settings, "claude-x"), expected, "{steps:?}");
        }
        let asks = CompactionSteps { server_clearing: Some(true), snip: Some(true), ..steps };
        let settings = Settings { compaction_steps: asks, ..Settings::default() };
        assert!(read(&[("ANTHROPIC_BASE_URL", "http://gateway")], &settings, "claude-x").server_clears);
        let read = read(&[("LOCI_DISABLE_CLEARING", "1")], &settings, "claude-x");
        assert!(!read.server_clears && !read.snips && !read.clears_cold);
    }
}
