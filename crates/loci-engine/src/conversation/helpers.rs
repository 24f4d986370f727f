//! Agents that work for a conversation, beside it: when they are sent out, and what they leave.

use std::sync::Arc;
use std::time::Duration;

use loci_context::Notes;
use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_core::message::{Block, Message};
use loci_core::permission::Mode;
use loci_tools::Host;

use super::host::lock;
use super::{Conversation, ForkPoint};
use crate::agents::background::{
    BackgroundDeps, Collapser, MemoryExtractor, NotesUpdater, Reservation, SummaryPrefetch,
};
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

impl Conversation {
    /// Tells whether this is a helper's own conversation: those, and only those, are held to a policy.
    pub(super) fn is_background(&self) -> bool {
        self.policy.is_some()
    }

    /// Has the notes brought up to date when it is time. `messages` are those of the request that is about to go out;
    /// at the end of a turn there is none. The conversation does not wait.
    pub(super) fn consider_notes(&mut self, messages: Option<&[Message]>) {
        let tokens = match &self.helpers.notes {
            Some(_) => self.conversation_tokens(),
            None => return,
        };
        let covers = self.recorder.path().last().and_then(|entry| entry.head().uuid.clone());
        let Some(covers) = covers.filter(|_| self.helpers.notes.as_ref().is_some_and(|it| it.is_due(tokens)))
        else {
            return;
        };
        let Some((fork_point, reservation)) = self.affordable_fork_point(messages) else { return };
        if let Some(notes) = &mut self.helpers.notes {
            notes.send(fork_point, covers, tokens, reservation);
        }
    }

    /// Has a summary prepared when the window is soon full and notes do not stand for the conversation already.
    pub(super) fn consider_summary(&mut self, messages: Option<&[Message]>) {
        let is_wanted = self.compaction.is_automatic && self.helpers.summary.is_some();
        let tokens = if is_wanted { self.tokens() } else { return };
        let room = self.room(&self.usual_plan());
        if !self.helpers.summary.as_ref().is_some_and(|summary| summary.is_due(tokens, &room))
            || self.has_notes()
        {
            return;
        }
        let fork_point = self.fork_point(messages);
        let covers = self.recorder.path().last().and_then(|entry| entry.head().uuid.clone());
        if let (Some(summary), Some(covers)) = (&mut self.helpers.summary, covers) {
            summary.send(fork_point, covers);
        }
    }

    /// Returns what can stand for the conversation, up to an entry of it: a summary that was prepared, or the notes.
    pub(super) fn notes_for_compaction(&self) -> Option<Notes> {
        self.prepared_summary().or_else(|| self.helpers.notes.as_ref().and_then(NotesUpdater::current))
    }

    /// Returns the summary that was prepared for the conversation as it is.
    pub(super) fn prepared_summary(&self) -> Option<Notes> {
        let prepared = self.helpers.summary.as_ref().and_then(SummaryPrefetch::ready);
        prepared.filter(|notes| self.is_on_path(&notes.covers))
    }

    fn has_notes(&self) -> bool {
        let notes = self.helpers.notes.as_ref().and_then(NotesUpdater::current);
        notes.is_some_and(|notes| self.is_on_path(&notes.covers))
    }

    fn is_on_path(&self, id: &EntryId) -> bool {
        self.recorder.path().iter().any(|entry| entry.head().uuid.as_ref() == Some(id))
    }

    /// Returns how the conversation stands, for an agent that is to see it as the next request would.
    pub(crate) fn fork_point(&self, messages: Option<&[Message]>) -> ForkPoint {
        let messages = match messages {
            Some(messages) => messages.to_vec(),
            None => self.messages(),
        };
        ForkPoint {
            model: ModelConfig { main: self.current_model(), ..self.model.clone() },
            tokens: self.tokens().saturating_sub(self.base.tokens()),
            messages,
            leaf: self.recorder.path().iter().rev().find_map(|entry| entry.head().uuid.clone()),
            place: self.host.workspace(),
            base: Arc::clone(&self.base),
            toolbox: self.toolbox.clone(),
        }
    }

    /// Returns how the conversation stands for an agent that asks the cheaper model, with what that will cost set aside;
    /// nothing, when that would be too much for what the conversation has cost so far.
    fn affordable_fork_point(&self, messages: Option<&[Message]>) -> Option<(ForkPoint, Reservation)> {
        let main = self.current_model();
        let small = self.ctx.small_model.choose(&lock(&self.ctx.ambient).env.vars, None);
        let quote = self.ctx.background_budget.quote(&main, &small, self.tokens());
        let reservation = self.ctx.background_budget.reserve(&quote)?;
        let point = self.fork_point(messages);
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

    /// Has memories looked for in what is new; the conversation does not wait. While a plan is made nothing is written,
    /// so nothing is looked for; it counts as new afterwards.
    pub(super) fn consider_memories(&mut self) {
        if self.ctx.mode() == Mode::Plan {
            return;
        }
        let Some(mut extractor) = self.helpers.extractor.take() else { return };
        extractor.consider(self.recorder.path(), || self.affordable_fork_point(None));
        self.helpers.extractor = Some(extractor);
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
