//! Time as an argument: the [`Clock`] trait, the real clock, and one that tests hold in their hand.
//!
//! Code asks a `Clock` for the time and never the system, so a test decides what time it is and two
//! runs of it write the same bytes.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::fmt::temporal::DateTimePrinter;

pub use jiff::Timestamp;
pub use jiff::civil::Date;
pub use jiff::tz::TimeZone;

use crate::regular::read_regular;

/// A source of time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current instant of the calendar.
    fn now(&self) -> Timestamp;

    /// Returns the time since some fixed point in the past; it never goes backwards.
    fn monotonic(&self) -> Duration;

    /// Returns today's date where the user is.
    fn local_date(&self) -> Date;

    /// Returns the zone that clocks on the wall follow where the user is.
    fn local_zone(&self) -> TimeZone;
}

/// The clock of the machine.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Returns a clock whose monotonic time starts at zero now.
    #[must_use]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn local_date(&self) -> Date {
        Timestamp::now().to_zoned(local_zone()).date()
    }

    fn local_zone(&self) -> TimeZone {
        local_zone()
    }
}

/// Returns the zone of the user. Asked for the system's zone, `jiff` also looks up its name, for which it lists the whole
/// database of zones: a hundred system calls before the first request. A date needs the rules alone.
fn local_zone() -> TimeZone {
    let is_named = std::env::var_os("TZ").is_some();
    let rules = if is_named { None } else { read_regular("/etc/localtime").ok() };
    let zone = rules.and_then(|rules| TimeZone::tzif("Local", &rules).ok());
    zone.unwrap_or_else(TimeZone::system)
}

/// A clock that stands still until it is told to move.
///
/// Its local zone is UTC. A clock made by [`FixedClock::ticking`] moves on by one millisecond each time
/// it is asked for [`Clock::now`], so that timestamps written one after the other are in order.
#[derive(Debug)]
pub struct FixedClock {
    /// Guards both times, which move together.
    state: Mutex<FixedState>,
    tick: Duration,
}

#[derive(Debug)]
struct FixedState {
    now: Timestamp,
    monotonic: Duration,
}

impl FixedClock {
    /// Returns a clock that stands at `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { state: Mutex::new(FixedState { now, monotonic: Duration::ZERO }), tick: Duration::ZERO }
    }

    /// Returns a clock that starts at `now` and moves on by one millisecond after each reading.
    #[must_use]
    pub fn ticking(now: Timestamp) -> Self {
        Self { tick: Duration::from_millis(1), ..Self::new(now) }
    }

    /// Sets the calendar time, forwards or backwards; monotonic time is left alone.
    pub fn set(&self, now: Timestamp) {
        self.state().now = now;
    }

    /// Moves both times forward; the calendar stops at the last instant it can show.
    pub fn advance(&self, by: Duration) {
        self.state().advance(by);
    }

    fn state(&self) -> MutexGuard<'_, FixedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FixedState {
    fn advance(&mut self, by: Duration) {
        self.now = self.now.checked_add(by).unwrap_or(Timestamp::MAX);
        self.monotonic = self.monotonic.saturating_add(by);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        let mut state = self.state();
        let now = state.now;
        state.advance(self.tick);
        now
    }

    fn monotonic(&self) -> Duration {
        self.state().monotonic
    }

    fn local_date(&self) -> Date {
        self.state().now.to_zoned(TimeZone::UTC).date()
    }

    fn local_zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}

/// Writes `timestamp` as `YYYY-MM-DDTHH:MM:SS.mmmZ`, the form used by transcripts.
///
/// Digits after the millisecond are cut, not rounded, so a written time is never in the future.
#[must_use]
pub fn rfc3339_millis(timestamp: Timestamp) -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
    PRINTER.timestamp_to_string(&timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn millis_are_always_three_digits_and_zulu() {
        for (input, expected) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"),
            ("2026-01-02T03:04:05.6Z", "2026-01-02T03:04:05.600Z"),
            ("2026-01-02T03:04:05.0009Z", "2026-01-02T03:04:05.000Z"),
            ("2026-12-31T23:59:59.999999999Z", "2026-12-31T23:59:59.999Z"),
            ("2026-01-02T03:04:05.678+02:00", "2026-01-02T01:04:05.678Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339_millis(at(input)), expected, "{input}");
        }
    }

    #[test]
    fn fixed_clock_stands_until_moved() {
        let clock = FixedClock::new(at("2026-01-02T23:59:59Z"));
        assert_eq!(clock.now(), clock.now());
        assert_eq!(clock.local_date().to_string(), "2026-01-02");
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.local_date().to_string(), "2026-01-03");
        assert_eq!(clock.monotonic(), Duration::from_secs(1));
        clock.set(at("2020-01-01T00:00:00Z"));
        assert_eq!(clock.now(), at("2020-01-01T00:00:00Z"));
        assert_eq!(clock.monotonic(), Duration::from_secs(1));
    }

    #[test]
    fn ticking_clock_orders_readings() {
        let clock = FixedClock::ticking(at("2026-01-02T03:04:05Z"));
        let readings: Vec<_> = (0..3).map(|_| rfc3339_millis(clock.now())).collect();
        assert_eq!(
            readings,
            ["2026-01-02T03:04:05.000Z", "2026-01-02T03:04:05.001Z", "2026-01-02T03:04:05.002Z"]
        );
    }

    #[test]
    fn fixed_clock_stops_at_the_end_of_time() {
        let clock = FixedClock::ticking(Timestamp::MAX);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::MAX);
        assert_eq!(clock.now(), Timestamp::MAX);
    }

    #[test]
    fn system_clock_does_not_run_backwards() {
        let clock = SystemClock::new();
        let before = clock.monotonic();
        assert!(clock.monotonic() >= before);
        assert!(clock.now() > at("2024-01-01T00:00:00Z"));
    }

    #[test]
    fn local_zone_has_the_offset_of_the_systems_zone() {
        for moment in ["2026-01-15T12:00:00Z", "2026-07-15T12:00:00Z"].map(at) {
            assert_eq!(local_zone().to_offset(moment), TimeZone::system().to_offset(moment));
        }
    }

    const CHILD: &str = "LOCI_STDX_TEST_CLOCK_CHILD";

    #[test]
    fn child_prints_the_local_date() {
        if std::env::var_os(CHILD).is_some() {
            println!("\ndate {}", SystemClock::new().local_date());
        }
    }

    /// Returns today's date in a process of its own that lives in `zone`.
    #[cfg(unix)]
    fn local_date_in(zone: &str) -> String {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "clock::tests::child_prints_the_local_date", "--nocapture"])
            .envs([(CHILD, "1"), ("TZ", zone)])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find_map(|line| line.strip_prefix("date ")).unwrap().to_owned()
    }

    #[cfg(unix)]
    #[test]
    fn the_local_date_follows_the_named_zone() {
        if std::path::Path::new("/usr/share/zoneinfo/Pacific/Kiritimati").exists() {
            // Twenty-six hours apart: never the same day.
            assert_ne!(local_date_in("Pacific/Kiritimati"), local_date_in("Etc/GMT+12"));
        }
    }
}
