//! A say in compactions: asked before each, told after each.
//!
//! What is asked may add to what the summary is asked for, or say no. A no to a compaction that was only prudent lets the
//! conversation go on as it is; where the server has refused it already, that refusal is what the user hears.

use std::future::Future;
use std::pin::Pin;

use loci_context::Trigger;

/// A compaction that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeforeCompaction {
    /// Who wants it.
    pub trigger: Trigger,
    /// What the user wants to be kept above all.
    pub instructions: Option<String>,
}

/// Whether it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionLeave {
    /// Yes; the summary is asked for with these instructions, too.
    Go {
        /// What to add.
        instructions: Option<String>,
    },
    /// No.
    Block {
        /// Why, for the user.
        reason: String,
    },
}

/// A compaction that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AfterCompaction {
    /// Who wanted it.
    pub trigger: Trigger,
    /// What stands for the earlier conversation now.
    pub summary: String,
}

/// The answer, when it is there.
pub type LeaveFuture = Pin<Box<dyn Future<Output = CompactionLeave> + Send>>;
/// What the user is told of it, when it is over.
pub type ToldFuture = Pin<Box<dyn Future<Output = Vec<String>> + Send>>;

/// Whoever has a say in compactions. The conversation waits for both; an interrupt does not.
pub trait CompactionHooks: Send + Sync {
    /// Asked before each compaction.
    fn before(&self, compaction: BeforeCompaction) -> LeaveFuture;

    /// Told after each compaction that was made.
    fn after(&self, compaction: AfterCompaction) -> ToldFuture;
}
