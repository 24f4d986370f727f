//! Handlers that send an agent out: a model that may look around before it says whether all is well.
//!
//! The agent is a conversation like any other that works beside the main line (`background`), with tools that look and a
//! policy that lets nothing else run. What it does is told to no hooks: a check that looks at a file must not set itself off.

use std::sync::{Arc, Weak};
use std::time::Duration;

use loci_context::PromptParts;
use loci_core::entry::draft::Stamp;
use loci_core::hooks::HandlerEnd;
use loci_storage::memory::Author;
use loci_tools::{FileStates, Host, Toolbox};
use tokio_util::sync::CancellationToken;

use super::HookService;
use super::model::{judged, with_arguments};
use crate::agents::background::{self, AgentEnd, AgentTask, BackgroundDeps, Policy};
use crate::conversation::host::ConversationHost;
use crate::conversation::request_base::RequestBase;
use crate::conversation::{AgentSetup, ForkPoint, SessionContext};
use crate::session::config::{CompactionConfig, ModelConfig};

/// The type of such agents, in their side files.
pub(crate) const HOOK_AGENT: &str = "hook-agent";
/// How often the model may be asked.
const MAX_TURNS: u32 = 50;
/// What it may use.
const TOOLS: [&str; 3] = ["Read", "Glob", "Grep"];
/// What it is told before the question.
const SYSTEM: &str = "You check one condition for a coding agent that is about to act or to stop. Look at the project with \
your tools as far as you need to; you cannot change anything. Then answer with a single JSON object and nothing else: \
{\"ok\": true} when the condition holds, {\"ok\": false, \"reason\": \"...\"} when it does not, with a reason the agent can act \
upon.";

/// What agents of hooks are made from.
pub(crate) struct HookAgents {
    pub(crate) ctx: Weak<SessionContext>,
    pub(crate) stamp: Stamp,
    pub(crate) max_budget_usd: Option<f64>,
    pub(crate) toolbox: Toolbox,
    pub(crate) model: ModelConfig,
    /// Where the main line stands.
    pub(crate) host: Weak<ConversationHost>,
}

impl HookService {
    /// Sends an agent out with a question and waits for its word.
    pub(super) async fn run_agent(
        &self,
        (prompt, model): (&str, Option<&str>),
        json: &str,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> HandlerEnd {
        let instruction = with_arguments(prompt, json);
        let Some((deps, task)) = self.agent_task(instruction, model) else {
            return HandlerEnd::Failed("no agent can be sent out here".to_owned());
        };
        let stop = cancel.child_token();
        let sent = background::run(&deps, task, &stop);
        tokio::pin!(sent);
        let report = tokio::select! {
            report = &mut sent => report,
            () = tokio::time::sleep(limit) => {
                // Called back, so that nothing of it goes on.
                stop.cancel();
                sent.await;
                return HandlerEnd::TimedOut { blocks: false };
            }
        };
        match report.end {
            AgentEnd::Done => judged(&report.text, true),
            AgentEnd::OutOfTurns => HandlerEnd::Failed(format!("no answer came within {MAX_TURNS} turns")),
            AgentEnd::OutOfBudget => HandlerEnd::Failed("the session may not spend more".to_owned()),
            AgentEnd::Failed(failure) => {
                HandlerEnd::Failed(format!("the model could not be asked: {}", failure.message))
            }
            AgentEnd::Cancelled => HandlerEnd::Cancelled,
        }
    }

    /// Returns what an agent is to do, and in what; none where there is no session.
    fn agent_task(&self, instruction: String, model: Option<&str>) -> Option<(BackgroundDeps, AgentTask)> {
        let agents = self.inner.agents.get()?;
        let (ctx, host) = (agents.ctx.upgrade()?, agents.host.upgrade()?);
        let mut toolbox = agents.toolbox.clone();
        toolbox.retain(|tool| TOOLS.contains(&tool.name.as_str()));
        let vars = host.env().vars;
        let main = self.world().small_model.choose(&vars, model);
        let model = ModelConfig { main, effort: None, max_thinking_tokens: Some(0), ..agents.model.clone() };
        let prompt = PromptParts { replacement: Some(SYSTEM.to_owned()), ..PromptParts::default() };
        let session = ctx.identity.get();
        let base =
            RequestBase::new(&prompt, &toolbox, &model, CompactionConfig::off(), session.id().as_str());
        let point = ForkPoint {
            model,
            messages: Vec::new(),
            tokens: 0,
            leaf: None,
            place: host.workspace(),
            base: Arc::new(base),
            toolbox,
        };
        let setup = AgentSetup {
            kind: HOOK_AGENT,
            point,
            policy: Policy::Look,
            max_turns: MAX_TURNS,
            files: FileStates::default(),
            author: Author::Model,
            is_recorded: true,
        };
        let deps = BackgroundDeps { ctx, stamp: agents.stamp.clone(), max_budget_usd: agents.max_budget_usd };
        Some((deps, AgentTask { setup, instruction }))
    }

    /// Lets handlers send agents out from now on.
    pub(crate) fn set_agents(&self, agents: HookAgents) {
        // A session has one main line, which is made once.
        drop(self.inner.agents.set(agents));
    }
}
