//! Files and directories of a session, as front ends see them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a rewind of files did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRewound {
    /// Files that changed.
    pub changed: Vec<PathBuf>,
    /// Files that were left as they are, and why.
    pub left: Vec<(PathBuf, String)>,
    /// Lines that came back.
    pub insertions: usize,
    /// Lines that went.
    pub deletions: usize,
    /// What git ignores and what has changed since; it is not touched.
    pub ignored: Vec<PathBuf>,
}

/// Who adds a directory to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectorySource {
    /// A person, with `/add-dir`.
    SlashCommand,
    /// The client that drives the session.
    RegisterRepoRoot,
}

impl DirectorySource {
    /// Returns the word that hooks know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SlashCommand => "slash_command",
            Self::RegisterRepoRoot => "register_repo_root",
        }
    }
}
