//! What a tool may ask of the house it runs in.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use loci_core::entry::Attachment;
use loci_core::ids::ToolUseId;
use loci_core::recall::{RecallQuery, RecallResult};
use loci_core::task_list::Todo;
use loci_sandbox::Sandbox;
use loci_stdx::Env;

pub use loci_core::tool::ToolProgress;

use crate::tool_search::SearchableTool;
use crate::{
    AgentHost, BackgroundTasks, EditorHost, FileStates, ScheduleHost, TaskStore, WebHost, Workspace,
};

/// An answer that takes a while.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The engine as tools see it. Tests have a small one of their own.
pub trait Host: Send + Sync {
    /// The ambient world right now: home, variables, clock, randomness. Settings that change change it too.
    fn env(&self) -> Env;

    /// Where relative paths start and which directories belong to the session, right now.
    fn workspace(&self) -> Workspace;

    /// Moves the shell's directory for the calls that follow (main conversation only).
    fn set_cwd(&self, cwd: PathBuf);

    /// Environment for child processes, complete: secrets already removed, settings already applied.
    fn child_env(&self) -> Vec<(String, String)>;

    /// The sandbox that commands run in, where the session has one.
    fn sandbox(&self) -> Option<Arc<Sandbox>> {
        None
    }

    /// What the model has read so far.
    fn files(&self) -> &Mutex<FileStates>;

    /// Keeps the present content of `path`, so that the change that `call` is about to make can be undone.
    fn checkpoint<'a>(&'a self, call: &'a ToolUseId, path: &'a Path) -> HostFuture<'a, io::Result<()>>;

    /// Returns true when a rule forbids reading `path`; searches leave such files out.
    fn is_read_denied(&self, path: &Path) -> bool;

    /// Returns the file that holds a call's whole output when it is too long for the conversation; its
    /// directory exists.
    fn spill_path(&self, call: &ToolUseId) -> io::Result<PathBuf>;

    /// The directory for output of background tasks; it exists and is private.
    fn task_dir(&self) -> io::Result<PathBuf>;

    /// Background tasks of this session.
    fn tasks(&self) -> &BackgroundTasks;

    /// Looks up earlier messages of this conversation; the error says why that cannot be done.
    fn recall(&self, wish: RecallQuery) -> HostFuture<'_, Result<RecallResult, String>>;

    /// The task list of the conversation.
    fn task_store(&self) -> Arc<dyn TaskStore>;

    /// The agents that can be sent out from this conversation, where any can.
    fn agents(&self) -> Option<&dyn AgentHost> {
        None
    }

    /// The prompts that the session gives itself later, where it can.
    fn schedule(&self) -> Option<&dyn ScheduleHost> {
        None
    }

    /// The web, where the session may use it.
    fn web(&self) -> Option<&dyn WebHost> {
        None
    }

    /// The editor that the session is driven from, where it has a say in files or commands.
    fn editor(&self) -> Option<&dyn EditorHost> {
        None
    }

    /// Puts another list in the place of the one that TodoWrite keeps; returns the one before.
    fn set_todos(&self, _todos: Vec<Todo>) -> Vec<Todo> {
        Vec::new()
    }

    /// How things stand with plans; nothing is planned where there is no plan mode.
    fn plan(&self) -> PlanView {
        PlanView::default()
    }

    /// Begins to plan; returns what the model is told, as an attachment. The error says why that cannot be.
    fn begin_plan(&self) -> Result<Attachment, String> {
        Err("there is no plan mode here".to_owned())
    }

    /// Ends planning, since this plan was approved; returns what the model is told, as an attachment.
    fn end_plan(&self, _plan: &str) -> Option<Attachment> {
        None
    }

    /// Moves the session into a working copy of its own; the error says why not.
    fn enter_worktree(&self, _wish: WorktreeRequest) -> HostFuture<'_, Result<EnteredWorktree, String>> {
        Box::pin(async { Err("This conversation stays where it is.".to_owned()) })
    }

    /// Leads it back, and removes the copy where that is asked for; the error says why not.
    fn exit_worktree(&self, _removes: bool, _discards: bool) -> HostFuture<'_, Result<LeftWorktree, String>> {
        Box::pin(async { Err("The session has entered no worktree, so there is none to leave.".to_owned()) })
    }

    /// The tools that the model can look for.
    fn searchable_tools(&self) -> Vec<SearchableTool> {
        Vec::new()
    }

    /// What the model should know when it finds none.
    fn search_note(&self) -> Option<String> {
        None
    }

    /// Tells the front ends how a call is getting on.
    fn progress(&self, call: &ToolUseId, progress: ToolProgress);
}

/// How things stand with plans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanView {
    /// Whether one is being made.
    pub is_active: bool,
    /// The file that it is made in, once there is one.
    pub file: Option<PathBuf>,
    /// Whether an agent makes it, which hands it on and does not carry it out.
    pub is_agents: bool,
}

/// The working copy that a session is to move into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeRequest {
    /// A new one of this name; without one it is made up.
    New(Option<String>),
    /// One that is there already.
    Existing(PathBuf),
}

/// A working copy that a session has moved into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnteredWorktree {
    /// Where it is.
    pub path: PathBuf,
    /// Its branch, where git made it.
    pub branch: Option<String>,
    /// Whether it was made for this.
    pub is_new: bool,
}

/// A working copy that a session has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftWorktree {
    /// Where it is, or was.
    pub path: PathBuf,
    /// Its branch, where git made it.
    pub branch: Option<String>,
    /// Where the session is again.
    pub original_cwd: PathBuf,
    /// Uncommitted files that went with it.
    pub discarded_files: usize,
    /// Commits that went with it.
    pub discarded_commits: usize,
    /// The reference that keeps both.
    pub kept_as: Option<String>,
}
