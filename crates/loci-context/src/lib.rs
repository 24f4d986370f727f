//! What the model sees: the system prompt and the view of a transcript.
//!
//! The crate is pure. The transcript is the truth; what is sent is a projection of it, and the same transcript
//! always gives the same bytes, whether it was just written or loaded again, because both roads go through
//! [`Projection`]. Everything else put before the model is a named [`Fragment`] with a bound.

mod budget;
mod clearing;
mod collapse;
mod compaction;
mod fragment;
mod ledger;
mod memory;
mod pipeline;
mod projection;
mod replaced;
mod server_clearing;
mod session_notes;
mod tokens;
mod usage;
mod weight;

pub use budget::ResultBudget;
pub use clearing::CLEARED;
pub use collapse::{CollapseThresholds, Fold, FoldPlan, fold_request, fold_summary, plan_fold};
pub use compaction::{
    CompactionAttempt, CompactionCarryover, CompactionGuard, CompactionInput, CompactionPlan,
    CompactionResult, CompactionStep, ContextRoom, KeepRecent, Notes, Restorable, RestoreBudget, RoomShares,
    SummarySource, Trigger, join_messages, plan_from_notes, restored, summary_of, summary_request,
    summary_text,
};
pub use fragment::{
    AgentMemory, AgentPrompt, EnvironmentContext, Fragment, GitContext, Instruction, PromptParts,
    ServerInstructions, StylePrompt, excluded_sections, system_prompt, user_context,
};
pub use ledger::context_tokens;
pub use loci_core::window::{Fullness, Level, Thresholds, Window};
pub use memory::{
    ContentHash, EntryName, EntryNameError, Flag, Hashes, INDEX_BYTES, INDEX_LINES, IndexLevel, IndexLine,
    MemoryFile, MemoryKind, Mention, Pull, Push, SecretFound, TEAM_DIR, TEAM_ENTRIES, TEAM_ENTRY_BYTES,
    case_clashes, contradictions, extraction_instruction, find_secrets, in_form_of, index_level, index_line,
    index_lines, mentions, most_related, pull_plan, push_plan, render_index, same_subject, team_index,
    with_index_line, with_modified_time, without_bom, without_index_lines,
};
pub use pipeline::{ContextAction, ContextState, next_context_action};
pub use projection::Projection;
pub use replaced::{Clearing, Replaced, Replacement};
pub use server_clearing::ServerClearing;
pub use session_notes::{
    NOTES_TEMPLATE, NOTES_TOKENS, NotesPace, SECTION_TOKENS, SinceNotes, bounded_notes, notes_content,
    notes_instruction,
};
pub use tokens::{estimate_messages, json_tokens, prose_tokens};
pub use usage::{ContextCategory, ContextCell, ContextItem, ContextUsage, conversation_items};
pub use weight::estimate_path;
