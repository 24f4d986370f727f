//! What is done beside the conversation: settings and variables.
//!
//! Notes of a session, and the search for memories, cost requests of their own. They pay where a session goes on for
//! long, so they are on by default only where one is likely to: prompts come as a stream, or an earlier session is continued.

use std::time::Duration;

use loci_context::NotesPace;
use loci_engine::{BackgroundConfig, ExtractionConfig};
use loci_settings::Settings;
use loci_stdx::Env;

use crate::options::RunOptions;

/// How much must have been said before memories are looked for, in tokens.
const LEAST_TOKENS: u64 = 1_000;

/// Reads what settings and environment say. `is_reviewed` tells whether a person looks at memories before they count.
pub(crate) fn background_config(
    env: &Env,
    options: &RunOptions,
    settings: &Settings,
    is_reviewed: bool,
) -> BackgroundConfig {
    let usual = BackgroundConfig::default();
    BackgroundConfig {
        notes: notes(env, options, settings),
        prepares_summary: switch(env, "LOCI_PREPARE_SUMMARY")
            .or(settings.session_memory.prepare_summary)
            .unwrap_or(options.is_long_lived),
        extraction: extraction(env, options, settings, is_reviewed),
        drain: millis(env, "LOCI_DRAIN_MS").unwrap_or(usual.drain),
        patience: millis(env, "LOCI_COMPACTION_WAIT_MS").unwrap_or(usual.patience),
    }
}

fn millis(env: &Env, name: &str) -> Option<Duration> {
    let said = env.vars.non_empty(name).and_then(|text| text.trim().parse().ok());
    said.map(Duration::from_millis)
}

fn extraction(
    env: &Env,
    options: &RunOptions,
    settings: &Settings,
    is_reviewed: bool,
) -> Option<ExtractionConfig> {
    let chosen = &settings.auto_memory;
    let is_off = chosen.review.as_deref() == Some("off") || !options.is_persistent;
    let is_on = switch(env, "LOCI_MEMORY_EXTRACTION").or(chosen.extraction);
    (!is_off && is_on.unwrap_or(options.is_long_lived)).then(|| ExtractionConfig {
        least_tokens: chosen.least_tokens.unwrap_or(LEAST_TOKENS),
        is_proposing: is_reviewed,
    })
}

fn notes(env: &Env, options: &RunOptions, settings: &Settings) -> Option<NotesPace> {
    let chosen = settings.session_memory;
    let is_on = switch(env, "LOCI_SESSION_MEMORY").or(chosen.enabled).unwrap_or(options.is_long_lived);
    let usual = NotesPace::default();
    is_on.then(|| NotesPace {
        first_tokens: chosen.first_tokens.unwrap_or(usual.first_tokens),
        more_tokens: chosen.more_tokens.unwrap_or(usual.more_tokens),
        calls: chosen.tool_calls.and_then(|n| u32::try_from(n).ok()).unwrap_or(usual.calls),
    })
}

/// Reads a variable that switches something on or off; anything else leaves it as it is.
pub(crate) fn switch(env: &Env, name: &str) -> Option<bool> {
    let value = env.vars.non_empty(name)?;
    let is_off = ["0", "false", "no", "off"].iter().any(|word| value.trim().eq_ignore_ascii_case(word));
    if env.vars.is_truthy(name) { Some(true) } else { is_off.then_some(false) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_settings::SessionMemorySettings;

    #[test]
    fn notes_are_kept_where_a_session_goes_on_and_where_somebody_says_so() {
        let (on, off) = (Some(true), Some(false));
        for (is_long_lived, var, setting, expected) in [
            (false, None, None, false),
            (true, None, None, true),
            (false, None, on, true),
            (true, None, off, false),
            (false, Some("1"), off, true),
            (true, Some("0"), on, false),
            (false, Some("maybe"), None, false),
        ] {
            let options = RunOptions { is_long_lived, ..RunOptions::default() };
            let mut env = Env::for_test("/home", "/p");
            env.vars = var.map(|value| ("LOCI_SESSION_MEMORY", value)).into_iter().collect();
            let session_memory = SessionMemorySettings { enabled: setting, ..Default::default() };
            let settings = Settings { session_memory, ..Settings::default() };
            assert_eq!(
                notes(&env, &options, &settings).is_some(),
                expected,
                "{is_long_lived} {var:?} {setting:?}"
            );
        }
    }

    #[test]
    fn the_pace_is_a_setting() {
        let options = RunOptions { is_long_lived: true, ..RunOptions::default() };
        let session_memory = SessionMemorySettings {
            first_tokens: Some(8_000),
            more_tokens: Some(15_000),
            tool_calls: Some(5),
            ..Default::default()
        };
        let settings = Settings { session_memory, ..Settings::default() };
        let pace = notes(&Env::for_test("/home", "/p"), &options, &settings);
        assert_eq!(pace, Some(NotesPace { first_tokens: 8_000, more_tokens: 15_000, calls: 5 }));
    }
}
