//! Memories of a team: their names and their index, what to fetch and what to send, and what must not leave.
//!
//! All of it is a decision about values. Files are `loci-storage`'s, the wire is `loci-team`'s.

mod hash;
mod index;
mod name;
mod plan;
mod secrets;

pub use hash::ContentHash;
pub use index::team_index;
pub use name::{EntryName, EntryNameError, case_clashes};
pub use plan::{Hashes, Pull, Push, pull_plan, push_plan};
pub use secrets::{SecretFound, find_secrets};

/// The directory of a team's memories, below that of memories.
pub const TEAM_DIR: &str = "team";
/// A longer entry is neither sent nor taken.
pub const TEAM_ENTRY_BYTES: usize = 256 * 1024;
/// More entries than this are neither sent nor taken.
pub const TEAM_ENTRIES: usize = 5_000;
