//! How a turn starts: what it begins with, what is taken up before it, and why one is over before it began.

use std::sync::Arc;

use loci_core::entry::Attachment;
use loci_core::hooks::HookEvent;
use loci_core::ids::PromptId;
use loci_core::message::Block;
use loci_core::stream::{Failure, FailureKind};

use super::Conversation;
use super::compaction::Compactor;
use super::context_sources::ContextSources;
use super::running_turn::RunningTurn;
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use crate::agents::take_news;
use crate::command::{Prompt, ShellCommand};
use crate::conversation::recorder::Recorder;
use crate::event::{EngineEvent, TurnReport, TurnStart};
use crate::extensions::mcp::McpConfig;
use crate::extensions::slash_command::{CommandAction, CommandCall};
use crate::session::config::ReloadPoint;
use crate::session::state::change;
use crate::turn::{Event, Limits, Outcome, RetryRules, TurnEnd};
use loci_tools::Host as _;

const BLANK: &str = "The prompt is empty. Send some text, or a picture.";
const NOTHING_OPEN: &str = "There is nothing to go on with. Send a prompt.";
/// How many commands are named where one is not known.
const NAMED_COMMANDS: usize = 12;

/// What a turn begins with.
#[derive(Debug, Clone)]
pub(crate) enum TurnInput {
    /// A person, or a program, asks.
    Prompt(Prompt),
    /// Whoever sent an agent out says what it is to do.
    Instruction(String),
    /// A conversation tells the agent it sent out what to do.
    Task {
        text: String,
        /// The prompt that the work is for; that of the last task, where it is empty.
        prompt: PromptId,
        /// Answers to calls that come first, in a fork.
        results: Vec<Block>,
    },
    /// Work beside the conversation has ended.
    TaskNews,
    /// A person runs a command of the shell.
    Shell(ShellCommand),
    /// Nothing new was said.
    GoOn,
    /// A call that an earlier run put off is taken up again.
    Deferred,
}

/// Why a turn is over before it began.
pub(super) enum NoTurn {
    /// The prompt cannot be sent; this is why.
    Refused(String),
    /// There is nothing to ask the model.
    Over(Box<TurnEnd>),
}

impl TurnInput {
    /// A further message to an agent.
    pub(crate) fn message(text: String) -> Self {
        Self::Task { text, prompt: PromptId::new(""), results: Vec::new() }
    }
}

impl Conversation {
    /// Begins a turn; the report, when it is over at once.
    pub(crate) fn begin(&mut self, input: TurnInput) -> Option<TurnReport> {
        self.scope.take_up_settings(&mut self.recorder);
        self.tools.take_up_skills(&self.scope, &self.sources, &self.permits);
        self.permits.grants = self.scope.agent_limits.grants.clone();
        self.renew_turn();
        self.compaction.is_command = self.scope.asks_for(&input, CommandAction::Compact);
        self.sources.start_turn(&self.scope, &mut self.recorder, &self.tools, &self.compaction);
        match self.open(input) {
            Ok(event) => self.handle(event),
            Err(NoTurn::Refused(text)) => Some(self.refuse_prompt(text)),
            Err(NoTurn::Over(end)) => Some(self.finish(*end)),
        }
    }

    /// Leaves the last turn behind.
    pub(super) fn renew_turn(&mut self) {
        self.run = RunningTurn::new(self.scope.turn_limits(&self.tools), self.scope.env.clock.monotonic());
        self.permits.begin_turn();
        self.compaction.begin_turn();
        self.queue.read_ahead.clear();
    }

    /// Ends a turn in which nothing is to be done.
    pub(crate) fn begin_and_end(&mut self) -> TurnReport {
        self.scope.take_up_settings(&mut self.recorder);
        self.renew_turn();
        self.sources.start_turn(&self.scope, &mut self.recorder, &self.tools, &self.compaction);
        self.finish(TurnEnd { outcome: Outcome::Completed, round_trips: 0, stop_reason: None })
    }

    /// Ends a turn whose prompt cannot be made; nothing is asked and nothing recorded.
    pub(crate) fn begin_refused(&mut self, text: String) -> TurnReport {
        self.scope.take_up_settings(&mut self.recorder);
        self.renew_turn();
        self.sources.start_turn(&self.scope, &mut self.recorder, &self.tools, &self.compaction);
        self.refuse_prompt(text)
    }

    /// Returns the first event of a turn; the error says why there is no turn.
    fn open(&mut self, input: TurnInput) -> Result<Event, NoTurn> {
        let prompt = match input {
            TurnInput::Prompt(prompt) => prompt,
            TurnInput::Instruction(text) => {
                self.recorder.instruction(&text);
                return Ok(Event::Begin);
            }
            TurnInput::Task { text, prompt, results } => {
                let entry = self.recorder.task(&text, &prompt, &results);
                self.scope.tell_task(entry.as_deref(), &text);
                self.tools.tell_skills(&self.scope, &mut self.recorder, &self.sources);
                return Ok(Event::Begin);
            }
            TurnInput::TaskNews => {
                let Some(news) = take_news(self.scope.host.tasks()) else {
                    return Err(NoTurn::Refused(NOTHING_OPEN.to_owned()));
                };
                self.run.tally.origin = Some("task-notification");
                let mode = self.scope.ctx.mode();
                self.recorder.notification(&news, mode.as_str());
                return Ok(Event::Begin);
            }
            TurnInput::Shell(shell) => {
                self.run.opening.shell_request = Some(shell);
                return Ok(Event::Prompt);
            }
            TurnInput::Deferred => {
                let event = self.tools.take_up_deferred(
                    &mut self.recorder,
                    &mut self.run.calls,
                    &mut self.run.tally,
                )?;
                // Hooks are asked in another run than the one that put the call off.
                self.run.opening.name_prompt(&self.scope, &mut self.recorder);
                return Ok(event);
            }
            TurnInput::GoOn if self.recorder.is_open() => return Ok(Event::Begin),
            TurnInput::GoOn => return Err(NoTurn::Refused(NOTHING_OPEN.to_owned())),
        };
        if prompt.content.is_blank() {
            return Err(NoTurn::Refused(BLANK.to_owned()));
        }
        match self.scope.slash_command(&prompt).map(|call| (call.command.action, call.argument)) {
            Some((CommandAction::Compact, focus)) => {
                if !self.recorder.path().is_empty() {
                    self.recorder.command(&prompt.content.text());
                }
                self.compaction.keeps_from = prompt.keeps_from;
                return Ok(Event::Compact { focus });
            }
            Some((
                CommandAction::Clear
                | CommandAction::Skill
                | CommandAction::McpPrompt
                | CommandAction::FrontEnd
                | CommandAction::Local,
                _,
            ))
            | None => {}
        }
        if let Some(text) = self
            .compaction
            .refusal_of_prompts(&self.scope, &self.recorder, &self.sources)
            .or_else(|| self.scope.refusal_of_skill(&prompt))
        {
            return Err(NoTurn::Refused(text));
        }
        self.run.opening.expansion =
            self.scope.slash_command(&prompt).filter(|call| call.command.action == CommandAction::Skill);
        self.run.opening.is_scheduled = prompt.is_scheduled;
        self.recorder.note_unknown_command(&self.scope, &prompt);
        self.run.opening.prompt = Some(prompt);
        Ok(Event::Prompt)
    }

    /// Ends a turn whose prompt the model would refuse: nothing is asked and nothing recorded.
    fn refuse_prompt(&mut self, text: String) -> TurnReport {
        self.run.tally.text.clone_from(&text);
        let failure = Failure::new(FailureKind::InvalidRequest, text);
        self.finish(TurnEnd { outcome: Outcome::ApiError(failure), round_trips: 0, stop_reason: None })
    }
}

impl ConversationScope {
    /// Takes up what changed in the settings, and in the definitions of agents, since the last turn.
    pub(super) fn take_up_settings(&self, recorder: &mut Recorder) {
        if self.agent.is_none() {
            self.ctx.reload_settings(ReloadPoint::Prompt);
            if let Some(changes) = self.host.reload_agents() {
                recorder.add_before_prompt(vec![changes]);
            }
            self.note_moment(recorder);
        }
    }

    /// Returns the effort that the next request asks for, where the model takes one.
    pub(super) fn effort_now(&self) -> Option<String> {
        self.model.effort_of(&self.current_model())
    }

    /// Tells whether a turn would begin with a slash command that does this.
    pub(crate) fn asks_for(&self, input: &TurnInput, action: CommandAction) -> bool {
        matches!(input, TurnInput::Prompt(prompt)
            if self.slash_command(prompt).is_some_and(|call| call.command.action == action))
    }

    pub(super) fn slash_command(&self, prompt: &Prompt) -> Option<CommandCall> {
        self.ctx.slash_commands.get().parse(prompt)
    }

    pub(super) fn turn_limits(&self, tool_set: &ToolSet) -> Limits {
        let main = self.current_model();
        let spare = self.model.fallbacks.iter().filter(|model| **model != main).cloned();
        let models = std::iter::once(main.clone()).chain(spare).collect();
        let has_goal = self.is_main() && self.ctx.goal.active().is_some();
        Limits {
            models,
            max_turns: self.limits.max_turns,
            max_budget_usd: self.limits.max_budget_usd,
            max_parallel: if self.limits.max_parallel == 0 { 10 } else { self.limits.max_parallel },
            retry: RetryRules { policy: self.limits.retry, allows_one_piece: self.limits.allows_one_piece },
            asks_before_end: has_goal
                || self.stop_event().is_some_and(|event| self.ctx.listeners(event).is_some()),
            // How often hooks may object is counted with the goal then.
            max_objections: if has_goal { 0 } else { self.ctx.max_objections },
            mends_calls: self.model.catalog.facts(&main).is_named
                && tool_set.toolbox.descriptors().next().is_some(),
            shows_batches: self.reports_to_hooks() && self.ctx.listeners(HookEvent::PostToolBatch).is_some(),
            structured: self.limits.structured.clone().filter(|_| self.is_main()),
        }
    }
}

impl ContextSources {
    /// Tells that a turn begins.
    pub(super) fn start_turn(
        &mut self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        tool_set: &ToolSet,
        compactor: &Compactor,
    ) {
        if scope.agent.is_none() {
            change(&scope.ctx.state, |state| state.permission.denials.clear());
        }
        if let Some(branch) = loci_storage::project::head_branch(&scope.env.cwd) {
            recorder.set_branch(branch);
        }
        self.make_opening(scope);
        scope.tell(EngineEvent::TurnStarted(TurnStart {
            session: scope.ctx.identity.get().id().clone(),
            cwd: scope.env.cwd.clone(),
            model: scope.current_model(),
            mode: scope.ctx.mode(),
            tools: tool_set.toolbox.available().map(|descriptor| descriptor.name.clone()).collect(),
            agents: scope.host.agent_names(),
            mcp_servers: scope.ctx.services.mcp.as_ref().map(McpConfig::states).unwrap_or_default(),
            mcp_errors: scope.ctx.services.mcp.as_ref().map(McpConfig::errors).unwrap_or_default(),
            plugins: Arc::clone(&scope.ctx.facts.plugins),
            commands: scope.ctx.slash_commands.get(),
            api_key_source: scope.ctx.facts.api_key_source.clone(),
            memory_dir: scope.ctx.memory.as_ref().map(|memory| memory.dir().to_owned()),
            skills: scope.ctx.skills.registry().iter().map(|skill| skill.name.clone()).collect(),
            output_style: scope.ctx.facts.output_style.clone(),
            dirs: scope.ctx.state.get().permission.rulebook.dirs.iter().skip(1).cloned().collect(),
            effort: scope.effort_now(),
            betas: scope.model.betas.clone(),
            is_compaction: compactor.is_command,
        }));
    }
}

impl Recorder {
    /// Has the model hear that a prompt which looks like a command is none.
    fn note_unknown_command(&mut self, scope: &ConversationScope, prompt: &Prompt) {
        if prompt.is_verbatim || scope.agent.is_some() {
            return;
        }
        let (registry, said) = (scope.ctx.slash_commands.get(), prompt.content.text());
        let Some(name) = registry.unknown_name(&said) else { return };
        let known = registry.iter().map(|command| command.name.clone());
        self.add_before_prompt(vec![Attachment::UnknownCommand {
            command_name: name.to_owned(),
            available_command_names: known.take(NAMED_COMMANDS).collect(),
            available_command_count: registry.iter().count() as u64,
        }]);
    }
}
