//! What a compaction waits for: whoever has a say in it, and notes that are being written right now.

use std::future::Future;

use loci_context::CompactionAttempt;
use tokio_util::sync::CancellationToken;

use super::{Message, Session, Underway};
use crate::compaction_hooks::{BeforeCompaction, CompactionLeave};
use crate::event::EngineEvent;
use crate::turn::{Compacted, CompactionWish, Event};

impl Session {
    /// Makes the conversation shorter.
    pub(super) fn compact(&mut self, wish: CompactionWish, underway: &mut Underway) {
        self.tell(EngineEvent::Compacting);
        self.shorten(wish, underway);
    }

    /// Compacts the conversation, as soon as nothing speaks against it.
    pub(super) fn ask_leave(&mut self, wish: CompactionWish, underway: &mut Underway) {
        let leave = self.leave(&wish);
        let notes = self.notes_under_way(&wish);
        if leave.is_none() && notes.is_none() {
            return self.begin_compaction(&wish, underway);
        }
        let patience = self.patience;
        let waits = async move {
            let leave = match leave {
                Some(leave) => leave.await,
                None => CompactionLeave::Go { instructions: None },
            };
            if let (Some(notes), CompactionLeave::Go { instructions: None }) = (notes, &leave) {
                // What is not there by then is done without.
                drop(tokio::time::timeout(patience, notes).await);
            }
            Message::Leave(wish, leave)
        };
        underway.wait_for(waits);
    }

    /// Asks whoever has a say, unless there is nothing to say anything about.
    fn leave(&self, wish: &CompactionWish) -> Option<impl Future<Output = CompactionLeave> + use<>> {
        let hooks = self.compaction_hooks.clone().filter(|_| self.compaction.is_on)?;
        let notes = self.notes_for_compaction();
        CompactionAttempt::new(self.subject(wish), wish.keep, notes.as_ref(), None)?;
        let before = BeforeCompaction { trigger: wish.trigger, instructions: wish.focus.clone() };
        Some(async move { hooks.before(before).await })
    }

    /// Returns what ends when the notes, or the summary, that are being written are there. They are of no use where the
    /// user says what to keep.
    fn notes_under_way(&self, wish: &CompactionWish) -> Option<impl Future<Output = ()> + use<>> {
        if wish.focus.is_some() || self.prepared_summary().is_some() {
            return None;
        }
        let ahead = self.ahead.as_ref().and_then(|ahead| ahead.under_way());
        let notes = self.notes.as_ref().and_then(|notes| notes.under_way());
        (ahead.is_some() || notes.is_some()).then_some(async move {
            tokio::join!(over(ahead), over(notes));
        })
    }

    /// Goes on with a compaction, or leaves it.
    pub(super) fn leave_given(
        &mut self,
        mut wish: CompactionWish,
        leave: CompactionLeave,
        underway: &mut Underway,
    ) {
        match leave {
            CompactionLeave::Go { instructions } => {
                let parts: Vec<String> = wish.focus.take().into_iter().chain(instructions).collect();
                wish.focus = Some(parts.join("\n")).filter(|focus| !focus.trim().is_empty());
                self.begin_compaction(&wish, underway);
            }
            CompactionLeave::Block { reason } => self.compaction_over(Compacted::Blocked(reason), underway),
        }
    }

    /// Ends a compaction; whoever wanted to know hears of it first.
    pub(super) fn compaction_over(&mut self, end: Compacted, underway: &mut Underway) {
        self.tell(EngineEvent::CompactionEnded { failure: end.failure() });
        let done = underway.compacted.take().zip(self.compaction_hooks.clone());
        let Some((after, hooks)) = done else {
            drop(underway.inbox.send(over_with(end)));
            return;
        };
        let events = self.events.clone();
        underway.wait_for(async move {
            for text in hooks.after(after).await {
                // Without a listener there is nobody to tell.
                drop(events.send(EngineEvent::Trouble(text)));
            }
            over_with(end)
        });
    }
}

/// What was spent is looked up when it is heard.
fn over_with(end: Compacted) -> Message {
    Message::Other(Event::Compacted { end, spent_usd: 0.0 })
}

async fn over(work: Option<impl Future<Output = ()>>) {
    if let Some(work) = work {
        work.await;
    }
}

impl Underway {
    /// Has the turn wait for something; an interrupt ends the wait.
    pub(super) fn wait_for(&mut self, work: impl Future<Output = Message> + Send + 'static) {
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
