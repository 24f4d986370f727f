//! Taking an agent from its plan to its end.

use std::sync::Arc;
use std::time::Duration;

use loci_core::agent::sanitize_result;
use loci_core::hooks::{HookConfig, HookScope, HookSource};
use loci_core::ids::AgentId;
use loci_storage::sessions::{agent_end, write_agent_meta};
use loci_tools::{
    BackgroundStatus, BackgroundTask, BackgroundTasks, FinishedAgent, Host as _, KeptWorktree, TaskHandle,
    TaskKind, TaskReport, ToolStats,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::plan::AgentPlan;
use super::slots::Slots;
use super::work::{AgentCaps, total_tokens};
use super::worktree::AgentWorktree;
use super::{AgentService, AgentWork, LiveAgent};
use crate::conversation::{Conversation, TurnInput};
use crate::event::TurnReport;
use crate::extensions::{FeatureHooks as _, ScopedHooks, ScopedHooksGuard};
use crate::turn::Outcome;

/// An agent that is about to work.
pub(crate) struct AgentRun {
    pub(crate) service: Arc<AgentService>,
    pub(crate) plan: AgentPlan,
    pub(crate) task: TaskHandle,
    /// Its own background work.
    pub(crate) tasks: BackgroundTasks,
    pub(crate) live: Arc<LiveAgent>,
    pub(crate) output: std::path::PathBuf,
    /// The agent that waits for it, where one does.
    pub(crate) waited_for_by: Option<AgentId>,
}

/// What came of an agent.
pub(crate) struct AgentEnd {
    pub(crate) finished: FinishedAgent,
    pub(crate) status: BackgroundStatus,
}

impl AgentRun {
    /// Runs the agent and tells of its end: the table, and whoever waits.
    pub(crate) async fn run(self, done: oneshot::Sender<AgentEnd>) {
        let (task, live) = (self.task.clone(), Arc::clone(&self.live));
        let end = Box::pin(self.work()).await;
        // Nothing reaches it any more; a message from now on lets it go on anew.
        while !live.close() {
            live.take();
        }
        let finished = &end.finished;
        let usage = loci_tools::TaskUsage {
            total_tokens: finished.total_tokens,
            tool_uses: finished.tool_uses,
            duration: finished.duration,
        };
        let text = match (&finished.failure, &finished.worktree) {
            (None, None) => finished.text.clone(),
            (failure, worktree) => result_text(&finished.text, failure.as_deref(), worktree.as_ref()),
        };
        task.end(end.status.clone(), Some(TaskReport { text, usage }));
        // In the background nobody waits.
        drop(done.send(end));
    }

    async fn work(mut self) -> AgentEnd {
        let service = Arc::clone(&self.service);
        let stop = self.task.stop.clone();
        let (id, at_once) = (self.plan.agent.id.clone(), self.plan.begins_at_once);
        let slot = service.slots.acquire(&id, self.waited_for_by.take(), at_once, &stop).await;
        if slot.is_none() {
            return self.not_begun(BackgroundStatus::Killed("stopped before it began".to_owned()));
        }
        let worktree = match self.plan.is_isolated {
            false => None,
            true => match service.make_worktree(&mut self.plan).await {
                Ok(worktree) => Some(worktree),
                Err(why) => return self.not_begun(BackgroundStatus::Broken(why)),
            },
        };
        if let Some(path) = self.plan.meta.entered_worktree.clone() {
            let worktrees = Arc::clone(&self.plan.worktrees);
            if let Err(why) = worktrees.reenter(&mut self.plan.place, path).await {
                return self.not_begun(BackgroundStatus::Broken(format!("its worktree is gone: {why}")));
            }
        }
        let (tasks, live) = (std::mem::take(&mut self.tasks), Arc::clone(&self.live));
        live.set_isolation(self.plan.isolation.clone());
        let work = AgentWork::new(
            self.task.clone(),
            Arc::clone(&live),
            Arc::clone(&service.deps.ctx.services.env.clock),
            self.output.clone(),
            service.settings.stall_timeout,
            AgentCaps::of_definition(&self.plan.definition),
        );
        let servers = service.start_servers(&self.plan, &stop).await;
        let mut conversation = match service.conversation(&mut self.plan, tasks, work, &servers.tools) {
            Ok(conversation) => conversation,
            Err(why) => {
                servers.end().await;
                if let Some(worktree) = worktree {
                    service.settle_worktree(worktree).await;
                }
                service.settle_entered(&self.plan).await;
                return self.not_begun(BackgroundStatus::Broken(why));
            }
        };
        tracing::debug!(target: "loci::agents", agent = %self.plan.agent.id, kind = self.plan.agent.kind, "agent begins");
        let _hooks = service.add_hooks(&self.plan);
        let first = TurnInput::Task {
            text: std::mem::take(&mut self.plan.task),
            prompt: self.plan.prompt.clone(),
            results: std::mem::take(&mut self.plan.results),
        };
        let report = drive(&mut conversation, first, &service.slots, &live, &stop).await;
        let left = match self.leaves_commands(&report) {
            true => conversation.scope.host.tasks().hand_over_commands(),
            false => Vec::new(),
        };
        conversation.scope.host.tasks().shutdown().await;
        servers.end().await;
        conversation.recorder.close();
        conversation.recorder.tell_warnings(&conversation.scope);
        let kept = self.settle(worktree).await;
        tracing::debug!(target: "loci::agents", agent = %self.plan.agent.id, "agent ended");
        let mut end = self.ended(&conversation, &report, kept);
        end.finished.text += &left_running(&left);
        end
    }

    /// Ends its stay in worktrees: its own, or one that it has entered; returns one that is kept.
    async fn settle(&mut self, worktree: Option<AgentWorktree>) -> Option<KeptWorktree> {
        let service = Arc::clone(&self.service);
        let had_entered = self.plan.meta.entered_worktree.is_some() || self.plan.worktrees.is_inside();
        let entered = service.settle_entered(&self.plan).await;
        let Some(worktree) = worktree else {
            self.plan.meta.entered_worktree = entered.as_ref().map(|kept| kept.path.clone());
            if had_entered || entered.is_some() {
                self.write_meta();
            }
            return entered;
        };
        let kept = service.settle_worktree(worktree).await;
        self.plan.meta.worktree_path = kept.as_ref().map(|kept| kept.path.clone());
        self.plan.meta.worktree_branch = kept.as_ref().map(|kept| kept.branch.clone());
        self.write_meta();
        kept
    }

    fn write_meta(&self) {
        let Some(dir) = self.service.dir() else { return };
        if let Err(error) = write_agent_meta(&dir, &self.plan.agent.id, &self.plan.meta) {
            self.service.tell_once(format!("What is known of an agent could not be saved: {error}"));
        }
    }

    /// Tells whether what the agent started in the background goes on without it: where it worked there itself, came to
    /// its end, and had no place of its own that goes with it.
    fn leaves_commands(&self, report: &TurnReport) -> bool {
        let is_done =
            matches!(report.outcome, Outcome::Completed | Outcome::MaxTurns(_) | Outcome::Structured(_));
        let is_apart = self.plan.is_isolated || self.plan.worktrees.is_inside();
        is_done && self.task.is_background() && !is_apart
    }

    fn ended(
        &self,
        conversation: &Conversation,
        report: &TurnReport,
        worktree: Option<KeptWorktree>,
    ) -> AgentEnd {
        let said = agent_end(conversation.recorder.path()).1;
        let cap = conversation.scope.agent_work().and_then(|work| work.reached_cap);
        let (text, failure, status) = match &report.outcome {
            Outcome::Structured(answer) => (answer.to_string(), None, BackgroundStatus::Completed),
            Outcome::Completed | Outcome::MaxTurns(_) => {
                let text = if report.text.is_empty() { said } else { report.text.clone() };
                (text, None, BackgroundStatus::Completed)
            }
            Outcome::Interrupted(_) if cap.is_some() => {
                broken(said, cap.map(|cap| cap.to_string()).unwrap_or_default())
            }
            Outcome::Interrupted(_)
                if conversation.scope.agent_work().is_some_and(|work| work.has_stalled) =>
            {
                let waited = self.service.settings.stall_timeout.unwrap_or_default();
                broken(said, format!("its model said nothing for {} ms", waited.as_millis()))
            }
            Outcome::Interrupted(_) => {
                let why = "stopped by request".to_owned();
                (said, Some(why.clone()), BackgroundStatus::Killed(why))
            }
            Outcome::ApiError(failure) => broken(said, failure.message.clone()),
            Outcome::MaxBudget(limit) => broken(said, format!("the budget of ${limit} is spent")),
            Outcome::MaxStructuredAttempts(n) => {
                broken(said, format!("no answer of its shape in {n} attempts"))
            }
            Outcome::Refused => broken(said, "the model declined to answer".to_owned()),
            Outcome::CommandFailed => broken(said, "a command failed".to_owned()),
            Outcome::Deferred(call) | Outcome::DeferredUnavailable(call) => broken(
                said,
                format!("a hook put the call of {} off, which an agent cannot wait for", call.name),
            ),
            Outcome::Blocked(why) | Outcome::Halted(why) => broken(said, format!("a hook ended it: {why}")),
        };
        let text = match (text.trim().is_empty(), &failure) {
            (true, None) => "(The agent ended without a word.)".to_owned(),
            _ => sanitize_result(&text),
        };
        let work = conversation.scope.agent_work();
        let usage = work.map(|work| work.last_usage.clone()).unwrap_or_default();
        AgentEnd {
            finished: FinishedAgent {
                text,
                failure,
                duration: work.map(AgentWork::duration).unwrap_or_default(),
                total_tokens: total_tokens(&usage),
                tool_uses: work.map_or(0, |work| work.tool_uses),
                usage: usage.to_full_value(),
                stats: work.map(|work| work.stats).unwrap_or_default(),
                worktree,
                ..self.blank()
            },
            status,
        }
    }

    /// Nothing was done.
    fn not_begun(&self, status: BackgroundStatus) -> AgentEnd {
        let why = match &status {
            BackgroundStatus::Broken(why) | BackgroundStatus::Killed(why) => why.clone(),
            _ => String::new(),
        };
        AgentEnd { finished: FinishedAgent { failure: Some(why), ..self.blank() }, status }
    }

    fn blank(&self) -> FinishedAgent {
        FinishedAgent {
            id: self.plan.agent.id.clone(),
            kind: self.plan.agent.kind.clone(),
            model: self.plan.model.main.clone(),
            text: String::new(),
            failure: None,
            duration: Duration::ZERO,
            total_tokens: 0,
            tool_uses: 0,
            usage: loci_core::usage::Usage::default().to_full_value(),
            stats: ToolStats::default(),
            worktree: None,
            is_resumable: self.plan.definition.is_resumable && self.service.dir().is_some(),
        }
    }
}

impl AgentService {
    /// Has the hooks of a definition count as long as the agent works.
    fn add_hooks(&self, plan: &AgentPlan) -> Option<ScopedHooksGuard> {
        let (definition, agent) = (&plan.definition, &plan.agent);
        let value = definition.hooks.as_ref()?;
        let file = definition.source.to_string();
        let source =
            HookSource { scope: HookScope::Agent(definition.name.clone()), file: file.into(), line: 1 };
        let (config, problems) = HookConfig::parse(value, source, &plan.place.cwd);
        for problem in problems {
            self.tell_once(format!("Hooks of the agent `{}`: {problem}", definition.name));
        }
        let config = config.into_agent_hooks();
        Some(self.deps.ctx.hooks.add_scoped(ScopedHooks { config, agent: Some(agent.id.clone()) }))
    }
}

/// Says which commands of an agent go on without it.
fn left_running(tasks: &[BackgroundTask]) -> String {
    let command = |task: &BackgroundTask| {
        format!("\n- {}: {}", task.id, sanitize_result(&loci_stdx::single_line(&task.command, 200)))
    };
    match tasks.is_empty() {
        true => String::new(),
        false => format!(
            "\n\n[What it started in the background goes on; you are told when it ends, and TaskStop stops it:{}]",
            tasks.iter().map(command).collect::<String>()
        ),
    }
}

fn broken(said: String, why: String) -> (String, Option<String>, BackgroundStatus) {
    (said, Some(why.clone()), BackgroundStatus::Broken(why))
}

fn result_text(text: &str, failure: Option<&str>, worktree: Option<&KeptWorktree>) -> String {
    let failure = failure.map(|why| format!("[It did not come to its end: {why}]"));
    let worktree = worktree
        .map(|kept| format!("worktreePath: {}\nworktreeBranch: {}", kept.path.display(), kept.branch));
    let parts = [Some(text.to_owned()).filter(|text| !text.is_empty()), failure, worktree];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Runs turns until the agent has answered, has heard everything, and nothing that it sent out itself is left.
async fn drive(
    conversation: &mut Conversation,
    first: TurnInput,
    slots: &Slots,
    live: &LiveAgent,
    stop: &CancellationToken,
) -> TurnReport {
    let mut finished = conversation.scope.host.tasks().finished();
    let mut report = conversation.run_turn(first, stop).await;
    loop {
        if stop.is_cancelled() || !matches!(report.outcome, Outcome::Completed | Outcome::MaxTurns(_)) {
            return report;
        }
        finished.mark_unchanged();
        let messages = live.take();
        let tasks = conversation.scope.host.tasks();
        if !messages.is_empty() {
            let input = TurnInput::message(messages.join("\n\n"));
            report = conversation.run_turn(input, stop).await;
        } else if tasks.has_news() {
            report = conversation.run_turn(TurnInput::TaskNews, stop).await;
        } else if tasks.running().iter().any(|task| matches!(task.kind, TaskKind::Agent(_))) {
            let something = async {
                tokio::select! {
                    // The table lives as long as the conversation does.
                    _ = finished.changed() => {}
                    () = live.news.notified() => {}
                    () = stop.cancelled() => {}
                }
            };
            slots.resting(&live.id, something).await;
        } else if live.close() {
            return report;
        }
    }
}
