//! Variables of the reference that change something there and nothing here. Whoever sets one relies on it, so a session and
//! the doctor say so, and why.
//!
//! Switches that turn off what is not there anyway (updates, surveys, reports to a vendor) are kept to without a word.

use loci_stdx::Vars;

use crate::compaction::{CompactWindow, WINDOW_VARIABLE};

/// Variables that have no effect where they turn something on, and why.
const SWITCHES: &[(&str, &str)] = &[
    ("CLAUDE_AGENT_SDK_MCP_NO_PREFIX", "tools of MCP servers keep the prefix `mcp__<server>__`"),
    ("CLAUDE_CODE_AUTO_CONNECT_IDE", "no editor is looked for; editors start `loci acp`"),
    ("CLAUDE_CODE_DISABLE_POLICY_SKILLS", "the administrator's skills are read"),
    (
        "CLAUDE_CODE_DISABLE_UNKNOWN_MODEL_WINDOW_ENFORCEMENT",
        "name the window of the model with CLAUDE_CODE_MAX_CONTEXT_TOKENS",
    ),
    (
        "CLAUDE_CODE_ENABLE_BACKGROUND_PLUGIN_REFRESH",
        "plugins are not installed beside a session; see /reload-plugins",
    ),
    ("CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING", "inputs of tools stream as the server sends them"),
    ("CLAUDE_CODE_ENABLE_TELEMETRY", "nothing is exported; `loci stats` has the figures"),
    ("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "there are no agent teams"),
    ("CLAUDE_CODE_BS_AS_CTRL_BACKSPACE", "the byte 0x08 removes a letter"),
    (
        "CLAUDE_CODE_DISABLE_VIRTUAL_SCROLL",
        "fullscreen makes rows of what is in sight alone, and leaves none out",
    ),
    ("CLAUDE_CODE_NEW_INIT", "/init writes CLAUDE.md"),
    ("CLAUDE_CODE_PERFORCE_MODE", "files that cannot be written are an error like any other"),
    ("CLAUDE_CODE_PROPAGATE_TRACEPARENT", "requests carry no trace context"),
    ("CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST", "settings of the user may choose the provider and the model"),
    ("CLAUDE_CODE_SIMPLE_SYSTEM_PROMPT", "the system prompt has one form; --system-prompt replaces it"),
    ("CLAUDE_CODE_SYNC_PLUGIN_INSTALL", "plugins are installed by `loci plugin install` alone"),
    ("CLAUDE_CODE_SYNC_SKILLS", "skills of an account are not fetched"),
    ("CLAUDE_CODE_USE_POWERSHELL_TOOL", "there is no PowerShell tool"),
    ("DISABLE_DOCTOR_COMMAND", "/doctor stays: it changes nothing"),
    ("FORCE_AUTOUPDATE_PLUGINS", "plugins are updated by `loci plugin update` alone"),
];

/// Variables that have no effect whatever they say, and why.
const VALUES: &[(&str, &str)] = &[
    ("ANTHROPIC_FEDERATION_RULE_ID", "such credentials are not used; set ANTHROPIC_AUTH_TOKEN"),
    ("ANTHROPIC_PROFILE", "profiles are not read; set ANTHROPIC_API_KEY, or an `apiKeyHelper`"),
    ("CLAUDE_CODE_CLIENT_KEY_PASSPHRASE", "a key of a client's certificate must not be encrypted"),
    ("CLAUDE_CODE_EXIT_AFTER_STOP_DELAY", "a run ends when its work and its input do"),
    ("CLAUDE_CODE_GOAL_CHECKIN_MINUTES", "a goal is looked at after each turn"),
    ("CLAUDE_CODE_GLOB_TIMEOUT_SECONDS", "searches have limits of their own"),
    ("CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "set CLAUDE_CODE_OAUTH_TOKEN"),
    ("CLAUDE_CODE_PROCESS_WRAPPER", "no processes of its own run in the background"),
    ("CLAUDE_CODE_SCRIPT_CAPS", "calls of scripts are not counted; deny them with a permission rule"),
    ("CLAUDE_CODE_TOOL_MEMORY_LIMIT", "commands have no limit of their own; start loci in a limited cgroup"),
    ("CLAUDE_CODE_USER_DIALOG_TIMEOUT_MS", "what a client is asked waits for its answer"),
    ("FALLBACK_FOR_ALL_PRIMARY_MODELS", "how often is tried is CLAUDE_CODE_MAX_RETRIES for every model"),
    ("MCP_SDK_GENERATION", "there is one client of MCP servers"),
    ("MCP_OAUTH_CALLBACK_PORT", "name the port in the server's entry (`oauth.callbackPort`)"),
];

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

/// The variable that names the shell of commands, which is bash.
const SHELL: &str = "CLAUDE_CODE_SHELL";

/// Returns what is set in vain, a sentence a variable.
pub(crate) fn ineffective_vars(vars: &Vars) -> Vec<String> {
    let switches = SWITCHES.iter().filter(|(name, _)| vars.is_truthy(name));
    let values = VALUES.iter().filter(|(name, _)| vars.non_empty(name).is_some_and(|value| !is_off(value)));
    let is_other_shell = vars.non_empty(SHELL).is_some_and(|path| path.rsplit('/').next() != Some("bash"));
    let shell = is_other_shell.then_some(&(SHELL, "commands run in bash"));
    let all = switches.chain(values).chain(shell);
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
