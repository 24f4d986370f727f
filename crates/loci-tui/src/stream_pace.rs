//! The pace of a session while an answer streams in: many small packets are taken together, a frame's worth at a time.
//!
//! A model sends a packet for each few letters. A thread that is woken for each of two hundred a second spends its time on
//! being woken: what it needs has left the processor's caches meanwhile. So once an answer flows, the runtime's thread rests
//! before it waits for packets again, until [`REST`] after it was last woken; the system gathers what comes. Where more comes
//! than anybody reads along, it rests for [`FLOOD_REST`]. Whoever asks something of the session ends the rest at once
//! ([`StreamPace::hurry`]).
//!
//! What must stay true: nothing rests but behind [`LEAST_PARTS`] rounds in a row in which there were parts of an answer and
//! nothing else; no rest is longer than [`FLOOD_REST`].

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use loci_core::stream::StreamEvent;
use loci_engine::{EngineEvent, RunnerEvent};

/// How often an answer that flows is looked at: thirty times a second. Keys are echoed at once all the same.
const REST: Duration = Duration::from_millis(33);
/// The same where more than [`READABLE_BYTES`] came since the last time: fifteen times a second.
const FLOOD_REST: Duration = Duration::from_millis(66);
/// About a line of text; a model that writes one in the time of a rest writes faster than people read.
const READABLE_BYTES: usize = 80;
/// After so many rounds an answer is taken for one that flows. Short ones, such as most calls, are over before.
const LEAST_PARTS: u32 = 16;

/// When the thread of a session rests.
#[derive(Debug, Default)]
pub(crate) struct StreamPace {
    /// Guards a few values; held for a look, and given up while resting.
    state: Mutex<Rounds>,
    hurried: Condvar,
}

/// What happened since the thread last waited, and before.
#[derive(Debug, Default)]
struct Rounds {
    has_part: bool,
    has_other: bool,
    /// How much of an answer came.
    n_bytes: usize,
    is_hurried: bool,
    /// Rounds in a row with parts of an answer alone.
    n_in_a_row: u32,
    woken_at: Option<Instant>,
}

impl StreamPace {
    /// Notes what the session says; tells whether it is a part of an answer, for which a frame may wait.
    pub(crate) fn note(&self, event: &RunnerEvent) -> bool {
        let part = match event {
            RunnerEvent::Session(EngineEvent::Stream { event: StreamEvent::Delta { delta, .. }, .. }) => {
                Some(delta.text().len())
            }
            _ => None,
        };
        // What is on the wire comes before what it means.
        let is_wire =
            matches!(event, RunnerEvent::Session(EngineEvent::Stream { event: StreamEvent::Wire(_), .. }));
        let mut rounds = self.lock();
        rounds.has_part |= part.is_some();
        rounds.n_bytes += part.unwrap_or(0);
        rounds.has_other |= part.is_none() && !is_wire;
        part.is_some()
    }

    /// Ends a rest, or leaves out the next: something is asked of the session.
    pub(crate) fn hurry(&self) {
        self.lock().is_hurried = true;
        self.hurried.notify_one();
    }

    /// Rests where an answer flows. The thread is about to wait for packets.
    pub(crate) fn rest(&self) {
        let mut rounds = self.lock();
        if let Some(left) = rounds.end_round(Instant::now()) {
            let rested = self.hurried.wait_timeout_while(rounds, left, |rounds| !rounds.is_hurried);
            rounds = rested.unwrap_or_else(PoisonError::into_inner).0;
        }
        rounds.is_hurried = false;
        rounds.woken_at = Some(Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, Rounds> {
        // A panic elsewhere leaves values that cost time at most.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rounds {
    /// Ends what has happened since the last wait; returns how long to rest now.
    fn end_round(&mut self, now: Instant) -> Option<Duration> {
        let (has_part, has_other) = (std::mem::take(&mut self.has_part), std::mem::take(&mut self.has_other));
        let rest = match std::mem::take(&mut self.n_bytes) {
            0..=READABLE_BYTES => REST,
            _ => FLOOD_REST,
        };
        match (has_part, has_other) {
            (_, true) => self.n_in_a_row = 0,
            (true, false) => self.n_in_a_row = self.n_in_a_row.saturating_add(1),
            // Woken for something that nobody sees; an answer that goes on is noticed by its next part.
            (false, false) => return None,
        }
        if self.n_in_a_row < LEAST_PARTS || self.is_hurried {
            return None;
        }
        let elapsed = self.woken_at.map_or(rest, |woken| now.saturating_duration_since(woken));
        rest.checked_sub(elapsed).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use loci_core::stream::Delta;

    use super::*;

    fn part() -> RunnerEvent {
        let event = StreamEvent::Delta { index: 0, delta: Delta::Text("a".to_owned()) };
        RunnerEvent::Session(EngineEvent::Stream { event, first_after: None })
    }

    /// Plays rounds, and tells after which of them there is a rest: `p` a part, `o` something else, `-` nothing, `h` a hurry.
    fn rests(rounds: &str) -> Vec<usize> {
        let pace = StreamPace::default();
        let now = Instant::now();
        let mut found = Vec::new();
        for (idx, round) in rounds.chars().enumerate() {
            match round {
                'p' => assert!(pace.note(&part())),
                'o' => assert!(!pace.note(&RunnerEvent::Session(EngineEvent::Requesting))),
                'h' => {
                    assert!(pace.note(&part()));
                    pace.hurry();
                }
                _ => {}
            }
            let mut state = pace.lock();
            state.woken_at = Some(now);
            if state.end_round(now).is_some_and(|left| left == REST) {
                found.push(idx);
            }
            state.is_hurried = false;
        }
        found
    }

    #[test]
    fn only_an_answer_that_flows_lets_the_session_rest() {
        let flow = "p".repeat(16);
        assert_eq!(rests(&flow), [15]);
        assert_eq!(rests(&flow[1..]), [] as [usize; 0]);
        assert_eq!(rests(&format!("{flow}pop{flow}")), [15, 16, 33, 34]);
        assert_eq!(rests(&format!("{flow}-p")), [15, 17]);
        assert_eq!(rests(&format!("{flow}hp")), [15, 17]);
    }

    #[test]
    fn rest_is_over_when_its_time_is_and_when_somebody_asks() {
        let now = Instant::now();
        let flowing = |elapsed: u64, n_bytes: usize| {
            let woken_at = now.checked_sub(Duration::from_millis(elapsed));
            let mut rounds =
                Rounds { n_in_a_row: 99, has_part: true, n_bytes, woken_at, ..Rounds::default() };
            let rest = rounds.end_round(now);
            assert_eq!(rounds.n_bytes, 0, "each round counts its own");
            rest
        };
        assert_eq!(flowing(13, READABLE_BYTES), Some(REST - Duration::from_millis(13)));
        assert_eq!(flowing(13, READABLE_BYTES + 1), Some(FLOOD_REST - Duration::from_millis(13)));
        assert_eq!((flowing(33, 1), flowing(66, 1000), flowing(200, 1000)), (None, None, None));
        let pace = StreamPace::default();
        *pace.lock() = Rounds { n_in_a_row: 99, has_part: true, is_hurried: true, ..Rounds::default() };
        pace.rest();
        assert!(!pace.lock().is_hurried, "the next rest is not left out");
    }
}
