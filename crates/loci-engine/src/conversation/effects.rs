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

use super::mentions::{asks_for_deep_thought, attached_names};
use super::{Conversation, ForkPoint, InboxMessage, Prelude, RunningCall};
use crate::agents::{ForkStart, SpawnContext, fork_messages, forked_results};
use crate::command::Prompt;
use crate::event::{AssistantBlock, EngineEvent, UserMessage};
use crate::extensions::hooks::TaskHookLayer;
use crate::extensions::{AfterCall, BatchResults, BeforeEnd, BeforePrompt, HookCall, PromptGate, TurnHooks};
use crate::session::config::ModelConfig;
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
            Effect::StopEdits(failure) => self.stop_edits(&failure),
            Effect::CancelRequest => self.run.request.cancel(),
            Effect::Wait(delay) => self.wait(delay),
            Effect::Prepare(calls) => self.prepare(&calls),
            Effect::CheckPermission(call) => self.check_call(&call),
            Effect::Run(call) => self.run_call(&call),
            Effect::CancelCalls => self.run.calls.cancel(),
            Effect::ShowBatch => self.show_batch(),
            Effect::AskBeforeEnd { has_gone_on } => self.ask_before_end(has_gone_on),
            Effect::Tell(notice) => self.notify(notice),
            Effect::End(end) => return Some(end),
        }
        None
    }

    /// Records the prompt that a turn begins with, as soon as it is made and hooks have let it pass.
    pub(super) fn open_prompt(&mut self) {
        if self.is_main() && self.ask_about_settings(None) {
            return;
        }
        match (self.run.shell_request.take(), self.run.expansion.take()) {
            (Some(shell), _) => self.run_shell(shell),
            (None, Some(call)) => self.expand(call),
            (None, None) => self.submit_prompt(),
        }
    }

    /// Records the prompt as soon as what it mentions is read and hooks have let it pass.
    pub(super) fn submit_prompt(&mut self) {
        if !self.read_mentions() {
            self.offer_prompt();
        }
    }

    /// Records the prompt as soon as hooks have let it pass.
    pub(super) fn offer_prompt(&mut self) {
        let Some(hooks) = self.ctx.listeners(HookEvent::UserPromptSubmit).filter(|_| self.agent.is_none())
        else {
            // Nobody has a say: it is on disk before anything else happens.
            let attachments = self.ctx.hooks.take_late();
            let event = self.prompt_gate_passed(PromptGate::Go { attachments, title: None });
            return event.into_iter().for_each(|event| self.run.post(InboxMessage::Machine(event)));
        };
        let prompt = self.run.prompt.as_ref().map(Prompt::typed_text).unwrap_or_default();
        self.name_prompt();
        let title = self.ctx.state.get().session.title.clone();
        let before = BeforePrompt { prompt, title, moment: self.hook_moment() };
        self.wait_for(async move { InboxMessage::PromptGate(hooks.before_prompt(before).await) });
    }

    /// Gives the prompt at hand its id, once, so that hooks can be told of it.
    pub(super) fn name_prompt(&mut self) {
        if !std::mem::replace(&mut self.run.is_prompt_named, true) {
            self.recorder.reserve_prompt();
        }
        self.note_moment();
    }

    /// Returns the event that says whether the prompt was taken. One that came too late is not.
    pub(super) fn prompt_gate_passed(&mut self, gate: PromptGate) -> Option<Event> {
        let prompt = self.run.prompt.take()?;
        match gate {
            PromptGate::Go { attachments, title } => {
                if let Some(title) = title {
                    self.recorder.name(title);
                }
                self.record_prompt(&prompt);
                self.tell_date();
                self.tell_skills();
                self.tell_style();
                self.tell_plan();
                if !prompt.is_verbatim && asks_for_deep_thought(&prompt.content.text()) {
                    self.recorder.attachment(Attachment::Ultrathink {});
                }
                let attachments = prompt.attachments.into_iter().chain(attachments);
                attachments.for_each(|attachment| self.recorder.attachment(attachment));
                match self.run.forked_skill.take() {
                    Some(skill) => {
                        self.run_forked_skill(skill);
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

    fn record_prompt(&mut self, prompt: &Prompt) {
        let mode = self.ctx.mode();
        let entry = self.recorder.prompt(prompt, mode.as_str());
        self.note_moment();
        if let Some(entry) = entry {
            let head = entry.head();
            self.tell(EngineEvent::PromptRecorded {
                entry: head.uuid.clone().unwrap_or_else(|| "".into()),
                message: entry.fields().read("message").unwrap_or_default(),
                timestamp: head.timestamp.as_deref().unwrap_or_default().to_owned(),
                attached: attached_names(&prompt.attachments),
            });
            if let Some(prompt) = &head.uuid {
                self.record_prompt_snapshot(prompt);
            }
        }
        self.tell_warnings();
    }

    /// Asks hooks whether the turn may end.
    fn ask_before_end(&mut self, has_gone_on: bool) {
        let goal = self.goal_to_check();
        let may_object = goal.is_none() || self.ctx.goal.may_hooks_object(self.ctx.max_objections);
        let listeners = self.stop_event().and_then(|event| self.ctx.listeners(event));
        let hooks = listeners.filter(|_| may_object);
        if hooks.is_none() && goal.is_none() {
            return self.run.post(InboxMessage::Machine(Event::MayEnd { objection: None }));
        }
        let end = BeforeEnd {
            text: self.run.tally.text.clone(),
            has_gone_on,
            background_tasks: self.host.background_tasks(),
            session_crons: self
                .ctx
                .schedule
                .as_ref()
                .map(|schedule| schedule.hook_payload())
                .unwrap_or_default(),
            agent_transcript: self.agent.as_ref().map(|agent| self.ctx.agent_transcript(&agent.id)),
            moment: self.hook_moment(),
        };
        let ctx = Arc::clone(&self.ctx);
        let check = goal.map(|goal| (goal, self.messages(), self.model.catalog.clone()));
        self.wait_for(async move {
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

    /// Shows hooks all results of a response.
    fn show_batch(&mut self) {
        let calls = std::mem::take(&mut self.run.batch);
        let Some(hooks) = self.ctx.listeners(HookEvent::PostToolBatch) else {
            return self.run.post(InboxMessage::Machine(Event::BatchSeen { halt: None }));
        };
        let batch = BatchResults { calls, moment: self.hook_moment() };
        self.wait_for(async move { InboxMessage::BatchGate(hooks.after_batch(batch).await) });
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Response { started, blocks, ended } => {
                let text: String = blocks.iter().filter_map(Block::text).collect();
                if !text.is_empty() {
                    self.run.tally.text = text;
                }
                if let Some(work) = &self.work {
                    blocks.iter().filter_map(Block::text).for_each(|text| work.write_text(&text));
                }
                self.recorder.response(&started, &blocks, ended.as_ref());
                let n_calls = blocks.iter().filter(|it| it.kind() == BlockKind::ToolUse).count();
                self.helpers.response_recorded(n_calls);
                if ended.is_some_and(|ended| ended.context_management.is_some()) {
                    self.note_cleared();
                }
                self.compactor.on_response();
                self.tell_level();
            }
            Record::PartialText(text) => {
                let entry = self.recorder.partial_text(&text);
                if let Some(block) = made_here(entry.as_deref()) {
                    self.tell(EngineEvent::Assistant(AssistantBlock { is_aborted: true, ..block }));
                }
                self.run.tally.text = text;
            }
            Record::ToolResult { call, mut outcome } => {
                if let Some(running) = self.run.running.remove(&call).filter(|_| !outcome.is_failure()) {
                    self.note_done(running, &mut outcome);
                }
                if let Some(work) = &mut self.work {
                    work.call_ended(&outcome.structured);
                }
                self.count_lines(&outcome);
                self.tell_hooks_of_cwd();
                let notes = self.run.call_notes.remove(&call).unwrap_or_default();
                outcome.attachments.extend(notes.into_iter().map(|attachment| ToolAttachment { attachment }));
                self.within_budget(&call, &mut outcome);
                if let Some(told) = self.run.batch.iter_mut().find(|it| it.tool_use_id == call.as_str()) {
                    told.tool_response = outcome.content.to_value();
                }
                self.stamp_slug();
                self.follow_place();
                self.load_referenced(&outcome);
                let entry = self.recorder.tool_result(&call, &outcome);
                self.tell_user(entry.as_deref(), Some(outcome.structured));
                if let Some(text) = self.run.skill_texts.remove(&call) {
                    self.recorder.skill_text(&call, &text);
                }
                self.title_by_plan();
            }
            Record::Nudge(text) => self.recorder.nudge(text),
            Record::Deferred(call) => self.record_deferred(&call),
            Record::Objection(objection) => {
                if !objection.text.is_empty() {
                    self.recorder.nudge(&objection.text);
                }
                objection.attachments.into_iter().for_each(|attachment| self.recorder.attachment(attachment));
            }
            Record::ApiError(failure) => self.record_failure(&api_error_text(&failure), &failure),
            Record::Incomplete(failure) => {
                let text = format!("{}\nThe answer above may be incomplete.", api_error_text(&failure));
                self.record_failure(&text, &failure);
            }
            Record::Refusal => {
                let text =
                    "API Error: the model declined to answer. Rephrase the request or try another model.";
                let failure = Failure::new(FailureKind::InvalidRequest, text);
                self.record_failure(text, &failure);
            }
            Record::Interrupted(interruption) => {
                let entry = self.recorder.interrupted(interruption == Interruption::Tools);
                self.tell_user(entry.as_deref(), None);
            }
            Record::MaxTurns { limit } => {
                let (max_turns, turn_count) = (u64::from(limit), u64::from(limit) + 1);
                self.recorder.attachment(Attachment::MaxTurnsReached { max_turns, turn_count });
            }
        }
        self.tell_warnings();
    }

    fn record_failure(&mut self, text: &str, failure: &Failure) {
        self.run.tally.text = text.to_owned();
        let entry = self.recorder.api_error(text, failure);
        if let Some(block) = made_here(entry.as_deref()) {
            let (request, error) = (failure.request_id.clone(), Some(failure.category()));
            self.tell(EngineEvent::Assistant(AssistantBlock { request, error, ..block }));
        }
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

    fn prepare(&mut self, calls: &[ToolUse]) {
        self.run.calls = CancellationToken::new();
        self.run.result_tokens = 0;
        self.run.n_calls = calls.len();
        if let Some(past) = self.past.take() {
            self.remember_files(&past);
        }
        self.run.batch = match self.run.turn.shows_batches() {
            true => calls.iter().map(batch_call).collect(),
            false => Vec::new(),
        };
        let (ready, preparations) = prepare_all(&self.toolbox, self.host.as_ref(), calls);
        self.run.prepared.extend(ready.into_iter().map(|call| (call.id.clone(), call)));
        self.run.post(InboxMessage::Machine(Event::Prepared(preparations)));
    }

    fn run_call(&mut self, call: &ToolUseId) {
        let Some(call) = self.run.prepared.remove(call) else { return };
        self.host.set_moment(self.hook_moment());
        let reads = read_path(&call).map(|file| self.host.workspace().resolve(file).requested);
        let to_background = CancellationToken::new();
        let running = RunningCall {
            tool: call.tool.clone(),
            reads,
            effects: call.effects.clone(),
            to_background: to_background.clone(),
        };
        self.run.running.insert(call.id.clone(), running);
        if self.is_main() {
            let now = self.env.clock.monotonic();
            self.ctx.timeline.begin_call(call.id.as_str(), &call.tool, &call.input, now);
        }
        if let Some(work) = &mut self.work {
            work.call_began(&call.tool, &call.input, &self.host.workspace().cwd);
        }
        if matches!(call.tool.as_str(), "Agent" | "SendMessage") {
            self.host.put_spawn_context(&call.id, self.spawn_context(&call));
        }
        let inbox = self.run.inbox.clone();
        let id = call.id.clone();
        let (layers, tool) = (self.layers_of(&call), self.toolbox.find_shared(&call.tool));
        let (host, cancel) = (Arc::clone(&self.host), self.run.calls.child_token());
        let hooks = self.hooks_after_call(&call);
        let (environment, runs_command) = (self.ctx.hooks.clone(), call.input.get("command").is_some());
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

    /// Returns how the conversation stands, for an agent that a call sends out.
    fn spawn_context(&self, call: &PreparedCall) -> SpawnContext {
        let is_fork = call.input["subagent_type"].as_str() == Some(FORK);
        match call.input["to"].as_str().or_else(|| call.input["resume"].as_str()) {
            Some(to) if !is_fork => self.message_context(to),
            _ => {
                let fork = if is_fork { self.fork_start() } else { None };
                SpawnContext { fork, ..self.plain_spawn_context() }
            }
        }
    }

    /// Returns how the conversation stands, for an agent that a message lets go on.
    pub(super) fn message_context(&self, to: &str) -> SpawnContext {
        let opening = || match &self.prelude {
            Prelude::Opening(Some(opening)) => Some(opening.block().clone()),
            Prelude::Opening(None) | Prelude::Fork { .. } => None,
        };
        let start = || ForkStart { point: self.fork_point(None), results: Vec::new(), opening: opening() };
        let fork = self.host.is_fork(to).then(start);
        SpawnContext { fork, ..self.plain_spawn_context() }
    }

    /// Returns how the conversation stands, for an agent that goes on from nothing of it.
    pub(super) fn plain_spawn_context(&self) -> SpawnContext {
        SpawnContext {
            model: ModelConfig { main: self.current_model(), ..self.model.clone() },
            prompt: self.recorder.prompt_id().cloned().unwrap_or_else(|| PromptId::new("")),
            fork: None,
            skill: None,
        }
    }

    /// Returns what a fork goes on from: everything up to the response at hand, whose calls it finds answered.
    fn fork_start(&self) -> Option<ForkStart> {
        let point = self.fork_point(None);
        let (messages, calls) = fork_messages(point.messages)?;
        let has_calls = |entry: &&Arc<Entry>| entry.blocks().iter().any(|block| block.tool_use().is_some());
        let leaf = self.recorder.path().iter().rfind(has_calls).and_then(|entry| entry.head().uuid.clone());
        let results = forked_results(&calls);
        Some(ForkStart { point: ForkPoint { messages, leaf, ..point }, results, opening: None })
    }

    /// Returns what wraps a call: what wraps them all, and hooks where it changes the task list.
    pub(super) fn layers_of(&mut self, call: &PreparedCall) -> Arc<[Arc<dyn CallLayer>]> {
        if let Some(layer) = self.skill_layer(call) {
            return Arc::new([layer]);
        }
        match TaskHookLayer::for_call(&self.ctx.hooks, call, || self.hook_moment()) {
            None => Arc::clone(&self.layers),
            Some(layer) => std::iter::once(layer).chain(self.layers.iter().cloned()).collect(),
        }
    }

    /// Has calls that can go on in the background: one of them, or all. A call that cannot takes no notice.
    pub(crate) fn move_to_background(&self, call: Option<&ToolUseId>) {
        let running = self.run.running.iter().filter(|(id, _)| call.is_none_or(|call| call == *id));
        running.for_each(|(_, running)| running.to_background.cancel());
        self.move_shell_to_background(call);
        self.move_forked_skill_to_background(call);
    }

    /// Returns whoever wants to know what comes of a call, and what they are told of it.
    pub(super) fn hooks_after_call(&self, call: &PreparedCall) -> Option<(Arc<dyn TurnHooks>, HookCall)> {
        let hooks = self
            .call_listeners(HookEvent::PostToolUse)
            .or_else(|| self.call_listeners(HookEvent::PostToolUseFailure))?;
        Some((hooks, call.for_hooks(&self.host.workspace(), self.hook_moment())))
    }

    /// Takes note that results were cleared, here or by the server.
    pub(super) fn note_cleared(&mut self) {
        let tokens = self.conversation_tokens();
        self.helpers.context_cleared(tokens);
    }

    /// Sees to what a call that worked has brought: instructions, memories, changed files.
    fn note_done(&mut self, call: RunningCall, outcome: &mut ToolOutcome) {
        if let Some(file) = &call.reads {
            outcome.attachments.extend(self.meet_instructions(file));
        }
        let written = call.effects.writes.iter().map(|path| path.real.clone());
        let touched: Vec<PathBuf> = call.reads.into_iter().chain(written).collect();
        outcome.attachments.extend(self.meet_skills(&touched));
        if self.ctx.memory.as_ref().is_some_and(|memory| memory.is_touched(&call.effects)) {
            self.helpers.memory_written();
        }
        self.run.tally.written.extend(call.effects.writes);
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
