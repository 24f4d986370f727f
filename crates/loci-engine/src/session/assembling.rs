//! Putting a session together from its configuration.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loci_core::app_state::{AppState, ModelChoice, PermissionState, SessionView};
use loci_core::entry::Entry;
use loci_core::session::SessionIdentity;
use loci_stdx::{Env, Store};
use loci_tools::Place;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::compacting::Compactor;
use super::{Session, SessionHandle};
use crate::background::{Ahead, Backstage, Extractor, Folder, NotesKeeper};
use crate::classifier::Blocks;
use crate::config::{Ambient, BackgroundConfig, SessionConfig};
use crate::event::EngineEvent;
use crate::file_history::Checkpoints;
use crate::host::{HostParts, SessionHost, Spill};
use crate::memory::MemoryDesk;
use crate::recorder::Recorder;
use crate::request::RequestBase;
use crate::state::connect;
use crate::state_effects::SessionStateEffects;
use crate::task_list::task_store;

impl Session {
    /// Makes a session; nothing happens until it is run.
    pub fn new(mut config: SessionConfig) -> (Self, SessionHandle, UnboundedReceiver<EngineEvent>) {
        let (events, events_out) = unbounded_channel();
        let (command_in, commands) = unbounded_channel();
        let identity = Arc::new(Store::new(config.identity.clone()));
        let who = identity.get();
        let (poll_settings, apply) =
            config.settings_reload.take().map(|reload| (reload.poll, reload.apply)).unzip();
        let ambient = Ambient { env: config.env.clone(), child_env: std::mem::take(&mut config.child_env) };
        let ambient = Arc::new(Mutex::new(ambient));
        let place = place(&who, &config.rulebook.dirs, &config.env);
        let effects = SessionStateEffects {
            events: events.clone(),
            identity: Arc::clone(&identity),
            ambient: Arc::clone(&ambient),
            apply,
        };
        let state = Arc::new(connect(first_state(&mut config, &who), effects));
        let checkpoints = Checkpoints::new(&config.env, config.file_history.take());
        let host = SessionHost::new(HostParts {
            ambient: Arc::clone(&ambient),
            place,
            spill: spill(&who),
            tmp: config.tmp.clone(),
            events: events.clone(),
            state: Arc::clone(&state),
            keeper: checkpoints.keeper(),
            transcript: config.log.path().map(Path::to_path_buf),
            memory: config.memory.as_ref().map(|memory| memory.book.dir().to_owned()),
            task_store: task_store(&config.home, &who, &config.env),
        });
        let (prompt, toolbox, id) = (&config.prompt, &config.toolbox, who.id().as_str());
        let base = Arc::new(RequestBase::new(prompt, toolbox, &config.model, config.compaction, id));
        let desk = |memory| MemoryDesk::new(config.env.clone(), Arc::clone(&identity), memory);
        let memory = config.memory.take().map(desk).map(Arc::new);
        let stage = Backstage {
            env: config.env.clone(),
            client: config.client.clone(),
            base: Arc::clone(&base),
            events: events.clone(),
            toolbox: config.toolbox.clone(),
            state: Arc::clone(&state),
            identity: Arc::clone(&identity),
            ambient,
            tmp: config.tmp,
            stamp: config.stamp.clone(),
            max_budget_usd: config.limits.max_budget_usd,
            memory: memory.clone(),
        };
        let past = config.history.path.clone();
        let (drain, patience) = (config.background.drain, config.background.patience);
        let helpers = Helpers::new(&stage, config.background, config.compaction.collapses, &past);
        let recorder = Recorder::new(config.env.clone(), config.log, config.stamp, config.history);
        let session = Self {
            home: config.home,
            state,
            identity,
            recorder,
            host: Arc::new(host),
            toolbox: config.toolbox,
            slash_commands: config.commands,
            client: config.client,
            base,
            model: config.model,
            limits: config.limits,
            can_ask: config.can_ask,
            instructions: config.instructions,
            lazy_instructions: config.lazy_instructions,
            read_instructions: config.read_instructions,
            opening: None,
            api_key_source: config.api_key_source,
            started: config.started,
            env: config.env,
            events,
            commands,
            queue: VecDeque::new(),
            past: Some(past),
            asked_model: String::new(),
            is_closing: false,
            is_deaf: false,
            answering: None,
            poll_settings,
            grants: config.grants,
            classifier: config.classifier,
            blocks: Blocks::default(),
            compaction: config.compaction,
            compaction_hooks: config.compaction_hooks,
            restore_sources: config.restore_sources,
            compactor: Compactor::default(),
            checkpoints,
            notes: helpers.notes,
            ahead: helpers.ahead,
            folder: helpers.folder,
            memory,
            extractor: helpers.extractor,
            told_date: String::new(),
            drain,
            patience,
        };
        (session, SessionHandle { commands: command_in }, events_out)
    }
}

/// Those who work beside the conversation.
struct Helpers {
    notes: Option<NotesKeeper>,
    ahead: Option<Ahead>,
    folder: Option<Folder>,
    extractor: Option<Extractor>,
}

impl Helpers {
    fn new(stage: &Backstage, config: BackgroundConfig, collapses: bool, past: &[Arc<Entry>]) -> Self {
        let who = stage.identity.get();
        // Notes lie beside the transcript; a session that leaves none has no place for them.
        let pace = config.notes.filter(|_| who.is_persistent());
        // What is folded bit by bit is not compacted as a whole before it must be.
        let folder = collapses.then(|| Folder::new(stage.clone()));
        let is_prepared = config.prepares_summary && folder.is_none();
        let looking = stage.memory.clone().zip(config.extraction);
        Self {
            notes: pace.map(|pace| NotesKeeper::new(stage.clone(), &who, pace)),
            ahead: is_prepared.then(|| Ahead::new(stage.clone())),
            folder,
            extractor: looking
                .map(|(desk, extraction)| Extractor::new(stage.clone(), desk, extraction, past)),
        }
    }
}

/// Says where the session is, and where else it may work.
fn place(who: &SessionIdentity, dirs: &[PathBuf], env: &Env) -> Place {
    let project = who.project_root().to_path_buf();
    Place {
        cwd: who.original_cwd().to_path_buf(),
        extra_dirs: dirs.iter().filter(|dir| **dir != project).cloned().collect(),
        project,
        home: env.home.clone(),
    }
}

fn first_state(config: &mut SessionConfig, who: &SessionIdentity) -> AppState {
    let title = config.history.title.as_deref().or(config.history.labels.title()).map(str::to_owned);
    let rulebook = std::mem::take(&mut config.rulebook);
    AppState {
        permission: PermissionState { rulebook, ..PermissionState::default() },
        session: SessionView { title },
        settings: std::mem::take(&mut config.settings),
        model: ModelChoice { session_override: who.model_override.clone() },
    }
}

/// Long results lie beside the transcript; a session that leaves none keeps them with its tasks' output.
fn spill(who: &SessionIdentity) -> Spill {
    if who.is_persistent() {
        Spill::Beside(who.companion_dir().join("tool-results"))
    } else {
        Spill::Temporary
    }
}
