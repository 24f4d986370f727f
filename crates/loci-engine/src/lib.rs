//! The query engine: a pure turn machine and the drivers that perform its effects.
//!
//! Front ends see commands going in ([`Command`]), events coming out ([`EngineEvent`]) and snapshots of the
//! state. The machine in [`turn`] decides; `Conversation` performs,
//! for the main line of a [`Session`] and for every agent beside it.

mod agents;
mod background;
mod calls;
mod client_request;
mod cloud_kind;
mod command;
mod config;
mod conversation;
mod earlier_totals;
mod event;
mod extension;
mod file_history;
mod goal;
mod hooks;
mod initialize;
mod instructions;
mod local_command;
mod lost_tasks;
mod mcp;
mod memory;
mod model_name;
mod plan;
mod prepared_call;
mod recorder;
mod renewal;
mod replay;
mod request;
mod restore;
mod sandbox_hosts;
mod schedule;
mod session;
mod side_request;
mod skills;
mod slash_command;
mod small_model;
mod snapshot;
mod state;
mod state_effects;
mod task_list;
mod timeline;
pub mod turn;
mod web;
mod worktrees;

pub use agents::{
    AgentAtWork, AgentServersMaker, MadeServers, agent_listing, main_agent_memory, task_summary,
};
pub use client_request::{ClientAnswer, ClientMessage, ClientRequest, ClientRequestError, ClientRequests};
pub use cloud_kind::{CloudKind, idle_cloud_switches};
pub use command::{
    Answer, Command, DirectorySource, McpAction, Prompt, QueuedPrompt, ShellCommand, SideExchange, SideTask,
    ToolChanges,
};
pub use config::{
    AgentPoller, AgentsConfig, Ambient, BackgroundConfig, CompactionConfig, ConfigFileChange, DeferredCall,
    ExtractionConfig, Grants, LoadedHistory, ModelConfig, ReadInstructions, ReloadPoint, ReloadedSettings,
    SaveUpdate, SessionConfig, SessionMemory, SettingsApplier, SettingsGate, SettingsPoller, SettingsReload,
    ToolSearchMode, TurnLimits, resume_prompt,
};
pub use earlier_totals::EarlierTotals;
pub use event::{
    AgentLimit, AgentRef, AssistantBlock, EngineEvent, FilesRewound, HookRunEnded, HookRunProgress,
    HookRunStarted, ModelChoice, Question, QuestionKind, ResumedHistory, ShellOutput, ToolServer, TurnReport,
    TurnStart, UserMessage,
};
pub use extension::{
    AfterCall, AfterCompaction, BatchGate, BatchResults, BeforeCompaction, BeforeEnd, BeforePrompt, CallGate,
    Classifier, ClassifierCall, ClassifierFuture, ClassifierNote, CompactionGate, CompactionHooks,
    ElicitationReply, ElicitationRequest, ExpansionGate, FeatureHooks, GateFuture, HookCall, HookFuture,
    HookMoment, McpToolCaller, NoticesFuture, PermissionQuestion, PromptExpansion, PromptGate, RestoreSource,
    ScopedHooks, ScopedHooksGuard, SessionAdditions, SessionBegin, ShownBatch, TaskStep, TurnHooks,
};
pub use file_history::FileHistoryStores;
pub use goal::{CLEAR_WORDS, Goal, GoalEnd, GoalVerdict, refusal as goal_refusal};
pub use hooks::trial::{HookTrial, HookTrialRun, HookTrialWorld, try_hooks};
pub use initialize::{ClientHook, InitializeRequest};
pub use instructions::render_instructions;
pub use local_command::{
    LocalCommandOutput, LocalCommands, LocalEffect, LocalOutcome, MentionedSession, NewHooks,
};
pub use loci_context::{ContextCategory, ContextCell, ContextItem, ContextUsage, Fullness, Level};
pub use loci_sandbox::SandboxStatus;
pub use loci_tools::ToolProgress;
/// Work beside a conversation, as front ends see it.
pub use loci_tools::{BackgroundStatus, BackgroundTask, NewTask, TaskKind, TaskNews, TaskReport, TaskUsage};
/// The editor that drives a session, as tools see it.
pub use loci_tools::{
    EditorAbilities, EditorError, EditorHost, HostFuture, TerminalCommand, TerminalExit, TerminalOutput,
};
pub use lost_tasks::LostTask;
pub use mcp::{ClientBridge, McpConfig, McpServerError, McpServerState, complete_prompt};
pub use memory::render_memory_indexes;
pub use model_name::{
    BUILT_IN_PROVIDERS, NO_LARGE_WINDOW, available_model, has_cloud_ids, is_model_available, is_named,
    is_on_cloud, planning_model, resolve_model,
};
pub use plan::PlanConfig;
pub use renewal::{
    NewSession, OpenSession, RenewSession, RenewalState, RunnerEvent, SessionRunner, SessionSwitch,
};
pub use replay::{
    CallCheck, CallOutcome, ReplayOptions, ReplayReport, ReplaySandbox, RequestCheck, TakenOver, replay,
};
pub use sandbox_hosts::SANDBOX_NETWORK_TOOL;
pub use session::{MemoryWatch, Session, SessionEnd, SessionHandle, ToolService};
pub use skills::{SessionSkills, SkillFollower, SkillUsageLog};
pub use slash_command::{
    CommandAction, CommandCall, CommandRegistry, CommandScope, CommandSource, CommandTiming, SlashCommand,
    not_offered, split_command,
};
pub use snapshot::SessionSnapshot;
pub use state::{StateEffects, change, change_identity, connect};
pub use timeline::{SpanKind, TimelineSpan, TurnTimeline};
pub use worktrees::CurrentWorktree;
