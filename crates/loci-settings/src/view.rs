//! The settings this version acts upon, as types.

mod sandbox;

use serde_json::Value;

use super::{MergedSettings, Origin, Part, Role};
pub use sandbox::{LoosenedSetting, NetworkSettings, SandboxSettings};

/// What the program reads of its settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The model to start with.
    pub model: Option<String>,
    /// Models to fall back to, in order.
    pub fallback_model: Option<Vec<String>>,
    /// How hard the model thinks.
    pub effort_level: Option<String>,
    /// How long the provider keeps prompts of the main line: `5m` or `1h`.
    pub prompt_cache_ttl: Option<String>,
    /// How long it keeps those of agents.
    pub subagent_prompt_cache_ttl: Option<String>,
    /// What models cost, as the administrator says.
    pub model_pricing: serde_json::Map<String, Value>,
    /// Whether the model thinks.
    pub always_thinking_enabled: Option<bool>,
    /// Variables of our process and its children, in the order of their files.
    pub env: Vec<(String, String)>,
    /// What may run.
    pub permissions: PermissionSettings,
    /// What holds commands once they run.
    pub sandbox: SandboxSettings,
    /// Whether the conversation is compacted before it is too long.
    pub auto_compact_enabled: Option<bool>,
    /// What takes the place of the model's window.
    pub auto_compact_window: Option<u64>,
    /// Whether what files held before they were changed is kept.
    pub file_checkpointing_enabled: Option<bool>,
    /// Whether the model may look up earlier messages of its session.
    pub recall_enabled: Option<bool>,
    /// Whether old stretches of a conversation are folded instead of compacting it as a whole.
    pub context_collapse_enabled: Option<bool>,
    /// Which steps make a conversation shorter.
    pub compaction_steps: CompactionSteps,
    /// Running notes of a session.
    pub session_memory: SessionMemorySettings,
    /// Memories between sessions.
    pub auto_memory: AutoMemorySettings,
    /// Memories that are shared.
    pub team_memory: TeamMemorySettings,
    /// Where plans are kept, relative to the project.
    pub plans_directory: Option<String>,
    /// Working copies of the repository.
    pub worktree: WorktreeSettings,
    /// MCP servers.
    pub mcp: McpSettings,
    /// Days that sessions are kept.
    pub cleanup_period_days: Option<u64>,
    /// Whether the prompt tells about git.
    pub include_git_instructions: Option<bool>,
    /// The language of answers.
    pub language: Option<String>,
    /// What ends the message of a commit; an empty text hides it.
    pub commit_attribution: Option<String>,
    /// What ends the description of a pull request; an empty text hides it.
    pub pull_request_attribution: Option<String>,
    /// Patterns of instruction files to leave out.
    pub claude_md_excludes: Vec<String>,
    /// The administrator's instructions.
    pub claude_md: Option<String>,
    /// Whether `AGENTS.md` is read in directories without a `CLAUDE.md`.
    pub read_agents_md: bool,
    /// The command that prints an API key.
    pub api_key_helper: Option<String>,
    /// What is said of models of the first provider, by id.
    pub models: serde_json::Map<String, Value>,
    /// Model providers that have names.
    pub providers: serde_json::Map<String, Value>,
    /// What a provider calls our ids of models.
    pub model_overrides: Vec<(String, String)>,
    /// Whether such names are set where they do not count, because the administrator says which models may be chosen.
    pub has_idle_overrides: bool,
    /// The providers that may be asked, where the administrator says which.
    pub provider_limits: Option<ProviderLimits>,
    /// The command that renews a login at Amazon.
    pub aws_auth_refresh: Option<String>,
    /// The command that prints keys for Amazon.
    pub aws_credential_export: Option<String>,
    /// The command that renews a login at Google.
    pub gcp_auth_refresh: Option<String>,
    /// The only way to log in.
    pub force_login_method: Option<String>,
    /// Whether only some organisations may be logged in to.
    pub forces_login_org: bool,
}

/// Which providers may be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderLimits {
    /// Their names.
    pub allowed: Vec<String>,
    /// Variables that the administrator sets: an address among them is the administrator's own.
    pub variables: Vec<(String, String)>,
    /// Entries of `providers` that the administrator writes.
    pub providers: Vec<String>,
}

/// How working copies of the repository are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeSettings {
    /// What they begin with: `fresh` or `head`.
    pub base_ref: Option<String>,
    /// Directories that they share with the main checkout.
    pub symlink_directories: Vec<String>,
    /// The only directories that are checked out.
    pub sparse_paths: Vec<String>,
}

/// Which steps make a conversation shorter, where somebody says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionSteps {
    /// Results of tools that take too much of the window go to files.
    pub result_budget: Option<bool>,
    /// Old results are cleared when the window fills.
    pub snip: Option<bool>,
    /// Old results are cleared after a long pause.
    pub cold_clearing: Option<bool>,
    /// The server is asked to clear old results.
    pub server_clearing: Option<bool>,
    /// It is compacted when the server has refused a prompt for its length.
    pub reactive: Option<bool>,
}

/// Running notes of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionMemorySettings {
    /// Whether they are kept.
    pub enabled: Option<bool>,
    /// The size of the context at which they begin.
    pub first_tokens: Option<u64>,
    /// How much it grows before they are written again.
    pub more_tokens: Option<u64>,
    /// Calls that are made before they are written again.
    pub tool_calls: Option<u64>,
    /// Whether a summary is prepared before the window is full.
    pub prepare_summary: Option<bool>,
}

/// Memories that are shared with a team.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeamMemorySettings {
    /// The server's address.
    pub server: Option<String>,
    /// What the repository is called there.
    pub repository: Option<String>,
}

/// Which MCP servers are used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpSettings {
    /// Whether all servers of the project are approved.
    pub approves_all: bool,
    /// Servers of the project that are approved.
    pub approved: Vec<String>,
    /// Servers of the project that are rejected.
    pub rejected: Vec<String>,
    /// The only servers that may be used; none means all.
    pub allowed: Option<Vec<Value>>,
    /// Servers that may not be used.
    pub denied: Vec<Value>,
    /// Servers that may ask the model.
    pub sampling: Vec<String>,
}

/// Memories between sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AutoMemorySettings {
    /// Whether there are any.
    pub enabled: Option<bool>,
    /// Where they lie.
    pub directory: Option<String>,
    /// Whether those found in the background count at once.
    pub review: Option<String>,
    /// Whether they are looked for in the background.
    pub extraction: Option<bool>,
    /// How much must have been said since the last time.
    pub least_tokens: Option<u64>,
}

/// What may run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PermissionSettings {
    /// Rules that let calls run.
    pub allow: Vec<Sourced>,
    /// Rules that demand a question.
    pub ask: Vec<Sourced>,
    /// Rules that forbid.
    pub deny: Vec<Sourced>,
    /// Further working directories.
    pub additional_directories: Vec<Sourced>,
    /// The mode to start in, and who chose it.
    pub default_mode: Option<Sourced>,
    /// Whether running everything unasked is forbidden.
    pub is_bypass_disabled: bool,
    /// Whether the mode in which a classifier decides is forbidden (`disableAutoMode`, there or on its own).
    pub is_auto_disabled: bool,
    /// Whether only the administrator's allow rules count.
    pub managed_rules_only: bool,
    /// Whether nothing outside the working directories is read.
    pub blocks_reads_outside: bool,
    /// Whether tools write nothing outside the working directories.
    pub blocks_writes_outside: bool,
    /// Whether a call that would be asked about is denied.
    pub denies_prompts: bool,
}

/// A text and the file it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced {
    /// The text.
    pub text: String,
    /// The file.
    pub origin: Origin,
    /// Its line, counted from one.
    pub line: usize,
}

impl From<&MergedSettings> for Settings {
    fn from(merged: &MergedSettings) -> Self {
        let text = |path: &str| merged.value(path).and_then(Value::as_str).map(str::to_owned);
        let flag = |path: &str| merged.value(path).and_then(Value::as_bool);
        let number = |path: &str| merged.value(path).and_then(Value::as_u64);
        let texts = |path: &str| merged.value(path).map(texts_of);
        let command = |path: &str| text(path).filter(|command| !command.trim().is_empty());
        let variables = merged.value("env").and_then(Value::as_object);
        Self {
            model: text("model").filter(|name| !name.trim().is_empty()),
            fallback_model: texts("fallbackModel"),
            effort_level: text("effortLevel"),
            prompt_cache_ttl: text("promptCacheTtl"),
            subagent_prompt_cache_ttl: text("subagentPromptCacheTtl"),
            model_pricing: merged
                .value("modelPricing")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
            always_thinking_enabled: flag("alwaysThinkingEnabled"),
            env: variables
                .into_iter()
                .flatten()
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect(),
            permissions: PermissionSettings {
                allow: sourced(merged, "permissions.allow"),
                ask: sourced(merged, "permissions.ask"),
                deny: sourced(merged, "permissions.deny"),
                additional_directories: sourced(merged, "permissions.additionalDirectories"),
                default_mode: sourced(merged, "permissions.defaultMode").pop(),
                is_bypass_disabled: text("permissions.disableBypassPermissionsMode").is_some(),
                is_auto_disabled: ["permissions.disableAutoMode", "disableAutoMode"]
                    .iter()
                    .any(|path| text(path).is_some()),
                managed_rules_only: flag("allowManagedPermissionRulesOnly") == Some(true),
                blocks_reads_outside: flag("permissions.blockReadsOutsideWorkingDirectories") == Some(true),
                blocks_writes_outside: flag("permissions.blockWritesOutsideWorkingDirectories") == Some(true),
                denies_prompts: flag("permissions.denyInsteadOfPrompting") == Some(true),
            },
            sandbox: SandboxSettings::from_merged(merged),
            auto_compact_enabled: flag("autoCompactEnabled"),
            file_checkpointing_enabled: flag("fileCheckpointingEnabled"),
            recall_enabled: flag("recallEnabled"),
            context_collapse_enabled: flag("contextCollapseEnabled"),
            auto_compact_window: number("autoCompactWindow"),
            compaction_steps: CompactionSteps {
                result_budget: flag("compactionSteps.resultBudget"),
                snip: flag("compactionSteps.snip"),
                cold_clearing: flag("compactionSteps.coldClearing"),
                server_clearing: flag("compactionSteps.serverClearing"),
                reactive: flag("compactionSteps.reactive"),
            },
            session_memory: SessionMemorySettings {
                enabled: flag("sessionMemory.enabled"),
                first_tokens: number("sessionMemory.firstTokens"),
                more_tokens: number("sessionMemory.moreTokens"),
                tool_calls: number("sessionMemory.toolCalls"),
                prepare_summary: flag("sessionMemory.prepareSummary"),
            },
            team_memory: TeamMemorySettings {
                server: text("teamMemory.server").filter(|address| !address.trim().is_empty()),
                repository: text("teamMemory.repository"),
            },
            mcp: McpSettings {
                approves_all: flag("enableAllProjectMcpServers") == Some(true),
                approved: texts("enabledMcpjsonServers").unwrap_or_default(),
                rejected: texts("disabledMcpjsonServers").unwrap_or_default(),
                allowed: allowed_servers(merged, flag("allowManagedMcpServersOnly") == Some(true)),
                sampling: texts("mcpSampling").unwrap_or_default(),
                denied: merged
                    .value("deniedMcpServers")
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default(),
            },
            auto_memory: AutoMemorySettings {
                enabled: flag("autoMemoryEnabled"),
                directory: text("autoMemoryDirectory").filter(|dir| !dir.trim().is_empty()),
                review: text("memoryReview"),
                extraction: flag("memoryExtraction.enabled"),
                least_tokens: number("memoryExtraction.leastTokens"),
            },
            plans_directory: text("plansDirectory"),
            worktree: WorktreeSettings {
                base_ref: text("worktree.baseRef"),
                symlink_directories: texts("worktree.symlinkDirectories").unwrap_or_default(),
                sparse_paths: texts("worktree.sparsePaths").unwrap_or_default(),
            },
            cleanup_period_days: number("cleanupPeriodDays"),
            include_git_instructions: flag("includeGitInstructions"),
            language: text("language"),
            commit_attribution: text("attribution.commit"),
            pull_request_attribution: text("attribution.pr"),
            claude_md_excludes: texts("claudeMdExcludes").unwrap_or_default(),
            claude_md: text("claudeMd"),
            read_agents_md: flag("readAgentsMd") != Some(false),
            api_key_helper: command("apiKeyHelper"),
            models: merged.value("models").and_then(Value::as_object).cloned().unwrap_or_default(),
            providers: merged.value("providers").and_then(Value::as_object).cloned().unwrap_or_default(),
            model_overrides: model_overrides(merged),
            has_idle_overrides: has_managed_models(merged)
                && managed_parts(merged, "modelOverrides").count() < parts(merged, "modelOverrides").len(),
            provider_limits: texts("allowedProviders").map(|allowed| provider_limits(merged, allowed)),
            aws_auth_refresh: command("awsAuthRefresh"),
            aws_credential_export: command("awsCredentialExport"),
            gcp_auth_refresh: command("gcpAuthRefresh"),
            force_login_method: text("forceLoginMethod"),
            forces_login_org: merged.value("forceLoginOrgUUID").is_some(),
        }
    }
}

/// Returns the servers that may be used; where only the administrator's list counts and there is none, all may.
fn allowed_servers(merged: &MergedSettings, managed_only: bool) -> Option<Vec<Value>> {
    if !managed_only {
        return merged.value("allowedMcpServers").and_then(Value::as_array).cloned();
    }
    let lists = managed_parts(merged, "allowedMcpServers").filter_map(|part| part.value.as_array());
    let mut lists = lists.peekable();
    lists.peek().is_some().then(|| lists.flatten().cloned().collect())
}

/// Returns what a provider calls models. Where the administrator says which models may be chosen, only the administrator says
/// this, too: another's word could lead an allowed name to a model that is not.
fn model_overrides(merged: &MergedSettings) -> Vec<(String, String)> {
    let texts = |value: &Value| -> Vec<(String, String)> {
        let all = value.as_object().into_iter().flatten();
        all.filter_map(|(id, own)| Some((id.clone(), own.as_str()?.to_owned()))).collect()
    };
    if !has_managed_models(merged) {
        return merged.value("modelOverrides").map(texts).unwrap_or_default();
    }
    managed_parts(merged, "modelOverrides").flat_map(|part| texts(&part.value)).collect()
}

fn provider_limits(merged: &MergedSettings, allowed: Vec<String>) -> ProviderLimits {
    let rows =
        |path: &'static str| managed_parts(merged, path).filter_map(|part| part.value.as_object()).flatten();
    let variables = rows("env").filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    ProviderLimits {
        allowed,
        variables: variables.collect(),
        providers: rows("providers").map(|(name, _)| name.clone()).collect(),
    }
}

/// Returns what the administrator says of a key, in the order in which it counts.
fn managed_parts<'a>(merged: &'a MergedSettings, path: &str) -> impl Iterator<Item = &'a Part> {
    let is_managed =
        |part: &&Part| part.origin.scope == super::Scope::Managed && !matches!(part.role, Role::Refused(_));
    parts(merged, path).iter().filter(is_managed)
}

fn parts<'a>(merged: &'a MergedSettings, path: &str) -> &'a [Part] {
    merged.get(path).map(|setting| setting.parts.as_slice()).unwrap_or_default()
}

fn has_managed_models(merged: &MergedSettings) -> bool {
    managed_parts(merged, "availableModels").next().is_some()
}

fn texts_of(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the texts that count, each with its file.
fn sourced(merged: &MergedSettings, path: &str) -> Vec<Sourced> {
    let parts = merged.get(path).map(|setting| setting.parts.as_slice()).unwrap_or_default();
    let counting = parts.iter().filter(|part| matches!(part.role, Role::Wins | Role::Joins));
    counting
        .flat_map(|part| {
            let texts = match &part.value {
                Value::String(text) => vec![text.clone()],
                other => texts_of(other),
            };
            texts.into_iter().enumerate().map(|(idx, text)| Sourced {
                text,
                origin: part.origin.clone(),
                line: part.lines.get(idx).copied().unwrap_or(part.line),
            })
        })
        .collect()
}
