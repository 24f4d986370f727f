//! Performing the turn machine's effects.

use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::{RequestId, ToolUseId};
use loci_core::message::{Block, BlockKind, ToolUse};
use loci_core::stream::{Failure, FailureKind};
use loci_core::tool::ToolOutcome;
use loci_tools::Host;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Conversation, InboxMessage, RunningCall};
use crate::calls::Next;
use crate::command::Prompt;
use crate::event::{AssistantBlock, EngineEvent, UserMessage};
use crate::extension::{BeforeEnd, BeforePrompt, PromptGate};
use crate::prepared_call::{PreparedCall, prepare_all};
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
            Effect::AskBeforeEnd { has_gone_on } => self.ask_before_end(has_gone_on),
            Effect::Tell(notice) => self.notify(notice),
            Effect::End(end) => return Some(end),
        }
        None
    }

    /// Records the prompt that a turn begins with, as soon as hooks have let it pass.
    fn open_prompt(&mut self) {
        let Some(hooks) = self.ctx.turn_hooks.clone() else {
            // Nobody has a say: it is on disk before anything else happens.
            let event = self.prompt_gate_passed(PromptGate::Go { attachments: Vec::new() });
            return event.into_iter().for_each(|event| self.run.post(InboxMessage::Machine(event)));
        };
        let prompt = self.run.prompt.as_ref().map(|prompt| prompt.content.text()).unwrap_or_default();
        self.wait_for(
            async move { InboxMessage::PromptGate(hooks.before_prompt(BeforePrompt { prompt }).await) },
        );
    }

    /// Returns the event that says whether the prompt was taken. One that came too late is not.
    pub(super) fn prompt_gate_passed(&mut self, gate: PromptGate) -> Option<Event> {
        let prompt = self.run.prompt.take()?;
        match gate {
            PromptGate::Go { attachments } => {
                self.record_prompt(&prompt);
                self.tell_date();
                let attachments = prompt.attachments.into_iter().chain(attachments);
                attachments.for_each(|attachment| self.recorder.attachment(attachment));
                Some(Event::Begin)
            }
            PromptGate::Block { reason } => {
                self.run.tally.text.clone_from(&reason);
                Some(Event::PromptBlocked { reason })
            }
        }
    }

    fn record_prompt(&mut self, prompt: &Prompt) {
        let mode = self.ctx.mode();
        let entry = self.recorder.prompt(&prompt.content, prompt.id.clone(), mode.as_str());
        if let Some(entry) = entry {
            let head = entry.head();
            self.tell(EngineEvent::PromptRecorded {
                entry: head.uuid.clone().unwrap_or_else(|| "".into()),
                message: entry.fields().read("message").unwrap_or_default(),
                timestamp: head.timestamp.as_deref().unwrap_or_default().to_owned(),
            });
            if let Some(prompt) = &head.uuid {
                self.record_prompt_snapshot(prompt);
            }
        }
        self.tell_warnings();
    }

    /// Asks hooks whether the turn may end.
    fn ask_before_end(&mut self, has_gone_on: bool) {
        let Some(hooks) = self.ctx.turn_hooks.clone() else {
            return self.run.post(InboxMessage::Machine(Event::MayEnd { objection: None }));
        };
        let end = BeforeEnd { text: self.run.tally.text.clone(), has_gone_on, agent: self.agent.clone() };
        self.wait_for(async move {
            InboxMessage::Machine(Event::MayEnd { objection: hooks.before_end(end).await })
        });
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Response { started, blocks, ended } => {
                let text: String = blocks.iter().filter_map(Block::text).collect();
                if !text.is_empty() {
                    self.run.tally.text = text;
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
                self.tell_assistant(entry.as_deref(), None, None);
                self.run.tally.text = text;
            }
            Record::ToolResult { call, mut outcome } => {
                if let Some(running) = self.run.running.remove(&call).filter(|_| !outcome.is_failure()) {
                    self.note_done(running, &mut outcome);
                }
                self.within_budget(&call, &mut outcome);
                let entry = self.recorder.tool_result(&call, &outcome);
                self.tell_user(entry.as_deref(), Some(outcome.structured));
            }
            Record::Nudge(text) => self.recorder.nudge(text),
            Record::Objection(text) => self.recorder.nudge(&text),
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
                let attachment =
                    json!({"type": "max_turns_reached", "maxTurns": limit, "turnCount": limit + 1});
                self.recorder.attachment(attachment);
            }
        }
        self.tell_warnings();
    }

    fn record_failure(&mut self, text: &str, failure: &Failure) {
        self.run.tally.text = text.to_owned();
        let entry = self.recorder.api_error(text, failure);
        self.tell_assistant(entry.as_deref(), failure.request_id.clone(), Some(failure.category()));
    }

    /// Passes on a message that was made here, not by the model.
    fn tell_assistant(&self, entry: Option<&Entry>, request: Option<RequestId>, error: Option<&'static str>) {
        let Some(entry) = entry else { return };
        self.tell(EngineEvent::Assistant(AssistantBlock {
            entry: entry.head().uuid.clone().unwrap_or_else(|| "".into()),
            message: entry.fields().read("message").unwrap_or_default(),
            request,
            error,
        }));
    }

    pub(super) fn tell_user(&self, entry: Option<&Entry>, tool_use_result: Option<Value>) {
        let Some(entry) = entry else { return };
        self.tell(EngineEvent::User(UserMessage {
            entry: entry.head().uuid.clone().unwrap_or_else(|| "".into()),
            message: entry.fields().read("message").unwrap_or_default(),
            tool_use_result,
            timestamp: entry.head().timestamp.as_deref().unwrap_or_default().to_owned(),
        }));
    }

    fn prepare(&mut self, calls: &[ToolUse]) {
        self.run.calls = CancellationToken::new();
        self.run.result_tokens = 0;
        if let Some(past) = self.past.take() {
            self.remember_files(&past);
        }
        let (ready, preparations) = prepare_all(&self.toolbox, self.host.as_ref(), calls);
        self.run.prepared.extend(ready.into_iter().map(|call| (call.id.clone(), call)));
        self.run.post(InboxMessage::Machine(Event::Prepared(preparations)));
    }

    fn run_call(&mut self, call: &ToolUseId) {
        let Some(call) = self.run.prepared.remove(call) else { return };
        let reads = read_path(&call).map(|file| self.host.workspace().resolve(file).requested);
        let running = RunningCall { reads, effects: call.effects.clone() };
        self.run.running.insert(call.id.clone(), running);
        let inbox = self.run.inbox.clone();
        let id = call.id.clone();
        let (layers, tool) = (Arc::clone(&self.layers), self.toolbox.find_shared(&call.tool));
        let (host, cancel) = (Arc::clone(&self.host), self.run.calls.child_token());
        tokio::spawn(async move {
            let outcome = match tool {
                Some(tool) => Next { layers: &layers, tool, host: &host, cancel }.run(call).await,
                None => ToolOutcome::error(format!("{} is no longer available", call.tool)),
            };
            drop(inbox.send(InboxMessage::Machine(Event::Finished { call: id, outcome })));
        });
    }

    /// Takes note that results were cleared, here or by the server.
    pub(super) fn note_cleared(&mut self) {
        let tokens = self.tokens();
        self.helpers.context_cleared(tokens);
    }

    /// Sees to what a call that worked has brought: instructions, memories, changed files.
    fn note_done(&mut self, call: RunningCall, outcome: &mut ToolOutcome) {
        if let Some(file) = call.reads {
            outcome.attachments.extend(self.meet_instructions(&file));
        }
        if self.ctx.memory.as_ref().is_some_and(|memory| memory.is_touched(&call.effects)) {
            self.helpers.memory_written();
        }
        self.run.tally.written.extend(call.effects.writes);
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
