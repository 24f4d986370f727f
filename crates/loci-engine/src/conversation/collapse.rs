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

use super::compaction::Compactor;
use super::context_sources::ContextSources;
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use super::{Conversation, ForkPoint, Helpers, InboxMessage};
use crate::agents::background::{CollapsedStretch, Collapser};
use crate::conversation::recorder::Recorder;
use crate::turn::{CompactionOutcome, CompactionRequest, RequestPlan};

/// How long the conversation waits for a fold before it is compacted instead.
const PATIENCE: Duration = Duration::from_secs(180);

impl Conversation {
    /// Makes the conversation shorter: by a fold where that is how it is done, or by a compaction.
    pub(super) fn shorten(&mut self, request: CompactionRequest) {
        match self.helpers.fold_in_place_of(
            &self.scope,
            &self.recorder,
            &self.sources,
            &self.tools,
            &self.compaction,
            &request,
        ) {
            None => self.pass_gate(request),
            Some(fold) => self.run.tasks.wait_for(async move {
                // What is not there by then is done without.
                drop(tokio::time::timeout(PATIENCE, fold).await);
                InboxMessage::Collapsed(request)
            }),
        }
    }

    /// Goes on after a fold was waited for. Where there is none, or it was not enough, the conversation is compacted: for one
    /// request there is no second chance.
    pub(super) fn collapsed(&mut self, request: CompactionRequest) {
        let is_enough = self.helpers.commit_collapse(
            &self.scope,
            &mut self.recorder,
            &self.sources,
            &mut self.compaction,
        ) && self.sources.tokens(&self.recorder)
            < self.helpers.compact_from(
                &self.scope,
                &self.recorder,
                &self.sources,
                &self.compaction,
                &self.scope.plan_for(&request.model),
            );
        match is_enough {
            true => self.compaction.compaction_over(
                &self.scope,
                &self.recorder,
                &self.sources,
                &mut self.run.tasks,
                CompactionOutcome::Done,
            ),
            false => self.pass_gate(request),
        }
    }
}

impl Helpers {
    /// Returns from how many tokens on the conversation must be made shorter.
    pub(super) fn compact_from(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        compactor: &Compactor,
        plan: &RequestPlan,
    ) -> u64 {
        let room = compactor.room(scope, recorder, sources, plan);
        match &self.collapser {
            Some(_) => room.at_least(CollapseThresholds::of(&room.window).blocks),
            None => room.trigger(),
        }
    }

    /// Puts a fold that is ready in its place; tells whether there was one.
    pub(super) fn commit_collapse(
        &mut self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        sources: &ContextSources,
        compactor: &mut Compactor,
    ) -> bool {
        let Some(made) = self.collapser.as_ref().and_then(Collapser::take) else { return false };
        let id = EntryId::new(scope.env.random.uuid_v4().to_string());
        let CollapsedStretch { first, last, summary, said_tokens } = made;
        let fold = Fold { id, first, last, summary, said_tokens };
        let is_done = recorder.fold(fold);
        if is_done {
            self.note_cleared(recorder, sources);
            compactor.tell_level(scope, recorder, sources);
        }
        is_done
    }

    /// Has a stretch folded when it is time; the conversation does not wait.
    pub(super) fn consider_collapse(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        tool_set: &ToolSet,
        compactor: &Compactor,
    ) {
        let window = compactor.window(scope, sources, &scope.usual_plan());
        if self.collapser.is_some() && sources.tokens(recorder) >= CollapseThresholds::of(&window).commits {
            self.begin_fold(scope, recorder, sources, tool_set, compactor);
        }
    }

    fn begin_fold(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        tool_set: &ToolSet,
        compactor: &Compactor,
    ) {
        let Some(collapser) = self.collapser.as_ref().filter(|it| it.is_free()) else { return };
        let (path, replaced) = (recorder.path(), recorder.replaced());
        let Some(plan) =
            plan_fold(path, replaced, &compactor.room(scope, recorder, sources, &scope.usual_plan()))
        else {
            return;
        };
        let read = path[plan.read.clone()].iter().map(Arc::as_ref);
        let messages = Projection::with_replaced(read, replaced).messages(sources.opening_block());
        collapser
            .send(ForkPoint { messages, ..sources.fork_point(scope, recorder, tool_set, Some(&[])) }, plan);
    }

    /// Returns what ends when a fold is there that can take the place of a compaction nobody asked for.
    fn fold_in_place_of(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        tool_set: &ToolSet,
        compactor: &Compactor,
        request: &CompactionRequest,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        if request.trigger != Trigger::Auto || request.refusal.is_some() {
            return None;
        }
        self.begin_fold(scope, recorder, sources, tool_set, compactor);
        self.collapser.as_ref()?.under_way()
    }
}
