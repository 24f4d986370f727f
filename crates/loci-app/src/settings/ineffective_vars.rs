//! Variables of the reference that change something there and nothing here. Whoever sets one relies on it, so a session and
//! the doctor say so, and why.
//!
//! Which they are is said by the table of variables ([`Variable::idle`]). Switches that turn off what is not there anyway
//! (updates, surveys, reports to a vendor) are kept to without a word.

use loci_settings::variables::{CLAUDE_CODE_SHELL, Variable, VariableKind};
use loci_stdx::Vars;

use crate::compose::compaction::{CompactWindow, WINDOW_VARIABLE};

/// Tells whether a value has the form it must have.
type HasForm = fn(&str) -> bool;

/// Variables whose values must have a form, and which; any other value counts as none.
const FORMS: &[(&str, HasForm, &str)] = &[
    ("BASH_DEFAULT_TIMEOUT_MS", is_number, MILLISECONDS),
    ("BASH_MAX_OUTPUT_LENGTH", is_number, "a number of characters"),
    ("BASH_MAX_TIMEOUT_MS", is_number, MILLISECONDS),
    ("CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS", is_count, MILLISECONDS),
    ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", is_percent, "a percentage from 1 to 100"),
    (WINDOW_VARIABLE, is_compact_window, "a number of tokens, such as 200000"),
    ("CLAUDE_AFK_COUNTDOWN_MS", is_count, MILLISECONDS),
    ("CLAUDE_AFK_TIMEOUT_MS", is_count, MILLISECONDS),
    ("CLAUDE_AX_PREPARK_MS", is_count, MILLISECONDS),
    ("CLAUDE_AX_SCREEN_READER", is_switch, SWITCH),
    ("CLAUDE_AX_STARTUP_QUIET_MS", is_count, MILLISECONDS),
    ("CLAUDE_CODE_ACCESSIBILITY", is_switch, SWITCH),
    ("CLAUDE_CODE_ALT_SCREEN_FULL_REPAINT", is_switch, SWITCH),
    ("CLAUDE_CODE_AWS_CHAIN_RESOLVE_TIMEOUT_MS", is_number, MILLISECONDS),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", is_switch, SWITCH),
    ("CLAUDE_CODE_DISABLE_AGENT_VIEW", is_switch, SWITCH),
    ("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN", is_switch, SWITCH),
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", is_switch, SWITCH),
    ("CLAUDE_CODE_DISABLE_CLAUDE_MDS", is_switch, SWITCH),
    ("CLAUDE_CODE_DISABLE_CRON", is_switch, SWITCH),
    ("CLAUDE_CODE_DISABLE_MOUSE", is_switch, SWITCH),
    ("CLAUDE_CODE_DISABLE_MOUSE_CLICKS", is_switch, SWITCH),
    ("CLAUDE_CODE_DISABLE_TERMINAL_TITLE", is_switch, SWITCH),
    ("CLAUDE_CODE_EFFORT_LEVEL", is_effort, "one of low, medium, high, xhigh, max and auto"),
    ("CLAUDE_CODE_ENABLE_AWAY_SUMMARY", is_switch, SWITCH),
    ("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", is_switch, SWITCH),
    ("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", is_number, "a number of tokens"),
    ("CLAUDE_CODE_FORCE_SYNC_OUTPUT", is_switch, SWITCH),
    ("CLAUDE_CODE_HIDE_CWD", is_switch, SWITCH),
    ("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", is_number, "a number of agents above 0"),
    ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", is_number, "a number of tokens"),
    ("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", is_number, "a number of levels above 0"),
    ("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", is_number, "a number of calls above 0"),
    ("CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION", is_count, "a number of searches"),
    ("CLAUDE_CODE_MCP_ALLOWLIST_ENV", is_switch, SWITCH),
    ("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", is_number, MILLISECONDS),
    ("CLAUDE_CODE_NO_FLICKER", is_switch, SWITCH),
    ("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", is_count, MILLISECONDS),
    ("CLAUDE_CODE_SAFE_MODE", is_switch, SWITCH),
    ("CLAUDE_CODE_SCROLL_SPEED", is_speed, "a number of rows above 0"),
    ("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", is_count, MILLISECONDS),
    ("CLAUDE_CODE_SIMPLE", is_switch, SWITCH),
    ("CLAUDE_CODE_SKIP_PROMPT_HISTORY", is_switch, SWITCH),
    ("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", is_count, "a number of times"),
    ("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", is_switch, SWITCH),
    ("CLAUDE_CODE_SYNTAX_HIGHLIGHT", is_switch, SWITCH),
    ("CLAUDE_CODE_TASK_LIST_ID", is_list_name, "a name of at most 64 letters, digits, `-` and `_`"),
    ("CLAUDE_SUBAGENT_BG_SHELL_MAX_MS", is_count, MILLISECONDS),
    ("MAX_MCP_OUTPUT_TOKENS", is_number, "a number of tokens"),
    ("MAX_STRUCTURED_OUTPUT_RETRIES", is_number, "a number of times above 0"),
    ("MCP_TIMEOUT", is_number, MILLISECONDS),
    ("MCP_TOOL_TIMEOUT", is_number, MILLISECONDS),
    ("TASK_MAX_OUTPUT_LENGTH", is_number, "a number of characters"),
];

const MILLISECONDS: &str = "a number of milliseconds";

/// Switches that keep something from happening: a yes that is not understood would be none.
const SWITCH: &str = "one of 1, true, yes, on, 0, false, no and off";

fn is_switch(text: &str) -> bool {
    is_off(text) || ["1", "true", "yes", "on"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn is_percent(text: &str) -> bool {
    text.parse::<u64>().is_ok_and(|percent| (1..=100).contains(&percent))
}

fn is_number(text: &str) -> bool {
    text.parse::<u64>().is_ok_and(|number| number > 0)
}

fn is_speed(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|rows| rows > 0.0)
}

fn is_compact_window(text: &str) -> bool {
    CompactWindow::parse(text).is_some()
}

fn is_count(text: &str) -> bool {
    text.parse::<u64>().is_ok()
}

fn is_list_name(text: &str) -> bool {
    loci_storage::sessions::is_task_list_name(text)
}

fn is_effort(text: &str) -> bool {
    ["low", "medium", "high", "xhigh", "max", "auto"].contains(&text)
}

/// Returns what is set in vain, a sentence a variable.
pub(crate) fn ineffective_vars(vars: &Vars) -> Vec<String> {
    let is_set_in_vain = |row: &&Variable| match row.kind {
        VariableKind::IdleSwitch => vars.is_truthy(row.name),
        _ => vars.non_empty(row.name).is_some_and(|value| !is_off(value)),
    };
    let idle = Variable::idle().filter(is_set_in_vain).map(|row| (row.name, row.about));
    let shell = vars.non_empty(CLAUDE_CODE_SHELL);
    let is_other_shell = shell.is_some_and(|path| path.rsplit('/').next() != Some("bash"));
    let all = idle.chain(is_other_shell.then_some((CLAUDE_CODE_SHELL, "commands run in bash")));
    let all = all.map(|(name, why)| format!("{name} has no effect in loci: {why}"));
    let misshapen = FORMS.iter().filter_map(|(name, is_right, wanted)| {
        let value = vars.non_empty(name)?.trim();
        (!is_right(value)).then(|| format!("{name} has no effect: `{value}` is not {wanted}"))
    });
    all.chain(misshapen).collect()
}

/// Tells whether a value says that nothing is wanted.
fn is_off(value: &str) -> bool {
    ["0", "off", "false", "no"].iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn variables_that_are_set_in_vain_are_named_and_others_are_not() {
        let vars = [
            ("CLAUDE_CODE_ENABLE_TELEMETRY", "1"),
            ("CLAUDE_CODE_PERFORCE_MODE", "0"),
            ("CLAUDE_CODE_TOOL_MEMORY_LIMIT", "off"),
            ("CLAUDE_CODE_SCRIPT_CAPS", "{}"),
            ("CLAUDE_CODE_SHELL", "/usr/bin/zsh"),
            ("CLAUDE_CODE_DISABLE_VIRTUAL_SCROLL", "1"),
            ("CLAUDE_CODE_SCROLL_SPEED", "fast"),
            ("CLAUDE_CODE_NO_FLICKER", "please"),
            ("DISABLE_TELEMETRY", "1"),
            ("ANTHROPIC_PROFILE", ""),
            ("CLAUDE_CODE_EFFORT_LEVEL", "hihg"),
            ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "32k"),
            ("CLAUDE_CODE_AWS_CHAIN_RESOLVE_TIMEOUT_MS", "120000"),
            ("BASH_DEFAULT_TIMEOUT_MS", "2m"),
            ("BASH_MAX_TIMEOUT_MS", "600000"),
            ("CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS", "0"),
            ("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "0"),
            ("CLAUDE_CODE_TASK_LIST_ID", "../team"),
            ("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "enabled"),
            ("CLAUDE_CODE_SAFE_MODE", "on"),
            ("CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION", "few"),
            ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "150"),
            ("MCP_TIMEOUT", "30000"),
        ];
        expect![[r#"
            CLAUDE_CODE_ENABLE_TELEMETRY has no effect in loci: nothing is exported; `loci stats` has the figures
            CLAUDE_CODE_DISABLE_VIRTUAL_SCROLL has no effect in loci: fullscreen makes rows of what is in sight alone, and leaves none out
            CLAUDE_CODE_SCRIPT_CAPS has no effect in loci: calls of scripts are not counted; deny them with a permission rule
            CLAUDE_CODE_SHELL has no effect in loci: commands run in bash
            BASH_DEFAULT_TIMEOUT_MS has no effect: `2m` is not a number of milliseconds
            CLAUDE_AUTOCOMPACT_PCT_OVERRIDE has no effect: `150` is not a percentage from 1 to 100
            CLAUDE_CODE_EFFORT_LEVEL has no effect: `hihg` is not one of low, medium, high, xhigh, max and auto
            CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS has no effect: `0` is not a number of agents above 0
            CLAUDE_CODE_MAX_CONTEXT_TOKENS has no effect: `32k` is not a number of tokens
            CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION has no effect: `few` is not a number of searches
            CLAUDE_CODE_NO_FLICKER has no effect: `please` is not one of 1, true, yes, on, 0, false, no and off
            CLAUDE_CODE_SCROLL_SPEED has no effect: `fast` is not a number of rows above 0
            CLAUDE_CODE_SUBPROCESS_ENV_SCRUB has no effect: `enabled` is not one of 1, true, yes, on, 0, false, no and off
            CLAUDE_CODE_TASK_LIST_ID has no effect: `../team` is not a name of at most 64 letters, digits, `-` and `_`"#]]
        .assert_eq(&ineffective_vars(&vars.into_iter().collect()).join("\n"));
        let bash = [("CLAUDE_CODE_SHELL", "/opt/homebrew/bin/bash")];
        assert_eq!(ineffective_vars(&bash.into_iter().collect()), [""; 0]);
    }
}
