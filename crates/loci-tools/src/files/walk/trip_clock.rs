//! A clock for tests: at one of its readings, something happens.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use loci_stdx::{Clock, Date, TimeZone, Timestamp};

/// Stands still until it has been read a number of times; then it jumps, or does what it was told to.
pub(crate) struct TripClock {
    readings: AtomicUsize,
    trip: usize,
    jump: Duration,
    action: Box<dyn Fn() + Send + Sync>,
}

impl TripClock {
    /// Stands still for good.
    pub(crate) fn never() -> Self {
        Self::jump(usize::MAX, Duration::ZERO)
    }

    /// Shows `jump` from the reading with this index on.
    pub(crate) fn jump(trip: usize, jump: Duration) -> Self {
        Self { readings: AtomicUsize::new(0), trip, jump, action: Box::new(|| {}) }
    }

    /// Runs `action` at the reading with this index.
    pub(crate) fn act(trip: usize, action: impl Fn() + Send + Sync + 'static) -> Self {
        Self { action: Box::new(action), ..Self::jump(trip, Duration::ZERO) }
    }

    /// Returns how often it has been read.
    pub(crate) fn n_readings(&self) -> usize {
        self.readings.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for TripClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TripClock").field("trip", &self.trip).finish_non_exhaustive()
    }
}

impl Clock for TripClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        let reading = self.readings.fetch_add(1, Ordering::Relaxed);
        if reading == self.trip {
            (self.action)();
        }
        if reading >= self.trip { self.jump } else { Duration::ZERO }
    }

    fn local_date(&self) -> Date {
        Date::constant(1970, 1, 1)
    }

    fn local_zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}
