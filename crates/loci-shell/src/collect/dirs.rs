//! Where the shell stands as a line goes on.

use std::path::{Path, PathBuf};

use crate::value::Value;

/// The most directories that are kept in mind.
const MAX_DIRS: usize = 4;

/// The directories the shell may be in. Those that are known stay in sight when others are possible, so that a
/// rule that forbids a path still finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dirs {
    known: Vec<PathBuf>,
    /// Whether it may be somewhere else, too.
    is_open: bool,
}

impl Dirs {
    pub(super) fn known(dir: &Path) -> Self {
        Self { known: vec![dir.to_path_buf()], is_open: false }
    }

    /// These, or any other.
    pub(super) fn opened(&self) -> Self {
        Self { is_open: true, ..self.clone() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn all(&self) -> &[PathBuf] {
        &self.known
    }

    /// Returns the directory when there is only one it can be.
    pub(super) fn only(&self) -> Option<&Path> {
        match self.known.as_slice() {
            [dir] if !self.is_open => Some(dir),
            _ => None,
        }
    }

    pub(super) fn or(&self, other: &Self) -> Self {
        let mut known = self.known.clone();
        known.extend(other.known.iter().filter(|dir| !self.known.contains(dir)).cloned());
        let is_open = self.is_open || other.is_open || known.len() > MAX_DIRS;
        known.truncate(MAX_DIRS);
        Self { known, is_open }
    }

    /// Where a change to `target` leads.
    pub(super) fn entered(&self, target: &Path) -> Self {
        let known = self.known.iter().map(|dir| loci_core::path::normalise(dir, target));
        let mut dirs = Self { known: known.collect(), is_open: self.is_open && !target.is_absolute() };
        dirs.known.dedup();
        dirs
    }

    /// Where a program stands that was told to go to `value` first; anywhere when that is not known.
    pub(super) fn moved_to(&self, value: &Value) -> Self {
        match value.known() {
            Some(text) => self.entered(Path::new(text)),
            None => self.opened(),
        }
    }
}

/// Where the shell stands after a command that worked and after one that failed.
pub(super) struct After {
    pub(super) ok: Dirs,
    pub(super) failed: Dirs,
}

impl After {
    pub(super) fn same(dirs: Dirs) -> Self {
        Self { ok: dirs.clone(), failed: dirs }
    }

    pub(super) fn either(&self) -> Dirs {
        self.ok.or(&self.failed)
    }
}
