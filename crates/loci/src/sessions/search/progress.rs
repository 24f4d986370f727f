//! What somebody sees and can do while the index is built: a bar on the terminal, and Ctrl-C.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use loci_storage::search::SearchObserver;

use super::interrupt::Interrupt;
use crate::sessions::format;

const WIDTH: u64 = 30;

/// Draws when the share that is done has changed by a hundredth.
#[derive(Debug, Default)]
pub(super) struct Progress {
    drawn: AtomicU64,
    interrupt: Interrupt,
}

impl SearchObserver for Progress {
    fn is_stopped(&self) -> bool {
        self.interrupt.is_heard()
    }

    fn progress(&self, n_done: u64, n_total: u64) {
        self.interrupt.listen();
        let percent = n_done * 100 / n_total.max(1);
        if self.drawn.fetch_max(percent, Ordering::Relaxed) < percent && std::io::stderr().is_terminal() {
            draw(&bar(n_done, n_total));
        }
    }
}

impl Progress {
    /// Wipes the bar away.
    pub(super) fn finish(&self) {
        if self.drawn.load(Ordering::Relaxed) > 0 && std::io::stderr().is_terminal() {
            draw("");
        }
    }
}

fn draw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // Nobody is there to be told that the bar cannot be drawn.
    drop(write!(stderr, "\r{text}\x1b[K").and_then(|()| stderr.flush()));
}

fn bar(n_done: u64, n_total: u64) -> String {
    let n_full = (n_done * WIDTH / n_total.max(1)).min(WIDTH);
    let full: String = (0..WIDTH).map(|idx| if idx < n_full { '#' } else { '.' }).collect();
    format!("Indexing sessions [{full}] {} of {}", format::size(n_done), format::size(n_total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_bar_fills_with_progress() {
        assert_eq!(bar(0, 0), format!("Indexing sessions [{}] 0 B of 0 B", ".".repeat(30)));
        assert_eq!(
            bar(50_000_000, 100_000_000),
            format!("Indexing sessions [{}{}] 50 MB of 100 MB", "#".repeat(15), ".".repeat(15))
        );
    }
}
