//! How far a long verb is: a bar on a terminal, and a plain line now and then elsewhere, on standard error.
//!
//! It draws when the share that is done has changed by a hundredth, so that what is counted may be as fine as one likes.
//! Elsewhere than on a terminal nothing is said of what is quick.
//!
//! By hand, because `indicatif` draws by a clock of its own, and has no plain lines for where there is no terminal.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::sessions::format;

const WIDTH: u64 = 30;
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
}

impl ProgressBar {
    /// Begins with nothing done; nothing is drawn yet.
    pub(crate) fn new(what: &'static str, unit: ProgressUnit) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { what, unit, is_terminal, since: Instant::now(), drawn: AtomicU64::new(0) }
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
            true => draw(&self.bar(n_done, n_total)),
            false if self.since.elapsed() >= QUICK => say(&self.line(n_done, n_total)),
            false => {}
        }
    }

    /// Wipes the bar away.
    pub(crate) fn finish(&self) {
        if self.is_terminal && self.drawn.load(Ordering::Relaxed) > 0 {
            draw("");
        }
    }

    fn amount(&self, n: u64) -> String {
        match self.unit {
            ProgressUnit::Bytes => format::size(n),
            ProgressUnit::Sessions | ProgressUnit::Checks => n.to_string(),
        }
    }

    fn bar(&self, n_done: u64, n_total: u64) -> String {
        let n_full = (n_done.saturating_mul(WIDTH) / n_total.max(1)).min(WIDTH);
        let full: String = (0..WIDTH).map(|idx| if idx < n_full { '#' } else { '.' }).collect();
        format!("{} [{full}] {} of {}", self.what, self.amount(n_done), self.amount(n_total))
    }

    fn line(&self, n_done: u64, n_total: u64) -> String {
        format!("{}: {} of {}", self.what, self.amount(n_done), self.amount(n_total))
    }
}

fn draw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // Nobody is there to be told that the bar cannot be drawn.
    drop(write!(stderr, "\r{text}\x1b[K").and_then(|()| stderr.flush()));
}

fn say(text: &str) {
    // Nobody is there to be told that it cannot be said.
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_bar_fills_with_progress() {
        let bytes = ProgressBar::new("Indexing sessions", ProgressUnit::Bytes);
        assert_eq!(bytes.bar(0, 0), format!("Indexing sessions [{}] 0 B of 0 B", ".".repeat(30)));
        assert_eq!(
            bytes.bar(50_000_000, 100_000_000),
            format!("Indexing sessions [{}{}] 50 MB of 100 MB", "#".repeat(15), ".".repeat(15))
        );
        let sessions = ProgressBar::new("Checking sessions", ProgressUnit::Sessions);
        assert_eq!(sessions.bar(7, 7), format!("Checking sessions [{}] 7 of 7", "#".repeat(30)));
        assert_eq!(sessions.line(1, 7), "Checking sessions: 1 of 7");
    }
}
