//! Hooks at work: the handlers that an event concerns are run side by side, and their answers become one decision.
//!
//! What is configured, what handlers read and what their answers mean is decided in `loci_core::hooks`; here it is done.
//! [`HookService`] fills the seams that conversations ask (`extension`): turns in `hooks/turn.rs`, compactions in
//! `hooks/compaction.rs`. What must stay true is numbered in `docs/design/hooks.md`.

mod attachments;
mod command;
mod compaction;
mod run;
mod tool_output;
mod turn;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use loci_core::app_state::AppState;
use loci_core::hooks::{CommonInput, EffortLevel, EventInput, HookConfig, HookEvent, HookInput};
use loci_core::session::SessionIdentity;
use loci_stdx::Store;
use loci_storage::layout::SessionTmp;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::Ambient;
use crate::conversation::host::lock;
use crate::event::EngineEvent;
use crate::extension::HookMoment;

/// Runs the hooks of a session. Copies are the same service.
#[derive(Clone)]
pub(crate) struct HookService {
    inner: Arc<HookState>,
}

/// What the service shares with its runs.
struct HookState {
    /// What is configured now; replaced between prompts, held to copy the handle.
    config: Mutex<Arc<HookConfig>>,
    world: HookWorld,
    /// Runs that nobody waits for; held to add one.
    detached: Mutex<JoinSet<()>>,
    /// What they said, until the next prompt takes it; held to add or to take.
    late: Mutex<Vec<serde_json::Value>>,
    /// Ends them.
    shutdown: CancellationToken,
}

/// What of a session hooks are told, and what they are run in.
pub(crate) struct HookWorld {
    pub(crate) identity: Arc<Store<SessionIdentity>>,
    pub(crate) state: Arc<Store<AppState>>,
    /// The world around the session; settings change it.
    pub(crate) ambient: Arc<Mutex<Ambient>>,
    pub(crate) events: UnboundedSender<EngineEvent>,
    pub(crate) tmp: SessionTmp,
}

impl HookService {
    /// Makes the service; nothing is run before something happens.
    pub(crate) fn new(config: HookConfig, world: HookWorld) -> Self {
        Self {
            inner: Arc::new(HookState {
                config: Mutex::new(Arc::new(config)),
                world,
                detached: Mutex::default(),
                late: Mutex::default(),
                shutdown: CancellationToken::new(),
            }),
        }
    }

    /// Takes another configuration from now on.
    pub(crate) fn set_config(&self, config: Arc<HookConfig>) {
        *lock(&self.inner.config) = config;
    }

    /// Tells whether any handler is there for an event.
    pub(crate) fn has(&self, event: HookEvent) -> bool {
        lock(&self.inner.config).has(event)
    }

    fn config(&self) -> Arc<HookConfig> {
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
        let mode = world.state.get().permission.rulebook.mode;
        HookInput {
            common: CommonInput {
                session_id: identity.id().to_string(),
                transcript_path: identity.transcript_path(),
                cwd: moment.cwd,
                prompt_id: moment.prompt,
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
