//! What came of a replay.

use loci_core::ids::{EntryId, ToolUseId};
use serde_json::Value;

/// What came of a replay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplayReport {
    /// The requests, in order.
    pub requests: Vec<RequestCheck>,
    /// The calls whose results the session has, in the order of those.
    pub calls: Vec<CallCheck>,
    /// What was not played but taken over from the recording.
    pub taken_over: Vec<TakenOver>,
    /// How often the conversation was compacted; what follows begins from the recorded summary.
    pub n_compactions: usize,
    /// What the recording has no answer to, at its end or before a compaction.
    pub n_unanswered: usize,
    /// Results that were recorded with their keys in another order than ours; they are compared in ours.
    pub n_reordered: usize,
    /// Turns that went otherwise than recorded, in words.
    pub derailed: Vec<String>,
}

impl ReplayReport {
    /// Returns true when anything is not as it was recorded.
    pub fn differs(&self) -> bool {
        !self.derailed.is_empty()
            || self.requests.iter().any(|request| request.difference.is_some())
            || self.calls.iter().any(|call| matches!(call.outcome, CallOutcome::Differs { .. }))
    }
}

/// A request of the replay, compared with what the recording says was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestCheck {
    /// The entry that begins the answer to it.
    pub answer: Option<EntryId>,
    /// How many messages it has.
    pub n_messages: usize,
    /// The hash of the messages that were sent now.
    pub sha256: String,
    /// The hash of those that the recording says were sent.
    pub recorded_sha256: String,
    /// Where the messages differ first.
    pub difference: Option<String>,
}

/// A call, and what became of it now.
#[derive(Debug, Clone, PartialEq)]
pub struct CallCheck {
    /// The call's id.
    pub id: ToolUseId,
    /// The tool.
    pub tool: String,
    /// The recorded arguments.
    pub input: Value,
    /// What became of it.
    pub outcome: CallOutcome,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// It was run, and the result is the recorded one.
    Same,
    /// It was run, and the result is another.
    Differs {
        /// From the recorded result to the one there is now.
        diff: String,
    },
    /// It was not run.
    NotRun {
        /// Why.
        reason: String,
    },
    /// Nothing was to be run.
    Recorded,
}

/// Entries that no input of a session brings about, put in its past instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenOver {
    /// The first of them.
    pub first: Option<EntryId>,
    /// How many there are.
    pub n_entries: usize,
}
