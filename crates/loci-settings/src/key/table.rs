//! The rows: every key we know, one line each.
//!
//! A row's defaults are: any file may set it, lists are joined and objects merged by name and other values are
//! won by the highest file, a repository must be trusted for it, nothing acts upon it yet. The words behind a
//! row change that. `free()` is for values that only restrict, or do no harm in a stranger's hands.

use super::Kind::{self, *};
use super::Merge::{self, *};
use super::Scopes::{self, Global, Managed, NotShared, UserOrManaged};
use super::Trust::{self, *};
use super::{Closed, Key};

#[rustfmt::skip] // one line a key, so that the table can be read down its columns
pub(super) const KEYS: &[Key] = &[
    // Model and responses
    key("model", Text, "the model to start with, an alias or an id").free().used(),
    key("fallbackModel", Texts, "models to take, in order, when the first is overloaded").free().merged(Highest).used(),
    key("effortLevel", OneOf(&["low", "medium", "high", "xhigh"]), "how hard the model thinks").free().used(),
    key("alwaysThinkingEnabled", Bool, "whether the model thinks before it answers").free().used(),
    key("showThinkingSummaries", Bool, "whether the transcript shows summaries of thinking").free(),
    key("availableModels", Texts, "the only models that may be chosen").free().merged(ManagedOrUnion).closed(Closed::Nothing).used(),
    key("enforceAvailableModels", Bool, "whether the default model must be among them too").free().closed(Closed::On).used(),
    key("modelPricing", Object, "prices of models, US$ per million tokens, over the built-in ones").only(Managed).used(),
    key("promptCacheTtl", OneOf(&["5m", "1h"]), "how long the provider keeps prompts of the main line").free().used(),
    key("subagentPromptCacheTtl", OneOf(&["5m", "1h"]), "how long it keeps those of agents").free().used(),
    key("modelOverrides", TextMap, "a provider's own ids for models").trust(NeverShared).used(),
    key("models", Object, "window, output and price of models of the first provider, by id").only(UserOrManaged).used(),
    key("providers", Object, "further model providers, by name").only(UserOrManaged).used(),
    key("advisorModel", Text, "the model that advises").free(),
    key("fastMode", Bool, "faster answers at a higher price"),
    key("fastModePerSessionOptIn", Bool, "whether fast mode is asked for in each session").free(),
    key("language", Text, "the language of answers").used(),
    key("outputStyle", Text, "the name of an output style").free().used(),
    key("switchModelsOnFlag", Bool, "whether to change models when a safety flag is raised").free(),
    key("ultracode", Bool, "start at the highest effort, planning workflows"),
    // Permissions
    key("permissions.allow", Texts, "rules for calls that run without asking").used(),
    key("permissions.ask", Restrictions, "rules for calls that are always asked about").free().used(),
    key("permissions.deny", Restrictions, "rules for calls that never run").free().used(),
    key("permissions.additionalDirectories", Texts, "further directories the session may work in").used(),
    key("permissions.defaultMode", OneOf(&["default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]), "the permission mode to start in").trust(PermissionMode).used(),
    key("permissions.disableBypassPermissionsMode", OneOf(&["disable"]), "forbids running everything unasked").free().used(),
    key("permissions.disableAutoMode", OneOf(&["disable"]), "forbids the mode in which a classifier decides").free().used(),
    key("disableAutoMode", OneOf(&["disable"]), "forbids the mode in which a classifier decides").free().used(),
    key("autoMode", Object, "rules in prose for the classifier").only(UserOrManaged).merged(Concatenate),
    key("useAutoModeDuringPlan", Bool, "whether the classifier reviews commands while planning").only(NotShared).merged(AnyFalse),
    key("skipDangerousModePermissionPrompt", Bool, "the warning about running everything unasked was accepted").only(NotShared).used(),
    key("skipAutoPermissionPrompt", Bool, "the notice about auto mode was seen").only(UserOrManaged),
    key("allowManagedPermissionRulesOnly", Bool, "only the administrator's allow rules count").only(Managed).used(),
    // Sandbox
    key("sandbox.enabled", Bool, "run commands in a sandbox").used(),
    key("sandbox.failIfUnavailable", Bool, "refuse to run commands where there is no sandbox").free().merged(AnyTrue).used(),
    key("sandbox.autoAllowBashIfSandboxed", Bool, "run sandboxed commands without asking").used(),
    key("sandbox.excludedCommands", Texts, "commands that run outside the sandbox").used(),
    key("sandbox.allowUnsandboxedCommands", Bool, "whether the model may ask to leave the sandbox").used(),
    key("sandbox.filesystem.allowWrite", Texts, "paths that sandboxed commands may write").used(),
    key("sandbox.filesystem.denyWrite", Texts, "paths that sandboxed commands may not write").free().used(),
    key("sandbox.filesystem.denyRead", Texts, "paths that sandboxed commands may not read").free().used(),
    key("sandbox.filesystem.allowRead", Texts, "paths that sandboxed commands may read all the same").used(),
    key("sandbox.filesystem.allowManagedReadPathsOnly", Bool, "only the administrator's readable paths count").only(Managed).used(),
    key("sandbox.filesystem.disabled", Bool, "no sandboxing of files").only(UserOrManaged).used(),
    key("sandbox.network.allowedDomains", Texts, "hosts that sandboxed commands may reach").used(),
    key("sandbox.network.deniedDomains", Texts, "hosts that sandboxed commands may not reach").free().used(),
    key("sandbox.network.strictAllowlist", Bool, "whether hosts not on the list are refused unasked").only(UserOrManaged).used(),
    key("sandbox.network.allowManagedDomainsOnly", Bool, "only the administrator's hosts count").only(Managed).used(),
    key("sandbox.network.allowUnixSockets", Texts, "sockets that sandboxed commands may use"),
    key("sandbox.network.allowAllUnixSockets", Bool, "whether they may use all of them").used(),
    key("sandbox.network.allowLocalBinding", Bool, "whether they may listen on local ports"),
    key("sandbox.network.allowMachLookup", Texts, "system services they may look up"),
    key("sandbox.network.httpProxyPort", Integer(1, 65535), "the port of an HTTP proxy to use").trust(NeverShared).used(),
    key("sandbox.network.socksProxyPort", Integer(1, 65535), "the port of a SOCKS proxy to use").trust(NeverShared).used(),
    key("sandbox.network.tlsTerminate", Object, "the authority that opens encrypted connections").only(UserOrManaged),
    key("sandbox.credentials", Object, "secrets that are hidden from sandboxed commands").used(),
    key("sandbox.ignoreViolations", Object, "violations that are not reported, by command"),
    key("sandbox.enableWeakerNestedSandbox", Bool, "a weaker sandbox inside containers").used(),
    key("sandbox.enableWeakerNetworkIsolation", Bool, "a weaker isolation of the network"),
    key("sandbox.allowAppleEvents", Bool, "whether commands may drive other programs").only(UserOrManaged),
    key("sandbox.ripgrep", Object, "the search program of the sandbox").only(UserOrManaged),
    key("sandbox.bwrapPath", Text, "where `bwrap` lies").only(Managed),
    key("sandbox.socatPath", Text, "where `socat` lies").only(Managed),
    // Memory and context
    key("autoCompactEnabled", Bool, "compact the conversation when it grows too long").free().used(),
    key("autoCompactWindow", Integer(100_000, 1_000_000), "the window to compact within, in tokens").free().used(),
    key("contextCollapseEnabled", Bool, "fold old stretches of the conversation into summaries instead of compacting it as a whole").free().used(),
    key("compactionSteps.resultBudget", Bool, "put results of tools that take too much of the window into files").free().used(),
    key("compactionSteps.snip", Bool, "clear old results of tools when the window fills").free().used(),
    key("compactionSteps.coldClearing", Bool, "clear old results of tools after a long pause").free().used(),
    key("compactionSteps.serverClearing", Bool, "ask the server to clear old results of tools").free().used(),
    key("compactionSteps.reactive", Bool, "compact when the server has refused a prompt for its length").free().used(),
    key("recallEnabled", Bool, "whether the model may look up earlier messages of its session").free().used(),
    key("autoMemoryEnabled", Bool, "keep memories between sessions").free().used(),
    key("autoMemoryDirectory", Text, "where those memories lie").used(),
    key("memoryReview", OneOf(&["accept-all", "review-first", "off"]), "whether memories found in the background count at once, after a review, or are not looked for").free().merged(Strictest(&["accept-all", "review-first", "off"])).used(),
    key("memoryExtraction.enabled", Bool, "look for memories when the model has answered").used(),
    key("memoryExtraction.leastTokens", Integer(0, i64::MAX), "how much must have been said since the last time, in tokens").used(),
    key("teamMemory.server", Text, "the address of the server that shares memories with a team").used(),
    key("teamMemory.repository", Text, "what this repository is called on that server").used(),
    key("sessionMemory.enabled", Bool, "keep running notes of a session, from which it can be compacted").used(),
    key("sessionMemory.firstTokens", Integer(1, i64::MAX), "the size of the conversation at which notes begin, in tokens").used(),
    key("sessionMemory.moreTokens", Integer(1, i64::MAX), "how much the conversation grows before notes are written again, in tokens").used(),
    key("sessionMemory.prepareSummary", Bool, "prepare a summary beside the conversation before the window is full").used(),
    key("sessionMemory.toolCalls", Integer(0, 1_000_000), "calls that are made before notes are written again").used(),
    key("claudeMd", Text, "the administrator's instructions").only(Managed).used(),
    key("readAgentsMd", Bool, "whether AGENTS.md is read in directories without a CLAUDE.md; it is unless this is false").free().used(),
    key("claudeMdExcludes", Texts, "instruction files to leave out, as patterns on whole paths").used(),
    key("env", TextMap, "environment variables of loci and of all it runs").trust(Environment).used(),
    key("fileCheckpointingEnabled", Bool, "keep what files held before they were changed").used(),
    key("plansDirectory", Text, "where plans are kept, relative to the project").used(),
    key("skillListingBudgetFraction", Number(0.0, 1.0), "the share of the context for the list of skills").free().used(),
    key("skillListingMaxDescChars", Integer(1, i64::MAX), "the longest description in the list of skills").free().used(),
    key("cleanupPeriodDays", Integer(1, i64::MAX), "how many days sessions stay before they are archived").used(),
    // Interface
    key("theme", Text, "the colours").free().used(),
    key("tui", OneOf(&["default", "fullscreen"]), "how the terminal is used").free().used(),
    key("verbose", Bool, "show everything").free().used(),
    key("viewMode", OneOf(&["default", "verbose", "focus"]), "how much is shown").free().used(),
    key("editorMode", OneOf(&["normal", "vim"]), "the keys of the prompt editor").free().used(),
    key("vimInsertModeRemaps", TextMap, "shortcuts in vim's insert mode").only(UserOrManaged).used(),
    key("keybindingFlavor", OneOf(&["classic", "readline"]), "the family of key bindings").free().used(),
    key("statusLine", Object, "the command that prints the status line").used(),
    key("subagentStatusLine", Object, "the command that prints a subagent's status line").used(),
    key("fileSuggestion", Object, "the command that suggests files").used(),
    key("respectGitignore", Bool, "leave ignored files out of suggestions").free().used(),
    key("respondToBashCommands", Bool, "whether the model answers to commands the user runs").free().used(),
    key("defaultShell", OneOf(&["bash", "powershell"]), "the shell of the prompt"),
    key("showTurnDuration", Bool, "show how long a turn took").free().used(),
    key("spinnerTipsEnabled", Bool, "show tips while waiting").free().used(),
    key("terminalProgressBarEnabled", Bool, "show progress in the terminal's own bar").free().used(),
    key("terminalTitleFromRename", Bool, "name the terminal after the session").free().used(),
    key("promptSuggestionEnabled", Bool, "suggest prompts").free().used(),
    key("emojiCompletionEnabled", Bool, "complete emoji names").free().used(),
    key("autoScrollEnabled", Bool, "follow the newest output").free().used(),
    key("wheelScrollAccelerationEnabled", Bool, "scroll faster with a fast wheel").free().used(),
    key("spinnerVerbs", Object, "words beside the spinner").free().used(),
    key("spinnerTipsOverride", Object, "tips of one's own").free().used(),
    key("syntaxHighlightingDisabled", Bool, "no colours in code").free().used(),
    key("prefersReducedMotion", Bool, "no animation").free().used(),
    key("showClearContextOnPlanAccept", Bool, "offer to clear the context when a plan is accepted").free().used(),
    key("axScreenReader", Bool, "output for screen readers").free().used(),
    key("askUserQuestionTimeout", OneOf(&["60s", "5m", "10m", "never"]), "how long a question to the user waits").only(UserOrManaged).used(),
    key("dialogExpiry", OneOf(&["60s", "5m", "10m", "never"]), "how long a dialog waits").only(UserOrManaged),
    key("footerLinksRegexes", List, "links in the footer").only(UserOrManaged),
    key("companyAnnouncements", Texts, "announcements at start, of which one is shown").used(),
    key("spellcheck", Object, "spelling of prompts").only(UserOrManaged).merged(Highest),
    key("voice", Object, "voice input").free(),
    key("voiceEnabled", Bool, "voice input").free(),
    key("preferredNotifChannel", OneOf(&["auto", "terminal_bell", "iterm2", "iterm2_with_bell", "kitty", "ghostty", "notifications_disabled"]), "how to call the user").free().used(),
    key("awaySummaryEnabled", Bool, "a summary for a user who was away").free().used(),
    // Git
    key("attribution.commit", Text, "what ends the messages of commits; empty hides it").used(),
    key("attribution.pr", Text, "what ends pull requests; empty hides it").used(),
    key("attribution.sessionUrl", Bool, "whether the session's address is added; it never is").free().used(),
    key("includeCoAuthoredBy", Bool, "deprecated: use `attribution`").free(),
    key("includeGitInstructions", Bool, "whether the prompt tells about git").free().used(),
    key("prUrlTemplate", Text, "the address of pull requests").free().used(),
    // Hooks, skills, plugins, MCP
    key("hooks", Object, "commands that run at events").merged(Concatenate).used(),
    key("disableAllHooks", Bool, "run no hooks").used(),
    key("allowManagedHooksOnly", Bool, "only the administrator's hooks run").only(Managed).closed(Closed::On).used(),
    key("allowedHttpHookUrls", Texts, "addresses that hooks may call").used(),
    key("httpHookAllowedEnvVars", Texts, "variables that hooks may send").used(),
    key("disableBundledSkills", Bool, "no built-in skills").free().used(),
    key("disableSkillShellExecution", Bool, "no commands in skills").free().merged(AnyTrue).used(),
    key("skillOverrides", TextMap, "which skills are on").free().used(),
    key("enabledPlugins", Object, "which plugins are on").used(),
    key("extraKnownMarketplaces", Object, "further places to find plugins").merged(ByWholeName).used(),
    key("pluginConfigs", Object, "options of plugins").only(UserOrManaged).used(),
    key("strictKnownMarketplaces", Any, "the only marketplaces that may be used").only(Managed).used(),
    key("blockedMarketplaces", Any, "marketplaces that may not be used").only(Managed).used(),
    key("strictPluginOnlyCustomization", Any, "what only plugins may add").only(Managed).used(),
    key("pluginTrustMessage", Text, "words to those who install plugins").only(Managed).used(),
    key("pluginSuggestionMarketplaces", Any, "marketplaces to suggest from").only(Managed),
    key("disableCommandPluginSources", Bool, "no plugins from commands; there are none anyway").only(Managed).closed(Closed::On).used(),
    key("disableSideloadFlags", Bool, "no plugins from flags").only(Managed).used(),
    key("enableAllProjectMcpServers", Bool, "approve all MCP servers of the project").used(),
    key("enabledMcpjsonServers", Texts, "approved MCP servers of the project").used(),
    key("disabledMcpjsonServers", Texts, "rejected MCP servers of the project").free().used(),
    key("allowedMcpServers", List, "the only MCP servers that may be used").closed(Closed::Nothing).used(),
    key("deniedMcpServers", List, "MCP servers that may not be used").free().used(),
    key("allowManagedMcpServersOnly", Bool, "only the administrator's list of MCP servers counts").only(Managed).closed(Closed::On).used(),
    key("mcpSampling", Texts, "MCP servers that may ask the model").only(UserOrManaged).used(),
    key("allowAllClaudeAiMcps", Bool, "allow all connectors of the account").only(Managed),
    key("disableClaudeAiConnectors", Bool, "no connectors of the account").free().merged(AnyTrue),
    key("disableWorkflows", Bool, "no workflows").free(),
    key("enableWorkflows", Bool, "workflows"),
    key("workflowKeywordTriggerEnabled", Bool, "whether a keyword starts a workflow").free(),
    key("workflowSizeGuideline", Any, "how large workflows should be").free(),
    // Agents, sessions, worktrees, remote
    key("agent", Text, "the agent the main conversation runs as").used(),
    key("teammateMode", OneOf(&["in-process", "auto", "tmux", "iterm2"]), "where teammates run").free(),
    key("crossSessionInbound", OneOf(&["accept", "hold", "refuse"]), "messages from other sessions").free().merged(Strictest(&["accept", "hold", "refuse"])),
    key("isolatePeerMachines", Bool, "no messages from other machines").free().merged(AnyTrue),
    key("disableAgentView", Bool, "no agent view, and no sessions that go on in the background").free().used(),
    key("processWrapper", Text, "words put before commands").only(UserOrManaged),
    key("worktree.baseRef", OneOf(&["fresh", "head"]), "what new worktrees start from").free().used(),
    key("worktree.symlinkDirectories", Texts, "directories that worktrees share").used(),
    key("worktree.sparsePaths", Texts, "paths that worktrees check out").free().used(),
    key("worktree.bgIsolation", OneOf(&["worktree", "none"]), "where background sessions work"),
    key("remoteControlAtStartup", Bool, "let other devices take part").merged(AnyFalse),
    key("disableRemoteControl", Bool, "no remote control"),
    key("agentPushNotifEnabled", Bool, "notices on other devices"),
    key("inputNeededNotifEnabled", Bool, "notices when input is needed"),
    key("remote.defaultEnvironmentId", Text, "where remote sessions run"),
    key("enableArtifact", Bool, "artifacts"),
    key("disableArtifact", Bool, "no artifacts"),
    key("disableDeepLinkRegistration", Any, "register no link handler"),
    key("sshConfigs", List, "machines to work on"),
    key("sshHostAllowlist", Texts, "the only machines to work on"),
    key("channelsEnabled", Bool, "messages from channels"),
    key("allowedChannelPlugins", Any, "plugins that may bring channels"),
    key("browserExternalPageTools", Any, "what tools may do on pages of the desktop's browser").only(Managed),
    key("disableBrowserExternalNavigation", Any, "only local pages in the desktop's browser").only(Managed),
    key("disableMobileSimulatorTools", Any, "no simulator in the desktop").only(Managed),
    key("syncClaudeAiSkills", Bool, "fetch the account's skills").only(NotShared).merged(AnyFalse),
    // Credentials, updates, privacy
    key("apiKeyHelper", Text, "the command that prints an API key").trust(NeverShared).used(),
    key("awsAuthRefresh", Text, "the command that renews the login at Amazon").trust(NeverShared).used(),
    key("awsCredentialExport", Text, "the command that prints keys for Amazon").trust(NeverShared).used(),
    key("gcpAuthRefresh", Text, "the command that renews the login at Google").trust(NeverShared).used(),
    key("otelHeadersHelper", Text, "the command that prints telemetry headers").trust(NeverShared),
    key("forceLoginMethod", OneOf(&["claudeai", "console", "gateway"]), "the only way to log in").free().used(),
    key("forceLoginOrgUUID", TextOrTexts, "the only organisation to log in to").free().used().closed(Closed::Nothing),
    key("forceLoginGatewayUrl", Text, "the gateway to log in to").only(Managed),
    key("autoUpdatesChannel", OneOf(&["latest", "stable"]), "which releases are offered").free(),
    key("minimumVersion", Text, "the oldest release to go back to").free(),
    key("requiredMinimumVersion", Text, "the oldest release that may run").only(Managed).used(),
    key("requiredMaximumVersion", Text, "the newest release that may run").only(Managed).used(),
    key("feedbackSurveyRate", Number(0.0, 1.0), "how often to ask for feedback").free(),
    key("skipWebFetchPreflight", Bool, "do not ask a service about addresses before fetching them; none is asked here").free().used(),
    key("webSearch", Object, "how to search the web: `command`, or `mcpTool` with `server` and `tool`").used(),
    // How managed settings are found
    key("wslInheritsWindowsSettings", Bool, "take the managed settings of Windows too").only(Managed),
    key("forceRemoteSettingsRefresh", Bool, "start only with fresh remote settings").only(Managed).used(),
    key("parentSettingsBehavior", Text, "what settings of an embedding program may do").only(Managed),
    key("policyHelper", Object, "the program that prints managed settings").only(Managed).used(),
    // Global state, not settings
    key("autoConnectIde", Bool, "connect to an editor").only(Global),
    key("autoInstallIdeExtension", Bool, "install the editor's extension").only(Global),
    key("diffTool", OneOf(&["auto", "terminal"]), "where differences are shown").only(Global),
    key("externalEditorContext", Bool, "show the last answer above the prompt in your editor").only(Global).used(),
    key("showExpandedTodos", Bool, "show the task list from the start (Ctrl+T keeps it)").only(Global).used(),
    key("permissionExplainerEnabled", Bool, "have the model explain a command that asks for permission (Ctrl+E)").only(Global).used(),
];

const fn key(path: &'static str, kind: Kind, about: &'static str) -> Key {
    let merge = match kind {
        Texts | Restrictions | List => Union,
        TextMap | BoolMap | Object => ByName,
        Bool | Text | OneOf(_) | Integer(..) | Number(..) | TextOrTexts | Any => Highest,
    };
    Key { path, kind, scopes: Scopes::Any, merge, trust: Needed, closed: None, is_used: false, about }
}

impl Key {
    const fn free(self) -> Self {
        Self { trust: Free, ..self }
    }

    const fn used(self) -> Self {
        Self { is_used: true, ..self }
    }

    const fn closed(self, closed: Closed) -> Self {
        Self { closed: Some(closed), ..self }
    }

    const fn only(self, scopes: Scopes) -> Self {
        Self { scopes, ..self }
    }

    const fn merged(self, merge: Merge) -> Self {
        Self { merge, ..self }
    }

    const fn trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }
}
