//! Directories through which others can read what belongs to sessions.
//!
//! Files in them need not be private one by one, as the format has it, while no one else gets that far. So only the
//! topmost directory that lets others through is a finding, and closing it closes everything below.

use std::path::{Path, PathBuf};

use super::cure::{Case, Cure};
use super::finding::{Finding, FindingKind};
use super::store::{Store, mode_of};

/// Directories of the config home that hold what was said, or what files held.
const PRIVATE: [&str; 4] = ["projects", "file-history", "tasks", "loci"];

/// Finds directories that are open to others.
pub(super) fn cases(store: &Store<'_>) -> Vec<Case> {
    if !is_open(store.home.root()) {
        return Vec::new();
    }
    let dirs = PRIVATE.iter().map(|name| store.home.root().join(name)).filter(|dir| is_open(dir));
    dirs.map(case).collect()
}

/// Returns true for a directory that others may list or go through.
fn is_open(dir: &Path) -> bool {
    mode_of(dir).is_some_and(|mode| mode & 0o077 != 0)
}

fn case(dir: PathBuf) -> Case {
    let mode = mode_of(&dir).unwrap_or_default();
    let meaning = format!("others get to what belongs to sessions (mode {mode:03o})");
    let finding = Finding::new(FindingKind::Exposed, &dir, meaning).remedy("its mode becomes 700");
    Case::new(finding, Cure::Close { path: dir })
}
