//! The directory of memories, and the journal that is kept about it.
//!
//! ```text
//! <memory dir>/MEMORY.md                         the index
//! <memory dir>/<name>.md                         one memory each
//! <memory dir>/team/                              what is shared with others through a server
//! <memory dir>/logs/YYYY/MM/YYYY-MM-DD.md        logs of days
//! <config home>/loci/memory/<slug>/journal.jsonl every change: when, by whom, from which session, before and after
//! <config home>/loci/memory/<slug>/archive/      what was too old for a short journal, packed
//! <config home>/loci/memory/<slug>/applied       the number of the last change whose files are all written
//! <config home>/loci/memory/<slug>/pending/      proposals that wait for a person's word
//! <config home>/loci/memory/<slug>/lock
//! <config home>/loci/memory/<slug>/team.json     what was last agreed on with the server; team.lock beside it
//! ```
//!
//! `<slug>` is made from the memory directory's path as those of projects are. The directory is shared with other
//! programs and edited by hand; the journal is ours alone, and precious: it is what changes are undone from.

mod change;
mod content;
mod files;
mod journal;
mod place;
mod team;

pub use change::{Author, Change, ChangeKind, FileChange, MemoryArea};
pub use content::MemoryContent;
pub use files::{MemoryText, memory_files, memory_names, memory_texts, read_memory, read_memory_head};
pub use journal::{ChangeRequest, Edit, MemoryError, MemoryJournal};
pub use place::{MemoryPlace, MemoryPlaceError, MemorySource, memory_place};
pub use team::{TeamFile, TeamMemory, TeamState, team_names};

/// The name of the index.
pub const MEMORY_INDEX: &str = "MEMORY.md";
