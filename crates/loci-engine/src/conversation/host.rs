//! The house as tools see it: one [`Host`] for all calls of a conversation.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use loci_context::{RestoreBudget, prose_tokens};
use loci_core::app_state::AppState;
use loci_core::entry::Attachment;
use loci_core::ids::ToolUseId;
use loci_core::permission::Isolation;
use loci_core::recall::{RecallQuery, RecallResult};
use loci_core::task_list::Todo;
use loci_core::tool::PathEffect;
use loci_sandbox::Sandbox;
use loci_stdx::{Env, Store};
use loci_storage::layout::{ConfigHome, SessionTmp};
use loci_storage::search::{ProjectRecord, recall};
use loci_tools::{
    AgentHost, BackgroundTasks, EditorHost, EnteredWorktree, FileState, FileStates, HOOK_ENV_VARIABLE, Host,
    HostFuture, LeftWorktree, PlanView, ScheduleHost, SearchableTool, TaskKind, TaskStore, ToolProgress,
    WebHost, Workspace, WorktreeRequest,
};

use crate::agents::{AgentAtWork, AgentService, SpawnContext, agent_changes};
use crate::event::{AgentLimit, AgentRef, EngineEvent, EventSink};
use crate::extensions::HookMoment;
use crate::extensions::mcp::McpConfig;
use crate::session::config::{AgentPoller, Ambient};
use crate::session::file_history::FileHistoryRecorder;
use crate::session::plan::PlanService;
use crate::session::schedule::ScheduleService;
use crate::tools::web::WebService;
use crate::tools::worktrees::WorktreeService;

/// What the calls of a conversation share.
pub(crate) struct ConversationHost {
    /// Where the user's things lie, with the session's own record and the project's memories.
    records: Records,
    /// The world around the session; settings change its variables.
    ambient: Arc<Mutex<Ambient>>,
    /// Where the session stands; the shell moves it.
    place: Mutex<Workspace>,
    /// What the model has read.
    files: Mutex<FileStates>,
    tasks: BackgroundTasks,
    outputs: OutputDirs,
    events: EventSink,
    /// Holds the rules as they are now.
    state: Arc<Store<AppState>>,
    /// Keeps files before they are changed, where that is wanted.
    keeper: Option<Arc<FileHistoryRecorder>>,
    task_store: Arc<dyn TaskStore>,
    /// What TodoWrite keeps; held to look or to replace it.
    todos: Mutex<Vec<Todo>>,
    /// The working copies that the conversation enters and leaves.
    worktrees: Option<Arc<WorktreeService>>,
    /// How things stand, for hooks that are told of them; held to look or to note it.
    moment: Mutex<HookMoment>,
    /// The session's plan, for the main line.
    plans: Option<Arc<PlanService>>,
    /// The file of an agent that makes a plan of its own.
    agent_plan: Option<PathBuf>,
    /// The session, as commands are told it.
    session: String,
    /// Where hooks leave variables for commands, once there are any.
    env_dir: Arc<OnceLock<PathBuf>>,
    /// The agent whose calls they are; none for the main line.
    agent: Option<AgentRef>,
    agents: AgentDispatch,
    /// Prompts for later, where there can be any.
    schedule: Option<Arc<ScheduleService>>,
    /// The web, where the conversation may use it.
    web: Option<Arc<WebService>>,
    /// The editor that drives the session, where it has a say.
    editor: Option<Arc<dyn EditorHost>>,
    /// What the model can look for; held to look or to replace it.
    searchable: Mutex<Vec<SearchableTool>>,
    /// The MCP servers whose tools may come.
    servers: OnceLock<McpConfig>,
}

/// Where a conversation looks up what was said before.
#[derive(Clone)]
struct Records {
    home: ConfigHome,
    /// The session's own record, if one is kept.
    transcript: Option<PathBuf>,
    /// The project's memories, where they are on.
    memory: Option<PathBuf>,
}

/// Where long results and the output of tasks go.
struct OutputDirs {
    spill: Spill,
    tmp: SessionTmp,
}

impl OutputDirs {
    fn spill_path(&self, call: &ToolUseId) -> io::Result<PathBuf> {
        let dir = match &self.spill {
            Spill::Beside(dir) => {
                loci_stdx::create_private_dir_all(dir)?;
                dir.clone()
            }
            Spill::Temporary => self.tmp.create_tool_results_dir()?,
        };
        Ok(dir.join(format!("{}.txt", file_name(call.as_str()))))
    }
}

/// What sending agents out takes.
#[derive(Default)]
struct AgentDispatch {
    /// Sends agents out, where any can be.
    service: Option<Arc<AgentService>>,
    /// Looks whether definitions of agents changed; held for one look.
    poll: Mutex<Option<AgentPoller>>,
    /// How the conversation stood when it made calls that send agents out; held to add or take one.
    spawn_contexts: Mutex<HashMap<ToolUseId, SpawnContext>>,
    /// Whom names of agents meant when they were first spoken to; held to look or to add one.
    addressees: Mutex<HashMap<String, String>>,
}

/// What whoever works beside the conversation by itself is told.
const STAYS: &str = "This agent stays where it was sent.";

/// Where long results go.
pub(crate) enum Spill {
    /// Into a directory beside the transcript.
    Beside(PathBuf),
    /// With the tasks' output, since the session leaves nothing.
    Temporary,
}

/// What a host is made from.
pub(crate) struct HostParts {
    pub(crate) home: ConfigHome,
    pub(crate) ambient: Arc<Mutex<Ambient>>,
    pub(crate) place: Workspace,
    pub(crate) spill: Spill,
    pub(crate) tmp: SessionTmp,
    pub(crate) events: EventSink,
    pub(crate) state: Arc<Store<AppState>>,
    pub(crate) keeper: Option<Arc<FileHistoryRecorder>>,
    pub(crate) transcript: Option<PathBuf>,
    pub(crate) memory: Option<PathBuf>,
    pub(crate) task_store: Arc<dyn TaskStore>,
    pub(crate) plans: Option<Arc<PlanService>>,
    pub(crate) worktrees: Option<Arc<WorktreeService>>,
    pub(crate) session: String,
    pub(crate) env_dir: Arc<OnceLock<PathBuf>>,
    pub(crate) tasks: BackgroundTasks,
    pub(crate) agent: Option<AgentRef>,
}

impl ConversationHost {
    pub(crate) fn new(parts: HostParts) -> Self {
        Self {
            records: Records { home: parts.home, transcript: parts.transcript, memory: parts.memory },
            ambient: parts.ambient,
            place: Mutex::new(parts.place),
            files: Mutex::default(),
            tasks: parts.tasks,
            outputs: OutputDirs { spill: parts.spill, tmp: parts.tmp },
            events: parts.events,
            state: parts.state,
            keeper: parts.keeper,
            task_store: parts.task_store,
            todos: Mutex::default(),
            plans: parts.plans,
            agent_plan: None,
            worktrees: parts.worktrees,
            moment: Mutex::default(),
            session: parts.session,
            env_dir: parts.env_dir,
            agent: parts.agent,
            agents: AgentDispatch::default(),
            schedule: None,
            web: None,
            editor: None,
            searchable: Mutex::default(),
            servers: OnceLock::new(),
        }
    }

    /// Lets the conversation send agents out.
    pub(crate) fn with_agents(self, agents: Arc<AgentService>) -> Self {
        Self { agents: AgentDispatch { service: Some(agents), ..self.agents }, ..self }
    }

    /// Lets the conversation schedule prompts.
    pub(crate) fn with_schedule(self, schedule: Option<Arc<ScheduleService>>) -> Self {
        Self { schedule, ..self }
    }

    /// Lets the conversation use the web.
    pub(crate) fn with_web(self, web: &Arc<WebService>) -> Self {
        Self { web: Some(Arc::clone(web)), ..self }
    }

    /// Lets the editor have its say in files and commands.
    pub(crate) fn with_editor(self, editor: Option<Arc<dyn EditorHost>>) -> Self {
        Self { editor, ..self }
    }

    /// Lets an agent make a plan in a file of its own.
    pub(crate) fn with_agent_plan(self, agent_plan: Option<PathBuf>) -> Self {
        Self { agent_plan, ..self }
    }

    /// Returns the plan file of an agent as calls are judged by it.
    pub(crate) fn judged_agent_plan(&self) -> Option<PathEffect> {
        let requested = self.agent_plan.clone()?;
        let real = loci_tools::real_path(&requested);
        Some(PathEffect { requested, real })
    }

    /// Tells whether the conversation has a place of its own: it is the session's, or that of an agent that was sent out.
    pub(crate) fn has_worktrees(&self) -> bool {
        self.worktrees.is_some()
    }

    /// Returns what keeps the conversation apart: the worktree that it has entered, and what kept it apart before that.
    pub(crate) fn isolation(&self, before: Option<Isolation>) -> Option<Isolation> {
        let entered = self.worktrees.as_ref().and_then(|worktrees| worktrees.isolation());
        match (entered, before) {
            (Some(entered), Some(before)) => Some(entered.within(&before)),
            (entered, before) => entered.or(before),
        }
    }

    /// Names those who were sent out to work in a worktree and are not done; none where there are none.
    fn agents_in(&self, worktree: &Path) -> Option<String> {
        let agents = self.agents.service.as_ref()?.working_in(worktree);
        let names: Vec<&str> = agents.iter().map(|id| id.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Has the files of an agent say where it works, so that it goes on there should the process be killed.
    fn note_agent_place(&self) {
        if let (Some(agent), Some(service), Some(worktrees)) =
            (&self.agent, &self.agents.service, &self.worktrees)
        {
            service.note_entered(&agent.id, worktrees.entered_by_agent());
        }
    }

    /// Follows the files of definitions.
    pub(crate) fn with_agent_poller(self, poll: Option<AgentPoller>) -> Self {
        Self { agents: AgentDispatch { poll: Mutex::new(poll), ..self.agents }, ..self }
    }

    pub(crate) fn agent_service(&self) -> Option<&Arc<AgentService>> {
        self.agents.service.as_ref()
    }

    /// Says which tools the model can look for.
    pub(crate) fn set_searchable(&self, tools: Vec<SearchableTool>) {
        *lock(&self.searchable) = tools;
    }

    /// Says which servers' tools may come.
    pub(crate) fn with_servers(self, servers: Option<McpConfig>) -> Self {
        Self { servers: servers.map(OnceLock::from).unwrap_or_default(), ..self }
    }

    /// Returns the agent whose calls they are.
    pub(crate) fn agent(&self) -> Option<&AgentRef> {
        self.agent.as_ref()
    }

    /// Keeps how the conversation stands, for a call that sends an agent out.
    pub(crate) fn put_spawn_context(&self, call: &ToolUseId, context: SpawnContext) {
        lock(&self.agents.spawn_contexts).insert(call.clone(), context);
    }

    pub(crate) fn take_spawn_context(&self, call: &ToolUseId) -> Option<SpawnContext> {
        lock(&self.agents.spawn_contexts).remove(call)
    }

    /// Notes whom a name means; returns whom it meant before, if it was used.
    pub(crate) fn note_addressee(&self, name: &str, id: &str) -> Option<String> {
        match lock(&self.agents.addressees).entry(name.to_owned()) {
            Entry::Occupied(before) => Some(before.get().clone()),
            Entry::Vacant(place) => {
                place.insert(id.to_owned());
                None
            }
        }
    }

    /// Takes up definitions of agents that changed; returns what the model is told of it.
    pub(crate) fn reload_agents(&self) -> Option<Attachment> {
        let service = self.agents.service.as_ref()?;
        let after = lock(&self.agents.poll).as_mut().and_then(|poll| poll())?;
        let before = service.registry.get();
        let changes = agent_changes(&before, &after);
        service.registry.update(|_| Arc::new(after));
        changes
    }

    /// Returns the agents that work now.
    pub(crate) fn agents_at_work(&self) -> Vec<AgentAtWork> {
        self.agents.service.as_ref().map(|service| service.at_work()).unwrap_or_default()
    }

    /// Returns the names of the agents that can be sent out.
    pub(crate) fn agent_names(&self) -> Vec<String> {
        let registry = self.agents.service.as_ref().map(|service| service.registry.get());
        registry.map(|it| it.iter().map(|agent| agent.name.clone()).collect()).unwrap_or_default()
    }
}

impl ConversationHost {
    /// Changes which directories belong to the session; the first is where it started.
    pub(crate) fn set_dirs(&self, dirs: &[PathBuf]) {
        let mut place = lock(&self.place);
        let extra = dirs.iter().filter(|dir| **dir != place.project).cloned().collect();
        place.extra_dirs = extra;
    }

    /// Returns directories as the rules have them: absolute, links resolved.
    pub(crate) fn real_dirs(&self, dirs: &[PathBuf]) -> Vec<PathBuf> {
        let place = lock(&self.place);
        dirs.iter().map(|dir| place.resolve(&dir.to_string_lossy()).real).collect()
    }

    /// Takes note that what was read has left the conversation; returns the files to show again, those used last
    /// first: read in whole and unchanged since, within the budget. What `is_told` anyway is not among them.
    pub(crate) fn files_to_restore(
        &self,
        budget: RestoreBudget,
        is_told: impl Fn(&Path) -> bool,
    ) -> Vec<(PathBuf, String)> {
        let mut tokens = budget.tokens;
        let mut files = lock(&self.files);
        files.forget_shown();
        let is_current = |path: &Path, state: &FileState| {
            std::fs::metadata(path)
                .and_then(|it| it.modified())
                .is_ok_and(|modified| modified == state.modified)
        };
        let known = files
            .iter()
            .filter(|(path, state)| state.is_whole() && is_current(path, state) && !is_told(path));
        let fitting = known.filter(|(_, state)| {
            let size = prose_tokens(&state.content);
            let fits = size <= tokens;
            tokens -= if fits { size } else { 0 };
            fits
        });
        fitting.take(budget.items).map(|(path, state)| (path.to_owned(), state.content.clone())).collect()
    }

    /// Writes a result that is too long for the conversation to its file; returns the file and its size.
    pub(crate) fn spill(&self, call: &ToolUseId, text: &str) -> io::Result<(PathBuf, u64)> {
        let path = self.spill_path(call)?;
        std::fs::write(&path, text)?;
        Ok((path, text.len() as u64))
    }

    /// Returns what keeps files, where that is wanted.
    pub(crate) fn keeper(&self) -> Option<&Arc<FileHistoryRecorder>> {
        self.keeper.as_ref()
    }

    /// Tells whether a background command of the session is running, whoever started it.
    pub(crate) fn has_background(&self) -> bool {
        self.tasks.has_commands()
    }

    /// Returns what runs in the background, as hooks are told.
    pub(crate) fn background_tasks(&self) -> Vec<serde_json::Value> {
        let running = self.tasks.running().into_iter();
        running
            .map(|task| {
                let mut row = serde_json::json!({
                    "id": task.id,
                    "type": "shell",
                    "status": "running",
                    "description": task.description.chars().take(1000).collect::<String>(),
                });
                match task.agent_type() {
                    Some(kind) => {
                        row["type"] = "subagent".into();
                        row["agent_type"] = kind.into();
                    }
                    None => {
                        match task.kind {
                            TaskKind::Monitor => row["type"] = "monitor".into(),
                            TaskKind::McpCall => row["type"] = "mcp".into(),
                            TaskKind::Shell | TaskKind::Agent(_) => {}
                        }
                        row["command"] = task.command.as_str().into();
                    }
                }
                row
            })
            .collect()
    }

    /// Returns what TodoWrite keeps.
    pub(crate) fn todos(&self) -> Vec<Todo> {
        lock(&self.todos).clone()
    }

    /// Takes over the list that an earlier process had written.
    pub(crate) fn restore_todos(&self, todos: Vec<Todo>) {
        self.set_todos(todos);
    }

    /// Notes how things stand, for hooks that tools have told.
    pub(crate) fn set_moment(&self, moment: HookMoment) {
        *lock(&self.moment) = moment;
    }

    fn moment(&self) -> HookMoment {
        HookMoment { cwd: self.workspace().cwd, ..lock(&self.moment).clone() }
    }

    /// Tells that a limit keeps an agent from being sent out.
    pub(crate) fn tell_refusal(&self, limit: AgentLimit) {
        self.events.send(EngineEvent::AgentRefused(limit));
    }

    /// Tells people what they should know.
    pub(crate) fn tell_trouble(&self, notes: Vec<String>) {
        notes.into_iter().for_each(|note| self.events.send(EngineEvent::Warning(note)));
    }

    /// Takes over what an earlier process had read.
    pub(crate) fn restore_files(&self, states: &FileStates) {
        lock(&self.files).merge(states);
    }
}

impl Host for ConversationHost {
    fn env(&self) -> Env {
        lock(&self.ambient).env.clone()
    }

    fn workspace(&self) -> Workspace {
        lock(&self.place).clone()
    }

    /// An agent that was sent out begins each command where it began.
    fn set_cwd(&self, cwd: PathBuf) {
        if self.agent.as_ref().is_some_and(|agent| agent.parent.is_some()) {
            return;
        }
        lock(&self.place).cwd = cwd;
    }

    fn child_env(&self) -> Vec<(String, String)> {
        let mut env = lock(&self.ambient).child_env.clone();
        let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
        set("CLAUDE_CODE_SESSION_ID", self.session.clone());
        set("CLAUDE_CODE_CHILD_SESSION", "1".to_owned());
        set("CLAUDE_PID", std::process::id().to_string());
        if let Some(effort) = &lock(&self.moment).effort {
            set("CLAUDE_EFFORT", effort.clone());
        }
        if let Some(dir) = self.env_dir.get() {
            env.push((HOOK_ENV_VARIABLE.to_owned(), dir.display().to_string()));
        }
        env
    }

    fn sandbox(&self) -> Option<Arc<Sandbox>> {
        lock(&self.ambient).sandbox.clone()
    }

    fn files(&self) -> &Mutex<FileStates> {
        &self.files
    }

    fn checkpoint<'a>(&'a self, call: &'a ToolUseId, path: &'a Path) -> HostFuture<'a, io::Result<()>> {
        Box::pin(async move {
            match (&self.keeper, &self.agent) {
                (Some(keeper), None) => keeper.checkpoint(call, path).await,
                (Some(keeper), Some(agent)) => keeper.checkpoint_for_agent(Some(&agent.id), call, path).await,
                (None, _) => Ok(()),
            }
        })
    }

    fn is_read_denied(&self, path: &Path) -> bool {
        self.state.get().permission.rulebook.is_read_denied(path)
    }

    fn spill_path(&self, call: &ToolUseId) -> io::Result<PathBuf> {
        self.outputs.spill_path(call)
    }

    fn task_dir(&self) -> io::Result<PathBuf> {
        Ok(self.outputs.tmp.create_tasks_dir()?)
    }

    fn tasks(&self) -> &BackgroundTasks {
        &self.tasks
    }

    fn recall(&self, wish: RecallQuery) -> HostFuture<'_, Result<RecallResult, String>> {
        let Records { home, transcript, memory } = self.records.clone();
        Box::pin(async move {
            let file =
                transcript.ok_or("Nothing of this conversation is saved, so nothing can be looked up")?;
            let stop = StopOnDrop::default();
            let is_over = Arc::clone(&stop.0);
            let look = move || look_up(home, file, memory, &wish, &is_over);
            let looked = tokio::task::spawn_blocking(look).await;
            looked.map_err(|error| format!("The lookup broke off: {error}"))?
        })
    }

    fn task_store(&self) -> Arc<dyn TaskStore> {
        Arc::clone(&self.task_store)
    }

    fn set_todos(&self, todos: Vec<Todo>) -> Vec<Todo> {
        let tasks = todos.iter().enumerate().map(|(n, todo)| todo.to_task(n + 1)).collect();
        self.events.send(EngineEvent::TasksChanged(tasks));
        std::mem::replace(&mut *lock(&self.todos), todos)
    }

    fn enter_worktree(&self, wish: WorktreeRequest) -> HostFuture<'_, Result<EnteredWorktree, String>> {
        Box::pin(async move {
            let worktrees = self.worktrees.as_ref().ok_or(STAYS)?;
            let entered = worktrees.enter(&self.place, wish, self.moment()).await;
            self.note_agent_place();
            entered
        })
    }

    fn exit_worktree(&self, removes: bool, discards: bool) -> HostFuture<'_, Result<LeftWorktree, String>> {
        Box::pin(async move {
            let worktrees = self.worktrees.as_ref().ok_or(STAYS)?;
            if let Some(agents) = worktrees.place().filter(|_| removes).and_then(|it| self.agents_in(&it)) {
                return Err(format!(
                    "Agents still work in this worktree: {agents}. Wait until they are done, stop them with TaskStop, or \
                     leave it with the action `keep`."
                ));
            }
            let left = worktrees.exit(&self.place, removes, discards, self.moment()).await;
            self.note_agent_place();
            left
        })
    }

    fn plan(&self) -> PlanView {
        if let Some(file) = &self.agent_plan {
            return PlanView { is_active: true, file: Some(file.clone()), is_agents: true };
        }
        let plans = self.plans.as_ref();
        PlanView {
            is_active: plans.is_some_and(|plans| plans.is_active()),
            file: plans.and_then(|plans| plans.file()),
            is_agents: false,
        }
    }

    fn begin_plan(&self) -> Result<Attachment, String> {
        let plans = self.plans.as_ref().ok_or("an agent has no plan of its own")?;
        plans.begin().map_err(|error| error.to_string())
    }

    fn end_plan(&self, plan: &str) -> Option<Attachment> {
        self.plans.as_ref().map(|plans| plans.end(plan))
    }

    fn agents(&self) -> Option<&dyn AgentHost> {
        self.agents.service.is_some().then_some(self as &dyn AgentHost)
    }

    fn schedule(&self) -> Option<&dyn ScheduleHost> {
        self.schedule.as_deref().map(|schedule| schedule as &dyn ScheduleHost)
    }

    fn editor(&self) -> Option<&dyn EditorHost> {
        self.editor.as_deref()
    }

    fn web(&self) -> Option<&dyn WebHost> {
        self.web.as_deref().map(|web| web as &dyn WebHost)
    }

    fn searchable_tools(&self) -> Vec<SearchableTool> {
        lock(&self.searchable).clone()
    }

    fn search_note(&self) -> Option<String> {
        let states = self.servers.get()?.states();
        let named = |statuses: &[&str]| {
            let found = states.iter().filter(|it| statuses.contains(&&*it.status));
            found.map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let (starting, lost) = (named(&["pending"]), named(&["failed", "needs-auth"]));
        let note = |what: &str, names: &str| (!names.is_empty()).then(|| format!("{what}: {names}."));
        let notes = [
            note("MCP servers that are still starting", &starting),
            note("MCP servers that cannot be used", &lost),
        ];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join(" "))
    }

    fn progress(&self, call: &ToolUseId, progress: ToolProgress) {
        self.events.send(EngineEvent::Progress { call: call.clone(), progress });
    }
}

/// Looks something up in the conversation's own file, or in the record of its project.
fn look_up(
    home: ConfigHome,
    own: PathBuf,
    memory: Option<PathBuf>,
    wish: &RecallQuery,
    stop: &AtomicBool,
) -> Result<RecallResult, String> {
    let told = |error: loci_storage::sessions::LoadError| format!("{error}: {}", error.source);
    let sessions = own.parent().unwrap_or(Path::new("/")).to_owned();
    let record = || ProjectRecord { home, sessions, own: own.clone(), memory };
    match wish {
        RecallQuery::Search(_) | RecallQuery::Quote { .. } => recall(&own, wish, stop).map_err(told),
        RecallQuery::SearchProject(search) => {
            record().search(search, stop).map_err(|error| error.to_string())
        }
        RecallQuery::QuoteFrom { session, message, offset, limit } => {
            record().quote(session, message, *offset, *limit, stop).map_err(told)
        }
    }
}

/// Ends a lookup that nobody waits for any more.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The model chooses call ids; only letters that cannot leave the directory are kept.
pub(crate) fn file_name(id: &str) -> String {
    let safe: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect();
    if safe.is_empty() { "result".to_owned() } else { safe }
}

/// A poisoned lock means that a tool panicked; what it guards is still whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_never_leave_their_directory() {
        for (id, expected) in
            [("toolu_01-Ab", "toolu_01-Ab"), ("../../etc/passwd", "etcpasswd"), ("///", "result")]
        {
            assert_eq!(file_name(id), expected);
        }
    }
}
