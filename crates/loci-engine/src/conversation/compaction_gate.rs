//! What a compaction waits for: whoever has a say in it, and notes that are being written right now.

use std::future::Future;
use std::sync::Arc;

use loci_context::CompactionAttempt;
use loci_core::hooks::HookEvent;
use tokio_util::sync::CancellationToken;

use super::{Conversation, InboxMessage};
use crate::event::EngineEvent;
use crate::extensions::{BeforeCompaction, CompactionGate, SessionAdditions, SessionBegin};
use crate::turn::{CompactionOutcome, CompactionRequest};

impl Conversation {
    /// Makes the conversation shorter.
    pub(super) fn compact(&mut self, request: CompactionRequest) {
        self.tell(EngineEvent::Compacting);
        self.shorten(request);
    }

    /// Compacts the conversation, as soon as nothing speaks against it.
    pub(super) fn pass_gate(&mut self, request: CompactionRequest) {
        let gate = self.gate(&request);
        let notes = self.notes_under_way(&request);
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
        self.wait_for(waits);
    }

    /// Has the turn wait for something; an interrupt ends the wait.
    pub(super) fn wait_for(&mut self, work: impl Future<Output = InboxMessage> + Send + 'static) {
        self.run.generation += 1;
        self.run.request = CancellationToken::new();
        let (inbox, cancel) = (self.run.inbox.clone(), self.run.request.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                message = work => drop(inbox.send(message)),
            }
        });
    }

    /// Asks whoever has a say, unless there is nothing to say anything about.
    fn gate(&self, request: &CompactionRequest) -> Option<impl Future<Output = CompactionGate> + use<>> {
        let hooks = Arc::clone(&self.ctx.compaction_hooks);
        if !self.compaction.is_on || !hooks.listens() {
            return None;
        }
        let notes = self.notes_for_compaction();
        CompactionAttempt::new(self.subject(request), request.keep, notes.as_ref(), None)?;
        let (trigger, instructions) = (request.trigger, request.focus.clone());
        let before = BeforeCompaction { trigger, instructions, moment: self.hook_moment() };
        Some(async move { hooks.before(before).await })
    }

    /// Returns what ends when the notes, or the summary, that are being written are there. They are of no use where the
    /// user says what to keep.
    fn notes_under_way(&self, request: &CompactionRequest) -> Option<impl Future<Output = ()> + use<>> {
        if request.focus.is_some() || self.prepared_summary().is_some() {
            return None;
        }
        let ahead = self.helpers.summary.as_ref().and_then(|summary| summary.under_way());
        let notes = self.helpers.notes.as_ref().and_then(|notes| notes.under_way());
        (ahead.is_some() || notes.is_some()).then_some(async move {
            tokio::join!(over(ahead), over(notes));
        })
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
                if self.run.is_compaction {
                    self.run.tally.text = blocked.failure().unwrap_or_default();
                }
                self.compaction_over(blocked);
            }
        }
    }

    /// Ends a compaction; whoever wanted to know hears of it first.
    pub(super) fn compaction_over(&mut self, end: CompactionOutcome) {
        self.tell(EngineEvent::CompactionEnded { failure: end.failure() });
        if self.run.compacted.is_some() {
            self.tell_hooks_of_instructions("compact");
        }
        let Some(after) = self.run.compacted.take() else {
            return self.run.post(InboxMessage::CompactionOver(end));
        };
        let hooks = Some(Arc::clone(&self.ctx.compaction_hooks)).filter(|hooks| hooks.listens());
        let starters = self.ctx.listeners(HookEvent::SessionStart).filter(|_| self.is_main());
        if hooks.is_none() && starters.is_none() {
            return self.run.post(InboxMessage::CompactionOver(end));
        }
        let begin = SessionBegin {
            source: "compact",
            model: Some(self.current_model()),
            title: None,
            moment: after.moment.clone(),
        };
        let events = self.events.clone();
        self.wait_for(async move {
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

async fn over(work: Option<impl Future<Output = ()>>) {
    if let Some(work) = work {
        work.await;
    }
}
