//! Where the system is not asked, every look is at everything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Nothing, ever.
#[derive(Debug)]
pub(in super::super) enum TreeWatcher {}

impl TreeWatcher {
    pub(in super::super) fn new(_: &Path) -> Option<Self> {
        None
    }

    pub(in super::super) fn take(&mut self) -> Option<BTreeSet<PathBuf>> {
        match *self {}
    }

    pub(in super::super) fn has_lost(&self) -> bool {
        match *self {}
    }

    pub(in super::super) fn follow<'a>(&mut self, _: impl Iterator<Item = &'a PathBuf>) -> bool {
        match *self {}
    }
}
