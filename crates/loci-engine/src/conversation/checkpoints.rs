//! Recording what file history keeps: snapshots at prompts, checkpoints before calls change files.

use super::scope::ConversationScope;
use crate::conversation::recorder::Recorder;
use crate::session::file_history::{Checkpoints, SnapshotUpdate};
use loci_core::file_history::SnapshotEntry;
use loci_core::ids::EntryId;

use crate::event::EngineEvent;

impl Checkpoints {
    /// Records which version of each tracked file a prompt found.
    pub(super) fn record_prompt_snapshot(
        &self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        prompt: &EntryId,
    ) {
        let Some((entry, notes)) = self.begin_prompt(prompt) else { return };
        recorder.snapshot(&entry);
        scope.tell_all(notes);
    }

    /// Notes what background commands have changed by the end of a turn or of the session.
    pub(crate) fn record_background(&self, scope: &ConversationScope) {
        let notes = self.note_background(scope.host.has_background());
        scope.tell_all(notes);
    }

    /// Tells whether files can be brought back.
    pub(crate) fn has_checkpoints(&self) -> bool {
        self.keeper().is_some()
    }
}

impl Recorder {
    /// Records that a call is about to change a file that was not tracked.
    pub(super) fn record_checkpoint(&mut self, scope: &ConversationScope, update: SnapshotUpdate) {
        let snapshot = update.snapshot.clone();
        let written_for = self.entry_of(&update.call).unwrap_or_else(|| snapshot.message.clone());
        self.snapshot(&SnapshotEntry { written_for, is_update: true, snapshot });
        update.release();
        self.tell_warnings(scope);
    }
}

impl ConversationScope {
    fn tell_all(&self, notes: Vec<String>) {
        notes.into_iter().for_each(|note| self.tell(EngineEvent::Warning(note)));
    }
}
