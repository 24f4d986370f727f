//! What is done beside the conversation: settings and variables.
//!
//! Notes of a session, and the search for memories, cost requests of their own. They pay where a session goes on for
//! long, so they are on by default only where prompts come as a stream, stay below a share of what the conversation
//! costs. Whoever switches memories off switches them off, too; whoever asks for them by name gets them, at any cost. The
//! end of a session waits for them only where somebody says how long.

use std::time::Duration;

use loci_context::NotesPace;
use loci_engine::{BackgroundConfig, ExtractionConfig};
use loci_settings::Settings;
use loci_stdx::Env;

use crate::memory::Memory;
use crate::options::RunOptions;

/// How much must have been said before memories are looked for, in tokens.
const LEAST_TOKENS: u64 = 1_000;

/// The most that nobody's wish may cost, as a share of what the conversation costs.
const MAX_SHARE: f64 = 0.05;

/// Reads what settings and environment say; `memory` is nothing where memories are switched off.
pub(crate) fn background_config(
    env: &Env,
    options: &RunOptions,
    settings: &Settings,
    is_bare: bool,
    memory: Option<&Memory>,
) -> BackgroundConfig {
    let usual = BackgroundConfig {
        drain: Duration::ZERO,
        agent_wait: agent_wait(env),
        ..BackgroundConfig::default()
    };
    if is_bare {
        return usual;
    }
    let is_usual = options.is_long_lived && memory.is_some();
    let notes_asked = switch(env, "LOCI_SESSION_MEMORY").or(settings.session_memory.enabled);
    let extraction_asked = switch(env, "LOCI_MEMORY_EXTRACTION").or(settings.auto_memory.extraction);
    let is_asked = notes_asked == Some(true) || extraction_asked == Some(true);
    BackgroundConfig {
        notes: notes_asked.unwrap_or(is_usual).then(|| notes_pace(settings)),
        prepares_summary: switch(env, "LOCI_PREPARE_SUMMARY")
            .or(settings.session_memory.prepare_summary)
            .unwrap_or(is_usual),
        extraction: memory
            .filter(|_| extraction_asked.unwrap_or(is_usual))
            .and_then(|memory| extraction(options, settings, memory.is_reviewed)),
        max_share: (!is_asked).then_some(MAX_SHARE),
        agent_wait: agent_wait(env),
        command_wait: usual.command_wait,
        drain: millis(env, "LOCI_DRAIN_MS").unwrap_or_default(),
        patience: millis(env, "LOCI_COMPACTION_WAIT_MS").unwrap_or(usual.patience),
    }
}

/// How long the end of a run waits for agents in the background; zero means for ever.
fn agent_wait(env: &Env) -> Option<Duration> {
    let said = millis(env, "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS");
    said.or(BackgroundConfig::default().agent_wait).filter(|wait| !wait.is_zero())
}

/// Returns a time that a variable has in milliseconds.
pub(crate) fn millis(env: &Env, name: &str) -> Option<Duration> {
    let said = env.vars.non_empty(name).and_then(|text| text.trim().parse().ok());
    said.map(Duration::from_millis)
}

fn extraction(options: &RunOptions, settings: &Settings, is_reviewed: bool) -> Option<ExtractionConfig> {
    let chosen = &settings.auto_memory;
    let is_off = chosen.review.as_deref() == Some("off") || !options.is_persistent;
    (!is_off).then(|| ExtractionConfig {
        least_tokens: chosen.least_tokens.unwrap_or(LEAST_TOKENS),
        is_proposing: is_reviewed,
    })
}

fn notes_pace(settings: &Settings) -> NotesPace {
    let chosen = settings.session_memory;
    let usual = NotesPace::default();
    NotesPace {
        first_tokens: chosen.first_tokens.unwrap_or(usual.first_tokens),
        more_tokens: chosen.more_tokens.unwrap_or(usual.more_tokens),
        calls: chosen.tool_calls.and_then(|n| u32::try_from(n).ok()).unwrap_or(usual.calls),
    }
}

/// Reads a variable that switches something on or off; anything else leaves it as it is.
pub(crate) fn switch(env: &Env, name: &str) -> Option<bool> {
    let value = env.vars.non_empty(name)?;
    let is_off = ["0", "false", "no", "off"].iter().any(|word| value.trim().eq_ignore_ascii_case(word));
    if env.vars.is_truthy(name) { Some(true) } else { is_off.then_some(false) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use loci_settings::SessionMemorySettings;
    use loci_storage::layout::ConfigHome;

    use super::*;
    use crate::memory::open_memory;

    fn memory() -> Memory {
        let env = Env::for_test("/home", "/p");
        let home = ConfigHome::from_env(&env);
        open_memory(&env, &home, false, &Settings::default(), Path::new("/p")).0.unwrap()
    }

    #[test]
    fn notes_are_kept_where_a_session_goes_on_and_where_somebody_says_so() {
        let (on, off) = (Some(true), Some(false));
        for (is_long_lived, has_memory, var, setting, expected) in [
            (false, true, None, None, false),
            (true, true, None, None, true),
            (true, false, None, None, false),
            (true, false, None, on, true),
            (false, true, None, on, true),
            (true, true, None, off, false),
            (false, true, Some("1"), off, true),
            (true, true, Some("0"), on, false),
            (false, true, Some("maybe"), None, false),
        ] {
            let options = RunOptions { is_long_lived, ..RunOptions::default() };
            let mut env = Env::for_test("/home", "/p");
            env.vars = var.map(|value| ("LOCI_SESSION_MEMORY", value)).into_iter().collect();
            let session_memory = SessionMemorySettings { enabled: setting, ..Default::default() };
            let settings = Settings { session_memory, ..Settings::default() };
            let (memory, case) = (memory(), format!("{is_long_lived} {has_memory} {var:?} {setting:?}"));
            let config = background_config(&env, &options, &settings, false, has_memory.then_some(&memory));
            assert_eq!(config.notes.is_some(), expected, "{case}");
            // Nobody waits at the end, and whoever did not ask pays no more than a little.
            let is_asked = expected && (var.is_some() || setting.is_some());
            assert_eq!((config.drain.is_zero(), config.max_share.is_none()), (true, is_asked), "{case}");
        }
    }

    #[test]
    fn bare_run_has_no_requests_beside_the_conversation() {
        let mut env = Env::for_test("/home", "/p");
        env.vars = [("LOCI_SESSION_MEMORY", "1"), ("LOCI_PREPARE_SUMMARY", "1")].into_iter().collect();
        let options = RunOptions { is_long_lived: true, ..RunOptions::default() };
        let config = background_config(&env, &options, &Settings::default(), true, Some(&memory()));
        assert_eq!((config.notes, config.extraction, config.prepares_summary), (None, None, false));
    }

    #[test]
    fn pace_of_notes_is_a_setting() {
        let session_memory = SessionMemorySettings {
            first_tokens: Some(8_000),
            more_tokens: Some(15_000),
            tool_calls: Some(5),
            ..Default::default()
        };
        let settings = Settings { session_memory, ..Settings::default() };
        assert_eq!(notes_pace(&settings), NotesPace { first_tokens: 8_000, more_tokens: 15_000, calls: 5 });
    }
}
