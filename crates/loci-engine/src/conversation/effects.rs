//! Performing the turn machine's effects.

use std::path::PathBuf;
use std::sync::Arc;

use loci_core::agent::FORK;
use loci_core::entry::{Attachment, Entry};
use loci_core::hooks::{HookEvent, ToolBatchCall};
use loci_core::ids::{PromptId, ToolUseId};
use loci_core::message::{Block, BlockKind, ToolUse};
use loci_core::stream::{Failure, FailureKind};
use loci_core::tool::{ToolAttachment, ToolOutcome};
use loci_tools::Host;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::context_sources::ContextSources;
use super::mentions::{asks_for_deep_thought, attached_names};
use super::permits::Permits;
use super::plan;
use super::running_turn::{PromptOpening, TurnCalls, TurnTasks};
use super::scope::ConversationScope;
use super::tally::Tally;
use super::tool_set::ToolSet;
use super::{Conversation, ForkPoint, Helpers, InboxMessage, Prelude, RunningCall};
use crate::agents::{ForkStart, SpawnContext, fork_messages, forked_results};
use crate::command::Prompt;
use crate::conversation::recorder::Recorder;
use crate::event::{AssistantBlock, EngineEvent, UserMessage};
use crate::extensions::hooks::TaskHookLayer;
use crate::extensions::{AfterCall, BatchResults, BeforeEnd, BeforePrompt, HookCall, PromptGate, TurnHooks};
use crate::session::config::ModelConfig;
use crate::session::file_history::Checkpoints;
use crate::session::goal::{Goal, check_goal};
use crate::tools::calls::{CallLayer, Next};
use crate::tools::prepared_call::{PreparedCall, prepare_all};
use crate::turn::{Effect, Event, Interruption, Record, TurnEnd};

impl Conversation {
    /// Performs one effect; the last of a turn gives its end.
    pub(super) fn perform(&mut self, effect: Effect) -> Option<TurnEnd> {
        match effect {
            Effect::OpenPrompt => self.open_prompt(),
            Effect::Record(record) => self.record(record),
            Effect::Request(plan) => self.request(&plan),
            Effect::Compact(request) => self.compact(request),
            Effect::StopEdits(failure) => self.sources.stop_edits(&self.scope, &failure),
            Effect::CancelRequest => self.run.tasks.request.cancel(),
            Effect::Wait(delay) => self.run.tasks.wait(delay),
            Effect::Prepare(calls) => self.prepare(&calls),
            Effect::CheckPermission(call) => self.permits.check_call(
                &self.scope,
                &self.recorder,
                &self.tools,
                &mut self.run.calls,
                &mut self.run.tasks,
                &call,
            ),
            Effect::Run(call) => self.run_call(&call),
            Effect::CancelCalls => self.run.tasks.calls.cancel(),
            Effect::ShowBatch => self.run.calls.show_batch(&self.scope, &self.recorder, &mut self.run.tasks),
            Effect::AskBeforeEnd { has_gone_on } => self.scope.ask_before_end(
                &self.recorder,
                &self.sources,
                &mut self.run.tasks,
                &self.run.tally,
                has_gone_on,
            ),
            Effect::Tell(notice) => {
                self.run.answer.notify(&self.scope, &mut self.recorder, &mut self.run.tally, notice);
            }
            Effect::End(end) => return Some(end),
        }
        None
    }

    /// Records the prompt that a turn begins with, as soon as it is made and hooks have let it pass.
    pub(super) fn open_prompt(&mut self) {
        if self.scope.is_main() && self.scope.ask_about_settings(&self.recorder, &mut self.run.tasks, None) {
            return;
        }
        match (self.run.opening.shell_request.take(), self.run.opening.expansion.take()) {
            (Some(shell), _) => self.run.opening.run_shell(
                &self.scope,
                &mut self.recorder,
                &self.tools,
                &self.permits,
                &self.run.tasks,
                shell,
            ),
            (None, Some(call)) => self.run.opening.expand(
                &self.scope,
                &mut self.recorder,
                &self.tools,
                &self.permits,
                &mut self.run.tasks,
                call,
            ),
            (None, None) => self.submit_prompt(),
        }
    }

    /// Records the prompt as soon as what it mentions is read and hooks have let it pass.
    pub(super) fn submit_prompt(&mut self) {
        if !self.run.opening.read_mentions(&self.scope, &self.tools, &self.permits, &mut self.run.tasks) {
            self.offer_prompt();
        }
    }

    /// Records the prompt as soon as hooks have let it pass.
    pub(super) fn offer_prompt(&mut self) {
        let Some(hooks) =
            self.scope.ctx.listeners(HookEvent::UserPromptSubmit).filter(|_| self.scope.agent.is_none())
        else {
            // Nobody has a say: it is on disk before anything else happens.
            let attachments = self.scope.ctx.hooks.take_late();
            let event = self.prompt_gate_passed(PromptGate::Go { attachments, title: None });
            return event.into_iter().for_each(|event| self.run.tasks.post(InboxMessage::Machine(event)));
        };
        let prompt = self.run.opening.prompt.as_ref().map(Prompt::typed_text).unwrap_or_default();
        self.run.opening.name_prompt(&self.scope, &mut self.recorder);
        let title = self.scope.ctx.state.get().session.title.clone();
        let before = BeforePrompt { prompt, title, moment: self.scope.hook_moment(&self.recorder) };
        self.run.tasks.wait_for(async move { InboxMessage::PromptGate(hooks.before_prompt(before).await) });
    }

    /// Returns the event that says whether the prompt was taken. One that came too late is not.
    pub(super) fn prompt_gate_passed(&mut self, gate: PromptGate) -> Option<Event> {
        let prompt = self.run.opening.prompt.take()?;
        match gate {
            PromptGate::Go { attachments, title } => {
                if let Some(title) = title {
                    self.recorder.name(title);
                }
                self.checkpoints.record_prompt(&self.scope, &mut self.recorder, &prompt);
                self.sources.tell_date(&self.scope, &mut self.recorder);
                self.tools.tell_skills(&self.scope, &mut self.recorder, &self.sources);
                self.sources.tell_style(&mut self.scope, &mut self.recorder);
                plan::tell_plan(&mut self.recorder, &self.scope);
                if !prompt.is_verbatim && asks_for_deep_thought(&prompt.content.text()) {
                    self.recorder.attachment(Attachment::Ultrathink {});
                }
                let attachments = prompt.attachments.into_iter().chain(attachments);
                attachments.for_each(|attachment| self.recorder.attachment(attachment));
                match self.run.opening.forked_skill.take() {
                    Some(skill) => {
                        self.run.opening.run_forked_skill(
                            &self.scope,
                            &self.recorder,
                            &self.run.tasks,
                            skill,
                        );
                        None
                    }
                    None if prompt.is_unasked => Some(Event::NothingToAsk),
                    None => Some(Event::Begin),
                }
            }
            PromptGate::Block { reason } => {
                self.run.tally.text.clone_from(&reason);
                Some(Event::PromptBlocked { reason })
            }
        }
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Response { started, blocks, ended } => {
                let text: String = blocks.iter().filter_map(Block::text).collect();
                if !text.is_empty() {
                    self.run.tally.text = text;
                }
                if let Some(work) = &self.scope.work {
                    blocks.iter().filter_map(Block::text).for_each(|text| work.write_text(&text));
                }
                self.recorder.response(&started, &blocks, ended.as_ref());
                let n_calls = blocks.iter().filter(|it| it.kind() == BlockKind::ToolUse).count();
                self.helpers.response_recorded(n_calls);
                if ended.is_some_and(|ended| ended.context_management.is_some()) {
                    self.helpers.note_cleared(&self.recorder, &self.sources);
                }
                self.compaction.on_response();
                self.compaction.tell_level(&self.scope, &self.recorder, &self.sources);
            }
            Record::PartialText(text) => {
                let entry = self.recorder.partial_text(&text);
                if let Some(block) = made_here(entry.as_deref()) {
                    self.scope.tell(EngineEvent::Assistant(AssistantBlock { is_aborted: true, ..block }));
                }
                self.run.tally.text = text;
            }
            Record::ToolResult { call, mut outcome } => {
                if let Some(running) = self.run.calls.running.remove(&call).filter(|_| !outcome.is_failure())
                {
                    self.note_done(running, &mut outcome);
                }
                if let Some(work) = &mut self.scope.work {
                    work.call_ended(&outcome.structured);
                }
                self.scope.count_lines(&outcome);
                self.sources.tell_hooks_of_cwd(&self.scope, &self.recorder);
                let notes = self.run.calls.notes.remove(&call).unwrap_or_default();
                outcome.attachments.extend(notes.into_iter().map(|attachment| ToolAttachment { attachment }));
                self.compaction.within_budget(
                    &self.scope,
                    &self.recorder,
                    &self.sources,
                    &mut self.run.calls,
                    &call,
                    &mut outcome,
                );
                if let Some(told) = self.run.calls.batch.iter_mut().find(|it| it.tool_use_id == call.as_str())
                {
                    told.tool_response = outcome.content.to_value();
                }
                plan::stamp_slug(&mut self.recorder, &self.scope);
                plan::follow_place(&mut self.recorder, &mut self.scope);
                self.tools.load_referenced(&self.scope, &mut self.sources, &outcome);
                let entry = self.recorder.tool_result(&call, &outcome);
                self.scope.tell_user(entry.as_deref(), Some(outcome.structured));
                if let Some(text) = self.run.calls.skill_texts.remove(&call) {
                    self.recorder.skill_text(&call, &text);
                }
                plan::title_by_plan(&mut self.recorder, &self.scope);
            }
            Record::Nudge(text) => self.recorder.nudge(text),
            Record::Deferred(call) => self.recorder.record_deferred(&call),
            Record::Objection(objection) => {
                if !objection.text.is_empty() {
                    self.recorder.nudge(&objection.text);
                }
                objection.attachments.into_iter().for_each(|attachment| self.recorder.attachment(attachment));
            }
            Record::ApiError(failure) => self.run.tally.record_failure(
                &self.scope,
                &mut self.recorder,
                &api_error_text(&failure),
                &failure,
            ),
            Record::Incomplete(failure) => {
                let text = format!("{}\nThe answer above may be incomplete.", api_error_text(&failure));
                self.run.tally.record_failure(&self.scope, &mut self.recorder, &text, &failure);
            }
            Record::Refusal => {
                let text =
                    "API Error: the model declined to answer. Rephrase the request or try another model.";
                let failure = Failure::new(FailureKind::InvalidRequest, text);
                self.run.tally.record_failure(&self.scope, &mut self.recorder, text, &failure);
            }
            Record::Interrupted(interruption) => {
                let entry = self.recorder.interrupted(interruption == Interruption::Tools);
                self.scope.tell_user(entry.as_deref(), None);
            }
            Record::MaxTurns { limit } => {
                let (max_turns, turn_count) = (u64::from(limit), u64::from(limit) + 1);
                self.recorder.attachment(Attachment::MaxTurnsReached { max_turns, turn_count });
            }
        }
        self.recorder.tell_warnings(&self.scope);
    }

    fn prepare(&mut self, calls: &[ToolUse]) {
        self.run.tasks.calls = CancellationToken::new();
        self.run.calls.result_tokens = 0;
        self.run.calls.n_calls = calls.len();
        if let Some(past) = self.sources.past.take() {
            self.sources.remember_files(&self.scope, &self.tools, &past);
        }
        self.run.calls.batch = match self.run.turn.shows_batches() {
            true => calls.iter().map(batch_call).collect(),
            false => Vec::new(),
        };
        let (ready, preparations) = prepare_all(&self.tools.toolbox, self.scope.host.as_ref(), calls);
        self.run.calls.prepared.extend(ready.into_iter().map(|call| (call.id.clone(), call)));
        self.run.tasks.post(InboxMessage::Machine(Event::Prepared(preparations)));
    }

    fn run_call(&mut self, call: &ToolUseId) {
        let Some(call) = self.run.calls.prepared.remove(call) else { return };
        self.scope.host.set_moment(self.scope.hook_moment(&self.recorder));
        let reads = read_path(&call).map(|file| self.scope.host.workspace().resolve(file).requested);
        let to_background = CancellationToken::new();
        let running = RunningCall {
            tool: call.tool.clone(),
            reads,
            effects: call.effects.clone(),
            to_background: to_background.clone(),
        };
        self.run.calls.running.insert(call.id.clone(), running);
        if self.scope.is_main() {
            let now = self.scope.env.clock.monotonic();
            self.scope.ctx.usage.timeline.begin_call(call.id.as_str(), &call.tool, &call.input, now);
        }
        if let Some(work) = &mut self.scope.work {
            work.call_began(&call.tool, &call.input, &self.scope.host.workspace().cwd);
        }
        if matches!(call.tool.as_str(), "Agent" | "SendMessage") {
            self.scope.host.put_spawn_context(
                &call.id,
                self.tools.spawn_context(&self.scope, &self.recorder, &self.sources, &call),
            );
        }
        let inbox = self.run.tasks.inbox.clone();
        let id = call.id.clone();
        let (layers, tool) = (
            self.tools.layers_of(
                &self.scope,
                &self.recorder,
                &self.permits,
                &self.run.tasks,
                &self.run.opening,
                &call,
            ),
            self.tools.toolbox.find_shared(&call.tool),
        );
        let (host, cancel) = (Arc::clone(&self.scope.host), self.run.tasks.calls.child_token());
        let hooks = self.scope.hooks_after_call(&self.recorder, &call);
        let environment = self.scope.ctx.hooks.clone();
        let runs_command = call.input.get("command").is_some();
        tokio::spawn(async move {
            if runs_command {
                tokio::select! {
                    () = environment.environment_ready() => {}
                    () = cancel.cancelled() => {}
                }
            }
            let began = tokio::time::Instant::now();
            let outcome = match tool {
                Some(tool) => {
                    Next { layers: &layers, tool, host: &host, cancel: cancel.clone(), to_background }
                        .run(call)
                        .await
                }
                None => ToolOutcome::error(format!("{} is no longer available", call.tool)),
            };
            let Some((hooks, mut told)) = hooks else {
                return drop(inbox.send(InboxMessage::Machine(Event::Finished { call: id, outcome })));
            };
            // The shell may have moved.
            told.moment.cwd = host.workspace().cwd;
            let done = tokio::select! {
                done = hooks.after_call(told, outcome.clone(), began.elapsed()) => done,
                // What the tool did is told all the same.
                () = cancel.cancelled() => AfterCall { outcome, halt: None, classifier_note: None },
            };
            drop(inbox.send(InboxMessage::CallDone(id, done)));
        });
    }

    /// Sees to what a call that worked has brought: instructions, memories, changed files.
    fn note_done(&mut self, call: RunningCall, outcome: &mut ToolOutcome) {
        if let Some(file) = &call.reads {
            outcome.attachments.extend(self.sources.meet_instructions(&self.scope, &self.recorder, file));
        }
        let written = call.effects.writes.iter().map(|path| path.real.clone());
        let touched: Vec<PathBuf> = call.reads.into_iter().chain(written).collect();
        outcome.attachments.extend(self.tools.meet_skills(
            &self.scope,
            &self.recorder,
            &self.sources,
            &self.permits,
            &touched,
        ));
        if self.scope.ctx.memory.as_ref().is_some_and(|memory| memory.is_touched(&call.effects)) {
            self.helpers.memory_written();
        }
        self.run.tally.written.extend(call.effects.writes);
    }
}

impl PromptOpening {
    /// Gives the prompt at hand its id, once, so that hooks can be told of it.
    pub(super) fn name_prompt(&mut self, scope: &ConversationScope, recorder: &mut Recorder) {
        if !std::mem::replace(&mut self.is_named, true) {
            recorder.reserve_prompt();
        }
        scope.note_moment(recorder);
    }
}

impl Checkpoints {
    fn record_prompt(&self, scope: &ConversationScope, recorder: &mut Recorder, prompt: &Prompt) {
        let mode = scope.ctx.mode();
        let entry = recorder.prompt(prompt, mode.as_str());
        scope.note_moment(recorder);
        if let Some(entry) = entry {
            let head = entry.head();
            scope.tell(EngineEvent::PromptRecorded {
                entry: head.uuid.clone().unwrap_or_else(|| "".into()),
                message: entry.fields().read("message").unwrap_or_default(),
                timestamp: head.timestamp.as_deref().unwrap_or_default().to_owned(),
                attached: attached_names(&prompt.attachments),
            });
            if let Some(prompt) = &head.uuid {
                self.record_prompt_snapshot(scope, recorder, prompt);
            }
        }
        recorder.tell_warnings(scope);
    }
}

impl ConversationScope {
    /// Asks hooks whether the turn may end.
    fn ask_before_end(
        &self,
        recorder: &Recorder,
        sources: &ContextSources,
        tasks: &mut TurnTasks,
        tally: &Tally,
        has_gone_on: bool,
    ) {
        let goal = self.goal_to_check();
        let may_object = goal.is_none() || self.ctx.goal.may_hooks_object(self.ctx.max_objections);
        let listeners = self.stop_event().and_then(|event| self.ctx.listeners(event));
        let hooks = listeners.filter(|_| may_object);
        if hooks.is_none() && goal.is_none() {
            return tasks.post(InboxMessage::Machine(Event::MayEnd { objection: None }));
        }
        let end = BeforeEnd {
            text: tally.text.clone(),
            has_gone_on,
            background_tasks: self.host.background_tasks(),
            session_crons: self
                .ctx
                .schedule
                .as_ref()
                .map(|schedule| schedule.hook_payload())
                .unwrap_or_default(),
            agent_transcript: self.agent.as_ref().map(|agent| self.ctx.agent_transcript(&agent.id)),
            moment: self.hook_moment(recorder),
        };
        let ctx = Arc::clone(&self.ctx);
        let check = goal.map(|goal| (goal, sources.messages(recorder), self.model.catalog.clone()));
        tasks.wait_for(async move {
            let said = match hooks {
                Some(hooks) => hooks.before_end(end).await,
                None => None,
            };
            let objection = match (said, check) {
                (Some(said), _) => {
                    ctx.goal.note_hook_objection();
                    Some(said)
                }
                (None, Some((goal, messages, models))) => check_goal(ctx, goal, messages, models).await,
                (None, None) => None,
            };
            InboxMessage::Machine(Event::MayEnd { objection })
        });
    }

    /// Returns the goal that is looked at before the turn ends: not while something works in the background, whose end begins
    /// a turn of its own.
    fn goal_to_check(&self) -> Option<Goal> {
        let goal = self.ctx.goal.active().filter(|_| self.is_main())?;
        self.host.tasks().running().is_empty().then_some(goal)
    }

    /// Passes on what an agent is told; who waits for it wants to see that.
    pub(super) fn tell_task(&self, entry: Option<&Entry>, text: &str) {
        let Some(entry) = entry else { return };
        self.tell(EngineEvent::User(UserMessage {
            entry: entry.head().uuid.clone().unwrap_or_else(|| "".into()),
            message: json!({"role": "user", "content": [{"type": "text", "text": text}]}),
            tool_use_result: None,
            is_synthetic: false,
            timestamp: entry.head().timestamp.as_deref().unwrap_or_default().to_owned(),
        }));
    }

    pub(super) fn tell_user(&self, entry: Option<&Entry>, tool_use_result: Option<Value>) {
        let Some(entry) = entry else { return };
        self.tell(EngineEvent::User(UserMessage {
            entry: entry.head().uuid.clone().unwrap_or_else(|| "".into()),
            message: entry.fields().read("message").unwrap_or_default(),
            tool_use_result,
            is_synthetic: entry.head().is_compact_summary || entry.head().is_meta,
            timestamp: entry.head().timestamp.as_deref().unwrap_or_default().to_owned(),
        }));
    }

    /// Returns how the conversation stands, for an agent that goes on from nothing of it.
    pub(super) fn plain_spawn_context(&self, recorder: &Recorder) -> SpawnContext {
        SpawnContext {
            model: ModelConfig { main: self.current_model(), ..self.model.clone() },
            prompt: recorder.prompt_id().cloned().unwrap_or_else(|| PromptId::new("")),
            fork: None,
            skill: None,
        }
    }

    /// Returns whoever wants to know what comes of a call, and what they are told of it.
    pub(super) fn hooks_after_call(
        &self,
        recorder: &Recorder,
        call: &PreparedCall,
    ) -> Option<(Arc<dyn TurnHooks>, HookCall)> {
        let hooks = self
            .call_listeners(HookEvent::PostToolUse)
            .or_else(|| self.call_listeners(HookEvent::PostToolUseFailure))?;
        Some((hooks, call.for_hooks(&self.host.workspace(), self.hook_moment(recorder))))
    }
}

impl TurnCalls {
    /// Shows hooks all results of a response.
    fn show_batch(&mut self, scope: &ConversationScope, recorder: &Recorder, tasks: &mut TurnTasks) {
        let calls = std::mem::take(&mut self.batch);
        let Some(hooks) = scope.ctx.listeners(HookEvent::PostToolBatch) else {
            return tasks.post(InboxMessage::Machine(Event::BatchSeen { halt: None }));
        };
        let batch = BatchResults { calls, moment: scope.hook_moment(recorder) };
        tasks.wait_for(async move { InboxMessage::BatchGate(hooks.after_batch(batch).await) });
    }
}

impl Tally {
    fn record_failure(
        &mut self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        text: &str,
        failure: &Failure,
    ) {
        self.text = text.to_owned();
        let entry = recorder.api_error(text, failure);
        if let Some(block) = made_here(entry.as_deref()) {
            let (request, error) = (failure.request_id.clone(), Some(failure.category()));
            scope.tell(EngineEvent::Assistant(AssistantBlock {
                request,
                error: error.map(Into::into),
                ..block
            }));
        }
    }
}

impl ToolSet {
    /// Returns how the conversation stands, for an agent that a call sends out.
    fn spawn_context(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        call: &PreparedCall,
    ) -> SpawnContext {
        let is_fork = call.input["subagent_type"].as_str() == Some(FORK);
        match call.input["to"].as_str().or_else(|| call.input["resume"].as_str()) {
            Some(to) if !is_fork => self.message_context(scope, recorder, sources, to),
            _ => {
                let fork = if is_fork { self.fork_start(scope, recorder, sources) } else { None };
                SpawnContext { fork, ..scope.plain_spawn_context(recorder) }
            }
        }
    }

    /// Returns how the conversation stands, for an agent that a message lets go on.
    pub(super) fn message_context(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        to: &str,
    ) -> SpawnContext {
        let opening = || match &sources.prelude {
            Prelude::Opening(Some(opening)) => Some(opening.block().clone()),
            Prelude::Opening(None) | Prelude::Fork { .. } => None,
        };
        let start = || ForkStart {
            point: sources.fork_point(scope, recorder, self, None),
            results: Vec::new(),
            opening: opening(),
        };
        let fork = scope.host.is_fork(to).then(start);
        SpawnContext { fork, ..scope.plain_spawn_context(recorder) }
    }

    /// Returns what a fork goes on from: everything up to the response at hand, whose calls it finds answered.
    fn fork_start(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
    ) -> Option<ForkStart> {
        let point = sources.fork_point(scope, recorder, self, None);
        let (messages, calls) = fork_messages(point.messages)?;
        let has_calls = |entry: &&Arc<Entry>| entry.blocks().iter().any(|block| block.tool_use().is_some());
        let leaf = recorder.path().iter().rfind(has_calls).and_then(|entry| entry.head().uuid.clone());
        let results = forked_results(&calls);
        Some(ForkStart { point: ForkPoint { messages, leaf, ..point }, results, opening: None })
    }

    /// Returns what wraps a call: what wraps them all, and hooks where it changes the task list.
    pub(super) fn layers_of(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        permits: &Permits,
        tasks: &TurnTasks,
        opening: &PromptOpening,
        call: &PreparedCall,
    ) -> Arc<[Arc<dyn CallLayer>]> {
        if let Some(layer) = self.skill_layer(scope, recorder, permits, tasks, opening, call) {
            return Arc::new([layer]);
        }
        match TaskHookLayer::for_call(&scope.ctx.hooks, call, || scope.hook_moment(recorder)) {
            None => Arc::clone(&self.layers),
            Some(layer) => std::iter::once(layer).chain(self.layers.iter().cloned()).collect(),
        }
    }
}

impl Conversation {
    /// Has calls that can go on in the background: one of them, or all. A call that cannot takes no notice.
    pub(crate) fn move_to_background(&self, call: Option<&ToolUseId>) {
        let running = self.run.calls.running.iter().filter(|(id, _)| call.is_none_or(|call| call == *id));
        running.for_each(|(_, running)| running.to_background.cancel());
        self.run.opening.move_shell_to_background(call);
        self.run.opening.move_forked_skill_to_background(call);
    }
}

impl Helpers {
    /// Takes note that results were cleared, here or by the server.
    pub(super) fn note_cleared(&mut self, recorder: &Recorder, sources: &ContextSources) {
        let tokens = sources.conversation_tokens(recorder);
        self.context_cleared(tokens);
    }
}

/// Returns a message that was made here, not by the model.
fn made_here(entry: Option<&Entry>) -> Option<AssistantBlock> {
    let entry = entry?;
    Some(AssistantBlock {
        entry: entry.head().uuid.clone().unwrap_or_else(|| "".into()),
        message: entry.fields().read("message").unwrap_or_default(),
        request: None,
        error: None,
        is_aborted: false,
    })
}

/// Returns a call as hooks are shown it beside the others of its response.
fn batch_call(call: &ToolUse) -> ToolBatchCall {
    ToolBatchCall {
        tool_name: call.name.clone(),
        tool_input: call.input.clone(),
        tool_use_id: call.id.to_string(),
        tool_response: Value::Null,
    }
}

/// Returns the file that a call reads for the model.
fn read_path(call: &PreparedCall) -> Option<&str> {
    call.input.get(call.facts.read_argument?).and_then(Value::as_str)
}

fn api_error_text(failure: &Failure) -> String {
    let hint = failure.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
    format!("API Error: {}{hint}", failure.message)
}
