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

use super::compaction::Compactor;
use super::context_sources::ContextSources;
use super::host::lock;
use super::permits::Permits;
use super::running_turn::{ArrivingAnswer, TurnTasks};
use super::scope::ConversationScope;
use super::tally::Tally;
use super::{Conversation, InboxMessage, RequestEvent};
use crate::agents::take_news;
use crate::conversation::recorder::{Recorder, assistant_message};
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
        let plan = &self.permits.granted_plan(&self.scope, plan);
        self.apply_tool_changes();
        self.recorder.record_news(&self.scope);
        self.tools.tell_deferred(&self.scope, &mut self.recorder);
        self.queue.inject_queued(&self.scope, &mut self.recorder);
        self.helpers.commit_collapse(&self.scope, &mut self.recorder, &self.sources, &mut self.compaction);
        if self.compaction.needs_room(
            &self.scope,
            &mut self.recorder,
            &self.sources,
            &self.tools,
            &self.helpers,
            plan,
        ) {
            self.run.tasks.post(InboxMessage::Machine(Event::TooLong));
            return;
        }
        let messages = self.sources.messages(&self.recorder);
        self.helpers.consider_notes(&self.scope, &self.recorder, &self.sources, &self.tools, Some(&messages));
        self.helpers.consider_summary(
            &self.scope,
            &self.recorder,
            &self.sources,
            &self.tools,
            &self.compaction,
            Some(&messages),
        );
        self.helpers.consider_collapse(
            &self.scope,
            &self.recorder,
            &self.sources,
            &self.tools,
            &self.compaction,
        );
        let n_messages = messages.len();
        let request = Arc::new(match self.permits.grants.effort.clone() {
            None => self.sources.base.request(plan, &self.scope.model, messages),
            effort => {
                self.sources.base.request(plan, &ModelConfig { effort, ..self.scope.model.clone() }, messages)
            }
        });
        self.run.answer.model.clone_from(&plan.model);
        self.run.tasks.generation += 1;
        self.run.tasks.request = CancellationToken::new();
        self.run.tally.request_began(self.scope.env.clock.monotonic(), self.scope.ctx.facts.started);
        tracing::debug!(
            target: "loci::api",
            agent = self.scope.agent_id(),
            model = plan.model,
            n_messages,
            generation = self.run.tasks.generation,
            "request"
        );
        let stream = self.scope.ctx.services.client.stream(request, self.run.tasks.request.clone());
        self.scope.ctx.usage.earlier.prefetch();
        let toolbox = self.tools.toolbox.clone();
        tokio::spawn(forward(stream, toolbox, self.run.tasks.inbox.clone(), self.run.tasks.generation));
    }
}

impl Permits {
    /// Returns a plan with the model that a skill of this turn asks for, unless another has taken over already or its
    /// price is unknown to a run that has a budget.
    fn granted_plan(&self, scope: &ConversationScope, plan: &RequestPlan) -> RequestPlan {
        let plan = &RequestPlan { model: scope.model_of_mode(&plan.model), ..plan.clone() };
        let granted = self.grants.model.as_ref().filter(|_| plan.model == scope.current_model());
        let vars = scope.host.env().vars;
        let model = granted.map(|name| scope.model.catalog.stand_in(resolve_model(&vars, name)));
        let model = model.filter(|name| scope.can_keep_budget(name) && scope.may_choose(name));
        RequestPlan { model: model.unwrap_or_else(|| plan.model.clone()), ..plan.clone() }
    }
}

impl ConversationScope {
    /// Returns the model of the mode that the session is in now, for one of the two that plan and do the work: a plan may
    /// have been approved since the turn began.
    fn model_of_mode(&self, model: &str) -> String {
        match self.models_in_use() {
            (work, Some(planner)) if model == work || model == planner => self.current_model(),
            _ => model.to_owned(),
        }
    }
}

impl Recorder {
    /// Records what the model is to hear before its next answer: work that has ended beside the conversation, and messages
    /// to an agent.
    fn record_news(&mut self, scope: &ConversationScope) {
        if let Some(text) = take_news(scope.host.tasks()) {
            let command_mode = Some("task-notification".to_owned());
            self.attachment(Attachment::QueuedCommand { prompt: Value::String(text), command_mode });
        }
        let messages = scope.work.as_ref().map(|work| work.live.take()).unwrap_or_default();
        for message in messages {
            let (prompt, command_mode) = (Value::from(message.as_str()), Some("agent-message".to_owned()));
            self.attachment(Attachment::QueuedCommand { prompt, command_mode });
            // It was in no queue that somebody could take it back from.
            let (id, attached) = (String::new(), Vec::new());
            scope.tell(EngineEvent::Dequeued { id, text: message, is_injected: true, attached });
        }
    }
}

impl TurnTasks {
    /// Has the machine hear, after a while, that it may ask again.
    pub(super) fn wait(&self, delay: Duration) {
        let (inbox, generation) = (self.inbox.clone(), self.generation);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            drop(inbox.send(InboxMessage::Request(generation, RequestEvent::WaitOver)));
        });
    }
}

impl ArrivingAnswer {
    /// Counts what came of a request before the machine hears of it.
    pub(super) fn account(
        &self,
        scope: &mut ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        compactor: &mut Compactor,
        tally: &mut Tally,
        event: RequestEvent,
    ) -> Event {
        match event {
            RequestEvent::Stream(StreamEvent::Ended(ended)) => {
                let taken = tally.request_ended(scope.env.clock.monotonic());
                tally.usage.add(&ended.usage);
                if let Some(work) = &mut scope.work {
                    work.answered(&ended.usage);
                }
                let model = self.model.clone();
                scope.ctx.usage.background_budget.record(scope.is_background(), &model, &ended.usage);
                let facts = scope.model.catalog.facts(&model);
                compactor.warn_of_cut_prompts(scope, recorder, sources, &model, &ended.usage);
                change_identity(&scope.ctx.identity, |identity| {
                    identity.totals.add(&model, &facts, &ended.usage);
                    identity.totals.api += taken;
                });
                let event = StreamEvent::Ended(ended.clone());
                scope.tell(EngineEvent::Stream { event, first_after: None });
                Event::Ended { ended, spent_usd: scope.ctx.spent_usd() }
            }
            RequestEvent::Stream(event) => Event::Stream(event),
            RequestEvent::Failed(failure) => {
                tally.request_ended(scope.env.clock.monotonic());
                compactor.learn_window(scope, sources, self, &failure);
                Event::Failed { failure, jitter: scope.env.random.unit_f64() }
            }
            RequestEvent::WaitOver => Event::WaitOver,
        }
    }

    /// Tells front ends what the machine wants them to know.
    pub(super) fn notify(
        &mut self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        tally: &mut Tally,
        notice: Notice,
    ) {
        match notice {
            Notice::Requesting => scope.tell(EngineEvent::Requesting),
            Notice::Stream(event) => self.notify_stream(scope, recorder, tally, event),
            Notice::Retry { attempt, max_retries, delay, failure } => {
                scope.tell(EngineEvent::Retry { attempt, max_retries, delay, failure });
            }
            Notice::Fallback { from, to, failure } => {
                scope.tell_hooks_of_fallback(recorder, &from, &to);
                scope.tell(EngineEvent::Fallback { from, to, failure });
            }
        }
    }

    fn notify_stream(
        &mut self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        tally: &mut Tally,
        event: StreamEvent,
    ) {
        let first_after = tally.on_stream_event(scope.env.clock.monotonic());
        match &event {
            StreamEvent::Started(started) => {
                if let Some(limits) = &started.rate_limits {
                    *lock(&scope.ctx.usage.rate_limits) = Some(limits.clone());
                }
                self.started = Some(started.clone());
                self.text.clear();
                self.held.clear();
            }
            StreamEvent::BlockDone { index, block } if is_worth_showing(block) => {
                tally.on_block(scope.env.clock.monotonic());
                self.text.extend(block.text());
                let entry = recorder.reserve(*index);
                if let Some(started) = &self.started {
                    let message = assistant_message(started, block, None);
                    let request = started.request_id.clone();
                    scope.tell(EngineEvent::Assistant(AssistantBlock {
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
        match is_part && scope.holds_stream() {
            true => self.held.push((event, first_after)),
            false => scope.tell(EngineEvent::Stream { event, first_after }),
        }
    }
}

impl Compactor {
    /// Says once that a server seems to have cut a prompt: Ollama does so without a word when its window is too small.
    fn warn_of_cut_prompts(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        model: &str,
        usage: &Usage,
    ) {
        let counted = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
        let is_counted = counted >= LEAST_READ && !usage.extra.contains_key("estimated");
        if self.has_warned_of_cuts || !is_counted || !scope.model.catalog.facts(model).is_named {
            return;
        }
        let sent = sources.overhead() + estimate_path(recorder.path(), recorder.replaced());
        if sent > LEAST_TO_JUDGE && counted * 2 < sent {
            self.has_warned_of_cuts = true;
            scope.tell(EngineEvent::Warning(format!(
                "`{model}` read {counted} tokens where about {sent} were sent: its server seems to cut prompts that are longer \
                 than its window, as Ollama does. Start it with more (Ollama: OLLAMA_CONTEXT_LENGTH=32768), and say how much in \
                 the `providers` setting (`window`)."
            )));
        }
    }

    /// Believes a server that says how much a model can read of which we know nothing.
    fn learn_window(
        &mut self,
        scope: &ConversationScope,
        sources: &ContextSources,
        answer: &ArrivingAnswer,
        failure: &Failure,
    ) {
        let model = &answer.model;
        let Some(limit) = overflow(failure).map(|overflow| overflow.limit) else { return };
        let is_known = scope.model.catalog.facts(model).is_known;
        let is_news =
            !is_known && limit > 0 && limit < self.window(scope, sources, &scope.plan_for(model)).tokens;
        if is_news && !scope.model.catalog.learn_window(model, limit) {
            self.config.window = Some(limit);
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
