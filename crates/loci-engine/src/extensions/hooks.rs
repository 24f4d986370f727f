//! Hooks at work: the handlers that an event concerns are run side by side, and their answers become one decision.
//!
//! What is configured, what handlers read and what their answers mean is decided in `loci_core::hooks`; here it is done.
//! [`HookService`] fills the seams that conversations ask (`extension`): turns in `hooks/turn.rs`, compactions in
//! `hooks/compaction.rs`, features beside them in `hooks/features.rs`. What must stay true is numbered in `docs/design/hooks.md`.

mod agent;
mod attachments;
mod callback;
mod command;
mod compaction;
mod features;
mod file_watch;
mod http;
mod mcp_tool;
mod model;
mod model_switch;
mod run;
mod scoped;
mod task_list;
mod tool_output;
pub(crate) mod trial;
mod turn;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock};

use loci_core::app_state::AppState;
use loci_core::entry::Attachment;
use loci_core::hooks::{CommonInput, EffortLevel, EventInput, HookConfig, HookEntry, HookEvent, HookInput};
use loci_core::model::ModelCatalog;
use loci_core::session::SessionIdentity;
use loci_llm::Client;
use loci_mcp::SandboxMaker;
use loci_stdx::Store;
use loci_storage::layout::{ConfigHome, SessionTmp};
use loci_tools::DeathWatch;
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::command::Command;
use crate::conversation::host::lock;
use crate::event::EngineEvent;
use crate::extensions::{HookMoment, McpToolCaller};
use crate::models::small_model::SmallModel;
use crate::session::client_request::ClientRequests;
use crate::session::config::Ambient;
use crate::session::initialize::ClientHook;
use crate::session::timeline::TimelineRecorder;
pub(crate) use agent::{HOOK_AGENT, HookAgents};
pub(crate) use attachments::classifier_notes_in;
use callback::client_entries;
use file_watch::FileWatch;
pub(crate) use model::judged;
use scoped::ScopedHookList;
pub(crate) use task_list::TaskHookLayer;

/// Runs the hooks of a session. Copies are the same service.
#[derive(Clone)]
pub(crate) struct HookService {
    inner: Arc<HookState>,
}

/// What the service shares with its runs.
struct HookState {
    /// What is configured now; replaced between prompts, held to copy the handle.
    config: Mutex<Arc<HookConfig>>,
    /// The client's own, which no settings change.
    client_hooks: Vec<Arc<HookEntry>>,
    /// What skills and agents brought along; held to add, to take away, or to copy.
    scoped: Mutex<ScopedHookList>,
    world: HookWorld,
    /// Commands in the background; held to add one.
    detached: Mutex<JoinSet<()>>,
    /// Runs of handlers that were told of something; held to add one.
    told: Mutex<JoinSet<()>>,
    /// What agents are made from, once there is a main line.
    agents: OnceLock<HookAgents>,
    /// The files that hooks want to hear of; held to change what is watched.
    watch: Mutex<FileWatch>,
    /// How things stood in the main line when that was last said; held to copy or to replace it.
    moment: Mutex<HookMoment>,
    /// The fields of answers that the user was told have no effect; held to add one.
    without_effect: Mutex<BTreeSet<&'static str>>,
    /// How many handlers run that may say what commands find in their environment.
    environment_runs: watch::Sender<usize>,
    /// How many files for variables were given out.
    n_env_files: AtomicUsize,
    /// What they said, until the next prompt takes it; held to add or to take.
    late: Mutex<Vec<Attachment>>,
    /// Ends them.
    shutdown: CancellationToken,
    /// Ends every command should the session be killed.
    death_watch: DeathWatch,
}

/// What of a session hooks are told, and what they are run in.
pub(crate) struct HookWorld {
    pub(crate) identity: Arc<Store<SessionIdentity>>,
    pub(crate) state: Arc<Store<AppState>>,
    /// The world around the session; settings change it.
    pub(crate) ambient: Arc<Mutex<Ambient>>,
    pub(crate) events: UnboundedSender<EngineEvent>,
    /// What the last turn spent time on.
    pub(crate) timeline: Arc<TimelineRecorder>,
    pub(crate) tmp: SessionTmp,
    /// What is known of models.
    pub(crate) models: ModelCatalog,
    /// The model that handlers ask.
    pub(crate) small_model: SmallModel,
    /// The way to the client that drives the session.
    pub(crate) client_requests: ClientRequests,
    /// The model provider, for handlers that ask one.
    pub(crate) client: Client,
    /// Whether a classifier judges calls, which may be told of results.
    pub(crate) has_classifier: bool,
    /// The agent that the main conversation runs as.
    pub(crate) main_agent: Option<String>,
    /// The connected MCP servers, for handlers that are tools of theirs.
    pub(crate) mcp_tools: Option<Arc<dyn McpToolCaller>>,
    pub(crate) home: ConfigHome,
    /// Where variables for commands are left, once there are any.
    pub(crate) env_dir: Arc<OnceLock<PathBuf>>,
    /// Makes the sandboxes that commands ask for.
    pub(crate) sandbox_maker: Option<SandboxMaker>,
    /// The way to wake the session; it does not keep it alive.
    pub(crate) commands: WeakUnboundedSender<Command>,
}

impl HookService {
    /// Makes the service; nothing is run before something happens.
    pub(crate) fn new(mut config: HookConfig, client_hooks: &[ClientHook], world: HookWorld) -> Self {
        let (client_hooks, problems) = client_entries(client_hooks);
        for problem in problems {
            // Without a listener there is nobody to tell.
            drop(world.events.send(EngineEvent::Warning(problem)));
        }
        config.extend_shared(client_hooks.iter().cloned());
        Self {
            inner: Arc::new(HookState {
                config: Mutex::new(Arc::new(config)),
                client_hooks,
                scoped: Mutex::default(),
                world,
                detached: Mutex::default(),
                told: Mutex::default(),
                agents: OnceLock::new(),
                watch: Mutex::default(),
                moment: Mutex::default(),
                without_effect: Mutex::default(),
                environment_runs: watch::Sender::new(0),
                n_env_files: AtomicUsize::new(0),
                late: Mutex::default(),
                shutdown: CancellationToken::new(),
                death_watch: DeathWatch::default(),
            }),
        }
    }

    /// Takes another configuration from now on.
    pub(crate) fn set_config(&self, mut config: HookConfig) {
        config.extend_shared(self.inner.client_hooks.iter().cloned());
        *lock(&self.inner.config) = Arc::new(config);
        self.update_watch();
    }

    /// Tells whether any handler is there for an event.
    pub(crate) fn has(&self, event: HookEvent) -> bool {
        lock(&self.inner.config).has(event) || lock(&self.inner.scoped).has(event)
    }

    /// Tells whether there are no hooks at all.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.inner.config).is_empty() && lock(&self.inner.scoped).is_empty()
    }

    /// Notes how things stand in the main line, for events that happen outside of it.
    pub(crate) fn set_moment(&self, moment: HookMoment) {
        *lock(&self.inner.moment) = moment;
    }

    pub(crate) fn config(&self) -> Arc<HookConfig> {
        Arc::clone(&lock(&self.inner.config))
    }

    fn world(&self) -> &HookWorld {
        &self.inner.world
    }

    /// Returns what handlers of an event read.
    fn input(&self, event: EventInput, moment: HookMoment) -> HookInput {
        let world = self.world();
        let identity = world.identity.get();
        let kind = event.event();
        let (agent_id, agent_type) = moment.agent.map(|agent| (agent.id.to_string(), agent.kind)).unzip();
        let agent_type = agent_type.or_else(|| world.main_agent.clone());
        let mode = world.state.get().permission.rulebook.mode;
        HookInput {
            common: CommonInput {
                session_id: identity.id().to_string(),
                transcript_path: identity.transcript_path(),
                cwd: moment.cwd,
                // What happens beside the main line belongs to the prompt that the main line is at.
                prompt_id: moment.prompt.or_else(|| lock(&self.inner.moment).prompt.clone()),
                permission_mode: has_mode(kind).then(|| mode.as_str().to_owned()),
                agent_id,
                agent_type,
                effort: moment.effort.filter(|_| has_effort(kind)).map(|level| EffortLevel { level }),
            },
            event,
        }
    }

    /// Returns a file for a text that is too long to be told.
    fn spill_file(&self) -> std::io::Result<PathBuf> {
        let (world, identity) = (self.world(), self.world().identity.get());
        let dir = match identity.is_persistent() {
            true => {
                let dir = identity.companion_dir().join("tool-results");
                loci_stdx::create_private_dir_all(&dir)?;
                dir
            }
            false => world.tmp.create_tool_results_dir()?,
        };
        Ok(dir.join(format!("hook-{}.txt", self.fresh_id())))
    }

    fn fresh_id(&self) -> String {
        lock(&self.world().ambient).env.random.uuid_v4().to_string()
    }

    fn tell(&self, event: EngineEvent) {
        let now = lock(&self.world().ambient).env.clock.monotonic();
        self.world().timeline.take(&event, now);
        // Without a listener the session still runs to its end.
        drop(self.world().events.send(event));
    }

    /// Tells the user what handlers want told.
    fn tell_user(&self, messages: Vec<String>) {
        messages.into_iter().for_each(|text| self.tell(EngineEvent::Warning(text)));
    }
}

/// Events of prompts and calls say how much runs without asking.
fn has_mode(event: HookEvent) -> bool {
    use HookEvent::{
        PermissionDenied, PermissionRequest, PostToolBatch, PostToolUse, PostToolUseFailure, PreToolUse,
        Stop, SubagentStop, UserPromptExpansion, UserPromptSubmit,
    };
    matches!(
        event,
        UserPromptSubmit
            | UserPromptExpansion
            | PreToolUse
            | PermissionRequest
            | PermissionDenied
            | PostToolUse
            | PostToolUseFailure
            | PostToolBatch
            | Stop
            | SubagentStop
    )
}

/// Events of calls and ends of turns say how hard the model thinks.
fn has_effort(event: HookEvent) -> bool {
    use HookEvent::{StopFailure, UserPromptExpansion, UserPromptSubmit};
    (has_mode(event) && !matches!(event, UserPromptSubmit | UserPromptExpansion)) || event == StopFailure
}
