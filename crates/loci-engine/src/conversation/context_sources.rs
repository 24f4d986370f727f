//! What a conversation is told beside what people and tools say: where it comes from, and how much of it is told by now.

use std::path::PathBuf;
use std::sync::Arc;

use loci_core::entry::Entry;

use super::{InstructionState, Prelude};
use crate::conversation::request_base::RequestBase;

/// What stands before a conversation's entries in every request, and what the model and hooks were last told.
pub(crate) struct ContextSources {
    pub(super) base: Arc<RequestBase>,
    pub(super) instructions: InstructionState,
    /// What stands before its own entries in every request.
    pub(super) prelude: Prelude,
    /// What came before this process, until the first call needs to know what was read.
    pub(super) past: Option<Vec<Arc<Entry>>>,
    /// Prompts since the model last read what its output style is.
    pub(super) n_prompts_in_style: u32,
    /// Where the shell stood when hooks were last told.
    pub(super) told_cwd: Option<PathBuf>,
    /// Whether hooks were told that an agent begins.
    pub(super) has_told_begin: bool,
}

impl ContextSources {
    pub(super) fn new(
        base: Arc<RequestBase>,
        instructions: InstructionState,
        prelude: Prelude,
        past: Option<Vec<Arc<Entry>>>,
    ) -> Self {
        Self {
            base,
            instructions,
            prelude,
            past,
            n_prompts_in_style: 0,
            told_cwd: None,
            has_told_begin: false,
        }
    }
}
