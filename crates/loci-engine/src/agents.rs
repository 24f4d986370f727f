//! Agents that a conversation sends out: each is a [`Conversation`](crate::conversation::Conversation) like the main one,
//! with a prompt, tools and a transcript of its own.
//!
//! A call of the Agent tool becomes an [`AgentPlan`] (`plan.rs`): which definition, model, mode and place. `run.rs` takes a
//! plan to its end, beside whoever made the call: it waits for its turn ([`Scheduler`]), makes the conversation
//! (`conversation.rs` here), drives it until it has answered and nothing it started itself is left, and ends its task in
//! the one table of background work. Foreground and background are the same run; only who waits for it differs.
//!
//! What must stay true:
//! 1. An agent has at most the permissions of the session (S-48): the same rules, never a wider mode, and questions reach
//!    whoever is asked with its name.
//! 2. What it says reaches another conversation as data (`loci_core::agent::sanitize_result`).
//! 3. Every agent that began ends once in the table, whatever stops it, and its end is told once.

pub(crate) mod background;
mod conversation;
mod fork_origin;
mod host;
mod listing;
mod live;
mod memory;
mod notification;
mod plan;
mod run;
mod scheduler;
mod servers;
mod slots;
mod work;
mod worktree;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_context::PromptParts;
use loci_core::agent::AgentRegistry;
use loci_core::ids::PromptId;
use loci_core::message::Block;
use loci_stdx::Store;
use loci_storage::config::{Instructions, LazyInstructions};
use loci_tools::{TaskStore, Toolbox};

use crate::agents::background::BackgroundDeps;
use crate::conversation::ForkPoint;
use crate::conversation::host::lock;
use crate::extensions::skills::use_skill::TurnGrants;
use crate::session::client_request::ClientRequests;
use crate::session::config::{AgentsConfig, CompactionConfig, ModelConfig, TurnLimits};
use crate::session::file_history::FileHistoryRecorder;

pub(crate) use conversation::{fork_messages, forked_results};
pub(crate) use fork_origin::open_calls;
pub(crate) use listing::agent_changes;
pub use listing::agent_listing;
pub use live::AgentAtWork;
pub(crate) use live::LiveAgent;
pub(crate) use memory::admit as admit_memory;
pub use memory::main_agent_memory;
pub use notification::task_summary;
pub(crate) use notification::{NO_INPUT, escaped, take_news};
pub(crate) use plan::{PERSON_CALL, new_agent_id};
pub(crate) use servers::server_prefixes;
pub use servers::{AgentServersMaker, MadeServers};
use slots::Slots;
pub(crate) use work::AgentWork;

/// What the agents of a session share.
pub(crate) struct AgentService {
    pub(crate) deps: BackgroundDeps,
    /// The definitions, as they are now.
    pub(crate) registry: Arc<Store<AgentRegistry>>,
    pub(crate) settings: AgentSettings,
    base: AgentBase,
    /// Makes the servers that definitions have of their own.
    make_servers: Option<AgentServersMaker>,
    /// What the main conversation offers right now; held to copy it.
    toolbox: Mutex<Toolbox>,
    slots: Slots,
    /// The agents of this process, newest last; held to look one up.
    live: Mutex<Vec<Arc<LiveAgent>>>,
    /// What people were told already; held to add one.
    told: Mutex<Vec<String>>,
}

/// What is decided about agents for a whole session.
#[derive(Debug, Clone)]
pub(crate) struct AgentSettings {
    pub(crate) max_depth: u32,
    pub(crate) can_fork: bool,
    pub(crate) is_background: bool,
    pub(crate) spawnable: Option<Vec<String>>,
    /// What is added to the prompts of agents that are sent out.
    pub(crate) appended_prompt: Option<String>,
    pub(crate) keeps_memory: bool,
    pub(crate) memory_root: PathBuf,
    /// How long the model of an agent in the background may say nothing.
    pub(crate) stall_timeout: Option<Duration>,
}

/// What agents take over from the main conversation.
pub(crate) struct AgentBase {
    pub(crate) prompt: PromptParts,
    pub(crate) limits: TurnLimits,
    pub(crate) compaction: CompactionConfig,
    pub(crate) instructions: Instructions,
    pub(crate) lazy_instructions: Option<LazyInstructions>,
    pub(crate) task_store: Arc<dyn TaskStore>,
    /// Keeps files before they are changed, where that is wanted.
    pub(crate) file_history: Option<Arc<FileHistoryRecorder>>,
    /// The way to the client, for what servers of agents ask.
    pub(crate) client_requests: ClientRequests,
}

/// How a conversation stands when it makes a call that sends an agent out.
#[derive(Clone)]
pub(crate) struct SpawnContext {
    /// The model it asks, and how.
    pub(crate) model: ModelConfig,
    /// The prompt at hand.
    pub(crate) prompt: PromptId,
    /// What a fork goes on from.
    pub(crate) fork: Option<ForkStart>,
    /// The skill that is given to the agent, where it is one that sends it out.
    pub(crate) skill: Option<SkillSpawn>,
}

/// What a skill that runs in an agent says of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SkillSpawn {
    /// What it changes about the agent's turns.
    pub(crate) grants: TurnGrants,
    /// Whether the conversation goes on meanwhile.
    pub(crate) is_background: bool,
}

/// What a fork goes on from: the conversation up to the response that made the call, and an answer to each of its calls.
#[derive(Clone)]
pub(crate) struct ForkStart {
    pub(crate) point: ForkPoint,
    pub(crate) results: Vec<Block>,
    /// What opens the conversation, where the fork is one that goes on: it may have to be read from the transcript.
    pub(crate) opening: Option<Block>,
}

impl AgentService {
    pub(crate) fn new(
        deps: BackgroundDeps,
        config: &AgentsConfig,
        base: AgentBase,
        toolbox: Toolbox,
    ) -> Self {
        Self {
            deps,
            registry: Arc::clone(&config.registry),
            settings: AgentSettings {
                max_depth: config.max_depth,
                can_fork: config.can_fork,
                is_background: config.is_background,
                spawnable: config.spawnable.clone(),
                appended_prompt: config.appended_prompt.clone(),
                keeps_memory: config.keeps_memory,
                memory_root: config.memory_root.clone(),
                stall_timeout: config.stall_timeout,
            },
            base,
            make_servers: config.make_servers.clone(),
            toolbox: Mutex::new(toolbox),
            slots: Slots::new(config.max_concurrent),
            live: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Takes note of what the main conversation offers from now on.
    pub(crate) fn set_toolbox(&self, toolbox: Toolbox) {
        *lock(&self.toolbox) = toolbox;
    }

    fn toolbox(&self) -> Toolbox {
        lock(&self.toolbox).clone()
    }

    /// Returns the directory of agents' transcripts; none where nothing is kept.
    fn dir(&self) -> Option<PathBuf> {
        let identity = self.deps.ctx.identity.get();
        identity.is_persistent().then(|| identity.companion_dir().join("subagents"))
    }

    fn live(&self, id: &str) -> Option<Arc<LiveAgent>> {
        lock(&self.live).iter().rev().find(|agent| agent.id.as_str() == id).cloned()
    }

    /// Returns the agents that work now, oldest first.
    pub(crate) fn at_work(&self) -> Vec<AgentAtWork> {
        lock(&self.live).iter().filter_map(|agent| agent.at_work()).collect()
    }

    /// Tells people something, once.
    fn tell_once(&self, text: String) {
        let mut told = lock(&self.told);
        if !told.contains(&text) {
            told.push(text.clone());
            // Without a listener there is nobody to tell.
            drop(self.deps.ctx.events.send(crate::event::EngineEvent::Warning(text)));
        }
    }
}
