//! Recording what file history keeps: snapshots at prompts, checkpoints before calls change files.

use loci_core::file_history::SnapshotEntry;
use loci_core::ids::EntryId;

use super::Conversation;
use crate::event::EngineEvent;
use crate::session::file_history::SnapshotUpdate;

impl Conversation {
    /// Records which version of each tracked file a prompt found.
    pub(super) fn record_prompt_snapshot(&mut self, prompt: &EntryId) {
        let Some((entry, notes)) = self.checkpoints.begin_prompt(prompt) else { return };
        self.recorder.snapshot(&entry);
        self.tell_all(notes);
    }

    /// Records that a call is about to change a file that was not tracked.
    pub(super) fn record_checkpoint(&mut self, update: SnapshotUpdate) {
        let snapshot = update.snapshot.clone();
        let written_for = self.recorder.entry_of(&update.call).unwrap_or_else(|| snapshot.message.clone());
        self.recorder.snapshot(&SnapshotEntry { written_for, is_update: true, snapshot });
        update.release();
        self.tell_warnings();
    }

    /// Notes what background commands have changed by the end of a turn or of the session.
    pub(crate) fn record_background(&mut self) {
        let notes = self.checkpoints.note_background(self.host.has_background());
        self.tell_all(notes);
    }

    /// Tells whether files can be brought back.
    pub(crate) fn has_checkpoints(&self) -> bool {
        self.checkpoints.keeper().is_some()
    }

    fn tell_all(&self, notes: Vec<String>) {
        notes.into_iter().for_each(|note| self.tell(EngineEvent::Warning(note)));
    }
}
