//! Folding a stretch of the conversation: its summary is asked for beside the conversation, which goes on meanwhile.

use std::future::Future;
use std::sync::{Arc, Mutex};

use loci_context::{FoldPlan, fold_request, fold_summary, summary_of, summary_request};
use loci_core::ids::EntryId;
use loci_storage::memory::Author;
use loci_tools::FileStates;
use tokio_util::sync::CancellationToken;

use super::{AgentEnd, AgentTask, BackgroundDeps, JobQueue, Policy};
use crate::conversation::host::lock;
use crate::conversation::{AgentSetup, ForkPoint};

/// Failures in a row after which nothing is folded until the conversation was compacted.
const MOST_FAILURES: u32 = 3;

/// Folds stretches, one at a time.
pub(crate) struct Collapser {
    made: Arc<Mutex<Made>>,
    queue: JobQueue<(ForkPoint, FoldPlan)>,
}

/// A stretch and what stands for it.
#[derive(Debug, Clone)]
pub(crate) struct CollapsedStretch {
    pub(crate) first: EntryId,
    pub(crate) last: EntryId,
    pub(crate) summary: String,
    pub(crate) said_tokens: u64,
}

/// What came of it so far.
#[derive(Default)]
struct Made {
    ready: Option<CollapsedStretch>,
    failures: u32,
}

impl Collapser {
    pub(crate) fn new(deps: BackgroundDeps) -> Self {
        let (deps, made) = (Arc::new(deps), Arc::new(Mutex::new(Made::default())));
        let place = Arc::clone(&made);
        let queue =
            JobQueue::new(move |(fork_point, plan): (ForkPoint, FoldPlan), cancel: CancellationToken| {
                let (deps, place) = (Arc::clone(&deps), Arc::clone(&place));
                async move {
                    let summary = summary(&deps, fork_point, plan.most_tokens, &cancel).await;
                    let mut made = lock(&place);
                    match summary {
                        Some(summary) => {
                            let FoldPlan { first, last, said_tokens, .. } = plan;
                            let ready = Some(CollapsedStretch { first, last, summary, said_tokens });
                            *made = Made { ready, failures: 0 };
                        }
                        None => made.failures += 1,
                    }
                }
            });
        Self { made, queue }
    }

    /// Tells whether a stretch may be folded: nothing is under way, nothing is ready, and it has not failed too often.
    pub(crate) fn is_free(&self) -> bool {
        let made = lock(&self.made);
        made.ready.is_none() && made.failures < MOST_FAILURES && self.queue.under_way().is_none()
    }

    /// Sends the agent out.
    pub(crate) fn send(&self, fork_point: ForkPoint, plan: FoldPlan) {
        self.queue.submit((fork_point, plan));
    }

    /// Returns what ends when the stretch at hand is folded; nothing, when none is.
    pub(crate) fn under_way(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        self.queue.under_way()
    }

    /// Takes what is ready.
    pub(crate) fn take(&self) -> Option<CollapsedStretch> {
        lock(&self.made).ready.take()
    }

    /// Takes note that the conversation was compacted.
    pub(crate) fn shortened(&self) {
        *lock(&self.made) = Made::default();
    }

    /// Calls back what is under way.
    pub(crate) async fn stop(&self) {
        self.queue.drain(std::time::Duration::ZERO).await;
    }
}

async fn summary(
    deps: &BackgroundDeps,
    fork_point: ForkPoint,
    most_tokens: u64,
    cancel: &CancellationToken,
) -> Option<String> {
    let setup = AgentSetup {
        kind: "context-collapse",
        point: fork_point,
        policy: Policy::Nothing,
        max_turns: 1,
        files: FileStates::default(),
        author: Author::Model,
        is_recorded: true,
    };
    let task = AgentTask { setup, instruction: summary_request(Some(fold_request())) };
    let report = super::run(deps, task, cancel).await;
    let summary = summary_of(&report.text).filter(|_| report.end == AgentEnd::Done)?;
    Some(fold_summary(&summary, most_tokens))
}
