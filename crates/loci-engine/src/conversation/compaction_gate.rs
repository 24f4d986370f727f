//! What a compaction waits for: whoever has a say in it, and notes that are being written right now.

use std::future::Future;
use std::sync::Arc;

use loci_context::CompactionAttempt;
use loci_core::hooks::HookEvent;
use tokio_util::sync::CancellationToken;

use super::compaction::Compactor;
use super::context_sources::ContextSources;
use super::running_turn::TurnTasks;
use super::scope::ConversationScope;
use super::{Conversation, Helpers, InboxMessage};
use crate::conversation::recorder::Recorder;
use crate::event::EngineEvent;
use crate::extensions::{BeforeCompaction, CompactionGate, SessionAdditions, SessionBegin};
use crate::turn::{CompactionOutcome, CompactionRequest};

impl Conversation {
    /// Makes the conversation shorter.
    pub(super) fn compact(&mut self, request: CompactionRequest) {
        self.scope.tell(EngineEvent::Compacting);
        self.shorten(request);
    }

    /// Compacts the conversation, as soon as nothing speaks against it.
    pub(super) fn pass_gate(&mut self, request: CompactionRequest) {
        let gate = self.compaction.gate(&self.scope, &self.recorder, &self.sources, &self.helpers, &request);
        let notes = self.helpers.notes_under_way(&self.recorder, &request);
        if gate.is_none() && notes.is_none() {
            return self.begin_compaction(&request);
        }
        let patience = self.helpers.patience;
        let waits = async move {
            let gate = match gate {
                Some(gate) => gate.await,
                None => CompactionGate::Go { instructions: None },
            };
            if let (Some(notes), CompactionGate::Go { instructions: None }) = (notes, &gate) {
                // What is not there by then is done without.
                drop(tokio::time::timeout(patience, notes).await);
            }
            InboxMessage::Gate(request, gate)
        };
        self.run.tasks.wait_for(waits);
    }

    /// Goes on with a compaction, or leaves it.
    pub(super) fn gate_passed(&mut self, mut request: CompactionRequest, gate: CompactionGate) {
        match gate {
            CompactionGate::Go { instructions } => {
                let parts: Vec<String> = request.focus.take().into_iter().chain(instructions).collect();
                request.focus = Some(parts.join("\n")).filter(|focus| !focus.trim().is_empty());
                self.begin_compaction(&request);
            }
            CompactionGate::Block { reason } => {
                let blocked = CompactionOutcome::Blocked(reason);
                if self.compaction.is_command {
                    self.run.tally.text = blocked.failure().unwrap_or_default();
                }
                self.compaction.compaction_over(
                    &self.scope,
                    &self.recorder,
                    &self.sources,
                    &mut self.run.tasks,
                    blocked,
                );
            }
        }
    }
}

impl TurnTasks {
    /// Has the turn wait for something; an interrupt ends the wait.
    pub(super) fn wait_for(&mut self, work: impl Future<Output = InboxMessage> + Send + 'static) {
        self.generation += 1;
        self.request = CancellationToken::new();
        let (inbox, cancel) = (self.inbox.clone(), self.request.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                message = work => drop(inbox.send(message)),
            }
        });
    }
}

impl Compactor {
    /// Asks whoever has a say, unless there is nothing to say anything about.
    fn gate(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        helpers: &Helpers,
        request: &CompactionRequest,
    ) -> Option<impl Future<Output = CompactionGate> + use<>> {
        let hooks = Arc::clone(&scope.ctx.compaction_hooks);
        if !self.config.is_on || !hooks.listens() {
            return None;
        }
        let notes = helpers.notes_for_compaction(recorder);
        CompactionAttempt::new(
            self.subject(scope, recorder, sources, request),
            request.keep,
            notes.as_ref(),
            None,
        )?;
        let (trigger, instructions) = (request.trigger, request.focus.clone());
        let before = BeforeCompaction { trigger, instructions, moment: scope.hook_moment(recorder) };
        Some(async move { hooks.before(before).await })
    }

    /// Ends a compaction; whoever wanted to know hears of it first.
    pub(super) fn compaction_over(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        tasks: &mut TurnTasks,
        end: CompactionOutcome,
    ) {
        scope.tell(EngineEvent::CompactionEnded { failure: end.failure() });
        if self.compacted.is_some() {
            sources.tell_hooks_of_instructions(scope, recorder, "compact");
        }
        let Some(after) = self.compacted.take() else {
            return tasks.post(InboxMessage::CompactionOver(end));
        };
        let hooks = Some(Arc::clone(&scope.ctx.compaction_hooks)).filter(|hooks| hooks.listens());
        let starters = scope.ctx.listeners(HookEvent::SessionStart).filter(|_| scope.is_main());
        if hooks.is_none() && starters.is_none() {
            return tasks.post(InboxMessage::CompactionOver(end));
        }
        let begin = SessionBegin {
            source: "compact",
            model: Some(scope.current_model()),
            title: None,
            moment: after.moment.clone(),
        };
        let events = scope.events.clone();
        tasks.wait_for(async move {
            let added = match starters {
                Some(starters) => starters.session_begins(begin).await,
                None => SessionAdditions::default(),
            };
            if let Some(hooks) = hooks {
                for text in hooks.after(after).await {
                    events.send(EngineEvent::Warning(text));
                }
            }
            InboxMessage::CompactionHooksDone(end, added.attachments)
        });
    }
}

impl Helpers {
    /// Returns what ends when the notes, or the summary, that are being written are there. They are of no use where the
    /// user says what to keep.
    fn notes_under_way(
        &self,
        recorder: &Recorder,
        request: &CompactionRequest,
    ) -> Option<impl Future<Output = ()> + use<>> {
        if request.focus.is_some() || self.prepared_summary(recorder).is_some() {
            return None;
        }
        let ahead = self.summary.as_ref().and_then(|summary| summary.under_way());
        let notes = self.notes.as_ref().and_then(|notes| notes.under_way());
        (ahead.is_some() || notes.is_some()).then_some(async move {
            tokio::join!(over(ahead), over(notes));
        })
    }
}

async fn over(work: Option<impl Future<Output = ()>>) {
    if let Some(work) = work {
        work.await;
    }
}
