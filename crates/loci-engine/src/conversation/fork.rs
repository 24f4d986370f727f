//! An agent's conversation, forked from another: the same prefix, a transcript and a memory of files of its own.
//!
//! Its requests begin with the very messages of the other conversation, so that the prompt cache serves them. Its
//! transcript is a side file, `subagents/agent-<id>.jsonl` beside the session's, with a chain of its own: before it stands
//! the other conversation, which has its own file. A session that leaves nothing has its agents leave nothing.

use std::path::Path;
use std::sync::Arc;

use loci_core::entry::draft::Stamp;
use loci_core::ids::EntryId;
use loci_core::message::Message;
use loci_llm::RetryPolicy;
use loci_stdx::{WriteOptions, write_atomic};
use loci_storage::memory::Author;
use loci_storage::sessions::SessionLog;
use loci_tools::{BackgroundTasks, FileStates, Host, MemoryTaskStore, Toolbox, Workspace};
use serde_json::json;

use super::host::{ConversationHost, HostParts, Spill, lock};
use super::{Conversation, ConversationParts, Helpers, InstructionState, Prelude, SessionContext};
use crate::agents::background::{BackgroundDeps, Policy};
use crate::agents::new_agent_id;
use crate::conversation::recorder::Recorder;
use crate::conversation::request_base::RequestBase;
use crate::event::{AgentRef, EventSink};
use crate::session::config::{CompactionConfig, LoadedHistory, ModelConfig, TurnLimits};
use crate::session::file_history::Checkpoints;

/// How a conversation stands when an agent is forked from it.
#[derive(Clone)]
pub(crate) struct ForkPoint {
    /// The model that is asked, and how.
    pub(crate) model: ModelConfig,
    /// The messages of the next request, word for word.
    pub(crate) messages: Vec<Message>,
    /// About how many tokens they are.
    pub(crate) tokens: u64,
    /// The last entry that they are made from.
    pub(crate) leaf: Option<EntryId>,
    pub(crate) place: Workspace,
    /// What stands before the messages: shared byte for byte, so that the provider has it cached.
    pub(crate) base: Arc<RequestBase>,
    pub(crate) toolbox: Toolbox,
}

/// What makes an agent's conversation its own.
pub(crate) struct AgentSetup {
    /// The agent's type, as its side file says.
    pub(crate) kind: &'static str,
    pub(crate) point: ForkPoint,
    pub(crate) policy: Policy,
    pub(crate) max_turns: u32,
    /// What it has read before it begins.
    pub(crate) files: FileStates,
    /// Whose hand memories are written in.
    pub(crate) author: Author,
    /// Whether what it says is kept in a side file.
    pub(crate) is_recorded: bool,
}

impl Conversation {
    /// Forks a conversation that works beside another: nobody is asked, nobody is told, and nothing of it is compacted,
    /// since it is short. What fails is not repeated: it is done next time.
    pub(crate) fn fork(deps: &BackgroundDeps, setup: AgentSetup) -> Self {
        let (ctx, env) = (&deps.ctx, &deps.ctx.services.env);
        let agent = AgentRef {
            id: new_agent_id(env),
            kind: setup.kind.to_owned(),
            parent: None,
            description: "background".to_owned(),
            depth: 1,
        };
        let events = EventSink::silent(ctx.events.clone(), agent.clone());
        let stamp = Stamp { agent: Some(agent.id.clone()), ..deps.stamp.clone() };
        let log = if setup.is_recorded { side_log(ctx, &agent) } else { SessionLog::in_memory() };
        let recorder = Recorder::new(env.clone(), log, stamp, LoadedHistory::default());
        let model = ModelConfig { wants_wire_events: false, fallbacks: Vec::new(), ..setup.point.model };
        let limits = TurnLimits {
            max_turns: Some(setup.max_turns),
            max_budget_usd: deps.max_budget_usd,
            max_parallel: 1,
            retry: RetryPolicy { max_retries: 0, ..RetryPolicy::default() },
            allows_one_piece: false,
            structured: None,
        };
        Self::new(ConversationParts {
            host: Arc::new(side_host(ctx, &agent, events.clone(), setup.files, setup.point.place)),
            agent: Some(agent),
            events,
            recorder,
            toolbox: setup.point.toolbox,
            base: setup.point.base,
            model,
            limits,
            asks: false,
            policy: Some(setup.policy),
            author: setup.author,
            compaction: CompactionConfig::off(),
            instructions: InstructionState::default(),
            prelude: Prelude::Fork {
                messages: setup.point.messages,
                tokens: setup.point.tokens,
                results: Vec::new(),
            },
            past: None,
            checkpoints: Checkpoints::new(env, None),
            helpers: Helpers::default(),
            ctx: Arc::clone(ctx),
        })
    }
}

/// Opens the agent's transcript. What cannot be written is not: the agent's work does not depend on it.
fn side_log(ctx: &SessionContext, agent: &AgentRef) -> SessionLog {
    let identity = ctx.identity.get();
    if !identity.is_persistent() {
        return SessionLog::in_memory();
    }
    let dir = identity.companion_dir().join("subagents");
    write_meta(&dir, agent);
    SessionLog::on_disk(&dir.join(format!("agent-{}.jsonl", agent.id)))
}

fn write_meta(dir: &Path, agent: &AgentRef) {
    let meta = json!({"agentType": agent.kind, "description": "background", "spawnDepth": 1});
    let path = dir.join(format!("agent-{}.meta.json", agent.id));
    let options = WriteOptions::private().creating_parents();
    drop(write_atomic(&path, meta.to_string().as_bytes(), &options));
}

/// Makes the host of an agent's calls: the session's world, with a place and a memory of files of its own.
fn side_host(
    ctx: &SessionContext,
    agent: &AgentRef,
    events: EventSink,
    files: FileStates,
    place: Workspace,
) -> ConversationHost {
    let host = ConversationHost::new(HostParts {
        home: ctx.services.home.clone(),
        ambient: Arc::clone(&ctx.services.ambient),
        place,
        spill: Spill::Temporary,
        tmp: ctx.services.tmp.clone(),
        events,
        state: Arc::clone(&ctx.state),
        // What it writes is kept in the journal of memories, not with the files of the conversation.
        keeper: None,
        transcript: None,
        memory: None,
        // The conversation's list is not its own.
        task_store: Arc::new(MemoryTaskStore::default()),
        plans: None,
        worktrees: None,
        session: ctx.identity.get().id().to_string(),
        env_dir: Arc::clone(&ctx.services.env_dir),
        tasks: BackgroundTasks::default().of_agent(&agent.id),
        agent: Some(agent.clone()),
    });
    *lock(host.files()) = files;
    host
}
