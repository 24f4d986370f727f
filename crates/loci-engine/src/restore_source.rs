//! What a compaction brings back besides files: a seam for skills that were used and agents that run.
//!
//! The session asks every source when it compacts. What runs is named with the background commands, in the summary's
//! company; what was used is recorded as attachments behind it, so that a resumed session sends it, too.

use loci_context::{Restorable, RestoreBudget};

/// A kind of thing that outlasts a compaction.
pub trait RestoreSource: Send + Sync {
    /// Returns what runs right now, a line each with its id.
    fn running(&self) -> Vec<String>;

    /// Returns what was used, the newest first, and how much of it may come back.
    fn used(&self) -> (Vec<Restorable>, RestoreBudget);
}
