//! Where the shell stands as a line goes on.

use std::path::{Path, PathBuf};

/// The directories the shell may be in; `None` when only the run will tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dirs(pub(super) Option<Vec<PathBuf>>);

impl Dirs {
    pub(super) fn known(dir: &Path) -> Self {
        Self(Some(vec![dir.to_path_buf()]))
    }

    pub(super) fn or(&self, other: &Self) -> Self {
        let (Some(a), Some(b)) = (&self.0, &other.0) else { return Self(None) };
        let mut all = a.clone();
        all.extend(b.iter().filter(|dir| !a.contains(dir)).cloned());
        Self((all.len() <= 4).then_some(all))
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
