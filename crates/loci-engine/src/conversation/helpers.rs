//! Agents that work for a conversation, beside it: when they are sent out, and what they leave.

use std::sync::Arc;
use std::time::Duration;

use loci_context::Notes;
use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_core::message::{Block, Message};
use loci_core::permission::Mode;
use loci_tools::Host;

use super::ForkPoint;
use super::compaction::Compactor;
use super::context_sources::ContextSources;
use super::host::lock;
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use crate::agents::background::{
    BackgroundDeps, Collapser, MemoryExtractor, NotesUpdater, Reservation, SummaryPrefetch,
};
use crate::conversation::recorder::Recorder;
use crate::session::config::{BackgroundConfig, ModelConfig};

/// The helpers of a conversation. An agent's own conversation has none.
#[derive(Default)]
pub(crate) struct Helpers {
    /// Keeps running notes of the conversation.
    pub(super) notes: Option<NotesUpdater>,
    /// Prepares the summary that a compaction will need.
    pub(super) summary: Option<SummaryPrefetch>,
    /// Collapses stretches of the conversation.
    pub(super) collapser: Option<Collapser>,
    /// Looks for memories.
    pub(super) extractor: Option<MemoryExtractor>,
    /// How long a compaction waits for notes, or a summary, that are being written.
    pub(super) patience: Duration,
}

impl Helpers {
    pub(crate) fn new(
        deps: &BackgroundDeps,
        config: &BackgroundConfig,
        collapses: bool,
        past: &[Arc<Entry>],
    ) -> Self {
        let who = deps.ctx.identity.get();
        // Notes lie beside the transcript; a session that leaves none has no place for them.
        let pace = config.notes.filter(|_| who.is_persistent());
        // What is collapsed bit by bit is not compacted as a whole before it must be.
        let collapser = collapses.then(|| Collapser::new(deps.clone()));
        let is_prepared = config.prepares_summary && collapser.is_none();
        let looking = deps.ctx.memory.clone().zip(config.extraction);
        Self {
            notes: pace.map(|pace| NotesUpdater::new(deps.clone(), &who, pace)),
            summary: is_prepared.then(|| SummaryPrefetch::new(deps.clone())),
            collapser,
            extractor: looking
                .map(|(memory, extraction)| MemoryExtractor::new(deps.clone(), memory, extraction, past)),
            patience: config.patience,
        }
    }

    /// Takes note that the model has written a memory.
    pub(super) fn memory_written(&mut self) {
        if let Some(extractor) = &mut self.extractor {
            extractor.main_wrote();
        }
    }

    /// Takes note of a response that made so many calls.
    pub(super) fn response_recorded(&mut self, n_calls: usize) {
        if let Some(notes) = &mut self.notes {
            notes.on_response(n_calls);
        }
    }

    /// Takes note that results were cleared, so that the conversation has only so many tokens now.
    pub(super) fn context_cleared(&mut self, conversation_tokens: u64) {
        if let Some(notes) = &mut self.notes {
            notes.shortened(conversation_tokens);
        }
    }

    /// Takes note that the conversation was compacted, and has only so many tokens now.
    pub(super) fn context_compacted(&mut self, conversation_tokens: u64) {
        self.context_cleared(conversation_tokens);
        if let Some(summary) = &mut self.summary {
            summary.shortened();
        }
        if let Some(collapser) = &self.collapser {
            collapser.shortened();
        }
    }

    /// Waits for what is done beside the conversation, so long at most; tells whether notes and memories were all
    /// written.
    pub(crate) async fn drain(&self, limit: Duration) -> bool {
        let notes = async {
            match &self.notes {
                Some(notes) => notes.drain(limit).await,
                None => true,
            }
        };
        let memories = async {
            match &self.extractor {
                Some(extractor) => extractor.drain(limit).await,
                None => true,
            }
        };
        let summary = async {
            if let Some(summary) = &self.summary {
                summary.stop().await;
            }
        };
        let collapse = async {
            if let Some(collapser) = &self.collapser {
                collapser.stop().await;
            }
        };
        let (notes, memories, (), ()) = tokio::join!(notes, memories, summary, collapse);
        notes && memories
    }
}

impl ConversationScope {
    /// Tells whether this is a helper's own conversation: those, and only those, are held to a policy.
    pub(super) fn is_background(&self) -> bool {
        self.policy.is_some()
    }
}

impl Helpers {
    /// Has the notes brought up to date when it is time. `messages` are those of the request that is about to go out;
    /// at the end of a turn there is none. The conversation does not wait.
    pub(super) fn consider_notes(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        tool_set: &ToolSet,
        messages: Option<&[Message]>,
    ) {
        let tokens = match &self.notes {
            Some(_) => sources.conversation_tokens(recorder),
            None => return,
        };
        let covers = recorder.path().last().and_then(|entry| entry.head().uuid.clone());
        let Some(covers) = covers.filter(|_| self.notes.as_ref().is_some_and(|it| it.is_due(tokens))) else {
            return;
        };
        let Some((fork_point, reservation)) =
            tool_set.affordable_fork_point(scope, recorder, sources, messages)
        else {
            return;
        };
        if let Some(notes) = &mut self.notes {
            notes.send(fork_point, covers, tokens, reservation);
        }
    }

    /// Has a summary prepared when the window is soon full and notes do not stand for the conversation already.
    pub(super) fn consider_summary(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        tool_set: &ToolSet,
        compactor: &Compactor,
        messages: Option<&[Message]>,
    ) {
        let is_wanted = compactor.config.is_automatic && self.summary.is_some();
        let tokens = if is_wanted { sources.tokens(recorder) } else { return };
        let room = compactor.room(scope, recorder, sources, &scope.usual_plan());
        if !self.summary.as_ref().is_some_and(|summary| summary.is_due(tokens, &room))
            || self.has_notes(recorder)
        {
            return;
        }
        let fork_point = sources.fork_point(scope, recorder, tool_set, messages);
        let covers = recorder.path().last().and_then(|entry| entry.head().uuid.clone());
        if let (Some(summary), Some(covers)) = (&mut self.summary, covers) {
            summary.send(fork_point, covers);
        }
    }

    /// Returns what can stand for the conversation, up to an entry of it: a summary that was prepared, or the notes.
    pub(super) fn notes_for_compaction(&self, recorder: &Recorder) -> Option<Notes> {
        self.prepared_summary(recorder).or_else(|| self.notes.as_ref().and_then(NotesUpdater::current))
    }

    /// Returns the summary that was prepared for the conversation as it is.
    pub(super) fn prepared_summary(&self, recorder: &Recorder) -> Option<Notes> {
        let prepared = self.summary.as_ref().and_then(SummaryPrefetch::ready);
        prepared.filter(|notes| recorder.is_on_path(&notes.covers))
    }

    fn has_notes(&self, recorder: &Recorder) -> bool {
        let notes = self.notes.as_ref().and_then(NotesUpdater::current);
        notes.is_some_and(|notes| recorder.is_on_path(&notes.covers))
    }

    /// Has memories looked for in what is new; the conversation does not wait. While a plan is made nothing is written,
    /// so nothing is looked for; it counts as new afterwards.
    pub(super) fn consider_memories(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        tool_set: &ToolSet,
    ) {
        if scope.ctx.mode() == Mode::Plan {
            return;
        }
        let Some(mut extractor) = self.extractor.take() else { return };
        extractor
            .consider(recorder.path(), || tool_set.affordable_fork_point(scope, recorder, sources, None));
        self.extractor = Some(extractor);
    }
}

impl Recorder {
    fn is_on_path(&self, id: &EntryId) -> bool {
        self.path().iter().any(|entry| entry.head().uuid.as_ref() == Some(id))
    }
}

impl ContextSources {
    /// Returns how the conversation stands, for an agent that is to see it as the next request would.
    pub(crate) fn fork_point(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        tool_set: &ToolSet,
        messages: Option<&[Message]>,
    ) -> ForkPoint {
        let messages = match messages {
            Some(messages) => messages.to_vec(),
            None => self.messages(recorder),
        };
        ForkPoint {
            model: ModelConfig { main: scope.current_model(), ..scope.model.clone() },
            tokens: self.tokens(recorder).saturating_sub(self.base.tokens()),
            messages,
            leaf: recorder.path().iter().rev().find_map(|entry| entry.head().uuid.clone()),
            place: scope.host.workspace(),
            base: Arc::clone(&self.base),
            toolbox: tool_set.toolbox.clone(),
        }
    }
}

impl ToolSet {
    /// Returns how the conversation stands for an agent that asks the cheaper model, with what that will cost set aside;
    /// nothing, when that would be too much for what the conversation has cost so far.
    fn affordable_fork_point(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        messages: Option<&[Message]>,
    ) -> Option<(ForkPoint, Reservation)> {
        let main = scope.current_model();
        let small = scope.ctx.services.small_model.choose(&lock(&scope.ctx.services.ambient).env.vars, None);
        let quote = scope.ctx.usage.background_budget.quote(&main, &small, sources.tokens(recorder));
        let reservation = scope.ctx.usage.background_budget.reserve(&quote)?;
        let point = sources.fork_point(scope, recorder, self, messages);
        if quote.model == main {
            return Some((point, reservation));
        }
        // Reasoning is signed for the model that did it.
        let messages = point.messages.into_iter().filter_map(without_reasoning).collect();
        Some((
            ForkPoint { model: ModelConfig { main: quote.model, ..point.model }, messages, ..point },
            reservation,
        ))
    }
}

/// Takes reasoning out of a message; nothing, when there is nothing else.
fn without_reasoning(message: Message) -> Option<Message> {
    if !message.content.iter().any(|block| block.kind().is_thinking()) {
        return Some(message);
    }
    let rest: Vec<Block> =
        message.content.iter().filter(|block| !block.kind().is_thinking()).cloned().collect();
    (!rest.is_empty()).then(|| Message::new(message.role, rest))
}
