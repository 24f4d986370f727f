//! How many requests a member may make.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What one member may ask of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in a minute.
    pub requests_per_minute: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests_per_minute: 1_200 }
    }
}

/// Requests of each member in the minute that runs. Those whom nobody knows share one count.
#[derive(Debug, Default)]
pub(super) struct Counter {
    /// The minute, and the requests in it.
    counts: Mutex<(i64, HashMap<Option<i64>, u32>)>,
}

impl Counter {
    /// Counts a request at a time in seconds; returns the seconds to wait when it is one too many.
    pub(super) fn count(&self, member: Option<i64>, now: i64, limits: &Limits) -> Result<(), i64> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = now.div_euclid(60);
        if counts.0 != minute {
            *counts = (minute, HashMap::new());
        }
        let n = counts.1.entry(member).or_default();
        *n = n.saturating_add(1);
        if *n > limits.requests_per_minute { Err(60 - now.rem_euclid(60)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_has_a_count_that_starts_anew_every_minute() {
        let (counter, limits) = (Counter::default(), Limits { requests_per_minute: 2 });
        let count = |member, now| counter.count(member, now, &limits);
        assert_eq!([count(Some(1), 70), count(Some(1), 80), count(Some(1), 90)], [Ok(()), Ok(()), Err(30)]);
        assert_eq!(count(Some(2), 90), Ok(()));
        assert_eq!(count(None, 90), Ok(()));
        assert_eq!(count(Some(1), 120), Ok(()));
    }
}
