//! History of a project's files: what each call changed, kept so that it can be shown and taken back.
//!
//! - `file_history` keeps a backup of a file before a tool changes it; `tree_history` notices what commands changed in
//!   the whole project tree, with contents in a blob store that all sessions share.
//! - `rewind` plans and applies going back to a prompt: files, conversation or both.
//! - `look_back` says which call wrote a line (blame) and what changed between two prompts (diff).
//! - `scratch` copies a project, for calls that are tried in the copy.
//!
//! `docs/design/file-history.md` has the decisions and the invariants; what is pure of them is in `loci_core::file_history`.

pub(crate) mod file_history;
mod look_back;
pub(crate) mod rewind;
mod scratch;
pub(crate) mod tree_history;

pub use file_history::{FileHistory, KeepError};
pub use look_back::{Blamed, LookBackError, PathDiff, blame_file, diff_points};
pub use rewind::{
    ConversationRewind, OnConflict, RewindError, RewindPlan, RewindScene, Rewound, apply_rewind, plan_rewind,
    plan_undo, recover_rewinds,
};
pub use scratch::{Scratch, ScratchError, ScratchLimits};
pub use tree_history::{
    BlobStore, BlobUsage, CollectError, Collected, Doing, TreeHistory, TreeLimits, collect_blobs,
};
