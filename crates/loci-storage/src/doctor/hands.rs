//! The hands that change files: every step of a repair goes through them, so that tests can let them fail at any.

use std::cell::Cell;
use std::io;

/// Performs steps, up to a number in tests.
#[derive(Debug)]
pub(super) struct Hands {
    n_left: Cell<Option<u64>>,
}

impl Hands {
    /// Hands that do what they are told.
    pub(super) fn steady() -> Self {
        Self { n_left: Cell::new(None) }
    }

    /// Hands that do so many steps and nothing after, as those of a process that dies.
    #[cfg(test)]
    pub(super) fn dying_after(n_steps: u64) -> Self {
        Self { n_left: Cell::new(Some(n_steps)) }
    }

    /// Returns true when nothing more will be done.
    pub(super) fn are_dead(&self) -> bool {
        self.n_left.get() == Some(0)
    }

    /// Does one step.
    pub(super) fn act<T>(&self, step: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.are_dead() {
            return Err(io::Error::other("the repair was cut short"));
        }
        self.n_left.set(self.n_left.get().map(|n_left| n_left - 1));
        step()
    }
}
