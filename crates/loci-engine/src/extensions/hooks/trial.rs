//! Hooks tried by hand: run once for a made-up event, outside any session.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use loci_core::app_state::{AppState, PermissionState};
use loci_core::hooks::{HandlerEnd, HookConfig, HookDecision, HookEntry, HookInput};
use loci_core::ids::SessionId;
use loci_core::model::ModelCatalog;
use loci_core::permission::Rulebook;
use loci_core::session::{NewSession, SessionIdentity};
use loci_core::tool::CallEffects;
use loci_llm::Client;
use loci_mcp::SandboxMaker;
use loci_stdx::{Env, Store};
use loci_storage::layout::ConfigHome;
use tokio::sync::mpsc::unbounded_channel;

use super::{HookService, HookWorld};
use crate::models::model_name::resolve_model;
use crate::models::small_model::SmallModel;
use crate::session::client_request::ClientRequests;
use crate::session::config::{Ambient, ModelConfig};

/// What hooks are tried in.
pub struct HookTrialWorld {
    /// The session that handlers are told of.
    pub session: SessionId,
    /// The ambient world.
    pub env: Env,
    /// Environment of child processes.
    pub child_env: Vec<(String, String)>,
    /// Where the user's things lie.
    pub home: ConfigHome,
    /// What `if` is compared by.
    pub rulebook: Rulebook,
    /// Makes the sandboxes that commands ask for.
    pub sandbox_maker: Option<SandboxMaker>,
}

/// What came of a trial.
#[derive(Debug)]
pub struct HookTrial {
    /// What each handler did.
    pub runs: Vec<HookTrialRun>,
    /// What their answers come to.
    pub decision: HookDecision,
}

/// What one handler did.
#[derive(Debug)]
pub struct HookTrialRun {
    /// Which.
    pub entry: Arc<HookEntry>,
    /// How it ended.
    pub end: HandlerEnd,
    /// How long it took.
    pub taken: Duration,
}

/// Runs every handler that an event concerns. Questions to a model are not asked.
pub async fn try_hooks(
    config: HookConfig,
    world: HookTrialWorld,
    input: HookInput,
    effects: Option<CallEffects>,
) -> HookTrial {
    let HookTrialWorld { session: id, env, child_env, home, rulebook, sandbox_maker } = world;
    let (events, _heard) = unbounded_channel();
    let (commands, _kept) = unbounded_channel();
    let identity = SessionIdentity::new(NewSession {
        id: id.clone(),
        project_dir: input.common.transcript_path.parent().map(Into::into).unwrap_or_default(),
        cwd: env.cwd.clone(),
        is_interactive: false,
        is_persistent: false,
    });
    let state = AppState {
        permission: PermissionState { rulebook, ..PermissionState::default() },
        ..AppState::default()
    };
    let small_model = SmallModel::new(&ModelConfig::new(&resolve_model(&env.vars, "default")));
    let service = HookService::new(
        config,
        &[],
        HookWorld {
            identity: Arc::new(Store::new(identity)),
            state: Arc::new(Store::new(state)),
            tmp: home.session_tmp(&env.cwd, &id),
            ambient: Arc::new(Mutex::new(Ambient { env, child_env, sandbox: None })),
            events,
            timeline: Arc::default(),
            client_requests: ClientRequests::none(),
            client: Client::scripted(|_| Vec::new(), Duration::ZERO),
            models: ModelCatalog::default(),
            small_model,
            has_classifier: false,
            main_agent: None,
            mcp_tools: None,
            home,
            env_dir: Arc::new(OnceLock::new()),
            sandbox_maker,
            commands: commands.downgrade(),
        },
    );
    let (runs, decision) = service.run_all(&input, None, effects.as_ref()).await;
    let runs = runs.into_iter().map(|run| HookTrialRun { entry: run.entry, end: run.end, taken: run.taken });
    HookTrial { runs: runs.collect(), decision }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use super::*;
    use crate::extensions::McpToolCaller;

    /// Returns a service that stands in a directory, and whose news nobody hears.
    pub(in crate::extensions::hooks) fn service(
        config: HookConfig,
        dir: &Path,
        mcp_tools: Option<Arc<dyn McpToolCaller>>,
    ) -> HookService {
        let env = Env::for_test(dir.join("home"), dir);
        let id = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        let (home, path) = (ConfigHome::from_env(&env), std::env::var("PATH").unwrap_or_default());
        let identity = SessionIdentity::new(NewSession {
            id: id.clone(),
            project_dir: dir.join("sessions"),
            cwd: dir.to_owned(),
            is_interactive: false,
            is_persistent: false,
        });
        let small_model = SmallModel::new(&ModelConfig::new("main"));
        let world = HookWorld {
            identity: Arc::new(Store::new(identity)),
            state: Arc::new(Store::new(AppState::default())),
            tmp: home.session_tmp(dir, &id),
            ambient: Arc::new(Mutex::new(Ambient {
                env,
                child_env: vec![("PATH".to_owned(), path)],
                sandbox: None,
            })),
            events: unbounded_channel().0,
            timeline: Arc::default(),
            client_requests: ClientRequests::none(),
            client: Client::scripted(|_| Vec::new(), Duration::ZERO),
            models: ModelCatalog::default(),
            small_model,
            has_classifier: false,
            main_agent: None,
            mcp_tools,
            home,
            env_dir: Arc::new(OnceLock::new()),
            sandbox_maker: None,
            commands: unbounded_channel().0.downgrade(),
        };
        HookService::new(config, &[], world)
    }
}
