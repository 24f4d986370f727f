//! Built-in tools, one file each with the text the model reads beside it.
//!
//! A tool sees its arguments and a [`Host`]; never the engine, never session storage. Before it runs, its
//! [`Tool::effects`] say what the call would do, and that is what the permission engine judges.

mod child_process;
mod editor_host;
mod host;
mod input_check;
mod spill;
mod tool;
mod toolbox;
mod web_host;

mod agents;
mod background_tasks;
mod files;
mod schedule;
mod todo;

mod ask_user_question;
mod bash;
mod edit;
mod enter_plan_mode;
mod enter_worktree;
mod exit_plan_mode;
mod exit_worktree;
mod glob;
mod grep;
mod monitor;
mod notebook_edit;
mod read;
mod recall;
mod skill;
mod structured_output;
mod tool_search;
mod web_fetch;
mod web_search;
mod write;

#[cfg(test)]
mod testing;

pub use agents::agent::{
    agent_outcome, agent_tool, background_agent_tool, foreground_agent_tool, requested_type,
};
pub use agents::{
    AgentHost, AgentReply, AgentRequest, AgentRow, FinishedAgent, KeptWorktree, LaunchedAgent, MAIN,
    MessageReceipt, ToolStats,
};
pub use background_tasks::{
    BackgroundStatus, BackgroundTask, BackgroundTasks, NewTask, TaskHandle, TaskKind, TaskNews, TaskReport,
    TaskUsage,
};
pub use bash::death_watch::{DeathWatch, WatchedCommand};
pub use bash::process_tree::MARK_VARIABLE;
pub use bash::sandbox_note::RETRY_OUTSIDE;
pub use bash::shell::{HOOK_ENV_VARIABLE, SandboxPlace};
pub use bash::{DISABLE_BACKGROUND, foreground_bash, may_background};
pub use child_process::{ChildEnd, ChildLimits, ChildOutput, ChildSpec, OnOutput, run_child, run_told_child};
pub use editor_host::{
    EditorAbilities, EditorError, EditorHost, TerminalCommand, TerminalExit, TerminalOutput,
};
pub use files::file_state::{FileState, FileStates};
pub use files::workspace::{Workspace, real_path};
pub use host::{EnteredWorktree, Host, HostFuture, LeftWorktree, PlanView, ToolProgress, WorktreeRequest};
pub use input_check::InputCheck;
pub use read::image::picture_block;
pub use recall::RecordDirs;
pub use schedule::{SCHEDULE_TOOLS, ScheduleHost, ScheduleRequest};
pub use skill::{SKILL_TOOL, SkillCatalog, SkillTool, skill_name};
pub use spill::spill_preview;
pub use structured_output::{STRUCTURED_OUTPUT_TOOL, StructuredOutput};
pub use todo::task_store::{MemoryTaskStore, TaskStore};
pub use tool::{Tool, ToolCall, ToolFuture};
pub use tool_search::{SearchableTool, TOOL_SEARCH, ToolSearch};
pub use toolbox::{AppendError, SentTool, Toolbox};
pub use web_host::{FetchedText, PageCache, PageContent, SocketEvent, SocketEvents, SocketRequest, WebHost};
