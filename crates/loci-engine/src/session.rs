//! A running session: commands in, events out, one turn of its main conversation at a time.
//!
//! The session holds what outlives turns: the queue of what was asked, and whether anything more will be. The
//! [`Conversation`] holds everything about the conversation itself; agents that work beside it are conversations, too.

mod assembly;
pub(crate) mod client_request;
mod commands;
pub(crate) mod config;
pub(crate) mod earlier_totals;
pub(crate) mod file_history;
pub(crate) mod goal;
pub(crate) mod initialize;
pub(crate) mod instructions;
mod local_commands;
pub(crate) mod lost_tasks;
pub(crate) mod memory;
mod memory_watch;
mod model_switch;
pub(crate) mod plan;
pub(crate) mod renewal;
pub(crate) mod restore;
mod rewind;
pub(crate) mod schedule;
mod servers;
mod side_question;
pub(crate) mod state;
pub(crate) mod state_effects;
pub(crate) mod timeline;
mod tool_service;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use loci_core::agent::AgentRegistry;
use loci_core::hooks::HookEvent;
use loci_core::schedule::is_self_paced_loop;
use loci_core::session::SessionIdentity;
use loci_core::skill::SkillScope;
use loci_stdx::Store;
use loci_tools::Host;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

pub use memory_watch::MemoryWatch;
use memory_watch::memory_short;

use crate::command::{Command, Prompt};
use crate::conversation::plan::{follow_goal, tell_tasks};
use crate::conversation::{Conversation, TurnInput};
use crate::event::{EngineEvent, TurnReport};
use crate::extensions::mcp::{McpLink, servers_changed};
use crate::extensions::slash_command::{CommandAction, CommandRegistry};
use crate::extensions::{FeatureHooks, SessionBegin};
use crate::session::earlier_totals::EarlierTotals;
use crate::session::goal::is_lasting;
use crate::session::schedule::{LoopEnd, ScheduleService};
use crate::turn::Outcome;
use side_question::SideQuestions;
pub use tool_service::ToolService;

const SIDE_WORK_GIVEN_UP: &str = "Notes or memories were still being written when the session ended, and were given up. \
                                  Set LOCI_DRAIN_MS=10000 to wait for them.";

/// The way to talk to a session.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    commands: UnboundedSender<Command>,
}

impl SessionHandle {
    /// Sends a command; false when the session is over.
    pub fn send(&self, command: Command) -> bool {
        self.commands.send(command).is_ok()
    }
}

/// A session, to be run.
pub struct Session {
    conversation: Conversation,
    commands: UnboundedReceiver<Command>,
    queue: VecDeque<TurnInput>,
    /// Nothing more will be asked.
    is_closing: bool,
    /// Every handle is gone.
    is_deaf: bool,
    /// How long the end waits for what is done beside the conversation.
    drain: Duration,
    /// Whether somebody asked for notes or memories by name, and is told when they are given up.
    is_side_work_asked_for: bool,
    /// How long it waits for background work of the conversation itself.
    task_wait: TaskWait,
    /// How long nothing is asked before hooks are told that the user is waited for.
    idle_notice: Duration,
    /// When commands in the background make room for others.
    memory_watch: Option<MemoryWatch>,
    /// Whether a turn has ended, and whether hooks know that nothing has come since.
    has_answered: bool,
    is_told_idle: bool,
    /// How it began, as hooks are told.
    start_source: &'static str,
    /// `init` or `maintenance`, where hooks are to make the project ready first.
    setup: Option<&'static str>,
    /// How it ends, as hooks are told.
    end_reason: &'static str,
    /// What stands before the first prompt, where the conversation is new and runs as an agent.
    initial_prompt: Option<String>,
    /// The MCP servers, where there are any.
    mcp: Option<McpLink>,
    /// Questions beside the conversation.
    side_questions: SideQuestions,
    /// How many models were asked for that hooks have not decided on.
    n_switching: usize,
}

/// How long the end of a session waits for background work: for agents, which are there to answer, and for commands.
#[derive(Debug, Clone, Copy)]
struct TaskWait {
    /// Whether it waits at all.
    is_on: bool,
    /// For ever, without a limit.
    agents: Option<Duration>,
    commands: Duration,
}

/// What became of a session's transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// All of it is on disk, or was not to be.
    Kept,
    /// Some of it could not be written anywhere.
    LinesLost,
}

impl Session {
    /// The slash commands, to list and to add to.
    pub fn slash_commands(&self) -> Arc<Store<CommandRegistry>> {
        Arc::clone(&self.conversation.scope.ctx.slash_commands)
    }

    /// The user's hooks, for features that this crate does not hold.
    pub fn feature_hooks(&self) -> Arc<dyn FeatureHooks> {
        Arc::new(self.conversation.scope.ctx.hooks.clone())
    }

    /// The definitions of agents, as they are now.
    pub fn agents(&self) -> Arc<Store<AgentRegistry>> {
        let service = self.conversation.scope.host.agent_service();
        let registry = service.map(|service| Arc::clone(&service.registry));
        registry.unwrap_or_else(|| Arc::new(Store::new(AgentRegistry::default())))
    }

    /// What earlier runs of the session used.
    pub fn earlier_totals(&self) -> EarlierTotals {
        self.conversation.scope.ctx.usage.earlier.clone()
    }

    /// The name that it has when it begins, of a resumed one the name that it was given.
    pub fn title(&self) -> Option<String> {
        self.conversation.scope.ctx.state.get().session.title.clone()
    }

    /// Has a fork be on disk before anything is said in it.
    pub fn keep_fork(&mut self) {
        self.conversation.recorder.write_inherited();
    }

    /// The session's identity, to watch.
    pub fn identity(&self) -> Arc<Store<SessionIdentity>> {
        Arc::clone(&self.conversation.scope.ctx.identity)
    }

    /// Runs until it is closed (or every handle is gone) and the last turn is over; returns what became of its
    /// transcript.
    pub async fn run(mut self) -> SessionEnd {
        if self.conversation.scope.ctx.identity.get().is_interactive() {
            self.conversation.recorder.point_at_chosen_branch();
        }
        self.setup_hooks().await;
        self.begin_hooks().await;
        self.conversation.sources.tell_hooks_of_instructions(
            &self.conversation.scope,
            &self.conversation.recorder,
            "session_start",
        );
        tell_tasks(&self.conversation.recorder, &self.conversation.scope);
        self.conversation.scope.tell_goal();
        self.conversation.scope.watch_files();
        if self.conversation.recorder.has_deferred() {
            self.queue.push_front(TurnInput::Deferred);
        }
        while let Some(input) = self.next_input().await {
            self.turn(input).await;
        }
        // Another session takes the place of this one when its turns are over; its hooks begin when those of this end.
        let is_replaced = matches!(self.end_reason, "clear" | "resume");
        if is_replaced {
            self.end_hooks().await;
        }
        let mode = self.conversation.scope.ctx.mode();
        self.conversation.scope.tell(EngineEvent::TurnsOver { mode });
        let is_done = self.conversation.helpers.drain(self.drain).await;
        if !is_done && self.is_side_work_asked_for {
            self.conversation.scope.tell(EngineEvent::Warning(SIDE_WORK_GIVEN_UP.to_owned()));
        }
        if !is_replaced {
            self.end_hooks().await;
        }
        self.conversation.checkpoints.record_background(&self.conversation.scope);
        // Agents beside the conversation may have gone on after its last turn.
        if let Some(cost) = self.conversation.scope.ctx.cost_state() {
            self.conversation.recorder.cost(&cost);
        }
        let is_kept = self.conversation.recorder.close();
        self.conversation.scope.ctx.skills.flush_usage().await;
        self.conversation.recorder.tell_warnings(&self.conversation.scope);
        if is_kept { SessionEnd::Kept } else { SessionEnd::LinesLost }
    }

    /// Ends what runs in the background, and lets hooks know that the session ends.
    async fn end_hooks(&mut self) {
        self.conversation.scope.host.tasks().shutdown().await;
        let moment = self.conversation.scope.hook_moment(&self.conversation.recorder);
        self.conversation.scope.ctx.turn_hooks.session_ends(self.end_reason, moment).await;
    }

    /// Lets hooks make the project ready, where that was asked for.
    async fn setup_hooks(&mut self) {
        let Some(trigger) = self.setup else { return };
        let Some(hooks) = self.conversation.scope.ctx.listeners(HookEvent::Setup) else { return };
        let added =
            hooks.set_up(trigger, self.conversation.scope.hook_moment(&self.conversation.recorder)).await;
        self.conversation.recorder.add_before_prompt(added);
    }

    /// Lets hooks know that the session begins; what they add stands before the first prompt. Commands that come
    /// meanwhile are heard, so that an interrupt ends the wait.
    async fn begin_hooks(&mut self) {
        let Some(hooks) = self.conversation.scope.ctx.listeners(HookEvent::SessionStart) else { return };
        let begin = SessionBegin {
            source: self.start_source,
            model: None,
            title: self.conversation.scope.ctx.state.get().session.title.clone(),
            moment: self.conversation.scope.hook_moment(&self.conversation.recorder),
        };
        let mut added = hooks.session_begins(begin);
        let added = loop {
            tokio::select! {
                added = &mut added => break added,
                command = self.commands.recv(), if !self.is_deaf => match command {
                    Some(Command::Interrupt) => return,
                    Some(Command::Quit) => return self.take_command(Command::Quit),
                    Some(command) => self.take_command(command),
                    None => {
                        self.is_deaf = true;
                        self.close();
                    }
                },
            }
        };
        self.conversation.recorder.add_before_prompt(added.attachments);
        if let Some(title) = added.title {
            self.conversation.recorder.name(title);
        }
        if let Some(text) = added.first_prompt.filter(|text| !text.trim().is_empty()) {
            self.queue.push_front(TurnInput::Prompt(Prompt::text(&text)));
        }
    }

    async fn next_input(&mut self) -> Option<TurnInput> {
        let mut finished = self.conversation.scope.host.tasks().finished();
        let schedule = self.conversation.scope.ctx.schedule.clone();
        let since = Instant::now();
        loop {
            // What was asked behind another model is for that model. Without a way to hear of it nothing more is decided.
            let is_switching = self.n_switching > 0 && !self.is_deaf;
            finished.mark_unchanged();
            if !is_switching && let Some(input) = self.next_at_hand() {
                return Some(input);
            }
            let deadline = match self.is_closing && !is_switching {
                true => self.wait_until(since)?,
                false => None,
            };
            // A front end with a screen knows better when people are away.
            let has_screen = self.conversation.scope.ctx.identity.get().is_interactive();
            let is_idle = self.has_answered && !self.is_told_idle && !has_screen;
            let memory_watch = self.watch_on_memory();
            tokio::select! {
                command = self.commands.recv(), if !self.is_deaf => match command {
                    Some(command) => self.take_command(command),
                    None => {
                        self.is_deaf = true;
                        self.close();
                    }
                },
                () = self.conversation.idle() => {}
                // The table lives as long as the session does.
                _ = finished.changed() => {}
                // Then it is over, unless something came at the last moment.
                () = sleep_until(deadline) => {}
                () = servers_changed(&mut self.mcp) => self.sync_servers(),
                () = prompt_due(schedule.as_deref()), if !self.is_closing => {
                    if let Some(input) = schedule.as_deref().and_then(|it| self.scheduled_prompt(it)) {
                        return Some(input);
                    }
                }
                () = memory_short(memory_watch.as_ref(), since) => self.make_room(),
                () = tokio::time::sleep(self.idle_notice), if is_idle => {
                    self.is_told_idle = true;
                    let message = "loci is waiting for your input".to_owned();
                    self.conversation.scope.notify_user(&self.conversation.recorder, "idle_prompt".to_owned(), message, None);
                }
            }
        }
    }

    /// Takes what can begin now, if there is something.
    fn next_at_hand(&mut self) -> Option<TurnInput> {
        if let Some(input) = self.queue.pop_front() {
            return Some(input);
        }
        if let Some(prompt) = self.conversation.queue.next_queued(&self.conversation.scope) {
            return Some(TurnInput::Prompt(prompt));
        }
        let has_news = self.conversation.scope.host.tasks().has_news() && self.task_wait.is_on;
        has_news.then_some(TurnInput::TaskNews)
    }

    /// Takes the scheduled prompt that is due. A skill that only people may use is not used by a schedule.
    fn scheduled_prompt(&self, schedule: &ScheduleService) -> Option<TurnInput> {
        let task = schedule.take_due()?;
        if self.conversation.scope.ctx.is_for_people_alone(&task.prompt) {
            let text =
                format!("The scheduled task {} was not run: only people may use `{}`", task.id, task.prompt);
            self.conversation.scope.tell(EngineEvent::Warning(text));
            return None;
        }
        tracing::debug!(target: "loci::engine", task = task.id, "scheduled prompt");
        Some(TurnInput::Prompt(Prompt { is_scheduled: true, ..Prompt::text(&task.prompt) }))
    }

    /// Says until when a session that is closing waits for background work (for ever, without a time); nothing, when
    /// there is none to wait for.
    fn wait_until(&self, since: Instant) -> Option<Option<Instant>> {
        let running = self.conversation.scope.host.tasks().running();
        if running.is_empty() || !self.task_wait.is_on {
            return None;
        }
        let has_agents = running.iter().any(|task| task.agent_type().is_some());
        let wait = if has_agents { self.task_wait.agents } else { Some(self.task_wait.commands) };
        let deadline = wait.map(|wait| since + wait);
        let is_over = deadline.is_some_and(|deadline| deadline <= Instant::now());
        if is_over && has_agents {
            let waited = wait.unwrap_or_default().as_millis();
            self.conversation.scope.tell(EngineEvent::Warning(format!(
                "Agents that still worked {waited} ms after the last answer are stopped \
                 (CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS); they can go on when the session does"
            )));
        }
        (!is_over).then_some(deadline)
    }

    async fn turn(&mut self, input: TurnInput) {
        if self.conversation.scope.asks_for(&input, CommandAction::Clear) {
            // The conversation that this one takes the place of was left by the front end; here nothing is done.
            self.conversation.begin_and_end();
            return;
        }
        (self.has_answered, self.is_told_idle) = (true, false);
        let input = self.take_goal(input);
        if let Some(call) = self.local_call(&input) {
            self.run_local(call).await;
            follow_goal(&mut self.conversation.recorder, &self.conversation.scope);
            return;
        }
        if let Some(output) = self.unavailable_call(&input) {
            self.refuse_unavailable(output);
            return;
        }
        self.conversation.scope.ctx.goal.begin_turn();
        let loop_prompt = self.begin_loop_round(&input);
        let Some(input) = self.with_servers(input).await else { return };
        let mut report = self.conversation.begin(input);
        while report.is_none() {
            report = self.step().await;
            follow_goal(&mut self.conversation.recorder, &self.conversation.scope);
        }
        if let (Some(prompt), Some(TurnReport { outcome: Outcome::Completed, .. })) = (loop_prompt, &report) {
            self.end_loop_round(&prompt);
        }
        if let Some(TurnReport { outcome: Outcome::ApiError(failure), .. }) = &report
            && is_lasting(failure.kind)
            && let Some(goal) = self.conversation.scope.ctx.goal.clear()
        {
            self.conversation.scope.tell(EngineEvent::Warning(format!(
                "Goal cleared after an unrecoverable error ({}): {}. Run /goal again to continue",
                failure.message, goal.condition
            )));
        }
        follow_goal(&mut self.conversation.recorder, &self.conversation.scope);
        if let Some(TurnReport { outcome: Outcome::Deferred(_) | Outcome::DeferredUnavailable(_), .. }) =
            report
        {
            self.end_deferred();
        }
    }

    /// Takes note that a turn begins; returns its prompt, where it is a round of a loop that sets its own pace.
    fn begin_loop_round(&self, input: &TurnInput) -> Option<String> {
        let TurnInput::Prompt(prompt) = input else { return None };
        let ctx = &self.conversation.scope.ctx;
        ctx.schedule.as_ref()?.begin_round(prompt.is_scheduled);
        let is_ours =
            || ctx.skills.registry().find("loop").is_some_and(|it| it.source.scope == SkillScope::Bundled);
        let text = prompt.typed_text();
        (is_self_paced_loop(&text) && is_ours()).then_some(text)
    }

    /// Sees to it that a loop whose round decided nothing is looked at once more, and not for ever.
    fn end_loop_round(&self, prompt: &str) {
        let Some(schedule) = self.conversation.scope.ctx.schedule.as_ref().filter(|_| !self.is_closing)
        else {
            return;
        };
        let text = match schedule.end_round(prompt) {
            LoopEnd::Decided => return,
            LoopEnd::LooksAgain => {
                "The loop said neither when to look again nor that it is over: it looks once more in 20 minutes"
            }
            LoopEnd::Over => "The loop is over: it said twice neither when to look again nor that it is over",
        };
        self.conversation.scope.tell(EngineEvent::Warning(text.to_owned()));
    }

    /// A call waits for another run: this one ends, and whatever was asked beside it is not begun.
    fn end_deferred(&mut self) {
        let n_left = self.queue.iter().filter(|input| matches!(input, TurnInput::Prompt(_))).count();
        self.queue.clear();
        self.close();
        if n_left > 0 {
            let text = "A call waits for another run of the session, so the prompt behind it was not sent";
            self.conversation.scope.tell(EngineEvent::Warning(text.to_owned()));
        }
    }

    /// Waits for the next thing that concerns the turn, whoever brings it.
    async fn step(&mut self) -> Option<TurnReport> {
        tokio::select! {
            // In this order: a call that waited for a server is told after what the server brought, so that the next
            // request has it; and nobody waits to interrupt while events come.
            biased;
            () = servers_changed(&mut self.mcp) => {
                self.sync_servers();
                None
            }
            command = self.commands.recv(), if !self.is_deaf => match command {
                Some(command) => self.take_command_during_turn(command),
                None => {
                    self.is_deaf = true;
                    self.close();
                    self.conversation.deny_open_questions();
                    None
                }
            },
            report = self.conversation.advance() => report,
        }
    }
}

/// Waits until a scheduled prompt is due; for ever, where nothing can be scheduled.
async fn prompt_due(schedule: Option<&ScheduleService>) {
    match schedule {
        Some(schedule) => schedule.due().await,
        None => std::future::pending().await,
    }
}

/// Waits until a time; for ever, where there is none.
async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
