//! Requests to the model: sent, accounted for, passed on as they are answered.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use loci_context::estimate_path;
use loci_core::entry::Attachment;
use loci_core::message::{Block, BlockKind};
use loci_core::stream::{Failure, StreamEvent};
use loci_core::usage::Usage;
use loci_llm::overflow;
use loci_tools::{Host, Toolbox};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::host::lock;
use super::{Conversation, InboxMessage, RequestEvent};
use crate::agents::take_news;
use crate::conversation::recorder::assistant_message;
use crate::event::{AssistantBlock, EngineEvent};
use crate::models::model_name::resolve_model;
use crate::session::config::ModelConfig;
use crate::session::state::change_identity;
use crate::turn::{Event, Notice, RequestPlan};

/// Below so many tokens an estimate is too rough to say that a prompt was cut.
const LEAST_TO_JUDGE: u64 = 3_000;

/// A window is never so small: whoever says less counts in a way of its own.
const LEAST_READ: u64 = 1_500;

impl Conversation {
    /// Asks the model, or says that the conversation is too long for it.
    pub(super) fn request(&mut self, plan: &RequestPlan) {
        let plan = &self.granted_plan(plan);
        self.apply_tool_changes();
        self.record_news();
        self.tell_deferred();
        self.inject_queued();
        self.commit_collapse();
        if self.needs_room(plan) {
            self.run.post(InboxMessage::Machine(Event::TooLong));
            return;
        }
        let messages = self.messages();
        self.consider_notes(Some(&messages));
        self.consider_summary(Some(&messages));
        self.consider_collapse();
        let n_messages = messages.len();
        let request = Arc::new(match self.grants.effort.clone() {
            None => self.base.request(plan, &self.model, messages),
            effort => self.base.request(plan, &ModelConfig { effort, ..self.model.clone() }, messages),
        });
        self.run.asked_model.clone_from(&plan.model);
        self.run.generation += 1;
        self.run.request = CancellationToken::new();
        self.run.tally.request_began(self.env.clock.monotonic(), self.ctx.started);
        tracing::debug!(
            target: "loci::api",
            agent = self.agent_id(),
            model = plan.model,
            n_messages,
            generation = self.run.generation,
            "request"
        );
        let stream = self.ctx.client.stream(request, self.run.request.clone());
        self.ctx.earlier.prefetch();
        let toolbox = self.toolbox.clone();
        tokio::spawn(forward(stream, toolbox, self.run.inbox.clone(), self.run.generation));
    }

    /// Returns a plan with the model that a skill of this turn asks for, unless another has taken over already or its
    /// price is unknown to a run that has a budget.
    fn granted_plan(&self, plan: &RequestPlan) -> RequestPlan {
        let plan = &RequestPlan { model: self.model_of_mode(&plan.model), ..plan.clone() };
        let granted = self.grants.model.as_ref().filter(|_| plan.model == self.current_model());
        let vars = self.host.env().vars;
        let model = granted.map(|name| self.model.catalog.stand_in(resolve_model(&vars, name)));
        let model = model.filter(|name| self.can_keep_budget(name) && self.may_choose(name));
        RequestPlan { model: model.unwrap_or_else(|| plan.model.clone()), ..plan.clone() }
    }

    /// Returns the model of the mode that the session is in now, for one of the two that plan and do the work: a plan may
    /// have been approved since the turn began.
    fn model_of_mode(&self, model: &str) -> String {
        match self.models_in_use() {
            (work, Some(planner)) if model == work || model == planner => self.current_model(),
            _ => model.to_owned(),
        }
    }

    /// Records what the model is to hear before its next answer: work that has ended beside the conversation, and messages
    /// to an agent.
    fn record_news(&mut self) {
        if let Some(text) = take_news(self.host.tasks()) {
            let command_mode = Some("task-notification".to_owned());
            self.recorder.attachment(Attachment::QueuedCommand { prompt: Value::String(text), command_mode });
        }
        let messages = self.work.as_ref().map(|work| work.live.take()).unwrap_or_default();
        for message in messages {
            let (prompt, command_mode) = (Value::from(message.as_str()), Some("agent-message".to_owned()));
            self.recorder.attachment(Attachment::QueuedCommand { prompt, command_mode });
            // It was in no queue that somebody could take it back from.
            let (id, attached) = (String::new(), Vec::new());
            self.tell(EngineEvent::Dequeued { id, text: message, is_injected: true, attached });
        }
    }

    /// Has the machine hear, after a while, that it may ask again.
    pub(super) fn wait(&self, delay: Duration) {
        let (inbox, generation) = (self.run.inbox.clone(), self.run.generation);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            drop(inbox.send(InboxMessage::Request(generation, RequestEvent::WaitOver)));
        });
    }

    /// Counts what came of a request before the machine hears of it.
    pub(super) fn account(&mut self, event: RequestEvent) -> Event {
        match event {
            RequestEvent::Stream(StreamEvent::Ended(ended)) => {
                let taken = self.run.tally.request_ended(self.env.clock.monotonic());
                self.run.tally.usage.add(&ended.usage);
                if let Some(work) = &mut self.work {
                    work.answered(&ended.usage);
                }
                let model = self.run.asked_model.clone();
                self.ctx.background_budget.record(self.is_background(), &model, &ended.usage);
                let facts = self.model.catalog.facts(&model);
                self.warn_of_cut_prompts(&model, &ended.usage);
                change_identity(&self.ctx.identity, |identity| {
                    identity.totals.add(&model, &facts, &ended.usage);
                    identity.totals.api += taken;
                });
                let event = StreamEvent::Ended(ended.clone());
                self.tell(EngineEvent::Stream { event, first_after: None });
                Event::Ended { ended, spent_usd: self.ctx.spent_usd() }
            }
            RequestEvent::Stream(event) => Event::Stream(event),
            RequestEvent::Failed(failure) => {
                self.run.tally.request_ended(self.env.clock.monotonic());
                self.learn_window(&failure);
                Event::Failed { failure, jitter: self.env.random.unit_f64() }
            }
            RequestEvent::WaitOver => Event::WaitOver,
        }
    }

    /// Says once that a server seems to have cut a prompt: Ollama does so without a word when its window is too small.
    fn warn_of_cut_prompts(&mut self, model: &str, usage: &Usage) {
        let counted = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
        let is_counted = counted >= LEAST_READ && !usage.extra.contains_key("estimated");
        if self.has_warned_of_cuts || !is_counted || !self.model.catalog.facts(model).is_named {
            return;
        }
        let sent = self.overhead() + estimate_path(self.recorder.path(), self.recorder.replaced());
        if sent > LEAST_TO_JUDGE && counted * 2 < sent {
            self.has_warned_of_cuts = true;
            self.tell(EngineEvent::Warning(format!(
                "`{model}` read {counted} tokens where about {sent} were sent: its server seems to cut prompts that are longer \
                 than its window, as Ollama does. Start it with more (Ollama: OLLAMA_CONTEXT_LENGTH=32768), and say how much in \
                 the `providers` setting (`window`)."
            )));
        }
    }

    /// Believes a server that says how much a model can read of which we know nothing.
    fn learn_window(&mut self, failure: &Failure) {
        let model = &self.run.asked_model;
        let Some(limit) = overflow(failure).map(|overflow| overflow.limit) else { return };
        let is_known = self.model.catalog.facts(model).is_known;
        let is_news = !is_known && limit > 0 && limit < self.window(&self.plan_for(model)).tokens;
        if is_news && !self.model.catalog.learn_window(model, limit) {
            self.compaction.window = Some(limit);
        }
    }

    /// Tells front ends what the machine wants them to know.
    pub(super) fn notify(&mut self, notice: Notice) {
        match notice {
            Notice::Requesting => self.tell(EngineEvent::Requesting),
            Notice::Stream(event) => self.notify_stream(event),
            Notice::Retry { attempt, max_retries, delay, failure } => {
                self.tell(EngineEvent::Retry { attempt, max_retries, delay, failure });
            }
            Notice::Fallback { from, to, failure } => {
                self.tell_hooks_of_fallback(&from, &to);
                self.tell(EngineEvent::Fallback { from, to, failure });
            }
        }
    }

    fn notify_stream(&mut self, event: StreamEvent) {
        let first_after = self.run.tally.on_stream_event(self.env.clock.monotonic());
        match &event {
            StreamEvent::Started(started) => {
                if let Some(limits) = &started.rate_limits {
                    *lock(&self.ctx.rate_limits) = Some(limits.clone());
                }
                self.run.answering = Some(started.clone());
                self.run.answer_text.clear();
                self.run.held_stream.clear();
            }
            StreamEvent::BlockDone { index, block } if is_worth_showing(block) => {
                self.run.tally.on_block(self.env.clock.monotonic());
                self.run.answer_text.extend(block.text());
                let entry = self.recorder.reserve(*index);
                if let Some(started) = &self.run.answering {
                    let message = assistant_message(started, block, None);
                    let request = started.request_id.clone();
                    self.tell(EngineEvent::Assistant(AssistantBlock {
                        entry,
                        message,
                        request,
                        error: None,
                        is_aborted: false,
                    }));
                }
            }
            _ => {}
        }
        let is_part =
            !matches!(event, StreamEvent::Started(_) | StreamEvent::Ended(_) | StreamEvent::Wire(_));
        match is_part && self.holds_stream() {
            true => self.run.held_stream.push((event, first_after)),
            false => self.tell(EngineEvent::Stream { event, first_after }),
        }
    }
}

/// Passes a request's events on to its turn, calls as they are kept. A stream that ends without a word was cancelled.
async fn forward(
    mut stream: loci_llm::EventStream,
    toolbox: Toolbox,
    inbox: UnboundedSender<InboxMessage>,
    generation: u64,
) {
    while let Some(item) = stream.next().await {
        let event = match item {
            Ok(StreamEvent::BlockDone { index, block }) => {
                RequestEvent::Stream(StreamEvent::BlockDone { index, block: toolbox.with_defaults(block) })
            }
            Ok(event) => RequestEvent::Stream(event),
            Err(failure) => {
                tracing::warn!(target: "loci::api", generation, kind = ?failure.kind, status = ?failure.status, "failure");
                RequestEvent::Failed(failure)
            }
        };
        if inbox.send(InboxMessage::Request(generation, event)).is_err() {
            return;
        }
    }
}

fn is_worth_showing(block: &Block) -> bool {
    block.kind() != BlockKind::Text || block.text().is_some_and(|text| !text.is_empty())
}
