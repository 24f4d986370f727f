//! What earlier runs of a session used, read when somebody first asks.
//!
//! To know it may take reading the whole transcript, which no request waits for: it is read on a thread beside the first
//! one ([`EarlierTotals::prefetch`]), and whoever asks before that is done waits.

use std::fmt;
use std::sync::{Arc, OnceLock};

use loci_core::cost_state::CostState;
use loci_core::session::Totals;

/// What earlier runs of a session used; nothing, for a new one.
#[derive(Clone, Default)]
pub struct EarlierTotals {
    read: Option<Arc<Reading>>,
}

struct Reading {
    read: Box<dyn Fn() -> CostState + Send + Sync>,
    state: OnceLock<CostState>,
}

impl Reading {
    fn state(&self) -> &CostState {
        self.state.get_or_init(|| (self.read)())
    }
}

impl EarlierTotals {
    /// Knows how to read them; `read` is called once at most.
    pub fn new(read: impl Fn() -> CostState + Send + Sync + 'static) -> Self {
        Self { read: Some(Arc::new(Reading { read: Box::new(read), state: OnceLock::new() })) }
    }

    /// Reads them beside whatever else is done.
    pub(crate) fn prefetch(&self) {
        if let Some(reading) = self.read.clone().filter(|reading| reading.state.get().is_none()) {
            // Where there is no thread to be had, whoever asks reads.
            drop(std::thread::Builder::new().spawn(move || {
                reading.state();
            }));
        }
    }

    /// Returns what a session has used in all, with what this process used.
    pub fn plus(&self, own: &Totals) -> Totals {
        match &self.read {
            Some(reading) => reading.state().totals.clone().plus(own),
            None => own.clone(),
        }
    }

    /// Returns the same as it is recorded.
    pub(crate) fn cost_state(&self, own: &Totals) -> CostState {
        let other = self.read.as_ref().map(|reading| reading.state().other.clone());
        CostState { totals: self.plus(own), other: other.unwrap_or_default() }
    }
}

impl fmt::Debug for EarlierTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.read.as_ref().map(|reading| reading.state.get());
        f.debug_struct("EarlierTotals").field("state", &state).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn earlier_totals_are_read_once_and_only_on_demand() {
        let n_read = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&n_read);
        let earlier = EarlierTotals::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            let api = std::time::Duration::from_secs(1);
            CostState { totals: Totals { api, ..Totals::default() }, ..CostState::default() }
        });
        let again = earlier.clone();
        assert_eq!(n_read.load(Ordering::Relaxed), 0);
        let own = Totals { api: std::time::Duration::from_secs(2), ..Totals::default() };
        again.prefetch();
        assert_eq!(earlier.plus(&own).api, std::time::Duration::from_secs(3));
        assert_eq!(again.cost_state(&own).totals.api, std::time::Duration::from_secs(3));
        assert_eq!(n_read.load(Ordering::Relaxed), 1);
        assert_eq!(EarlierTotals::default().plus(&own), own);
    }
}
