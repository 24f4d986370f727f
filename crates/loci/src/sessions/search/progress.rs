//! What somebody sees and can do while the index is built: a bar, and Ctrl-C.

use loci_storage::search::SearchObserver;

use super::interrupt::Interrupt;
use crate::progress_bar::{ProgressBar, ProgressUnit};

/// The bar, and whether somebody wants it to end.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    interrupt: Interrupt,
}

impl Default for Progress {
    fn default() -> Self {
        let bar = ProgressBar::new("Indexing sessions", ProgressUnit::Bytes);
        Self { bar, interrupt: Interrupt::default() }
    }
}

impl SearchObserver for Progress {
    fn is_stopped(&self) -> bool {
        self.interrupt.is_heard()
    }

    fn progress(&self, n_done: u64, n_total: u64) {
        self.interrupt.listen();
        self.bar.set(n_done, n_total);
    }
}

impl Progress {
    /// Wipes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish();
    }
}
