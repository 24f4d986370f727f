//! The query engine: a pure turn machine and the drivers that perform its effects.
//!
//! Front ends see commands going in ([`Command`]), events coming out ([`EngineEvent`]) and snapshots of the
//! state. The machine in [`turn`] decides; `Conversation` performs,
//! for the main line of a [`Session`] and for every agent beside it.

mod agents;
mod command;
mod conversation;
mod event;
mod extensions;
mod models;
mod replay;
mod session;
mod snapshot;
mod tools;
pub mod turn;

pub use agents::{
    AgentAtWork, AgentServersMaker, MadeServers, agent_listing, main_agent_memory, task_summary,
};
pub use command::{
    Answer, Command, DirectorySource, McpAction, ModelSwitchDecision, Prompt, QueuedPrompt, ShellCommand,
    SideExchange, SideTask, ToolChanges,
};
pub use conversation::Consent;
pub use event::{
    AgentLimit, AgentRef, AssistantBlock, EngineEvent, FilesRewound, HookRunEnded, HookRunProgress,
    HookRunStarted, ModelChoice, ModelRefusal, Question, QuestionKind, ResumedHistory, ShellOutput,
    ToolServer, TurnReport, TurnStart, UserMessage,
};
pub use extensions::hooks::trial::{HookTrial, HookTrialRun, HookTrialWorld, try_hooks};
pub use extensions::local_command::{
    LocalCommandOutput, LocalCommands, LocalEffect, LocalOutcome, MentionedSession, NewHooks,
};
pub use extensions::mcp::{ClientBridge, McpConfig, McpServerError, McpServerState, complete_prompt};
pub use extensions::skills::{SessionSkills, SkillFollower, SkillUsageLog};
pub use extensions::slash_command::{
    CommandAction, CommandCall, CommandRegistry, CommandScope, CommandSource, CommandTiming, SlashCommand,
    not_offered, split_command,
};
pub use extensions::{
    AfterCall, AfterCompaction, BatchGate, BatchResults, BeforeCompaction, BeforeEnd, BeforePrompt, CallGate,
    Classifier, ClassifierCall, ClassifierFuture, ClassifierNote, CompactionGate, CompactionHooks,
    ElicitationReply, ElicitationRequest, ExpansionGate, FeatureHooks, GateFuture, HookCall, HookFuture,
    HookMoment, McpToolCaller, NoticesFuture, PermissionQuestion, PromptExpansion, PromptGate, RestoreSource,
    ScopedHooks, ScopedHooksGuard, SessionAdditions, SessionBegin, ShownBatch, TaskStep, TurnHooks,
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
pub use models::cloud_kind::{CloudKind, idle_cloud_switches};
pub use models::model_name::{
    BUILT_IN_PROVIDERS, NO_LARGE_WINDOW, available_model, has_cloud_ids, is_model_available, is_named,
    is_on_cloud, model_refusal, planning_model, resolve_model,
};
pub use replay::{
    CallCheck, CallOutcome, ReplayOptions, ReplayReport, ReplaySandbox, RequestCheck, TakenOver, replay,
};
pub use session::client_request::{
    ClientAnswer, ClientMessage, ClientRequest, ClientRequestError, ClientRequests,
};
pub use session::config::{
    AgentPoller, AgentsConfig, Ambient, BackgroundConfig, CompactionConfig, ConfigFileChange, DeferredCall,
    ExtractionConfig, Grants, LoadedHistory, ModelConfig, ReadInstructions, ReloadPoint, Reloaded,
    SaveUpdate, SessionConfig, SessionMemory, SettingsSource, ToolSearchMode, TurnLimits, resume_prompt,
};
pub use session::earlier_totals::EarlierTotals;
pub use session::file_history::FileHistoryStores;
pub use session::goal::{CLEAR_WORDS, Goal, GoalEnd, GoalVerdict, refusal as goal_refusal};
pub use session::initialize::{ClientHook, InitializeRequest};
pub use session::instructions::render_instructions;
pub use session::lost_tasks::LostTask;
pub use session::memory::render_memory_indexes;
pub use session::plan::PlanConfig;
pub use session::renewal::{
    NewSession, OpenSession, RenewSession, RenewalState, RunnerEvent, SessionRunner, SessionSwitch,
};
pub use session::state::{StateEffects, change, change_identity, connect};
pub use session::timeline::{SpanKind, TimelineSpan, TurnTimeline};
pub use session::{MemoryWatch, Session, SessionEnd, SessionHandle, ToolService};
pub use snapshot::SessionSnapshot;
pub use tools::sandbox_hosts::SANDBOX_NETWORK_TOOL;
pub use tools::worktrees::CurrentWorktree;
