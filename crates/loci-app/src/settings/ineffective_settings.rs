//! Settings of the reference that change something there and nothing here. Whoever sets one relies on it, so a session and
//! the doctor say so, and why.
//!
//! Keys that only turn off or restrict what is not there anyway are kept to without a word ([`KEPT_TO`]). Every key that
//! nothing acts upon is in one of the lists, and a test holds them against the table of keys.

use loci_settings::MergedSettings;
use serde_json::Value;

/// What a key that is set in vain is told of.
struct Row {
    path: &'static str,
    /// Values that ask for nothing; `false`, `null`, and what is empty never do.
    idle: &'static [&'static str],
    why: &'static str,
}

/// Keys that have no effect, and why.
#[rustfmt::skip] // one line a key
const TOLD: &[Row] = &[
    row("advisorModel", "there is no advisor"),
    row("appendPlugins", "plugins have no order; see `enabledPlugins`"),
    row("attributionProject", "commits are not counted for projects"),
    row("attributionProjectPolicy", "commits are not counted for projects"),
    row("autoContinueAtUsageLimit", "a run that meets a limit ends; resume it with --continue"),
    row("autoDreamEnabled", "memories are looked for when the model has answered; see `memoryExtraction.enabled`"),
    row("autoUploadSessions", "sessions stay on this machine"),
    row("bashEditDiffEnabled", "/diff shows what commands changed"),
    row("bashOutputMaxChars", "set BASH_MAX_OUTPUT_LENGTH under `env`"),
    row("daemonColdStart", "no service runs in the background"),
    row("defaultView", "see `viewMode`").unless(&["transcript"]),
    row("desktopSessionCleanupPeriodDays", "there is no desktop; see `cleanupPeriodDays`"),
    row("feedbackDrafts", "no feedback is sent"),
    row("gatewayInternalNetworks", "there is no gateway; which hosts may be reached is said by `sandbox.network`"),
    row("idleCompaction", "nothing is compacted while nobody works; see `sessionMemory.prepareSummary`"),
    row("managedMcpServers", "put them into `managed-mcp.json`, beside the managed settings"),
    row("managedSourcesBehavior", "the first source counts whole").unless(&["first-wins"]),
    row("maxProseWidth", "text is as wide as the window"),
    row("modelPicker", "see `availableModels`"),
    row("precomputeCompactionEnabled", "see `sessionMemory.prepareSummary`"),
    row("prependPlugins", "plugins have no order; see `enabledPlugins`"),
    row("proxyAuthHelper", "put the credentials into the address of the proxy, HTTPS_PROXY=http://user:password@host:port"),
    row("showMessageTimestamps", "`loci sessions show` has the times"),
    row("sshHostCommands", "there are no sessions on other machines"),
    row("syncClaudeAiPlugins", "plugins of an account are not fetched"),
    row("taskOutputMaxChars", "set TASK_MAX_OUTPUT_LENGTH under `env`"),
    row("timeFormat", "times are shown as 24 hours"),
    row("timeZone", "set TZ"),
    row("agentPushNotifEnabled", "nothing is sent to other devices"),
    row("allowAllClaudeAiMcps", "connectors of an account are not loaded"),
    row("autoMode", "there is no classifier, and mode `auto` asks; forbid calls with `permissions.deny`"),
    row("channelsEnabled", "there are no channels"),
    row("defaultShell", "commands run in bash").unless(&["bash"]),
    row("dialogExpiry", "what a client is asked waits for its answer").unless(&["never"]),
    row("enableArtifact", "there are no artifacts"),
    row("enableWorkflows", "there are no workflows"),
    row("fastMode", "there is no fast mode; choose a faster model"),
    row("footerLinksRegexes", "the footer has no links of one's own"),
    row("forceLoginGatewayUrl", "there is no login at a gateway; set ANTHROPIC_BASE_URL under `env`"),
    row("inputNeededNotifEnabled", "nothing is sent to other devices; see `preferredNotifChannel`"),
    row("otelHeadersHelper", "nothing is exported; `loci stats` has the figures"),
    row("parentSettingsBehavior", "programs that start loci cannot give it managed settings").unless(&["first-wins"]),
    row("processWrapper", "no processes of its own run in the background"),
    row("remote.defaultEnvironmentId", "there are no remote sessions"),
    row("remoteControlAtStartup", "there is no remote control"),
    row("showThinkingSummaries", "thinking is shown as the server gives it"),
    row("spellcheck", "prompts are not checked"),
    row("sshConfigs", "there are no sessions on other machines"),
    row("switchModelsOnFlag", "a request that is flagged ends the turn; choose another model with /model"),
    row("syncClaudeAiSkills", "skills of an account are not fetched"),
    row("teammateMode", "there are no agent teams"),
    row("ultracode", "there are no workflows"),
    row("voice", "there is no voice input"),
    row("voiceEnabled", "there is no voice input"),
    row("workflowSizeGuideline", "there are no workflows"),
    row("worktree.bgIsolation", "background agents work where their definition says (`isolation`)").unless(&["worktree"]),
    row("wslInheritsWindowsSettings", "the policy of Windows is not read; put it into `managed-settings.json`"),
];

/// Keys that turn off, restrict or describe what is not there anyway, or that ask for what is so anyway.
#[cfg(test)]
const KEPT_TO: &[&str] = &[
    "allowClaudeInChromeWithManagedMcp",
    "allowNestedModelAccessUnderForceLogin",
    "allowedChannelPlugins",
    "autoUpdatesChannel",
    "browserExternalPageTools",
    "crossSessionInbound",
    "disableArtifact",
    "disableBrowserExternalNavigation",
    "disableClaudeAiConnectors",
    "disableDeepLinkRegistration",
    "disableMobileSimulatorTools",
    "disableRemoteControl",
    "disableReplyCheck",
    "disableWindowsBashCommandSplit",
    "disableWorkflows",
    "fastModePerSessionOptIn",
    "feedbackSurveyRate",
    "includeCoAuthoredBy",
    "isolatePeerMachines",
    "minimumVersion",
    "pluginSuggestionMarketplaces",
    "skipAutoPermissionPrompt",
    "todoFeatureEnabled",
    "sshHostAllowlist",
    "useAutoModeDuringPlan",
    "workflowKeywordTriggerEnabled",
];

const fn row(path: &'static str, why: &'static str) -> Row {
    Row { path, idle: &[], why }
}

impl Row {
    const fn unless(self, idle: &'static [&'static str]) -> Self {
        Self { idle, ..self }
    }

    fn is_in_vain(&self, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty() && !self.idle.contains(&text.as_str()),
            Value::Array(list) => !list.is_empty(),
            Value::Object(fields) => {
                !fields.is_empty() && fields.get("enabled").is_none_or(|it| *it != Value::Bool(false))
            }
            Value::Bool(true) | Value::Number(_) => true,
        }
    }
}

/// Tells whether the whole of a value counts.
type Counts = fn(&Value) -> bool;

/// Keys that are objects, which of them count, and what they have to be.
const SHAPES: &[(&str, Counts, &str)] = &[
    ("fileSuggestion", has_command, COMMAND),
    ("spinnerTipsOverride", |it| it.get("tips").is_some_and(Value::is_array), "an object with a list `tips`"),
    ("spinnerVerbs", |it| it.get("verbs").is_some_and(Value::is_array), "an object with a list `verbs`"),
    ("statusLine", has_command, COMMAND),
    ("subagentStatusLine", has_command, COMMAND),
    ("vimInsertModeRemaps", are_remaps, "an object of two letters each, with the value `<Esc>`"),
];

const COMMAND: &str = "an object with `\"type\": \"command\"` and a `command`";

fn has_command(value: &Value) -> bool {
    let is_text = value["command"].as_str().is_some_and(|line| !line.trim().is_empty());
    is_text && value["type"] == "command"
}

fn are_remaps(value: &Value) -> bool {
    let is_remap = |(keys, target): (&String, &Value)| keys.chars().count() == 2 && target == "<Esc>";
    value.as_object().is_some_and(|pairs| pairs.iter().all(is_remap))
}

/// Returns what is set in vain, a sentence a key. Keys of the sandbox are told with it.
pub(crate) fn ineffective_settings(merged: &MergedSettings) -> Vec<String> {
    let set = TOLD.iter().filter(|row| merged.value(row.path).is_some_and(|value| row.is_in_vain(value)));
    let refresh = merged.value("policyHelper").and_then(|entry| entry.get("refreshIntervalMs"));
    let refresh = refresh.filter(|every| every.as_u64() != Some(0));
    let refresh =
        refresh.map(|_| ("policyHelper.refreshIntervalMs", "its program runs at the start of each session"));
    let all = set.map(|row| (row.path, row.why)).chain(refresh);
    let all = all.map(|(path, why)| format!("Settings: `{path}` has no effect: {why}"));
    let misshapen = SHAPES.iter().filter_map(|(path, counts, wanted)| {
        let is_wrong = merged.value(path).is_some_and(|value| !value.is_null() && !counts(value));
        is_wrong
            .then(|| format!("Settings: `{path}` has no effect, or not the whole of it: it is not {wanted}"))
    });
    all.chain(misshapen).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use loci_settings::{Key, Layer, Origin, Scope, Scopes, merge};

    use super::*;

    #[test]
    fn keys_that_are_set_in_vain_are_named_and_others_are_not() {
        let text = r#"{
            "fastMode": true, "enableWorkflows": false, "defaultShell": "powershell", "worktree": {"bgIsolation": "worktree"},
            "voice": {"enabled": false}, "autoMode": {"soft_deny": ["Never deploy"]}, "disableRemoteControl": true,
            "model": "opus", "policyHelper": {"path": "/p", "refreshIntervalMs": 60000},
            "statusLine": {"type": "command"}, "subagentStatusLine": {"type": "command", "command": "date"},
            "vimInsertModeRemaps": {"jj": "<Esc>", "jkl": "<Esc>"}, "spinnerVerbs": {"verbs": ["Pondering"]}
        }"#;
        let layer = Layer::parse(text, Origin::new(Scope::Managed, "managed-settings.json")).0;
        expect![[r#"
            Settings: `autoMode` has no effect: there is no classifier, and mode `auto` asks; forbid calls with `permissions.deny`
            Settings: `defaultShell` has no effect: commands run in bash
            Settings: `fastMode` has no effect: there is no fast mode; choose a faster model
            Settings: `policyHelper.refreshIntervalMs` has no effect: its program runs at the start of each session
            Settings: `statusLine` has no effect, or not the whole of it: it is not an object with `"type": "command"` and a `command`
            Settings: `vimInsertModeRemaps` has no effect, or not the whole of it: it is not an object of two letters each, with the value `<Esc>`"#]]
        .assert_eq(&ineffective_settings(&merge(&[layer], true)).join("\n"));
    }

    #[test]
    fn every_key_without_an_effect_is_told_or_kept_to() {
        let is_told = |path: &str| TOLD.iter().any(|row| row.path == path);
        for key in Key::all() {
            let is_unused = !key.is_used && key.scopes != Scopes::Global && !key.path.starts_with("sandbox.");
            let n_lists = usize::from(is_told(key.path)) + usize::from(KEPT_TO.contains(&key.path));
            assert_eq!(n_lists, usize::from(is_unused), "{}", key.path);
        }
        for path in TOLD.iter().map(|row| row.path).chain(KEPT_TO.iter().copied()) {
            assert!(Key::find(path).is_some(), "{path} is no key");
        }
    }
}
