//! Bringing files back to what they were before a prompt.

use loci_core::ids::EntryId;
use loci_storage::history::{OnConflict, RewindContext, RewindError, RewindPlan, apply_rewind, plan_rewind};
use loci_storage::sessions::load_transcript;

use super::Session;
use crate::event::{EngineEvent, FilesRewound};

impl Session {
    /// Brings files back to what they were before a prompt, beside whatever else happens; the answer is an event.
    pub(super) fn rewind_files(&self, request: String, prompt: EntryId, is_trial: bool) {
        let events = self.conversation.scope.ctx.events.clone();
        let identity = self.conversation.scope.ctx.identity.get();
        let (env, home) = (
            self.conversation.scope.ctx.services.env.clone(),
            self.conversation.scope.ctx.services.home.clone(),
        );
        let is_on = self.conversation.checkpoints.has_checkpoints();
        tokio::task::spawn_blocking(move || {
            let scene = RewindContext {
                home: &home,
                env: &env,
                session: identity.id(),
                cwd: identity.original_cwd(),
            };
            let outcome = match is_on {
                true => rewind(&scene, &identity.transcript_path(), &prompt, is_trial),
                false => Err("File rewinding is not enabled.".to_owned()),
            };
            // Without a listener there is nobody to answer.
            drop(events.send(EngineEvent::FilesRewound { request, outcome }));
        });
    }
}

/// What someone else changed is left alone: nobody is here who could be asked.
fn rewind(
    scene: &RewindContext<'_>,
    transcript: &std::path::Path,
    prompt: &EntryId,
    is_trial: bool,
) -> Result<FilesRewound, String> {
    let entries = load_transcript(transcript).map_err(|error| error.to_string())?.entries;
    let plan = plan_rewind(scene, &entries, prompt).map_err(|error| rewind_error_text(&error))?;
    let mut answer = answer(&plan);
    if !is_trial {
        let rewound =
            apply_rewind(scene, plan, OnConflict::Keep, None).map_err(|error| rewind_error_text(&error))?;
        answer.changed = rewound.changed;
        answer.left = rewound.left;
    }
    Ok(answer)
}

fn answer(plan: &RewindPlan) -> FilesRewound {
    let path = |step: &loci_core::file_history::RewindStep| step.path.as_path().to_owned();
    FilesRewound {
        changed: plan.steps.iter().map(path).collect(),
        left: plan.conflicts.iter().map(|(step, why)| (path(step), why.reason().to_owned())).collect(),
        insertions: plan.insertions,
        deletions: plan.deletions,
        ignored: plan.ignored.clone(),
    }
}

fn rewind_error_text(error: &RewindError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}
