//! Sessions on disk: writing, reading, finding, listing and looking after transcripts and what hangs from them.
//!
//! - `session_log` appends to a transcript, `lease` says which process may, `unsaved` keeps what could not be written.
//! - `session_file` loads one, whole or from the end; `find` resolves what a user typed to one; `listing` summarises all
//!   of a project or of the store, with a cache; `statistics` counts what they used.
//! - `fork` begins a session with a copy of another; `labels` writes titles, names and tags.
//! - `remove` and `archive` take sessions out of the way and bring them back.
//! - `session_notes` and `task_list` are files that belong to one session.
//!
//! `docs/design/session-log.md` has the bytes and the invariants.

pub(crate) mod archive;
pub(crate) mod find;
mod fork;
mod labels;
pub(crate) mod lease;
pub(crate) mod listing;
pub(crate) mod remove;
pub(crate) mod session_file;
mod session_log;
mod session_notes;
mod statistics;
mod task_list;
mod unsaved;

pub use archive::{
    ArchiveError, Archived, Swept, archive_older, archive_session, archived_sessions, is_pinned, pin_session,
    pinned_sessions, unarchive_session, unpin_session,
};
pub use find::{Candidate, FindError, by_id, newest_here, resolve};
pub use fork::{ForkError, Trace, fork_entries, link_backups, write_fork};
pub use labels::{LabelError, LabelWatch, rename_session, tag_session, untag_session};
pub use lease::{Lease, LeaseError, Owner, lease_owner};
pub use listing::{
    Count, Facts, Labels, SessionList, SessionSummary, list_all, list_newest, list_project, list_rollouts,
    list_sessions, session_totals, summary_of,
};
pub use remove::{RemoveError, remove_session, removed_sessions, restore_session};
pub use session_file::{LiveLoad, LoadError, Loaded, SkipReason, Skipped, load, load_at, load_live};
pub use session_log::{AppendError, DiskSink, MemorySink, SessionLog, Sink, Trouble, last_prompt_text};
pub use session_notes::{Covered, NotesError, SessionNotes, copy_notes};
pub use statistics::{Statistics, StatisticsWish, UsedRow, session_statistics};
pub use task_list::{TaskListDir, copy_tasks};
pub use unsaved::{UnsavedError, bring_back_unsaved};
