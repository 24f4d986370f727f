//! Sessions on disk: writing, reading, finding, listing and looking after transcripts and what hangs from them.
//!
//! - `session_log` appends to a transcript, `lease` says which process may, `unsaved` keeps what could not be written.
//! - `session_file` loads one, whole or from the end; `find` resolves what a user typed to one; `listing` summarises all
//!   of a project or of the store, with a cache; `statistics` counts what they used.
//! - `fork` begins a session with a copy of another; `labels` writes titles, names and tags.
//! - `remove` and `archive` take sessions out of the way and bring them back; `relocate` moves one to another directory.
//! - `agent_files` are the transcripts of a session's agents.
//! - `session_notes`, `task_list` and `inbox_file` (what a session is to hear from others) are files that belong to one
//!   session.
//!
//! `docs/design/session-log.md` has the bytes and the invariants.

mod agent_files;
pub(crate) mod archive;
pub(crate) mod find;
mod fork;
mod inbox_file;
mod labels;
pub(crate) mod lease;
pub(crate) mod listing;
mod relocate;
pub(crate) mod remove;
pub(crate) mod session_file;
mod session_log;
mod session_notes;
mod statistics;
mod task_list;
mod unsaved;

pub use agent_files::{
    AgentFile, AgentMeta, AgentProgressEnd, ForkedFrom, agent_end, agent_log, agent_transcript,
    find_agent_file, list_agent_files, load_agent, write_agent_meta,
};
pub use archive::{
    ArchiveError, ArchiveSweep, ArchivedSession, archive_older, archive_older_observed, archive_session,
    archived_sessions, pin_session, pinned_sessions, unarchive_session, unpin_session,
};
pub use find::{Candidate, FindError, newest_session, resolve_session, session_by_id};
pub use fork::{ForkError, ForkOrigin, fork_entries, link_backups, write_fork};
pub use inbox_file::{InboxError, InboxFile, LoadedInbox};
pub use labels::{LabelError, LabelWatch, rename_session, session_agent, tag_session, untag_session};
pub use lease::{Lease, LeaseError, LeaseOwner};
pub use listing::{
    Labels, MessageCount, SessionList, SessionMetadata, SessionSummary, list_all, list_newest, list_project,
    list_recent, list_rollouts, list_sessions, session_summary,
};
pub use relocate::{RelocateError, relocate_session};
pub use remove::{RemoveError, remove_session, removed_sessions, restore_session};
pub use session_file::{
    ConversationTail, ForkSource, LiveLoad, LoadError, LoadedTranscript, SkipReason, SkippedLine, load_at,
    load_fork_source, load_live, load_tail, load_transcript,
};
pub use session_log::{AppendError, LineMirror, LogWarning, MemorySink, SessionLog, Sink, last_prompt_text};
pub use session_notes::{NotesCoverage, NotesError, SessionNotes, copy_notes};
pub use statistics::{Statistics, StatisticsQuery, UsageRow, session_statistics, session_totals};
pub use task_list::{TaskListDir, TaskListState, copy_tasks, is_task_list_name, survey_task_lists};
pub use unsaved::{UnsavedError, has_unsaved, recover_unsaved};
