//! Playing a recorded session again.
//!
//! A real session is driven with the recorded prompts; a client answers from the transcript in the model's place, and
//! stand-ins hand over the recorded results of calls. So everything between them is at work as it was: the turn machine,
//! the recorder, the projection, the requests. Each request is compared with what the transcript says was sent at
//! that point (`check`); each call is run for real beside its recorded result, where a [`ReplaySandbox`] is given and the
//! rules allow it (`sandbox`).
//!
//! What must stay true:
//! 1. The conversation goes on with recorded results, whatever comes of the calls now; so a request that differs is the
//!    engine's doing, and a result that differs is the world's.
//! 2. A call runs only when the rules in force let it run without a question, and only in the copy it is given.
//! 3. What cannot be played is taken over from the recording, and the report says so.
//! 4. The recording is only read.

mod check;
mod paths;
mod recorded;
mod recorded_tools;
mod report;
mod sandbox;
mod score;
mod shorten;

use std::sync::Arc;
use std::time::Duration;

use loci_context::PromptParts;
use loci_core::conversation::stretches;
use loci_core::entry::Entry;
use loci_core::entry::draft::Stamp;
use loci_core::hooks::HookConfig;
use loci_core::ids::{SessionId, ToolUseId};
use loci_core::permission::{Mode, Rulebook};
use loci_core::session::{NewSession, SessionIdentity};
use loci_llm::{Client, Played, Request, RetryPolicy};
use loci_stdx::{Env, FixedClock, Store};
use loci_storage::config::Instructions;
use loci_storage::layout::{ConfigHome, SessionTmp};
use loci_storage::sessions::SessionLog;
use loci_tools::Toolbox;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use crate::command::Command;
use crate::conversation::host::lock;
use crate::event::EngineEvent;
use crate::extensions::skills::SessionSkills;
use crate::extensions::slash_command::CommandRegistry;
use crate::session::client_request::ClientRequests;
use crate::session::config::{
    AgentsConfig, BackgroundConfig, CompactionConfig, Grants, LoadedHistory, ModelConfig, SessionConfig,
    TurnLimits,
};
use crate::session::{Session, SessionEnd, SessionHandle};
use recorded_tools::{ReplayState, recorded_tools};
use report::ReplayReport as Report;
use sandbox::SandboxRunner;
use score::{Step, first_model, tools_called};

pub use report::{CallCheck, CallOutcome, ReplayReport, RequestCheck, TakenOver};
pub use sandbox::ReplaySandbox;

/// A window that nothing fills: how long a conversation may be was decided when it was recorded.
const BOUNDLESS: u64 = 1 << 40;

/// What is to be played.
pub struct ReplayOptions {
    /// The ambient world.
    pub env: Env,
    /// Where the user's things lie.
    pub home: ConfigHome,
    /// A place for what the session would write beside its conversation.
    pub tmp: SessionTmp,
    /// The session's id.
    pub session: SessionId,
    /// The entries of its file, in file order.
    pub entries: Vec<Arc<Entry>>,
    /// Runs calls for real; without it recorded results stand for them.
    pub sandbox: Option<ReplaySandbox>,
}

/// Plays a session to its end.
pub async fn replay(wish: ReplayOptions) -> ReplayReport {
    let stretches = stretches(&wish.entries);
    let state =
        Arc::new(ReplayState { sandbox: wish.sandbox.map(SandboxRunner::new), ..ReplayState::default() });
    let player = Player {
        toolbox: recorded_tools(&state, tools_called(&stretches)),
        model: first_model(&stretches).unwrap_or_default(),
        env: Env { clock: Arc::new(FixedClock::new(wish.env.clock.now())), ..wish.env },
        home: wish.home,
        tmp: wish.tmp,
        session: wish.session,
        state: Arc::clone(&state),
    };
    let n_compactions = stretches.len().saturating_sub(1);
    for stretch in stretches {
        lock(&state.score).turn_page(stretch);
        player.play().await;
    }
    if let Some(sandbox) = &state.sandbox {
        sandbox.close().await;
    }
    Report { n_compactions, ..std::mem::take(&mut lock(&state.score).report) }
}

/// What plays.
struct Player {
    env: Env,
    home: ConfigHome,
    tmp: SessionTmp,
    session: SessionId,
    toolbox: Toolbox,
    model: String,
    state: Arc<ReplayState>,
}

/// A session that plays.
struct Running {
    handle: SessionHandle,
    events: UnboundedReceiver<EngineEvent>,
    task: JoinHandle<SessionEnd>,
}

impl Player {
    /// Plays the stretch that is on the stand.
    async fn play(&self) {
        let mut running: Option<Running> = None;
        while let Some(mut step) = self.next_step(running.is_some()) {
            if let Some(past) = step.past.take() {
                stop(running.take()).await;
                running = Some(self.begin(past));
            }
            let Some(session) = &mut running else { return };
            let how = self.turn(session, &step).await;
            if how.is_none() {
                stop(running.take()).await;
            }
            lock(&self.state.score).turn_ended(&step, how.as_deref().unwrap_or("the session went silent"));
        }
        stop(running).await;
    }

    fn next_step(&self, has_session: bool) -> Option<Step> {
        lock(&self.state.score).next_step(has_session)
    }

    /// Plays a turn and says how it ended; `None` when the session cannot go on.
    async fn turn(&self, session: &mut Running, step: &Step) -> Option<String> {
        session.handle.send(step.command.clone());
        loop {
            tokio::select! {
                event = session.events.recv() => match event? {
                    EngineEvent::TurnEnded(report) => return Some(format!("{:?}", report.outcome)),
                    EngineEvent::User(message) => {
                        lock(&self.state.score).answered(&calls_in(&message.message));
                        self.state.answered.notify_waiters();
                    }
                    _ => {}
                },
                () = self.state.stuck.notified() => return None,
            }
        }
    }

    fn begin(&self, past: LoadedHistory) -> Running {
        let (session, handle, events) = Session::new(self.config(past));
        Running { handle, events, task: tokio::spawn(session.run()) }
    }

    /// Returns a session that asks the recording, writes nothing, and decides nothing by itself: what was compacted,
    /// cleared or remembered is in the recording already.
    fn config(&self, past: LoadedHistory) -> SessionConfig {
        let id = self.session.clone();
        let cwd = self.env.cwd.clone();
        SessionConfig {
            local_commands: None,
            output_style: loci_core::output_style::DEFAULT_STYLE.to_owned(),
            identity: SessionIdentity::new(NewSession {
                id: id.clone(),
                project_dir: self.tmp.tool_results_dir(),
                cwd: cwd.clone(),
                is_interactive: false,
                is_persistent: false,
            }),
            log: SessionLog::in_memory(),
            stamp: Stamp {
                session_id: id,
                cwd: cwd.display().to_string(),
                version: String::new(),
                git_branch: "HEAD".to_owned(),
                entrypoint: "replay".to_owned(),
                slug: None,
                agent: None,
                agent_type: None,
            },
            history: past,
            toolbox: self.toolbox.clone(),
            commands: Arc::new(Store::new(CommandRegistry::builtin())),
            // Stand-ins are harmless; what is real is judged at the sandbox.
            rulebook: Rulebook {
                mode: Mode::BypassPermissions,
                dirs: vec![cwd.clone()],
                cwd,
                ..Rulebook::default()
            },
            settings: Value::Null,
            mirrors_transcript: false,
            keeps_prompt: false,
            settings_source: None,
            grants: Grants::default(),
            classifier: None,
            can_ask: false,
            client: self.client(),
            model: ModelConfig::new(&self.model),
            limits: TurnLimits {
                max_parallel: usize::MAX,
                retry: RetryPolicy { max_retries: 0, ..RetryPolicy::default() },
                ..TurnLimits::default()
            },
            compaction: CompactionConfig {
                is_on: false,
                is_automatic: false,
                window: Some(BOUNDLESS),
                snips: false,
                clears_cold: false,
                ..CompactionConfig::default()
            },
            hooks: HookConfig::default(),
            client_hooks: Vec::new(),
            client_requests: ClientRequests::none(),
            editor: None,
            mcp: None,
            mcp_tools: None,
            max_objections: 0,
            setup: None,
            start_source: "startup",
            turn_hooks: None,
            compaction_hooks: None,
            restore_sources: Vec::new(),
            skills: Arc::new(SessionSkills::none()),
            memory: None,
            plans: crate::session::plan::PlanConfig::default(),
            worktree: loci_storage::worktree::WorktreeOptions::default(),
            current_worktree: crate::tools::worktrees::CurrentWorktree::default(),
            agents: AgentsConfig::default(),
            background: BackgroundConfig { drain: Duration::ZERO, ..BackgroundConfig::default() },
            prompt: PromptParts { replacement: Some(String::new()), ..PromptParts::default() },
            instructions: Instructions::default(),
            lazy_instructions: None,
            read_instructions: None,
            child_env: Vec::new(),
            sandbox: None,
            sandbox_maker: None,
            file_history: None,
            tmp: self.tmp.clone(),
            idle_notice: Duration::MAX,
            memory_watch: None,
            started: self.env.clock.monotonic(),
            api_key_source: "none".to_owned(),
            plugins: Arc::default(),
            env: self.env.clone(),
            home: self.home.clone(),
        }
    }

    fn client(&self) -> Client {
        let state = Arc::clone(&self.state);
        Client::playing(move |request: &Request| match lock(&state.score).answer_request(request) {
            Some(played) => played,
            None => {
                state.stuck.notify_one();
                Played::Silence
            }
        })
    }
}

/// Ends a session, whatever it waits for.
async fn stop(running: Option<Running>) {
    let Some(running) = running else { return };
    running.handle.send(Command::Quit);
    // What it records of its end is thrown away with it; a panic in it shows as what is missing from the report.
    drop(running.task.await);
}

/// Returns the calls whose results a message holds.
fn calls_in(message: &Value) -> Vec<ToolUseId> {
    let blocks = message["content"].as_array().into_iter().flatten();
    let ids = blocks.filter_map(|block| block["tool_use_id"].as_str());
    ids.map(ToolUseId::from).collect()
}
