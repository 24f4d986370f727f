//! SummaryRequest a model for a summary: the request, its answer, and what is tried again.
//!
//! A request for a summary is like any other of the conversation, but no answer to it is recorded and none of its calls
//! is run. It is never compacted itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use loci_core::message::Message as Said;
use loci_core::model::ModelCatalog;
use loci_core::stream::{Failure, FailureKind, StreamEvent};
use loci_llm::{EventStream, delay};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::InboxMessage;
use super::compaction::{Compactor, PendingCompaction};
use super::context_sources::ContextSources;
use super::running_turn::TurnTasks;
use super::scope::ConversationScope;
use crate::event::EngineEvent;
use crate::turn::{OutputLimit, RequestPlan};

/// How often the output is halved when prompt and output do not fit together.
const MOST_HALVINGS: u32 = 4;

/// How a summary is being asked for.
pub(super) struct SummaryRequest {
    /// The model that is asked, then those to fall back to.
    models: VecDeque<String>,
    /// What is known of them.
    catalog: ModelCatalog,
    /// Failures of this request, counted from one.
    attempt: u32,
    halvings: u32,
    /// Whether the server was asked to edit nothing, because it refused to.
    has_stopped_edits: bool,
    /// The question, to be asked again.
    messages: Vec<Said>,
}

impl SummaryRequest {
    /// Asks the first of these models that is `first`, or comes after it.
    pub(super) fn new(models: Vec<String>, first: &str, catalog: ModelCatalog) -> Self {
        let start = models.iter().position(|model| model == first).unwrap_or(0);
        Self {
            models: models.into_iter().skip(start).collect(),
            catalog,
            attempt: 0,
            halvings: 0,
            has_stopped_edits: false,
            messages: Vec::new(),
        }
    }

    pub(super) fn model(&self) -> &str {
        self.models.front().map_or("", String::as_str)
    }

    /// Takes the next model, passing over those whose window is smaller: the question was made for this one's.
    fn fall_back(&mut self) -> bool {
        let window = self.catalog.facts(self.model()).window;
        self.models.pop_front();
        while self.models.front().is_some_and(|model| self.catalog.facts(model).window < window) {
            self.models.pop_front();
        }
        self.attempt = 0;
        !self.models.is_empty()
    }
}

impl Compactor {
    /// Asks for a summary; what comes of it is heard by `summarised`.
    pub(super) fn ask_for_summary(
        &mut self,
        scope: &ConversationScope,
        sources: &ContextSources,
        tasks: &mut TurnTasks,
        mut pending: PendingCompaction,
        messages: Vec<Said>,
    ) {
        pending.asking.messages = sources.prelude.before(messages);
        pending.asking.attempt = 0;
        self.send_summary_request(scope, sources, tasks, pending, Duration::ZERO);
    }

    /// Sends the question, after a while.
    pub(super) fn send_summary_request(
        &mut self,
        scope: &ConversationScope,
        sources: &ContextSources,
        tasks: &mut TurnTasks,
        pending: PendingCompaction,
        wait: Duration,
    ) {
        let asking = &pending.asking;
        let output = match asking.halvings {
            0 => OutputLimit::Usual,
            times => OutputLimit::Halved(times),
        };
        let plan =
            RequestPlan { model: asking.model().to_owned(), output, is_streaming: true, may_compact: false };
        let request = Arc::new(sources.base.request(&plan, &scope.model, asking.messages.clone()));
        self.pending = Some(pending);
        tasks.generation += 1;
        tasks.request = CancellationToken::new();
        let stream = scope.ctx.services.client.stream(request, tasks.request.clone());
        tokio::spawn(listen(stream, wait, tasks.inbox.clone(), tasks.generation));
    }
}

impl ContextSources {
    /// Has the server edit nothing from here on, and says so once.
    pub(super) fn stop_edits(&self, scope: &ConversationScope, failure: &Failure) {
        if let Some(news) = self.base.stop_edits(failure) {
            // It concerns all conversations. Without a listener there is nobody to tell.
            drop(scope.ctx.events.send(news));
        }
    }

    /// Says how long to wait before asking once more after a failure; `None` where that would not help.
    pub(super) fn wait_before_asking_again(
        &self,
        scope: &ConversationScope,
        asking: &mut SummaryRequest,
        failure: &Failure,
    ) -> Option<Duration> {
        // Somebody else may have heard of it first: what counts is that this question was not asked without yet.
        let is_refused = failure.kind == FailureKind::EditingRefused;
        if is_refused && !std::mem::replace(&mut asking.has_stopped_edits, true) {
            self.stop_edits(scope, failure);
            return Some(Duration::ZERO);
        }
        asking.attempt += 1;
        if failure.kind == FailureKind::OutputTooLong && asking.halvings < MOST_HALVINGS {
            asking.halvings += 1;
            return Some(Duration::ZERO);
        }
        let policy = scope.limits.retry;
        if policy.allows(failure, asking.attempt) {
            let (attempt, max_retries) = (asking.attempt, policy.max_retries);
            let wait = delay(attempt, failure.retry_after, scope.env.random.unit_f64());
            scope.tell(EngineEvent::Retry { attempt, max_retries, delay: wait, failure: failure.clone() });
            return Some(wait);
        }
        let from = asking.model().to_owned();
        if !(failure.allows_fallback() && asking.fall_back()) {
            return None;
        }
        let to = asking.model().to_owned();
        scope.tell(EngineEvent::Fallback { from, to, failure: failure.clone() });
        Some(Duration::ZERO)
    }
}

/// Waits, then asks and listens to the summary. Calls that the model makes all the same are not run.
async fn listen(
    mut stream: EventStream,
    wait: Duration,
    inbox: UnboundedSender<InboxMessage>,
    generation: u64,
) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    let mut text = String::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(StreamEvent::BlockDone { block, .. }) => text.push_str(&block.text().unwrap_or_default()),
            Ok(StreamEvent::Ended(ended)) => {
                drop(inbox.send(InboxMessage::Summary(generation, Ok((text, ended)))));
                return;
            }
            Ok(_) => {}
            Err(failure) => {
                drop(inbox.send(InboxMessage::Summary(generation, Err(failure))));
                return;
            }
        }
    }
}
