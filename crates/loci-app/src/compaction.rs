//! When the conversation is compacted: settings and variables.

use loci_engine::CompactionConfig;
use loci_settings::Settings;
use loci_stdx::Env;

/// The smallest window worth having.
const LEAST_WINDOW: u64 = 4_000;

/// Reads what settings and environment say about compaction; `model` is the id of the main model.
///
/// `CLAUDE_CODE_MAX_CONTEXT_TOKENS` declares the window of a model that is not ours to know.
pub fn compaction_config(env: &Env, settings: &Settings, model: &str) -> CompactionConfig {
    let number = |name: &str| env.vars.non_empty(name).and_then(|text| text.trim().parse::<u64>().ok());
    let is_on = !env.vars.is_truthy("DISABLE_COMPACT");
    let declared = number("CLAUDE_CODE_MAX_CONTEXT_TOKENS").filter(|_| !model.starts_with("claude-"));
    let window = number("CLAUDE_CODE_AUTO_COMPACT_WINDOW").or(settings.auto_compact_window).or(declared);
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
        compaction_config(&env, settings, model)
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
