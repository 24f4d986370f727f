//! A summary prepared ahead: asked for beside the conversation before the window is full, so that compacting it later
//! takes no time.
//!
//! It is kept in memory, with the last entry it covers. Whether it still fits is seen when it is needed: a conversation
//! that went another way since, or was compacted already, does not have that entry any more.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_context::{ContextRoom, Notes, summary_of, summary_request};
use loci_core::ids::EntryId;
use loci_storage::memory::Author;
use loci_tools::FileStates;
use tokio_util::sync::CancellationToken;

use super::{AgentEnd, AgentTask, BackgroundDeps, JobQueue, Policy};
use crate::conversation::host::lock;
use crate::conversation::{AgentSetup, ForkPoint};

/// The share of the window before the trigger at which the summary is asked for, in percent.
const AHEAD_PERCENT: u64 = 15;

/// Prepares summaries.
pub(crate) struct SummaryPrefetch {
    ready: Arc<Mutex<Option<Notes>>>,
    /// Whether one was asked for since the last compaction.
    has_asked: bool,
    queue: JobQueue<(ForkPoint, EntryId)>,
}

impl SummaryPrefetch {
    pub(crate) fn new(deps: BackgroundDeps) -> Self {
        let (deps, ready) = (Arc::new(deps), Arc::new(Mutex::new(None)));
        let place = Arc::clone(&ready);
        let queue = JobQueue::new(move |(fork_point, covers), cancel: CancellationToken| {
            let (deps, place) = (Arc::clone(&deps), Arc::clone(&place));
            async move {
                if let Some(text) = summary(&deps, fork_point, &cancel).await {
                    *lock(&place) = Some(Notes { text, covers });
                }
            }
        });
        Self { ready, has_asked: false, queue }
    }

    /// Tells whether a summary is to be prepared for a conversation of so many tokens.
    pub(crate) fn is_due(&self, tokens: u64, room: &ContextRoom) -> bool {
        !self.has_asked && begins_at(room) <= tokens && tokens < room.trigger()
    }

    /// Sends the agent out; `covers` is the last entry of the fork_point's messages.
    pub(crate) fn send(&mut self, fork_point: ForkPoint, covers: EntryId) {
        self.has_asked = true;
        self.queue.submit((fork_point, covers));
    }

    /// Returns what ends when the summary that is being written is there; nothing, when none is.
    pub(crate) fn under_way(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        self.queue.under_way()
    }

    /// Returns the summary, if it is there.
    pub(crate) fn ready(&self) -> Option<Notes> {
        lock(&self.ready).clone()
    }

    /// Takes note that the conversation was compacted.
    pub(crate) fn shortened(&mut self) {
        self.has_asked = false;
        *lock(&self.ready) = None;
    }

    /// Calls back what is under way: without a conversation there is nothing to compact.
    pub(crate) async fn stop(&self) {
        self.queue.drain(Duration::ZERO).await;
    }
}

/// Where there is little room for a conversation, half of it is there first.
fn begins_at(room: &ContextRoom) -> u64 {
    let trigger = room.trigger();
    let half = room.overhead + trigger.saturating_sub(room.overhead) / 2;
    trigger.saturating_sub(room.window.tokens * AHEAD_PERCENT / 100).max(half)
}

async fn summary(deps: &BackgroundDeps, fork_point: ForkPoint, cancel: &CancellationToken) -> Option<String> {
    let setup = AgentSetup {
        kind: "summary-ahead",
        point: fork_point,
        policy: Policy::Nothing,
        max_turns: 1,
        files: FileStates::default(),
        author: Author::Model,
        is_recorded: true,
    };
    let task = AgentTask { setup, instruction: summary_request(None) };
    let report = super::run(deps, task, cancel).await;
    summary_of(&report.text).filter(|_| report.end == AgentEnd::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_context::Window;

    #[test]
    fn a_summary_is_prepared_before_the_trigger_and_never_behind_it() {
        for (tokens, percent, overhead, expected) in [
            (200_000, None, 15_000, 137_000),
            (1_000_000, None, 15_000, 817_000),
            (100_000, None, 15_000, 52_000),
            (100_000, Some(10), 2_000, 5_000),
            (200_000, None, 170_000, 175_000),
        ] {
            let room = ContextRoom::new(Window { tokens, max_output: 32_000, percent }, overhead);
            assert_eq!(begins_at(&room), expected, "{tokens}");
        }
    }
}
