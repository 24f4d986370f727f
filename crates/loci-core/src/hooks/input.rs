//! What a handler reads: one JSON object, its keys in the order other programs have come to know.
//!
//! `session_id`, `transcript_path`, `cwd`, `prompt_id`, `permission_mode`, `agent_id`, `agent_type`, `effort`,
//! `hook_event_name`, then what belongs to the event. Keys that do not apply are left out, with the exceptions the
//! recorded payloads show (`custom_instructions` may be null).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::HookEvent;

/// What a handler reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookInput {
    /// What is told of every event.
    #[serde(flatten)]
    pub common: CommonInput,
    /// What belongs to this one.
    #[serde(flatten)]
    pub event: EventInput,
}

/// What is told of every event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommonInput {
    /// The session.
    pub session_id: String,
    /// Where it is written.
    pub transcript_path: PathBuf,
    /// Where it stands.
    pub cwd: PathBuf,
    /// The prompt at hand, once there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// How much runs without asking; for events of prompts and calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// The agent it happens in; none for the main line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// How hard the model thinks; for models that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<EffortLevel>,
}

/// How hard the model thinks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffortLevel {
    /// The level.
    pub level: String,
}

/// A call, as events of it tell it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFields {
    /// The tool.
    pub tool_name: String,
    /// Its arguments.
    pub tool_input: Value,
}

/// The MCP server that answers a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookMcpServer {
    /// Its name, as it is configured.
    pub name: String,
    /// Who has brought it: a scope of configuration, or `sdk` for the client.
    pub source: String,
}

/// One call of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolBatchCall {
    /// The tool.
    pub tool_name: String,
    /// Its arguments, as the model wrote them.
    pub tool_input: Value,
    /// Its id.
    pub tool_use_id: String,
    /// What the model is told of it.
    pub tool_response: Value,
}

/// A change of the model of the main line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSwitchFields {
    /// The model that was asked before.
    pub from_model: String,
    /// The one that is asked from now on.
    pub to_model: String,
    /// What somebody asked for; none for the model of the start.
    pub requested_model: Option<String>,
    /// Who asked: `command`, `picker`, `sdk`, or `auto` where another model took over.
    pub source: String,
    /// What the last answer of the conversation came to; nothing before the first.
    pub context_tokens: u64,
    /// Whether the provider still has what was said in its cache.
    pub prompt_cache_warm: bool,
    /// How long it keeps that: `5m` or `1h`.
    pub cache_ttl: String,
    /// What it costs to have the new model's cache hold the same.
    pub estimated_cache_write_usd: f64,
    /// Whose price that is: `configured` by the administrator, of the `catalog`, or none (`default`).
    pub pricing: String,
}

/// A task of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskFields {
    /// Its number.
    pub task_id: String,
    /// What it is about.
    pub task_subject: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_description: Option<String>,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teammate_name: Option<String>,
    /// The team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_name: Option<String>,
}

/// What belongs to one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "hook_event_name")]
#[expect(missing_docs, reason = "the fields are those of the table in docs/hooks.md")]
pub enum EventInput {
    SessionStart {
        source: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_title: Option<String>,
    },
    Setup {
        trigger: String,
    },
    InstructionsLoaded {
        file_path: PathBuf,
        memory_type: String,
        load_reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        globs: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger_file_path: Option<PathBuf>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_file_path: Option<PathBuf>,
    },
    UserPromptSubmit {
        prompt: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_title: Option<String>,
    },
    UserPromptExpansion {
        expansion_type: String,
        command_name: String,
        command_args: String,
        command_source: String,
        prompt: String,
    },
    MessageDisplay {
        turn_id: String,
        message_id: String,
        index: u64,
        #[serde(rename = "final")]
        is_final: bool,
        delta: String,
    },
    PreToolUse {
        #[serde(flatten)]
        tool: ToolFields,
        tool_use_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mcp_server: Option<HookMcpServer>,
    },
    PermissionRequest {
        #[serde(flatten)]
        tool: ToolFields,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permission_suggestions: Option<Vec<Value>>,
    },
    PermissionDenied {
        #[serde(flatten)]
        tool: ToolFields,
        tool_use_id: String,
        reason: String,
    },
    PostToolUse {
        #[serde(flatten)]
        tool: ToolFields,
        tool_response: Value,
        tool_use_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mcp_server: Option<HookMcpServer>,
    },
    PostToolUseFailure {
        #[serde(flatten)]
        tool: ToolFields,
        tool_use_id: String,
        error: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_interrupt: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mcp_server: Option<HookMcpServer>,
    },
    PostToolBatch {
        tool_calls: Vec<ToolBatchCall>,
    },
    Notification {
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        notification_type: String,
    },
    SubagentStart {},
    SubagentStop {
        stop_hook_active: bool,
        agent_transcript_path: PathBuf,
        last_assistant_message: String,
        background_tasks: Vec<Value>,
        session_crons: Vec<Value>,
    },
    TaskCreated {
        #[serde(flatten)]
        task: TaskFields,
    },
    TaskCompleted {
        #[serde(flatten)]
        task: TaskFields,
    },
    Stop {
        stop_hook_active: bool,
        last_assistant_message: String,
        background_tasks: Vec<Value>,
        session_crons: Vec<Value>,
    },
    StopFailure {
        error: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_details: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_assistant_message: Option<String>,
    },
    TeammateIdle {
        teammate_name: String,
        team_name: String,
    },
    ConfigChange {
        source: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path: Option<PathBuf>,
    },
    CwdChanged {
        old_cwd: PathBuf,
        new_cwd: PathBuf,
    },
    DirectoryAdded {
        directory: PathBuf,
        source: String,
    },
    FileChanged {
        file_path: PathBuf,
        event: String,
    },
    WorktreeCreate {
        name: String,
    },
    WorktreeRemove {
        worktree_path: PathBuf,
    },
    PreCompact {
        trigger: String,
        custom_instructions: Option<String>,
    },
    PostCompact {
        trigger: String,
        compact_summary: String,
    },
    Elicitation {
        mcp_server_name: String,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        elicitation_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requested_schema: Option<Value>,
    },
    ElicitationResult {
        mcp_server_name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
        action: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        elicitation_id: Option<String>,
    },
    PreModelSwitch {
        #[serde(flatten)]
        switch: ModelSwitchFields,
    },
    PostModelSwitch {
        #[serde(flatten)]
        switch: ModelSwitchFields,
    },
    SessionEnd {
        reason: String,
    },
}

impl HookInput {
    /// Returns the object as one line of JSON.
    pub fn to_json(&self) -> String {
        // Plain data: there is nothing in it that JSON cannot hold.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the object.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns what the matcher is compared with.
    pub fn matcher_subject(&self) -> Option<String> {
        match &self.event {
            EventInput::SubagentStart {} | EventInput::SubagentStop { .. } => self.common.agent_type.clone(),
            event => event.subject().map(str::to_owned),
        }
    }

    /// Returns the name by which transcripts and frames know it: the event, and what its matcher is compared with.
    pub fn hook_name(&self) -> String {
        let name = self.event.event().name();
        match self.matcher_subject() {
            Some(subject) => format!("{name}:{subject}"),
            None => name.to_owned(),
        }
    }
}

impl EventInput {
    /// Returns the event.
    pub fn event(&self) -> HookEvent {
        match self {
            Self::SessionStart { .. } => HookEvent::SessionStart,
            Self::Setup { .. } => HookEvent::Setup,
            Self::InstructionsLoaded { .. } => HookEvent::InstructionsLoaded,
            Self::UserPromptSubmit { .. } => HookEvent::UserPromptSubmit,
            Self::UserPromptExpansion { .. } => HookEvent::UserPromptExpansion,
            Self::MessageDisplay { .. } => HookEvent::MessageDisplay,
            Self::PreToolUse { .. } => HookEvent::PreToolUse,
            Self::PermissionRequest { .. } => HookEvent::PermissionRequest,
            Self::PermissionDenied { .. } => HookEvent::PermissionDenied,
            Self::PostToolUse { .. } => HookEvent::PostToolUse,
            Self::PostToolUseFailure { .. } => HookEvent::PostToolUseFailure,
            Self::PostToolBatch { .. } => HookEvent::PostToolBatch,
            Self::Notification { .. } => HookEvent::Notification,
            Self::SubagentStart {} => HookEvent::SubagentStart,
            Self::SubagentStop { .. } => HookEvent::SubagentStop,
            Self::TaskCreated { .. } => HookEvent::TaskCreated,
            Self::TaskCompleted { .. } => HookEvent::TaskCompleted,
            Self::Stop { .. } => HookEvent::Stop,
            Self::StopFailure { .. } => HookEvent::StopFailure,
            Self::TeammateIdle { .. } => HookEvent::TeammateIdle,
            Self::ConfigChange { .. } => HookEvent::ConfigChange,
            Self::CwdChanged { .. } => HookEvent::CwdChanged,
            Self::DirectoryAdded { .. } => HookEvent::DirectoryAdded,
            Self::FileChanged { .. } => HookEvent::FileChanged,
            Self::WorktreeCreate { .. } => HookEvent::WorktreeCreate,
            Self::WorktreeRemove { .. } => HookEvent::WorktreeRemove,
            Self::PreCompact { .. } => HookEvent::PreCompact,
            Self::PostCompact { .. } => HookEvent::PostCompact,
            Self::Elicitation { .. } => HookEvent::Elicitation,
            Self::ElicitationResult { .. } => HookEvent::ElicitationResult,
            Self::PreModelSwitch { .. } => HookEvent::PreModelSwitch,
            Self::PostModelSwitch { .. } => HookEvent::PostModelSwitch,
            Self::SessionEnd { .. } => HookEvent::SessionEnd,
        }
    }

    /// Returns the call it is about.
    pub fn tool(&self) -> Option<&ToolFields> {
        match self {
            Self::PreToolUse { tool, .. }
            | Self::PermissionRequest { tool, .. }
            | Self::PermissionDenied { tool, .. }
            | Self::PostToolUse { tool, .. }
            | Self::PostToolUseFailure { tool, .. } => Some(tool),
            _ => None,
        }
    }

    /// Returns what the matcher is compared with, as far as the event's own fields say it.
    fn subject(&self) -> Option<&str> {
        match self {
            Self::SessionStart { source, .. }
            | Self::ConfigChange { source, .. }
            | Self::DirectoryAdded { source, .. } => Some(source),
            Self::Setup { trigger }
            | Self::PreCompact { trigger, .. }
            | Self::PostCompact { trigger, .. } => Some(trigger),
            Self::InstructionsLoaded { load_reason, .. } => Some(load_reason),
            Self::UserPromptExpansion { command_name, .. } => Some(command_name),
            Self::Notification { notification_type, .. } => Some(notification_type),
            Self::StopFailure { error, .. } => Some(error),
            Self::FileChanged { file_path, .. } => file_path.file_name().and_then(|name| name.to_str()),
            Self::Elicitation { mcp_server_name, .. } | Self::ElicitationResult { mcp_server_name, .. } => {
                Some(mcp_server_name)
            }
            Self::PreModelSwitch { switch } | Self::PostModelSwitch { switch } => Some(&switch.to_model),
            Self::SessionEnd { reason } => Some(reason),
            _ => self.tool().map(|tool| tool.tool_name.as_str()),
        }
    }
}

/// Returns a made-up payload of an event, to try handlers with.
pub fn example(event: HookEvent, common: CommonInput, tool: ToolFields, subject: Option<&str>) -> HookInput {
    let cwd = common.cwd.clone();
    let subject = |usual: &str| subject.unwrap_or(usual).to_owned();
    let task = || TaskFields {
        task_id: "1".to_owned(),
        task_subject: "An example".to_owned(),
        task_description: None,
        teammate_name: None,
        team_name: None,
    };
    let tool_use_id = || "toolu_example".to_owned();
    let input = match event {
        HookEvent::SessionStart => {
            EventInput::SessionStart { source: subject("startup"), model: None, session_title: None }
        }
        HookEvent::Setup => EventInput::Setup { trigger: subject("init") },
        HookEvent::InstructionsLoaded => EventInput::InstructionsLoaded {
            file_path: cwd.join("CLAUDE.md"),
            memory_type: "Project".to_owned(),
            load_reason: subject("session_start"),
            globs: None,
            trigger_file_path: None,
            parent_file_path: None,
        },
        HookEvent::UserPromptSubmit => {
            EventInput::UserPromptSubmit { prompt: "An example".to_owned(), session_title: None }
        }
        HookEvent::UserPromptExpansion => EventInput::UserPromptExpansion {
            expansion_type: "slash_command".to_owned(),
            command_name: subject("example"),
            command_args: String::new(),
            command_source: "projectSettings".to_owned(),
            prompt: format!("/{}", subject("example")),
        },
        HookEvent::MessageDisplay => EventInput::MessageDisplay {
            turn_id: "example".to_owned(),
            message_id: "example".to_owned(),
            index: 0,
            is_final: true,
            delta: "An example.".to_owned(),
        },
        HookEvent::PreToolUse => {
            EventInput::PreToolUse { tool, tool_use_id: tool_use_id(), mcp_server: None }
        }
        HookEvent::PermissionRequest => EventInput::PermissionRequest { tool, permission_suggestions: None },
        HookEvent::PermissionDenied => {
            EventInput::PermissionDenied { tool, tool_use_id: tool_use_id(), reason: "An example".to_owned() }
        }
        HookEvent::PostToolUse => EventInput::PostToolUse {
            tool,
            tool_response: json!({}),
            tool_use_id: tool_use_id(),
            duration_ms: Some(12),
            mcp_server: None,
        },
        HookEvent::PostToolUseFailure => EventInput::PostToolUseFailure {
            tool,
            tool_use_id: tool_use_id(),
            error: "Exit code 1".to_owned(),
            is_interrupt: Some(false),
            duration_ms: Some(12),
            mcp_server: None,
        },
        HookEvent::PostToolBatch => EventInput::PostToolBatch {
            tool_calls: vec![ToolBatchCall {
                tool_name: tool.tool_name,
                tool_input: tool.tool_input,
                tool_use_id: tool_use_id(),
                tool_response: Value::from("done"),
            }],
        },
        HookEvent::Notification => EventInput::Notification {
            message: "An example".to_owned(),
            title: None,
            notification_type: subject("idle_prompt"),
        },
        HookEvent::SubagentStart => EventInput::SubagentStart {},
        HookEvent::SubagentStop => EventInput::SubagentStop {
            stop_hook_active: false,
            agent_transcript_path: cwd.join("agent-example.jsonl"),
            last_assistant_message: "Done.".to_owned(),
            background_tasks: Vec::new(),
            session_crons: Vec::new(),
        },
        HookEvent::TaskCreated => EventInput::TaskCreated { task: task() },
        HookEvent::TaskCompleted => EventInput::TaskCompleted { task: task() },
        HookEvent::Stop => EventInput::Stop {
            stop_hook_active: false,
            last_assistant_message: "Done.".to_owned(),
            background_tasks: Vec::new(),
            session_crons: Vec::new(),
        },
        HookEvent::StopFailure => EventInput::StopFailure {
            error: subject("rate_limit"),
            error_details: None,
            last_assistant_message: None,
        },
        HookEvent::TeammateIdle => {
            EventInput::TeammateIdle { teammate_name: "example".to_owned(), team_name: "example".to_owned() }
        }
        HookEvent::ConfigChange => {
            EventInput::ConfigChange { source: subject("user_settings"), file_path: None }
        }
        HookEvent::CwdChanged => EventInput::CwdChanged { old_cwd: cwd.clone(), new_cwd: cwd },
        HookEvent::DirectoryAdded => {
            EventInput::DirectoryAdded { directory: cwd, source: subject("slash_command") }
        }
        HookEvent::FileChanged => {
            EventInput::FileChanged { file_path: cwd.join(subject("example")), event: "change".to_owned() }
        }
        HookEvent::WorktreeCreate => EventInput::WorktreeCreate { name: "example".to_owned() },
        HookEvent::WorktreeRemove => EventInput::WorktreeRemove { worktree_path: cwd.join("example") },
        HookEvent::PreCompact => {
            EventInput::PreCompact { trigger: subject("manual"), custom_instructions: None }
        }
        HookEvent::PostCompact => {
            EventInput::PostCompact { trigger: subject("manual"), compact_summary: "An example.".to_owned() }
        }
        HookEvent::Elicitation => EventInput::Elicitation {
            mcp_server_name: subject("example"),
            message: "An example".to_owned(),
            mode: Some("form".to_owned()),
            url: None,
            elicitation_id: None,
            requested_schema: None,
        },
        HookEvent::ElicitationResult => EventInput::ElicitationResult {
            mcp_server_name: subject("example"),
            mode: Some("form".to_owned()),
            action: "accept".to_owned(),
            content: None,
            elicitation_id: None,
        },
        HookEvent::PreModelSwitch => {
            EventInput::PreModelSwitch { switch: model_switch(subject("claude-opus-5-5")) }
        }
        HookEvent::PostModelSwitch => {
            EventInput::PostModelSwitch { switch: model_switch(subject("claude-opus-5-5")) }
        }
        HookEvent::SessionEnd => EventInput::SessionEnd { reason: subject("other") },
    };
    HookInput { common, event: input }
}

fn model_switch(to_model: String) -> ModelSwitchFields {
    ModelSwitchFields {
        from_model: "claude-sonnet-5-5".to_owned(),
        requested_model: Some(to_model.clone()),
        to_model,
        source: "command".to_owned(),
        context_tokens: 20_000,
        prompt_cache_warm: true,
        cache_ttl: "5m".to_owned(),
        estimated_cache_write_usd: 0.1,
        pricing: "catalog".to_owned(),
    }
}

#[cfg(test)]
mod tests;
