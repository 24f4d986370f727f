//! What files held before they were changed, as values: snapshots of the shared format, states and changes of paths,
//! the plan of a rewind, and who wrote each line.
//!
//! Nothing here touches a disk. `loci-storage` looks, keeps and restores; what that means is decided here.

mod blame;
mod from_transcript;
mod plan;
mod snapshot;
mod state;

pub use blame::line_origins;
pub use from_transcript::{PromptPoint, prompts_of, written_texts};
pub use plan::{Conflict, RewindStep, Wanted, changes, in_order, wanted};
pub use snapshot::{
    Backup, Snapshot, SnapshotEntry, backup_file_name, path_of_key, snapshots_of, tracked_key,
};
pub use state::{ChangeSet, FileContent, HistoryLine, PathChange, PathState, PathText};
