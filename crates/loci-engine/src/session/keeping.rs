//! Recording what file history keeps, and going back to it.

use loci_core::file_history::SnapshotEntry;
use loci_core::ids::EntryId;
use loci_storage::{OnConflict, RewindError, RewindPlan, RewindScene, apply_rewind, load, plan_rewind};

use super::Session;
use crate::event::{EngineEvent, FilesRewound};
use crate::file_history::SnapshotUpdate;

impl Session {
    /// Records which version of each tracked file a prompt found.
    pub(super) fn keep_prompt(&mut self, prompt: &EntryId) {
        let Some((entry, notes)) = self.checkpoints.begin_prompt(prompt) else { return };
        self.recorder.snapshot(&entry);
        self.tell_all(notes);
    }

    /// Records that a call is about to change a file that was not tracked.
    pub(super) fn keep_update(&mut self, update: SnapshotUpdate) {
        let snapshot = update.snapshot.clone();
        let written_for = self.recorder.entry_of(&update.call).unwrap_or_else(|| snapshot.message.clone());
        self.recorder.snapshot(&SnapshotEntry { written_for, is_update: true, snapshot });
        update.done();
        self.tell_trouble();
    }

    /// Notes what background commands have changed by the end of a turn or of the session.
    pub(super) fn keep_background(&mut self) {
        let notes = self.checkpoints.note_background(self.host.has_background());
        self.tell_all(notes);
    }

    /// Brings files back to what they were before a prompt, beside whatever else happens; the answer is an event.
    pub(super) fn rewind_files(&self, request: String, prompt: EntryId, is_trial: bool) {
        let events = self.events.clone();
        let identity = self.identity.get();
        let (env, home) = (self.env.clone(), self.home.clone());
        let is_on = self.checkpoints.keeper().is_some();
        tokio::task::spawn_blocking(move || {
            let scene =
                RewindScene { home: &home, env: &env, session: identity.id(), cwd: identity.original_cwd() };
            let outcome = match is_on {
                true => rewind(&scene, &identity.transcript_path(), &prompt, is_trial),
                false => Err("File rewinding is not enabled.".to_owned()),
            };
            // Without a listener there is nobody to answer.
            drop(events.send(EngineEvent::FilesRewound { request, outcome }));
        });
    }

    fn tell_all(&self, notes: Vec<String>) {
        notes.into_iter().for_each(|note| self.tell(EngineEvent::Trouble(note)));
    }
}

/// What someone else changed is left alone: nobody is here who could be asked.
fn rewind(
    scene: &RewindScene<'_>,
    transcript: &std::path::Path,
    prompt: &EntryId,
    is_trial: bool,
) -> Result<FilesRewound, String> {
    let entries = load(transcript).map_err(|error| error.to_string())?.entries;
    let plan = plan_rewind(scene, &entries, prompt).map_err(|error| told(&error))?;
    let mut answer = answer(&plan);
    if !is_trial {
        let rewound = apply_rewind(scene, plan, OnConflict::Keep, None).map_err(|error| told(&error))?;
        answer.changed = rewound.changed;
        answer.left = rewound.left;
    }
    Ok(answer)
}

fn answer(plan: &RewindPlan) -> FilesRewound {
    let path = |step: &loci_core::file_history::Step| step.path.as_path().to_owned();
    FilesRewound {
        changed: plan.steps.iter().map(path).collect(),
        left: plan.conflicts.iter().map(|(step, why)| (path(step), why.reason().to_owned())).collect(),
        insertions: plan.insertions,
        deletions: plan.deletions,
    }
}

fn told(error: &RewindError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}
