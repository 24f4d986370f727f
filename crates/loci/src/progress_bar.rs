//! How far a long verb is: a bar on a terminal, and a plain line now and then elsewhere, on standard error.
//!
//! It draws when the share that is done has changed by a hundredth, so that what is counted may be as fine as one likes.
//! Elsewhere than on a terminal nothing is said of what is quick. A bar is never longer than a row of the window, which would
//! leave it there for each that is drawn over it, and has no escape sequence, which a dumb terminal would show.
//!
//! By hand, because `indicatif` draws by a clock of its own, and has no plain lines for where there is no terminal.

use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::print;
use crate::sessions::format;

/// Cells of the bar where there is room.
const WIDTH: usize = 30;
/// A bar with fewer says nothing.
const LEAST_WIDTH: usize = 5;
/// What takes less is not spoken of in plain lines.
const QUICK: Duration = Duration::from_secs(2);
/// Plain lines are this far apart, in hundredths.
const PLAIN_STEP: u64 = 10;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressUnit {
    Bytes,
    Sessions,
    Checks,
}

/// How far it is.
#[derive(Debug)]
pub(crate) struct ProgressBar {
    what: &'static str,
    unit: ProgressUnit,
    is_terminal: bool,
    since: Instant,
    drawn: AtomicU64,
    /// How many cells the row has that is drawn.
    n_cells: AtomicUsize,
}

impl ProgressBar {
    /// Begins with nothing done; nothing is drawn yet.
    pub(crate) fn new(what: &'static str, unit: ProgressUnit) -> Self {
        let is_terminal = print::is_stderr_terminal();
        let (drawn, n_cells) = (AtomicU64::new(0), AtomicUsize::new(0));
        Self { what, unit, is_terminal, since: Instant::now(), drawn, n_cells }
    }

    /// So much of the whole is done. May be called from several threads.
    pub(crate) fn set(&self, n_done: u64, n_total: u64) {
        let percent = n_done.saturating_mul(100) / n_total.max(1);
        let before = self.drawn.load(Ordering::Relaxed);
        let step = if self.is_terminal { 1 } else { PLAIN_STEP };
        if percent < before + step || self.drawn.fetch_max(percent, Ordering::Relaxed) >= percent {
            return;
        }
        match self.is_terminal {
            true => self.draw(&self.bar(n_done, n_total, n_columns())),
            false if self.since.elapsed() >= QUICK => print::print_message(&self.line(n_done, n_total)),
            false => {}
        }
    }

    /// Wipes the bar away.
    pub(crate) fn finish(&self) {
        if self.is_terminal && self.drawn.load(Ordering::Relaxed) > 0 {
            self.draw("");
        }
    }

    fn amount(&self, n: u64) -> String {
        match self.unit {
            ProgressUnit::Bytes => format::size(n),
            ProgressUnit::Sessions | ProgressUnit::Checks => n.to_string(),
        }
    }

    /// Returns the bar for a window of so many columns, the last of which stays free.
    fn bar(&self, n_done: u64, n_total: u64, n_columns: usize) -> String {
        let amount = format!("{} of {}", self.amount(n_done), self.amount(n_total));
        let room = n_columns.saturating_sub(1);
        let n_cells = room.saturating_sub(self.what.len() + amount.len() + " [] ".len()).min(WIDTH);
        if n_cells < LEAST_WIDTH {
            let line = self.line(n_done, n_total);
            let fitting = [line, amount].into_iter().find(|it| it.len() <= room);
            return fitting.unwrap_or_default();
        }
        let share = n_done.saturating_mul(n_cells as u64) / n_total.max(1);
        let n_full = usize::try_from(share).unwrap_or(n_cells).min(n_cells);
        let (full, empty) = ("#".repeat(n_full), ".".repeat(n_cells - n_full));
        format!("{} [{full}{empty}] {amount}", self.what)
    }

    /// Draws over the row that was drawn before.
    fn draw(&self, text: &str) {
        let mut stderr = print::own_stderr().lock();
        let n_before = self.n_cells.swap(text.len(), Ordering::Relaxed);
        // A window that became narrower has wrapped what was longer.
        let n_blanks = n_before.min(n_columns().saturating_sub(1)).saturating_sub(text.len());
        let blanks = " ".repeat(n_blanks);
        let end = if text.is_empty() { "\r" } else { "" };
        // Nobody is there to be told that the bar cannot be drawn.
        drop(write!(stderr, "\r{text}{blanks}{end}").and_then(|()| stderr.flush()));
    }

    fn line(&self, n_done: u64, n_total: u64) -> String {
        format!("{}: {} of {}", self.what, self.amount(n_done), self.amount(n_total))
    }
}

/// Returns how wide the window is.
fn n_columns() -> usize {
    let size = rustix::termios::tcgetwinsize(print::own_stderr());
    size.map_or(80, |size| if size.ws_col > 0 { usize::from(size.ws_col) } else { 80 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_bar_fills_with_progress() {
        let bytes = ProgressBar::new("Indexing sessions", ProgressUnit::Bytes);
        assert_eq!(bytes.bar(0, 0, 80), format!("Indexing sessions [{}] 0 B of 0 B", ".".repeat(30)));
        assert_eq!(
            bytes.bar(50_000_000, 100_000_000, 80),
            format!("Indexing sessions [{}{}] 50 MB of 100 MB", "#".repeat(15), ".".repeat(15))
        );
        let sessions = ProgressBar::new("Checking sessions", ProgressUnit::Sessions);
        assert_eq!(sessions.bar(7, 7, 80), format!("Checking sessions [{}] 7 of 7", "#".repeat(30)));
        assert_eq!(sessions.line(1, 7), "Checking sessions: 1 of 7");
    }

    #[test]
    fn progress_bar_fits_into_a_row_of_the_window() {
        let sessions = ProgressBar::new("Checking sessions", ProgressUnit::Sessions);
        assert_eq!(sessions.bar(1000, 3000, 44), "Checking sessions [###.......] 1000 of 3000");
        assert_eq!(sessions.bar(1000, 3000, 36), "Checking sessions: 1000 of 3000");
        assert_eq!(sessions.bar(1000, 3000, 24), "1000 of 3000");
        assert_eq!(sessions.bar(1000, 3000, 8), "");
        for n_columns in 0..100 {
            assert!(sessions.bar(1000, 3000, n_columns).len() < n_columns.max(1), "{n_columns}");
        }
    }
}
