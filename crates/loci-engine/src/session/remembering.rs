//! What the session remembers beside the conversation: when agents are sent out for it, and what they leave.

use loci_context::Notes;
use loci_core::ids::EntryId;
use loci_core::message::Message;
use loci_core::permission::Mode;
use serde_json::json;

use super::Session;
use crate::background::{Ahead, NotesKeeper, Standpoint};

impl Session {
    /// Has the notes brought up to date when it is time. `messages` are those of the request that is about to go out;
    /// at the end of a turn there is none. The conversation does not wait.
    pub(super) fn consider_notes(&mut self, messages: Option<&[Message]>) {
        let tokens = match &self.notes {
            Some(_) => self.tokens(),
            None => return,
        };
        let covers = self.recorder.path().last().and_then(|entry| entry.head().uuid.clone());
        let Some(covers) = covers.filter(|_| self.notes.as_ref().is_some_and(|it| it.is_due(tokens))) else {
            return;
        };
        let standpoint = self.standpoint(messages);
        if let Some(notes) = &mut self.notes {
            notes.send(standpoint, covers, tokens);
        }
    }

    /// Has a summary prepared when the window is soon full and notes do not stand for the conversation already.
    pub(super) fn consider_summary(&mut self, messages: Option<&[Message]>) {
        let is_wanted = self.compaction.is_automatic && self.ahead.is_some();
        let tokens = if is_wanted { self.tokens() } else { return };
        let room = self.room(&self.usual_plan());
        if !self.ahead.as_ref().is_some_and(|ahead| ahead.is_due(tokens, &room)) || self.has_notes() {
            return;
        }
        let standpoint = self.standpoint(messages);
        let covers = self.recorder.path().last().and_then(|entry| entry.head().uuid.clone());
        if let (Some(ahead), Some(covers)) = (&mut self.ahead, covers) {
            ahead.send(standpoint, covers);
        }
    }

    /// Returns what can stand for the conversation, up to an entry of it: a summary that was prepared, or the notes.
    pub(super) fn notes_for_compaction(&self) -> Option<Notes> {
        self.prepared_summary().or_else(|| self.notes.as_ref().and_then(NotesKeeper::current))
    }

    /// Returns the summary that was prepared for the conversation as it is.
    pub(super) fn prepared_summary(&self) -> Option<Notes> {
        let prepared = self.ahead.as_ref().and_then(Ahead::ready);
        prepared.filter(|notes| self.is_on_path(&notes.covers))
    }

    fn has_notes(&self) -> bool {
        let notes = self.notes.as_ref().and_then(NotesKeeper::current);
        notes.is_some_and(|notes| self.is_on_path(&notes.covers))
    }

    fn is_on_path(&self, id: &EntryId) -> bool {
        self.recorder.path().iter().any(|entry| entry.head().uuid.as_ref() == Some(id))
    }

    /// Returns how the conversation stands, for an agent that is to see it as the next request would.
    pub(super) fn standpoint(&self, messages: Option<&[Message]>) -> Standpoint {
        let messages = match messages {
            Some(messages) => messages.to_vec(),
            None => self.recorder.messages(&self.context_block()),
        };
        Standpoint {
            model: self.current_model(),
            config: self.model.clone(),
            messages,
            place: loci_tools::Host::place(self.host.as_ref()),
        }
    }

    /// Has memories looked for in what is new; the conversation does not wait. While a plan is made nothing is written,
    /// so nothing is looked for; it counts as new afterwards.
    pub(super) fn consider_memories(&mut self) {
        if self.state.get().permission.rulebook.mode == Mode::Plan {
            return;
        }
        let Some(mut extractor) = self.extractor.take() else { return };
        extractor.consider(self.recorder.path(), || self.standpoint(None));
        self.extractor = Some(extractor);
    }

    /// Takes note that the model has written a memory.
    pub(super) fn note_memory(&mut self) {
        if let Some(extractor) = &mut self.extractor {
            extractor.main_wrote();
        }
    }

    /// Tells the model when the date has changed since it was last told. The prefix stays as it is.
    pub(super) fn tell_date(&mut self) {
        let date = self.env.clock.local_date().to_string();
        if date != self.told_date {
            self.recorder.attachment(json!({"type": "date_change", "newDate": date}));
            self.told_date = date;
        }
    }

    pub(super) fn note_response(&mut self, n_calls: usize) {
        if let Some(notes) = &mut self.notes {
            notes.heard(n_calls);
        }
    }

    /// Takes note that the server may have cleared results, so that the context is smaller than it was.
    pub(super) fn note_clearing(&mut self) {
        let tokens = self.tokens();
        if let Some(notes) = &mut self.notes {
            notes.shortened(tokens);
        }
    }

    pub(super) fn note_compaction(&mut self) {
        let tokens = self.tokens();
        if let Some(notes) = &mut self.notes {
            notes.shortened(tokens);
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.shortened();
        }
        if let Some(folder) = &self.folder {
            folder.shortened();
        }
    }

    /// Waits for what is done beside the conversation, so long at most.
    pub(super) async fn wait_for_background(&mut self) {
        let limit = self.drain;
        let notes = async {
            if let Some(notes) = &self.notes {
                notes.drain(limit).await;
            }
        };
        let memories = async {
            if let Some(extractor) = &self.extractor {
                extractor.drain(limit).await;
            }
        };
        let summary = async {
            if let Some(ahead) = &self.ahead {
                ahead.stop().await;
            }
        };
        let fold = async {
            if let Some(folder) = &self.folder {
                folder.stop().await;
            }
        };
        tokio::join!(notes, memories, summary, fold);
    }
}
