//! Agents that work beside the conversation and never delay it.
//!
//! A background agent is a [`Conversation`] forked from the main one: it is asked with the very prefix of that (system
//! prompt, tools, messages), so that the prompt cache serves it, and what it is to do is appended. Its calls are judged by
//! a [`Policy`] first and by the permission rules second, and nobody is ever asked. It writes nothing to the main
//! transcript: what it said is kept in a side file, and what it cost is counted with the session. It has no hold on the
//! session, so it can start no other agent and compact nothing.

mod budget;
mod collapser;
mod job_queue;
mod latest_job;
mod memory_extractor;
mod notes;
mod policy;
mod summary_prefetch;

use std::sync::Arc;

use loci_core::entry::draft::Stamp;
use loci_core::stream::{Failure, FailureKind};
use loci_core::tool::PathEffect;
use loci_tools::Host;
use tokio_util::sync::CancellationToken;

use crate::conversation::{AgentSetup, Conversation, SessionContext, TurnInput};
use crate::event::TurnReport;
use crate::turn::Outcome;
pub(crate) use budget::{BackgroundBudget, Reservation};
pub(crate) use collapser::{CollapsedStretch, Collapser};
pub(crate) use job_queue::JobQueue;
pub(crate) use memory_extractor::MemoryExtractor;
pub(crate) use notes::NotesUpdater;
pub(crate) use policy::{Policy, admit};
pub(crate) use summary_prefetch::SummaryPrefetch;

/// What background agents share with the conversation that they work for.
#[derive(Clone)]
pub(crate) struct BackgroundDeps {
    pub(crate) ctx: Arc<SessionContext>,
    pub(crate) stamp: Stamp,
    pub(crate) max_budget_usd: Option<f64>,
}

/// What an agent is sent out for.
pub(crate) struct AgentTask {
    pub(crate) setup: AgentSetup,
    pub(crate) instruction: String,
}

/// What came of a task.
#[derive(Debug)]
pub(crate) struct AgentReport {
    /// Files that its calls changed.
    pub(crate) written: Vec<PathEffect>,
    /// What it said last.
    pub(crate) text: String,
    pub(crate) end: AgentEnd,
}

/// How a task ended.
#[derive(Debug, PartialEq)]
pub(crate) enum AgentEnd {
    /// The agent was done.
    Done,
    /// It made calls until its last turn.
    OutOfTurns,
    /// The session may not spend more.
    OutOfBudget,
    /// The API failed; the next task tries again.
    Failed(Failure),
    /// It was called back.
    Cancelled,
}

/// Sends an agent out and waits for it.
pub(crate) async fn run(deps: &BackgroundDeps, task: AgentTask, cancel: &CancellationToken) -> AgentReport {
    if deps.is_out_of_budget() {
        return AgentReport { written: Vec::new(), text: String::new(), end: AgentEnd::OutOfBudget };
    }
    let mut conversation = Conversation::fork(deps, task.setup);
    let instruction = format!("<system-reminder>\n{}\n</system-reminder>", task.instruction);
    let report = conversation.run_turn(TurnInput::Instruction(instruction), cancel).await;
    conversation.scope.host.tasks().shutdown().await;
    conversation.recorder.close();
    let written = conversation.written().to_vec();
    AgentReport { written, end: AgentEnd::from_report(&report), text: report.text }
}

impl AgentEnd {
    fn from_report(report: &TurnReport) -> Self {
        match &report.outcome {
            Outcome::Completed | Outcome::Structured(_) => Self::Done,
            // An answer that the output limit cut is all that there will be.
            Outcome::MaxTurns(_) if report.stop_reason.as_deref() == Some("max_tokens") => Self::Done,
            Outcome::MaxTurns(_) => Self::OutOfTurns,
            Outcome::MaxBudget(_) => Self::OutOfBudget,
            Outcome::ApiError(failure) => Self::Failed(failure.clone()),
            // Words of refusal are no notes and no summary.
            Outcome::Refused
            | Outcome::Blocked(_)
            | Outcome::Halted(_)
            | Outcome::CommandFailed
            | Outcome::MaxStructuredAttempts(_)
            | Outcome::Deferred(_)
            | Outcome::DeferredUnavailable(_) => {
                Self::Failed(Failure::new(FailureKind::InvalidRequest, "The model declined to do it"))
            }
            Outcome::Interrupted(_) => Self::Cancelled,
        }
    }
}

impl BackgroundDeps {
    pub(crate) fn is_out_of_budget(&self) -> bool {
        let spent = self.ctx.spent_usd();
        self.max_budget_usd.is_some_and(|limit| spent >= limit)
    }
}
