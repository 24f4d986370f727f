//! Performing the turn machine's effects.

use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use loci_core::entry::Entry;
use loci_core::ids::RequestId;
use loci_core::message::{Block, BlockKind, ToolUse};
use loci_core::model::facts;
use loci_core::stream::{Failure, StreamEvent};
use loci_core::tool::{ToolAttachment, ToolOutcome};
use loci_storage::Author;
use loci_tools::{Host, Toolbox};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::{Message, Session, Underway};
use crate::event::{AssistantBlock, EngineEvent, UserMessage};
use crate::host::lock;
use crate::instructions::{note, remember, resume};
use crate::judge::{PreparedCall, prepare_all};
use crate::recorder::assistant_message;
use crate::restore::file_states;
use crate::state::change_identity;
use crate::turn::{Effect, Event, Interruption, Notice, Record, RequestPlan, TurnEnd};

impl Session {
    /// Performs one effect; the last of a turn gives its end.
    pub(super) fn perform(&mut self, effect: Effect, underway: &mut Underway) -> Option<TurnEnd> {
        match effect {
            Effect::Record(record) => self.record(record, underway),
            Effect::Request(plan) => self.request(&plan, underway),
            Effect::Compact(wish) => self.compact(wish, underway),
            Effect::StopEdits(failure) => self.stop_edits(&failure),
            Effect::CancelRequest => underway.request.cancel(),
            Effect::Wait(delay) => {
                let (inbox, generation) = (underway.inbox.clone(), underway.generation);
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    drop(inbox.send(Message::Request(generation, Event::WaitOver)));
                });
            }
            Effect::Prepare(calls) => self.prepare(&calls, underway),
            Effect::Judge(call) => {
                if let Some(prepared) = underway.prepared.get(&call).cloned() {
                    self.judge(prepared, underway);
                }
            }
            Effect::Run(call) => {
                if let Some(prepared) = underway.prepared.remove(&call) {
                    self.run_call(prepared, underway);
                }
            }
            Effect::CancelCalls => underway.calls.cancel(),
            Effect::Tell(notice) => self.pass_on(notice, underway),
            Effect::End(end) => return Some(end),
        }
        None
    }

    /// Counts what an event costs before the machine hears of it.
    pub(super) fn account(&mut self, event: Event, underway: &mut Underway) -> Event {
        match event {
            Event::Stream(StreamEvent::Ended(ended)) => {
                let taken = underway.tally.request_ended(self.env.clock.monotonic());
                underway.tally.usage.add(&ended.usage);
                let model = self.asked_model.clone();
                change_identity(&self.identity, |identity| {
                    identity.totals.add(&model, &facts(&model), &ended.usage);
                    identity.totals.api += taken;
                });
                let spent_usd = self.identity.get().totals.cost_usd();
                Event::Ended { ended, spent_usd }
            }
            Event::Failed { failure, .. } => {
                underway.tally.request_ended(self.env.clock.monotonic());
                Event::Failed { failure, jitter: self.env.random.unit_f64() }
            }
            Event::Compacted { end, .. } => {
                Event::Compacted { end, spent_usd: self.identity.get().totals.cost_usd() }
            }
            other => other,
        }
    }

    fn request(&mut self, plan: &RequestPlan, underway: &mut Underway) {
        self.commit_fold();
        if self.needs_room(plan) {
            drop(underway.inbox.send(Message::Other(Event::TooLong)));
            return;
        }
        let messages = self.recorder.messages(&self.context_block());
        self.consider_notes(Some(&messages));
        self.consider_summary(Some(&messages));
        self.consider_fold();
        let request = Arc::new(self.base.request(plan, &self.model, messages));
        self.asked_model.clone_from(&plan.model);
        underway.generation += 1;
        underway.request = CancellationToken::new();
        underway.tally.request_began(self.env.clock.monotonic(), self.started);
        let stream = self.client.stream(request, underway.request.clone());
        let toolbox = self.toolbox.clone();
        tokio::spawn(forward(stream, toolbox, underway.inbox.clone(), underway.generation));
    }

    fn record(&mut self, record: Record, underway: &mut Underway) {
        match record {
            Record::Response { started, blocks, ended } => {
                let text: String = blocks.iter().filter_map(Block::text).collect();
                if !text.is_empty() {
                    underway.tally.text = text;
                }
                self.recorder.response(&started, &blocks, ended.as_ref());
                self.note_response(blocks.iter().filter(|it| it.kind() == BlockKind::ToolUse).count());
                if ended.is_some_and(|ended| ended.context_management.is_some()) {
                    self.note_clearing();
                }
                self.compactor.on_response();
                self.tell_level();
            }
            Record::PartialText(text) => {
                let entry = self.recorder.partial_text(&text);
                self.tell_assistant(entry.as_deref(), None, None);
                underway.tally.text = text;
            }
            Record::ToolResult { call, mut outcome } => {
                if let Some(file) = underway.reading.remove(&call).filter(|_| !outcome.is_failure()) {
                    outcome.attachments.extend(self.meet_instructions(&file));
                }
                if underway.remembering.remove(&call) && !outcome.is_failure() {
                    self.note_memory();
                }
                self.within_budget(&call, &mut outcome, underway);
                let entry = self.recorder.tool_result(&call, &outcome);
                self.tell_user(entry.as_deref(), Some(outcome.structured));
            }
            Record::Nudge(text) => self.recorder.nudge(text),
            Record::ApiError(failure) => self.record_failure(&api_error_text(&failure), &failure, underway),
            Record::Incomplete(failure) => {
                let text = format!("{}\nThe answer above may be incomplete.", api_error_text(&failure));
                self.record_failure(&text, &failure, underway);
            }
            Record::Refusal => {
                let text =
                    "API Error: the model declined to answer. Rephrase the request or try another model.";
                let failure = Failure::new(loci_core::stream::FailureKind::InvalidRequest, text);
                self.record_failure(text, &failure, underway);
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
        self.tell_trouble();
    }

    fn record_failure(&mut self, text: &str, failure: &Failure, underway: &mut Underway) {
        underway.tally.text = text.to_owned();
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

    fn pass_on(&mut self, notice: Notice, underway: &mut Underway) {
        match notice {
            Notice::Requesting => self.tell(EngineEvent::Requesting),
            Notice::Stream(event) => self.pass_on_stream(event, underway),
            Notice::Retry { attempt, max_retries, delay, failure } => {
                self.tell(EngineEvent::Retry { attempt, max_retries, delay, failure });
            }
            Notice::Fallback { from, to, failure } => {
                self.tell(EngineEvent::Fallback { from, to, failure });
            }
        }
    }

    fn pass_on_stream(&mut self, event: StreamEvent, underway: &mut Underway) {
        let first_after = underway.tally.heard(self.env.clock.monotonic());
        match &event {
            StreamEvent::Started(started) => self.answering = Some(started.clone()),
            StreamEvent::BlockDone { index, block } if is_worth_showing(block) => {
                let entry = self.recorder.reserve(*index);
                if let Some(started) = &self.answering {
                    let message = assistant_message(started, block, None);
                    let request = started.request_id.clone();
                    self.tell(EngineEvent::Assistant(AssistantBlock {
                        entry,
                        message,
                        request,
                        error: None,
                    }));
                }
            }
            _ => {}
        }
        self.tell(EngineEvent::Stream { event, first_after });
    }

    fn prepare(&mut self, calls: &[ToolUse], underway: &mut Underway) {
        underway.calls = CancellationToken::new();
        underway.result_tokens = 0;
        if let Some(past) = self.past.take() {
            self.remember_files(&past);
        }
        let (ready, preparations) = prepare_all(&self.toolbox, self.host.as_ref(), calls);
        underway.prepared.extend(ready.into_iter().map(|call| (call.id.clone(), call)));
        drop(underway.inbox.send(Message::Other(Event::Prepared(preparations))));
    }

    /// Brings back what the conversation knows of files: what it read, and the instructions it was shown.
    fn remember_files(&mut self, past: &[Arc<Entry>]) {
        if !past.is_empty() {
            self.host.restore_files(&file_states(past));
        }
        remember(&mut lock(self.host.files()), &self.instructions.files);
        if let Some(lazy) = &mut self.lazy_instructions {
            resume(lazy, past.iter().map(Arc::as_ref));
        }
    }

    /// Returns the instructions that a file just read brings with it.
    fn meet_instructions(&mut self, file: &Path) -> Vec<ToolAttachment> {
        let Some(lazy) = &mut self.lazy_instructions else { return Vec::new() };
        let (met, problems) = lazy.read(file);
        remember(&mut lock(self.host.files()), met.iter().map(|met| &met.file));
        for problem in problems {
            self.tell(EngineEvent::Trouble(format!("{}: {}", problem.path.display(), problem.message)));
        }
        met.iter().map(|met| note(met, &self.env.cwd)).collect()
    }

    fn run_call(&self, call: PreparedCall, underway: &mut Underway) {
        if let Some(file) = read_path(&call) {
            underway.reading.insert(call.id.clone(), self.host.place().resolve(file).requested);
        }
        if self.memory.as_ref().is_some_and(|memory| memory.is_touched(&call.effects)) {
            underway.remembering.insert(call.id.clone());
        }
        let inbox = underway.inbox.clone();
        let id = call.id.clone();
        let memory = self.memory.clone();
        let tool = self.toolbox.find_shared(&call.tool);
        let (host, cancel) = (Arc::clone(&self.host), underway.calls.child_token());
        tokio::spawn(async move {
            let outcome = match tool {
                Some(tool) => {
                    let desk = memory.as_deref();
                    crate::memory::run(desk, Author::Model, tool, host, call, cancel).await
                }
                None => ToolOutcome::error(format!("{} is no longer available", call.tool)),
            };
            drop(inbox.send(Message::Other(Event::Finished { call: id, outcome })));
        });
    }
}

/// Passes a request's events on to its turn, calls as they are kept. A stream that ends without a word was cancelled.
async fn forward(
    mut stream: loci_llm::EventStream,
    toolbox: Toolbox,
    inbox: UnboundedSender<Message>,
    generation: u64,
) {
    while let Some(item) = stream.next().await {
        let event = match item {
            Ok(StreamEvent::BlockDone { index, block }) => {
                Event::Stream(StreamEvent::BlockDone { index, block: toolbox.with_defaults(block) })
            }
            Ok(event) => Event::Stream(event),
            Err(failure) => Event::Failed { failure, jitter: 0.0 },
        };
        if inbox.send(Message::Request(generation, event)).is_err() {
            return;
        }
    }
}

/// Returns the file that a call of Read reads.
fn read_path(call: &PreparedCall) -> Option<&str> {
    (call.tool == "Read").then(|| call.input.get("file_path").and_then(Value::as_str)).flatten()
}

fn is_worth_showing(block: &Block) -> bool {
    block.kind() != BlockKind::Text || block.text().is_some_and(|text| !text.is_empty())
}

fn api_error_text(failure: &Failure) -> String {
    let hint = failure.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
    format!("API Error: {}{hint}", failure.message)
}
