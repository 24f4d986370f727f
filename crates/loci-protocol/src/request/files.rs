//! Files and directories of the session.

use std::path::PathBuf;

use loci_core::ids::EntryId;
use serde::{Deserialize, Serialize};

use crate::files::DirectorySource;

/// Lets the session work in another directory, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddDirectory {
    /// The directory: absolute, beginning with `~`, or seen from where the session stands.
    pub directory: PathBuf,
    /// Who wants it.
    pub source: DirectorySource,
}

/// Brings files back to what they were before a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindFiles {
    /// The prompt.
    pub prompt: EntryId,
    /// Only say what would happen.
    #[serde(default)]
    pub is_trial: bool,
}

/// Takes a file to be read by the model as it is, if it was last changed then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedReadState {
    /// The file: absolute, or seen from where the session stands.
    pub path: PathBuf,
    /// When it was changed, in milliseconds since 1970.
    pub modified_ms: u64,
}
