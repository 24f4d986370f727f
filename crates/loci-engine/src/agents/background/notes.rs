//! Session memory: running notes of the conversation, kept by an agent beside it.

use std::sync::Arc;
use std::time::Duration;

use loci_context::{
    NOTES_TEMPLATE, Notes, NotesPace, SinceNotes, bounded_notes, notes_content, notes_instruction,
};
use loci_core::ids::EntryId;
use loci_core::session::SessionIdentity;
use loci_stdx::rfc3339_millis;
use loci_storage::memory::Author;
use loci_storage::sessions::{NotesCoverage, NotesError, SessionNotes};
use loci_tools::{FileState, FileStates, real_path};
use tokio_util::sync::CancellationToken;

use super::{AgentEnd, AgentTask, BackgroundDeps, JobQueue, Policy, Reservation};
use crate::conversation::{AgentSetup, ForkPoint};

/// One round to think, one to mend edits that did not fit, one to stop.
const MAX_TURNS: u32 = 4;

/// Keeps the notes of one session.
pub(crate) struct NotesUpdater {
    pace: NotesPace,
    since: SinceNotes,
    /// Whether the last response made no calls.
    is_pause: bool,
    notes: SessionNotes,
    queue: JobQueue<Job>,
}

/// Bring the notes up to date with this.
struct Job {
    fork_point: ForkPoint,
    covers: EntryId,
    tokens: u64,
    /// What it is expected to cost, until it is done.
    _reservation: Reservation,
}

impl NotesUpdater {
    /// Goes on with the notes that are there.
    pub(crate) fn new(deps: BackgroundDeps, identity: &SessionIdentity, pace: NotesPace) -> Self {
        let notes = SessionNotes::in_dir(&identity.companion_dir());
        let since = notes.covered().map(|it| SinceNotes::resumed(it.tokens)).unwrap_or_default();
        let (deps, kept) = (Arc::new(deps), notes.clone());
        let queue = JobQueue::new(move |job, cancel| {
            let (deps, notes) = (Arc::clone(&deps), kept.clone());
            async move {
                // What could not be noted is noted next time; the transcript has it all.
                drop(update(&deps, &notes, job, &cancel).await);
            }
        });
        Self { pace, since, is_pause: false, notes, queue }
    }

    /// Takes note of a response.
    pub(crate) fn on_response(&mut self, n_calls: usize) {
        self.is_pause = n_calls == 0;
        self.since.on_response(n_calls);
    }

    /// Takes note that the conversation is shorter now.
    pub(crate) fn shortened(&mut self, tokens: u64) {
        self.since.shortened(tokens);
    }

    /// Tells whether the notes are to be brought up to date.
    pub(crate) fn is_due(&self, tokens: u64) -> bool {
        self.since.is_due(&self.pace, tokens, self.is_pause)
    }

    /// Sends the agent out; `covers` is the last entry of the fork_point's messages.
    pub(crate) fn send(
        &mut self,
        fork_point: ForkPoint,
        covers: EntryId,
        tokens: u64,
        reservation: Reservation,
    ) {
        self.since.record_request(tokens);
        self.queue.submit(Job { fork_point, covers, tokens, _reservation: reservation });
    }

    /// Returns what ends when the notes that are being written are there; nothing, when none are.
    pub(crate) fn under_way(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        self.queue.under_way()
    }

    /// Returns what was noted and the last entry that is covered.
    pub(crate) fn current(&self) -> Option<Notes> {
        let covered = self.notes.covered()?;
        let text = self.notes.read().ok().flatten()?;
        let text = bounded_notes(&text).unwrap_or(text);
        Some(Notes { text: notes_content(&text)?, covers: covered.covers })
    }

    /// Waits for what runs, so long at most; tells whether all of it was done.
    pub(crate) async fn drain(&self, limit: Duration) -> bool {
        self.queue.drain(limit).await
    }
}

async fn update(
    deps: &BackgroundDeps,
    notes: &SessionNotes,
    job: Job,
    cancel: &CancellationToken,
) -> Result<(), NotesError> {
    let text = notes.begin(NOTES_TEMPLATE)?;
    let file = real_path(&notes.file());
    let instruction = notes_instruction(&file.display().to_string(), &text);
    let setup = AgentSetup {
        kind: "session-memory",
        point: job.fork_point,
        policy: Policy::OneFile(file.clone()),
        max_turns: MAX_TURNS,
        files: already_read(&file, text),
        author: Author::Model,
        is_recorded: true,
    };
    let task = AgentTask { setup, instruction };
    let report = super::run(deps, task, cancel).await;
    let is_whole = matches!(report.end, AgentEnd::Done | AgentEnd::OutOfTurns);
    // An agent that changed nothing has covered nothing.
    if !is_whole || report.written.is_empty() {
        return Ok(());
    }
    if let Some(bounded) = notes.read()?.as_deref().and_then(bounded_notes) {
        notes.write(&bounded)?;
    }
    let at = rfc3339_millis(deps.ctx.services.env.clock.now());
    notes.set_covered(&NotesCoverage { covers: job.covers, tokens: job.tokens, at })
}

/// The agent is shown the notes, so it has read them.
fn already_read(file: &std::path::Path, content: String) -> FileStates {
    let mut files = FileStates::default();
    let modified = std::fs::metadata(file).and_then(|metadata| metadata.modified());
    if let Ok(modified) = modified {
        let state = FileState { content, modified, offset: None, limit: None, is_partial_view: false };
        files.insert(file.to_owned(), state);
    }
    files
}
