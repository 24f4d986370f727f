//! What files held before they were changed, as values: snapshots of the shared format.
//!
//! Nothing here touches a disk. `loci-storage` looks, keeps and restores; what that means is decided here.

mod snapshot;

pub use snapshot::{
    Backup, Snapshot, SnapshotEntry, backup_file_name, path_of_key, snapshots_of, tracked_key,
};
