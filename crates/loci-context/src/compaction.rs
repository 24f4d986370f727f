//! Compacting a conversation: what is summarised, what is kept word for word, and what the model is asked.
//!
//! A conversation is a list of rounds: a prompt, then each response with the results of its calls. A compaction
//! summarises the older rounds and preserves the newest, so a call is never parted from its result nor reasoning
//! from its response. The transcript keeps every entry; only what is sent begins anew. An [`CompactionAttempt`] says what to do,
//! step by step; whoever holds it asks the model and records what comes of it.

mod attempt;
mod carryover;
mod chunks;
mod clip;
mod guard;
mod mechanical;
mod notes;
mod outline;
mod restored;
mod room;
mod rounds;
mod summary;

use std::ops::Range;
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::EntryId;

pub use attempt::{
    CompactionAttempt, CompactionInput, CompactionResult, CompactionStep, SummarySource, join_messages,
};
pub use carryover::CompactionCarryover;
pub(crate) use carryover::{is_fold, prompt};
pub(crate) use clip::{clip_tokens, head_chars};
pub use guard::CompactionGuard;
pub use notes::{Notes, plan_from_notes};
pub(crate) use restored::restored_text;
pub use restored::{Restorable, RestoreBudget, restored};
pub use room::{ContextRoom, RoomShares};
pub(crate) use rounds::rounds;
pub use summary::{summary_of, summary_request, summary_text};

/// Why a conversation is compacted, as the boundary says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// It has grown too long.
    Auto,
    /// The user wants it.
    Manual,
}

impl Trigger {
    /// Returns the trigger's name in the transcript.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
        }
    }
}

/// How much is kept word for word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepRecent {
    /// The newest round: before the window is full.
    LastRound,
    /// The newer half of the rounds: when the server has refused, so that the rest surely fits.
    NewerHalf,
}

/// What a compaction would do to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionPlan {
    /// Entries that the summary will stand for.
    pub summarised: Range<usize>,
    /// Entries that stay as they are, behind the summary.
    pub preserved: Range<usize>,
}

impl CompactionPlan {
    /// Returns the ids of the preserved entries, in order.
    pub fn preserved_ids(&self, path: &[Arc<Entry>]) -> Vec<EntryId> {
        path[self.preserved.clone()].iter().filter_map(|entry| entry.head().uuid.clone()).collect()
    }
}
