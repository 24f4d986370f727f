//! Context collapse: when stretches of the conversation are folded, and what becomes of them.
//!
//! From nine tenths of what can be used on, the summary of a stretch is asked for beside the conversation, and put in its
//! place before a later request. From 95 of a hundred on the conversation waits for it. Where nothing can be folded any
//! more, it is compacted.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use loci_context::{CollapseThresholds, Fold, Projection, Trigger, plan_fold};
use loci_core::ids::EntryId;

use super::ForkPoint;
use super::{Conversation, InboxMessage};
use crate::agents::background::{CollapsedStretch, Collapser};
use crate::turn::{CompactionOutcome, CompactionRequest, RequestPlan};

/// How long the conversation waits for a fold before it is compacted instead.
const PATIENCE: Duration = Duration::from_secs(180);

impl Conversation {
    /// Returns from how many tokens on the conversation must be made shorter.
    pub(super) fn compact_from(&self, plan: &RequestPlan) -> u64 {
        let room = self.room(plan);
        match &self.helpers.collapser {
            Some(_) => room.at_least(CollapseThresholds::of(&room.window).blocks),
            None => room.trigger(),
        }
    }

    /// Puts a fold that is ready in its place; tells whether there was one.
    pub(super) fn commit_collapse(&mut self) -> bool {
        let Some(made) = self.helpers.collapser.as_ref().and_then(Collapser::take) else { return false };
        let id = EntryId::new(self.env.random.uuid_v4().to_string());
        let CollapsedStretch { first, last, summary, said_tokens } = made;
        let fold = Fold { id, first, last, summary, said_tokens };
        let is_done = self.recorder.fold(fold);
        if is_done {
            self.note_cleared();
            self.tell_level();
        }
        is_done
    }

    /// Has a stretch folded when it is time; the conversation does not wait.
    pub(super) fn consider_collapse(&mut self) {
        let window = self.window(&self.usual_plan());
        if self.helpers.collapser.is_some() && self.tokens() >= CollapseThresholds::of(&window).commits {
            self.begin_fold();
        }
    }

    fn begin_fold(&self) {
        let Some(collapser) = self.helpers.collapser.as_ref().filter(|it| it.is_free()) else { return };
        let (path, replaced) = (self.recorder.path(), self.recorder.replaced());
        let Some(plan) = plan_fold(path, replaced, &self.room(&self.usual_plan())) else { return };
        let read = path[plan.read.clone()].iter().map(Arc::as_ref);
        let messages = Projection::with_replaced(read, replaced).messages(self.opening_block());
        collapser.send(ForkPoint { messages, ..self.fork_point(Some(&[])) }, plan);
    }

    /// Returns what ends when a fold is there that can take the place of a compaction nobody asked for.
    fn fold_in_place_of(
        &self,
        request: &CompactionRequest,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        if request.trigger != Trigger::Auto || request.refusal.is_some() {
            return None;
        }
        self.begin_fold();
        self.helpers.collapser.as_ref()?.under_way()
    }

    /// Makes the conversation shorter: by a fold where that is how it is done, or by a compaction.
    pub(super) fn shorten(&mut self, request: CompactionRequest) {
        match self.fold_in_place_of(&request) {
            None => self.pass_gate(request),
            Some(fold) => self.wait_for(async move {
                // What is not there by then is done without.
                drop(tokio::time::timeout(PATIENCE, fold).await);
                InboxMessage::Collapsed(request)
            }),
        }
    }

    /// Goes on after a fold was waited for. Where there is none, or it was not enough, the conversation is compacted: for one
    /// request there is no second chance.
    pub(super) fn collapsed(&mut self, request: CompactionRequest) {
        let is_enough =
            self.commit_collapse() && self.tokens() < self.compact_from(&self.plan_for(&request.model));
        match is_enough {
            true => self.compaction_over(CompactionOutcome::Done),
            false => self.pass_gate(request),
        }
    }
}
