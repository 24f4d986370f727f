//! Recording what file history keeps.

use loci_core::file_history::SnapshotEntry;
use loci_core::ids::EntryId;

use super::Session;
use crate::event::EngineEvent;
use crate::file_history::SnapshotUpdate;

impl Session {
    /// Records which version of each tracked file a prompt found.
    pub(super) fn keep_prompt(&mut self, prompt: &EntryId) {
        let Some((entry, problems)) = self.checkpoints.begin_prompt(prompt) else { return };
        self.recorder.snapshot(&entry);
        for problem in problems {
            let cause = &problem.source;
            self.tell(EngineEvent::Trouble(format!("{problem}: {cause}")));
        }
    }

    /// Records that a call is about to change a file that was not tracked.
    pub(super) fn keep_update(&mut self, update: SnapshotUpdate) {
        let snapshot = update.snapshot.clone();
        let written_for = self.recorder.entry_of(&update.call).unwrap_or_else(|| snapshot.message.clone());
        self.recorder.snapshot(&SnapshotEntry { written_for, is_update: true, snapshot });
        update.done();
        self.tell_trouble();
    }
}
