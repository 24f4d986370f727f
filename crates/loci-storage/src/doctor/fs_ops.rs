//! File operations of a repair, for fault injection: every step that changes a file goes through here, so that tests can
//! let it fail at any.

use std::cell::Cell;
use std::io;

/// Performs steps, up to a number in tests.
#[derive(Debug)]
pub(super) struct FsOps {
    n_left: Cell<Option<u64>>,
}

impl FsOps {
    /// Runs every step.
    pub(super) fn real() -> Self {
        Self { n_left: Cell::new(None) }
    }

    /// Runs so many steps and fails after, as in a process that dies.
    #[cfg(test)]
    pub(super) fn failing_after(n_steps: u64) -> Self {
        Self { n_left: Cell::new(Some(n_steps)) }
    }

    /// Returns true when nothing more will be done.
    pub(super) fn has_failed(&self) -> bool {
        self.n_left.get() == Some(0)
    }

    /// Does one step.
    pub(super) fn run<T>(&self, step: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.has_failed() {
            return Err(io::Error::other("the repair was cut short"));
        }
        self.n_left.set(self.n_left.get().map(|n_left| n_left - 1));
        step()
    }
}
