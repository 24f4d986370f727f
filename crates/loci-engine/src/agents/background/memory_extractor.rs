//! Auto memory: an agent that looks for what outlasts the session, once the model has answered.
//!
//! The extractor is a value: its cursor says how far it has looked. While an agent is out, the latest request waits;
//! one trailing run takes it up. Where the model has written memories itself since the cursor, there is nothing to
//! look for, and the cursor moves on.

use std::sync::Arc;
use std::time::Duration;

use loci_stdx::read_regular_to_string;

use loci_context::{Projection, estimate_messages, extraction_instruction};
use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_storage::memory::{Author, MEMORY_INDEX, MemoryArea};
use loci_tools::{FileState, FileStates};
use tokio_util::sync::CancellationToken;

use super::{AgentTask, BackgroundDeps, JobQueue, Policy, Reservation};
use crate::conversation::{AgentSetup, ForkPoint};
use crate::session::config::ExtractionConfig;
use crate::session::memory::MemoryService;

const MAX_TURNS: u32 = 5;

/// Looks for memories when the model has answered.
pub(crate) struct MemoryExtractor {
    least_tokens: u64,
    /// The last entry that was looked at.
    cursor: Option<EntryId>,
    /// Whether the model has written memories since then.
    has_written: bool,
    queue: JobQueue<(ForkPoint, Reservation)>,
}

/// What is to be done when the model has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Too little was said to be worth a request; it counts next time.
    Wait,
    /// The model has seen to it itself.
    Skip,
    /// An agent looks.
    Look,
}

fn next(has_written: bool, new_tokens: u64, least_tokens: u64) -> Next {
    if has_written {
        Next::Skip
    } else if new_tokens < least_tokens {
        Next::Wait
    } else {
        Next::Look
    }
}

impl MemoryExtractor {
    /// Begins behind what an earlier process has said.
    pub(crate) fn new(
        deps: BackgroundDeps,
        memory: Arc<MemoryService>,
        config: ExtractionConfig,
        past: &[Arc<Entry>],
    ) -> Self {
        let deps = Arc::new(deps);
        let queue = JobQueue::new(
            move |(fork_point, reservation): (ForkPoint, Reservation), cancel: CancellationToken| {
                let (deps, memory) = (Arc::clone(&deps), Arc::clone(&memory));
                async move {
                    let task = task(&memory, config, fork_point);
                    super::run(&deps, task, &cancel).await;
                    drop(reservation);
                }
            },
        );
        let cursor = past.last().and_then(|entry| entry.head().uuid.clone());
        Self { least_tokens: config.least_tokens, cursor, has_written: false, queue }
    }

    /// Takes note that the model wrote a memory itself.
    pub(crate) fn main_wrote(&mut self) {
        self.has_written = true;
    }

    /// Looks for memories in what is new, if that is worth it; `prepare` has nothing where it would cost too much now.
    pub(crate) fn consider(
        &mut self,
        path: &[Arc<Entry>],
        prepare: impl FnOnce() -> Option<(ForkPoint, Reservation)>,
    ) {
        match next(self.has_written, self.new_tokens(path), self.least_tokens) {
            Next::Wait => return,
            Next::Skip => {}
            Next::Look => match prepare() {
                Some(prepared) => self.queue.submit(prepared),
                None => return,
            },
        }
        self.has_written = false;
        self.cursor = path.last().and_then(|entry| entry.head().uuid.clone());
    }

    fn new_tokens(&self, path: &[Arc<Entry>]) -> u64 {
        let known = path.iter().rposition(|entry| entry.head().uuid == self.cursor && self.cursor.is_some());
        let new = &path[known.map_or(0, |idx| idx + 1)..];
        estimate_messages(&Projection::from_path(new.iter().map(Arc::as_ref)).messages(None))
    }

    /// Waits for everything under way, so long at most.
    pub(crate) async fn drain(&self, limit: Duration) -> bool {
        self.queue.drain(limit).await
    }
}

fn task(memory: &MemoryService, config: ExtractionConfig, fork_point: ForkPoint) -> AgentTask {
    let shelf = if config.is_proposing { MemoryArea::Pending } else { MemoryArea::Memory };
    let dir = memory.real_dir(shelf);
    let index = memory.index();
    let shown_dir = dir.display().to_string();
    let instruction = extraction_instruction(&shown_dir, &index, config.is_proposing);
    let setup = AgentSetup {
        kind: "memory-extraction",
        point: fork_point,
        policy: Policy::Memory(dir.clone()),
        max_turns: MAX_TURNS,
        files: already_read(&dir.join(MEMORY_INDEX), index),
        author: Author::Extraction,
        is_recorded: true,
    };
    AgentTask { setup, instruction }
}

/// The agent is shown the index; when that is all of the file, it has read it.
fn already_read(path: &std::path::Path, index: String) -> FileStates {
    let mut files = FileStates::default();
    let is_all = read_regular_to_string(path).is_ok_and(|text| text == index);
    if let (true, Ok(modified)) = (is_all, std::fs::metadata(path).and_then(|it| it.modified())) {
        let state = FileState { content: index, modified, offset: None, limit: None, is_partial_view: false };
        files.insert(path.to_owned(), state);
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_looks_when_enough_is_new_and_the_model_wrote_nothing() {
        for (has_written, new, least, expected) in [
            (false, 999, 1_000, Next::Wait),
            (false, 1_000, 1_000, Next::Look),
            (false, 0, 0, Next::Look),
            (true, 5_000, 1_000, Next::Skip),
            (true, 10, 1_000, Next::Skip),
        ] {
            assert_eq!(next(has_written, new, least), expected, "{has_written} {new} {least}");
        }
    }
}
