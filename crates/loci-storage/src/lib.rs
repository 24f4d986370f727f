//! Everything on disk: session log, instruction files, git state, spilled results.
//!
//! The crate is blocking and knows no runtime; whoever waits for the network calls it from the side. It reads
//! no environment by itself: paths come from a [`ConfigHome`], made once from the `Env` of the program.
//!
//! What must stay true of a session file:
//! 1. It is only ever appended to, one `write` of whole lines at a time; no byte of it is changed or cut.
//! 2. A line that cannot be read costs that line, and is reported with its place.
//! 3. What could not be written is kept and written first at the next chance; the order of lines never changes.
//! 4. Files are readable by their owner alone.

mod archive;
mod credentials;
mod doctor;
mod file_history;
mod find;
mod fork;
mod git;
mod html_comments;
mod import;
mod index;
mod input_history;
mod instructions;
mod labels;
mod layout;
mod lease;
mod listing;
mod look_back;
mod memory;
mod project;
mod recall;
mod remove;
mod repository;
mod rewind;
mod rollout;
mod scratch;
mod session_file;
mod session_log;
mod session_notes;
mod settings;
mod state_file;
mod statistics;
mod task_list;
mod tree_history;
mod unsaved;
mod user_tmp;

pub use archive::{
    ArchiveError, Archived, Swept, archive_older, archive_session, archived_sessions, is_pinned, pin_session,
    pinned_sessions, unarchive_session, unpin_session,
};
pub use credentials::{StoredLogin, StoredLoginError, stored_login, team_token};
pub use doctor::{
    CheckUp, DoctorError, Finding, FindingKind, Outcome, examine_store, glance_at_store, repair_store,
};
pub use file_history::{FileHistory, KeepError};
pub use find::{Candidate, FindError, by_id, newest_here, resolve};
pub use fork::{ForkError, Trace, fork_entries, link_backups, write_fork};
pub use git::{GitSnapshot, git_snapshot, head_branch};
pub use html_comments::strip_html_comments;
pub use import::{ImportError, ImportId, ImportWish, Imported, import_rollout};
pub use index::{
    Found, Hit, IndexUse, SearchError, SearchFilter, SearchWish, Unwatched, Watch, search_sessions,
    update_index,
};
pub use input_history::{InputEntry, InputHistory, InputHistoryError, InputScope};
pub use instructions::{
    Diagnostic, InstructionFile, InstructionPlaces, Instructions, LazyInstructions, MANAGED_INSTRUCTIONS,
    Met, PathRule, Scope, discover_instructions,
};
pub use labels::{LabelError, LabelWatch, rename_session, tag_session, untag_session};
pub use layout::{ConfigHome, Dialect, SessionPlace};
pub use lease::{Lease, LeaseError, Owner, lease_owner};
pub use listing::{
    Count, Facts, Labels, SessionList, SessionSummary, list_all, list_newest, list_project, list_rollouts,
    list_sessions, session_totals, summary_of,
};
pub use look_back::{Blamed, LookBackError, PathDiff, blame_file, diff_points};
pub use memory::{
    Act, Author, Change, ChangeWish, Edit, FileChange, MEMORY_INDEX, MemoryBook, MemoryContent, MemoryError,
    MemoryPlace, MemoryPlaceError, MemorySource, MemoryText, Shelf, TeamFile, TeamShelf, TeamState,
    memory_files, memory_names, memory_place, memory_texts, read_memory, read_memory_head, team_names,
};
pub use project::Project;
pub use recall::{ProjectRecord, RECALL_TOOL, recall};
pub use remove::{RemoveError, remove_session, removed_sessions, restore_session};
pub use repository::{Repository, repository_of};
pub use rewind::{
    ConversationRewind, OnConflict, RewindError, RewindPlan, RewindScene, Rewound, apply_rewind, plan_rewind,
    plan_undo, recover_rewinds,
};
pub use rollout::{RolloutError, find_rollout, load_rollout, rollout_text};
pub use scratch::{Scratch, ScratchError, ScratchLimits};
pub use session_file::{LiveLoad, LoadError, Loaded, SkipReason, Skipped, load, load_at, load_live};
pub use session_log::{AppendError, DiskSink, MemorySink, SessionLog, Sink, Trouble, last_prompt_text};
pub use session_notes::{Covered, NotesError, SessionNotes, copy_notes};
pub use settings::{
    FILE_LIMIT as SETTINGS_LIMIT, GivenSettings, LoadedSettings, MANAGED_DIR, SettingsEditError,
    SettingsFile, SettingsPlaces, SettingsSources, SettingsWatch, TrustState, edit_settings,
    exclude_local_settings, load_settings, trust_of,
};
pub use state_file::{
    StateFileError, edit_state, external_imports, known_user_id, set_external_imports, set_trust, user_id,
};
pub use statistics::{Statistics, StatisticsWish, UsedRow, session_statistics};
pub use task_list::{TaskListDir, copy_tasks};
pub use tree_history::{
    BlobStore, BlobUsage, CollectError, Collected, Doing, TreeHistory, TreeLimits, collect_blobs,
};
pub use unsaved::{UnsavedError, bring_back_unsaved};
pub use user_tmp::{SessionTmp, UserTmpError};
