//! What the MCP servers of projects were when they were approved: `loci/mcp-approvals.json` in the config home.
//!
//! ```json
//! {"<project root>": {"<server>": {"definition": "<hash>", "tools": {"<tool>": "<hash>", …}}, …}, …}
//! ```
//!
//! An approval is of a definition: a server whose definition is another one than was used before waits until it is approved
//! again. What the hashes are of is decided by whoever makes them. A file that cannot be read approves of nothing that
//! it should know, and is said; what was never used needs no entry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_stdx::{FileLock, LockError, WriteError, WriteOptions, read_regular_to_string, write_atomic};
use serde::{Deserialize, Serialize};

use crate::layout::ConfigHome;

const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// What a server was when it was approved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedServer {
    /// The hash of its definition.
    #[serde(default)]
    pub definition: String,
    /// The hashes of its tools, by name; none before it was connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, String>>,
}

/// The approved servers of a project, by name.
pub type ApprovedServers = BTreeMap<String, ApprovedServer>;

type Projects = BTreeMap<String, ApprovedServers>;

/// Why approvals could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// They could not be read.
    #[error("Failed to read approvals: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// They are no such thing.
    #[error("Failed to parse approvals: `{}`", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Another process held the lock.
    #[error("Failed to lock approvals")]
    Lock(#[from] LockError),
    /// They could not be replaced.
    #[error("Failed to save approvals")]
    Write(#[from] WriteError),
}

/// Returns what the servers of a project were when they were approved.
pub fn approved_servers(home: &ConfigHome, root: &Path) -> Result<ApprovedServers, ApprovalError> {
    Ok(read(home)?.remove(&name(root)).unwrap_or_default())
}

/// Changes what is kept for a project; without any server, nothing is.
pub fn edit_approved_servers(
    home: &ConfigHome,
    root: &Path,
    change: impl FnOnce(&mut ApprovedServers),
) -> Result<bool, ApprovalError> {
    let path = file(home);
    // Held from before it is read until it is replaced.
    let _lock = FileLock::acquire(&path.with_extension("lock"), LOCK_TIMEOUT)?;
    let mut projects = read(home)?;
    let before = projects.clone();
    let mut servers = projects.remove(&name(root)).unwrap_or_default();
    change(&mut servers);
    if !servers.is_empty() {
        projects.insert(name(root), servers);
    }
    if projects == before {
        return Ok(false);
    }
    let text = serde_json::to_string_pretty(&projects)
        .map_err(|source| ApprovalError::Parse { path: path.clone(), source })?;
    let options = WriteOptions { create_parents: true, ..WriteOptions::private() };
    write_atomic(&path, format!("{text}\n").as_bytes(), &options)?;
    Ok(true)
}

fn read(home: &ConfigHome) -> Result<Projects, ApprovalError> {
    let path = file(home);
    let text = match read_regular_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Projects::new()),
        Err(source) => return Err(ApprovalError::Read { path, source }),
    };
    serde_json::from_str(&text).map_err(|source| ApprovalError::Parse { path, source })
}

fn name(root: &Path) -> String {
    root.display().to_string()
}

fn file(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("mcp-approvals.json")
}
