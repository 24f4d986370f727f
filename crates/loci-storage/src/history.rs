//! History of a project's files: what each call changed, kept so that it can be shown and taken back.
//!
//! - `file_history` keeps a backup of a file before a tool changes it; `tree_history` notices what commands changed in
//!   the whole project tree, with contents in a blob store that all sessions share.
//! - `rewind` plans and applies going back to a prompt: files, conversation or both.
//! - `blame_diff` says which call wrote a line (blame) and what changed between two prompts (diff).
//! - `scratch` copies a project, for calls that are tried in the copy.
//!
//! `docs/design/file-history.md` has the decisions and the invariants; what is pure of them is in `loci_core::file_history`.

mod blame_diff;
pub(crate) mod file_history;
pub(crate) mod rewind;
mod scratch;
pub(crate) mod tree_history;

pub use blame_diff::{BlamedLine, HistoryQueryError, PathDiff, blame_file, diff_points};
pub use file_history::{BackupError, FileHistory};
pub use rewind::{
    ConversationRewind, OnConflict, RewindContext, RewindError, RewindPlan, RewindReport, TurnbackSummary,
    apply_rewind, plan_rewind, plan_undo, recover_rewinds,
};
pub use scratch::{ScratchCopy, ScratchError, ScratchLimits};
pub use tree_history::{
    BlobStore, BlobUsage, ChangeOrigin, CollectError, CollectReport, TreeHistory, TreeLimits, collect_blobs,
};
